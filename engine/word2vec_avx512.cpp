#include "kernels.h"
#include "word2vec.h"
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__AVX512VNNI__)
#define HEED_AVX512
#define HEED_ISA heed_avx512
#include "lanes.h"
#include "word2vec.inc"

heed::LearnWords heed::learn_words_avx512() { return avx512_kernels() ? &HEED_ISA::learn_words : nullptr; }
#else
heed::LearnWords heed::learn_words_avx512() { return nullptr; }
#endif
