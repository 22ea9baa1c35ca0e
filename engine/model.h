// A Transformer that translates or continues a text: weights, and the state of one batch.
//
// An encoder–decoder has two stacks. A decoder-only model has one, `decoder`, without cross-attention:
// it reads the source too, and its self-attention reads the keys of both.
//
// Searches call one step after another: search.h, and heed/decode in Python. Loops over numbers are in
// kernels.inc, the interface to Python in api.cpp.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "columns.h"
#include "kernels.h"
#include "memory.h"
#include "pool.h"

namespace heed {

// The sublayer with which a decoder layer reads the target.
enum class TargetReading : int32_t { attention, average, average_feed_forward, ssru };

struct Config {
    int32_t d_model, n_heads, d_k, d_v, d_ff, n_encoder_layers, n_decoder_layers;
    int32_t is_pre_norm, activation, is_rotary, is_same_layer;
    int32_t is_one_stack, is_causal;  // decoder-only; a source token reads no later one
    int32_t target_reading;           // of an encoder–decoder: a TargetReading
    int32_t src_vocab_size, tgt_vocab_size;
    float norm_eps, embedding_scale;

    int width() const { return padded(d_model); }
    int key_width() const { return n_heads * d_k; }
    int value_width() const { return n_heads * d_v; }
    TargetReading reading() const { return TargetReading(target_reading); }
    bool is_recurrent() const { return reading() != TargetReading::attention; }
    bool is_average() const { return is_recurrent() && reading() != TargetReading::ssru; }
};

struct Norm {
    const float *gain = nullptr, *bias = nullptr;
};

struct FeedForward {
    Matrix expand, contract;
    Norm norm;
};

struct SelfAttention {
    Matrix in, out;
    Norm norm;
};

struct CrossAttention {
    Matrix query, memory, out;
    Norm norm;
};

struct EncoderLayer {
    SelfAttention self;
    FeedForward feed_forward;
};

// Recurrent layers have no `self.out`; `self.in` is the matrix of their gates, with SSRU also of
// the gated input.
struct DecoderLayer : EncoderLayer {
    FeedForward average;   // of the mean, before the gates; has no norm
    CrossAttention cross;  // not in a decoder-only model
};

// Added to embeddings, or rotates queries and keys; for positions 0 … n - 1.
struct Positions {
    int32_t n = 0;
    const float *added = nullptr;                        // (n, padded(d_model)), or null
    const float *cosines = nullptr, *sines = nullptr;    // (n, d_k), or null
};

// The ids in every source's shortlist: columns of `Model::output`, and one for all
// other ids.
struct Always {
    Matrix matrix;             // (ids and one more, d_model)
    std::vector<int32_t> ids;  // of all columns but the last; empty where there are no shortlists
};

struct Model {
    Model(const Config &, const Kernels &, int n_threads);

    // With weights of eight bits, sixteen bits are enough for the cache.
    bool is_bfloat16() const { return output.ints; }
    // Words of a position's keys, and of its values, in the cache.
    int key_words() const { return words(config.d_k); }
    int value_words() const { return words(config.d_v); }
    // Layers that read the source.
    int n_source_layers() const { return config.is_one_stack ? config.n_decoder_layers : config.n_encoder_layers; }
    const EncoderLayer &source_layer(int l) const { return config.is_one_stack ? decoder[l] : encoder[l]; }
    // Sets the successor of each matrix.
    void link();

    Config config;
    const Kernels &kernels;
    Pool pool;
    const std::shared_ptr<Blocks> blocks = std::make_shared<Blocks>();
    Matrix embed_src, embed_tgt, output;
    std::vector<EncoderLayer> encoder;
    std::vector<DecoderLayer> decoder;
    Norm encoder_norm, decoder_norm;
    std::vector<std::unique_ptr<int32_t[]>> starts;  // of int8 matrices
    Always always;

  private:
    int words(int d) const { return config.n_heads * (is_bfloat16() ? bfloat16_words(d) : d); }
};

// Buffers of one thread.
struct Scratch {
    std::vector<float> x, y, wide, joined, means, scales, scores, weights, largest, logits;
    std::vector<int64_t> largest_ids;
    std::vector<std::pair<float, int64_t>> ranked;
    std::vector<float> hidden;
    std::vector<char> quantized;
    std::vector<const float *> keys, values, next_keys, next_values;
};

// The `count` largest log-probs of each row that are not forbidden, largest first, and their ids.
// Missing ones are minus infinity.
struct Best {
    int32_t count = 0;  // 0: not wanted
    int32_t n_forbidden = 0;
    float *values = nullptr;              // (rows, count)
    int64_t *ids = nullptr;               // (rows, count)
    const int64_t *forbidden = nullptr;   // (n_forbidden,)
};

// Keys and values of one target position, all layers: row r of layer l at (l * rows + r) * words.
// Or the vector that a recurrent layer keeps, of as many words as it is wide.
struct Page {
    float *data = nullptr;
    int rows = 0;
    std::vector<int32_t> row_of;  // which row of the page each row of the batch continues
};

// One batch of sources: `rows = n_sources * beam_size`.
class State {
  public:
    // Reads the sources, their ids concatenated. Prompts are read as targets, and the target continues
    // after them.
    State(Model &, const Positions &, const int64_t *ids, const int32_t *lengths, int n_sources, int beam_size, bool are_prompts);

