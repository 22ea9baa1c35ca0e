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

template <int R>
__attribute__((noinline)) void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *starts, int32_t *sums) {
    // Two sums a row hide the instruction's latency.
    __m512i even[R], odd[R];
    for (int r = 0; r < R; r++) even[r] = _mm512_loadu_si512(starts), odd[r] = _mm512_setzero_si512();
    int g = 0;
    for (; g + 2 <= groups; g += 2, w += 128) {
        // Few rows wait for their weights, which come from far away.
        if (R <= 2) _mm_prefetch((const char *)w + 2048, _MM_HINT_T0), _mm_prefetch((const char *)w + 2112, _MM_HINT_T0);
        const __m512i first = _mm512_loadu_si512(w), second = _mm512_loadu_si512(w + 64);
        for (int r = 0; r < R; r++) {
            const int32_t *a = (const int32_t *)(x + r * stride) + g;
            even[r] = _mm512_dpbusd_epi32(even[r], _mm512_set1_epi32(a[0]), first);
            odd[r] = _mm512_dpbusd_epi32(odd[r], _mm512_set1_epi32(a[1]), second);
        }
    }
    if (g < groups) {
        const __m512i last = _mm512_loadu_si512(w);
        for (int r = 0; r < R; r++) even[r] = _mm512_dpbusd_epi32(even[r], _mm512_set1_epi32(((const int32_t *)(x + r * stride))[g]), last);
    }
    for (int r = 0; r < R; r++) _mm512_storeu_si512(sums + r * 16, _mm512_add_epi32(even[r], odd[r]));
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
