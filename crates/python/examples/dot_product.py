"""The dot product of the textbook: standard memory against pinned memory, and the express lane.

    python dot_product.py                   # on the first GPU, or a simulated one if there is none
    python dot_product.py sim:pcie3-x16

Each way copies both vectors to the GPU and multiplies them there. The times are those of the GPU's own clock.
"""

# %%
import sys

import numpy as np

import pinlane

DEVICE = sys.argv[1] if len(sys.argv) > 1 else (pinlane.device_names() or ["sim:pcie3-x16"])[0]
ELEMENTS = 1_000_000

# %% The kernels: partial sums, one of each block, then their sum. A simulated GPU runs no CUDA C; it knows what kernels
# of these names compute.
SOURCE = """
const unsigned THREADS = 256, BLOCKS = 1024;

__device__ double sum_of_block(double value) {
    __shared__ double sums[THREADS];
    sums[threadIdx.x] = value;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    return sums[0];
}

extern "C" __global__ void pinlane_dot_partials_f32(unsigned long long n, const float* x, const float* y, double* partials) {
    double sum = 0;
    for (unsigned long long i = blockIdx.x * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) sum += x[i] * y[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

extern "C" __global__ void pinlane_dot_sum_f64(unsigned long long n, const double* partials, double* result) {
    double sum = 0;
    for (unsigned i = threadIdx.x; i < BLOCKS; i += THREADS) sum += partials[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) *result = sum;
}
"""
THREADS, BLOCKS = 256, 1024
gpu = pinlane.device(DEVICE)
stream = gpu.stream()
try:
    module = pinlane.compile(SOURCE, device=gpu)
except pinlane.NotSupportedError as error:
    sys.exit(f"This example needs NVIDIA's compiler: {error}")
dot_partials, dot_sum = module.kernel("pinlane_dot_partials_f32"), module.kernel("pinlane_dot_sum_f64")

# %% Vectors in ordinary memory, and the same in pinned memory.
random = np.random.default_rng(1)
x, y = random.random(ELEMENTS, "f4"), random.random(ELEMENTS, "f4")
pinned_x, pinned_y = pinlane.pin_memory((x, y), device=gpu)

# %% Memory on the GPU, allocated once.
x_on_gpu, y_on_gpu = pinlane.to_device(x, gpu), pinlane.to_device(y, gpu)
partials, result = pinlane.to_device(np.zeros(BLOCKS), gpu), pinlane.to_device(np.zeros(1), gpu)


def measure(copy, x, y):
    """Milliseconds for the copies and for the kernels, and the result."""
    start = stream.record()
    copy(x, x_on_gpu)
    copy(y, y_on_gpu)
    copied = stream.record()
    dot_partials(BLOCKS, THREADS, ELEMENTS, x_on_gpu, y_on_gpu, partials, stream=stream)
    dot_sum(1, THREADS, ELEMENTS, partials, result, stream=stream)
    end = stream.record()
    end.synchronize()
    return start.elapsed_ms(copied), copied.elapsed_ms(end), pinlane.to_host(result, stream=stream)[0]


# %% Three ways to the GPU.
def asynchronously(source, target):
    pinlane.to_device(source, out=target, stream=stream, blocking=False)


def by_express_lane(source, target):
    pinlane.to_device(source, out=target, stream=stream)


WAYS = [
    ("standard", stream.driver_copy, x, y),  # what x.cuda() and PyCUDA do
    ("pinned", asynchronously, pinned_x, pinned_y),
    ("express", by_express_lane, x, y),  # ordinary memory, through Pinlane's ring
]
measured = {name: min(measure(copy, *vectors) for _ in range(3)) for name, copy, *vectors in WAYS}

# %%
note = ", SIMULATED" if gpu.simulated else ""
print(f"{ELEMENTS} elements per vector, on {gpu.model}{note}")
print(f"{'memory':10}{'copy':>10}{'kernels':>10}{'total':>10}")
for name, (copy_ms, kernel_ms, _) in measured.items():
    print(f"{name:10}{copy_ms:7.3f} ms{kernel_ms:7.3f} ms{copy_ms + kernel_ms:7.3f} ms")
standard, pinned, express = (measured[name][0] + measured[name][1] for name in ("standard", "pinned", "express"))
print(f"Speedup: {standard / pinned:.2f}x pinned over standard, {standard / express:.2f}x express over standard")

expected = float(np.dot(x.astype("f8"), y.astype("f8")))
for name, (_, _, found) in measured.items():
    assert abs(found - expected) < 1e-6 * expected, (name, found, expected)
print(f"Result: {measured['pinned'][2]:.6f}, expected {expected:.6f}")
