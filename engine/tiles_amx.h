// Products of tiles of bfloat16 with AMX. Eight tiles are in registers: every product is between
// `start_tiles` and `end_tiles`. Each file that includes this has its own namespace, HEED_ISA.
#pragma once
#include <cpuid.h>

#include "bfloat16.h"
#include "tile_shapes.h"

namespace HEED_ISA {

inline void start_tiles() {
    const TileShapes whole(kRows, 8);
    _tile_loadconfig(&whole);
}
inline void end_tiles() { _tile_release(); }

// to = start + left right, 32 rows and 32 columns of it. `left` and `next_left` are two rows of `depth`
// tiles, which follow each other; `right` and `next_right` two columns of tiles, which come every `step`
// bytes. Without a start it is zero.
inline void multiply(const char *left, const char *next_left, const char *right, const char *next_right, size_t step, int depth, Block<const float> start, Block<float> to) {
    if (start.data) {
        const float *next_start = start.data + kRows * start.stride;
        _tile_loadd(0, start.data, start.stride * sizeof(float));
        _tile_loadd(1, start.data + kRows, start.stride * sizeof(float));
        _tile_loadd(2, next_start, start.stride * sizeof(float));
        _tile_loadd(3, next_start + kRows, start.stride * sizeof(float));
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int k = 0; k < depth; k++, left += kTile, next_left += kTile, right += step, next_right += step) {
        _tile_loadd(4, left, 64);
        _tile_loadd(6, right, 64);
        _tile_loadd(7, next_right, 64);
        _tile_loadd(5, next_left, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    float *next_to = to.data + kRows * to.stride;
    _tile_stored(0, to.data, to.stride * sizeof(float));
    _tile_stored(1, to.data + kRows, to.stride * sizeof(float));
    _tile_stored(2, next_to, to.stride * sizeof(float));
    _tile_stored(3, next_to + kRows, to.stride * sizeof(float));
}

// Two rows of `n` tiles of sums, `to` and `next_to`, += two rows of two tiles, times two rows of `n`
// tiles, `right` and `next_right`.
inline void add_rows(const char (&left)[2][2][kTile], const char *right, const char *next_right, int n, char *to, char *next_to) {
    _tile_loadd(2, left[0][0], 64);
    _tile_loadd(3, left[1][0], 64);
    _tile_loadd(4, left[0][1], 64);
    _tile_loadd(5, left[1][1], 64);
    for (int i = 0; i < n; i++, right += kTile, next_right += kTile, to += kTile, next_to += kTile) {
        _tile_loadd(0, to, 64);
        _tile_loadd(1, next_to, 64);
        _tile_loadd(6, right, 64);
        _tile_loadd(7, next_right, 64);
        _tile_dpbf16ps(0, 2, 6);
        _tile_dpbf16ps(1, 3, 6);
        _tile_dpbf16ps(0, 4, 7);
        _tile_dpbf16ps(1, 5, 7);
        _tile_stored(0, to, 64);
        _tile_stored(1, next_to, 64);
    }
}

// `n` rows of two tiles of sums, `to`, += a column of `n` tiles, which come every `step` bytes, times a
// row of two.
inline void add_columns(const char *left, size_t step, const char (&right)[2][kTile], int n, char *to) {
    _tile_loadd(6, right[0], 64);
    _tile_loadd(7, right[1], 64);
    for (int i = 0; i < n; i++, left += step, to += 2 * kTile) {
        _tile_loadd(0, to, 64);
        _tile_loadd(1, to + kTile, 64);
        _tile_loadd(4, left, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_stored(0, to, 64);
        _tile_stored(1, to + kTile, 64);
    }
}

inline bool has_instructions() {
    unsigned a, b, c, d = 0;
    return heed::amx_kernels() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1);
}

}  // namespace HEED_ISA
