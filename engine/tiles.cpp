// The functions that Python calls in training (heed/model/fast/tiles.py): plain C, checked here.
#include "tiles.h"

#include "calls.h"

namespace {

const heed::TileKernels *kernels(const char *name) { return heed::named({heed::amx_tiles(), heed::avx512_tiles()}, name); }

const char *mistake_in(const heed::LinearLayer &layer) {
    if (layer.n < 1) return "there is nothing";
    if (layer.n_out < 1 || layer.n_in < 1 || layer.n_out % 32 || layer.n_in % 32) return "a width is no multiple of 32";
    return heed::mistake_in_threads(layer.n_threads);
}

const char *mistake_in(const heed::OutputLayer &layer) {
    if (layer.n < 1) return "there is nothing";
    if (layer.n_columns < 1 || layer.width < 1 || layer.width % 32) return "there is no column, or the width is no multiple of 32";
    for (int t = 0; t < layer.n; t++)
        if (layer.targets[t] < 0 || layer.targets[t] >= layer.n_columns) return "a target id is not in the vocabulary";
    return heed::mistake_in_threads(layer.n_threads);
}

}  // namespace

// Each call returns null or an error message. `name` is the instruction set, "" = the best here.

// y (n, n_out) = x W^T + b, with b (n_out,) or null; negative numbers become 0 if it `clamps`.
extern "C" __attribute__((visibility("default"))) const char *heed_linear_forward(const heed::LinearLayer *layer, const char *name, const float *bias, int32_t clamps, float *y) {
    return heed::call(mistake_in(*layer), kernels(name), [&](const heed::TileKernels &k) { k.forward(*layer, bias, clamps, y); });
}

// Its gradients of x, W and b, each if not null, from that of y. y is null if it did not clamp.
extern "C" __attribute__((visibility("default"))) const char *heed_linear_backward(const heed::LinearLayer *layer, const char *name, const float *y, const float *grad, float *of_x, float *of_weight, float *of_bias) {
    return heed::call(mistake_in(*layer), kernels(name), [&](const heed::TileKernels &k) { k.backward(*layer, y, grad, of_x, of_weight, of_bias); });
}

// log Σ e^logit and the target's logit of each token, (n,), dS (n, width) and dW (n_columns, width), both
// without the terms of the targets.
extern "C" __attribute__((visibility("default"))) const char *heed_output_layer(const heed::OutputLayer *layer, const char *name, float *totals, float *true_logits, float *grad_states, float *grad_weight) {
    return heed::call(mistake_in(*layer), kernels(name), [&](const heed::TileKernels &k) { k.output(*layer, totals, true_logits, grad_states, grad_weight); });
}

// Whether this processor has that instruction set: null, or why not.
extern "C" __attribute__((visibility("default"))) const char *heed_tiles_are_here(const char *name) { return kernels(name) ? nullptr : "this processor lacks products of bfloat16"; }
