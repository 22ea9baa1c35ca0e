#include "model.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace heed {

Model::Model(const Config &c, const Kernels &k, int n_threads)
    : config(c), kernels(k), pool(n_threads), encoder(c.n_encoder_layers), decoder(c.n_decoder_layers) {}

void Model::link() {
    Matrix *last = nullptr;
    const auto then = [&](Matrix &m) {
        if (last) last->next = m.panel(0);
        last = &m;
    };
    const auto then_feed_forward = [&](FeedForward &layer) { then(layer.expand), then(layer.contract); };
    for (EncoderLayer &layer : encoder) then(layer.self.in), then(layer.self.out), then_feed_forward(layer.feed_forward);
    for (DecoderLayer &layer : decoder)
        if (!config.is_one_stack) then(layer.cross.memory);
    for (DecoderLayer &layer : decoder) {
        if (config.reading() == TargetReading::average_feed_forward) then_feed_forward(layer.average);
        then(layer.self.in);
        if (!config.is_recurrent()) then(layer.self.out);
        if (!config.is_one_stack) then(layer.cross.query), then(layer.cross.out);
        then_feed_forward(layer.feed_forward);
    }
    then(always.ids.empty() ? output : always.matrix);
    then(decoder[0].self.in);
}

// One thread's computation of the layers: its buffers, and the threads that share its products.
struct State::Work {
    const Model &model;
    Scratch &scratch;
    Pool *helpers;  // null if every thread has its own rows

    const Kernels &kernels() const { return model.kernels; }
    const Config &config() const { return model.config; }

    void reserve(int rows, int n_positions) {
        const Config &c = config();
        const size_t inner = padded(c.d_ff * (c.activation == int(Activation::swiglu) ? 2 : 1));
        const size_t heads = padded(2 * c.key_width() + c.value_width()), both = c.is_recurrent() ? padded(2 * c.d_model) : 0;
        const size_t deepest = std::max<size_t>({inner, heads, both, size_t(c.width())});
        const auto grow = [](auto &v, size_t n, auto... filling) {
            if (v.size() < n) v.resize(n, filling...);
        };
        grow(scratch.x, rows * size_t(c.width()));
        grow(scratch.y, rows * size_t(c.width()));
        grow(scratch.joined, rows * std::max<size_t>(padded(c.value_width()), both));
        if (c.is_average()) grow(scratch.means, rows * size_t(c.width()));
        grow(scratch.wide, rows * deepest);
        grow(scratch.scales, rows);
        grow(scratch.quantized, rows * kernels().quantized_stride(int(deepest)));
        grow(scratch.scores, padded(n_positions) * size_t(c.n_heads));
        grow(scratch.weights, size_t(n_positions) * c.n_heads);
        static const float kAnything[1] = {};
        for (auto *places : {&scratch.keys, &scratch.values, &scratch.next_keys, &scratch.next_values}) grow(*places, n_positions, kAnything);
    }

    // out = activation(x) W^T + b
    void linear(const Matrix &m, float *x, size_t stride, int rows, float *out, size_t out_stride, Activation activation = Activation::none) {
        if (m.ints || activation != Activation::none)
            kernels().quantize(x, stride, rows, m.k, activation, m.ints ? scratch.quantized.data() : nullptr, scratch.scales.data());
        multiply(m, inputs(m, x, stride), rows, out, out_stride);
    }

    // The last `linear`'s quantized x, or x itself.
    Inputs inputs(const Matrix &m, const float *x, size_t stride) const {
        if (m.ints) return {scratch.quantized.data(), scratch.scales.data(), kernels().quantized_stride(m.k)};
        return {x, nullptr, stride * sizeof(float)};
    }

    void multiply(const Matrix &m, const Inputs &inputs, int rows, float *out, size_t out_stride) {
        const auto columns = [&](int part, int n_parts) {
            kernels().multiply(m, inputs, rows, out, out_stride, m.panels() * part / n_parts, m.panels() * (part + 1) / n_parts);
        };
        if (helpers) helpers->run(columns);
        else columns(0, 1);
    }

    void normalize(const float *x, int rows, const Norm &norm, float *out) {
        const Config &c = config();
        kernels().normalize(x, c.width(), rows, c.d_model, norm.gain, norm.bias, c.norm_eps, out, c.width());
    }

    // x = x + f(LayerNorm(x)), or LayerNorm(x + f(x)); f leaves its result in y.
    template <class F>
    void residual(int rows, const Norm &norm, const F &f) {
        const Config &c = config();
        float *x = scratch.x.data(), *y = scratch.y.data();
        const size_t width = c.width();
        if (c.is_pre_norm) {
            normalize(x, rows, norm, y);
            f(y);
        } else {
            f(x);
        }
        kernels().add(x, width, y, width, rows, c.d_model);
        if (!c.is_pre_norm) normalize(x, rows, norm, x);
    }

