// NEON (every 64-bit ARM processor). Its instruction adds products of bytes in 16 bits; with numbers up to
// ±63, eight of them can be added before they are widened.
#include "kernels.h"
#if defined(__aarch64__)
#define HEED_NEON
#define HEED_ISA heed_neon
#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "neon";
constexpr int kMostRows = 3;

// Groups of four inputs whose products are added in 16 bits.
constexpr int kNarrow = 8;
static_assert(kNarrow * heed::kMostInt * heed::kMostInt <= INT16_MAX, "sums fit into 16 bits");

// Eight columns: a register has two columns by four inputs, and the two halves of each column's sum.
template <int R, int Ahead>
inline void multiply_columns(const char *x, size_t stride, const int8_t *w, int groups, int32_t *sums, int width, const char *ahead) {
    int32x4_t c[R][4];
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < 4; j++) c[r][j] = vdupq_n_s32(0);
    for (int g = 0; g < groups;) {
        int16x8_t narrow[R][4];
        HEED_UNROLL
        for (int r = 0; r < R; r++)
            HEED_UNROLL
            for (int j = 0; j < 4; j++) narrow[r][j] = vdupq_n_s16(0);
        for (const int end = g + kNarrow < groups ? g + kNarrow : groups; g < end; g++) {
            if (Ahead) __builtin_prefetch(ahead + g * size_t(64));
            const int8x16_t low = vld1q_s8(w + g * size_t(64)), high = vld1q_s8(w + g * size_t(64) + 16);
            HEED_UNROLL
            for (int r = 0; r < R; r++) {
                int32_t four;
                std::memcpy(&four, x + r * stride + g * 4, sizeof four);
                const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(four));
                narrow[r][0] = vmlal_s8(narrow[r][0], vget_low_s8(low), vget_low_s8(a));
                narrow[r][1] = vmlal_high_s8(narrow[r][1], low, a);
                narrow[r][2] = vmlal_s8(narrow[r][2], vget_low_s8(high), vget_low_s8(a));
                narrow[r][3] = vmlal_high_s8(narrow[r][3], high, a);
            }
        }
        HEED_UNROLL
        for (int r = 0; r < R; r++)
            HEED_UNROLL
            for (int j = 0; j < 4; j++) c[r][j] = vpadalq_s16(c[r][j], narrow[r][j]);
    }
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < 4; j += 2) vst1q_s32(sums + r * width + 2 * j, vpaddq_s32(c[r][j], c[r][j + 1]));
}

// A single row has eight sums for each half of a panel, which is enough.
constexpr int panels_at_once(int) { return 1; }

template <int R, int P, int Ahead>
__attribute__((noinline)) void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *, int32_t *sums, const char *ahead) {
    static_assert(P == 1, "one panel at once");
    multiply_columns<R, Ahead>(x, stride, w, groups, sums, 16, ahead);
    multiply_columns<R, 0>(x, stride, w + 32, groups, sums + 8, 16, ahead);
}

}  // namespace HEED_ISA

#include "kernels.inc"

const heed::Kernels *heed::neon_kernels() { return &HEED_ISA::kernels; }
#else
const heed::Kernels *heed::neon_kernels() { return nullptr; }
#endif
