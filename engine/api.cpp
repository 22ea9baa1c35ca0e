// What Python calls, by ctypes (heed/engine/native.py): plain C, so that one library serves every
// Python. Whatever is passed is checked here; each call returns null or what went wrong, in words.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "model.h"

#define HEED_API extern "C" __attribute__((visibility("default")))

namespace {

thread_local std::string said;

const heed::Kernels *kernels_named(const char *name) {
    const heed::Kernels *all[] = {heed::avx512_kernels(), heed::avx2_kernels(), heed::portable_kernels()};
    for (const heed::Kernels *kernels : all)
        if (kernels && (!*name || !std::strcmp(name, kernels->name))) return kernels;
    return nullptr;
}

template <class F>
const char *guarded(const F &f) {
    try {
        said = f();
    } catch (const std::exception &error) {
        said = error.what();
    }
    return said.empty() ? nullptr : said.c_str();
}

const int32_t *column_sums(heed::Model &model, const heed::Matrix &m) {
    auto &sums = model.sums.emplace_back(new int32_t[size_t(m.panels()) * 16]());
    for (int p = 0; p < m.panels(); p++)
        for (int g = 0; g < m.groups(); g++)
            for (int i = 0; i < 64; i++) sums[p * 16 + i / 4] += 128 * m.ints[(size_t(p) * m.groups() + g) * 64 + i];
    return sums.get();
}

bool are_targets(const heed::Model &model, const int32_t *ids, int64_t n) {
    return std::all_of(ids, ids + n, [&](int32_t id) { return id >= 0 && id < model.config.tgt_vocab_size; });
}

}  // namespace

// The instruction set that a name asks for ("" = the best here), or null.
HEED_API const char *heed_kernels(const char *name) {
    const heed::Kernels *kernels = kernels_named(name);
    return kernels ? kernels->name : nullptr;
}

// Matrices: source and target embedding, output; each encoder layer's in, out, expand, contract;
// each decoder layer's in, out, query, memory, cross out, expand, contract. Norms, gain and bias
// each: each encoder layer's self, feed-forward; each decoder layer's self, cross, feed-forward;
// with pre-norm the encoder's and the decoder's own.
// All they point to stays the caller's, and has to stay.
HEED_API const char *heed_model_new(const heed::Config *config, const heed::Matrix *matrices, const float *const *norms, const char *name, int32_t n_threads, heed::Model **out) {
    return guarded([&]() -> std::string {
        const heed::Kernels *kernels = kernels_named(name);
        if (!kernels) return std::string("this processor has no ") + name;
        if (n_threads < 1 || n_threads > 1024) return "threads must be 1 to 1024";
        auto model = std::make_unique<heed::Model>(*config, *kernels, n_threads);
        const auto take = [&](heed::Matrix &m) {
            m = *matrices++;
            m.sums = m.ints && kernels->needs_sums ? column_sums(*model, m) : nullptr;
        };
        const auto take_norm = [&](heed::Norm &norm) { norm.gain = *norms++, norm.bias = *norms++; };
        take(model->embed_src), take(model->embed_tgt), take(model->output);
        for (auto &layer : model->encoder) {
            take(layer.self.in), take(layer.self.out), take(layer.feed_forward.expand), take(layer.feed_forward.contract);
            take_norm(layer.self.norm), take_norm(layer.feed_forward.norm);
        }
        for (auto &layer : model->decoder) {
            take(layer.self.in), take(layer.self.out), take(layer.cross.query), take(layer.cross.memory), take(layer.cross.out);
            take(layer.feed_forward.expand), take(layer.feed_forward.contract);
            take_norm(layer.self.norm), take_norm(layer.cross.norm), take_norm(layer.feed_forward.norm);
        }
        if (config->is_pre_norm) take_norm(model->encoder_norm), take_norm(model->decoder_norm);
        *out = model.release();
        return "";
    });
}

HEED_API void heed_model_delete(heed::Model *model) { delete model; }

// Tables of the first n positions, of the source (0) or the target (1); they stay the caller's.
HEED_API void heed_model_positions(heed::Model *model, int32_t side, const heed::Positions *positions) {
    (side ? model->tgt_positions : model->src_positions) = *positions;
}

