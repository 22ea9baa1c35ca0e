// Beam search of one batch without constraints, except that some ids are forbidden: the steps of
// heed/decode/beam.py in their order, with the same results.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "model.h"

namespace heed {

enum class EarlyStopping : int32_t { first, bound, never };

struct SearchOptions {
    int32_t n_best, early_stopping;  // an EarlyStopping
    int32_t n_forbidden, n_penalties;
    int64_t bos_id, eos_id;
    const int64_t *forbidden;  // (n_forbidden,)
    const int64_t *limits;     // most tokens of each source, (n_sources,)
    const double *divisors;    // length penalties at these limits, (n_sources,)
    const double *penalties;   // of 0, 1, … tokens, (n_penalties,)
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
    int length() const { return length_; }
    int n_best() const { return options_.n_best; }
    // False after a step that failed, or found a source that is stuck.
    bool can_go_on() const { return can_go_on_; }

    // One more token for each hypothesis. Sources that are over leave the batch.
    void step(const Positions &, Progress &);
    // Removes sources without a result. is_dropped: (n_sources(),).
    void drop(const uint8_t *is_dropped);
    // Of each source of the call at most `n_best`, best first.
    const std::vector<std::vector<Hypothesis>> &found() const { return found_; }

  private:
    struct Candidate {
        double total;
        size_t place;  // in `values_` and `ids_`
    };
    // The newest token of each row, and the place of the token before it in the last column.
    struct Column {
        std::vector<int32_t> parents;
        std::vector<int64_t> ids;
        std::vector<float> log_probs;
    };

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
    const int beam_size_, n_each_;     // rows of a source, candidates of a row
    int length_ = 0;                   // tokens so far
    bool can_go_on_ = true;
    std::vector<int64_t> sources_;     // still searched
    std::vector<double> totals_;       // of each row, best first; minus infinity: the row is empty
    std::vector<int64_t> last_;        // token of each row
    std::vector<int32_t> places_;      // of each row in the last column
    std::vector<Column> columns_;      // of each token
    std::vector<float> values_;        // the largest log-probs of each row, (rows, n_each_)
    std::vector<int64_t> ids_;         // and their ids
    std::vector<Candidate> candidates_;
    // Of the step: the newest column, the row that each row continues, and totals.
    Column newest_;
    std::vector<int64_t> rows_;
    std::vector<double> new_totals_;
    // Of each source of the call: the best that are finished, and how many have, kept or not.
    std::vector<std::vector<Hypothesis>> found_;
    std::vector<int64_t> counts_;
};

}  // namespace heed
