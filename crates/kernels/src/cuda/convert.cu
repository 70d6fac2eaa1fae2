// Converting numbers. The same bits as ../convert/, which the twins use.
//
// Source and target do not overlap; each is a multiple of its element's size, no more.

// Where an address stands among groups of four elements.
template <class T>
static __device__ u32 place_in_group(const T* address) {
    return (u32)((u64)address / sizeof(T)) % 4;
}

// target[i] = one(source[i]) for i < n. Four elements at a time where both sides allow it: then
// the first ones, up to a whole group, and those behind the last group go one by one.
template <class In4, class Out4, class In, class Out, class One>
static __device__ void convert(u64 n, const In* source, Out* target, One one) {
    u64 head = n;
    u64 groups = 0;
    if (place_in_group(source) == place_in_group(target)) {
        head = (4 - place_in_group(source)) % 4;
        head = head < n ? head : n;
        groups = (n - head) / 4;
    }
    const In4* source_groups = (const In4*)(source + head);
    Out4* target_groups = (Out4*)(target + head);
    for (u64 i = first_item(); i < groups; i += stride_items()) {
        In4 in = source_groups[i];
        Out4 out;
        out.x = one(in.x);
        out.y = one(in.y);
        out.z = one(in.z);
        out.w = one(in.w);
        target_groups[i] = out;
    }
    for (u64 i = first_item(); i < head; i += stride_items()) {
        target[i] = one(source[i]);
    }
    for (u64 i = head + groups * 4 + first_item(); i < n; i += stride_items()) {
        target[i] = one(source[i]);
    }
}

static __device__ bool is_nan(u32 bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}

// To nearest, ties to even; the carry runs on into the exponent. A NaN becomes quiet.
struct ToBf16 {
    __device__ u16 operator()(float value) const {
        u32 bits = __float_as_uint(value);
        u32 rounded = bits + 0x7fff + (bits >> 16 & 1);
        u32 quiet = bits | 0x00400000;
        return (u16)((is_nan(bits) ? quiet : rounded) >> 16);
    }
};

// To nearest, ties to even, denormals kept. The instruction forgets a NaN's sign and payload.
struct ToF16 {
    __device__ u16 operator()(float value) const {
        u32 bits = __float_as_uint(value);
        u16 rounded;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
        u32 quiet = (bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x03ff);
        return is_nan(bits) ? (u16)quiet : rounded;
    }
};

// Two roundings, never fused.
struct Scaled {
    float scale;
    float offset;
    __device__ float operator()(u8 value) const {
        return of((float)value);
    }
    __device__ float of(float number) const {
        return __fadd_rn(__fmul_rn(number, scale), offset);
    }
};

// target[i] = the bits of the bf16 nearest to source[i], for i < n.
extern "C" __global__ void pinlane_f32_to_bf16(u64 n, const float* source, u16* target) {
    convert<float4, ushort4>(n, source, target, ToBf16());
}

// target[i] = the bits of the f16 nearest to source[i], for i < n.
extern "C" __global__ void pinlane_f32_to_f16(u64 n, const float* source, u16* target) {
    convert<float4, ushort4>(n, source, target, ToF16());
}

// target[i] = source[i] * scale + offset for i < n.
extern "C" __global__ void pinlane_u8_to_f32(u64 n, float scale, float offset, const u8* source,
                                             float* target) {
    Scaled scaled = {scale, offset};
    convert<uchar4, float4>(n, source, target, scaled);
}
