// The output layer and its softmax in training, with AMX: from decoder states to the normalizer of each
// token and the gradients that pass through the probabilities, without keeping a logit.
//
// With L = S W^T and P = softmax(L): dS = P W and dW = P^T S. A first pass finds the normalizers;
// a second one computes each block of logits once more and uses its probabilities while they are
// in the nearest cache. Factors are rounded to bfloat16, sums are float32 (decision 0014).
#include "kernels.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BF16__)
#define HEED_ISA heed_output_layer_tiles
#include <limits>

#include "threads.h"
#include "tiles.h"

namespace HEED_ISA {

// 32 by 32 logits: those of token t with columns 0 to 15 at [t / 16][0][t % 16], the others in [1].
using Logits = float[2][2][16][16];

void multiply(const Tiles &s, const Tiles &w, int tokens, int columns, int depth, Logits &logits) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const char *row = s[size_t(2 * tokens) * depth], *column = w[size_t(2 * columns) * depth];
    add_products(row, row + size_t(depth) * kTile, column, column + size_t(depth) * kTile, kTile, depth);
    _tile_stored(0, logits[0][0], 64);
    _tile_stored(1, logits[0][1], 64);
    _tile_stored(2, logits[1][0], 64);
    _tile_stored(3, logits[1][1], 64);
}

struct OutputLayer {
    Rows states, weight;
    const int64_t *targets;
    float *totals, *true_logits, *grad_states, *grad_weight;
    int n_threads;

    // Blocks of tokens, and of columns, whose number is even.
    int n_tokens() const { return (states.n + kBlock - 1) / kBlock; }
    int n_columns() const { return (weight.n + 2 * kBlock - 1) / (2 * kBlock) * 2; }

    void run() const {
        const Tiles s = as_left(states, n_tokens()), s_transposed = as_left_transposed(states, n_tokens());
        const Tiles w = as_right(weight, n_columns()), w_transposed = as_right_transposed(weight, n_columns());
        in_threads(n_tokens(), n_threads, [&](int first, int last, int) {
            prepare_tiles();
            for (int block = first; block < last; block++) find_totals(s, w_transposed, block);
            _tile_release();
        });
        // Memory is taken here, where running out of it can be caught.
        std::vector<Tiles> grads, of_weight;
        for (int i = 0; i < n_threads; i++) {
            grads.emplace_back(size_t(n_tokens()) * 2 * (states.width / 16));
            of_weight.emplace_back(size_t(states.width / 16) * 4);
            grads.back().clear();
        }
        in_threads(n_columns() / 2, n_threads, [&](int first, int last, int part) {
            prepare_tiles();
            for (int pair = first; pair < last; pair++) add_gradients(s, s_transposed, w, w_transposed, 2 * pair, grads[part], of_weight[part]);
            _tile_release();
        });
        write_grad_states(grads);
    }

    // The logarithm of the sum of e^logit, for a block of tokens, and the logits of the targets.
    void find_totals(const Tiles &s, const Tiles &w, int block) const {
        Lanes most[kBlock], sums[kBlock];
        for (int t = 0; t < kBlock; t++) most[t] = all(-std::numeric_limits<float>::max()), sums[t] = all(0.0f);
        alignas(64) Logits logits;
        const int first = block * kBlock, n = std::min(kBlock, states.n - first);
        for (int columns = 0; columns * kBlock < weight.n; columns++) {
            multiply(s, w, block, columns, states.width / 32, logits);
            hide_padding(columns, logits);
            for (int t = 0; t < n; t++) {
                const Lanes one = load(logits[t / 16][0][t % 16]), other = load(logits[t / 16][1][t % 16]), top = larger(one, other);
                if (above(top, most[t])) {
                    const Lanes higher = larger(most[t], top);
                    sums[t] = sums[t] * exponential(most[t] - higher);
                    most[t] = higher;
                }
                sums[t] = sums[t] + exponential(one - most[t]) + exponential(other - most[t]);
                const int64_t column = targets[first + t] - columns * kBlock;
                if (column >= 0 && column < kBlock) true_logits[first + t] = logits[t / 16][column / 16][t % 16][column % 16];
            }
        }
        for (int t = 0; t < n; t++) {
            const float top = maximum(most[t]);
            totals[first + t] = top + std::log(sum(sums[t] * exponential(most[t] - all(top))));
        }
    }

    // Columns behind the last one have no probability.
    void hide_padding(int columns, Logits &logits) const {
        for (int c = std::max(0, weight.n - columns * kBlock); c < kBlock; c++)
            for (int t = 0; t < kBlock; t++) logits[t / 16][c / 16][t % 16][c % 16] = -std::numeric_limits<float>::max();
    }

