/* Wrong calls. Prints every result: the library must not change one. */
#include "driver_api.h"

#define BYTES ((size_t)2 << 20)

int main(void) {
    find_driver();
    unsigned char *host = malloc(2 * BYTES);
    device_ptr from = (device_ptr)(uintptr_t)host;
    printf("before cuInit: %d\n", cuMemcpyHtoD_v2(4096, host, BYTES));
    CHECK(cuInit(0));
    printf("no context: %d %d\n", cuMemcpyHtoD_v2(4096, host, BYTES), cuMemcpyDtoH_v2(host, 4096, BYTES));
    handle context = open_device();
    device_ptr memory;
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    printf("beyond the end: %d %d\n", cuMemcpyHtoD_v2(memory, host, BYTES + 1), cuMemcpyDtoH_v2(host, memory + 1, BYTES));
    /* A copy that is refused writes nothing. */
    CHECK(cuMemsetD8Async(memory, 0x5A, BYTES, NULL));
    memset(host, 0, BYTES + 1);
    EXPECT(cuMemcpyHtoD_v2(memory, host, BYTES + 1) != 0);
    CHECK(cuMemcpyDtoH_v2(host, memory, BYTES));
    printf("still there: %d %d\n", host[0], host[BYTES - 1]);
    printf("not a device address: %d %d\n", cuMemcpyHtoD_v2(from, host, BYTES), cuMemcpyDtoH_v2(host, 4096, BYTES));
    printf("null: %d %d\n", cuMemcpyHtoD_v2(0, host, BYTES), cuMemcpyHtoD_v2(memory, NULL, BYTES));
    printf("nothing: %d %d\n", cuMemcpyHtoD_v2(memory, host, 0), cuMemcpyHtoD_v2(0, NULL, 0));
    printf("no such stream: %d\n", cuMemcpyHtoDAsync_v2(memory, host, BYTES, (handle)0x12345) != 0);
    printf("host to host: %d\n", cuMemcpy(from + BYTES, from, BYTES));
    printf("good: %d %d\n", cuMemcpyHtoD_v2(memory, host, BYTES), cuMemcpyDtoH_v2(host, memory, BYTES));
    CHECK(cuMemFree_v2(memory));
    printf("freed: %d\n", cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    printf("released: %d\n", cuMemcpyHtoD_v2(memory, host, BYTES));
    (void)context;
    return 0;
}
