/* Waits for a signal that every thread of its own blocks. */
#include <signal.h>
#include <unistd.h>

#include "driver_api.h"

#define BYTES ((size_t)64 << 20)

int main(void) {
    open_device();
    device_ptr memory;
    unsigned char *host = calloc(1, BYTES);
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    for (int i = 0; i < 3; i++) CHECK(cuMemcpyHtoD_v2(memory, host, BYTES));
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    EXPECT(!sigprocmask(SIG_BLOCK, &signals, NULL));
    kill(getpid(), SIGTERM);
    EXPECT(!sigwait(&signals, &signal));
    printf("got %d\n", signal);
    CHECK(cuMemFree_v2(memory));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