    // The share of two blocks of columns in dS, as tiles (token, i), and their rows of dW, which are
    // added up as tiles (block, i, half of the columns) of dW^T.
    void add_gradients(const Tiles &s, const Tiles &s_transposed, const Tiles &w, const Tiles &w_transposed, int columns, Tiles &grads, Tiles &of_weight) const {
        const int n_parts = states.width / 16;
        of_weight.clear();
        alignas(64) char left[2][2][kTile], right[2][kTile];  // P of each block, and of one
        for (int tokens = 0; tokens < n_tokens(); tokens++) {
            for (int block = 0; block < 2; block++) {
                find_probabilities(s, w_transposed, tokens, columns + block, left[block], right);
                add_to_weight(s_transposed, tokens, right, of_weight[size_t(block) * n_parts * 2]);
            }
            _tile_loadd(2, left[0][0], 64);
            _tile_loadd(3, left[0][1], 64);
            _tile_loadd(4, left[1][0], 64);
            _tile_loadd(5, left[1][1], 64);
            for (int i = 0; i < n_parts; i++) {
                char *one = grads[size_t(2 * tokens) * n_parts + i], *other = grads[size_t(2 * tokens + 1) * n_parts + i];
                _tile_loadd(0, one, 64);
                _tile_loadd(1, other, 64);
                _tile_loadd(6, w[size_t(columns) * n_parts + i], 64);
                _tile_loadd(7, w[size_t(columns + 1) * n_parts + i], 64);
                _tile_dpbf16ps(0, 2, 6);
                _tile_dpbf16ps(1, 3, 6);
                _tile_dpbf16ps(0, 4, 7);
                _tile_dpbf16ps(1, 5, 7);
                _tile_stored(0, one, 64);
                _tile_stored(1, other, 64);
            }
        }
        for (int c = 0; c < std::min(2 * kBlock, weight.n - columns * kBlock); c++) {
            float *row = grad_weight + size_t(columns * kBlock + c) * weight.width;
            for (int i = 0; i < weight.width; i++) row[i] = ((const float *)of_weight[2 * (size_t(c / kBlock) * n_parts + i / 16) + c % kBlock / 16])[i % 16 * 16 + c % 16];
        }
    }

    // The probabilities of a block, as the left factor of P W and as the right one of S^T P.
    void find_probabilities(const Tiles &s, const Tiles &w, int tokens, int columns, char (&left)[2][kTile], char (&right)[2][kTile]) const {
        alignas(64) Logits logits;
        multiply(s, w, tokens, columns, states.width / 32, logits);
        hide_padding(columns, logits);
        for (int t = 0; t < kBlock; t += 2) {
            Lanes p[2][2];
            for (int i = 0; i < 2; i++) {
                const Lanes total = all(totals[std::min(tokens * kBlock + t + i, states.n - 1)]);
                for (int half = 0; half < 2; half++) p[i][half] = exponential(load(logits[t / 16][half][t % 16 + i]) - total);
                _mm512_store_si512(left[t / 16] + (t % 16 + i) * 64, in_line(p[i][0], p[i][1]));
            }
            for (int half = 0; half < 2; half++) _mm512_store_si512(right[half] + t / 2 * 64, in_pairs(p[0][half], p[1][half]));
        }
    }

    // A block of tokens in dW^T = S^T P.
    void add_to_weight(const Tiles &s_transposed, int tokens, const char (&right)[2][kTile], char *of_weight) const {
        _tile_loadd(6, right[0], 64);
        _tile_loadd(7, right[1], 64);
        for (int i = 0; i < states.width / 16; i++, of_weight += 2 * kTile) {
            _tile_loadd(0, of_weight, 64);
            _tile_loadd(1, of_weight + kTile, 64);
            _tile_loadd(4, s_transposed[size_t(i) * n_tokens() + tokens], 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_stored(0, of_weight, 64);
            _tile_stored(1, of_weight + kTile, 64);
        }
    }

    void write_grad_states(const std::vector<Tiles> &grads) const {
        const int n_parts = states.width / 16;
        for (int t = 0; t < states.n; t++)
            for (int i = 0; i < n_parts; i++) {
                const size_t tile = size_t(t / 16) * n_parts + i;
                Lanes total = load((const float *)grads[0][tile] + t % 16 * 16);
                for (size_t part = 1; part < grads.size(); part++) total = total + load((const float *)grads[part][tile] + t % 16 * 16);
                store(grad_states + size_t(t) * states.width + i * 16, total);
            }
    }
};

const char *run(const OutputLayer &layer) {
    static const bool is_here = has_bfloat16_tiles();
    if (!is_here) return "this processor lacks tiles of bfloat16";
    if (layer.states.n < 1 || layer.weight.n < 1 || layer.states.width < 1 || layer.states.width % 32 || layer.n_threads < 1 || layer.n_threads > 1024) return "there is nothing, the width is no multiple of 32, or the threads are too few or too many";
    for (int t = 0; t < layer.states.n; t++)
        if (layer.targets[t] < 0 || layer.targets[t] >= layer.weight.n) return "a target id is not in the vocabulary";
    try {
        layer.run();
    } catch (const std::exception &) {
        return "there is not enough memory, or there are no more threads";
    }
    return nullptr;
}

}  // namespace HEED_ISA

#endif

// For states (n, width), the output matrix (n_columns, width) and targets (n,): log Σ e^logit and the
// target's logit of each token, (n,), dS (n, width) and dW (n_columns, width), both without the
// terms of the targets. Returns null or an error message.
extern "C" __attribute__((visibility("default"))) const char *heed_output_layer(const float *states, const float *weight, const int64_t *targets, int32_t n, int32_t n_columns, int32_t width, int32_t n_threads, float *totals, float *true_logits, float *grad_states, float *grad_weight) {
#if defined(HEED_ISA)
    return HEED_ISA::run({{states, n, width}, {weight, n_columns, width}, targets, totals, true_logits, grad_states, grad_weight, n_threads});
#else
    (void)states, (void)weight, (void)targets, (void)n, (void)n_columns, (void)width, (void)n_threads, (void)totals, (void)true_logits, (void)grad_states, (void)grad_weight;
    return "heed was compiled without tiles of bfloat16";
#endif
}
