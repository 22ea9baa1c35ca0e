// The NEON instructions that engine/ uses, number by number as Arm's manual has them, so that neon.cpp and
// dotprod.cpp can be tested on machines that lack them. Found in place of the compiler's header by -I.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#define getauxval(name) (1ul << 20)  // this processor has dot products

namespace in_words {

template <class T, int N>
struct Vector {
    T v[N];
};

template <class T, int N, class F>
Vector<T, N> each(F f) {
    Vector<T, N> r;
    for (int i = 0; i < N; i++) r.v[i] = T(f(i));
    return r;
}
template <class To, class From>
To as(const From &from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
template <class To, class From>
To saturated(From x, From most) {
    return To(x > most ? most : x < -most - 1 ? -most - 1 : x);
}
template <class T, int N>
Vector<T, N> loaded(const T *p) {
    return each<T, N>([&](int i) { return p[i]; });
}
template <class T, int N>
void stored(T *p, const Vector<T, N> &x) {
    for (int i = 0; i < N; i++) p[i] = x.v[i];
}
template <class T, int N>
Vector<T, 2 * N> combined(const Vector<T, N> &low, const Vector<T, N> &high) {
    return each<T, 2 * N>([&](int i) { return i < N ? low.v[i] : high.v[i - N]; });
}
template <class T, int N>
Vector<T, N / 2> half(const Vector<T, N> &x, int start) {
    return each<T, N / 2>([&](int i) { return x.v[start + i]; });
}
// Sums of neighbors, those of the first, then those of the second.
template <class T, int N>
Vector<T, N> paired(const Vector<T, N> &a, const Vector<T, N> &b) {
    return each<T, N>([&](int i) { return i < N / 2 ? a.v[2 * i] + a.v[2 * i + 1] : b.v[2 * i - N] + b.v[2 * i - N + 1]; });
}

}  // namespace in_words

using float32x4_t = in_words::Vector<float, 4>;
using float32x2_t = in_words::Vector<float, 2>;
using int32x4_t = in_words::Vector<int32_t, 4>;
using uint32x4_t = in_words::Vector<uint32_t, 4>;
using int16x8_t = in_words::Vector<int16_t, 8>;
using int16x4_t = in_words::Vector<int16_t, 4>;
using uint16x8_t = in_words::Vector<uint16_t, 8>;
using uint16x4_t = in_words::Vector<uint16_t, 4>;
using int8x16_t = in_words::Vector<int8_t, 16>;
using int8x8_t = in_words::Vector<int8_t, 8>;

inline float32x4_t vdupq_n_f32(float x) { return {x, x, x, x}; }
inline int32x4_t vdupq_n_s32(int32_t x) { return {x, x, x, x}; }
inline uint32x4_t vdupq_n_u32(uint32_t x) { return {x, x, x, x}; }
inline int16x8_t vdupq_n_s16(int16_t x) { return in_words::each<int16_t, 8>([&](int) { return x; }); }

inline float32x4_t vld1q_f32(const float *p) { return in_words::loaded<float, 4>(p); }
inline int32x4_t vld1q_s32(const int32_t *p) { return in_words::loaded<int32_t, 4>(p); }
inline uint16x8_t vld1q_u16(const uint16_t *p) { return in_words::loaded<uint16_t, 8>(p); }
inline int8x16_t vld1q_s8(const int8_t *p) { return in_words::loaded<int8_t, 16>(p); }
inline void vst1q_f32(float *p, const float32x4_t &x) { in_words::stored(p, x); }
inline void vst1q_s32(int32_t *p, const int32x4_t &x) { in_words::stored(p, x); }
inline void vst1q_s8(int8_t *p, const int8x16_t &x) { in_words::stored(p, x); }

inline int32x4_t vreinterpretq_s32_f32(const float32x4_t &x) { return in_words::as<int32x4_t>(x); }
inline float32x4_t vreinterpretq_f32_s32(const int32x4_t &x) { return in_words::as<float32x4_t>(x); }
inline int8x16_t vreinterpretq_s8_s32(const int32x4_t &x) { return in_words::as<int8x16_t>(x); }
inline uint16x8_t vcombine_u16(const uint16x4_t &a, const uint16x4_t &b) { return in_words::combined(a, b); }
inline int16x8_t vcombine_s16(const int16x4_t &a, const int16x4_t &b) { return in_words::combined(a, b); }
inline int8x16_t vcombine_s8(const int8x8_t &a, const int8x8_t &b) { return in_words::combined(a, b); }
inline float32x4_t vcombine_f32(const float32x2_t &a, const float32x2_t &b) { return in_words::combined(a, b); }
inline float32x2_t vget_low_f32(const float32x4_t &x) { return in_words::half(x, 0); }
inline float32x2_t vget_high_f32(const float32x4_t &x) { return in_words::half(x, 2); }
inline int8x8_t vget_low_s8(const int8x16_t &x) { return in_words::half(x, 0); }
inline float vget_lane_f32(const float32x2_t &x, int i) { return x.v[i]; }

inline float32x4_t vaddq_f32(const float32x4_t &a, const float32x4_t &b) { return in_words::each<float, 4>([&](int i) { return a.v[i] + b.v[i]; }); }
inline float32x4_t vsubq_f32(const float32x4_t &a, const float32x4_t &b) { return in_words::each<float, 4>([&](int i) { return a.v[i] - b.v[i]; }); }
inline float32x4_t vmulq_f32(const float32x4_t &a, const float32x4_t &b) { return in_words::each<float, 4>([&](int i) { return a.v[i] * b.v[i]; }); }
inline float32x4_t vdivq_f32(const float32x4_t &a, const float32x4_t &b) { return in_words::each<float, 4>([&](int i) { return a.v[i] / b.v[i]; }); }
inline float32x4_t vfmaq_f32(const float32x4_t &sum, const float32x4_t &a, const float32x4_t &b) { return in_words::each<float, 4>([&](int i) { return std::fma(a.v[i], b.v[i], sum.v[i]); }); }
inline float32x4_t vabsq_f32(const float32x4_t &x) { return in_words::each<float, 4>([&](int i) { return std::fabs(x.v[i]); }); }
inline float32x2_t vadd_f32(const float32x2_t &a, const float32x2_t &b) { return {a.v[0] + b.v[0], a.v[1] + b.v[1]}; }
inline float32x4_t vpaddq_f32(const float32x4_t &a, const float32x4_t &b) { return in_words::paired(a, b); }
inline uint32x4_t vcgtq_f32(const float32x4_t &a, const float32x4_t &b) { return in_words::each<uint32_t, 4>([&](int i) { return a.v[i] > b.v[i] ? ~0u : 0u; }); }
inline uint32x4_t vcltq_f32(const float32x4_t &a, const float32x4_t &b) { return vcgtq_f32(b, a); }
inline uint32x4_t vcltq_s32(const int32x4_t &a, const int32x4_t &b) { return in_words::each<uint32_t, 4>([&](int i) { return a.v[i] < b.v[i] ? ~0u : 0u; }); }
inline float32x4_t vbslq_f32(const uint32x4_t &mask, const float32x4_t &a, const float32x4_t &b) {
    const uint32x4_t x = in_words::as<uint32x4_t>(a), y = in_words::as<uint32x4_t>(b);
    return in_words::as<float32x4_t>(in_words::each<uint32_t, 4>([&](int i) { return (mask.v[i] & x.v[i]) | (~mask.v[i] & y.v[i]); }));
}

inline float32x4_t vcvtq_f32_s32(const int32x4_t &x) { return in_words::each<float, 4>([&](int i) { return float(x.v[i]); }); }
// Half to even; NaN becomes 0.
inline int32x4_t vcvtnq_s32_f32(const float32x4_t &x) {
    return in_words::each<int32_t, 4>([&](int i) { return x.v[i] != x.v[i] ? 0 : in_words::saturated<int32_t>(double(std::nearbyint(x.v[i])), double(INT32_MAX)); });
}
inline int16x4_t vqmovn_s32(const int32x4_t &x) { return in_words::each<int16_t, 4>([&](int i) { return in_words::saturated<int16_t>(x.v[i], int32_t(INT16_MAX)); }); }
inline int8x8_t vqmovn_s16(const int16x8_t &x) { return in_words::each<int8_t, 8>([&](int i) { return in_words::saturated<int8_t>(int(x.v[i]), int(INT8_MAX)); }); }
inline uint16x4_t vmovn_u32(const uint32x4_t &x) { return in_words::each<uint16_t, 4>([&](int i) { return x.v[i]; }); }

// Sums wrap; whole numbers are shifted without their sign where bits may leave.
inline int32x4_t vaddq_s32(const int32x4_t &a, const int32x4_t &b) { return in_words::each<int32_t, 4>([&](int i) { return uint32_t(a.v[i]) + uint32_t(b.v[i]); }); }
inline int32x4_t vmaxq_s32(const int32x4_t &a, const int32x4_t &b) { return in_words::each<int32_t, 4>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
inline int32x4_t vandq_s32(const int32x4_t &a, const int32x4_t &b) { return in_words::each<int32_t, 4>([&](int i) { return a.v[i] & b.v[i]; }); }
inline uint16x8_t vandq_u16(const uint16x8_t &a, const uint16x8_t &b) { return in_words::each<uint16_t, 8>([&](int i) { return a.v[i] & b.v[i]; }); }
inline int32x4_t vshlq_n_s32(const int32x4_t &x, int n) { return in_words::each<int32_t, 4>([&](int i) { return uint32_t(x.v[i]) << n; }); }
inline int32x4_t vshrq_n_s32(const int32x4_t &x, int n) { return in_words::each<int32_t, 4>([&](int i) { return x.v[i] >> n; }); }
// The upper n bits of the first, then the second shifted right by n.
inline int32x4_t vsriq_n_s32(const int32x4_t &a, const int32x4_t &b, int n) {
    return in_words::each<int32_t, 4>([&](int i) { return (uint32_t(a.v[i]) & ~(~0u >> n)) | uint32_t(b.v[i]) >> n; });
}
inline uint16_t vaddvq_u16(const uint16x8_t &x) {
    uint16_t sum = 0;
    for (uint16_t one : x.v) sum = uint16_t(sum + one);
    return sum;
}
inline int32x4_t vpaddq_s32(const int32x4_t &a, const int32x4_t &b) { return in_words::paired(a, b); }
inline int16x8_t vmlal_s8(const int16x8_t &sum, const int8x8_t &a, const int8x8_t &b) { return in_words::each<int16_t, 8>([&](int i) { return sum.v[i] + a.v[i] * b.v[i]; }); }
inline int16x8_t vmlal_high_s8(const int16x8_t &sum, const int8x16_t &a, const int8x16_t &b) { return vmlal_s8(sum, in_words::half(a, 8), in_words::half(b, 8)); }
inline int32x4_t vpadalq_s16(const int32x4_t &sum, const int16x8_t &x) { return in_words::each<int32_t, 4>([&](int i) { return sum.v[i] + x.v[2 * i] + x.v[2 * i + 1]; }); }
// Each four of the first by four of the second, always the same.
inline int32x4_t vdotq_laneq_s32(const int32x4_t &sum, const int8x16_t &a, const int8x16_t &b, int lane) {
    return in_words::each<int32_t, 4>([&](int i) {
        int32_t products = 0;
        for (int j = 0; j < 4; j++) products += a.v[4 * i + j] * b.v[4 * lane + j];
        return sum.v[i] + products;
    });
}
