// Matrices of bfloat16, for training: how float32 matrices become tiles, the pieces in which
// tiles_amx.h and tiles_avx512.h multiply them. Each file that includes this has a namespace of its own,
// HEED_ISA.
#pragma once
#define HEED_AVX512
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "lanes.h"

namespace HEED_ISA {

// A tile: 16 rows of 64 bytes. That of a left factor has 16 rows of 32 numbers, that of a right one 16
// columns: its rows have two numbers of each.
constexpr int kRows = 16, kTile = 1024, kBlock = 32;

// Rows of a matrix, of which the padding counts as zeros; so do numbers whose `gate`, if there is one,
// is at most zero. NaN is not.
struct Rows {
    const float *data;
    int n, width;
    const float *gate = nullptr;

    Lanes part(int row, int column) const {
        if (row >= n) return all(0.0f);
        const size_t place = size_t(row) * width + column;
        return gate ? Lanes{_mm512_maskz_loadu_ps(_mm512_cmp_ps_mask(load(gate + place).v, _mm512_setzero_ps(), _CMP_NLE_UQ), data + place)} : load(data + place);
    }
};

// A block of float32 numbers: its rows are `stride` numbers apart, or all the same one if that is 0.
template <class T>
struct Block {
    T *data;
    size_t stride;
};

struct Free {
    void operator()(char *data) const { std::free(data); }
};

// Memory of `n` tiles.
class Tiles {
  public:
    explicit Tiles(size_t n) : data_((char *)std::aligned_alloc(64, std::max<size_t>(1, n) * kTile)), n_(n) {
        if (!data_) throw std::bad_alloc();
    }
    void clear() { std::memset(data_.get(), 0, n_ * kTile); }
    char *operator[](size_t tile) { return data_.get() + tile * kTile; }
    const char *operator[](size_t tile) const { return data_.get() + tile * kTile; }

  private:
    std::unique_ptr<char, Free> data_;
    size_t n_;
};

// 32 numbers in bfloat16, those of `low` first.
inline __m512i in_line(Lanes low, Lanes high) { return (__m512i)_mm512_cvtne2ps_pbh(high.v, low.v); }

// Sixteen pairs in bfloat16: a number of `first`, then one of `second`.
inline __m512i in_pairs(Lanes first, Lanes second) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(first.v)), high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(second.v));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Sixteen rows of sixteen words become columns.
inline void transpose(__m512i (&rows)[16]) {
    __m512i twos[16], fours[16];
    for (int i = 0; i < 16; i += 2) {
        twos[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        twos[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            fours[i + 2 * j] = _mm512_unpacklo_epi64(twos[i + j], twos[i + 2 + j]);
            fours[i + 2 * j + 1] = _mm512_unpackhi_epi64(twos[i + j], twos[i + 2 + j]);
        }
    // Of each quarter of 128 bits, fours[4 b + c] has column 4 quarter + c of rows 4 b to 4 b + 3.
    for (int c = 0; c < 4; c++) {
        const __m512i low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0x88), high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0x88);
        const __m512i next_low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0xdd), next_high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0xdd);
        rows[c] = _mm512_shuffle_i32x4(low, high, 0x88);
        rows[8 + c] = _mm512_shuffle_i32x4(low, high, 0xdd);
        rows[4 + c] = _mm512_shuffle_i32x4(next_low, next_high, 0x88);
        rows[12 + c] = _mm512_shuffle_i32x4(next_low, next_high, 0xdd);
    }
}

// A tile from sixteen rows of words that are its columns.
inline void store_transposed(__m512i (&rows)[16], char *tile) {
    transpose(rows);
    for (int i = 0; i < 16; i++) _mm512_store_si512(tile + 64 * i, rows[i]);
}

// The left factor of a product: tile (i, k) has rows 16 i … and columns 32 k ….
void fill_left(const Rows &x, int n_blocks, Tiles &tiles) {
    for (int row = 0; row < n_blocks * kBlock; row++)
        for (int k = 0; k < x.width / 32; k++) _mm512_store_si512(tiles[size_t(row / 16) * (x.width / 32) + k] + row % 16 * 64, in_line(x.part(row, 32 * k), x.part(row, 32 * k + 16)));
}

// Its transpose as the left factor: tile (i, k) has columns 16 i … and rows 32 k ….
void fill_left_transposed(const Rows &x, int n_blocks, Tiles &tiles) {
    for (int k = 0; k < n_blocks; k++)
        for (int i = 0; i < x.width / 16; i++) {
            __m512i pairs[16];
            for (int pair = 0; pair < 16; pair++) pairs[pair] = in_pairs(x.part(32 * k + 2 * pair, 16 * i), x.part(32 * k + 2 * pair + 1, 16 * i));
            store_transposed(pairs, tiles[size_t(i) * n_blocks + k]);
        }
}

// The right factor of x W^T: tile (v, k) has rows 16 v … of W as its columns, and inputs 32 k ….
Tiles as_right_transposed(const Rows &w, int n_blocks) {
    Tiles tiles(size_t(n_blocks) * 2 * (w.width / 32));
    for (int v = 0; v < n_blocks * 2; v++)
        for (int k = 0; k < w.width / 32; k++) {
            __m512i lines[16];
            for (int row = 0; row < 16; row++) lines[row] = in_line(w.part(16 * v + row, 32 * k), w.part(16 * v + row, 32 * k + 16));
            store_transposed(lines, tiles[size_t(v) * (w.width / 32) + k]);
        }
    return tiles;
}

// The right factor of P W: tile (k, i) has rows 32 k … and columns 16 i ….
void fill_right(const Rows &w, int n_blocks, Tiles &tiles) {
    for (int k = 0; k < n_blocks; k++)
        for (int i = 0; i < w.width / 16; i++)
            for (int pair = 0; pair < 16; pair++) _mm512_store_si512(tiles[size_t(k) * (w.width / 16) + i] + pair * 64, in_pairs(w.part(32 * k + 2 * pair, 16 * i), w.part(32 * k + 2 * pair + 1, 16 * i)));
}

// The same in tiles of their own.
Tiles as_left(const Rows &x, int n_blocks) {
    Tiles tiles(size_t(n_blocks) * 2 * (x.width / 32));
    fill_left(x, n_blocks, tiles);
    return tiles;
}
Tiles as_left_transposed(const Rows &x, int n_blocks) {
    Tiles tiles(size_t(n_blocks) * (x.width / 16));
    fill_left_transposed(x, n_blocks, tiles);
    return tiles;
}
Tiles as_right(const Rows &w, int n_blocks) {
    Tiles tiles(size_t(n_blocks) * (w.width / 16));
    fill_right(w, n_blocks, tiles);
    return tiles;
}

}  // namespace HEED_ISA