    // `use` takes the queries, keys and values of each row of x, rotated, and the stride of a row.
    template <class F>
    void project_in(const SelfAttention &layer, float *x, const Positions &positions, const std::vector<int> &places, const F &use) {
        const int rows = int(places.size());
        float *heads = scratch.wide.data();
        const size_t stride = layer.in.panels() * size_t(16);
        linear(layer.in, x, config().width(), rows, heads, stride);
        for (int r = 0; r < rows; r++) rotate(heads + r * stride, positions, places[r]);
        use(heads, stride);
    }

    // `attend` takes the same, and leaves in `joined` what each row reads.
    template <class F>
    void self_attention(const SelfAttention &layer, const Positions &positions, const std::vector<int> &places, const F &attend) {
        const int rows = int(places.size());
        residual(rows, layer.norm, [&](float *x) {
            project_in(layer, x, positions, places, attend);
            project(layer.out, rows);
        });
    }

    // The input of a layer's self-attention, if its output is not needed.
    float *silent_input(const SelfAttention &layer, int rows) {
        float *x = scratch.x.data(), *y = scratch.y.data();
        if (!config().is_pre_norm) return x;
        normalize(x, rows, layer.norm, y);
        return y;
    }

    void feed_forward(const FeedForward &layer, int rows) {
        residual(rows, layer.norm, [&](float *x) { feed_forward(layer, x, rows, scratch.y.data()); });
    }

    void feed_forward(const FeedForward &layer, float *x, int rows, float *out) {
        const Config &c = config();
        const size_t inner = layer.expand.panels() * size_t(16);
        linear(layer.expand, x, c.width(), rows, scratch.wide.data(), inner);
        linear(layer.contract, scratch.wide.data(), inner, rows, out, c.width(), Activation(c.activation));
    }

    // The gated sum of x and g, which are adjacent in the rows of `joined`.
    void gate(const Matrix &gate, int rows) {
        const int d = config().d_model;
        const size_t stride = padded(2 * d), width = config().width();
        linear(gate, scratch.joined.data(), stride, rows, scratch.wide.data(), stride);
        for (int r = 0; r < rows; r++) kernels().gated(scratch.wide.data() + r * stride, scratch.joined.data() + r * stride, d, scratch.y.data() + r * width);
    }

    // Ids of groups of `count`, `stride` apart.
    void embed(const Matrix &table, const Positions &positions, const int64_t *ids, const std::vector<int> &places, int count, size_t stride) {
        const Config &c = config();
        for (size_t r = 0; r < places.size(); r++) {
            float *x = scratch.x.data() + r * size_t(c.width());
            const int64_t id = ids[r / count * stride + r % count];
            const int column = int(id % 16);
            const char *panel = table.panel(int(id / 16));
            if (table.floats) {
                for (int i = 0; i < c.d_model; i++) x[i] = ((const float *)panel)[i * 16 + column] * c.embedding_scale;
            } else {
                const int8_t *four = (const int8_t *)panel + column * 4;
                const float scale = table.scales[id];
                for (int i = 0; i < c.d_model; i += 4, four += 64)
                    for (int j = 0; j < 4 && i + j < c.d_model; j++) x[i + j] = float(four[j]) * scale * c.embedding_scale;
            }
            if (positions.added) {
                const float *added = positions.added + size_t(places[r]) * c.width();
                for (int i = 0; i < c.d_model; i++) x[i] = x[i] + added[i];
            }
            std::fill(x + c.d_model, x + c.width(), 0.0f);
        }
    }

    // Rotate the queries and keys in a row of queries, keys and values.
    void rotate(float *row, const Positions &positions, int place) {
        const Config &c = config();
        if (!c.is_rotary) return;
        kernels().rotate(row, 2 * c.n_heads, c.d_k, positions.cosines + size_t(place) * c.d_k, positions.sines + size_t(place) * c.d_k);
    }

    // Store keys and values, which are adjacent.
    void remember(const float *keys, float *to) {
        const Config &c = config();
        const float *values = keys + c.key_width();
        if (!model.is_bfloat16()) {
            std::copy_n(keys, c.key_width() + c.value_width(), to);
            return;
        }
        kernels().to_bfloat16(keys, c.n_heads, c.d_k, to);
        kernels().to_bfloat16(values, c.n_heads, c.d_v, to + model.key_words());
    }

    // A position in the cache: words of keys, then of values.
    void recall(int place, const float *from, int key_words) {
        scratch.next_keys[place] = from;
        scratch.next_values[place] = from + key_words;
    }

    // The next queries read the positions recalled now, later ones those recalled next.
    void turn() {
        scratch.keys.swap(scratch.next_keys);
        scratch.values.swap(scratch.next_values);
    }

