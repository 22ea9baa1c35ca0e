#include "kernels.h"
#include "tiles.h"
#if defined(__x86_64__) && defined(__AVX512BF16__)
#define HEED_ISA heed_tiles_avx512
#include "tiles_avx512.h"
#include "linear.inc"
#include "output_layer.inc"

const heed::TileKernels *heed::avx512_tiles() {
    static const TileKernels kernels{"avx512", HEED_ISA::forward, HEED_ISA::backward, HEED_ISA::output};
    static const bool is_here = HEED_ISA::has_instructions();
    return is_here ? &kernels : nullptr;
}
#else
const heed::TileKernels *heed::avx512_tiles() { return nullptr; }
#endif
