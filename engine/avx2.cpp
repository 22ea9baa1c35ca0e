// AVX2 (2013 and later). There is no exact product of bytes: 16 × 16 bit multiply-adds do it, two
// for each of the 8-bit instruction's, without its saturation.
#include "kernels.h"
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__)
#define HEED_AVX2
#define HEED_ISA heed_avx2
#include "lanes.h"

// Sums kept in an array stay in registers only if the loops over it are gone.
#define HEED_UNROLL _Pragma("GCC unroll 8")

namespace HEED_ISA {

constexpr const char *kName = "avx2";
constexpr bool kNeedsSums = false;
constexpr int kMostRows = 6;

// 16-bit numbers; the odd stride keeps rows out of one another's cache sets.
size_t quantized_stride(int k) { return size_t(k + 15) / 16 * 32 + 64; }

void store_ints(void *q, const float *x, int n, Lanes scale) {
    for (int i = 0; i < n; i += 16) {
        const Lanes v = load(x + i) * scale;
        const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
        _mm256_storeu_si256((__m256i *)((int16_t *)q + i), _mm256_permute4x64_epi64(pairs, 0xd8));
    }
}

inline const int32_t *with_offset(int32_t *sums, const int32_t *, int) { return sums; }

// In place: left to itself, GCC moves sums from register to register and runs out of them.
inline void accumulate(__m256i &sum, __m256i columns, __m256i inputs) {
    const __m256i products = _mm256_madd_epi16(columns, inputs);
    asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products));
}

// Each 64-bit quarter of a register is one column: its two halves sum inputs 0, 1 and 2, 3.
template <int R, int Quarters>
inline void multiply_columns(const char *x, size_t stride, const int8_t *w, int groups, int32_t *sums) {
    __m256i c[R][Quarters];
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < Quarters; j++) c[r][j] = _mm256_setzero_si256();
    for (int g = 0; g < groups; g++, w += 64) {
        // Few rows wait for their weights, which come from far away.
        if (R <= 2) _mm_prefetch((const char *)w + 2048, _MM_HINT_T0);
        __m256i columns[Quarters];
        HEED_UNROLL
        for (int j = 0; j < Quarters; j++) columns[j] = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 16 * j)));
        HEED_UNROLL
        for (int r = 0; r < R; r++) {
            const __m256i a = _mm256_set1_epi64x(*(const int64_t *)(x + r * stride + g * 8));
            HEED_UNROLL
            for (int j = 0; j < Quarters; j++) accumulate(c[r][j], columns[j], a);
        }
    }
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < Quarters; j += 2) {
            const __m256i halves = _mm256_hadd_epi32(c[r][j], c[r][j + 1]);
            _mm256_storeu_si256((__m256i *)(sums + r * 16 + j * 4), _mm256_permute4x64_epi64(halves, 0xd8));
        }
}

template <int R>
__attribute__((noinline)) void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, int32_t *sums) {
    if constexpr (R <= 2) {
        multiply_columns<R, 4>(x, stride, w, groups, sums);
    } else {
        multiply_columns<R, 2>(x, stride, w, groups, sums);
        multiply_columns<R, 2>(x, stride, w + 32, groups, sums + 8);
    }
}

}  // namespace HEED_ISA

#include "kernels.inc"

const heed::Kernels *heed::avx2_kernels() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &HEED_ISA::kernels : nullptr;
}
#else
const heed::Kernels *heed::avx2_kernels() { return nullptr; }
#endif
