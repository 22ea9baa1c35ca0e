// The AMX instructions that engine/ uses, number by number as Intel's manual has them, so that amx.cpp
// and tiles_amx.cpp can be tested on machines with AVX-512 alone. Put before every file by -include.
#pragma once
#include <cpuid.h>
#include <immintrin.h>
#include <unistd.h>
#include <cstdint>
#include <cstring>

namespace in_words {

struct Tile {
    int rows = 0, bytes = 0;
    alignas(64) uint8_t data[16][64] = {};
};
inline Tile &tile(int i) {
    static thread_local Tile tiles[8];
    return tiles[i];
}

inline void load_config(const void *config) {
    const auto *bytes = static_cast<const uint8_t *>(config);
    for (int i = 0; i < 8; i++) {
        uint16_t width;
        std::memcpy(&width, bytes + 16 + 2 * i, sizeof width);
        tile(i) = Tile();
        tile(i).bytes = width, tile(i).rows = bytes[48 + i];
    }
}
inline void release() {
    for (int i = 0; i < 8; i++) tile(i) = Tile();
}
inline void zero(int i) { std::memset(tile(i).data, 0, sizeof tile(i).data); }
inline void load(int i, const void *from, size_t stride) {
    zero(i);
    for (int r = 0; r < tile(i).rows; r++) std::memcpy(tile(i).data[r], (const char *)from + r * stride, tile(i).bytes);
}
inline void store(int i, void *to, size_t stride) {
    for (int r = 0; r < tile(i).rows; r++) std::memcpy((char *)to + r * stride, tile(i).data[r], tile(i).bytes);
}

// sums (rows, columns) += f(four bytes of left, four bytes of right).
template <class T, class F>
void multiply(int sums, int left, int right, F f) {
    Tile &to = tile(sums);
    for (int r = 0; r < to.rows; r++)
        for (int k = 0; k < tile(left).bytes / 4; k++)
            for (int c = 0; c < to.bytes / 4; c++) {
                T sum;
                std::memcpy(&sum, to.data[r] + 4 * c, 4);
                sum = f(sum, tile(left).data[r] + 4 * k, tile(right).data[k] + 4 * c);
                std::memcpy(to.data[r] + 4 * c, &sum, 4);
            }
}
inline void bytes(int sums, int left, int right) {
    multiply<int32_t>(sums, left, right, [](int32_t sum, const uint8_t *x, const uint8_t *w) {
        for (int i = 0; i < 4; i++) sum += int32_t(x[i]) * int8_t(w[i]);
        return sum;
    });
}
inline float wide(const uint8_t *half) {
    const uint32_t word = uint32_t(half[0]) << 16 | uint32_t(half[1]) << 24;
    float x;
    std::memcpy(&x, &word, sizeof x);
    return x;
}
inline void halves(int sums, int left, int right) {
    multiply<float>(sums, left, right, [](float sum, const uint8_t *x, const uint8_t *w) { return sum + wide(x) * wide(w) + wide(x + 2) * wide(w + 2); });
}

inline int cpuid(unsigned leaf, unsigned part, unsigned *a, unsigned *b, unsigned *c, unsigned *d) {
    const int is_known = __get_cpuid_count(leaf, part, a, b, c, d);
    *d |= 1u << 22 | 1u << 24 | 1u << 25;
    return is_known;
}

}  // namespace in_words

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig in_words::load_config
#define _tile_release in_words::release
#define _tile_zero in_words::zero
#define _tile_loadd in_words::load
#define _tile_stored in_words::store
#define _tile_dpbusd in_words::bytes
#define _tile_dpbf16ps in_words::halves
#define __get_cpuid_count in_words::cpuid
// The permission that Linux gives.
#define syscall(...) 0
