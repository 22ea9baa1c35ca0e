// The AVX-512 instructions that engine/ uses, number by number as Intel's manual has them, so that
// avx512.cpp can be tested on machines that lack them. Put before every file by -include.
#pragma once
#include <immintrin.h>
#include <cmath>
#include <cstdint>
#include <cstring>

#define __AVX512F__ 1
#define __AVX512VNNI__ 1
// Only of AVX-512 it is said; a macro is not expanded within itself.
#define __builtin_cpu_supports(name) (!__builtin_strncmp(name, "avx512", 6) || __builtin_cpu_supports(name))

namespace in_words {

template <class To, class From>
To as(const From &from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

struct Floats { float v[16]; };
struct Ints { int32_t v[16]; };

template <class F>
__m512 floats(F f) {
    Floats r;
    for (int i = 0; i < 16; i++) r.v[i] = f(i);
    return as<__m512>(r);
}
template <class F>
__m512i ints(F f) {
    Ints r;
    for (int i = 0; i < 16; i++) r.v[i] = f(i);
    return as<__m512i>(r);
}
inline float at(const __m512 &x, int i) { return as<Floats>(x).v[i]; }
inline int32_t at(const __m512i &x, int i) { return as<Ints>(x).v[i]; }
inline int32_t wrapped(int64_t x) { return int32_t(uint32_t(uint64_t(x))); }

inline __m512 loadu_ps(const void *p) { return floats([&](int i) { float x; std::memcpy(&x, (const char *)p + 4 * i, 4); return x; }); }
inline __m512 maskz_loadu_ps(unsigned mask, const float *p) { return floats([&](int i) { return mask >> i & 1 ? p[i] : 0.0f; }); }
inline void storeu_ps(void *p, __m512 x) { std::memcpy(p, &x, sizeof x); }
inline void mask_storeu_ps(float *p, unsigned mask, __m512 x) {
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) p[i] = at(x, i);
}
inline __m512i loadu_si512(const void *p) { return ints([&](int i) { int32_t x; std::memcpy(&x, (const char *)p + 4 * i, 4); return x; }); }
inline void storeu_si512(void *p, __m512i x) { std::memcpy(p, &x, sizeof x); }
inline __m512 set1_ps(float x) { return floats([&](int) { return x; }); }
inline __m512i set1_epi32(int32_t x) { return ints([&](int) { return x; }); }

inline __m512 add_ps(__m512 a, __m512 b) { return floats([&](int i) { return at(a, i) + at(b, i); }); }
inline __m512 sub_ps(__m512 a, __m512 b) { return floats([&](int i) { return at(a, i) - at(b, i); }); }
inline __m512 mul_ps(__m512 a, __m512 b) { return floats([&](int i) { return at(a, i) * at(b, i); }); }
inline __m512 div_ps(__m512 a, __m512 b) { return floats([&](int i) { return at(a, i) / at(b, i); }); }
inline __m512 max_ps(__m512 a, __m512 b) { return floats([&](int i) { return at(a, i) > at(b, i) ? at(a, i) : at(b, i); }); }
inline __m512 min_ps(__m512 a, __m512 b) { return floats([&](int i) { return at(a, i) < at(b, i) ? at(a, i) : at(b, i); }); }
inline __m512 abs_ps(__m512 a) { return floats([&](int i) { return std::fabs(at(a, i)); }); }
inline __m512 fmadd_ps(__m512 a, __m512 b, __m512 c) { return floats([&](int i) { return std::fma(at(a, i), at(b, i), at(c, i)); }); }
inline __m512 maskz_mov_ps(unsigned mask, __m512 a) { return floats([&](int i) { return mask >> i & 1 ? at(a, i) : 0.0f; }); }
// The one comparison that is used: ordered, greater.
inline unsigned cmp_ps_mask(__m512 a, __m512 b, int) {
    unsigned mask = 0;
    for (int i = 0; i < 16; i++) mask |= unsigned(at(a, i) > at(b, i)) << i;
    return mask;
}
inline __m256 extractf32x8_ps(__m512 a, int half) {
    __m256 r;
    std::memcpy(&r, (const char *)&a + 32 * half, sizeof r);
    return r;
}
inline __m256 castps512_ps256(__m512 a) { return extractf32x8_ps(a, 0); }

// Number i of quarter i / 4: of each quarter the first or second half of both, in turn.
inline __m512 unpack_ps(__m512 a, __m512 b, int half) {
    return floats([&](int i) { return at(i % 2 ? b : a, i / 4 * 4 + 2 * half + i % 4 / 2); });
}
inline __m512 unpacklo_ps(__m512 a, __m512 b) { return unpack_ps(a, b, 0); }
inline __m512 unpackhi_ps(__m512 a, __m512 b) { return unpack_ps(a, b, 1); }
inline __m512 castpd_ps(__m512d a) { return as<__m512>(a); }
inline __m512d castps_pd(__m512 a) { return as<__m512d>(a); }
inline __m512d unpack_pd(__m512d a, __m512d b, int half) {
    return castps_pd(floats([&](int i) { return at(castpd_ps(i % 4 / 2 ? b : a), i / 4 * 4 + 2 * half + i % 2); }));
}
inline __m512d unpacklo_pd(__m512d a, __m512d b) { return unpack_pd(a, b, 0); }
inline __m512d unpackhi_pd(__m512d a, __m512d b) { return unpack_pd(a, b, 1); }
inline __m512 shuffle_f32x4(__m512 a, __m512 b, int quarters) {
    return floats([&](int i) { return at(i < 8 ? a : b, (quarters >> (i / 4 * 2) & 3) * 4 + i % 4); });
}
inline __m512 setzero_ps() { return floats([](int) { return 0.0f; }); }

inline __m512i castps_si512(__m512 a) { return as<__m512i>(a); }
inline __m512 castsi512_ps(__m512i a) { return as<__m512>(a); }
inline __m512i add_epi32(__m512i a, __m512i b) { return ints([&](int i) { return wrapped(int64_t(at(a, i)) + at(b, i)); }); }
inline __m512i and_si512(__m512i a, __m512i b) { return ints([&](int i) { return at(a, i) & at(b, i); }); }
inline __m512i or_si512(__m512i a, __m512i b) { return ints([&](int i) { return at(a, i) | at(b, i); }); }
inline __m512i max_epi32(__m512i a, __m512i b) { return ints([&](int i) { return at(a, i) > at(b, i) ? at(a, i) : at(b, i); }); }
inline __m512i slli_epi32(__m512i a, unsigned n) { return ints([&](int i) { return int32_t(uint32_t(at(a, i)) << n); }); }
inline __m512i srli_epi32(__m512i a, unsigned n) { return ints([&](int i) { return int32_t(uint32_t(at(a, i)) >> n); }); }
// What fits no integer becomes the smallest.
inline __m512i cvtps_epi32(__m512 a) {
    return ints([&](int i) {
        const float x = std::nearbyint(at(a, i));
        return x >= -2147483648.0f && x < 2147483648.0f ? int32_t(x) : INT32_MIN;
    });
}
inline __m512 cvtepi32_ps(__m512i a) { return floats([&](int i) { return float(at(a, i)); }); }
// Cut to the lowest byte.
inline __m128i cvtepi32_epi8(__m512i a) {
    uint8_t r[16];
    for (int i = 0; i < 16; i++) r[i] = uint8_t(at(a, i));
    return as<__m128i>(r);
}
// Four unsigned bytes times four signed ones, added to the sum.
inline __m512i dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
    return ints([&](int i) {
        int64_t total = at(sum, i);
        for (int j = 0; j < 32; j += 8) total += int64_t(uint8_t(uint32_t(at(a, i)) >> j)) * int8_t(uint32_t(at(b, i)) >> j);
        return wrapped(total);
    });
}

}  // namespace in_words

