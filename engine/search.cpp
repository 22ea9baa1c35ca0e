#include "search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace heed {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// Up to this many forbidden ids are left out as the largest are found, more afterwards: hardly ever
// more than `kSpare` of these are among the largest of a row.
constexpr int kFew = 64, kSpare = 6;

// The lowest score of a required token: a search cannot follow minus infinity.
constexpr float kLeast = -1e4f;

Search::Search(State &state, const SearchOptions &options)
    : state_(state), options_(options), beam_size_(state.beam_size()), n_each_(std::min(beam_size_ + 1, state.config().tgt_vocab_size)), forbidden_(options.forbidden, options.forbidden + options.n_forbidden), sources_(state.n_sources()), totals_(state.rows(), kNone), last_(state.rows(), options.bos_id), places_(state.rows()), limits_(state.rows()), values_(size_t(state.rows()) * n_each_), log_probs_(values_.size()), ids_(values_.size()), candidates_(size_t(beam_size_) * n_each_), found_(sources_.size()), counts_(sources_.size()) {
    forbidden_.push_back(options.eos_id);
    if (options.n_forbidden >= kFew) {
        is_forbidden_.resize(state.config().tgt_vocab_size);
        for (int i = 0; i < options.n_forbidden; i++) is_forbidden_[options.forbidden[i]] = true;
    }
    std::iota(sources_.begin(), sources_.end(), 0);
    for (int r = 0; r < state.rows(); r++) {
        if (r % beam_size_ == 0) totals_[r] = 0.0;
        const uint8_t *own = options.is_slot + size_t(r / beam_size_) * options.n_slots;
        lacks_.insert(lacks_.end(), own, own + options.n_slots);
    }
}

