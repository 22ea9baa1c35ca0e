// What Python calls (engine/api.cpp), called with models, batches and orders made of any bytes.
//
// Whatever they are, they are refused in words or computed: nothing crashes, nothing is read or
// written outside its array, also where memory runs out. Every array has exactly the size that the
// interface promises, so that the sanitizers see a step beyond it. `make soak` builds this with
// clang's libFuzzer; without it, -DHEED_RANDOM draws the bytes at random: fuzz [SECONDS [SEED]].
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

#include "../../engine/model.h"
#include "../../engine/search.h"

using heed::Config;
using heed::Matrix;
using heed::padded;
using heed::Positions;

extern "C" {
const char *heed_kernels(const char *name);
const char *heed_model_new(const Config *, const Matrix *, int32_t, const float *const *, int32_t, const char *, int32_t, heed::Model **);
void heed_model_delete(heed::Model *);
const char *heed_state_new(heed::Model *, const Positions *, const int64_t *, const int32_t *, int32_t, int32_t, heed::State **, int32_t);
void heed_state_delete(heed::State *);
const char *heed_state_step(heed::State *, const Positions *, const int64_t *, int32_t, const heed::Best *);
const char *heed_state_extend(heed::State *, const Positions *, const int64_t *, int32_t, int32_t, const int64_t *, float *, float *);
const char *heed_state_attention(heed::State *, const Positions *, const int64_t *, int32_t, int32_t, int32_t, float *);
const char *heed_state_log_probs(heed::State *, float *, int32_t);
const char *heed_state_best(heed::State *, const heed::Best *, int32_t);
const char *heed_state_select(heed::State *, const int64_t *, int32_t, const int64_t *, int32_t);
const char *heed_model_always(heed::Model *, const Matrix *, const int32_t *, int32_t);
const char *heed_state_shorten(heed::Model *, heed::State *, const int32_t *, const int32_t *, int32_t);
const char *heed_search_new(heed::State *, const heed::SearchOptions *, heed::Search **);
void heed_search_delete(heed::Search *);
const char *heed_search_step(heed::Search *, const Positions *, heed::Progress *);
const char *heed_search_drop(heed::Search *, const uint8_t *, int32_t);
const char *heed_search_found(const heed::Search *, int32_t, int32_t *, double *, uint8_t *, int64_t *, float *);
const char *heed_largest(const float *, int64_t, int32_t, int32_t, int32_t, float *, int64_t *);
}

namespace {

std::atomic<int> allocations_left{-1};  // before one fails; below 0: none does

}  // namespace

void *operator new(size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    if (void *place = std::malloc(size ? size : 1)) return place;
    throw std::bad_alloc();
}
void operator delete(void *place) noexcept { std::free(place); }
void operator delete(void *place, size_t) noexcept { std::free(place); }
extern "C" const char *__asan_default_options() { return "alloc_dealloc_mismatch=0"; }

namespace {

// The fuzzer's bytes as numbers; zeros when they are used up.
struct Bytes {
    const uint8_t *next, *end;

