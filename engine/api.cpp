// The functions that Python calls by ctypes (heed/engine/library.py): plain C, so that one library
// works with every Python. All arguments are checked here; each call returns null or an error message.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "calls.h"
#include "model.h"
#include "search.h"

#define HEED_API extern "C" __attribute__((visibility("default")))

namespace {

// Of a fixed size, so that even "no memory" can be reported.
thread_local char said[200];

// The sum of this many products of two bytes is less than 2^31.
constexpr int kMostInputs = 1 << 16;
constexpr int kMostRows = 1 << 20;

const heed::Kernels *kernels_named(const char *name) {
    return heed::named({heed::amx_kernels(), heed::avx512_kernels(), heed::avxvnni_kernels(), heed::avx2_kernels(), heed::dotprod_kernels(), heed::neon_kernels(), heed::portable_kernels()}, name);
}

template <class F>
const char *guarded(const F &f) {
    const auto say = [](const char *words) { std::snprintf(said, sizeof said, "%s", words); };
    try {
        say(f().c_str());
    } catch (const std::bad_alloc &) {
        say("there is not enough memory");
    } catch (const std::exception &error) {
        say(error.what());
    }
    return *said ? said : nullptr;
}

[[noreturn]] void refuse(const std::string &words) { throw std::invalid_argument(words); }

void check_range(const char *name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) refuse(std::string(name) + " must be " + std::to_string(least) + " to " + std::to_string(most) + ", but is " + std::to_string(value));
}

// Before anything is allocated.
void check_config(const heed::Config &c) {
    check_range("d_model", c.d_model, 1, kMostInputs);
    check_range("d_ff", c.d_ff, 1, kMostInputs);
    check_range("n_heads", c.n_heads, 1, kMostInputs);
    check_range("n_heads * d_k", int64_t(c.n_heads) * c.d_k, 1, kMostInputs);
    check_range("n_heads * d_v", int64_t(c.n_heads) * c.d_v, 1, kMostInputs);
    check_range("n_encoder_layers", c.n_encoder_layers, 0, 1000);
    check_range("n_decoder_layers", c.n_decoder_layers, 1, 1000);
    check_range("src_vocab_size", c.src_vocab_size, 1, kMostRows);
    check_range("tgt_vocab_size", c.tgt_vocab_size, 1, kMostRows);
    check_range("activation", c.activation, 0, int(heed::Activation::swiglu));
    if (c.is_rotary && c.d_k % 2) refuse("d_k must be even for rotary positions");
    check_range("target_reading", c.target_reading, 0, int(heed::TargetReading::ssru));
    if (c.is_one_stack && c.is_recurrent()) refuse("a decoder-only model has no recurrent layers");
    if (c.is_recurrent()) check_range("2 * d_model", 2 * int64_t(c.d_model), 1, kMostInputs);
    if (c.is_one_stack && c.n_encoder_layers) refuse("a decoder-only model has no encoder layers");
    if (c.is_same_layer && c.n_encoder_layers != c.n_decoder_layers) refuse("there must be an encoder layer for each decoder layer");
}

void check_matrix(const heed::Matrix &m, int index, int n, int k) {
    const auto shape = [](int n, int k) { return std::to_string(n) + " x " + std::to_string(k); };
    const std::string name = "matrix " + std::to_string(index);
    if (m.n != n || m.k != k) refuse(name + " must be " + shape(n, k) + " by the config, but is " + shape(m.n, m.k));
    if (!m.ints == !m.floats || !m.ints != !m.scales) refuse(name + " must have either floats, or ints and scales");
}

void check_positions(const heed::Config &c, const heed::Positions &p, int64_t n, const char *what) {
    if (!p.cosines == !!c.is_rotary || !p.sines == !!c.is_rotary) refuse("the positions are not of the model's kind");
    if (n > p.n && (p.added || p.cosines)) refuse(std::string(what) + " is longer than its positions");
}

void check_targets(const heed::Config &c, const int64_t *ids, int64_t n) {
    if (!std::all_of(ids, ids + n, [&](int64_t id) { return id >= 0 && id < c.tgt_vocab_size; })) refuse("a target id is not in the vocabulary");
}

