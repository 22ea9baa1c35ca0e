// AVX2 (2013 and later). Its instruction adds two products of bytes in 16 bits; with numbers up to ±63 two
// of these sums can be added before they are widened. One factor is unsigned, so inputs are shifted by 64.
#include "kernels.h"
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__)
#define HEED_AVX2
#define HEED_ISA heed_avx2
#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "avx2";
constexpr int kMostRows = 6;

inline __m256i broadcast(const char *x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
}

// Eight columns by four inputs a register.
template <int R, int Halves, int Ahead>
inline void multiply_columns(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *starts, int32_t *sums, int width, const char *ahead) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i c[R][Halves];
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < Halves; j++) c[r][j] = _mm256_loadu_si256((const __m256i *)(starts + 8 * j));
    int g = 0;
    for (; g + 2 <= groups; g += 2, w += 128) {
        if (Ahead) _mm_prefetch(ahead + g * 64, _MM_HINT_T0), _mm_prefetch(ahead + g * 64 + 64, _MM_HINT_T0);
        HEED_UNROLL
        for (int j = 0; j < Halves; j++) {
            const __m256i first = _mm256_loadu_si256((const __m256i *)(w + 32 * j)), second = _mm256_loadu_si256((const __m256i *)(w + 64 + 32 * j));
            HEED_UNROLL
            for (int r = 0; r < R; r++) {
                const char *a = x + r * stride + g * 4;
                const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(broadcast(a), first), _mm256_maddubs_epi16(broadcast(a + 4), second));
                c[r][j] = _mm256_add_epi32(c[r][j], _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    if (g < groups)
        HEED_UNROLL
        for (int j = 0; j < Halves; j++) {
            const __m256i last = _mm256_loadu_si256((const __m256i *)(w + 32 * j));
            HEED_UNROLL
            for (int r = 0; r < R; r++) {
                const __m256i pairs = _mm256_maddubs_epi16(broadcast(x + r * stride + g * 4), last);
                c[r][j] = _mm256_add_epi32(c[r][j], _mm256_madd_epi16(pairs, ones));
            }
        }
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < Halves; j++) _mm256_storeu_si256((__m256i *)(sums + r * width + j * 8), c[r][j]);
}

// The sums of several rows fill the registers; those of a single row would wait for each other.
constexpr int panels_at_once(int rows) { return rows == 1 ? 4 : 1; }

template <int R, int P, int Ahead>
__attribute__((noinline)) void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *starts, int32_t *sums, const char *ahead) {
    for (int p = 0; p < P; p++, w += groups * size_t(64), starts += 16, sums += 16) {
        const char *next = p + 1 < P ? (const char *)w + groups * size_t(64) : ahead;
        if constexpr (R <= 2) {
            multiply_columns<R, 2, Ahead>(x, stride, w, groups, starts, sums, P * 16, next);
        } else {
            multiply_columns<R, 1, Ahead>(x, stride, w, groups, starts, sums, P * 16, next);
            multiply_columns<R, 1, 0>(x, stride, w + 32, groups, starts + 8, sums + 8, P * 16, next);
        }
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
