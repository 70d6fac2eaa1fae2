/* The part of the CUDA driver API that the test programs use. How a program finds libcuda is chosen when it is compiled:
 * LINKED calls its functions, otherwise `find_driver` fills in pointers by dlsym or cuGetProcAddress. */
#pragma once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t device_ptr;
typedef void *handle;

#define DRIVER_CALLS(X)                                                                                                \
    X(cuInit, (unsigned))                                                                                              \
    X(cuDeviceGet, (int *, int))                                                                                       \
    X(cuDevicePrimaryCtxRetain, (handle *, int))                                                                       \
    X(cuDevicePrimaryCtxRelease_v2, (int))                                                                             \
    X(cuDevicePrimaryCtxReset_v2, (int))                                                                               \
    X(cuLaunchHostFunc, (handle, void (*)(void *), void *))                                                            \
    X(cuCtxCreate_v2, (handle *, unsigned, int))                                                                       \
    X(cuCtxDestroy_v2, (handle))                                                                                       \
    X(cuCtxSetCurrent, (handle))                                                                                       \
    X(cuCtxSynchronize, (void))                                                                                        \
    X(cuMemAlloc_v2, (device_ptr *, size_t))                                                                           \
    X(cuMemFree_v2, (device_ptr))                                                                                      \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    X(cuMemFreeHost, (void *))                                                                                         \
    X(cuMemHostGetFlags, (unsigned *, void *))                                                                         \
    X(cuMemHostGetDevicePointer_v2, (device_ptr *, void *, unsigned))                                                  \
    X(cuMemHostRegister_v2, (void *, size_t, unsigned))                                                                \
    X(cuMemHostUnregister, (void *))                                                                                   \
    X(cuStreamCreate, (handle *, unsigned))                                                                            \
    X(cuStreamDestroy_v2, (handle))                                                                                    \
    X(cuStreamSynchronize, (handle))                                                                                   \
    X(cuStreamBeginCapture_v2, (handle, int))                                                                          \
    X(cuStreamEndCapture, (handle, handle *))                                                                          \
    X(cuStreamWaitEvent, (handle, handle, unsigned))                                                                   \
    X(cuEventCreate, (handle *, unsigned))                                                                             \
    X(cuEventDestroy_v2, (handle))                                                                                     \
    X(cuEventRecord, (handle, handle))                                                                                 \
    X(cuMemcpy, (device_ptr, device_ptr, size_t))                                                                      \
    X(cuMemcpyAsync, (device_ptr, device_ptr, size_t, handle))                                                         \
    X(cuMemcpyHtoD_v2, (device_ptr, const void *, size_t))                                                             \
    X(cuMemcpyHtoDAsync_v2, (device_ptr, const void *, size_t, handle))                                                \
    X(cuMemcpyHtoD_v2_ptds, (device_ptr, const void *, size_t))                                                        \
    X(cuMemcpyHtoDAsync_v2_ptsz, (device_ptr, const void *, size_t, handle))                                           \
    X(cuMemcpyDtoH_v2, (void *, device_ptr, size_t))                                                                   \
    X(cuMemcpyDtoHAsync_v2, (void *, device_ptr, size_t, handle))                                                      \
    X(cuMemcpyDtoH_v2_ptds, (void *, device_ptr, size_t))                                                              \
    X(cuMemcpyDtoHAsync_v2_ptsz, (void *, device_ptr, size_t, handle))                                                 \
    X(cuMemcpyDtoDAsync_v2, (device_ptr, device_ptr, size_t, handle))                                                  \
    X(cuMemsetD8Async, (device_ptr, unsigned char, size_t, handle))

#ifdef LINKED
#define DECLARE(name, arguments) extern int name arguments;
DRIVER_CALLS(DECLARE)
static void find_driver(void) {}
#else
#define DECLARE(name, arguments) static int(*name) arguments;
DRIVER_CALLS(DECLARE)

/* The name without its version and kind of default stream, as cuGetProcAddress expects it. */
static int find_by_proc_address(void *library, const char *symbol, void **address) {
    static int (*get)(const char *, void **, int, uint64_t, int *);
    if (!get) *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    char name[64];
    int per_thread = 0;
    snprintf(name, sizeof name, "%s", symbol);
    for (const char *const *end = (const char *const[]){"_ptds", "_ptsz", "_v2", NULL}; *end; end++) {
        size_t length = strlen(name), tail = strlen(*end);
        if (length > tail && !strcmp(name + length - tail, *end)) {
            name[length - tail] = 0;
            if (**(end) == '_' && (*end)[1] == 'p') per_thread = 1;
        }
    }
    int version = strcmp(symbol, "cuCtxCreate_v2") ? 12000 : 11000; /* 13.0 has other signatures */
    return get(name, address, version, per_thread ? 2 : 1, NULL);
}

/* FIND_BY: "dlsym" (default), "path" (dlopen by absolute path), "proc_address". */
static void find_driver(void) {
    const char *by = getenv("FIND_BY");
    const char *path = by && !strcmp(by, "path") ? getenv("LIBCUDA_PATH") : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    int by_address = by && !strcmp(by, "proc_address");
#define FIND(name, arguments)                                                                                          \
    if (by_address)                                                                                                    \
        find_by_proc_address(library, #name, (void **)&name);                                                          \
    else                                                                                                               \
        *(void **)&name = dlsym(library, #name);                                                                       \
    if (!name) {                                                                                                       \
        fprintf(stderr, "no %s\n", #name);                                                                             \
        exit(3);                                                                                                       \
    }
    DRIVER_CALLS(FIND)
}
#endif

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int code = (call);                                                                                             \
        if (code) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, code);                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Bytes that differ from place to place and from seed to seed. */
static inline void fill(unsigned char *memory, size_t bytes, unsigned seed) {
    uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0) state = state * 6364136223846793005ull + 1442695040888963407ull;
        memory[i] = (unsigned char)(state >> (8 * (i % 8)));
    }
}

/* The primary context of the first device, made current. */
static inline handle open_device(void) {
    find_driver();
    int device;
    handle context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    return context;
}
