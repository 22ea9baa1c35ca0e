#include "search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace heed {

constexpr double kNone = -std::numeric_limits<double>::infinity();

Search::Search(State &state, const SearchOptions &options)
    : state_(state), options_(options), beam_size_(state.beam_size()), n_each_(std::min(beam_size_ + 1, state.config().tgt_vocab_size)), sources_(state.n_sources()), totals_(state.rows(), kNone), last_(state.rows(), options.bos_id), places_(state.rows()), values_(size_t(state.rows()) * n_each_), ids_(values_.size()), candidates_(size_t(beam_size_) * n_each_), found_(sources_.size()), counts_(sources_.size()) {
    std::iota(sources_.begin(), sources_.end(), 0);
    for (int s = 0; s < n_sources(); s++) totals_[s * beam_size_] = 0.0;
}

void Search::step(const Positions &positions, Progress &progress) {
    progress.stuck = -1;
    can_go_on_ = false;
    state_.step(positions, last_.data(), {n_each_, options_.n_forbidden, values_.data(), ids_.data(), options_.forbidden});
    newest_ = {}, rows_.clear(), new_totals_.clear();
    for (int s = 0; s < n_sources(); s++) {
        expand(s);
        const double best = candidates_[0].total;
        if (std::isnan(best) || (best == kNone && found_[sources_[s]].empty())) {
            progress.n_sources = 0, progress.stuck = int32_t(sources_[s]), progress.best = best;
            return;
        }
        end(s);
        go_on(s);
    }
    columns_.push_back(newest_);
    length_++;
    last_.swap(newest_.ids), totals_.swap(new_totals_);
    places_.resize(rows_.size());
    std::iota(places_.begin(), places_.end(), 0);
    std::vector<int64_t> stay;
    for (int s = 0; s < n_sources(); s++) {
        if (!is_over(s)) stay.push_back(s);
        if (length_ >= options_.limits[sources_[s]]) cut(s);
    }
    select(stay);
    progress.n_sources = n_sources();
    std::copy(sources_.begin(), sources_.end(), progress.sources);
    can_go_on_ = true;
}

void Search::drop(const uint8_t *is_dropped) {
    std::vector<int64_t> stay;
    for (int s = 0; s < n_sources(); s++) {
        if (is_dropped[s]) found_[sources_[s]].clear();
        else stay.push_back(s);
    }
    rows_.resize(places_.size());
    std::iota(rows_.begin(), rows_.end(), 0);
    select(stay);
}

// The most probable continuations of a source's rows, twice as many as rows: the best half of them
// might end. Ties keep the order of rows, then of ids; NaN comes first.
void Search::expand(int s) {
    const size_t begin = s * candidates_.size();
    for (size_t i = 0; i < candidates_.size(); i++) candidates_[i] = {totals_[(begin + i) / n_each_] + values_[begin + i], begin + i};
    const size_t n = std::min(candidates_.size(), size_t(beam_size_) * 2);
    std::partial_sort(candidates_.begin(), candidates_.begin() + n, candidates_.end(), [](const Candidate &a, const Candidate &b) {
        if (std::isnan(a.total) != std::isnan(b.total)) return std::isnan(a.total);
        return a.total > b.total || (!(a.total < b.total) && a.place < b.place);
    });
}

// A candidate with `<eos>` ends a hypothesis if it is among the `beam_size` best.
void Search::end(int s) {
    for (int i = 0; i < beam_size_; i++) {
        const auto [total, place] = candidates_[i];
        if (ids_[place] != options_.eos_id || total == kNone) continue;
        const int64_t source = sources_[s];
        counts_[source]++;
        const double score = total / options_.penalties[length_ + 1];
        if (score <= worst(source)) continue;
        Hypothesis made = path(place / n_each_);
        made.has_ended = true, made.score = score;
        made.ids.push_back(options_.eos_id), made.log_probs.push_back(values_[place]);
        keep(source, std::move(made));
    }
}

// The best candidates that do not end; if they are too few, the other rows are empty.
void Search::go_on(int s) {
    const auto take = [&](const Candidate &each, double total) {
        rows_.push_back(each.place / n_each_);
        new_totals_.push_back(total);
        newest_.parents.push_back(places_[each.place / n_each_]);
        newest_.ids.push_back(ids_[each.place]);
        newest_.log_probs.push_back(values_[each.place]);
    };
    const size_t n = std::min(candidates_.size(), size_t(beam_size_) * 2), full = size_t(s + 1) * beam_size_;
    for (size_t i = 0; i < n && rows_.size() < full; i++)
        if (ids_[candidates_[i].place] != options_.eos_id) take(candidates_[i], candidates_[i].total);
    while (rows_.size() < full) take(candidates_[0], kNone);
}

// Whether a source is done.
bool Search::is_over(int s) const {
    const int64_t source = sources_[s];
    const double best = totals_[s * beam_size_];
    if (length_ >= options_.limits[source] || best == kNone) return true;
    switch (EarlyStopping(options_.early_stopping)) {
        case EarlyStopping::first: return counts_[source] >= beam_size_;
        case EarlyStopping::bound: return best / options_.divisors[source] <= worst(source);
        default: return false;
    }
}

// Hypotheses at their limit are finished without `<eos>`.
void Search::cut(int s) {
    for (int r = s * beam_size_; r < (s + 1) * beam_size_; r++) {
        if (totals_[r] == kNone) continue;
        Hypothesis made = path(r);
        made.has_ended = false, made.score = totals_[r] / options_.penalties[length_];
        counts_[sources_[s]]++;
        keep(sources_[s], std::move(made));
    }
}

// Complete ones first, then by score, then by time.
void Search::keep(int64_t source, Hypothesis &&made) {
    auto &found = found_[source];
    const auto place = std::upper_bound(found.begin(), found.end(), made, [](const Hypothesis &a, const Hypothesis &b) {
        return a.has_ended != b.has_ended ? a.has_ended : a.score > b.score;
    });
    found.insert(place, std::move(made));
    if (int(found.size()) > options_.n_best) found.pop_back();
}

// The tokens of a row.
Hypothesis Search::path(int row) const {
    Hypothesis made{};
    made.ids.resize(columns_.size()), made.log_probs.resize(columns_.size());
    int32_t place = places_[row];
    for (size_t t = columns_.size(); t-- > 0; place = columns_[t].parents[place]) made.ids[t] = columns_[t].ids[place], made.log_probs[t] = columns_[t].log_probs[place];
    return made;
}

// Keeps some sources, whose rows continue `rows_`.
void Search::select(const std::vector<int64_t> &stay) {
    const bool are_all = stay.size() == sources_.size();
    size_t n = 0;
    for (size_t i = 0; i < stay.size() && !are_all; i++) {
        sources_[i] = sources_[stay[i]];
        for (size_t r = stay[i] * beam_size_; r < size_t(stay[i] + 1) * beam_size_; r++, n++)
            rows_[n] = rows_[r], places_[n] = places_[r], last_[n] = last_[r], totals_[n] = totals_[r];
    }
    if (!are_all) sources_.resize(stay.size()), rows_.resize(n), places_.resize(n), last_.resize(n), totals_.resize(n);
    bool is_in_place = are_all;
    for (size_t r = 0; r < rows_.size() && is_in_place; r++) is_in_place = rows_[r] == int64_t(r);
    if (!rows_.empty() && !is_in_place) state_.select(rows_.data(), are_all ? nullptr : stay.data(), int(stay.size()));
}

}  // namespace heed
