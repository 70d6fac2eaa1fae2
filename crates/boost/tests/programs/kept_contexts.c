/* Calls that destroy no context, or another one: pinned memory stays, and nothing waits. */
#include <unistd.h>

#include "driver_api.h"

#define BYTES ((size_t)8 << 20)

static volatile int go;
static void wait_for_program(void *data) {
    while (!go) usleep(1000);
}

int main(void) {
    handle primary = open_device(), own, stream;
    unsigned char *pinned, *host = malloc(BYTES);
    device_ptr memory;
    alarm(20);

    /* The driver refuses to destroy a primary context. */
    CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    printf("destroy a primary context: %d\n", cuCtxDestroy_v2(primary));
    memset(pinned, 1, BYTES);
    CHECK(cuMemFreeHost(pinned));

    /* A release that is not the last one waits for nothing. */
    CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuLaunchHostFunc(stream, wait_for_program, NULL));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    go = 1;
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuMemFree_v2(memory));

    /* A reset of the primary context concerns no other one. */
    CHECK(cuCtxCreate_v2(&own, 0, 0));
    CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    CHECK(cuDevicePrimaryCtxReset_v2(0));
    memset(pinned, 2, BYTES);
    printf("still there: %d\n", pinned[BYTES - 1]);
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuCtxDestroy_v2(own));
    return 0;
}