#define _mm512_abs_ps in_words::abs_ps
#define _mm512_add_epi32 in_words::add_epi32
#define _mm512_add_ps in_words::add_ps
#define _mm512_and_si512 in_words::and_si512
#define _mm512_castpd_ps in_words::castpd_ps
#define _mm512_castps_pd in_words::castps_pd
#define _mm512_castps512_ps256 in_words::castps512_ps256
#define _mm512_castps_si512 in_words::castps_si512
#define _mm512_castsi512_ps in_words::castsi512_ps
#define _mm512_cmp_ps_mask in_words::cmp_ps_mask
#define _mm512_cvtepi32_epi8 in_words::cvtepi32_epi8
#define _mm512_cvtepi32_ps in_words::cvtepi32_ps
#define _mm512_cvtps_epi32 in_words::cvtps_epi32
#define _mm512_div_ps in_words::div_ps
#define _mm512_dpbusd_epi32 in_words::dpbusd_epi32
#define _mm512_extractf32x8_ps in_words::extractf32x8_ps
#define _mm512_fmadd_ps in_words::fmadd_ps
#define _mm512_loadu_ps in_words::loadu_ps
#define _mm512_loadu_si512 in_words::loadu_si512
#define _mm512_mask_storeu_ps in_words::mask_storeu_ps
#define _mm512_maskz_loadu_ps in_words::maskz_loadu_ps
#define _mm512_maskz_mov_ps in_words::maskz_mov_ps
#define _mm512_max_epi32 in_words::max_epi32
#define _mm512_max_ps in_words::max_ps
#define _mm512_min_ps in_words::min_ps
#define _mm512_mul_ps in_words::mul_ps
#define _mm512_or_si512 in_words::or_si512
#define _mm512_set1_epi32 in_words::set1_epi32
#define _mm512_set1_ps in_words::set1_ps
#define _mm512_setzero_ps in_words::setzero_ps
#define _mm512_shuffle_f32x4 in_words::shuffle_f32x4
#define _mm512_slli_epi32 in_words::slli_epi32
#define _mm512_srli_epi32 in_words::srli_epi32
#define _mm512_storeu_ps in_words::storeu_ps
#define _mm512_storeu_si512 in_words::storeu_si512
#define _mm512_sub_ps in_words::sub_ps
#define _mm512_unpackhi_pd in_words::unpackhi_pd
#define _mm512_unpackhi_ps in_words::unpackhi_ps
#define _mm512_unpacklo_pd in_words::unpacklo_pd
#define _mm512_unpacklo_ps in_words::unpacklo_ps
