/* Pinned memory, as programs expect it of the driver. Prints what must not differ with the library. With an argument it
 * frees memory in flight: libcuda waits then, the simulated one reports it. */
#include "driver_api.h"

#define BYTES ((size_t)4 << 20)

int main(int count, char **arguments) {
    open_device();
    device_ptr memory, address;
    handle stream;
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuStreamCreate(&stream, 1));
    unsigned char *expected = malloc(BYTES), *target = malloc(BYTES);

    for (unsigned flags = 0; flags < 8; flags++) {
        unsigned found = 99;
        unsigned char *pinned;
        CHECK(cuMemHostAlloc((void **)&pinned, BYTES, flags));
        EXPECT((uintptr_t)pinned % 4096 == 0);
        CHECK(cuMemHostGetFlags(&found, pinned + BYTES - 1));
        CHECK(cuMemHostGetDevicePointer_v2(&address, pinned, 0));
        printf("flags %u: %u, same address: %d\n", flags, found, address == (device_ptr)(uintptr_t)pinned);
        printf("unregister: %d, register: %d\n", cuMemHostUnregister(pinned), cuMemHostRegister_v2(pinned, 4096, 0));
        CHECK(cuMemFreeHost(pinned));
        printf("free again: %d\n", cuMemFreeHost(pinned) != 0);
    }

    /* Freed while a copy reads it, and allocated again at once: the copy has the old bytes. */
    for (unsigned round = 0; round < 30; round++) {
        unsigned char *pinned, *next;
        CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
        fill(pinned, BYTES, round);
        memcpy(expected, pinned, BYTES);
        CHECK(cuMemcpyHtoDAsync_v2(memory, pinned, BYTES, stream));
        if (count == 1) CHECK(cuStreamSynchronize(stream));
        CHECK(cuMemFreeHost(pinned));
        CHECK(cuMemHostAlloc((void **)&next, BYTES, 0));
        memset(next, 0xAB, BYTES);
        CHECK(cuMemcpyDtoHAsync_v2(target, memory, BYTES, stream));
        EXPECT(!memcmp(target, expected, BYTES));
        CHECK(cuMemFreeHost(next));
    }

    /* Memory that the program registers itself is its own. */
    unsigned char *own;
    EXPECT(!posix_memalign((void **)&own, 4096, BYTES));
    CHECK(cuMemHostRegister_v2(own, BYTES, 0));
    CHECK(cuMemcpyHtoDAsync_v2(memory, own, BYTES, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemHostUnregister(own));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuMemFree_v2(memory));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    (void)arguments;
    puts("pinned memory right");
    return 0;
}
