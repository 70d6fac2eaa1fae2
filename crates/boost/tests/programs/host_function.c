/* A synchronous copy of memory that earlier work of its stream writes: it has what that work has written. */
#include <unistd.h>

#include "driver_api.h"

#define BYTES ((size_t)32 << 20)

static unsigned char *source;
static void write_source(void *data) {
    usleep(100000);
    memset(source, 7, BYTES);
}

int main(void) {
    open_device();
    device_ptr memory;
    unsigned char *target = malloc(BYTES);
    source = malloc(BYTES);
    memset(source, 1, BYTES);
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuLaunchHostFunc(NULL, write_source, NULL));
    CHECK(cuMemcpyHtoD_v2(memory, source, BYTES));
    CHECK(cuMemcpyDtoH_v2(target, memory, BYTES));
    printf("%d %d\n", target[0], target[BYTES - 1]);
    CHECK(cuMemFree_v2(memory));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