void check_best(const heed::Config &c, const heed::Best &best) {
    if (best.count < 0 || best.count > c.tgt_vocab_size) refuse("more scores are asked for than a row has");
    if (best.n_forbidden < 0 || best.n_forbidden > kMostRows) refuse("too many ids are forbidden");
    check_targets(c, best.forbidden, best.n_forbidden);
}

void check_search(const heed::State &state, const heed::SearchOptions &options) {
    if (state.taken()) refuse("there are tokens already");
    check_range("n_best", options.n_best, 1, state.beam_size());
    check_range("early_stopping", options.early_stopping, 0, int(heed::EarlyStopping::never));
    check_range("n_forbidden", options.n_forbidden, 0, kMostRows);
    check_targets(state.config(), options.forbidden, options.n_forbidden);
    check_targets(state.config(), &options.bos_id, 1), check_targets(state.config(), &options.eos_id, 1);
    check_range("min_length", options.min_length, 0, kMostRows), check_range("no_repeat_ngram_size", options.no_repeat_ngram_size, 0, kMostRows);
    check_range("prefix_len", options.prefix_len, 0, kMostRows), check_range("n_slots", options.n_slots, 0, kMostRows);
    const int64_t n_sources = state.n_sources(), n_slots = options.n_slots;
    for (int64_t i = 0; i < n_sources * options.prefix_len; i++)
        if (options.prefixes[i] != -1) check_targets(state.config(), options.prefixes + i, 1);
    check_targets(state.config(), options.slots, n_slots);
    for (int64_t i = 0; i < n_sources * n_slots; i++) check_range("a slot that closes a pair", options.closers[i], 0, n_slots - 1);
    for (int s = 0; s < state.n_sources(); s++) check_range("a limit", options.limits[s], 1, int64_t(options.n_penalties) - 1);
}

void check_scored(const heed::State &state, int n_rows) {
    if (n_rows < 1 || n_rows != state.scored()) refuse("the number of rows differs from that of the last step");
}

void check_going(const heed::Search &search) {
    if (search.has_failed() || search.n_sources() != search.state().n_sources()) refuse("the search cannot go on");
}

// The matrix with the start values of its sums, for kernels that need them.
heed::Matrix prepared(heed::Model &model, heed::Matrix m) {
    m.starts = nullptr, m.next = nullptr;
    if (m.ints && model.kernels.starts) {
        std::unique_ptr<int32_t[]> starts(new int32_t[size_t(m.panels()) * 16]);
        model.kernels.starts(m, starts.get());
        m.starts = starts.get();
        model.starts.push_back(std::move(starts));
    }
    return m;
}

bool are_targets(const heed::Model &model, const int32_t *ids, int64_t n) {
    return std::all_of(ids, ids + n, [&](int32_t id) { return id >= 0 && id < model.config.tgt_vocab_size; });
}

}  // namespace

// The instruction set of a name ("" = the best here), or null.
HEED_API const char *heed_kernels(const char *name) {
    const heed::Kernels *kernels = kernels_named(name);
    return kernels ? kernels->name : nullptr;
}