    void attend(const float *query, int n, bool is_bfloat16, float *out, float *weights = nullptr) {
        const Config &c = config();
        const Remembered memory = {scratch.keys.data(), scratch.values.data(), n, is_bfloat16, scratch.next_keys.data(), scratch.next_values.data()};
        kernels().attend(query, memory, c.n_heads, c.d_k, c.d_v, scratch.scores.data(), out, weights);
    }

    // How many of a row's largest to find, so that enough are left without the forbidden ones.
    int with_forbidden(const Best &best) const { return std::min(config().tgt_vocab_size, best.count + best.n_forbidden); }

    // The largest of n numbers, as `Kernels::largest`, appended to `ranked`.
    void find(const float *x, int n, float shift, float least, int count, const int32_t *ids = nullptr) {
        count = std::min(count, n);
        scratch.largest.resize(count);
        scratch.largest_ids.resize(count);
        if (count) kernels().largest(x, n, shift, least, count, scratch.largest.data(), scratch.largest_ids.data());
        for (int i = 0; i < count; i++) {
            const int64_t id = scratch.largest_ids[i];
            scratch.ranked.emplace_back(scratch.largest[i], ids ? ids[id] : id);
        }
    }

    // The best candidates of a row.
    void tell(const Best &best, size_t row) {
        float *values = best.values + row * best.count;
        int64_t *ids = best.ids + row * best.count;
        const int64_t *end = best.forbidden + best.n_forbidden;
        int n = 0;
        for (const auto &[value, id] : scratch.ranked) {
            if (n == best.count) break;
            if (std::find(best.forbidden, end, id) == end) values[n] = value, ids[n++] = id;
        }
        std::fill(values + n, values + best.count, -std::numeric_limits<float>::infinity());
        std::fill(ids + n, ids + best.count, 0);
    }

    // The projection of joined heads; the padding of rows must be zero.
    void project(const Matrix &out, int rows) {
        const int width = config().value_width();
        const size_t stride = padded(width);
        float *joined = scratch.joined.data();
        for (int r = 0; r < rows && width % 16; r++) std::fill(joined + r * stride + width, joined + (r + 1) * stride, 0.0f);
        linear(out, joined, stride, rows, scratch.y.data(), config().width());
    }
};

// Rows that go through all layers together: their intermediate results stay in the cache.
constexpr int kRowsAtOnce = 256;
// Numbers of `Kernels::log_total`.
constexpr int kTops = 16;

// Every thread has its own sources; if there are too few, all share the columns.
template <class Rows, class F>
void State::split(const Rows &rows_of, const F &f) {
    const int n = n_sources(), n_threads = model_.pool.size();
    const auto in_portions = [&](int first, int last, Work work) {
        while (first < last) {
            int next = first, rows = 0;
            do rows += rows_of(next++);
            while (next < last && rows + rows_of(next) <= kRowsAtOnce);
            f(first, next, work);
            first = next;
        }
    };
    if (n < n_threads) return in_portions(0, n, Work{model_, scratch_[0], n_threads > 1 ? &model_.pool : nullptr});
    model_.pool.run([&](int part, int n_parts) {
        in_portions(n * part / n_parts, n * (part + 1) / n_parts, Work{model_, scratch_[part], nullptr});
    });
}

State::State(Model &model, const Positions &positions, const int64_t *ids, const int32_t *lengths, int n_sources, int beam_size, bool are_prompts)
    : model_(model), positions_(positions), beam_size_(beam_size), are_prompts_(are_prompts), words_(model.key_words() + model.value_words()), arena_(model.blocks), scratch_(model.pool.size()) {
    const Config &c = model.config;
    for (int s = 0; s < n_sources; s++) {
        sources_.push_back({n_tokens_, lengths[s]});
        n_tokens_ += lengths[s];
    }
    if (!n_tokens_) {
        heads_.resize(c.n_decoder_layers);
        return;
    }
    if (!c.is_one_stack) memory_ = arena_.take(size_t(c.is_same_layer ? c.n_encoder_layers : 1) * n_tokens_ * c.width());
    for (int l = 0; l < c.n_decoder_layers; l++) heads_.push_back(arena_.take(n_tokens_ * words_));
    split([&](int s) { return sources_[s].length; }, [&](int first, int last, Work &work) {
        encode(ids, first, last, work);
        if (!c.is_one_stack) remember(first, last, work);
    });
}

int State::longest() const {
    int n = 0;
    for (const Source &source : sources_) n = std::max(n, source.length);
    return n;
}

State::Span State::span(int first, int last) const {
    const int begin = sources_[first].offset;
    return {begin, sources_[last - 1].offset + sources_[last - 1].length - begin};
}

