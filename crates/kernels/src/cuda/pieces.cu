// Many small copies as one: pieces that lie back to back in one buffer, and anywhere else.

// Also ../pieces.rs.
struct Piece {
    u64 place;         // device address of the piece's own place
    u64 offset_bytes;  // where it lies in the staged buffer
    u64 bytes;
};

// Copies with the threads of one block, a word at a time. Both addresses have the same remainder
// by the word's size, so that a few bytes before and behind the words go one by one.
template <class Word>
static __device__ void copy_words(u8* target, const u8* source, u64 bytes) {
    u64 head = (sizeof(Word) - (u64)target % sizeof(Word)) % sizeof(Word);
    head = head < bytes ? head : bytes;
    u64 words = (bytes - head) / sizeof(Word);
    u64 tail = head + words * sizeof(Word);
    for (u64 i = threadIdx.x; i < head; i += blockDim.x) {
        target[i] = source[i];
    }
    const Word* from = (const Word*)(source + head);
    Word* to = (Word*)(target + head);
    u64 step = blockDim.x;
    u64 i = threadIdx.x;
    // Four loads under way at a time hide the latency.
    for (; i + 3 * step < words; i += 4 * step) {
        Word a = from[i];
        Word b = from[i + step];
        Word c = from[i + 2 * step];
        Word d = from[i + 3 * step];
        to[i] = a;
        to[i + step] = b;
        to[i + 2 * step] = c;
        to[i + 3 * step] = d;
    }
    for (; i < words; i += step) {
        to[i] = from[i];
    }
    for (u64 i = tail + threadIdx.x; i < bytes; i += step) {
        target[i] = source[i];
    }
}

// Copies with the threads of one block, in the largest words that both addresses allow.
static __device__ void copy_part(u8* target, const u8* source, u64 bytes) {
    u64 difference = (u64)target ^ (u64)source;
    if (difference % 16 == 0) {
        copy_words<uint4>(target, source, bytes);
    } else if (difference % 4 == 0) {
        copy_words<u32>(target, source, bytes);
    } else {
        copy_words<u8>(target, source, bytes);
    }
}

// Calls part(piece, first byte, bytes) for every part of every piece, each from one block. A piece
// has `splits` parts; all but the last that is not empty are multiples of 16 bytes.
template <class Part>
static __device__ void for_parts(u64 pieces, u32 splits, const Piece* table, Part part) {
    for (u64 unit = blockIdx.x; unit < pieces * splits; unit += gridDim.x) {
        Piece piece = table[unit / splits];
        u64 part_bytes = ((piece.bytes + splits - 1) / splits + 15) / 16 * 16;
        u64 first = unit % splits * part_bytes;
        if (first < piece.bytes) {
            u64 left = piece.bytes - first;
            part(piece, first, left < part_bytes ? left : part_bytes);
        }
    }
}

struct Scatter {
    const u8* staged;
    __device__ void operator()(const Piece& piece, u64 first, u64 bytes) const {
        copy_part((u8*)piece.place + first, staged + piece.offset_bytes + first, bytes);
    }
};

struct Gather {
    u8* staged;
    __device__ void operator()(const Piece& piece, u64 first, u64 bytes) const {
        copy_part(staged + piece.offset_bytes + first, (const u8*)piece.place + first, bytes);
    }
};

// Copies each piece from the staged buffer to its place. The places do not overlap each other nor
// the buffer. `total_bytes` is for the simulated GPU, which cannot see the table when it reckons
// what the launch costs.
extern "C" __global__ void pinlane_scatter(u64 pieces, u32 splits, const Piece* table,
                                           const u8* staged, u64 total_bytes) {
    Scatter scatter = {staged};
    for_parts(pieces, splits, table, scatter);
}

// Copies each piece from its place into the staged buffer, where the pieces do not overlap.
extern "C" __global__ void pinlane_gather(u64 pieces, u32 splits, const Piece* table, u8* staged,
                                          u64 total_bytes) {
    Gather gather = {staged};
    for_parts(pieces, splits, table, gather);
}
