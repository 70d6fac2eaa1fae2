/* Calls at which a recorder could do harm. Prints what must not differ with it. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_api.h"

static handle context;
static volatile int go;

static void *synchronize(void *data) {
    CHECK(cuCtxSetCurrent(context));
    while (!go) {
    }
    CHECK(cuCtxSynchronize());
    return NULL;
}

/* A fork during the first recorded call of another thread. */
static void fork_at_the_first_call(unsigned spins) {
    pthread_t thread;
    EXPECT(!pthread_create(&thread, NULL, synchronize, NULL));
    usleep(2000);
    go = 1;
    for (volatile unsigned i = 0; i < spins; i++) {
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        cuCtxSynchronize();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(!pthread_join(thread, NULL));
    printf("child: %d\n", status);
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    context = open_device();
    if (!strcmp(arguments[1], "batch")) {
        /* The driver refuses it without a look at the lists. */
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        int (*batch)(void *, void *, void *, size_t, void *, void *, size_t, void *, handle);
        int (*rows)(const void *);
        *(void **)&batch = dlsym(library, "cuMemcpyBatchAsync");
        *(void **)&rows = dlsym(library, "cuMemcpy2D_v2");
        size_t sizes[1] = {1};
        device_ptr targets[1] = {4096}, sources[1] = {4096};
        printf("batch: %d\n", batch(targets, sources, sizes, (size_t)-1, NULL, NULL, 0, NULL, NULL));
        char unaligned[300] = {0};
        printf("rows: %d\n", rows(unaligned + 1));
    } else if (!strcmp(arguments[1], "dlerror")) {
        dlerror();
        CHECK(cuCtxSynchronize());
        char *error = dlerror();
        printf("dlerror: %s\n", error ? error : "none");
    } else {
        fork_at_the_first_call(atoi(arguments[1]));
    }
    return 0;
}
