// Arguments of products in training whose factors are rounded to bfloat16. The loops are linear.inc and
// output_layer.inc, once for each instruction set.
#pragma once
#include <cstdint>

namespace heed {

// x (n, n_in) and W (n_out, n_in).
struct LinearLayer {
    const float *x, *weight;
    int32_t n, n_out, n_in, n_threads;
};

// States (n, width), W (n_columns, width) and targets (n,). The seed chooses the blocks of small
// probabilities that the gradients leave out; 0: none.
struct OutputLayer {
    const float *states, *weight;
    const int64_t *targets;
    uint64_t seed;
    int32_t n, n_columns, width, n_threads;
};

// Each may throw std::bad_alloc.
struct TileKernels {
    const char *name;
    void (*forward)(const LinearLayer &, const float *bias, bool clamps, float *y);
    void (*backward)(const LinearLayer &, const float *y, const float *grad, float *of_x, float *of_weight, float *of_bias);
    void (*output)(const OutputLayer &, float *totals, float *true_logits, float *grad_states, float *grad_weight);
};

// Null if this processor lacks the instructions.
const TileKernels *amx_tiles();
const TileKernels *avx512_tiles();

}  // namespace heed
