// The functions that Python calls in training (heed/model/fast/attention.py, dropout.py): plain C.
#include "training.h"

#include "calls.h"

namespace {

const heed::TrainingKernels *kernels(const char *name) { return heed::named({heed::training_avx512(), heed::training_avx2(), heed::training_neon()}, name); }

const char *mistake_in(const heed::Attention &a) {
    if (a.batch < 1 || a.q_len < 1 || a.k_len < 1 || a.n_heads < 1 || a.n_threads < 1 || a.n_threads > 1024) return "there is nothing, or the threads are too few or too many";
    if (a.width < 1 || a.width % (a.cosines ? 32 : 16)) return "the width of a head is no multiple of 16, or of 32 with rotary positions";
    if (a.query_stride < a.n_heads * a.width || a.memory_stride < a.n_heads * a.width) return "rows overlap";
    if ((a.is_causal || a.cosines) && a.q_len != a.k_len) return "queries and keys differ in number";
    if (!a.cosines != !a.sines) return "cosines or sines are missing";
    return nullptr;
}

const char *mistake_in(const heed::Dropout &d) {
    if (d.n < 1 || d.n_dropped < 0 || d.n_dropped > 255) return "there is nothing, or more than 255 of 256 are dropped";
    return heed::mistake_in_threads(d.n_threads);
}

}  // namespace

// Each call returns null or an error message. `name` is the instruction set, "" = the best here.
extern "C" __attribute__((visibility("default"))) const char *heed_attention_forward(const heed::Attention *attention, const char *name, float *context, float *normalizers) {
    return heed::call(mistake_in(*attention), kernels(name), [&](const heed::TrainingKernels &k) { k.attend(*attention, context, normalizers); });
}

extern "C" __attribute__((visibility("default"))) const char *heed_attention_backward(const heed::Attention *attention, const char *name, const float *normalizers, const float *grad, float *of_query, float *of_key, float *of_value) {
    return heed::call(mistake_in(*attention), kernels(name), [&](const heed::TrainingKernels &k) { k.attend_backward(*attention, normalizers, grad, of_query, of_key, of_value); });
}

extern "C" __attribute__((visibility("default"))) const char *heed_dropout(const heed::Dropout *dropout, const char *name, float *out) {
    return heed::call(mistake_in(*dropout), kernels(name), [&](const heed::TrainingKernels &k) { k.drop(*dropout, out); });
}

// Whether this processor has one of the instruction sets: null, or why not.
extern "C" __attribute__((visibility("default"))) const char *heed_training_is_here() { return kernels("") ? nullptr : "this processor has none of AVX2, AVX-512 and NEON"; }