float *State::memory(int layer, int token) {
    const Config &c = model_.config;
    return memory_ + (size_t(c.is_same_layer ? layer : 0) * n_tokens_ + token) * c.width();
}

void State::encode(const int64_t *ids, int first, int last, Work &work) {
    const Config &c = model_.config;
    const Span tokens = span(first, last);
    const int begin = tokens.begin, rows = tokens.rows, n_layers = model_.n_source_layers();
    const size_t width = c.width(), out_stride = padded(c.value_width());
    if (!rows) return;
    work.reserve(rows, longest());
    Scratch &scratch = work.scratch;
    std::vector<int> places(rows);
    for (int s = first; s < last; s++)
        for (int i = 0; i < sources_[s].length; i++) places[sources_[s].offset - begin + i] = i;
    work.embed(are_prompts_ ? model_.embed_tgt : model_.embed_src, positions_, ids + begin, places, 1, 1);
    const auto keep_output = [&](int l) {
        if (c.is_pre_norm) work.normalize(scratch.x.data(), rows, model_.encoder_norm, memory(l, begin));
        else std::memcpy(memory(l, begin), scratch.x.data(), rows * width * sizeof(float));
    };
    if (!n_layers) keep_output(0);
    for (int l = 0; l < n_layers; l++) {
        const EncoderLayer &layer = model_.source_layer(l);
        // The target of a decoder-only model reads them too, so the source reads them as in the cache.
        const auto keep = [&](const float *heads, size_t stride) {
            for (int r = 0; r < rows; r++) work.remember(heads + r * stride + c.key_width(), remembered(l, begin + r));
        };
        if (c.is_one_stack && l + 1 == n_layers) return work.project_in(layer.self, work.silent_input(layer.self, rows), positions_, places, keep);
        work.self_attention(layer.self, positions_, places, [&](float *heads, size_t stride) {
            if (c.is_one_stack) keep(heads, stride);
            for (int s = first; s < last; s++) {
                const int from = sources_[s].offset - begin, length = sources_[s].length;
                for (int i = 0; i < length; i++) {
                    if (c.is_one_stack) work.recall(i, remembered(l, begin + from + i), model_.key_words());
                    else work.recall(i, heads + (from + i) * stride + c.key_width(), c.key_width());
                }
                work.turn();
                for (int i = 0; i < length; i++) work.attend(heads + (from + i) * stride, c.is_causal || are_prompts_ ? i + 1 : length, c.is_one_stack && model_.is_bfloat16(), scratch.joined.data() + (from + i) * out_stride);
            }
        });
        work.feed_forward(layer.feed_forward, rows);
        if (!c.is_one_stack && (l + 1 == n_layers || c.is_same_layer)) keep_output(l);
    }
}

void State::remember(int first, int last, Work &work) {
    const Config &c = model_.config;
    const Span tokens = span(first, last);
    const int begin = tokens.begin, rows = tokens.rows;
    const size_t width = c.width();
    for (int l = 0; l < c.n_decoder_layers; l++) {
        const Matrix &m = model_.decoder[l].cross.memory;
        const size_t stride = m.panels() * size_t(16);
        float *heads = work.scratch.wide.data();
        work.linear(m, memory(l, begin), width, rows, heads, stride);
        for (int r = 0; r < rows; r++) work.remember(heads + r * stride, remembered(l, begin + r));
    }
}

// For the logits of a step.
void State::make_room() {
    totals_.clear();  // until there is room
    sharing_ = 1;
    int columns = own_.empty() ? config().tgt_vocab_size : 0;
    for (const auto &own : own_) columns = std::max(columns, model_.always.matrix.n + own->matrix().panels() * 16);
    stride_ = padded(columns);
    if (rows() * stride_ > room_) {
        logits_ = arena_.take(rows() * stride_);
        room_ = rows() * stride_;
    }
    totals_.resize(rows());
}

// For the next tokens of all rows.
void State::make_pages(int count) {
    const bool is_recurrent = config().is_recurrent();
    for (int i = 0; i < (is_recurrent ? 1 : count); i++) {
        const bool are_two = is_recurrent && pages_.size() == 2;
        Page page = are_two ? pages_[0] : Page();
        if (page.rows < rows()) page.data = arena_.take(config().n_decoder_layers * rows() * page_words());
        page.rows = rows();
        page.row_of.clear();
        for (int r = 0; r < page.rows; r++) page.row_of.push_back(r);
        if (are_two) pages_.erase(pages_.begin());
        pages_.push_back(std::move(page));
        position_ += is_recurrent ? count : 1;
    }
}

void State::step(const Positions &positions, const int64_t *tokens, const Best &best) {
    positions_ = positions;
    make_room();
    if (are_equal(tokens)) return step_of_equals(tokens, best);
    advance_and_score(tokens, best);
}

