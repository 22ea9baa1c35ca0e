#include "kernels.h"
#include "word2vec.h"
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__)
#define HEED_AVX2
#define HEED_ISA heed_avx2
#include "lanes.h"
#include "word2vec.inc"

heed::LearnWords heed::learn_words_avx2() { return avx2_kernels() ? &HEED_ISA::learn_words : nullptr; }
#else
heed::LearnWords heed::learn_words_avx2() { return nullptr; }
#endif
