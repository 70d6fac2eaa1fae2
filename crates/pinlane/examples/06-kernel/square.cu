// Compiled to square.ptx with `nvcc --ptx --gpu-architecture=compute_52 square.cu`, or with NVRTC.

// data[i] = data[i] * data[i] * scale, for i < n.
extern "C" __global__ void square_and_scale(unsigned long long n, float scale, float *data) {
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = __fmul_rn(__fmul_rn(data[i], data[i]), scale);
}