void State::advance_and_score(const int64_t *tokens, const Best &best) {
    make_pages(1);
    split([&](int) { return beam_size_; }, [&](int first, int last, Work &work) {
        advance({tokens, 1, 1, false, nullptr}, first, last, work);
        if (own_.empty()) score(first, last, best, work);
        else choose(first, last, best, work);
    });
}

// Whether the rows of each source are equal: before the first token only the tokens can differ.
bool State::are_equal(const int64_t *tokens) const {
    if (position_ || beam_size_ == 1) return false;
    for (int r = 0; r < rows(); r++)
        if (tokens[r] != tokens[r - r % beam_size_]) return false;
    return true;
}

// One row of each source is computed, and its other rows get the same result.
void State::step_of_equals(const int64_t *tokens, const Best &best) {
    struct OneRow {
        explicit OneRow(int &of) : beam_size(of), before(of) { beam_size = 1; }
        ~OneRow() { beam_size = before; }
        int &beam_size;
        const int before;
    };
    std::vector<int64_t> firsts;
    for (int r = 0; r < rows(); r += beam_size_) firsts.push_back(tokens[r]);
    try {
        const OneRow one(beam_size_);
        advance_and_score(firsts.data(), {});
    } catch (...) {
        // A page must have a row for each row of the batch.
        pages_.clear();
        totals_.clear();
        position_ = 0;
        throw;
    }
    sharing_ = beam_size_;
    auto &row_of = pages_.back().row_of;
    row_of.resize(rows());
    for (int r = rows() - 1; r >= 0; r--) row_of[r] = r / beam_size_, totals_[r] = totals_[r / beam_size_];
    find(best);
}

void State::extend(const Positions &positions, const int64_t *tokens, int count, const int64_t *next, float *log_probs, float *weights) {
    positions_ = positions;
    totals_.clear();
    const size_t n = next ? 1 : model_.config.tgt_vocab_size;
    for (int done = 0, some; done < count; done += some) {
        some = std::min(kRowsAtOnce, count - done);
        make_pages(some);
        split([&](int) { return beam_size_ * some; }, [&](int first, int last, Work &work) {
            float *of_these = weights ? weights + size_t(done) * longest() : nullptr;
            advance({tokens + done, some, size_t(count), !log_probs && !weights, of_these}, first, last, work);
            if (!log_probs) return;
            std::vector<float *> to;
            std::vector<const int64_t *> ids;
            for (int r = first * beam_size_; r < last * beam_size_; r++)
                for (int t = 0; t < some; t++) {
                    const size_t place = size_t(r) * count + done + t;
                    to.push_back(log_probs + place * n);
                    if (next) ids.push_back(next + place);
                }
            write_log_probs(int(to.size()), next ? ids.data() : nullptr, to.data(), work);
        });
    }
}

void State::attention(const Positions &positions, const int64_t *tokens, int count, int layer, float *weights) {
    positions_ = positions;
    totals_.clear();
    const auto forget = [&] { pages_.clear(), position_ = 0; };
    try {
        for (int done = 0, some; done < count; done += some) {
            some = std::min(kRowsAtOnce, count - done);
            make_pages(some);
            split([&](int) { return beam_size_ * some; }, [&](int first, int last, Work &work) {
                advance({tokens + done, some, size_t(count), false, weights + size_t(done) * longest(), layer}, first, last, work);
            });
        }
    } catch (...) {
        forget();
        throw;
    }
    forget();
}

