// The built-in kernels. Each has a CPU twin of the same name, parameters and result in ../twins/.
// This file and those that compile.py names after it are compiled as one.
//
// All loops stride by the whole grid, so that any launch shape gives the same result; dot.cu says
// where the number of threads matters.
// After a change: `cargo xtask kernels` makes builtin.ptx anew.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ u64 first_item() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ u64 stride_items() {
    return (u64)gridDim.x * blockDim.x;
}

// data[i] += value for i < n, wrapping.
extern "C" __global__ void pinlane_add_u32(u64 n, u32 value, u32* data) {
    for (u64 i = first_item(); i < n; i += stride_items()) {
        data[i] += value;
    }
}

// y[i] = a * x[i] + y[i] for i < n, with one rounding: the same bits as the twin's mul_add.
extern "C" __global__ void pinlane_saxpy_f32(u64 n, float a, const float* x, float* y) {
    for (u64 i = first_item(); i < n; i += stride_items()) {
        y[i] = fmaf(a, x[i], y[i]);
    }
}

// target[i] = source[i] for i < n.
extern "C" __global__ void pinlane_copy_u8(u64 n, const u8* source, u8* target) {
    for (u64 i = first_item(); i < n; i += stride_items()) {
        target[i] = source[i];
    }
}

// data[i] = data[i] * 1664525 + 1013904223, `rounds` times, wrapping, for i < n: work for the
// arithmetic units, so that its time depends on neither caches nor bandwidth.
extern "C" __global__ void pinlane_churn_u32(u64 n, u32 rounds, u32* data) {
    for (u64 i = first_item(); i < n; i += stride_items()) {
        u32 value = data[i];
        for (u32 round = 0; round < rounds; round++) {
            value = value * 1664525u + 1013904223u;
        }
        data[i] = value;
    }
}

// The result of pinlane_churn_u32, but every round is a pass over memory: work for the memory. For
// that, launch no more threads than run at once; a thread with one element only waits for it.
extern "C" __global__ void pinlane_sweep_u32(u64 n, u32 rounds, volatile u32* data) {
    for (u32 round = 0; round < rounds; round++) {
        for (u64 i = first_item(); i < n; i += stride_items()) {
            data[i] = data[i] * 1664525u + 1013904223u;
        }
    }
}

// The result of pinlane_churn_u32, but every round of an element is a load that waits for the store
// of the round before. Its time is latency; with few threads most of the device is idle.
extern "C" __global__ void pinlane_round_trips_u32(u64 n, u32 rounds, volatile u32* data) {
    for (u64 i = first_item(); i < n; i += stride_items()) {
        for (u32 round = 0; round < rounds; round++) {
            data[i] = data[i] * 1664525u + 1013904223u;
        }
    }
}

static __device__ u64 now_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Keeps its multiprocessors busy for about `duration_ns`, as long as the whole grid fits the
// device at once.
extern "C" __global__ void pinlane_spin(u64 duration_ns) {
    u64 start = now_ns();
    while (now_ns() - start < duration_ns) {
    }
}
