// Arguments of attention and dropout in training. The loops are attention.inc and dropout.inc, once for
// each instruction set.
#pragma once
#include <cstdint>

namespace heed {

// A row for each position; a row has all heads, side by side.
struct Attention {
    const float *query, *key, *value;
    const float *cosines, *sines;  // of rotary positions, (length, width); null: none
    const uint8_t *mask;           // (batch, k_len), 1 where reading is allowed; null: everywhere
    int32_t batch, q_len, k_len, n_heads, width;
    int32_t query_stride, memory_stride;  // numbers from a row to the next
    int32_t is_causal, n_threads;
};

// out = residual + x, where a share of x is zero and the rest is scaled up.
struct Dropout {
    const float *x, *residual;  // residual null: zeros
    int64_t n;
    uint64_t seed;
    int32_t n_dropped;  // of 256
    int32_t n_threads;
};

struct TrainingKernels {
    const char *name;
    // context (batch, q_len, n_heads * width); normalizers (batch, n_heads, q_len, 2).
    void (*attend)(const Attention &, float *context, float *normalizers);
    // Rows of gradients have the same stride as those of their tensors.
    void (*attend_backward)(const Attention &, const float *normalizers, const float *grad, float *of_query, float *of_key, float *of_value);
    void (*drop)(const Dropout &, float *out);
};

// Null if this processor lacks the instructions.
const TrainingKernels *training_avx2();
const TrainingKernels *training_avx512();
const TrainingKernels *training_neon();

}  // namespace heed
