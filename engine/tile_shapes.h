// The record that `ldtilecfg` reads. Each file that includes this has its own namespace, HEED_ISA.
#pragma once
#include <cstdint>

namespace HEED_ISA {

// Eight tiles of 64 bytes a row: the first `n` of `height` rows, the others of 16.
struct alignas(64) TileShapes {
    uint8_t palette = 1, first_row = 0, unused[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};

    TileShapes(int height, int n) {
        for (int t = 0; t < 8; t++) bytes[t] = 64, rows[t] = t < n ? height : 16;
    }
};

}  // namespace HEED_ISA
