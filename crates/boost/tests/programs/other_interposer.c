/* Another library that is preloaded, and wraps a call of libcuda by the usual means. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int copies;

int cuMemcpyHtoD_v2(uint64_t target, const void *source, size_t bytes) {
    static int (*next)(uint64_t, const void *, size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "cuMemcpyHtoD_v2");
    copies++;
    return next(target, source, bytes);
}

/* RTLD_NEXT means behind this library, whoever else wraps dlsym. */
void *malloc(size_t bytes) {
    static void *(*next)(size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "malloc");
    return next(bytes);
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "other: %d copies\n", copies); }
