/* Looks for CUDA where there is none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    printf("%p %p\n", dlsym(RTLD_DEFAULT, "cuGetProcAddress"), dlsym(dlopen(NULL, RTLD_NOW), "cuMemcpyHtoD_v2"));
    return 0;
}