void State::advance(const Tokens &tokens, int first_source, int last_source, Work &work) {
    const Config &c = model_.config;
    const int first = first_source * beam_size_, n_rows = last_source * beam_size_ - first, count = tokens.count, rows = n_rows * count;
    const int n = position(), begin = n - count, key_words = model_.key_words();
    const size_t width = c.width(), out_stride = padded(c.value_width());
    work.reserve(rows, c.is_one_stack ? n + longest() : std::max(n, longest()));
    Scratch &scratch = work.scratch;
    // Source tokens that a row's self-attention reads.
    const auto before = [&](int r) { return c.is_one_stack ? sources_[(first + r) / beam_size_].length : 0; };
    std::vector<int> places(rows);
    for (int r = 0; r < rows; r++) places[r] = begin + r % count + (are_prompts_ ? before(r / count) : 0);
    work.embed(model_.embed_tgt, positions_, tokens.ids + first * tokens.stride, places, count, tokens.stride);
    for (int l = 0; l < c.n_decoder_layers; l++) {
        const DecoderLayer &layer = model_.decoder[l];
        const bool is_silent = tokens.is_last_layer_silent && l + 1 == c.n_decoder_layers;
        const bool is_wanted = tokens.weights && (tokens.only_layer < 0 || tokens.only_layer == l);
        const auto keep = [&](const float *heads, size_t stride, int r) {
            for (int t = 0; t < count; t++) work.remember(heads + (r * count + t) * stride + c.key_width(), remembered(pages_[begin + t], l, first + r));
        };
        if (c.is_recurrent() && is_silent) return recur(l, work.silent_input(layer.self, rows), first, n_rows, count, work);
        if (is_silent)
            return work.project_in(layer.self, work.silent_input(layer.self, rows), positions_, places, [&](float *heads, size_t stride) {
                for (int r = 0; r < n_rows; r++) keep(heads, stride, r);
            });
        if (c.is_recurrent()) work.residual(rows, layer.self.norm, [&](float *x) { recur(l, x, first, n_rows, count, work); });
        else work.self_attention(layer.self, positions_, places, [&](float *heads, size_t stride) {
            const auto recall = [&](int r) {
                const int length = before(r);
                for (int i = 0; i < length; i++) work.recall(i, remembered(l, sources_[(first + r) / beam_size_].offset + i), key_words);
                for (int i = 0; i < n; i++) work.recall(length + i, remembered(pages_[i], l, pages_[i].row_of[first + r]), key_words);
            };
            recall(0);
            for (int r = 0; r < n_rows; r++) {
                keep(heads, stride, r);
                work.turn();
                if (r + 1 < n_rows) recall(r + 1);
                float *kept = c.is_one_stack && is_wanted ? scratch.weights.data() : nullptr;
                for (int row = r * count; row < (r + 1) * count; row++) {
                    const int n_keys = before(r) + begin + row % count + 1;
                    work.attend(heads + row * stride, n_keys, model_.is_bfloat16(), scratch.joined.data() + row * out_stride, kept);
                    if (kept) write_weights(tokens, l, first + r, row % count, kept, n_keys, before(r));
                }
            }
        });
        if (!c.is_one_stack) work.residual(rows, layer.cross.norm, [&](float *x) {
            float *queries = scratch.wide.data();
            const size_t stride = layer.cross.query.panels() * size_t(16);
            work.linear(layer.cross.query, x, width, rows, queries, stride);
            const auto recall = [&](int s) {
                for (int i = 0; i < sources_[s].length; i++) work.recall(i, remembered(l, sources_[s].offset + i), key_words);
            };
            recall(first_source);
            for (int s = first_source; s < last_source; s++) {
                const int length = sources_[s].length, at_once = beam_size_ * count;
                work.turn();
                if (s + 1 < last_source) recall(s + 1);
                for (int row = s * at_once - first * count; row < (s + 1) * at_once - first * count; row++) {
                    float *kept = is_wanted ? scratch.weights.data() : nullptr;
                    work.attend(queries + row * stride, length, model_.is_bfloat16(), scratch.joined.data() + row * out_stride, kept);
                    if (kept) write_weights(tokens, l, first + row / count, row % count, kept, length, length);
                }
            }
            work.project(layer.cross.out, rows);
        });
        if (tokens.only_layer == l) return;
        work.feed_forward(layer.feed_forward, rows);
    }
    if (c.is_pre_norm) work.normalize(scratch.x.data(), rows, model_.decoder_norm, scratch.x.data());
}

// A recurrent layer: the newest `count` tokens of each row, whose inputs are x and whose outputs go
// to y.
void State::recur(int l, float *x, int first, int n_rows, int count, Work &work) {
    const Config &c = model_.config;
    const DecoderLayer &layer = model_.decoder[l];
    Scratch &scratch = work.scratch;
    const int rows = n_rows * count, d = c.d_model;
    const size_t width = c.width(), stride = padded(2 * d);
    const std::vector<float> nothing(width);
    // f(token, what was kept before it, where to keep what is kept after it)
    const auto in_order = [&](const auto &f) {
        for (int r = 0; r < n_rows; r++) {
            const Page *last = pages_.size() == 2 ? &pages_[0] : nullptr;
            const float *before = last ? remembered(*last, l, last->row_of[first + r]) : nothing.data();
            float *state = remembered(pages_.back(), l, first + r);
            for (int t = 0; t < count; t++, before = state) f(r * count + t, t, before, state);
        }
    };
    if (c.reading() == TargetReading::ssru) {
        work.linear(layer.self.in, x, width, rows, scratch.wide.data(), stride);
        return in_order([&](int token, int, const float *before, float *state) {
            work.kernels().gated_sum(scratch.wide.data() + token * stride, before, d, state, scratch.y.data() + token * width);
        });
    }
    float *means = scratch.means.data();
    in_order([&](int token, int t, const float *before, float *state) {
        work.kernels().running_mean(x + token * width, before, position_ - count + t + 1, d, state, means + token * width);
    });
    if (c.reading() == TargetReading::average_feed_forward) work.feed_forward(layer.average, means, rows, means);
    for (int r = 0; r < rows; r++) {
        float *both = scratch.joined.data() + r * stride;
        std::copy_n(x + r * width, d, both);
        std::copy_n(means + r * width, d, both + d);
        std::fill(both + 2 * d, both + stride, 0.0f);
    }
    work.gate(layer.self.in, rows);
}

