/* Copies ordinary memory there and back by every call, on every kind of stream, in several sizes. */
#include "driver_api.h"

static void there_and_back(size_t bytes, unsigned seed) {
    unsigned char *source = malloc(bytes), *expected = malloc(bytes), *target = malloc(bytes);
    device_ptr on_device;
    handle blocking, non_blocking;
    CHECK(cuMemAlloc_v2(&on_device, bytes));
    CHECK(cuStreamCreate(&blocking, 0));
    CHECK(cuStreamCreate(&non_blocking, 1));
    handle streams[] = {NULL, (handle)1, (handle)2, blocking, non_blocking};

#define ROUND(upload, wait, download)                                                                                  \
    do {                                                                                                               \
        fill(source, bytes, ++seed);                                                                                   \
        memcpy(expected, source, bytes);                                                                               \
        memset(target, 0, bytes);                                                                                      \
        CHECK(upload);                                                                                                 \
        memset(source, 0xEE, bytes); /* the upload has read it */                                                      \
        wait;                                                                                                          \
        CHECK(download);                                                                                               \
        EXPECT(!memcmp(target, expected, bytes));                                                                      \
    } while (0)

    device_ptr from = (device_ptr)(uintptr_t)source, to = (device_ptr)(uintptr_t)target;
    ROUND(cuMemcpyHtoD_v2(on_device, source, bytes), , cuMemcpyDtoH_v2(target, on_device, bytes));
    ROUND(cuMemcpyHtoD_v2_ptds(on_device, source, bytes), , cuMemcpyDtoH_v2_ptds(target, on_device, bytes));
    ROUND(cuMemcpy(on_device, from, bytes), , cuMemcpy(to, on_device, bytes));
    for (unsigned i = 0; i < sizeof streams / sizeof *streams; i++) {
        handle stream = streams[i];
        ROUND(cuMemcpyHtoDAsync_v2(on_device, source, bytes, stream), ,
              cuMemcpyDtoHAsync_v2(target, on_device, bytes, stream));
        ROUND(cuMemcpyAsync(on_device, from, bytes, stream), , cuMemcpyAsync(to, on_device, bytes, stream));
        ROUND(cuMemcpyHtoDAsync_v2_ptsz(on_device, source, bytes, stream), ,
              cuMemcpyDtoHAsync_v2_ptsz(target, on_device, bytes, stream));
        /* Another stream sees the bytes after a wait. */
        ROUND(cuMemcpyHtoDAsync_v2(on_device, source, bytes, stream), CHECK(cuCtxSynchronize()),
              cuMemcpyDtoHAsync_v2(target, on_device, bytes, non_blocking));
    }
    CHECK(cuStreamDestroy_v2(blocking));
    CHECK(cuStreamDestroy_v2(non_blocking));
    CHECK(cuMemFree_v2(on_device));
    free(source), free(expected), free(target);
}

int main(void) {
    open_device();
    size_t sizes[] = {1, 4096, 200000, 1 << 20, (3 << 20) + 5};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) there_and_back(sizes[i], 100 * i);
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    puts("every byte right");
    return 0;
}