// Matrices: source and target embedding, output; each encoder layer's in, out, expand, contract;
// each decoder layer's in, out, query, memory, cross out, expand, contract. Norms, gain and bias
// each: each encoder layer's self, feed-forward; each decoder layer's self, cross, feed-forward;
// with pre-norm the encoder's and the decoder's own. A decoder-only model has those of the decoder
// without query, memory, cross out and cross. Recurrent decoder layers have one matrix instead of in
// and out; if the mean has a feed-forward network, the two matrices of that come before it.
// The caller owns all arrays, and must keep them.
HEED_API const char *heed_model_new(const heed::Config *config, const heed::Matrix *matrices, int32_t n_matrices, const float *const *norms, int32_t n_norms, const char *name, int32_t n_threads, heed::Model **out) {
    return guarded([&]() -> std::string {
        const heed::Kernels *kernels = kernels_named(name);
        if (!kernels) return std::string("this processor has no ") + name;
        if (n_threads < 1 || n_threads > 1024) return "threads must be 1 to 1024";
        check_config(*config);
        const int has_cross = !config->is_one_stack;
        const int in_decoder = config->is_recurrent() ? (config->reading() == heed::TargetReading::average_feed_forward ? 8 : 6) : 4 + 3 * has_cross;
        const int matrices_wanted = 3 + 4 * config->n_encoder_layers + in_decoder * config->n_decoder_layers;
        const int norms_wanted = 2 * (2 * config->n_encoder_layers + (2 + has_cross) * config->n_decoder_layers + (config->is_pre_norm ? 1 + has_cross : 0));
        check_range("n_matrices", n_matrices, matrices_wanted, matrices_wanted);
        check_range("n_norms", n_norms, norms_wanted, norms_wanted);
        auto model = std::make_unique<heed::Model>(*config, *kernels, n_threads);
        const int d_model = config->d_model, keys = config->key_width(), values = config->value_width();
        const int inner = config->d_ff * (config->activation == int(heed::Activation::swiglu) ? 2 : 1);
        const heed::Matrix *next = matrices;
        const auto take_table = [&](heed::Matrix &m, int n, int k) {
            m = *next;
            check_matrix(m, int(next++ - matrices), n, k);
        };
        const auto take = [&](heed::Matrix &m, int n, int k) {
            take_table(m, n, k);
            m = prepared(*model, m);
        };
        const auto take_norm = [&](heed::Norm &norm) {
            norm.gain = *norms++, norm.bias = *norms++;
            if (!norm.gain || !norm.bias) refuse("a norm must have gain and bias");
        };
        take_table(model->embed_src, config->src_vocab_size, d_model), take_table(model->embed_tgt, config->tgt_vocab_size, d_model);
        take(model->output, config->tgt_vocab_size, d_model);
        const auto take_self = [&](heed::SelfAttention &self) { take(self.in, 2 * keys + values, d_model), take(self.out, d_model, values); };
        const auto take_feed_forward = [&](heed::FeedForward &layer) { take(layer.expand, inner, d_model), take(layer.contract, d_model, config->d_ff); };
        for (auto &layer : model->encoder) {
            take_self(layer.self), take_feed_forward(layer.feed_forward);
            take_norm(layer.self.norm), take_norm(layer.feed_forward.norm);
        }
        for (auto &layer : model->decoder) {
            if (config->reading() == heed::TargetReading::average_feed_forward) take_feed_forward(layer.average);
            if (config->is_recurrent()) take(layer.self.in, 2 * d_model, config->is_average() ? 2 * d_model : d_model);
            else take_self(layer.self);
            if (has_cross) take(layer.cross.query, keys, d_model), take(layer.cross.memory, keys + values, d_model), take(layer.cross.out, d_model, values);
            take_feed_forward(layer.feed_forward);
            take_norm(layer.self.norm);
            if (has_cross) take_norm(layer.cross.norm);
            take_norm(layer.feed_forward.norm);
        }
        if (config->is_pre_norm && has_cross) take_norm(model->encoder_norm);
        if (config->is_pre_norm) take_norm(model->decoder_norm);
        model->link();
        *out = model.release();
        return "";
    });
}

// Returns unused memory of batches to the system, and the number of its bytes to the caller.
HEED_API int64_t heed_give_back() { return (int64_t)heed::Blocks::give_back(); }

HEED_API void heed_model_delete(heed::Model *model) { delete model; }

// Positions are tables of the first n, for this call only: of sources, or of targets if the ids are
// prompts that a decoder-only model continues.
HEED_API const char *heed_state_new(heed::Model *model, const heed::Positions *positions, const int64_t *ids, const int32_t *lengths, int32_t n_sources, int32_t beam_size, heed::State **out, int32_t are_prompts) {
    return guarded([&]() -> std::string {
        const int least = model->config.is_one_stack ? 0 : 1;
        int64_t total = 0;
        if (are_prompts && !model->config.is_one_stack) return "prompts are read by a decoder-only model";
        if (n_sources < 1 || beam_size < 1 || int64_t(n_sources) * beam_size > kMostRows) return "too few or too many rows";
        for (int s = 0; s < n_sources; s++) {
            if (lengths[s] < least) return "a source has no tokens";
            check_positions(model->config, *positions, lengths[s], "a source");
            total += lengths[s];
        }
        if (total > INT_MAX / 4) return "too many source tokens at once";
        for (int64_t i = 0; i < total; i++)
            if (ids[i] < 0 || ids[i] >= (are_prompts ? model->config.tgt_vocab_size : model->config.src_vocab_size)) return "a source id is not in the vocabulary";
        *out = new heed::State(*model, *positions, ids, lengths, n_sources, beam_size, are_prompts);
        return "";
    });
}

