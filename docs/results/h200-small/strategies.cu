// Ways to copy 64 KiB to 8 MiB of pageable memory, against the driver.
// nvcc -O3 -std=c++17 -Xcompiler -march=native strategies.cu -o strategies -lcuda && ./strategies 200
#include <cuda.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>
#define CK(x) do { CUresult r_ = (x); if (r_) { printf("%s: %d\n", #x, r_); exit(1); } } while (0)
using Clock = std::chrono::steady_clock;
static double us(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double, std::micro>(b - a).count(); }

static void nt_copy(char *d, const char *s, size_t n) { // both 64-aligned, n % 256 == 0
    for (size_t i = 0; i < n; i += 256) {
        _mm_prefetch(s + i + 2048, _MM_HINT_T0); _mm_prefetch(s + i + 2112, _MM_HINT_T0);
        _mm_prefetch(s + i + 2176, _MM_HINT_T0); _mm_prefetch(s + i + 2240, _MM_HINT_T0);
        __m512i a = _mm512_loadu_si512(s + i), b = _mm512_loadu_si512(s + i + 64), c = _mm512_loadu_si512(s + i + 128), e = _mm512_loadu_si512(s + i + 192);
        _mm512_stream_si512((__m512i *)(d + i), a); _mm512_stream_si512((__m512i *)(d + i + 64), b);
        _mm512_stream_si512((__m512i *)(d + i + 128), c); _mm512_stream_si512((__m512i *)(d + i + 192), e);
    }
    _mm_sfence();
}
static void plain_copy(char *d, const char *s, size_t n) {
    for (size_t i = 0; i < n; i += 256) {
        _mm_prefetch(s + i + 2048, _MM_HINT_T0); _mm_prefetch(s + i + 2112, _MM_HINT_T0);
        _mm_prefetch(s + i + 2176, _MM_HINT_T0); _mm_prefetch(s + i + 2240, _MM_HINT_T0);
        __m512i a = _mm512_loadu_si512(s + i), b = _mm512_loadu_si512(s + i + 64), c = _mm512_loadu_si512(s + i + 128), e = _mm512_loadu_si512(s + i + 192);
        _mm512_storeu_si512(d + i, a); _mm512_storeu_si512(d + i + 64, b);
        _mm512_storeu_si512(d + i + 128, c); _mm512_storeu_si512(d + i + 192, e);
    }
}
enum Copy { PLAIN, NT, LIBC };
static void copy(Copy how, char *d, const char *s, size_t n) {
    if (how == PLAIN) plain_copy(d, s, n); else if (how == NT) nt_copy(d, s, n); else memcpy(d, s, n);
}

// Helpers: spinning or sleeping on a futex; run job(index) for indices claimed from a counter.
struct Team {
    std::atomic<unsigned> generation{0};
    std::atomic<int> next{0}, running{0};
    int count = 0;
    std::function<void(int)> job;
    std::atomic<bool> stop{false}, spin{true};
    std::atomic<int> limit{0};
    std::vector<std::thread> threads;
    explicit Team(int n) { for (int i = 0; i < n; i++) threads.emplace_back([this, i] { loop(i); }); }
    void loop(int me) {
        unsigned seen = 0;
        while (true) {
            unsigned now;
            int spins = 0;
            while ((now = generation.load(std::memory_order_acquire)) == seen) {
                if (stop) return;
                if (!spin && ++spins > 200) { syscall(SYS_futex, (unsigned *)&generation, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0); }
                else _mm_pause();
            }
            seen = now;
            if (me < limit.load()) { work(); }
            running.fetch_sub(1);
        }
    }
    void work() { int i; while ((i = next.fetch_add(1)) < count) job(i); }
    // starts; caller may also work()
    void start(int n, int helpers, std::function<void(int)> f) {
        while (running.load() > 0) _mm_pause();
        job = std::move(f); count = n; limit = helpers; running = (int)threads.size();
        next.store(0);
        generation.fetch_add(1, std::memory_order_release);
        if (!spin) syscall(SYS_futex, (unsigned *)&generation, FUTEX_WAKE_PRIVATE, 1000, nullptr, nullptr, 0);
    }
    void finish() { stop = true; generation.fetch_add(1); syscall(SYS_futex, (unsigned *)&generation, FUTEX_WAKE_PRIVATE, 1000, nullptr, nullptr, 0); for (auto &t : threads) t.join(); }
};

