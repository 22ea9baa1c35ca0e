#include "kernels.h"
#include "training.h"
#if defined(__x86_64__) && defined(__AVX512F__)
#define HEED_AVX512
#define HEED_ISA heed_training_avx512
#include "lanes.h"
#include "attention.inc"
#include "dropout.inc"

const heed::TrainingKernels *heed::training_avx512() {
    static const TrainingKernels kernels{"avx512", HEED_ISA::attend, HEED_ISA::attend_backward, HEED_ISA::drop};
    return avx512_kernels() ? &kernels : nullptr;
}
#else
const heed::TrainingKernels *heed::training_avx512() { return nullptr; }
#endif
