// AMX (Intel's servers since 2023): one instruction multiplies a tile of 16 rows by 64 bytes with a tile
// of 64 inputs by 16 columns, which is how a panel's weights lie in memory. Everything else is
// that of avx512.cpp, with the same shift of the inputs; sums of integers are exact, so the bits are too.
#include "kernels.h"
#if defined(__x86_64__) && defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AVX512F__)
#define HEED_AVX512
#define HEED_ISA heed_amx
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "lanes.h"
#include "tile_shapes.h"

namespace HEED_ISA {

using heed::Inputs;
using heed::Kernels;
using heed::Matrix;

constexpr int kTileRows = 16, kTileBytes = 64;
// Fewer rows are faster with AVX-512: loading a tile of weights takes as long for one row as for 16.
constexpr int kLeastRows = 7;
// Weights that stay in the L2 cache while all rows use them, and inputs that stay there meanwhile.
constexpr size_t kPanelBytes = 512 << 10, kRowBytes = 512 << 10;

// Rows of a product that are computed together: blocks of equal height, the last of which may begin
// within the one before. `n` is 1, or even.
struct RowBlocks {
    int n, height, rows;

    explicit RowBlocks(int rows) : n(rows <= kTileRows ? 1 : (rows + 2 * kTileRows - 1) / (2 * kTileRows) * 2), height((rows + n - 1) / n), rows(rows) {}
    int begin(int block) const { return std::min(block * height, rows - height); }
};

// Sums of a block of rows with four panels, each (16, 16).
void one_by_four(const char *x, size_t stride, const char *w, size_t panel_bytes, const int32_t *starts, int32_t *sums) {
    _tile_loadd(0, starts, 0);
    _tile_loadd(1, starts + 16, 0);
    _tile_loadd(2, starts + 32, 0);
    _tile_loadd(3, starts + 48, 0);
    for (size_t at = 0; at < panel_bytes; at += 1024, x += kTileBytes) {
        _tile_loadd(4, x, stride);
        _tile_loadd(6, w + at, 64);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, w + panel_bytes + at, 64);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(5, w + 2 * panel_bytes + at, 64);
        _tile_dpbusd(2, 4, 5);
        _tile_loadd(6, w + 3 * panel_bytes + at, 64);
        _tile_dpbusd(3, 4, 6);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
}

// Sums of two blocks of rows with two panels: the first block's, then the other's. Asks for the
// weights at `ahead`, unless it is null.
void two_by_two(const char *x, const char *other, size_t stride, const char *w, size_t panel_bytes, const int32_t *starts, int32_t *sums, const char *ahead) {
    _tile_loadd(0, starts, 0);
    _tile_loadd(1, starts + 16, 0);
    _tile_loadd(2, starts, 0);
    _tile_loadd(3, starts + 16, 0);
    for (size_t at = 0; at < panel_bytes; at += 1024, x += kTileBytes, other += kTileBytes) {
        if (ahead)
            for (int p = 0; p < 2; p++)
                for (int line = 0; line < 1024; line += 64) __builtin_prefetch(ahead + p * panel_bytes + at + line);
        _tile_loadd(4, x, stride);
        _tile_loadd(6, w + at, 64);
        _tile_loadd(7, w + panel_bytes + at, 64);
        _tile_loadd(5, other, stride);
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
}

// out[row …, panel] = sums (height, 16), as floats.
void write(const Matrix &m, const Inputs &x, int row, int height, const int32_t *sums, float *out, size_t stride, int panel) {
    const Lanes scales = load(m.scales + panel * 16);
    const float *bias = m.bias ? m.bias + panel * 16 : nullptr;
    for (int r = row; r < row + height; r++, sums += 16) store(out + r * stride + panel * 16, from_sums(sums, all(x.scales[r]) * scales, bias));
}

void multiply_tiles(const Matrix &m, const Inputs &x, const RowBlocks &blocks, float *out, size_t stride, int begin, int end) {
    const size_t panel_bytes = m.panel_bytes();
    const int at_once = blocks.n == 1 ? 4 : 2, n_inputs = blocks.n == 1 ? 1 : 2;
    const int panels_near = std::max<int>(1, int(kPanelBytes / panel_bytes) / at_once) * at_once;
    const int blocks_near = std::max<int>(1, int(kRowBytes / (x.stride * blocks.height)) / 2) * 2;
    // Tiles 0 to 3 hold sums, 4 inputs, 6 and 7 weights, 5 either.
    const TileShapes shapes(blocks.height, 4 + n_inputs);
    _tile_loadconfig(&shapes);
    alignas(64) int32_t sums[4 * 256];
    for (int first = 0; first < blocks.n; first += blocks_near)
        for (int near = begin; near < end; near += panels_near)
            for (int block = first; block < std::min(blocks.n, first + blocks_near); block += n_inputs)
                for (int at = near; at < std::min(end, near + panels_near); at += at_once) {
                    const int panel = std::min(at, end - at_once);
                    const char *w = (const char *)m.panel(panel);
                    const char *ahead = block ? nullptr : panel + at_once < end ? m.panel(panel + at_once) : m.next;
                    const auto inputs = [&](int b) { return (const char *)x.rows + blocks.begin(b) * x.stride; };
                    if (n_inputs == 1)
                        one_by_four(inputs(block), x.stride, w, panel_bytes, m.starts + panel * 16, sums);
                    else
                        two_by_two(inputs(block), inputs(block + 1), x.stride, w, panel_bytes, m.starts + panel * 16, sums, ahead);
                    for (int part = 0; part < 4; part++)
                        write(m, x, blocks.begin(block + part / at_once), blocks.height, sums + part * 256, out, stride, panel + part % at_once);
                }
    _tile_release();
}

void multiply(const Matrix &m, const Inputs &x, int rows, float *out, size_t stride, int begin, int end) {
    if (!m.ints || m.k % kTileBytes || rows < kLeastRows || end - begin < 4) return heed::avx512_kernels()->multiply(m, x, rows, out, stride, begin, end);
    multiply_tiles(m, x, RowBlocks(rows), out, stride, begin, end);
}

// Linux allocates tile memory for a process only on request.
bool may_use_tiles() {
    constexpr int kAsk = 0x1023, kTiles = 18;
    return syscall(SYS_arch_prctl, kAsk, kTiles) == 0;
}

bool has_tiles() {
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1) && may_use_tiles();
}

Kernels with_tiles() {
    Kernels kernels = *heed::avx512_kernels();
    kernels.name = "amx";
    kernels.multiply = multiply;
    return kernels;
}

}  // namespace HEED_ISA

const heed::Kernels *heed::amx_kernels() {
    static const bool is_here = avx512_kernels() && HEED_ISA::has_tiles();
    if (!is_here) return nullptr;
    static const Kernels kernels = HEED_ISA::with_tiles();
    return &kernels;
}
#else
const heed::Kernels *heed::amx_kernels() { return nullptr; }
#endif
