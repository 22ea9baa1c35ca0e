// Sixteen floats, with the same results on every instruction set.
//
// No function here fuses a multiplication with an addition, and every sum has one order, so that
// AVX-512, AVX2, NEON, plain C++ and NumPy (heed/engine/fallback.py) agree to the last bit. The one
// exception is `fused`, for products of float32 matrices: there all except NumPy agree.
// `larger` and `smaller` give their second number if one is NaN, so that a bound comes first.
// `larger_or_nan` takes magnitudes, whose bits have the order of integers, NaN last.
// `above` has a bit for each lane that is larger; `first` keeps n lanes and clears the others;
// `raised` adds the last eight bits of one number to the exponent of another; `in_halves` rounds two
// rows to bfloat16, half to even, one into the lower halves of words and one into the upper, from where
// `low_half` and `high_half` take them; `store_bytes` rounds, up to ±63, and adds kShift, for products
// of bytes that take one factor without sign.
// Each instruction set includes this file in a namespace of its own; see kernels.inc.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels.h"

#if defined(HEED_AVX512) || defined(HEED_AVX2)
#include <immintrin.h>
#elif defined(HEED_NEON)
#include <arm_neon.h>
#endif

// Sums kept in an array stay in registers only if the loops over it are gone.
#define HEED_UNROLL _Pragma("GCC unroll 8")

namespace HEED_ISA {

#if defined(HEED_AVX512)

struct Lanes {
    __m512 v;
};
inline Lanes all(float x) { return {_mm512_set1_ps(x)}; }
inline Lanes load(const float *p) { return {_mm512_loadu_ps(p)}; }
inline Lanes load(const float *p, int n) { return {_mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), p)}; }
inline void store(float *p, Lanes a) { _mm512_storeu_ps(p, a.v); }
inline void store(float *p, Lanes a, int n) { _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), a.v); }
inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Lanes larger(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Lanes smaller(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Lanes magnitude(Lanes a) { return {_mm512_abs_ps(a.v)}; }
inline Lanes larger_or_nan(Lanes a, Lanes b) { return {_mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v)))}; }
inline unsigned above(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
inline Lanes with_sign(Lanes a, Lanes sign) {
    const __m512i bit = _mm512_set1_epi32(INT32_MIN);
    return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(a.v), _mm512_and_si512(_mm512_castps_si512(sign.v), bit)))};
}
inline Lanes first(Lanes a, int n) { return {_mm512_maskz_mov_ps(__mmask16((1u << n) - 1), a.v)}; }
inline Lanes raised(Lanes a, Lanes by) {
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), _mm512_slli_epi32(_mm512_castps_si512(by.v), 23)))};
}
inline Lanes low_half(Lanes a) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a.v), 16))}; }
inline Lanes high_half(Lanes a) {
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(int32_t(0xffff0000))))};
}
inline __m512i rounded_half(Lanes a) {
    const __m512i bits = _mm512_castps_si512(a.v), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
}
inline Lanes in_halves(Lanes low, Lanes high) {
    const __m512i upper = _mm512_and_si512(rounded_half(high), _mm512_set1_epi32(int32_t(0xffff0000)));
    return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_srli_epi32(rounded_half(low), 16), upper))};
}
inline Lanes fused(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Lanes from_int(const int32_t *p) { return {_mm512_cvtepi32_ps(_mm512_loadu_si512(p))}; }
constexpr int kShift = 64;
inline void store_bytes(void *p, Lanes a) {
    const __m512i v = _mm512_add_epi32(_mm512_cvtps_epi32(a.v), _mm512_set1_epi32(kShift));
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}
inline __m256 fold(Lanes a) { return _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)); }
inline __m256 fold_max(Lanes a) { return _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)); }

#elif defined(HEED_AVX2)

