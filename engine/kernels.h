// The kernels of an instruction set: loops over rows of numbers, without the model.
//
// Rows of floats are padded with zeros to a multiple of 16. kernels.inc has the code for all
// instruction sets; model.cpp makes a Transformer of them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace heed {

inline int padded(int n) { return (n + 15) / 16 * 16; }

enum class Activation : int32_t { none, relu, gelu, swiglu };

// A weight matrix (n, k) in panels of 16 output columns.
// int8, ±kMostInt: panel p, inputs 4g … 4g+3, column c at [((p * k4 + g) * 16 + c) * 4], k4 = ceil(k / 4);
// float32: panel p, input i, column c at [(p * k + i) * 16 + c].
struct Matrix {
    int32_t n = 0, k = 0;
    const int8_t *ints = nullptr;     // either these, with a scale for each column …
    const float *scales = nullptr;    // (padded(n),)
    const float *floats = nullptr;    // … or these
    const float *bias = nullptr;      // (padded(n),), or null
    const int32_t *starts = nullptr;  // where the sums of each column begin, if the kernels have `starts`
    const char *next = nullptr;       // the weights that are most likely multiplied after these, or null
    int panels() const { return (n + 15) / 16; }
    int groups() const { return (k + 3) / 4; }
    size_t panel_bytes() const { return size_t(floats ? k : groups()) * 64; }
    const char *panel(int p) const { return (floats ? (const char *)floats : (const char *)ints) + p * panel_bytes(); }
};

// The largest of the rounded numbers, weights and inputs: see avx2.cpp.
constexpr float kMostInt = 63.0f;

// Rows in the form that a kernel multiplies: int8 with a scale for each row, or floats.
struct Inputs {
    const void *rows = nullptr;
    const float *scales = nullptr;
    size_t stride = 0;  // bytes from row to row
};

// Words that hold the numbers of a head in bfloat16: see `Kernels::to_bfloat16`.
inline int bfloat16_words(int d) { return (d + 31) / 32 * 16; }

// Keys and values that a query reads, each by a pointer: all heads together.
struct Remembered {
    const float *const *keys, *const *values;
    int n;
    bool is_bfloat16;
    const float *const *next_keys, *const *next_values;  // those that the next query may read, or any
};

struct Kernels {
    const char *name;
    // Corrections for kernels with shifted inputs, subtracted before summing; else null.
    void (*starts)(const Matrix &, int32_t *starts);
    // Bytes of a quantized row of k numbers.
    size_t (*quantized_stride)(int k);
    // x := activation(x), then symmetric to ±kMostInt by the row's largest magnitude.
    // swiglu turns rows of 2k numbers, gate first, into k. q null: only the activation.
    void (*quantize)(float *x, size_t stride, int rows, int k, Activation, void *q, float *scales);
    // out[:, 16 begin … 16 end] = x W^T + b, for panels begin … end.
    void (*multiply)(const Matrix &, const Inputs &, int rows, float *out, size_t stride, int begin, int end);
    // out = LayerNorm(x) for each row of n numbers; x may be out.
    void (*normalize)(const float *x, size_t x_stride, int rows, int n, const float *gain, const float *bias, float eps, float *out, size_t stride);
    void (*add)(float *x, size_t x_stride, const float *y, size_t y_stride, int rows, int n);
    // c = f * before + (1 - f) * z, out = max(c, 0), for n numbers; `of` has those of f before its
    // sigmoid, then those of z. before may be c; the padding of c and out becomes zeros.
    void (*gated_sum)(const float *of, const float *before, int n, float *c, float *out);
    // sum = before + x, mean = sum / count, for n numbers and their padding; before may be sum.
    void (*running_mean)(const float *x, const float *before, int count, int n, float *sum, float *mean);
    // out = sigmoid(i) * x + sigmoid(f) * g, for n numbers; `gates` has those of i, then those of f,
    // `of` those of x, then those of g. The padding of out becomes zeros.
    void (*gated)(const float *gates, const float *of, int n, float *out);
    // Rotate each head of width d by its position's angle (halves layout).
    void (*rotate)(float *x, int n_heads, int d, const float *cosines, const float *sines);
    // Round each head of width d to bfloat16, half to even: of 32 numbers, word i gets i and 16 + i,
    // the first in its lower half. Heads are padded with zeros to a multiple of 32 numbers.
    void (*to_bfloat16)(const float *x, int n_heads, int d, float *out);
    // One query row against n keys and values; scratch (n_heads, padded(n)); weights (n_heads, n) if
    // wanted.
    void (*attend)(const float *query, const Remembered &, int n_heads, int d_k, int d_v, float *scratch, float *out, float *weights);
    // The number that log softmax subtracts from each of n; padding becomes minus infinity.
    // `tops`: sixteen numbers of the row at different places, largest first.
    float (*log_total)(float *x, int n, float *tops);
    // The `count` largest of n numbers x - shift, largest first, the lower id first among equals;
    // at least `count` of x are known to be no less than `least`.
    void (*largest)(const float *x, int n, float shift, float least, int count, float *values, int64_t *ids);
};

const Kernels *portable_kernels();
const Kernels *avx2_kernels();     // null where not compiled in or not supported by this CPU
const Kernels *avxvnni_kernels();  // likewise
const Kernels *avx512_kernels();   // likewise
const Kernels *amx_kernels();      // likewise
const Kernels *neon_kernels();     // likewise
const Kernels *dotprod_kernels();  // likewise

}  // namespace heed
