/* Copies before, during and after the capture of a stream into a graph. */
#include "driver_api.h"

#define BYTES ((size_t)2 << 20)

int main(void) {
    open_device();
    device_ptr memory;
    handle stream, graph;
    unsigned char *host = malloc(BYTES);
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuStreamBeginCapture_v2(stream, 0));
    for (int i = 0; i < 3; i++) CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuStreamEndCapture(stream, &graph));
    for (int i = 0; i < 4; i++) CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuMemFree_v2(memory));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    puts("captured");
    return 0;
}