struct Lanes {
    __m256 a, b;
};
inline Lanes all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes load(const float *p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float *p, Lanes x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
inline Lanes operator+(Lanes x, Lanes y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline Lanes operator-(Lanes x, Lanes y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline Lanes operator*(Lanes x, Lanes y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline Lanes operator/(Lanes x, Lanes y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline Lanes larger(Lanes x, Lanes y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline Lanes smaller(Lanes x, Lanes y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline unsigned above(Lanes x, Lanes y) {
    const unsigned low = _mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ)), high = _mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ));
    return low | high << 8;
}
inline Lanes magnitude(Lanes x) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(bit, x.a), _mm256_andnot_ps(bit, x.b)};
}
inline __m256 larger_or_nan_(__m256 x, __m256 y) { return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(x), _mm256_castps_si256(y))); }
inline Lanes larger_or_nan(Lanes x, Lanes y) { return {larger_or_nan_(x.a, y.a), larger_or_nan_(x.b, y.b)}; }
inline Lanes with_sign(Lanes x, Lanes sign) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return {_mm256_or_ps(x.a, _mm256_and_ps(sign.a, bit)), _mm256_or_ps(x.b, _mm256_and_ps(sign.b, bit))};
}
inline __m256 first_(__m256 x, int n) {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), places)));
}
inline Lanes first(Lanes x, int n) { return {first_(x.a, n), first_(x.b, n - 8)}; }
inline __m256 raised_(__m256 x, __m256 by) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_castps_si256(by), 23)));
}
inline Lanes raised(Lanes x, Lanes by) { return {raised_(x.a, by.a), raised_(x.b, by.b)}; }
inline __m256 low_half_(__m256 x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 16)); }
inline __m256 high_half_(__m256 x) { return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(int32_t(0xffff0000)))); }
inline Lanes low_half(Lanes x) { return {low_half_(x.a), low_half_(x.b)}; }
inline Lanes high_half(Lanes x) { return {high_half_(x.a), high_half_(x.b)}; }
inline __m256i rounded_half_(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}
inline __m256 in_halves_(__m256 low, __m256 high) {
    const __m256i upper = _mm256_and_si256(rounded_half_(high), _mm256_set1_epi32(int32_t(0xffff0000)));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_srli_epi32(rounded_half_(low), 16), upper));
}
inline Lanes in_halves(Lanes low, Lanes high) { return {in_halves_(low.a, high.a), in_halves_(low.b, high.b)}; }
inline Lanes fused(Lanes x, Lanes y, Lanes z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline Lanes from_int(const int32_t *p) {
    return {_mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p)), _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(p + 8)))};
}
constexpr int kShift = 64;
inline void store_bytes(void *p, Lanes x) {
    const __m256i shift = _mm256_set1_epi32(kShift);
    const __m256i a = _mm256_add_epi32(_mm256_cvtps_epi32(x.a), shift), b = _mm256_add_epi32(_mm256_cvtps_epi32(x.b), shift);
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1)));
}
inline __m256 fold(Lanes x) { return _mm256_add_ps(x.a, x.b); }
inline __m256 fold_max(Lanes x) { return _mm256_max_ps(x.a, x.b); }

#elif defined(HEED_NEON)