// The first `length` of each head's weights `kept`, (n_heads, n_keys), to their place: those of the
// token `t` of a row.
void State::write_weights(const Tokens &tokens, int l, int row, int t, const float *kept, int n_keys, int length) {
    const int n_heads = model_.config.n_heads;
    const size_t above = tokens.only_layer < 0 ? l : 0;
    for (int h = 0; h < n_heads; h++) {
        float *to = tokens.weights + (((above * rows() + row) * n_heads + h) * tokens.stride + t) * longest();
        std::fill(std::copy_n(kept + size_t(h) * n_keys, length, to), to + longest(), 0.0f);
    }
}

// Of the whole vocabulary, or of one id each, after each row of x.
void State::write_log_probs(int rows, const int64_t *const *next, float *const *to, Work &work) {
    constexpr int kOnce = 48;  // so that their logits stay in the cache
    const int n = model_.config.tgt_vocab_size;
    const size_t stride = padded(n), width = model_.config.width();
    work.scratch.logits.resize(std::max(work.scratch.logits.size(), stride * kOnce));
    for (int begin = 0; begin < rows; begin += kOnce) {
        const int some = std::min(kOnce, rows - begin);
        float *x = work.scratch.logits.data(), tops[kTops];
        work.linear(model_.output, work.scratch.x.data() + begin * width, width, some, x, stride);
        for (int r = begin; r < begin + some; r++, x += stride) {
            const float total = work.kernels().log_total(x, n, tops);
            if (next) *to[r] = x[*next[r]] - total;
            else for (int i = 0; i < n; i++) to[r][i] = x[i] - total;
        }
    }
}

constexpr float kNone = -std::numeric_limits<float>::infinity();

// At least `count` numbers of a row, the hidden ones not counted, are no less than the result.
// `tops`: sixteen of all its numbers, largest first.
float least_of(const float *tops, int count, const std::vector<float> &hidden) {
    for (int i = count - 1; i < kTops; i++) {
        const auto n_hidden = std::count_if(hidden.begin(), hidden.end(), [&](float x) { return x >= tops[i]; });
        if (i + 1 - n_hidden >= count) return tops[i];
    }
    return kNone;
}

void State::score(int first_source, int last_source, const Best &best, Work &work) {
    const Config &c = model_.config;
    const int first = first_source * beam_size_, rows = last_source * beam_size_ - first;
    float *logits = logits_ + first * stride_;
    work.linear(model_.output, work.scratch.x.data(), c.width(), rows, logits, stride_);
    for (int r = first; r < first + rows; r++, logits += stride_) total(r, logits, c.tgt_vocab_size, best, work);
}

// The output for shortlists. The common columns are multiplied together, and come before those of a
// source; the softmax is over both. Between them is the column for all other ids,
// which is never chosen.
void State::choose(int first_source, int last_source, const Best &best, Work &work) {
    const Always &always = model_.always;
    const int first = first_source * beam_size_, rows = last_source * beam_size_ - first, width = model_.config.width();
    float *logits = logits_ + first * stride_;
    work.linear(always.matrix, work.scratch.x.data(), width, rows, logits, stride_);
    Inputs inputs = work.inputs(always.matrix, work.scratch.x.data(), width);
    for (int s = first_source; s < last_source; s++) {
        const Columns &own = *own_[s];
        work.multiply(own.matrix(), inputs, beam_size_, logits + always.matrix.n, stride_);
        for (int r = s * beam_size_; r < (s + 1) * beam_size_; r++, logits += stride_) total(r, logits, always.matrix.n + own.size(), best, work);
        inputs.rows = (const char *)inputs.rows + beam_size_ * inputs.stride;
        if (inputs.scales) inputs.scales += beam_size_;
    }
}

// The softmax of n logits, and their largest while they are in the cache.
void State::total(int r, float *logits, int n, const Best &best, Work &work) {
    float tops[kTops];
    totals_[r] = work.kernels().log_total(logits, n, tops);
    if (best.count) rank(r, tops, best, work);
}