    const Config &config() const { return model_.config; }
    int beam_size() const { return beam_size_; }
    int rows() const { return int(sources_.size()) * beam_size_; }
    int n_sources() const { return int(sources_.size()); }
    int position() const { return position_; }
    int longest() const;
    // Positions of the target that are taken, at most.
    int64_t taken() const { return int64_t(position_) + (are_prompts_ ? longest() : 0); }

    // One more token for each row, and the largest log-probs of the next.
    void step(const Positions &, const int64_t *tokens, const Best &);
    // `count` more tokens for each row, (rows, count), all at once. `log_probs`, if not null: of the
    // next tokens after each, (rows, count, tgt_vocab_size), without shortlists; or of `next`, if not
    // null, one id each, (rows, count). `weights`, if not null: those by which each token reads the
    // source, (n_decoder_layers, rows, n_heads, count, longest()), zeros after each source.
    void extend(const Positions &, const int64_t *tokens, int count, const int64_t *next, float *log_probs, float *weights);
    // Such weights of one layer, (rows, n_heads, count, longest()), before any other token. Layers
    // above it do not read the tokens, and the state forgets them.
    void attention(const Positions &, const int64_t *tokens, int count, int layer, float *weights);

    // Rows of the last step, none after a selection; the largest log-probs of the next tokens, all of
    // them, (scored(), tgt_vocab_size), and those of n ids for each row, (scored(), n).
    int scored() const { return int(totals_.size()); }
    void find(const Best &);
    void log_probs(float *);
    void log_probs_of(const int64_t *ids, int n, float *);
    float log_prob(int row, int64_t id);

    // From now on only these ids and the model's `always` may follow.
    // Ids of all sources, concatenated, none of them in `always`.
    void shorten(const int32_t *ids, const int32_t *counts);

    // Rows and sources that stay, in their new order.
    void select(const int64_t *rows, const int64_t *sources, int n_sources);

  private:
    struct Source {
        int offset, length;
    };
    // Tokens of some consecutive sources.
    struct Span {
        int begin, rows;
    };
    struct Work;
    // The newest tokens of all rows, (rows, count).
    struct Tokens {
        const int64_t *ids;
        int count;
        size_t stride;  // from row to row
        bool is_last_layer_silent;  // no token follows them, so only their keys and values are needed
        float *weights;             // of the first of them, see `extend`; null if not wanted
        int only_layer = -1;        // the only layer whose weights are needed, see `attention`; -1: all
    };

    Span span(int first_source, int last_source) const;
    // The encoder output for a decoder layer, from a source token on.
    float *memory(int layer, int token);
    // The cache of a source token, or of a target position and row, for a decoder layer.
    float *remembered(int layer, int token) { return heads_[layer] + size_t(token) * words_; }
    float *remembered(const Page &page, int layer, int row) { return page.data + (size_t(layer) * page.rows + row) * page_words(); }
    float *logits_of(int row) { return logits_ + row / sharing_ * stride_; }
    size_t page_words() const { return config().is_recurrent() ? config().width() : words_; }
    void encode(const int64_t *ids, int first, int last, Work &);
    void remember(int first, int last, Work &);
    void make_room();
    void make_pages(int count);
    void recur(int layer, float *x, int first, int n_rows, int count, Work &);
    void advance_and_score(const int64_t *tokens, const Best &);
    bool are_equal(const int64_t *tokens) const;
    void step_of_equals(const int64_t *tokens, const Best &);
    void advance(const Tokens &, int first, int last, Work &);
    void write_weights(const Tokens &, int layer, int row, int t, const float *kept, int n_keys, int length);
    void write_log_probs(int rows, const int64_t *const *next, float *const *to, Work &);
    void score(int first, int last, const Best &, Work &);
    void choose(int first, int last, const Best &, Work &);
    void total(int row, float *logits, int n, const Best &, Work &);
    void rank(int row, const float *tops, const Best &, Work &);
    template <class Rows, class F>
    void split(const Rows &rows_of, const F &f);

    Model &model_;
    Positions positions_;  // while a call runs
    int beam_size_;
    bool are_prompts_;
    size_t words_;  // of keys and values of a token, as they are remembered
    std::vector<Source> sources_;
    std::vector<std::shared_ptr<const Columns>> own_;  // of `output`, for each source; or empty
    Arena arena_;
    int n_tokens_ = 0;             // of all sources
    float *memory_ = nullptr;      // (n_encoder_layers or 1, n_tokens, width)
    std::vector<float *> heads_;   // of each decoder layer (n_tokens, words)
    // Of each target position; of recurrent layers the last two states, the newest last.
    std::vector<Page> pages_;
    int position_ = 0;             // target tokens so far
    float *logits_ = nullptr;      // of the last step, (rows / sharing_, stride_): the output's columns, or of the shortlist
    int sharing_ = 1;              // rows of a source that have the same logits
    size_t stride_ = 0, room_ = 0;
    std::vector<float> totals_;    // the number that log softmax subtracts from them, (rows,)
    std::vector<Scratch> scratch_;
};

}  // namespace heed
