// Plain C++: for every processor, and the reference for all others.
#include "kernels.h"
#define HEED_ISA heed_portable
#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "portable";
constexpr int kMostRows = 4;
constexpr int panels_at_once(int rows) { return rows == 1 ? 4 : 1; }

template <int R, int P, int>
void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, const int32_t *starts, int32_t *sums, const char *) {
    for (int p = 0; p < P; p++, starts += 16, sums += 16) {
        for (int r = 0; r < R; r++) std::memcpy(sums + r * P * 16, starts, sizeof(int32_t) * 16);
        for (int g = 0; g < groups; g++, w += 64)
            for (int r = 0; r < R; r++) {
                const int8_t *a = (const int8_t *)(x + r * stride) + g * 4;
                for (int c = 0; c < 16; c++)
                    sums[r * P * 16 + c] += a[0] * w[c * 4] + a[1] * w[c * 4 + 1] + a[2] * w[c * 4 + 2] + a[3] * w[c * 4 + 3];
            }
    }
}

}  // namespace HEED_ISA

#include "kernels.inc"

const heed::Kernels *heed::portable_kernels() { return &HEED_ISA::kernels; }