// The best of a row. `tops`: sixteen of its logits, largest first, or null if they are not known.
void State::rank(int r, const float *tops, const Best &best, Work &work) {
    float *logits = logits_of(r);
    auto &ranked = work.scratch.ranked;
    auto &hidden = work.scratch.hidden;
    ranked.clear();
    hidden.clear();
    if (own_.empty()) {
        for (int i = 0; i < best.n_forbidden; i++) hidden.push_back(std::exchange(logits[best.forbidden[i]], kNone));
        work.find(logits, model_.config.tgt_vocab_size, totals_[r], tops ? least_of(tops, best.count, hidden) : kNone, best.count);
        // Backward, because an id may occur twice.
        for (int i = best.n_forbidden; i-- > 0;) logits[best.forbidden[i]] = hidden[i];
    } else {
        const std::vector<int32_t> &always = model_.always.ids, &own = own_[r / beam_size_]->ids();
        const int count = work.with_forbidden(best);
        // One of the tops may be the column for the rest.
        const float least = tops ? least_of(tops, count + 1, hidden) : kNone;
        work.find(logits, int(always.size()), totals_[r], least, count, always.data());
        const size_t middle = ranked.size();
        work.find(logits + always.size() + 1, int(own.size()), totals_[r], least, count, own.data());
        std::inplace_merge(ranked.begin(), ranked.begin() + middle, ranked.end(), [](const auto &a, const auto &b) { return a.first > b.first || (a.first == b.first && a.second < b.second); });
    }
    work.tell(best, r);
}

void State::find(const Best &best) {
    if (!best.count) return;
    split([&](int) { return beam_size_; }, [&](int first, int last, Work &work) {
        for (int r = first * beam_size_; r < last * beam_size_; r++) {
            if (r % sharing_) {
                std::copy_n(best.values + size_t(r - 1) * best.count, best.count, best.values + size_t(r) * best.count);
                std::copy_n(best.ids + size_t(r - 1) * best.count, best.count, best.ids + size_t(r) * best.count);
            } else {
                rank(r, nullptr, best, work);
            }
        }
    });
}

void State::log_probs(float *out) {
    const size_t n = model_.config.tgt_vocab_size;
    split([&](int) { return beam_size_; }, [&](int first, int last, Work &) {
        for (int r = first * beam_size_; r < last * beam_size_; r++) {
            const float *x = logits_of(r), total = totals_[r];
            float *to = out + r * n;
            if (own_.empty()) {
                for (size_t i = 0; i < n; i++) to[i] = x[i] - total;
                continue;
            }
            std::fill_n(to, n, -std::numeric_limits<float>::infinity());
            for (int32_t id : model_.always.ids) to[id] = *x++ - total;
            for (int32_t id : own_[r / beam_size_]->ids()) to[id] = *++x - total;
        }
    });
}

void State::log_probs_of(const int64_t *ids, int n, float *out) {
    for (int r = 0; r < rows(); r++)
        for (int i = 0; i < n; i++) *out++ = log_prob(r, *ids++);
}

float State::log_prob(int r, int64_t id) {
    ptrdiff_t place = id;
    if (!own_.empty()) {
        const auto place_in = [&](const std::vector<int32_t> &sorted) {
            const auto at = std::lower_bound(sorted.begin(), sorted.end(), id);
            return at != sorted.end() && *at == id ? at - sorted.begin() : -1;
        };
        const std::vector<int32_t> &always = model_.always.ids;
        place = place_in(always);
        if (place < 0 && (place = place_in(own_[r / beam_size_]->ids())) >= 0) place += always.size() + 1;
    }
    return place < 0 ? kNone : logits_of(r)[place] - totals_[r];
}

void State::shorten(const int32_t *ids, const int32_t *counts) {
    std::vector<const int32_t *> begins;
    for (int s = 0; s < n_sources(); ids += counts[s++]) begins.push_back(ids);
    // If memory runs out, nothing changes.
    std::vector<std::shared_ptr<const Columns>> own(n_sources());
    split([](int) { return 1; }, [&](int first, int last, Work &) {
        for (int s = first; s < last; s++) own[s] = std::make_shared<Columns>(model_.output, begins[s], counts[s]);
    });
    own_.swap(own);
    totals_.clear();
}

void State::select(const int64_t *rows, const int64_t *sources, int n_sources) {
    const int n_rows = n_sources * beam_size_;
    totals_.clear();
    for (Page &page : pages_) {
        std::vector<int32_t> row_of(n_rows);
        for (int r = 0; r < n_rows; r++) row_of[r] = page.row_of[rows[r]];
        page.row_of.swap(row_of);
    }
    if (!sources) return;
    std::vector<Source> stay(n_sources);
    for (int s = 0; s < n_sources; s++) stay[s] = sources_[sources[s]];
    sources_.swap(stay);
    if (own_.empty()) return;
    std::vector<std::shared_ptr<const Columns>> own(n_sources);
    for (int s = 0; s < n_sources; s++) own[s] = own_[sources[s]];
    own_.swap(own);
}

}  // namespace heed
