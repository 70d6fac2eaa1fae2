/* Threads that copy memory of random kinds in random sizes on random streams, and check every byte. Arguments: threads,
 * copies of each, seed. */
#include <pthread.h>

#include "driver_api.h"

#define MOST_BYTES ((size_t)5 << 20)

static handle context;
static unsigned copies, seed;

static uint64_t next(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15ull;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/* Ordinary, pinned or registered memory. */
static unsigned char *allocate(int kind, size_t bytes) {
    void *memory;
    if (kind == 1) {
        CHECK(cuMemHostAlloc(&memory, bytes, 0));
        return memory;
    }
    EXPECT(!posix_memalign(&memory, 4096, bytes));
    if (kind == 2) CHECK(cuMemHostRegister_v2(memory, bytes, 0));
    return memory;
}

static void release(int kind, void *memory) {
    if (kind == 1) {
        CHECK(cuMemFreeHost(memory));
        return;
    }
    if (kind == 2) CHECK(cuMemHostUnregister(memory));
    free(memory);
}

static void *copy(void *number) {
    uint64_t state = seed * 1000 + (uint64_t)(uintptr_t)number;
    CHECK(cuCtxSetCurrent(context));
    handle streams[4] = {NULL, (handle)2};
    device_ptr memory;
    CHECK(cuMemAlloc_v2(&memory, MOST_BYTES));
    CHECK(cuStreamCreate(&streams[2], 0));
    CHECK(cuStreamCreate(&streams[3], 1));
    for (unsigned i = 0; i < copies; i++) {
        size_t bytes = next(&state) % 8 ? next(&state) % (MOST_BYTES - 1) + 1 : next(&state) % 5000 + 1;
        size_t offset = next(&state) % (MOST_BYTES - bytes + 1);
        int source_kind = next(&state) % 5, target_kind = next(&state) % 5;
        handle stream = streams[next(&state) % 4];
        unsigned char *source = allocate(source_kind, bytes), *target = allocate(target_kind, bytes);
        fill(source, bytes, (unsigned)next(&state));
        memset(target, 0, bytes);
        switch (next(&state) % 3) {
        case 0: CHECK(cuMemcpyHtoDAsync_v2(memory + offset, source, bytes, stream)); break;
        case 1: CHECK(cuMemcpyAsync(memory + offset, (device_ptr)(uintptr_t)source, bytes, stream)); break;
        case 2:
            CHECK(cuStreamSynchronize(stream));
            CHECK(cuMemcpyHtoD_v2(memory + offset, source, bytes));
            CHECK(cuStreamSynchronize(NULL)); /* not ordered with streams that do not block */
            break;
        }
        CHECK(cuMemcpyDtoHAsync_v2(target, memory + offset, bytes, stream));
        if (target_kind == 1 || target_kind == 2) CHECK(cuStreamSynchronize(stream));
        EXPECT(!memcmp(source, target, bytes));
        CHECK(cuStreamSynchronize(stream));
        release(source_kind, source), release(target_kind, target);
    }
    CHECK(cuStreamDestroy_v2(streams[2]));
    CHECK(cuStreamDestroy_v2(streams[3]));
    CHECK(cuMemFree_v2(memory));
    return NULL;
}

int main(int count, char **arguments) {
    EXPECT(count == 4);
    unsigned threads = atoi(arguments[1]);
    copies = atoi(arguments[2]), seed = atoi(arguments[3]);
    context = open_device();
    pthread_t thread[64];
    EXPECT(threads <= 64);
    for (uintptr_t i = 0; i < threads; i++) EXPECT(!pthread_create(&thread[i], NULL, copy, (void *)i));
    for (unsigned i = 0; i < threads; i++) EXPECT(!pthread_join(thread[i], NULL));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    puts("every byte right");
    return 0;
}