using Four = float32x4_t;
struct Lanes {
    Four a, b, c, d;
};
// f of each quarter.
template <class F, class... Of>
inline Lanes four(F f, Of... x) {
    return {f(x.a...), f(x.b...), f(x.c...), f(x.d...)};
}
inline int32x4_t as_ints(Four x) { return vreinterpretq_s32_f32(x); }
inline Four as_floats(int32x4_t x) { return vreinterpretq_f32_s32(x); }
inline Lanes all(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x)}; }
inline Lanes load(const float *p) { return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
inline void store(float *p, Lanes x) { vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d); }
inline Lanes operator+(Lanes x, Lanes y) { return four([](Four a, Four b) { return vaddq_f32(a, b); }, x, y); }
inline Lanes operator-(Lanes x, Lanes y) { return four([](Four a, Four b) { return vsubq_f32(a, b); }, x, y); }
inline Lanes operator*(Lanes x, Lanes y) { return four([](Four a, Four b) { return vmulq_f32(a, b); }, x, y); }
inline Lanes operator/(Lanes x, Lanes y) { return four([](Four a, Four b) { return vdivq_f32(a, b); }, x, y); }
// The instructions for maxima give NaN if either number is NaN.
inline Four larger_(Four a, Four b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline Lanes larger(Lanes x, Lanes y) { return four([](Four a, Four b) { return larger_(a, b); }, x, y); }
inline Lanes smaller(Lanes x, Lanes y) { return four([](Four a, Four b) { return vbslq_f32(vcltq_f32(a, b), a, b); }, x, y); }
inline unsigned above(Lanes x, Lanes y) {
    const uint16x8_t low = vcombine_u16(vmovn_u32(vcgtq_f32(x.a, y.a)), vmovn_u32(vcgtq_f32(x.b, y.b)));
    const uint16x8_t high = vcombine_u16(vmovn_u32(vcgtq_f32(x.c, y.c)), vmovn_u32(vcgtq_f32(x.d, y.d)));
    const uint16_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    return vaddvq_u16(vandq_u16(low, vld1q_u16(bits))) | vaddvq_u16(vandq_u16(high, vld1q_u16(bits))) << 8;
}
inline Lanes magnitude(Lanes x) { return four([](Four a) { return vabsq_f32(a); }, x); }
inline Lanes larger_or_nan(Lanes x, Lanes y) { return four([](Four a, Four b) { return as_floats(vmaxq_s32(as_ints(a), as_ints(b))); }, x, y); }
inline Lanes with_sign(Lanes x, Lanes sign) { return four([](Four a, Four s) { return vbslq_f32(vdupq_n_u32(0x80000000), s, a); }, x, sign); }
inline Lanes first(Lanes x, int n) {
    const int32_t places[4] = {0, 1, 2, 3};
    const auto kept = [&](Four a, int n) { return vbslq_f32(vcltq_s32(vld1q_s32(places), vdupq_n_s32(n)), a, vdupq_n_f32(0.0f)); };
    return {kept(x.a, n), kept(x.b, n - 4), kept(x.c, n - 8), kept(x.d, n - 12)};
}
inline Lanes raised(Lanes x, Lanes by) { return four([](Four a, Four n) { return as_floats(vaddq_s32(as_ints(a), vshlq_n_s32(as_ints(n), 23))); }, x, by); }
inline Lanes low_half(Lanes x) { return four([](Four a) { return as_floats(vshlq_n_s32(as_ints(a), 16)); }, x); }
inline int32x4_t high_bits(int32x4_t x) { return vandq_s32(x, vdupq_n_s32(int32_t(0xffff0000))); }
inline Lanes high_half(Lanes x) { return four([](Four a) { return as_floats(high_bits(as_ints(a))); }, x); }
inline int32x4_t rounded_half(Four x) {
    const int32x4_t odd = vandq_s32(vshrq_n_s32(as_ints(x), 16), vdupq_n_s32(1));
    return vaddq_s32(as_ints(x), vaddq_s32(odd, vdupq_n_s32(0x7fff)));
}
inline Lanes in_halves(Lanes low, Lanes high) {
    return four([](Four a, Four b) { return as_floats(vsriq_n_s32(high_bits(rounded_half(b)), rounded_half(a), 16)); }, low, high);
}
inline Lanes fused(Lanes x, Lanes y, Lanes z) { return four([](Four a, Four b, Four c) { return vfmaq_f32(c, a, b); }, x, y, z); }
inline Four from_four_ints(const int32_t *p) { return vcvtq_f32_s32(vld1q_s32(p)); }
inline Lanes from_int(const int32_t *p) { return {from_four_ints(p), from_four_ints(p + 4), from_four_ints(p + 8), from_four_ints(p + 12)}; }
constexpr int kShift = 0;
inline void store_bytes(void *p, Lanes x) {
    const auto halves = [](Four a, Four b) { return vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a)), vqmovn_s32(vcvtnq_s32_f32(b))); };
    vst1q_s8((int8_t *)p, vcombine_s8(vqmovn_s16(halves(x.a, x.b)), vqmovn_s16(halves(x.c, x.d))));
}

#else

