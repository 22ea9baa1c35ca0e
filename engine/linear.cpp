// A linear layer in training, with AMX, and max(0, x) behind it if there is one: its output and its
// gradients. Factors are rounded to bfloat16, sums are float32 (decision 0014).
#include "kernels.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BF16__)
#define HEED_ISA heed_linear_tiles
#include "threads.h"
#include "tiles.h"

namespace HEED_ISA {

// A matrix of floats, rows behind each other.
struct Result {
    float *data;
    int n, width;
};

// Rows that go through a product together, so that their tiles stay in the cache.
constexpr int kRowsAtOnce = 256;

// out = left right + bias, which may be null, or out += left right; `depth` tiles are added up for each
// of `out`.
void multiply(const Tiles &left, const Tiles &right, int depth, bool is_right_by_column, const float *bias, bool adds, const Result &out) {
    alignas(64) static const float kNoBias[2 * kRows] = {};
    alignas(64) float block[2 * kRows][2 * kRows];
    const int n_columns = out.width / kRows;
    // Tiles of a column of tiles follow each other, or those of a row do.
    const size_t apart = is_right_by_column ? depth : 1, step = size_t(is_right_by_column ? 1 : n_columns) * kTile;
    prepare_tiles();
    for (int column = 0; column < n_columns; column += 2) {
        const float *start = bias ? bias + column * kRows : kNoBias;
        for (int row = 0; row < out.n; row += 2 * kRows) {
            const bool is_whole = row + 2 * kRows <= out.n;
            float *to = is_whole ? out.data + size_t(row) * out.width + column * kRows : block[0];
            const size_t stride = is_whole ? out.width : 2 * kRows, bytes = stride * sizeof(float);
            if (adds) {
                _tile_loadd(0, to, bytes);
                _tile_loadd(1, to + kRows, bytes);
                _tile_loadd(2, to + kRows * stride, bytes);
                _tile_loadd(3, to + kRows * stride + kRows, bytes);
            } else {
                _tile_loadd(0, start, 0);
                _tile_loadd(1, start + kRows, 0);
                _tile_loadd(2, start, 0);
                _tile_loadd(3, start + kRows, 0);
            }
            add_products(left[size_t(row / kRows) * depth], left[size_t(row / kRows + 1) * depth], right[column * apart], right[(column + 1) * apart], step, depth);
            _tile_stored(0, to, bytes);
            _tile_stored(1, to + kRows, bytes);
            _tile_stored(2, to + kRows * stride, bytes);
            _tile_stored(3, to + kRows * stride + kRows, bytes);
            for (int r = row; !is_whole && r < out.n; r++) std::memcpy(out.data + size_t(r) * out.width + column * kRows, block[r - row], sizeof block[0]);
        }
    }
    _tile_release();
}

int blocks(int n) { return (n + kBlock - 1) / kBlock; }

const char *mistake_in(int n, int n_out, int n_in, int n_threads) {
    static const bool is_here = has_bfloat16_tiles();
    if (!is_here) return "this processor lacks tiles of bfloat16";
    if (n < 1 || n_out < 1 || n_in < 1 || n_out % kBlock || n_in % kBlock) return "there is nothing, or a width is no multiple of 32";
    return n_threads < 1 || n_threads > 1024 ? "the threads are too few or too many" : nullptr;
}

template <class F>
const char *guarded(const F &f) {
    try {
        f();
    } catch (const std::bad_alloc &) {
        return "there is not enough memory";
    }
    return nullptr;
}

// f(part, row, rows) for pieces of at most kRowsAtOnce of n rows, those of a part one after the other.
template <class F>
void for_rows(int n, int n_parts, const F &f) {
    const int n_pieces = (n + kRowsAtOnce - 1) / kRowsAtOnce;
    in_threads(n_pieces, n_parts, [&](int first, int last, int part) {
        for (int piece = first; piece < last; piece++) f(part, piece * kRowsAtOnce, std::min(kRowsAtOnce, n - piece * kRowsAtOnce));
    });
}
int parts(int n, int n_threads) { return std::min(n_threads, (n + kRowsAtOnce - 1) / kRowsAtOnce); }

// Memory of `n` tiles for each of `n_parts`.
std::vector<Tiles> for_each(int n_parts, size_t n) {
    std::vector<Tiles> all;
    for (int part = 0; part < n_parts; part++) all.emplace_back(n);
    return all;
}

// max(0, x) of each number.
void clamp(float *x, size_t n) {
    for (size_t i = 0; i < n; i += kRows) store(x + i, larger(load(x + i), all(0.0f)));
}

// sums += the sum of all rows.
void add_up(const Rows &x, float *sums) {
    for (int row = 0; row < x.n; row++)
        for (int column = 0; column < x.width; column += kRows) store(sums + column, load(sums + column) + x.part(row, column));
}

void add(const std::vector<float> &from, float *to) {
    for (size_t i = 0; i < from.size(); i++) to[i] += from[i];
}

const char *forward(const float *x, const float *weight, const float *bias, int n, int n_out, int n_in, bool clamps, int n_threads, float *y) {
    if (const char *mistake = mistake_in(n, n_out, n_in, n_threads)) return mistake;
    return guarded([&] {
        const int n_parts = parts(n, n_threads);
        const Tiles right = as_right_transposed({weight, n_out, n_in}, n_out / kBlock);
        std::vector<Tiles> lefts = for_each(n_parts, kRowsAtOnce / kRows * (n_in / 32));
        for_rows(n, n_parts, [&](int part, int row, int rows) {
            fill_left({x + size_t(row) * n_in, rows, n_in}, blocks(rows), lefts[part]);
            float *to = y + size_t(row) * n_out;
            multiply(lefts[part], right, n_in / 32, true, bias, false, {to, rows, n_out});
            if (clamps) clamp(to, size_t(rows) * n_out);
        });
    });
}

// What one thread adds up of the gradients by W and the bias.
struct Share {
    std::vector<float> of_weight, of_bias;
    bool is_begun = false;
};

const char *backward(const float *x, const float *weight, const float *y, const float *grad, int n, int n_out, int n_in, int n_threads, float *of_x, float *of_weight, float *of_bias) {
    if (const char *mistake = mistake_in(n, n_out, n_in, n_threads)) return mistake;
    return guarded([&] {
        const int n_parts = parts(n, n_threads);
        const Tiles right = as_right({weight, n_out, n_in}, n_out / kBlock);
        std::vector<Tiles> lefts = for_each(n_parts, kRowsAtOnce / kRows * (n_out / 32)), others = for_each(n_parts, kRowsAtOnce / 32 * (n_in / kRows));
        std::vector<Share> shares(n_parts);
        // The first part adds up in place.
        for (int part = 0; part < n_parts; part++) {
            if (of_weight && part) shares[part].of_weight.resize(size_t(n_out) * n_in);
            if (of_bias) shares[part].of_bias.resize(n_out);
        }
        for_rows(n, n_parts, [&](int part, int row, int rows) {
            const int depth = blocks(rows);
            const size_t start = size_t(row) * n_out;
            const Rows of_y{grad + start, rows, n_out, y ? y + start : nullptr};
            Share &share = shares[part];
            if (of_bias) add_up(of_y, share.of_bias.data());
            if (of_x) {
                fill_left(of_y, depth, lefts[part]);
                multiply(lefts[part], right, n_out / 32, false, nullptr, false, {of_x + size_t(row) * n_in, rows, n_in});
            }
            if (of_weight) {
                fill_left_transposed(of_y, depth, lefts[part]);
                fill_right({x + size_t(row) * n_in, rows, n_in}, depth, others[part]);
                multiply(lefts[part], others[part], depth, false, nullptr, share.is_begun, {part ? share.of_weight.data() : of_weight, n_out, n_in});
                share.is_begun = true;
            }
        });
        if (of_bias) std::fill(of_bias, of_bias + n_out, 0.0f);
        for (const Share &share : shares) add(share.of_weight, of_weight), add(share.of_bias, of_bias);
    });
}

}  // namespace HEED_ISA
#endif

