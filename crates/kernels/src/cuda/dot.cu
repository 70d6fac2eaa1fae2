// The dot product of two vectors.
//
// The sum has one order, whatever the GPU, the grid and the alignment, so that its bits are always
// the same. There are 2^20 lanes. Lane l adds the products l, l + 2^20, l + 2 * 2^20, … one after
// the other, in double; the lanes are then added as a tree: each with its neighbour, each pair with
// the pair beside it, and so on. A thread has four lanes side by side, a block 1024, and one block
// at the end adds what the others left. Lanes without a product hold zero, which changes nothing.
//
// Launch with blocks of DOT_THREADS threads. Also ../twins/dot.rs.

static const u32 DOT_THREADS = 256;
static const u32 DOT_BLOCKS = 1024;
static const u32 DOT_WARPS = DOT_THREADS / 32;

// Partial sums of n products: one for each block of lanes in use.
static __device__ u64 dot_partials(u64 n) {
    u64 blocks = n / (4 * DOT_THREADS) + (n % (4 * DOT_THREADS) != 0);
    return blocks < DOT_BLOCKS ? blocks : DOT_BLOCKS;
}

static __device__ double add_lanes(const double* lanes) {
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// Neighbours first, then pairs of neighbours. Right in the warp's first thread only.
static __device__ double add_warp(double value, u32 threads) {
    for (u32 away = 1; away < threads; away *= 2) {
        value += __shfl_down_sync(0xffffffff, value, away);
    }
    return value;
}

// The sum over the block, in its first thread.
static __device__ double add_block(double value) {
    __shared__ double of_warp[DOT_WARPS];
    u32 warp = threadIdx.x / 32;
    u32 in_warp = threadIdx.x % 32;
    value = add_warp(value, 32);
    if (in_warp == 0) {
        of_warp[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = in_warp < DOT_WARPS ? of_warp[in_warp] : 0.0;
        value = add_warp(value, DOT_WARPS);
    }
    // Before the next round writes to it.
    __syncthreads();
    return value;
}

// The product of two floats is exact in double, so that only the addition rounds.
static __device__ void add_product(double& lane, float x, float y) {
    lane = fma((double)x, (double)y, lane);
}

struct FromAligned {
    static __device__ float4 load(const float* address) {
        return *(const float4*)address;
    }
};

struct FromAnywhere {
    static __device__ float4 load(const float* address) {
        return make_float4(address[0], address[1], address[2], address[3]);
    }
};

template <class From>
static __device__ void add_group(double* lanes, const float* x, const float* y) {
    float4 a = From::load(x);
    float4 b = From::load(y);
    add_product(lanes[0], a.x, b.x);
    add_product(lanes[1], a.y, b.y);
    add_product(lanes[2], a.z, b.z);
    add_product(lanes[3], a.w, b.w);
}

// Adds to the four lanes of a thread all that is theirs.
template <class From>
static __device__ void add_groups(double* lanes, u64 thread, u64 n, const float* x,
                                  const float* y) {
    const u64 step = (u64)DOT_BLOCKS * DOT_THREADS;
    u64 groups = n / 4;
    u64 group = thread;
#pragma unroll 4
    for (; group < groups; group += step) {
        add_group<From>(lanes, x + 4 * group, y + 4 * group);
    }
    if (group == groups) {
        // Unrolled, so that the lanes stay in registers.
#pragma unroll
        for (u32 i = 0; i < 3; i++) {
            if (i < n % 4) {
                add_product(lanes[i], x[4 * group + i], y[4 * group + i]);
            }
        }
    }
}

static __device__ bool by_sixteen(const float* address) {
    return (u64)address % 16 == 0;
}

// partials[b] = the sum of the 1024 lanes of block b, for as many as dot_partials(n).
extern "C" __global__ void __launch_bounds__(DOT_THREADS, 4)
    pinlane_dot_partials_f32(u64 n, const float* x, const float* y, double* partials) {
    u64 blocks = dot_partials(n);
    for (u64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        double lanes[4] = {0.0, 0.0, 0.0, 0.0};
        u64 thread = block * DOT_THREADS + threadIdx.x;
        if (by_sixteen(x) && by_sixteen(y)) {
            add_groups<FromAligned>(lanes, thread, n, x, y);
        } else {
            add_groups<FromAnywhere>(lanes, thread, n, x, y);
        }
        double sum = add_block(add_lanes(lanes));
        if (threadIdx.x == 0) {
            partials[block] = sum;
        }
    }
}

// *result = the sum of the partial sums of n products. One block. A NaN is always the same one.
extern "C" __global__ void __launch_bounds__(DOT_THREADS)
    pinlane_dot_sum_f64(u64 n, const double* partials, double* result) {
    u64 count = dot_partials(n);
    double lanes[4];
    for (u32 i = 0; i < 4; i++) {
        u64 at = 4 * threadIdx.x + i;
        lanes[i] = at < count ? partials[at] : 0.0;
    }
    double sum = add_block(add_lanes(lanes));
    if (threadIdx.x == 0) {
        *result = sum == sum ? sum : __longlong_as_double(0x7ff8000000000000);
    }
}

// *result += x[i] * y[i] for i < n, all in float and in any order: as textbooks begin, to see what
// it costs and how wrong it is.
extern "C" __global__ void pinlane_dot_atomic_f32(u64 n, const float* x, const float* y,
                                                  float* result) {
    for (u64 i = first_item(); i < n; i += stride_items()) {
        atomicAdd(result, __fmul_rn(x[i], y[i]));
    }
}
