// AVX-512 with VNNI (Intel since 2019, AMD since Zen 4): four products of bytes in one instruction.
// It takes one factor without sign, so inputs are shifted by 64, and 64 × the column's sum goes off.
#include "kernels.h"
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__AVX512VNNI__)
#define HEED_AVX512
#define HEED_ISA heed_avx512
#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "avx512";
constexpr int kShift = 64;
constexpr int kMostRows = 6;

size_t quantized_stride(int k) { return size_t(k + 15) / 16 * 16 + 64; }

void store_ints(void *q, const float *x, int n, Lanes scale) {
    const __m512i shift = _mm512_set1_epi32(kShift);
    for (int i = 0; i < n; i += 16) {
        const __m512i v = _mm512_add_epi32(_mm512_cvtps_epi32((load(x + i) * scale).v), shift);
        _mm_storeu_si128((__m128i *)((uint8_t *)q + i), _mm512_cvtepi32_epi8(v));
    }
}

// Two dozen sums hide the latency of the instruction, and each input serves four panels. A single
// row waits for its weights instead, and they come soonest in one stream.
constexpr int panels_at_once(int rows) { return rows == 1 ? 1 : 4; }

template <int R, int P, bool IsFar>
__attribute__((noinline)) void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *starts, int32_t *sums) {
    constexpr int kAtOnce = P == 1 ? 4 : 1;
    __m512i c[R][P][kAtOnce];
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int p = 0; p < P; p++) {
            c[r][p][0] = _mm512_loadu_si512(starts + p * 16);
            HEED_UNROLL
            for (int i = 1; i < kAtOnce; i++) c[r][p][i] = _mm512_setzero_si512();
        }
    const auto add = [&](int g, int i) __attribute__((always_inline)) {
        const int8_t *next = w + g * size_t(64);
        __m512i columns[P];
        HEED_UNROLL
        for (int p = 0; p < P; p++, next += groups * size_t(64)) {
            if (IsFar) _mm_prefetch((const char *)next + P * groups * size_t(64), _MM_HINT_T0);
            columns[p] = _mm512_loadu_si512(next);
        }
        HEED_UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i a = _mm512_set1_epi32(((const int32_t *)(x + r * stride))[g]);
            HEED_UNROLL
            for (int p = 0; p < P; p++) c[r][p][i] = _mm512_dpbusd_epi32(c[r][p][i], a, columns[p]);
        }
    };
    int g = 0;
    for (; g + kAtOnce <= groups; g += kAtOnce)
        HEED_UNROLL
        for (int i = 0; i < kAtOnce; i++) add(g + i, i);
    for (; g < groups; g++) add(g, 0);
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int p = 0; p < P; p++) {
            HEED_UNROLL
            for (int i = 1; i < kAtOnce; i++) c[r][p][0] = _mm512_add_epi32(c[r][p][0], c[r][p][i]);
            _mm512_storeu_si512(sums + (r * P + p) * 16, c[r][p][0]);
        }
}

}  // namespace HEED_ISA

#include "kernels.inc"

const heed::Kernels *heed::avx512_kernels() {
    const bool is_here = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    return is_here ? &HEED_ISA::kernels : nullptr;
}
#else
const heed::Kernels *heed::avx512_kernels() { return nullptr; }
#endif