// y (n, n_out) = x (n, n_in) W^T + b, of W (n_out, n_in) and b (n_out,) or null, and 0 for what is
// negative if it `clamps`. Returns null or an error message.
extern "C" __attribute__((visibility("default"))) const char *heed_linear_forward(const float *x, const float *weight, const float *bias, int32_t n, int32_t n_out, int32_t n_in, int32_t clamps, int32_t n_threads, float *y) {
#if defined(HEED_ISA)
    return HEED_ISA::forward(x, weight, bias, n, n_out, n_in, clamps, n_threads, y);
#else
    (void)x, (void)weight, (void)bias, (void)n, (void)n_out, (void)n_in, (void)clamps, (void)n_threads, (void)y;
    return "heed was compiled without tiles of bfloat16";
#endif
}

// Its gradients by x, (n, n_in), W, (n_out, n_in), and b, (n_out,), each where not null, from that by y.
// y is null if nothing was clamped.
extern "C" __attribute__((visibility("default"))) const char *heed_linear_backward(const float *x, const float *weight, const float *y, const float *grad, int32_t n, int32_t n_out, int32_t n_in, int32_t n_threads, float *of_x, float *of_weight, float *of_bias) {
#if defined(HEED_ISA)
    return HEED_ISA::backward(x, weight, y, grad, n, n_out, n_in, n_threads, of_x, of_weight, of_bias);
#else
    (void)x, (void)weight, (void)y, (void)grad, (void)n, (void)n_out, (void)n_in, (void)n_threads, (void)of_x, (void)of_weight, (void)of_bias;
    return "heed was compiled without tiles of bfloat16";
#endif
}
