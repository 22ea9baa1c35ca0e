// What one core can do at most: multiply-adds a second in its registers, and bytes a second that it
// reads over and over from sets of the sizes given. Prints JSON. Compiled and run by machine.py.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

// Twelve sums hide the latency of an instruction. Their registers are named: compilers spill arrays.
#define TWELVE(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#define SUMS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14"
#define CLEAR(n) "vpxor %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n"

#if defined(__AVX512VNNI__)
using Ints = __m512i;
#define FUSED(n) "vfmadd231ps %%zmm0, %%zmm0, %%zmm" #n "\n"
#define BYTES(n) "vpdpbusd %%zmm0, %%zmm0, %%zmm" #n "\n"
#elif defined(__AVX2__) && defined(__FMA__)
using Ints = __m256i;
#define FUSED(n) "vfmadd231ps %%ymm0, %%ymm0, %%ymm" #n "\n"
// Without an instruction for it, bytes are multiplied in pairs and widened twice …
#define BYTES(n) "vpmaddubsw %%ymm0, %%ymm0, %%ymm13\n vpmaddwd %%ymm0, %%ymm13, %%ymm13\n vpaddd %%ymm13, %%ymm" #n ", %%ymm" #n "\n"
// … or numbers up to ±63 once for two products …
#define SEVENS(n) "vpmaddubsw %%ymm0, %%ymm0, %%ymm13\n vpmaddubsw %%ymm0, %%ymm0, %%ymm14\n vpaddw %%ymm13, %%ymm14, %%ymm13\n vpmaddwd %%ymm0, %%ymm13, %%ymm13\n vpaddd %%ymm13, %%ymm" #n ", %%ymm" #n "\n"
// … or widened beforehand.
#define WORDS(n) "vpmaddwd %%ymm0, %%ymm0, %%ymm13\n vpaddd %%ymm13, %%ymm" #n ", %%ymm" #n "\n"
#else
#error "there are kernels for AVX2 and for AVX-512 VNNI only"
#endif

double seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

template <class F>
double shortest(int times, const F &f) {
    double best = 1e9;
    for (int i = 0; i < times; i++) {
        const double start = seconds();
        f();
        best = std::min(best, seconds() - start);
    }
    return best;
}

// Billions of multiply-adds a second, of twelve instructions with so many each.
#define RATE(kind, macs) rate(macs, [] { \
    asm volatile(CLEAR(0) TWELVE(CLEAR) : : : SUMS); \
    for (int i = 0; i < kSteps; i++) asm volatile(TWELVE(kind) : : : SUMS); \
})
constexpr int kSteps = 1 << 20;

template <class F>
double rate(size_t macs, const F &f) { return 12.0 * kSteps * macs / shortest(30, f) / 1e9; }

// Billions of bytes a second.
double reading(const char *data, size_t bytes) {
    constexpr size_t kStride = 4 * sizeof(Ints), kAhead = 2048;
    const size_t passes = std::max<size_t>(1, (size_t(128) << 20) / bytes), end = bytes / kStride * kStride;
    Ints sums[4] = {};
    const double best = shortest(bytes < size_t(1) << 28 ? 15 : 5, [&] {
        for (size_t pass = 0; pass < passes; pass++)
            for (size_t i = 0; i < end; i += kStride) {
                for (size_t line = 0; line < kStride; line += 64) _mm_prefetch(data + i + kAhead + line, _MM_HINT_T0);
                for (int j = 0; j < 4; j++) sums[j] ^= *(const Ints *)(data + i + j * sizeof(Ints));
            }
    });
    for (Ints &sum : sums) asm volatile("" : : "v"(sum));
    return double(passes) * end / best / 1e9;
}

int main(int count, char **sizes) {
    size_t most = 0;
    for (int i = 1; i < count; i++) most = std::max<size_t>(most, std::strtoull(sizes[i], nullptr, 10));
    char *data = (char *)std::aligned_alloc(4096, (most + 8191) / 4096 * 4096);
    if (!data) return 1;
    std::memset(data, 1, most);
    double int8 = RATE(BYTES, sizeof(Ints));
#if defined(WORDS)
    int8 = std::max({int8, RATE(SEVENS, sizeof(Ints) * 2), RATE(WORDS, sizeof(Ints) / 2)});
#endif
    std::printf("{\"int8_gmacs\": %.2f, \"float32_gmacs\": %.2f, \"read_gbs\": {", int8, RATE(FUSED, sizeof(Ints) / 4));
    for (int i = 1; i < count; i++) std::printf("%s\"%s\": %.2f", i > 1 ? ", " : "", sizes[i], reading(data, std::strtoull(sizes[i], nullptr, 10)));
    std::printf("}}\n");
}
