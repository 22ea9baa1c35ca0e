// AVX2 with VNNI (Intel's small processors since 2021, which have no AVX-512): as avx512.cpp, in
// registers half as wide.
#include "kernels.h"
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__) && defined(__AVXVNNI__)
#define HEED_AVX2
#define HEED_ISA heed_avxvnni
#include <cpuid.h>

#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "avxvnni";

using Ints = __m256i;
inline Ints all_ints(int32_t x) { return _mm256_set1_epi32(x); }
inline Ints load_ints(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
inline void store_ints(void *p, Ints a) { _mm256_storeu_si256((__m256i *)p, a); }
inline Ints sum_ints(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints dot(Ints sums, Ints a, Ints b) { return _mm256_dpbusd_avx_epi32(sums, a, b); }

}  // namespace HEED_ISA

#include "vnni.inc"
#include "kernels.inc"

const heed::Kernels *heed::avxvnni_kernels() {
    // Not all compilers that support the instructions know their name here.
    unsigned a = 0, b, c, d;
    const bool has_vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    return has_vnni && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &HEED_ISA::kernels : nullptr;
}
#else
const heed::Kernels *heed::avxvnni_kernels() { return nullptr; }
#endif
