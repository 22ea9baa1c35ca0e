// NEON with dot products (ARMv8.2: every Mac with an ARM processor, Graviton since 2, Raspberry Pi 5): an
// instruction multiplies four bytes of each column by four inputs, all with a sign, and adds them up.
#include "kernels.h"
#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#define HEED_NEON
#define HEED_ISA heed_dotprod
#include <type_traits>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "dotprod";
// Four rows have sixteen sums: enough to hide the latency of the instruction, and all stay in registers.
constexpr int kMostRows = 4;
constexpr int panels_at_once(int) { return 1; }

// A register has four columns by four inputs, or sixteen inputs of a row.
template <int R, int P, int Ahead>
__attribute__((noinline)) void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *, int32_t *sums, const char *ahead) {
    static_assert(P == 1, "one panel at once");
    constexpr int kAtOnce = R == 1 ? 4 : R == 2 ? 2 : 1;
    int32x4_t c[kAtOnce][R][4];
    HEED_UNROLL
    for (auto &rows : c)
        HEED_UNROLL
        for (auto &row : rows)
            HEED_UNROLL
            for (int32x4_t &sum : row) sum = vdupq_n_s32(0);
    int8x16_t inputs[R];
    const auto load_inputs = [&](int g) {
        HEED_UNROLL
        for (int r = 0; r < R; r++) inputs[r] = vld1q_s8((const int8_t *)x + r * stride + g * 4);
    };
    // One group of each row's inputs, which one is known when this is compiled.
    const auto add = [&](int g, auto which) {
        constexpr int kWhich = decltype(which)::value;
        if (Ahead) __builtin_prefetch(ahead + g * size_t(64));
        HEED_UNROLL
        for (int j = 0; j < 4; j++) {
            const int8x16_t columns = vld1q_s8(w + g * size_t(64) + 16 * j);
            HEED_UNROLL
            for (int r = 0; r < R; r++) c[kWhich % kAtOnce][r][j] = vdotq_laneq_s32(c[kWhich % kAtOnce][r][j], columns, inputs[r], kWhich);
        }
    };
    int g = 0;
    for (; g + 4 <= groups; g += 4) {
        load_inputs(g);
        add(g, std::integral_constant<int, 0>());
        add(g + 1, std::integral_constant<int, 1>());
        add(g + 2, std::integral_constant<int, 2>());
        add(g + 3, std::integral_constant<int, 3>());
    }
    // Rows end with padding, so sixteen inputs can be read.
    for (; g < groups; g++) load_inputs(g), add(g, std::integral_constant<int, 0>());
    HEED_UNROLL
    for (int r = 0; r < R; r++)
        HEED_UNROLL
        for (int j = 0; j < 4; j++) {
            HEED_UNROLL
            for (int i = 1; i < kAtOnce; i++) c[0][r][j] = vaddq_s32(c[0][r][j], c[i][r][j]);
            vst1q_s32(sums + r * 16 + j * 4, c[0][r][j]);
        }
}

inline bool has_instructions() {
#if defined(__linux__)
    constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
    return getauxval(AT_HWCAP) & kDotProducts;
#else
    return true;  // a Mac
#endif
}

}  // namespace HEED_ISA

#include "kernels.inc"

const heed::Kernels *heed::dotprod_kernels() { return HEED_ISA::has_instructions() ? &HEED_ISA::kernels : nullptr; }
#else
const heed::Kernels *heed::dotprod_kernels() { return nullptr; }
#endif