static const size_t RING = 16 << 20;
static char *ring; static CUdeviceptr dev; static CUstream st; static CUevent evs[512]; static volatile unsigned *flags; static CUdeviceptr dflags;
static unsigned stamp = 0;
static Team *team;
struct Way { std::string name; std::function<void(char *, size_t)> run; };

static void up_driver(char *h, size_t n) { CK(cuMemcpyHtoDAsync(dev, h, n, st)); CK(cuStreamSynchronize(st)); }
static void up_alone(char *h, size_t n, size_t piece, Copy how) {
    for (size_t at = 0; at < n; at += piece) {
        size_t len = std::min(piece, n - at);
        copy(how, ring + at, h + at, len);
        CK(cuMemcpyHtoDAsync(dev + at, ring + at, len, st));
    }
    CK(cuStreamSynchronize(st));
}
static void up_team(char *h, size_t n, size_t piece, Copy how, int helpers) {
    int pieces = (int)((n + piece - 1) / piece);
    std::atomic<int> done[256]; for (int i = 0; i < pieces; i++) done[i].store(0, std::memory_order_relaxed);
    team->start(pieces, helpers, [&](int i) { size_t at = i * piece; copy(how, ring + at, h + at, std::min(piece, n - at)); done[i].store(1, std::memory_order_release); });
    int sent = 0; int i;
    auto send = [&] { while (sent < pieces && done[sent].load(std::memory_order_acquire)) { size_t at = sent * piece; CK(cuMemcpyHtoDAsync(dev + at, ring + at, std::min(piece, n - at), st)); sent++; } };
    while ((i = team->next.fetch_add(1)) < pieces) { team->job(i); send(); }
    while (sent < pieces) send();
    CK(cuStreamSynchronize(st));
    while (team->running.load() > 0 && team->spin) _mm_pause();
}
static void down_driver(char *h, size_t n) { CK(cuMemcpyDtoHAsync(h, dev, n, st)); CK(cuStreamSynchronize(st)); }
enum Wait { EVENT, FLAG, SYNC };
static void down_submit(size_t n, size_t piece, Wait wait) {
    int k = 0; stamp++;
    for (size_t at = 0; at < n; at += piece, k++) {
        CK(cuMemcpyDtoHAsync(ring + at, dev + at, std::min(piece, n - at), st));
        if (wait == EVENT) CK(cuEventRecord(evs[k], st));
        else if (wait == FLAG) CK(cuStreamWriteValue32(st, dflags + 64 * k, stamp, 0));
    }
}
static inline void down_wait(int k, Wait wait) {
    if (wait == EVENT) { CUresult r; while ((r = cuEventQuery(evs[k])) == CUDA_ERROR_NOT_READY) _mm_pause(); CK(r); }
    else while (flags[16 * k] != stamp) _mm_pause();
}
static void down_alone(char *h, size_t n, size_t piece, Copy how, Wait wait) {
    down_submit(n, piece, wait);
    if (wait == SYNC) CK(cuStreamSynchronize(st));
    int k = 0;
    for (size_t at = 0; at < n; at += piece, k++) { if (wait != SYNC) down_wait(k, wait); copy(how, h + at, ring + at, std::min(piece, n - at)); }
}
static void down_team(char *h, size_t n, size_t piece, Copy how, int helpers) {
    int pieces = (int)((n + piece - 1) / piece);
    down_submit(n, piece, FLAG);
    std::atomic<int> left{pieces};
    team->start(pieces, helpers, [&](int i) { down_wait(i, FLAG); size_t at = i * piece; copy(how, h + at, ring + at, std::min(piece, n - at)); left.fetch_sub(1, std::memory_order_release); });
    team->work();
    while (left.load(std::memory_order_acquire) > 0) _mm_pause();
    while (team->running.load() > 0 && team->spin) _mm_pause();
}

