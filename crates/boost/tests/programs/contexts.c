/* Copies in contexts that come and go. */
#include "driver_api.h"

#define BYTES ((size_t)2 << 20)

static void copy_both_ways(unsigned seed) {
    unsigned char *source = malloc(BYTES), *target = calloc(1, BYTES);
    device_ptr memory;
    void *pinned;
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuMemHostAlloc(&pinned, BYTES, 0));
    fill(source, BYTES, seed);
    CHECK(cuMemcpyHtoD_v2(memory, source, BYTES));
    CHECK(cuMemcpyDtoH_v2(target, memory, BYTES));
    EXPECT(!memcmp(source, target, BYTES));
    CHECK(cuMemcpyDtoH_v2(pinned, memory, BYTES));
    EXPECT(!memcmp(source, pinned, BYTES));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree_v2(memory));
    free(source), free(target);
}

int main(void) {
    find_driver();
    CHECK(cuInit(0));
    for (unsigned round = 0; round < 4; round++) {
        handle one, other, primary;
        CHECK(cuCtxCreate_v2(&one, 0, 0));
        copy_both_ways(4 * round);
        CHECK(cuCtxCreate_v2(&other, 0, 0));
        copy_both_ways(4 * round + 1);
        CHECK(cuCtxSetCurrent(one));
        copy_both_ways(4 * round + 2);
        CHECK(cuCtxDestroy_v2(one));
        CHECK(cuCtxDestroy_v2(other));
        CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
        CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
        CHECK(cuCtxSetCurrent(primary));
        copy_both_ways(4 * round + 3);
        /* Another user still has it. */
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
        copy_both_ways(4 * round + 3);
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
        CHECK(cuCtxSetCurrent(NULL));
    }
    puts("every context right");
    return 0;
}
