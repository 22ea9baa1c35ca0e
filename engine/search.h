// Beam search of one batch: the steps of heed/decode/beam.py in their order, with the constraints of
// constraints.py and slots.py beside it, and with the same results.
#pragma once
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "model.h"

namespace heed {

enum class EarlyStopping : int32_t { first, bound, never };

struct SearchOptions {
    int32_t n_best, early_stopping;  // an EarlyStopping
    int32_t n_forbidden, n_penalties, min_length, no_repeat_ngram_size, prefix_len, n_slots;
    int64_t bos_id, eos_id;
    const int64_t *forbidden;  // (n_forbidden,)
    const int64_t *limits;     // most tokens of each source, (n_sources,)
    const double *divisors;    // length penalties at these limits, (n_sources,)
    const double *penalties;   // of 0, 1, … tokens, (n_penalties,)
    const int64_t *prefixes;   // required ids, -1: any, (n_sources, prefix_len)
    // The slots of all sources, see SlotRules in slots.py: their ids, (n_slots,), and of each source,
    // (n_sources, n_slots), whether it has them, the slot around each, how deep a pair is, the slot
    // that closes it, and which slots close a pair.
    const int64_t *slots;
    const uint8_t *is_slot;
    const int64_t *parents, *depths, *closers;
    const uint8_t *is_closer;
    double missing_cost;  // of an end, for each missing slot
};

// A finished hypothesis.
struct Hypothesis {
    bool has_ended;  // false: it was cut at the limit
    double score;
    std::vector<int64_t> ids;  // with `<eos>`, if it has ended
    std::vector<float> log_probs;
};

// After a step.
struct Progress {
    int32_t n_sources;  // still searched
    int32_t stuck;      // a source without any probable token, or -1
    double best;        // the best total of that source
    int64_t *sources;   // filled with those still searched, (n_sources,)
};

class Search {
  public:
    // The caller owns the state and the arrays of the options, and must keep them.
    Search(State &, const SearchOptions &);

    const State &state() const { return state_; }
    int n_sources() const { return int(sources_.size()); }
    int n_best() const { return options_.n_best; }
    int length() const { return length_; }
    // Whether a step threw, or found a source that is stuck. Nothing but deletion may follow.
    bool has_failed() const { return has_failed_; }

    // One more token for each hypothesis. Sources that are over leave the batch.
    void step(const Positions &, Progress &);
    // Removes sources without a result. is_dropped: (n_sources(),).
    void drop(const uint8_t *is_dropped);
    // Of each source of the call at most `n_best`, best first.
    const std::vector<std::vector<Hypothesis>> &found() const { return found_; }

  private:
    struct Candidate {
        double total;
        size_t place;  // in `values_`, `ids_` and `log_probs_`
    };
    // The newest token of each row, and the place of the token before it in the last column.
    struct Column {
        std::vector<int32_t> parents;
        std::vector<int64_t> ids;
        std::vector<float> log_probs;
    };
    // What may follow a row.
    struct Limits {
        int64_t required;              // the only id, or -1
        int n_missing;                 // slots
        std::vector<int64_t> coming;   // slots that may come next
        std::vector<int64_t> banned;   // other slots, and ids that would repeat an n-gram
    };

    void score(const Positions &);
    Best room(size_t count, int n_forbidden);
    bool has_enough(const Best &, size_t count) const;
    // Of many forbidden ids, which the state does not leave out.
    bool is_forbidden(int64_t id) const { return !is_forbidden_.empty() && (is_forbidden_[id] || (id == options_.eos_id && length_ < options_.min_length)); }
    void limit(int r);
    void limit_slots(int r, Limits &);
    void choose(int r, const Best &);
    void expand(int s);
    void end(int s);
    void go_on(int s);
    bool is_over(int s) const;
    void cut(int s);
    void keep(int64_t source, Hypothesis &&);
    Hypothesis path(int row) const;
    void select(const std::vector<int64_t> &stay);
    double worst(int64_t source) const { return int(found_[source].size()) < options_.n_best ? -std::numeric_limits<double>::infinity() : found_[source].back().score; }

    State &state_;
    const SearchOptions options_;
    const int beam_size_, n_each_;      // rows of a source, candidates of a row
    std::vector<int64_t> forbidden_;    // with `<eos>` last, which is forbidden for `min_length` tokens
    std::vector<uint8_t> is_forbidden_; // (tgt_vocab_size,), or empty if they are few
    int length_ = 0;                    // tokens so far
    bool has_failed_ = false;
    std::vector<int64_t> sources_;      // still searched
    // Of each row: total (minus infinity: the row is empty), newest token, its place in the last
    // column, and which slots it lacks, (rows, n_slots).
    std::vector<double> totals_;
    std::vector<int64_t> last_;
    std::vector<int32_t> places_;
    std::vector<uint8_t> lacks_;
    std::vector<Column> columns_;       // of each token
    std::vector<Limits> limits_;        // of each row
    // The largest scores of each row, the ids, and the log-probs of these, (rows, n_each_).
    std::vector<float> values_, log_probs_;
    std::vector<int64_t> ids_;
    // As the state gives them, before constraints that depend on the row.
    std::vector<float> raw_values_;
    std::vector<int64_t> raw_ids_;
    std::vector<std::pair<float, int64_t>> ranked_;
    std::vector<Candidate> candidates_;
    // Of the step: the newest column, and the row that each row continues, its total, what it lacks.
    Column newest_;
    std::vector<int64_t> rows_;
    std::vector<double> new_totals_;
    std::vector<uint8_t> new_lacks_;
    // Of each source of the call: the best that are finished, and how many have, kept or not.
    std::vector<std::vector<Hypothesis>> found_;
    std::vector<int64_t> counts_;
};

}  // namespace heed
