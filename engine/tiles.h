// Matrices of bfloat16 in AMX's tiles, for training: how float32 matrices become tiles, and how these
// are multiplied. Each file that includes this has a namespace of its own, HEED_ISA.
#pragma once
#define HEED_AVX512
#include <cpuid.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "lanes.h"
#include "tile_shapes.h"

namespace HEED_ISA {

// A tile: 16 rows of 64 bytes.
constexpr int kRows = 16, kTile = 1024, kBlock = 32;

// Rows of a matrix, of which the padding counts as zeros.
struct Rows {
    const float *data;
    int n, width;

    Lanes part(int row, int column) const { return row < n ? load(data + size_t(row) * width + column) : all(0.0f); }
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

// The left factor of a product: tile (i, k) has rows 16 i … and columns 32 k ….
void fill_left(const Rows &x, int n_blocks, Tiles &tiles) {
    for (int row = 0; row < n_blocks * kBlock; row++)
        for (int k = 0; k < x.width / 32; k++) _mm512_store_si512(tiles[size_t(row / 16) * (x.width / 32) + k] + row % 16 * 64, in_line(x.part(row, 32 * k), x.part(row, 32 * k + 16)));
}

// Its transpose as the left factor: tile (i, k) has columns 16 i … and rows 32 k ….
void fill_left_transposed(const Rows &x, int n_blocks, Tiles &tiles) {
    for (int k = 0; k < n_blocks; k++)
        for (int i = 0; i < x.width / 16; i++) {
            uint32_t *to = (uint32_t *)tiles[size_t(i) * n_blocks + k];
            for (int pair = 0; pair < 16; pair++) {
                alignas(64) uint32_t words[16];
                _mm512_store_si512(words, in_pairs(x.part(32 * k + 2 * pair, 16 * i), x.part(32 * k + 2 * pair + 1, 16 * i)));
                for (int c = 0; c < 16; c++) to[c * 16 + pair] = words[c];
            }
        }
}

// The right factor of x W^T: tile (v, k) has rows 16 v … of W as its columns, and inputs 32 k ….
Tiles as_right_transposed(const Rows &w, int n_blocks) {
    Tiles tiles(size_t(n_blocks) * 2 * (w.width / 32));
    for (int row = 0; row < n_blocks * kBlock; row++)
        for (int k = 0; k < w.width / 32; k++) {
            alignas(64) uint32_t words[16];
            _mm512_store_si512(words, in_line(w.part(row, 32 * k), w.part(row, 32 * k + 16)));
            uint32_t *to = (uint32_t *)tiles[size_t(row / 16) * (w.width / 32) + k] + row % 16;
            for (int pair = 0; pair < 16; pair++) to[pair * 16] = words[pair];
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

void prepare_tiles() {
    const TileShapes whole(kRows, 8);
    _tile_loadconfig(&whole);
}

// Tiles 0 to 3 += two rows of `depth` tiles times two columns of them. The tiles of a row follow each
// other, those of a column come every `step` bytes.
inline void add_products(const char *row, const char *next_row, const char *column, const char *next_column, size_t step, int depth) {
    for (int k = 0; k < depth; k++, row += kTile, next_row += kTile, column += step, next_column += step) {
        _tile_loadd(4, row, 64);
        _tile_loadd(6, column, 64);
        _tile_loadd(7, next_column, 64);
        _tile_loadd(5, next_row, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

bool has_bfloat16_tiles() {
    unsigned a, b, c, d = 0;
    return heed::amx_kernels() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1);
}

}  // namespace HEED_ISA
