/* Programs that make one mistake each, and twins that do not: `findings CASE` and `findings CASE right`. */
#include "driver_api.h"

enum { BYTES = 1 << 20, ROUNDS = 5 };

typedef struct {
    size_t source_x, source_y;
    unsigned source_type;
    const void *source_host;
    device_ptr source_device;
    handle source_array;
    size_t source_pitch, target_x, target_y;
    unsigned target_type;
    void *target_host;
    device_ptr target_device;
    handle target_array;
    size_t target_pitch, width_bytes, height;
} rows;

static handle library, first, second;
static device_ptr device;
static int right;

static void *pinned(void) {
    void *memory;
    CHECK(cuMemHostAlloc(&memory, BYTES, 0));
    return memory;
}

static void pageable_async(void) {
    void *memory = right ? pinned() : malloc(BYTES);
    CHECK(cuMemcpyHtoDAsync_v2(device, memory, BYTES, first));
    CHECK(cuStreamSynchronize(first));
    if (right) CHECK(cuMemFreeHost(memory));
}

static void pageable_strided(void) {
    int (*copy_rows)(const rows *);
    *(void **)&copy_rows = dlsym(library, "cuMemcpy2D_v2");
    void *memory = right ? pinned() : malloc(BYTES);
    rows matrix = {.source_type = 1, .source_host = memory, .source_pitch = 1024, .target_type = 2,
                   .target_device = device, .target_pitch = 512, .width_bytes = 512, .height = 512};
    CHECK(copy_rows(&matrix));
    if (right) CHECK(cuMemFreeHost(memory));
}

static void registered_again(void) {
    void *memory = aligned_alloc(4096, BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        if (!right || i == 0) CHECK(cuMemHostRegister_v2(memory, BYTES, 0));
        CHECK(cuMemcpyHtoD_v2(device, memory, BYTES));
        if (!right || i == ROUNDS - 1) CHECK(cuMemHostUnregister(memory));
    }
}

static void allocation_in_loop(void) {
    void *memory = right ? pinned() : NULL;
    for (int i = 0; i < ROUNDS; i++) {
        if (!right) memory = pinned();
        CHECK(cuMemcpyHtoD_v2(device, memory, BYTES));
        if (!right) CHECK(cuMemFreeHost(memory));
    }
    if (right) CHECK(cuMemFreeHost(memory));
}

static void wrong_release(void) {
    void *memory = aligned_alloc(4096, BYTES);
    CHECK(cuMemHostRegister_v2(memory, BYTES, 0));
    if (!right) EXPECT(cuMemFreeHost(memory) != 0);
    if (!right) EXPECT(cuMemHostUnregister((char *)memory + 4096) != 0);
    CHECK(cuMemHostUnregister(memory));
}

static void left_at_exit(void) {
    void *memory = pinned();
    CHECK(cuMemcpyHtoD_v2(device, memory, BYTES));
    if (right) CHECK(cuMemFreeHost(memory));
}

static void small_copies(void) {
    char *memory = calloc(1, BYTES);
    for (int i = 0; i < 40 && !right; i++) CHECK(cuMemcpyHtoD_v2(device + 256 * i, memory + 256 * i, 256));
    if (right) CHECK(cuMemcpyHtoD_v2(device, memory, 40 * 256));
}

static void wait_after_copy(void) {
    void *memory = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(cuMemcpyHtoDAsync_v2(device, memory, BYTES, first));
        if (!right) CHECK(cuStreamSynchronize(first));
    }
    CHECK(cuStreamSynchronize(first));
    CHECK(cuMemFreeHost(memory));
}

static void one_stream(void) {
    void *up = pinned(), *down = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(cuMemcpyHtoDAsync_v2(device, up, BYTES, first));
        CHECK(cuMemcpyDtoHAsync_v2(down, device + BYTES, BYTES, right ? second : first));
    }
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFreeHost(up));
    CHECK(cuMemFreeHost(down));
}

static void legacy_stream(void) {
    void *memory = pinned();
    handle blocking; /* the legacy default stream waits for it, and it for that one */
    CHECK(cuStreamCreate(&blocking, 0));
    CHECK(cuMemcpyHtoDAsync_v2(device, memory, BYTES, blocking));
    CHECK(cuMemcpyHtoDAsync_v2(device, memory, BYTES, right ? second : NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFreeHost(memory));
}

#define RUN(name)                                                                                                      \
    if (!strcmp(arguments[1], #name)) name(), found = 1

int main(int count, char **arguments) {
    int found = 0;
    if (count < 2) return 2;
    right = count > 2;
    open_device();
    library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(cuMemAlloc_v2(&device, 2 * BYTES));
    CHECK(cuStreamCreate(&first, 1));
    CHECK(cuStreamCreate(&second, 1));
    RUN(pageable_async);
    RUN(pageable_strided);
    RUN(registered_again);
    RUN(allocation_in_loop);
    RUN(wrong_release);
    RUN(left_at_exit);
    RUN(small_copies);
    RUN(wait_after_copy);
    RUN(one_stream);
    RUN(legacy_stream);
    return found ? 0 : 2;
}