void Search::step(const Positions &positions, Progress &progress) {
    progress.stuck = -1;
    has_failed_ = true;
    score(positions);
    newest_ = {}, rows_.clear(), new_totals_.clear(), new_lacks_.clear();
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
    last_.swap(newest_.ids), totals_.swap(new_totals_), lacks_.swap(new_lacks_);
    std::iota(places_.begin(), places_.end(), 0);
    std::vector<int64_t> stay;
    for (int s = 0; s < n_sources(); s++) {
        if (!is_over(s)) stay.push_back(s);
        if (length_ >= options_.limits[sources_[s]]) cut(s);
    }
    select(stay);
    progress.n_sources = n_sources();
    std::copy(sources_.begin(), sources_.end(), progress.sources);
    has_failed_ = false;
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

// A step of the state, and the best candidates of each row after all constraints.
void Search::score(const Positions &positions) {
    size_t n_more = 0;
    for (int r = 0; r < state_.rows(); r++) {
        limit(r);
        n_more = std::max(n_more, limits_[r].banned.size() + (limits_[r].n_missing > 0));
    }
    const int n_forbidden = options_.n_forbidden + (length_ < options_.min_length);
    const size_t n = n_each_ + n_more;
    // Few forbidden ids are left out as the largest are found, many afterwards.
    const bool are_many = n_forbidden > kFew;
    Best best = room(n + are_many * kSpare, are_many ? 0 : n_forbidden);
    state_.step(positions, last_.data(), best);
    if (are_many && !has_enough(best, n)) {
        best = room(n, n_forbidden);
        state_.find(best);
    }
    for (int r = 0; r < state_.rows(); r++) choose(r, best);
}

// For the largest `count` of each row.
Best Search::room(size_t count, int n_forbidden) {
    count = std::min<size_t>(count, state_.config().tgt_vocab_size);
    raw_values_.resize(state_.rows() * count), raw_ids_.resize(state_.rows() * count);
    return {int32_t(count), n_forbidden, raw_values_.data(), raw_ids_.data(), forbidden_.data()};
}

// Whether `count` of the largest of each row are not forbidden.
bool Search::has_enough(const Best &best, size_t count) const {
    for (int r = 0; r < state_.rows(); r++) {
        const int64_t *ids = best.ids + size_t(r) * best.count;
        if (size_t(std::count_if(ids, ids + best.count, [&](int64_t id) { return !is_forbidden(id); })) < count) return false;
    }
    return true;
}

// What may follow a row, apart from the ids that no row may choose.
void Search::limit(int r) {
    Limits &limits = limits_[r];
    const int64_t source = sources_[r / beam_size_];
    limits.required = length_ < options_.prefix_len ? options_.prefixes[source * options_.prefix_len + length_] : -1;
    limits.n_missing = 0, limits.coming.clear(), limits.banned.clear();
    if (options_.n_slots) limit_slots(r, limits);
    const int n = options_.no_repeat_ngram_size;
    if (n == 0 || length_ < n) return;
    // Paulus et al. 2018, section 2.5.
    const std::vector<int64_t> ids = path(r).ids;
    const auto newest = ids.end() - (n - 1);
    for (auto last = ids.begin() + (n - 1); last != ids.end(); ++last)
        if (std::equal(newest, ids.end(), last - (n - 1))) limits.banned.push_back(*last);
}

// Each slot occurs once, pairs are well nested: SlotRules.next.
void Search::limit_slots(int r, Limits &limits) {
    const size_t first = sources_[r / beam_size_] * options_.n_slots;
    const int64_t *parents = options_.parents + first, *depths = options_.depths + first, *closers = options_.closers + first;
    const uint8_t *is_closer = options_.is_closer + first, *lacks = lacks_.data() + size_t(r) * options_.n_slots;
    // A pair is open if its opening slot is there and its closing slot is not.
    int64_t innermost = -1, deepest = 0;
    for (int i = 0; i < options_.n_slots; i++)
        if (depths[i] > deepest && !lacks[i] && lacks[closers[i]]) innermost = i, deepest = depths[i];
    const auto is_inside = [&](int i) { return lacks[i] && parents[i] == innermost; };
    // A pair stays open as long as any other slot may come inside it.
    bool has_others = false;
    for (int i = 0; i < options_.n_slots; i++) has_others |= is_inside(i) && !is_closer[i];
    for (int i = 0; i < options_.n_slots; i++) {
        limits.n_missing += lacks[i];
        const bool may_come = is_inside(i) && !(is_closer[i] && has_others);
        (may_come ? limits.coming : limits.banned).push_back(options_.slots[i]);
    }
}

// The candidates of a row: `Choice.top`, `_with_slots` and `Choice.log_probs` of constraints.py.
void Search::choose(int r, const Best &best) {
    using Scored = std::pair<float, int64_t>;
    constexpr float kForbidden = -std::numeric_limits<float>::infinity();
    const Limits &limits = limits_[r];
    const int64_t eos_id = options_.eos_id;
    const float *raw = best.values + size_t(r) * best.count;
    const int64_t *raw_ids = best.ids + size_t(r) * best.count;
    ranked_.clear();
    bool has_banned = false;
    for (int i = 0; i < best.count; i++) {
        const bool is_banned = is_forbidden(raw_ids[i]) || std::find(limits.banned.begin(), limits.banned.end(), raw_ids[i]) != limits.banned.end();
        has_banned |= is_banned;
        ranked_.emplace_back(is_banned ? kForbidden : raw[i], raw_ids[i]);
    }
    const auto is_before = [](const Scored &a, const Scored &b) { return a.first > b.first || (a.first == b.first && a.second < b.second); };
    int64_t only = -1;
    const float penalty = limits.n_missing ? float(options_.missing_cost * limits.n_missing) : 0.0f;
    if (limits.n_missing) {
        const float end = state_.log_prob(r, eos_id) - penalty;
        if (std::min_element(ranked_.begin(), ranked_.end(), is_before)->second == eos_id) {
            // Instead of ending, the row takes the most probable slot that may come.
            Scored slot(kForbidden, -1);
            for (int64_t id : limits.coming) slot = std::min(slot, Scored(state_.log_prob(r, id), id), is_before);
            only = slot.first > end ? slot.second : eos_id;
        }
        for (auto &[value, id] : ranked_)
            if (id == eos_id) value = std::min(value, end);
    }
    if (limits.required >= 0) only = limits.required;
    if (limits.n_missing || has_banned) std::stable_sort(ranked_.begin(), ranked_.end(), is_before);
    const bool may_be_stuck = options_.no_repeat_ngram_size || options_.n_slots || length_ < options_.min_length || options_.n_forbidden >= state_.config().tgt_vocab_size;
    if (only < 0 && may_be_stuck && ranked_[0].first == kForbidden) only = eos_id;
    if (only >= 0) {
        for (auto &each : ranked_) each.first = kForbidden;
        ranked_[0] = {std::max(state_.log_prob(r, only) - (only == eos_id ? penalty : 0.0f), kLeast), only};
    }
    for (int i = 0; i < n_each_; i++) {
        const size_t place = size_t(r) * n_each_ + i;
        const auto &[value, id] = ranked_[i];
        values_[place] = value, ids_[place] = id;
        log_probs_[place] = limits.n_missing && value != kForbidden ? state_.log_prob(r, id) : value;
    }
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
        made.ids.push_back(options_.eos_id), made.log_probs.push_back(log_probs_[place]);
        keep(source, std::move(made));
    }
}

// The best candidates that do not end; if they are too few, the other rows are empty.
void Search::go_on(int s) {
    const auto take = [&](const Candidate &each, double total) {
        const size_t row = each.place / n_each_;
        const int64_t id = ids_[each.place];
        rows_.push_back(row);
        new_totals_.push_back(total);
        newest_.parents.push_back(places_[row]), newest_.ids.push_back(id), newest_.log_probs.push_back(log_probs_[each.place]);
        for (int i = 0; i < options_.n_slots; i++) new_lacks_.push_back(lacks_[row * options_.n_slots + i] && options_.slots[i] != id);
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
        for (size_t r = stay[i] * beam_size_; r < size_t(stay[i] + 1) * beam_size_; r++, n++) {
            rows_[n] = rows_[r], places_[n] = places_[r], last_[n] = last_[r], totals_[n] = totals_[r];
            std::copy_n(lacks_.begin() + r * options_.n_slots, options_.n_slots, lacks_.begin() + n * options_.n_slots);
        }
    }
    if (!are_all) sources_.resize(stay.size()), rows_.resize(n), places_.resize(n), last_.resize(n), totals_.resize(n), lacks_.resize(n * options_.n_slots);
    bool is_in_place = are_all;
    for (size_t r = 0; r < rows_.size() && is_in_place; r++) is_in_place = rows_[r] == int64_t(r);
    if (!rows_.empty() && !is_in_place) state_.select(rows_.data(), are_all ? nullptr : stay.data(), int(stay.size()));
}

}  // namespace heed