struct Lanes {
    float v[16];
};
#define HEED_EACH(expression)                        \
    Lanes r;                                         \
    for (int i = 0; i < 16; i++) r.v[i] = expression; \
    return r
inline Lanes all(float x) { HEED_EACH(x); }
inline Lanes load(const float *p) { HEED_EACH(p[i]); }
inline Lanes load(const float *p, int n) { HEED_EACH(i < n ? p[i] : 0.0f); }
inline void store(float *p, const Lanes &a) { std::memcpy(p, a.v, sizeof a.v); }
inline void store(float *p, const Lanes &a, int n) { std::memcpy(p, a.v, sizeof(float) * n); }
inline Lanes operator+(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] + b.v[i]); }
inline Lanes operator-(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] - b.v[i]); }
inline Lanes operator*(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] * b.v[i]); }
inline Lanes operator/(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] / b.v[i]); }
inline Lanes larger(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
inline Lanes smaller(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
inline unsigned above(const Lanes &a, const Lanes &b) {
    unsigned mask = 0;
    for (int i = 0; i < 16; i++) mask |= unsigned(a.v[i] > b.v[i]) << i;
    return mask;
}
inline Lanes magnitude(const Lanes &a) { HEED_EACH(std::fabs(a.v[i])); }
inline Lanes larger_or_nan(const Lanes &a, const Lanes &b) { HEED_EACH(a.v[i] <= b.v[i] || b.v[i] != b.v[i] ? b.v[i] : a.v[i]); }
inline Lanes with_sign(const Lanes &a, const Lanes &sign) { HEED_EACH(std::copysign(a.v[i], sign.v[i])); }
// NaN becomes a number: casting it is undefined.
constexpr int kShift = 0;
inline void store_bytes(void *p, const Lanes &a) {
    const Lanes kept = larger(smaller(a, all(heed::kMostInt)), all(-heed::kMostInt));
    for (int i = 0; i < 16; i++) ((int8_t *)p)[i] = int8_t(std::nearbyint(kept.v[i]));
}
inline Lanes first(const Lanes &a, int n) { HEED_EACH(i < n ? a.v[i] : 0.0f); }
inline uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float from_bits(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline Lanes raised(const Lanes &a, const Lanes &by) { HEED_EACH(from_bits(bits_of(a.v[i]) + (bits_of(by.v[i]) << 23))); }
inline Lanes low_half(const Lanes &a) { HEED_EACH(from_bits(bits_of(a.v[i]) << 16)); }
inline Lanes high_half(const Lanes &a) { HEED_EACH(from_bits(bits_of(a.v[i]) & 0xffff0000u)); }
inline uint32_t rounded_half(float x) { return bits_of(x) + 0x7fff + (bits_of(x) >> 16 & 1); }
inline Lanes in_halves(const Lanes &low, const Lanes &high) {
    HEED_EACH(from_bits(rounded_half(low.v[i]) >> 16 | (rounded_half(high.v[i]) & 0xffff0000u)));
}
inline Lanes fused(const Lanes &a, const Lanes &b, const Lanes &c) { HEED_EACH(std::fma(a.v[i], b.v[i], c.v[i])); }
inline Lanes from_int(const int32_t *p) { HEED_EACH(float(p[i])); }
#undef HEED_EACH

#endif

#if defined(HEED_AVX2) || defined(HEED_NEON)  // the others need no copy
inline Lanes load(const float *p, int n) {
    alignas(64) float tail[16] = {};
    std::memcpy(tail, p, sizeof(float) * n);
    return load(tail);
}
inline void store(float *p, Lanes x, int n) {
    alignas(64) float all[16];
    store(all, x);
    std::memcpy(p, all, sizeof(float) * n);
}
#endif

// Sums of products of int8 as floats: times `factor`, plus a bias if there is one.
inline Lanes from_sums(const int32_t *sums, Lanes factor, const float *bias) {
    const Lanes value = from_int(sums) * factor;
    return bias ? value + load(bias) : value;
}

// Sum and maximum over the lanes: halves onto each other, 16 → 8 → 4 → 2 → 1.
#if defined(HEED_AVX512) || defined(HEED_AVX2)
inline __m128 quarter(Lanes x) {
    const __m256 eight = fold(x);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}
inline float sum(Lanes x) {
    const __m128 four = quarter(x);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float maximum(Lanes x) {
    const __m256 eight = fold_max(x);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
// The same of four at once.
inline void sum_four(Lanes x, Lanes y, Lanes z, Lanes w, float *sums) {
    __m128 a = quarter(x), b = quarter(y), c = quarter(z), d = quarter(w);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(sums, _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d)));
}
#elif defined(HEED_NEON)
inline Four quarter(Lanes x) { return vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d)); }
inline float sum(Lanes x) {
    const Four four = quarter(x);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float maximum(Lanes x) {
    alignas(16) float four[4];
    vst1q_f32(four, larger_(larger_(x.a, x.c), larger_(x.b, x.d)));
    const float one = four[0] > four[2] ? four[0] : four[2], other = four[1] > four[3] ? four[1] : four[3];
    return one > other ? one : other;
}
// The same of four at once.
inline void sum_four(Lanes x, Lanes y, Lanes z, Lanes w, float *sums) {
    const Four a = quarter(x), b = quarter(y), c = quarter(z), d = quarter(w);
    // Of each the first two, then the last two numbers.
    const auto halves = [](Four one, Four other) { return vaddq_f32(vcombine_f32(vget_low_f32(one), vget_low_f32(other)), vcombine_f32(vget_high_f32(one), vget_high_f32(other))); };
    vst1q_f32(sums, vpaddq_f32(halves(a, b), halves(c, d)));
}
#else
inline float sum(Lanes x) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) x.v[i] = x.v[i] + x.v[i + half];
    return x.v[0];
}
inline void sum_four(const Lanes &x, const Lanes &y, const Lanes &z, const Lanes &w, float *sums) {
    sums[0] = sum(x), sums[1] = sum(y), sums[2] = sum(z), sums[3] = sum(w);
}
inline float maximum(Lanes x) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) x.v[i] = x.v[i] > x.v[i + half] ? x.v[i] : x.v[i + half];
    return x.v[0];
}
#endif

