// AVX-512 with VNNI (Intel since 2019, AMD since Zen 4).
// Its product takes one unsigned factor, so inputs are shifted by 64, and 64 × the column's sum
// is subtracted.
#include "kernels.h"
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__AVX512VNNI__)
#define HEED_AVX512
#define HEED_ISA heed_avx512
#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "avx512";

using Ints = __m512i;
inline Ints all_ints(int32_t x) { return _mm512_set1_epi32(x); }
inline Ints load_ints(const void *p) { return _mm512_loadu_si512(p); }
inline void store_ints(void *p, Ints a) { _mm512_storeu_si512(p, a); }
inline Ints sum_ints(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints dot(Ints sums, Ints a, Ints b) { return _mm512_dpbusd_epi32(sums, a, b); }

}  // namespace HEED_ISA

#include "vnni.inc"
#include "kernels.inc"

const heed::Kernels *heed::avx512_kernels() {
    const bool is_here = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    return is_here ? &HEED_ISA::kernels : nullptr;
}
#else
const heed::Kernels *heed::avx512_kernels() { return nullptr; }
#endif
