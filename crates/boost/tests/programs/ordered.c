/* Work on several streams, ordered by the streams and by events, with copies of ordinary memory in between. Each step
 * depends on the one before, so a copy that is too early or too late shows in the bytes. */
#include "driver_api.h"

#define BYTES ((size_t)1 << 20)

int main(void) {
    open_device();
    handle streams[3], event;
    device_ptr a, b;
    for (int i = 0; i < 3; i++) CHECK(cuStreamCreate(&streams[i], i == 2 ? 0 : 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&a, BYTES));
    CHECK(cuMemAlloc_v2(&b, BYTES));
    unsigned char *source = malloc(BYTES), *expected = malloc(BYTES), *target = malloc(BYTES);

    for (unsigned round = 0; round < 12; round++) {
        handle first = streams[round % 3], second = streams[(round + 1) % 3];
        /* The upload is behind work of its stream that writes to the same memory. */
        CHECK(cuMemsetD8Async(a, 0x11, BYTES, first));
        fill(source, BYTES, round);
        memcpy(expected, source, BYTES);
        CHECK(cuMemcpyHtoDAsync_v2(a, source, BYTES, first));
        memset(source, 0, BYTES);
        /* Later work of the stream sees the bytes. */
        CHECK(cuMemcpyDtoDAsync_v2(b, a, BYTES, first));
        CHECK(cuMemsetD8Async(a, 0x22, BYTES, first));
        /* Another stream sees them behind an event. */
        CHECK(cuEventRecord(event, first));
        CHECK(cuStreamWaitEvent(second, event, 0));
        CHECK(cuMemcpyDtoHAsync_v2(target, b, BYTES, second));
        EXPECT(!memcmp(target, expected, BYTES));
        CHECK(cuMemcpyDtoHAsync_v2(target, a, BYTES, second));
        EXPECT(target[0] == 0x22 && target[BYTES - 1] == 0x22);
    }

    /* The default stream waits for blocking streams, and they for it. */
    for (unsigned round = 0; round < 6; round++) {
        CHECK(cuMemsetD8Async(a, (unsigned char)round, BYTES, streams[2]));
        CHECK(cuMemcpyDtoH_v2(target, a, BYTES));
        EXPECT(target[0] == round && target[BYTES - 1] == round);
        fill(source, BYTES, 100 + round);
        CHECK(cuMemcpyHtoD_v2(a, source, BYTES));
        CHECK(cuMemcpyDtoDAsync_v2(b, a, BYTES, streams[2]));
        CHECK(cuMemcpyDtoHAsync_v2(target, b, BYTES, streams[2]));
        EXPECT(!memcmp(target, source, BYTES));
    }
    CHECK(cuMemFree_v2(a));
    CHECK(cuMemFree_v2(b));
    for (int i = 0; i < 3; i++) CHECK(cuStreamDestroy_v2(streams[i]));
    CHECK(cuEventDestroy_v2(event));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    puts("in order");
    return 0;
}
