// The arguments of skip-gram and CBOW with negative sampling.
//
// Rows of floats are padded with zeros to a multiple of 16. The loop itself is word2vec.inc, once for
// each instruction set; heed/vectors/plain.py is its twin in NumPy, with the same numbers to the bit.
#pragma once
#include <cstdint>

namespace heed {

// The vectors, and how words are drawn. Arrays of a number for each word unless said otherwise.
struct WordVectors {
    int32_t n_words = 0, size = 0;       // words, numbers a vector
    int32_t window = 0, negative = 0;    // most words to each side, words drawn against each word
    int32_t is_cbow = 0;                 // predict a word from the mean of its context, not each by itself
    const uint32_t *keep = nullptr;      // a word stays in a line if a draw is at most this
    const uint32_t *chances = nullptr;   // of negative words: word i is drawn as itself if a draw is at most this …
    const int32_t *others = nullptr;     // … else as this one
    float *inputs = nullptr;             // (n_words, padded(size)): the word vectors
    float *outputs = nullptr;            // (n_words, padded(size)): those they are multiplied with
};

// Lines of text: ids of all, concatenated, and where each line ends among them.
struct Lines {
    const int32_t *ids;
    const int64_t *ends;
    int32_t n_lines;
};

using LearnWords = void (*)(const WordVectors &, const Lines &, float rate, uint64_t *seed);
LearnWords learn_words_portable();
// Null if this processor lacks the instructions.
LearnWords learn_words_avx2();
LearnWords learn_words_avx512();
LearnWords learn_words_neon();

}  // namespace heed