HEED_API const char *heed_state_new(heed::Model *model, const int64_t *ids, const int32_t *lengths, int32_t n_sources, int32_t beam_size, heed::State **out) {
    return guarded([&]() -> std::string {
        int64_t total = 0;
        const bool is_limited = model->src_positions.added || model->src_positions.cosines;
        if (n_sources < 1 || beam_size < 1 || int64_t(n_sources) * beam_size > 1 << 20) return "too few or too many rows";
        for (int s = 0; s < n_sources; s++) {
            if (lengths[s] < 1) return "a source has no tokens";
            if (is_limited && lengths[s] > model->src_positions.n) return "a source is longer than its positions";
            total += lengths[s];
        }
        if (total > INT_MAX / 4) return "too many source tokens at once";
        for (int64_t i = 0; i < total; i++)
            if (ids[i] < 0 || ids[i] >= model->config.src_vocab_size) return "a source id is not in the vocabulary";
        *out = new heed::State(*model, ids, lengths, n_sources, beam_size);
        return "";
    });
}

// Target ids that may follow in every shortlist, with their columns of the output and one more, for
// all that are left out. The matrix stays the caller's, and has to stay.
HEED_API const char *heed_model_always(heed::Model *model, const heed::Matrix *matrix, const int32_t *ids, int32_t n) {
    return guarded([&]() -> std::string {
        if (n < 1 || n > model->config.tgt_vocab_size) return "too few or too many ids in a shortlist";
        if (!are_targets(*model, ids, n)) return "an id of a shortlist is not in the vocabulary";
        if (matrix->n != n + 1 || matrix->k != model->output.k || !matrix->ints != !model->output.ints) return "the matrix of a shortlist does not go with the output";
        model->always = {*matrix, {ids, ids + n}};
        model->always.matrix.sums = matrix->ints && model->kernels.needs_sums ? column_sums(*model, *matrix) : nullptr;
        return "";
    });
}

// Target ids that may follow besides, of each source laid end to end.
HEED_API const char *heed_state_shorten(heed::Model *model, heed::State *state, const int32_t *ids, const int32_t *counts, int32_t n_sources) {
    return guarded([&]() -> std::string {
        if (model->always.ids.empty() || n_sources != state->n_sources()) return "the shortlists do not go with the model or the sources";
        int64_t total = 0;
        for (int s = 0; s < n_sources; total += counts[s++])
            if (counts[s] < 0 || counts[s] > model->config.tgt_vocab_size) return "too few or too many ids in a shortlist";
        if (!are_targets(*model, ids, total)) return "an id of a shortlist is not in the vocabulary";
        state->shorten(ids, counts);
        return "";
    });
}

HEED_API void heed_state_delete(heed::State *state) { delete state; }

HEED_API const char *heed_state_step(heed::Model *model, heed::State *state, const int64_t *tokens, int32_t n_tokens, float *log_probs, float *weights) {
    return guarded([&]() -> std::string {
        if (n_tokens != state->rows()) return "there must be one token for each row";
        const bool is_limited = model->tgt_positions.added || model->tgt_positions.cosines;
        if (is_limited && state->position() >= model->tgt_positions.n) return "the target is longer than its positions";
        for (int r = 0; r < n_tokens; r++)
            if (tokens[r] < 0 || tokens[r] >= model->config.tgt_vocab_size) return "a target id is not in the vocabulary";
        state->step(tokens, log_probs, weights);
        return "";
    });
}

HEED_API const char *heed_state_select(heed::State *state, int32_t beam_size, const int64_t *rows, int32_t n_rows, const int64_t *sources, int32_t n_sources) {
    return guarded([&]() -> std::string {
        if (n_rows > 1 << 20) return "too few or too many rows";
        if (n_rows != n_sources * beam_size || (!sources && n_sources != state->n_sources())) return "rows and sources do not go together";
        for (int r = 0; r < n_rows; r++)
            if (rows[r] < 0 || rows[r] >= state->rows()) return "there is no such row";
        for (int s = 0; sources && s < n_sources; s++)
            if (sources[s] < 0 || sources[s] >= state->n_sources()) return "there is no such source";
        state->select(rows, sources, n_sources);
        return "";
    });
}

// The largest numbers of each row; see Kernels::largest.
HEED_API void heed_largest(const char *name, const float *x, int64_t stride, int32_t rows, int32_t n, int32_t count, float *values, int64_t *ids) {
    const heed::Kernels *kernels = kernels_named(name);
    for (int r = 0; r < rows; r++) kernels->largest(x + r * stride, n, count, values + size_t(r) * count, ids + size_t(r) * count);
}