    bool is_over() const { return next == end; }
    int byte() { return is_over() ? 0 : *next++; }
    int up_to(int most) { return byte() % (most + 1); }
    bool is_rare() { return byte() > 244; }
    int32_t any() {
        uint32_t value = 0;
        for (int i = 0; i < 4; i++) value = value << 8 | uint32_t(byte());
        return int32_t(value);
    }
    // Mostly a sound one.
    int32_t number(int least, int most) { return is_rare() ? any() : least + up_to(most - least); }
};

float odd_float(uint32_t random) {
    constexpr float odd[] = {0.0f, -0.0f, 1e-40f, 3e38f, -3e38f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
    return odd[random % 7];
}

// Every array that a model points to.
struct Arrays {
    std::vector<std::vector<float>> floats;
    std::vector<std::vector<int8_t>> ints;
    uint32_t random;
    bool has_odd;

    uint32_t draw() { return random = random * 1664525u + 1013904223u, random >> 8; }
    const float *some_floats(size_t n) {
        std::vector<float> &made = floats.emplace_back(n);
        for (float &x : made) x = has_odd && draw() % 64 == 0 ? odd_float(draw()) : float(int(draw() % 2001) - 1000) / 1000.0f;
        return made.data();
    }
    const int8_t *some_ints(size_t n) {
        std::vector<int8_t> &made = ints.emplace_back(n);
        for (int8_t &x : made) x = int8_t(draw());
        return made.data();
    }
};

Matrix some_matrix(Arrays &arrays, bool is_quantized, bool has_bias, int n, int k) {
    Matrix m;
    m.n = n, m.k = k;
    if (is_quantized) m.ints = arrays.some_ints(size_t(m.panels()) * m.groups() * 64), m.scales = arrays.some_floats(padded(n));
    else m.floats = arrays.some_floats(size_t(m.panels()) * k * 16);
    if (has_bias) m.bias = arrays.some_floats(padded(n));
    return m;
}

void damage(Bytes &bytes, Matrix &m) {
    switch (bytes.up_to(4)) {
        case 0: m.n = bytes.any(); break;
        case 1: m.k = bytes.any(); break;
        case 2: m.ints = nullptr; break;
        case 3: m.floats = nullptr; break;
        case 4: m.scales = nullptr; break;
    }
}

Config some_config(Bytes &bytes) {
    Config c{};
    c.d_model = 1 + bytes.up_to(39), c.n_heads = 1 + bytes.up_to(3), c.d_k = 1 + bytes.up_to(19), c.d_v = 1 + bytes.up_to(79), c.d_ff = 1 + bytes.up_to(39);
    c.is_one_stack = bytes.up_to(1), c.is_causal = c.is_one_stack && bytes.up_to(1);
    c.n_encoder_layers = c.is_one_stack ? 0 : bytes.up_to(2), c.n_decoder_layers = 1 + bytes.up_to(1);
    c.target_reading = c.is_one_stack ? 0 : bytes.up_to(3);
    c.is_pre_norm = bytes.up_to(1), c.activation = bytes.up_to(3), c.is_rotary = bytes.up_to(1), c.is_same_layer = !c.is_one_stack && bytes.up_to(1);
    c.src_vocab_size = 1 + bytes.up_to(39), c.tgt_vocab_size = 1 + bytes.up_to(39);
    c.norm_eps = 1e-6f, c.embedding_scale = 1.0f;
    return c;
}

// A model of a config, or of one that does not fit it; null where it is refused.
heed::Model *some_model(Bytes &bytes, Arrays &arrays, Config &c) {
    c = some_config(bytes);
    const bool is_quantized = bytes.up_to(1), has_bias = bytes.up_to(1);
    const int has_cross = !c.is_one_stack;
    const int d = c.d_model, keys = c.key_width(), values = c.value_width(), inner = c.d_ff * (c.activation == 3 ? 2 : 1);
    std::vector<Matrix> matrices;
    std::vector<const float *> norms;
    const auto add = [&](int n, int k) { matrices.push_back(some_matrix(arrays, is_quantized, has_bias, n, k)); };
    add(c.src_vocab_size, d), add(c.tgt_vocab_size, d), add(c.tgt_vocab_size, d);
    for (int l = 0; l < c.n_encoder_layers + c.n_decoder_layers; l++) {
        if (l < c.n_encoder_layers || !c.is_recurrent()) add(2 * keys + values, d), add(d, values);
        else {
            if (c.reading() == heed::TargetReading::average_feed_forward) add(inner, d), add(d, c.d_ff);
            add(2 * d, c.is_average() ? 2 * d : d);
        }
        if (l >= c.n_encoder_layers && has_cross) add(keys, d), add(keys + values, d), add(d, values);
        add(inner, d), add(d, c.d_ff);
    }
    const int n_norms = 2 * (2 * c.n_encoder_layers + (2 + has_cross) * c.n_decoder_layers + (c.is_pre_norm ? 1 + has_cross : 0));
    for (int i = 0; i < n_norms; i++) norms.push_back(arrays.some_floats(c.width()));
    if (bytes.is_rare()) damage(bytes, matrices[bytes.up_to(int(matrices.size()) - 1)]);
    if (bytes.is_rare()) norms[bytes.up_to(n_norms - 1)] = nullptr;
    // All fields but the last two are int32.
    if (bytes.is_rare()) reinterpret_cast<int32_t *>(&c)[bytes.up_to(15)] = bytes.up_to(1) ? bytes.any() : bytes.up_to(7);
    constexpr const char *names[] = {"", "avxvnni", "avx2", "portable", "abacus"};
    heed::Model *model = nullptr;
    allocations_left = bytes.is_rare() ? bytes.up_to(40) : -1;
    heed_model_new(&c, matrices.data(), int(matrices.size()), norms.data(), n_norms, names[bytes.up_to(4)], bytes.number(1, 3), &model);
    allocations_left = -1;
    return model;
}

Positions some_positions(Bytes &bytes, Arrays &arrays, const Config &c) {
    Positions p;
    const int kind = bytes.is_rare() ? bytes.up_to(2) : c.is_rotary ? 2 : bytes.up_to(1);
    p.n = 1 + bytes.up_to(19);
    if (kind == 1) p.added = arrays.some_floats(size_t(p.n) * c.width());
    if (kind == 2) p.cosines = arrays.some_floats(size_t(p.n) * c.d_k), p.sines = arrays.some_floats(size_t(p.n) * c.d_k);
    return p;
}

// Room for the largest of so many rows.
struct Largest {
    std::vector<float> values;
    std::vector<int64_t> ids, forbidden;
    heed::Best wanted;

    Largest(Bytes &bytes, const Config &c, size_t rows) : forbidden(bytes.up_to(3)) {
        const int count = bytes.number(0, c.tgt_vocab_size);
        values.resize(rows * std::max(0, std::min(count, c.tgt_vocab_size)));
        ids.resize(values.size());
        for (int64_t &id : forbidden) id = bytes.number(-1, c.tgt_vocab_size);
        const int n_forbidden = bytes.is_rare() ? -1 : int(forbidden.size());
        wanted = {count, n_forbidden, values.data(), ids.data(), forbidden.data()};
    }
};

// A batch, and what the caller has to know of it.
struct Batch {
    heed::State *state = nullptr;
    std::vector<int32_t> lengths;
    int beam_size = 0;

    ~Batch() { heed_state_delete(state); }

    void start(Bytes &bytes, heed::Model *model, const Positions &positions, const Config &c) {
        heed_state_delete(state);
        state = nullptr;
        lengths.assign(1 + bytes.up_to(4), 0);
        int64_t total = 0;
        for (int32_t &length : lengths) length = bytes.number(c.is_one_stack ? 0 : 1, 9), total += length > 0 ? length : 0;
        // Numbers that the interface lets pass must be true.
        const bool is_refused_unread = total > std::numeric_limits<int32_t>::max() / 4;
        if (total > 1000 && !is_refused_unread) return;
        std::vector<int64_t> ids(is_refused_unread ? 0 : total);
        for (int64_t &id : ids) id = bytes.number(0, c.src_vocab_size - 1);
        beam_size = bytes.number(1, 4);
        if (beam_size > 4 && beam_size <= 1 << 20) return;
        const bool are_prompts = c.is_one_stack ? bytes.up_to(1) : bytes.is_rare();
        allocations_left = bytes.is_rare() ? bytes.up_to(40) : -1;
        heed_state_new(model, &positions, ids.data(), lengths.data(), int(lengths.size()), beam_size, &state, are_prompts);
        allocations_left = -1;
    }

    void shorten(Bytes &bytes, heed::Model *model, const Config &c) {
        std::vector<int32_t> counts(bytes.is_rare() ? bytes.up_to(6) : lengths.size()), ids;
        for (int32_t &count : counts) count = bytes.up_to(9);
        for (int32_t count : counts)
            for (int i = 0; i < count; i++) ids.push_back(bytes.number(0, c.tgt_vocab_size - 1));
        allocations_left = bytes.is_rare() ? bytes.up_to(10) : -1;
        heed_state_shorten(model, state, ids.data(), counts.data(), int(counts.size()));
        allocations_left = -1;
    }

    void step(Bytes &bytes, const Positions &positions, const Config &c) {
        const size_t rows = lengths.size() * beam_size;
        std::vector<int64_t> tokens(bytes.is_rare() ? bytes.up_to(20) : rows);
        for (int64_t &token : tokens) token = bytes.number(0, c.tgt_vocab_size - 1);
        Largest largest(bytes, c, rows);
        allocations_left = bytes.is_rare() ? bytes.up_to(10) : -1;
        heed_state_step(state, &positions, tokens.data(), int(tokens.size()), &largest.wanted);
        allocations_left = -1;
    }

    void extend(Bytes &bytes, const Positions &positions, const Config &c) {
        const int rows = bytes.is_rare() ? bytes.up_to(20) : int(lengths.size()) * beam_size;
        // Numbers that the interface lets pass must be true.
        const int count = bytes.is_rare() ? bytes.any() : bytes.up_to(9);
        if (count > 9 && count <= std::numeric_limits<int32_t>::max() / 4) return;
        std::vector<int64_t> tokens(size_t(rows) * std::max(0, std::min(count, 9)));
        for (int64_t &token : tokens) token = bytes.number(0, c.tgt_vocab_size - 1);
        int32_t longest = 0;
        for (int32_t length : lengths) longest = std::max(longest, length);
        std::vector<float> log_probs(tokens.size() * c.tgt_vocab_size);
        std::vector<float> weights(tokens.size() * c.n_decoder_layers * c.n_heads * longest);
        std::vector<int64_t> next(tokens.size());
        for (int64_t &id : next) id = bytes.number(0, c.tgt_vocab_size - 1);
        allocations_left = bytes.is_rare() ? bytes.up_to(10) : -1;
        if (bytes.is_rare()) heed_state_attention(state, &positions, tokens.data(), rows, count, bytes.up_to(c.n_decoder_layers), weights.data());
        else heed_state_extend(state, &positions, tokens.data(), rows, count, bytes.up_to(1) ? next.data() : nullptr, bytes.up_to(1) ? log_probs.data() : nullptr, bytes.up_to(1) ? weights.data() : nullptr);
        allocations_left = -1;
    }

    void tell(Bytes &bytes, const Config &c) {
        const int n_rows = bytes.is_rare() ? bytes.up_to(20) : int(lengths.size()) * beam_size;
        std::vector<float> log_probs(size_t(n_rows) * c.tgt_vocab_size);
        heed_state_log_probs(state, log_probs.data(), n_rows);
        Largest largest(bytes, c, n_rows);
        allocations_left = bytes.is_rare() ? bytes.up_to(10) : -1;
        heed_state_best(state, &largest.wanted, n_rows);
        allocations_left = -1;
    }

    // A whole search, which mostly begins with a new state and leaves one that has ended.
    void search(Bytes &bytes, Arrays &arrays, const Config &c) {
        const size_t n_sources = lengths.size();
        std::vector<int64_t> forbidden(bytes.up_to(7) ? bytes.up_to(3) : 66), limits(n_sources), left(n_sources);
        for (int64_t &id : forbidden) id = bytes.number(-1, c.tgt_vocab_size);
        for (int64_t &limit : limits) limit = bytes.number(1, 12);
        const std::vector<double> divisors(n_sources, bytes.up_to(1)), penalties(13, bytes.up_to(1));
        heed::SearchOptions options{};
        options.n_best = bytes.number(1, beam_size), options.early_stopping = bytes.number(0, 2);
        options.n_forbidden = bytes.is_rare() ? -1 : int(forbidden.size()), options.n_penalties = int(penalties.size());
        options.bos_id = bytes.number(0, c.tgt_vocab_size - 1), options.eos_id = bytes.number(0, c.tgt_vocab_size - 1);
        options.forbidden = forbidden.data(), options.limits = limits.data(), options.divisors = divisors.data(), options.penalties = penalties.data();
        options.min_length = bytes.up_to(1) ? bytes.number(0, 5) : 0, options.no_repeat_ngram_size = bytes.up_to(1) ? bytes.number(0, 3) : 0;
        // Numbers that the interface lets pass must be true.
        const int prefix_len = bytes.up_to(2), n_slots = bytes.up_to(3);
        std::vector<int64_t> prefixes(n_sources * prefix_len), slots(n_slots), parents(n_sources * n_slots), depths(parents.size()), closers(parents.size());
        std::vector<uint8_t> is_slot(parents.size()), is_closer(parents.size());
        for (int64_t &id : prefixes) id = bytes.number(-1, c.tgt_vocab_size - 1);
        for (int64_t &id : slots) id = bytes.number(0, c.tgt_vocab_size - 1);
        for (size_t i = 0; i < parents.size(); i++) {
            is_slot[i] = uint8_t(bytes.up_to(1)), is_closer[i] = uint8_t(bytes.up_to(1));
            parents[i] = bytes.number(-1, n_slots - 1), depths[i] = bytes.number(0, 2), closers[i] = bytes.number(0, n_slots - 1);
        }
        options.prefix_len = bytes.is_rare() ? -1 : prefix_len, options.n_slots = bytes.is_rare() ? -1 : n_slots, options.missing_cost = bytes.up_to(1) ? 4.0 : std::numeric_limits<double>::infinity();
        options.prefixes = prefixes.data(), options.slots = slots.data(), options.is_slot = is_slot.data(), options.is_closer = is_closer.data();
        options.parents = parents.data(), options.depths = depths.data(), options.closers = closers.data();
        heed::Search *made = nullptr;
        allocations_left = bytes.is_rare() ? bytes.up_to(10) : -1;
        const char *error = heed_search_new(state, &options, &made);
        allocations_left = -1;
        if (error) return;
        heed::Progress progress{int32_t(n_sources), -1, 0.0, left.data()};
        int n_steps = 0;
        for (; n_steps < 14 && progress.n_sources && !error; n_steps += !error) {
            if (bytes.is_rare()) {
                std::vector<uint8_t> flags(bytes.is_rare() ? bytes.up_to(6) : size_t(progress.n_sources));
                for (uint8_t &flag : flags) flag = uint8_t(bytes.up_to(1));
                if (!heed_search_drop(made, flags.data(), int(flags.size()))) progress.n_sources -= int(std::count_if(flags.begin(), flags.end(), [](uint8_t flag) { return flag; }));
            }
            const Positions positions = some_positions(bytes, arrays, c);
            allocations_left = bytes.is_rare() ? bytes.up_to(20) : -1;
            error = heed_search_step(made, &positions, &progress);
            allocations_left = -1;
        }
        const int said_steps = bytes.is_rare() ? n_steps + 1 : made->length();
        const size_t n = n_sources * options.n_best;
        std::vector<int32_t> found(n);
        std::vector<double> scores(n);
        std::vector<uint8_t> have_ended(n);
        std::vector<int64_t> ids(n * made->length());
        std::vector<float> log_probs(ids.size());
        heed_search_found(made, said_steps, found.data(), scores.data(), have_ended.data(), ids.data(), log_probs.data());
        heed_search_delete(made);
        // Its sources are no longer those of `lengths`.
        heed_state_delete(state);
        state = nullptr;
    }

    void select(Bytes &bytes) {
        std::vector<int64_t> sources(bytes.up_to(1) ? 0 : bytes.up_to(6));
        for (int64_t &source : sources) source = bytes.number(0, int(lengths.size()) - 1);
        const bool are_all = sources.empty() && bytes.up_to(1);
        const int n_sources = int(are_all ? lengths.size() : sources.size());
        std::vector<int64_t> rows(bytes.is_rare() ? bytes.up_to(20) : n_sources * beam_size);
        for (int64_t &row : rows) row = bytes.number(0, int(lengths.size()) * beam_size - 1);
        const int said_sources = bytes.is_rare() && are_all ? bytes.any() : n_sources;
        if (heed_state_select(state, rows.data(), int(rows.size()), are_all ? nullptr : sources.data(), said_sources) || are_all) return;
        std::vector<int32_t> stay;
        for (int64_t source : sources) stay.push_back(lengths[source]);
        lengths.swap(stay);
    }
};

// A model's part of all shortlists, or one that does not fit it.
void allow(Bytes &bytes, Arrays &arrays, heed::Model *model, const Config &c) {
    std::vector<int32_t> ids(1 + bytes.up_to(19));
    for (int32_t &id : ids) id = bytes.number(0, c.tgt_vocab_size - 1);
    const int n = int(ids.size()) + (bytes.is_rare() ? 0 : 1), k = bytes.is_rare() ? c.d_model + 1 : c.d_model;
    const bool is_quantized = model->output.ints && !bytes.is_rare();
    const Matrix matrix = some_matrix(arrays, is_quantized, false, n, k);
    heed_model_always(model, &matrix, ids.data(), int(ids.size()));
}

void find_largest(Bytes &bytes, Arrays &arrays) {
    const int rows = bytes.up_to(3), n = bytes.up_to(40), stride = n + bytes.up_to(3), count = bytes.number(0, 10);
    const float *x = arrays.some_floats(size_t(rows) * stride);
    std::vector<float> values(size_t(rows) * (count > 0 && count <= n ? count : 0));
    std::vector<int64_t> ids(values.size());
    heed_largest(x, stride, rows, n, count, values.data(), ids.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes bytes{data, data + size};
    Arrays arrays{{}, {}, uint32_t(bytes.any()), bytes.is_rare()};
    Config c;
    heed::Model *model = some_model(bytes, arrays, c);
    if (model && bytes.up_to(1)) allow(bytes, arrays, model, c);
    {
        Batch batches[2];
        for (int i = 0; model && i < 40 && !bytes.is_over(); i++) {
            Batch &batch = batches[bytes.up_to(1)];
            const Positions positions = some_positions(bytes, arrays, c);
            const int order = bytes.up_to(11);
            if (!batch.state || order == 7) batch.start(bytes, model, positions, c);
            else if (order < 4) batch.step(bytes, positions, c);
            else if (order < 6) batch.select(bytes);
            else if (order == 8) batch.shorten(bytes, model, c);
            else if (order == 9) batch.tell(bytes, c);
            else if (order == 11) batch.search(bytes, arrays, c);
            else if (order == 10) batch.extend(bytes, positions, c);
            else find_largest(bytes, arrays);
        }
    }
    heed_model_delete(model);
    return 0;
}

#ifdef HEED_RANDOM
#include <chrono>
#include <random>

int main(int n_arguments, char **arguments) {
    const double seconds = n_arguments > 1 ? std::atof(arguments[1]) : 60.0;
    std::mt19937 random(n_arguments > 2 ? uint32_t(std::atoi(arguments[2])) : 1u);
    const auto begin = std::chrono::steady_clock::now();
    long runs = 0;
    for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds; runs++) {
        std::vector<uint8_t> bytes(random() % 1024);
        for (uint8_t &byte : bytes) byte = uint8_t(random() >> 8);
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::printf("%ld runs in %.0f s, and nothing to report\n", runs, seconds);
}
#endif