// Target ids in every shortlist, with their columns of the output and one more, for
// all other ids. The caller owns the matrix, and must keep it.
HEED_API const char *heed_model_always(heed::Model *model, const heed::Matrix *matrix, const int32_t *ids, int32_t n) {
    return guarded([&]() -> std::string {
        if (!model->always.ids.empty()) return "the model has shortlists already";
        if (n < 1 || n > model->config.tgt_vocab_size) return "too few or too many ids in a shortlist";
        if (!are_targets(*model, ids, n)) return "an id of a shortlist is not in the vocabulary";
        if (matrix->n != n + 1 || matrix->k != model->output.k || !matrix->ints != !model->output.ints) return "the matrix of a shortlist does not go with the output";
        model->always = {prepared(*model, *matrix), {ids, ids + n}};
        model->link();
        return "";
    });
}

// Further target ids that may follow, of all sources, concatenated.
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

HEED_API const char *heed_state_step(heed::State *state, const heed::Positions *positions, const int64_t *tokens, int32_t n_tokens, const heed::Best *best) {
    return guarded([&]() -> std::string {
        check_best(state->config(), *best);
        if (n_tokens != state->rows()) return "there must be one token for each row";
        check_positions(state->config(), *positions, state->taken() + 1, "the target");
        check_targets(state->config(), tokens, n_tokens);
        state->step(*positions, tokens, *best);
        return "";
    });
}

// Further tokens (n_rows, count), and the log-probs after each of them, if `log_probs` is not null:
// (n_rows, count, tgt_vocab_size), or of the ids `next` alone, both (n_rows, count).
HEED_API const char *heed_state_extend(heed::State *state, const heed::Positions *positions, const int64_t *tokens, int32_t n_rows, int32_t count, const int64_t *next, float *log_probs, float *weights) {
    return guarded([&]() -> std::string {
        if (n_rows != state->rows()) return "there must be one token for each row";
        if (count < 1 || int64_t(n_rows) * count > INT_MAX / 4) return "too few or too many tokens at once";
        check_positions(state->config(), *positions, state->taken() + count, "the target");
        check_targets(state->config(), tokens, int64_t(n_rows) * count);
        if (next && !log_probs) return "there is no room for the log-probs of the next ids";
        if (next) check_targets(state->config(), next, int64_t(n_rows) * count);
        state->extend(*positions, tokens, count, next, log_probs, weights);
        return "";
    });
}

// Weights by which the first tokens, (n_rows, count), read the source; see `State::attention`.
HEED_API const char *heed_state_attention(heed::State *state, const heed::Positions *positions, const int64_t *tokens, int32_t n_rows, int32_t count, int32_t layer, float *weights) {
    return guarded([&]() -> std::string {
        if (n_rows != state->rows()) return "there must be one token for each row";
        if (count < 1 || int64_t(n_rows) * count > INT_MAX / 4) return "too few or too many tokens at once";
        if (state->position()) return "there are tokens already";
        if (layer < 0 || layer >= state->config().n_decoder_layers) return "there is no such layer";
        check_positions(state->config(), *positions, state->taken() + count, "the target");
        check_targets(state->config(), tokens, int64_t(n_rows) * count);
        state->attention(*positions, tokens, count, layer, weights);
        return "";
    });
}

// Log-probs after each row of the last step, (n_rows, tgt_vocab_size).
HEED_API const char *heed_state_log_probs(heed::State *state, float *log_probs, int32_t n_rows) {
    return guarded([&]() -> std::string {
        check_scored(*state, n_rows);
        state->log_probs(log_probs);
        return "";
    });
}

