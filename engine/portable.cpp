// Plain C++: for every processor, and the measure for all others.
#define HEED_ISA heed_portable
#include "lanes.h"

namespace HEED_ISA {

constexpr const char *kName = "portable";
constexpr bool kNeedsSums = false;
constexpr int kMostRows = 4;

size_t quantized_stride(int k) { return size_t(k + 15) / 16 * 16; }

void store_ints(void *q, const float *x, int n, Lanes scale) {
    for (int i = 0; i < n; i += 16) {
        // Numbers that are none become some: no cast of them is defined.
        const Lanes v = larger(smaller(rounded(load(x + i) * scale), all(127.0f)), all(-127.0f));
        for (int j = 0; j < 16; j++) ((int8_t *)q)[i + j] = int8_t(v.v[j]);
    }
}

inline const int32_t *with_offset(int32_t *sums, const int32_t *, int) { return sums; }

template <int R>
void multiply_ints(const char *x, size_t stride, const int8_t *w, int groups, int32_t *sums) {
    std::memset(sums, 0, sizeof(int32_t) * R * 16);
    for (int g = 0; g < groups; g++, w += 64)
        for (int r = 0; r < R; r++) {
            const int8_t *a = (const int8_t *)(x + r * stride) + g * 4;
            for (int c = 0; c < 16; c++)
                sums[r * 16 + c] += a[0] * w[c * 4] + a[1] * w[c * 4 + 1] + a[2] * w[c * 4 + 2] + a[3] * w[c * 4 + 3];
        }
}

}  // namespace HEED_ISA

#include "kernels.inc"

const heed::Kernels *heed::portable_kernels() { return &HEED_ISA::kernels; }
