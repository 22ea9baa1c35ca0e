// The products of tiles_amx.h without AMX, with AVX-512's instruction for sixteen pairs of bfloat16.
#pragma once
#include "bfloat16.h"

namespace HEED_ISA {

inline void start_tiles() {}
inline void end_tiles() {}

// Rows of sums in registers.
constexpr int kRowsAtOnce = 8;

// Rows of numbers in two columns of sixteen; null: zeros.
template <class T>
struct Columns {
    T *data, *next;
    size_t stride;

    Columns(T *one, T *other, size_t apart) : data(one), next(other), stride(apart) {}
    Columns(Block<T> block) : data(block.data), next(block.data + kRows), stride(block.stride) {}
    Columns from(int row) const { return data ? Columns(data + row * stride, next + row * stride, stride) : *this; }
};

// to = start + left right: sixteen rows of it, from a row of `depth` tiles, which follow each other, and
// two columns of them, which come every `step` bytes.
inline void multiply_row(const char *left, const char *right, const char *next_right, size_t step, int depth, const Columns<const float> &start, const Columns<float> &to) {
    for (int first = 0; first < kRows; first += kRowsAtOnce) {
        __m512 sums[kRowsAtOnce][2];
        const auto from = start.from(first);
        const auto into = to.from(first);
        HEED_UNROLL for (int row = 0; row < kRowsAtOnce; row++) {
            sums[row][0] = from.data ? _mm512_loadu_ps(from.data + row * from.stride) : _mm512_setzero_ps();
            sums[row][1] = from.data ? _mm512_loadu_ps(from.next + row * from.stride) : _mm512_setzero_ps();
        }
        for (int k = 0; k < depth; k++)
            for (int pair = 0; pair < kRows; pair++) {
                const char *words = left + k * kTile + 64 * first + 4 * pair;
                const auto one = (__m512bh)_mm512_load_si512(right + k * step + 64 * pair), other = (__m512bh)_mm512_load_si512(next_right + k * step + 64 * pair);
                HEED_UNROLL for (int row = 0; row < kRowsAtOnce; row++) {
                    int32_t word;
                    std::memcpy(&word, words + 64 * row, sizeof word);
                    const auto both = (__m512bh)_mm512_set1_epi32(word);
                    sums[row][0] = _mm512_dpbf16_ps(sums[row][0], both, one);
                    sums[row][1] = _mm512_dpbf16_ps(sums[row][1], both, other);
                }
            }
        HEED_UNROLL for (int row = 0; row < kRowsAtOnce; row++) {
            _mm512_storeu_ps(into.data + row * into.stride, sums[row][0]);
            _mm512_storeu_ps(into.next + row * into.stride, sums[row][1]);
        }
    }
}

inline void multiply(const char *left, const char *next_left, const char *right, const char *next_right, size_t step, int depth, Block<const float> start, Block<float> to) {
    multiply_row(left, right, next_right, step, depth, start, to);
    multiply_row(next_left, right, next_right, step, depth, Columns<const float>(start).from(kRows), Columns<float>(to).from(kRows));
}

// += for sixteen rows of sums in two tiles, which follow each other.
inline void add_row(const char *left, const char *right, const char *next_right, size_t step, int depth, char *to) {
    float *sums = (float *)to, *next = (float *)(to + kTile);
    multiply_row(left, right, next_right, step, depth, {sums, next, kRows}, {sums, next, kRows});
}

inline void add_rows(const char (&left)[2][2][kTile], const char *right, const char *next_right, int n, char *to, char *next_to) {
    const size_t step = next_right - right;
    for (int i = 0; i < n; i += 2, right += 2 * kTile, to += 2 * kTile, next_to += 2 * kTile) {
        add_row(left[0][0], right, right + kTile, step, 2, to);
        add_row(left[1][0], right, right + kTile, step, 2, next_to);
    }
}

inline void add_columns(const char *left, size_t step, const char (&right)[2][kTile], int n, char *to) {
    for (int i = 0; i < n; i++, left += step, to += 2 * kTile) add_row(left, right[0], right[1], 0, 1, to);
}

inline bool has_instructions() { return heed::avx512_kernels() && __builtin_cpu_supports("avx512bf16"); }

}  // namespace HEED_ISA
