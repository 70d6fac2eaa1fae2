/* One call of each kind, for the trace. With the argument "killed" it is killed at the end. */
#include "driver_api.h"
#include <signal.h>

typedef struct {
    size_t source_x, source_y;
    unsigned source_type;
    const void *source_host;
    device_ptr source_device;
    handle source_array;
    size_t source_pitch, target_x, target_y;
    unsigned target_type;
    void *target_host;
    device_ptr target_device;
    handle target_array;
    size_t target_pitch, width_bytes, height;
} rows;

static int (*copy_rows)(const rows *);
static int (*wait_for_event)(handle);
static int (*copy_batch)(device_ptr *, device_ptr *, size_t *, size_t, unsigned (*)[6], size_t *, size_t, size_t *, handle);

/* Not inlined, so that its name is in the trace. */
__attribute__((noinline)) void upload_pageable(device_ptr target, void *source, size_t bytes) {
    for (int i = 0; i < 3; i++) CHECK(cuMemcpyHtoD_v2(target, source, bytes));
    __asm__ volatile("");
}

int main(int count, char **arguments) {
    open_device();
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&copy_rows = dlsym(library, "cuMemcpy2D_v2");
    *(void **)&wait_for_event = dlsym(library, "cuEventSynchronize");
    *(void **)&copy_batch = dlsym(library, "cuMemcpyBatchAsync");

    size_t bytes = 1 << 16;
    void *pageable = calloc(1, bytes), *to_register = aligned_alloc(4096, bytes), *pinned, *combined;
    device_ptr device, second;
    handle stream, event;
    CHECK(cuMemAlloc_v2(&device, bytes));
    CHECK(cuMemAlloc_v2(&second, bytes));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuEventCreate(&event, 0));
    CHECK(cuMemHostAlloc(&pinned, bytes, 0));
    CHECK(cuMemHostAlloc(&combined, bytes, 4));
    CHECK(cuMemHostRegister_v2(to_register, bytes, 0));

    upload_pageable(device, pageable, bytes);
    CHECK(cuMemcpyHtoDAsync_v2(device, pinned, bytes, stream));
    CHECK(cuMemcpyHtoDAsync_v2(device, combined, bytes, stream));
    CHECK(cuMemcpyDtoHAsync_v2_ptsz(to_register, device, bytes, NULL));
    CHECK(cuMemcpy((device_ptr)(uintptr_t)pageable, device, bytes / 2));
    CHECK(cuMemcpyDtoDAsync_v2(second, device, bytes, stream));
    rows matrix = {.source_type = 1, .source_host = pageable, .source_pitch = 512, .target_type = 2,
                   .target_device = device, .target_pitch = 256, .width_bytes = 256, .height = 100};
    CHECK(copy_rows(&matrix));
    device_ptr targets[] = {device, device + 4096}, sources[] = {(device_ptr)(uintptr_t)pinned, (device_ptr)(uintptr_t)pinned};
    size_t sizes[] = {1024, 2048}, first = 0, failed;
    unsigned in_stream_order[1][6] = {{1}};
    CHECK(copy_batch(targets, sources, sizes, 2, in_stream_order, &first, 1, &failed, stream));
    CHECK(cuEventRecord(event, stream));
    CHECK(wait_for_event(event));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuCtxSynchronize());

    EXPECT(cuMemFreeHost(to_register) != 0);
    CHECK(cuMemHostUnregister(to_register));
    CHECK(cuMemFreeHost(combined));
    if (count > 1 && !strcmp(arguments[1], "killed")) raise(SIGKILL);
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuMemFree_v2(device));
    CHECK(cuMemFree_v2(second));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