int main(int argc, char **argv) {
    int pairs = argc > 1 ? atoi(argv[1]) : 200;
    CK(cuInit(0)); CUdevice d; CK(cuDeviceGet(&d, 0)); CUcontext c; CK(cuDevicePrimaryCtxRetain(&c, d)); CK(cuCtxSetCurrent(c));
    CK(cuStreamCreate(&st, CU_STREAM_NON_BLOCKING));
    CK(cuMemHostAlloc((void **)&ring, RING, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)); memset(ring, 1, RING);
    void *f; CK(cuMemHostAlloc(&f, 1 << 16, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)); memset(f, 0, 1 << 16); flags = (volatile unsigned *)f; CK(cuMemHostGetDevicePointer(&dflags, f, 0));
    CK(cuMemAlloc(&dev, RING)); for (auto &e : evs) CK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    size_t big = 3ull << 30;
    char *mem = (char *)mmap(nullptr, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mem, 3, big);
    team = new Team(3);
    const size_t K = 1024;
    std::vector<Way> up = {{"driver", up_driver}};
    for (size_t p : {64 * K, 128 * K, 256 * K, 8192 * K}) for (Copy h : {PLAIN, NT, LIBC}) up.push_back({"alone " + std::to_string(p / K) + (h == PLAIN ? " plain" : h == NT ? " nt" : " libc"), [=](char *m, size_t n) { up_alone(m, n, p, h); }});
    for (size_t p : {64 * K, 128 * K}) for (int t : {1, 2, 3}) up.push_back({"team" + std::to_string(t) + " " + std::to_string(p / K) + " plain", [=](char *m, size_t n) { up_team(m, n, p, PLAIN, t); }});
    std::vector<Way> down = {{"driver", down_driver}};
    for (size_t p : {64 * K, 128 * K, 256 * K}) for (Copy h : {PLAIN, NT, LIBC}) for (Wait w : {EVENT, FLAG}) down.push_back({"alone " + std::to_string(p / K) + (h == PLAIN ? " plain" : h == NT ? " nt" : " libc") + (w == EVENT ? " event" : " flag"), [=](char *m, size_t n) { down_alone(m, n, p, h, w); }});
    down.push_back({"alone whole plain sync", [=](char *m, size_t n) { down_alone(m, n, n, PLAIN, SYNC); }});
    down.push_back({"alone whole plain flag", [=](char *m, size_t n) { down_alone(m, n, n, PLAIN, FLAG); }});
    for (size_t p : {64 * K, 128 * K}) for (int t : {1, 2, 3}) for (Copy h : {PLAIN, NT}) down.push_back({"team" + std::to_string(t) + " " + std::to_string(p / K) + (h == PLAIN ? " plain" : " nt"), [=](char *m, size_t n) { down_team(m, n, p, h, t); }});
    size_t at = 0;
    struct Pattern { const char *name; bool walk; int gap_us; bool spin; int pairs; };
    for (Pattern pat : {Pattern{"hot", false, 0, true, pairs}, {"walking", true, 0, true, pairs}, {"walking-1ms", true, 1000, true, pairs / 2}, {"walking-1ms-futex", true, 1000, false, pairs / 2}, {"walking-futex", true, 0, false, pairs}}) {
        team->spin = pat.spin;
        for (size_t n : {64 * K, 256 * K, 512 * K, 1024 * K, 2048 * K, 4096 * K, 8192 * K}) for (int dir = 0; dir < 2; dir++) {
            auto &ways = dir ? down : up;
            std::vector<std::vector<double>> t(ways.size());
            if (pat.gap_us && n != 256 * K && n != 1024 * K && n != 2048 * K) continue;
            for (int r = 0; r < pat.pairs; r++) for (size_t w = 0; w < ways.size(); w++) {
                bool is_team = ways[w].name[0] == 't';
                if (!pat.spin && !is_team && w) continue;
                if (pat.walk) { at += 8192 * K + 4096 * 64; if (at + 8192 * K > big) at = (at * 7) % (64 << 12) / 4096 * 4096; }
                if (pat.gap_us) usleep(pat.gap_us);
                auto a = Clock::now(); ways[w].run(mem + at, n); auto b = Clock::now();
                t[w].push_back(us(a, b));
            }
            std::vector<std::pair<double, size_t>> m;
            double base = 0;
            for (size_t w = 0; w < ways.size(); w++) if (!t[w].empty()) { std::sort(t[w].begin(), t[w].end()); double x = t[w][t[w].size() / 2]; if (!w) base = x; m.push_back({x, w}); }
            std::sort(m.begin(), m.end());
            printf("%s %s %zu KiB: driver %.1f |", pat.name, dir ? "down" : "up", n / K, base);
            for (size_t i = 0; i < std::min<size_t>(m.size(), 8); i++) printf(" %s %.1f (%.2f);", ways[m[i].second].name.c_str(), m[i].first, base / m[i].first);
            // the best alone
            for (auto &x : m) if (ways[x.second].name[0] == 'a') { printf(" || best alone: %s %.1f (%.2f)", ways[x.second].name.c_str(), x.first, base / x.first); break; }
            printf("\n"); fflush(stdout);
        }
    }
    team->finish();
}