// e^x for x up to 88, to about 2 units in the last place; 0 < e^-87 for everything below -87; NaN for NaN.
// Cody and Waite's reduction, then 1 + r + r² q(r) with the cubic q of least relative error.
inline Lanes exponential(Lanes x) {
    x = larger(all(-87.0f), x);
    // Adding a large number leaves whole numbers, whose last bits are the power of two.
    const Lanes power = x * all(1.44269504f) + all(12582912.0f), n = power - all(12582912.0f);
    const Lanes r = x - n * all(0.693359375f) - n * all(-2.12194440e-4f), square = r * r;
    const Lanes low = r * all(1.6667114e-1f) + all(4.999923e-1f), high = r * all(8.312521e-3f) + all(4.1890156e-2f);
    return raised((high * square + low) * square + (r + all(1.0f)), power);
}

// x Φ(x), with erf by Abramowitz and Stegun, 7.1.26 (error below 1.5e-7).
inline Lanes gelu(Lanes x) {
    const Lanes z = magnitude(x) * all(0.70710678f);
    const Lanes t = all(1.0f) / (all(1.0f) + all(0.3275911f) * z);
    Lanes p = all(1.061405429f);
    p = p * t + all(-1.453152027f);
    p = p * t + all(1.421413741f);
    p = p * t + all(-0.284496736f);
    p = p * t + all(0.254829592f);
    const Lanes erf = all(1.0f) - p * t * exponential(all(0.0f) - z * z);
    return all(0.5f) * x * (all(1.0f) + with_sign(erf, x));
}

// 1 + e^-x.
inline Lanes one_and_power(Lanes x) { return all(1.0f) + exponential(smaller(all(88.0f), all(0.0f) - x)); }
inline Lanes silu(Lanes x) { return x / one_and_power(x); }
inline Lanes sigmoid(Lanes x) { return all(1.0f) / one_and_power(x); }

}  // namespace HEED_ISA
