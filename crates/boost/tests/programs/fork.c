/* A child of a process that uses CUDA. Prints what its calls return: the library must not change that. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver_api.h"

#define BYTES ((size_t)2 << 20)

int main(void) {
    open_device();
    device_ptr memory;
    void *pinned;
    unsigned char *host = malloc(BYTES);
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuMemHostAlloc(&pinned, BYTES, 0));
    CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child: %d %d %d\n", cuMemcpyHtoD_v2(memory, host, BYTES), cuMemFreeHost(pinned), cuCtxSynchronize());
        fflush(stdout);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree_v2(memory));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    puts("parent goes on");
    return 0;
}
