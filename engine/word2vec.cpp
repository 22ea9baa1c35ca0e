// The functions that Python calls to learn word vectors (heed/vectors/native.py): plain C, checked here.
#include <algorithm>
#include <cstring>
#include <new>

#include "kernels.h"
#define HEED_ISA heed_portable
#include "lanes.h"
#include "word2vec.inc"

heed::LearnWords heed::learn_words_portable() { return &HEED_ISA::learn_words; }

namespace {

const char *mistake_in(const heed::WordVectors &w, const heed::Lines &lines) {
    if (w.n_words < 1 || w.size < 1 || w.size > 1 << 16) return "there are no words, or a vector has no numbers or too many";
    if (w.window < 1 || w.window > 1 << 16 || w.negative < 1 || w.negative > 1 << 16) return "window and negative must be 1 to 65536";
    if (lines.n_lines < 0) return "there is less than no line";
    int64_t end = 0;
    for (int32_t i = 0; i < lines.n_lines; end = lines.ends[i++])
        if (lines.ends[i] < end) return "a line ends before it begins";
    const auto is_foreign = [&](int32_t id) { return id < 0 || id >= w.n_words; };
    if (std::any_of(lines.ids, lines.ids + end, is_foreign) || std::any_of(w.others, w.others + w.n_words, is_foreign)) return "an id is not that of a word";
    return nullptr;
}

}  // namespace

// Learn from lines, once. `seed` is the state of the generator, before and after. `name` is the
// instruction set, "" = the best here. Each call returns null or an error message.
extern "C" __attribute__((visibility("default"))) const char *heed_learn_words(const heed::WordVectors *vectors, const heed::Lines *lines, float rate, uint64_t *seed, const char *name) {
    if (const char *mistake = mistake_in(*vectors, *lines)) return mistake;
    const struct {
        const char *name;
        heed::LearnWords learn;
    } all[] = {{"avx512", heed::learn_words_avx512()}, {"avx2", heed::learn_words_avx2()}, {"neon", heed::learn_words_neon()}, {"portable", heed::learn_words_portable()}};
    try {
        for (const auto &one : all)
            if (one.learn && (!*name || !std::strcmp(name, one.name))) return one.learn(*vectors, *lines, rate, seed), nullptr;
    } catch (const std::bad_alloc &) {
        return "there is not enough memory";
    }
    return "this processor lacks that instruction set";
}
