#include "kernels.h"
#include "word2vec.h"
#if defined(__aarch64__)
#define HEED_NEON
#define HEED_ISA heed_neon
#include "lanes.h"
#include "word2vec.inc"

heed::LearnWords heed::learn_words_neon() { return &HEED_ISA::learn_words; }
#else
heed::LearnWords heed::learn_words_neon() { return nullptr; }
#endif
