// Bytes as numbers, each channel with a scale and an offset of its own. The same bits as
// ../twins/normalize.rs: rounded after the multiplication and after the addition, never fused.
//
// Element i is of channel (i / inner) % channels. Planes one behind the other (CHW) have as many
// elements as inner says; where the channels of a pixel lie side by side (HWC), inner is 1.
//
// Source and target do not overlap; the target is a multiple of its element's size, no more.

// Channels at most. Also ../normalize.rs.
static const u32 NORMALIZE_CHANNELS = 16;

// Where an element stands in its plane, and the channel of that plane.
struct Place {
    u64 in_plane;
    u32 channel;
};

struct Planes {
    u64 inner;
    u32 channels;

    __device__ Place of(u64 i) const {
        u64 plane = i / inner;
        Place place = {i - plane * inner, (u32)(plane % channels)};
        return place;
    }

    // The place as many elements later as `step` is behind element 0: no division.
    __device__ Place after(Place place, Place step) const {
        place.in_plane += step.in_plane;
        place.channel += step.channel;
        if (place.in_plane >= inner) {
            place.in_plane -= inner;
            place.channel++;
        }
        place.channel -= place.channel >= channels ? channels : 0;
        return place;
    }
};

// Bytes of a group, four to a word.
template <u32 BYTES>
struct Bytes {
    u32 words[BYTES / 4];
    __device__ float number(u32 i) const {
        return (float)(words[i / 4] >> 8 * (i % 4) & 0xff);
    }
};

static __device__ Bytes<4> load_whole(const Bytes<4>* from) {
    Bytes<4> bytes = {{*(const u32*)from}};
    return bytes;
}

static __device__ Bytes<8> load_whole(const Bytes<8>* from) {
    uint2 pair = *(const uint2*)from;
    Bytes<8> bytes = {{pair.x, pair.y}};
    return bytes;
}

template <u32 BYTES>
static __device__ Bytes<BYTES> load_group(const u8* from, bool aligned) {
    if (aligned) {
        return load_whole((const Bytes<BYTES>*)from);
    }
    Bytes<BYTES> bytes = {};
#pragma unroll
    for (u32 i = 0; i < BYTES; i++) {
        bytes.words[i / 4] |= (u32)from[i] << 8 * (i % 4);
    }
    return bytes;
}

// What is made of the numbers. A group of them is 16 bytes, so that a warp writes whole lines.
struct AsF32 {
    typedef float Item;
    static const u32 GROUP = 4;
    static __device__ float one(float value) {
        return value;
    }
    static __device__ void store(float* to, const float* group) {
        *(float4*)to = make_float4(group[0], group[1], group[2], group[3]);
    }
};

struct AsBf16 {
    typedef u16 Item;
    static const u32 GROUP = 8;
    static __device__ u16 one(float value) {
        return ToBf16()(value);
    }
    static __device__ u32 two(const u16* halves) {
        return halves[0] | (u32)halves[1] << 16;
    }
    static __device__ void store(u16* to, const u16* group) {
        *(uint4*)to = make_uint4(two(group), two(group + 2), two(group + 4), two(group + 6));
    }
};

template <u32 MOST>
static __device__ u32 at_most(u64 count) {
    return count < MOST ? (u32)count : MOST;
}

static __device__ float scaled(float number, float2 factors) {
    Scaled scale = {factors.x, factors.y};
    return scale.of(number);
}

// A group from the registers to the target.
template <class As>
static __device__ void put_group(const Bytes<As::GROUP>& bytes, Place place, const Planes& planes,
                                 const float2* table, typename As::Item* target) {
    // Elements from one channel to the next, and to the first of them: more than a group are as
    // good as a group.
    u32 plane = at_most<As::GROUP>(planes.inner);
    u32 left = at_most<As::GROUP>(planes.inner - place.in_plane);
    float2 factors = table[place.channel];
    typename As::Item group[As::GROUP];
#pragma unroll
    for (u32 i = 0; i < As::GROUP; i++) {
        group[i] = As::one(scaled(bytes.number(i), factors));
        if (--left == 0) {
            left = plane;
            place.channel = place.channel + 1 < planes.channels ? place.channel + 1 : 0;
            factors = table[place.channel];
        }
    }
    As::store(target, group);
}

// target[i] = source[i] * scale + offset of its channel, for i < n. The first elements, up to where
// the target's groups begin, and those behind the last group go one by one.
template <class As>
static __device__ void normalize(u64 n, const Planes& planes, const float2* table,
                                 const u8* source, typename As::Item* target) {
    const u32 group = As::GROUP;
    u64 head = (group - (u64)target / sizeof(typename As::Item) % group) % group;
    head = head < n ? head : n;
    u64 groups = (n - head) / group;
    bool aligned = (u64)(source + head) % group == 0;
    u64 step = stride_items();
    u64 i = first_item();
    if (i < groups) {
        Place place = planes.of(head + i * group);
        Place next = planes.of(step * group);
        // Two loads under way at a time hide the latency.
        for (; aligned && i + step < groups; i += 2 * step) {
            u64 at = head + i * group;
            u64 then = at + step * group;
            Bytes<As::GROUP> first = load_whole((const Bytes<As::GROUP>*)(source + at));
            Bytes<As::GROUP> second = load_whole((const Bytes<As::GROUP>*)(source + then));
            put_group<As>(first, place, planes, table, target + at);
            place = planes.after(place, next);
            put_group<As>(second, place, planes, table, target + then);
            place = planes.after(place, next);
        }
        for (; i < groups; i += step) {
            u64 at = head + i * group;
            Bytes<As::GROUP> bytes = load_group<As::GROUP>(source + at, aligned);
            put_group<As>(bytes, place, planes, table, target + at);
            place = planes.after(place, next);
        }
    }
    u64 tail = head + groups * group;
    for (u64 k = first_item(); k < head + (n - tail); k += step) {
        u64 at = k < head ? k : tail + (k - head);
        target[at] = As::one(scaled((float)source[at], table[planes.of(at).channel]));
    }
}

// With the table in shared memory. No plane, no channel or too many of them are no work.
template <class As>
static __device__ void normalize_all(u64 n, u64 inner, u32 channels, const float2* table,
                                     const u8* source, typename As::Item* target) {
    __shared__ float2 shared[NORMALIZE_CHANNELS];
    if (inner == 0 || channels == 0 || channels > NORMALIZE_CHANNELS) {
        return;
    }
    for (u32 i = threadIdx.x; i < channels; i += blockDim.x) {
        shared[i] = table[i];
    }
    __syncthreads();
    Planes planes = {inner, channels};
    normalize<As>(n, planes, shared, source, target);
}

// target[i] = source[i] * table[c].x + table[c].y for i < n, c being the channel of element i.
extern "C" __global__ void pinlane_normalize_u8_f32(u64 n, u64 inner, u32 channels,
                                                    const float2* table,
                                                    const u8* __restrict__ source,
                                                    float* __restrict__ target) {
    normalize_all<AsF32>(n, inner, channels, table, source, target);
}

// The same as the bits of the nearest bf16, rounded once more.
extern "C" __global__ void pinlane_normalize_u8_bf16(u64 n, u64 inner, u32 channels,
                                                     const float2* table,
                                                     const u8* __restrict__ source,
                                                     u16* __restrict__ target) {
    normalize_all<AsBf16>(n, inner, channels, table, source, target);
}