// Those of n ids for each row, (n_rows, n).
HEED_API const char *heed_state_log_probs_of(heed::State *state, const int64_t *ids, int32_t n_rows, int32_t n, float *log_probs) {
    return guarded([&]() -> std::string {
        check_scored(*state, n_rows);
        if (n < 0) return "the number of ids is negative";
        check_targets(state->config(), ids, int64_t(n_rows) * n);
        state->log_probs_of(ids, n, log_probs);
        return "";
    });
}

// The largest of them, if the step did not find them.
HEED_API const char *heed_state_best(heed::State *state, const heed::Best *best, int32_t n_rows) {
    return guarded([&]() -> std::string {
        check_best(state->config(), *best);
        check_scored(*state, n_rows);
        state->find(*best);
        return "";
    });
}

HEED_API const char *heed_state_select(heed::State *state, const int64_t *rows, int32_t n_rows, const int64_t *sources, int32_t n_sources) {
    return guarded([&]() -> std::string {
        if (n_rows > kMostRows) return "too few or too many rows";
        if (n_sources < 0 || n_rows != int64_t(n_sources) * state->beam_size() || (!sources && n_sources != state->n_sources())) return "rows and sources do not go together";
        for (int r = 0; r < n_rows; r++)
            if (rows[r] < 0 || rows[r] >= state->rows()) return "a row is out of range";
        for (int s = 0; sources && s < n_sources; s++)
            if (sources[s] < 0 || sources[s] >= state->n_sources()) return "a source is out of range";
        state->select(rows, sources, n_sources);
        return "";
    });
}

// The largest numbers of each row; see Kernels::largest.
HEED_API const char *heed_largest(const float *x, int64_t stride, int32_t rows, int32_t n, int32_t count, float *values, int64_t *ids) {
    return guarded([&]() -> std::string {
        if (count < 1 || count > n) return "more scores are asked for than a row has";
        const heed::Kernels *kernels = kernels_named("");
        for (int r = 0; r < rows; r++) kernels->largest(x + r * stride, n, 0.0f, -std::numeric_limits<float>::infinity(), count, values + size_t(r) * count, ids + size_t(r) * count);
        return "";
    });
}

// A beam search of a state that has no tokens yet. The caller keeps the state and all arrays.
HEED_API const char *heed_search_new(heed::State *state, const heed::SearchOptions *options, heed::Search **out) {
    return guarded([&]() -> std::string {
        check_search(*state, *options);
        *out = new heed::Search(*state, *options);
        return "";
    });
}

HEED_API void heed_search_delete(heed::Search *search) { delete search; }

HEED_API const char *heed_search_step(heed::Search *search, const heed::Positions *positions, heed::Progress *progress) {
    return guarded([&]() -> std::string {
        check_going(*search);
        check_positions(search->state().config(), *positions, search->state().taken() + 1, "the target");
        search->step(*positions, *progress);
        return "";
    });
}

// Sources without a result, (n_sources,), leave the search.
HEED_API const char *heed_search_drop(heed::Search *search, const uint8_t *is_dropped, int32_t n_sources) {
    return guarded([&]() -> std::string {
        check_going(*search);
        if (n_sources != search->n_sources()) return "there must be one flag for each source";
        search->drop(is_dropped);
        return "";
    });
}

// What was found: tokens, scores and whether it has ended, all (sources of the call, n_best), 0 tokens
// where there is nothing; ids and log-probs, (sources of the call, n_best, n_steps).
HEED_API const char *heed_search_found(const heed::Search *search, int32_t n_steps, int32_t *lengths, double *scores, uint8_t *have_ended, int64_t *ids, float *log_probs) {
    return guarded([&]() -> std::string {
        if (search->has_failed()) return "the search has failed";
        if (n_steps != search->length()) return "the number of steps differs from that of the search";
        size_t place = 0;
        for (const auto &kept : search->found())
            for (int i = 0; i < search->n_best(); i++, place++) {
                lengths[place] = 0;
                if (i >= int(kept.size())) continue;
                const heed::Hypothesis &one = kept[i];
                lengths[place] = int32_t(one.ids.size()), scores[place] = one.score, have_ended[place] = one.has_ended;
                std::copy(one.ids.begin(), one.ids.end(), ids + place * n_steps);
                std::copy(one.log_probs.begin(), one.log_probs.end(), log_probs + place * n_steps);
            }
        return "";
    });
}
