#include "kernels.h"
#include "training.h"
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__)
#define HEED_AVX2
#define HEED_ISA heed_training_avx2
#include "lanes.h"
#include "attention.inc"
#include "dropout.inc"

const heed::TrainingKernels *heed::training_avx2() {
    static const TrainingKernels kernels{"avx2", HEED_ISA::attend, HEED_ISA::attend_backward, HEED_ISA::drop};
    return avx2_kernels() ? &kernels : nullptr;
}
#else
const heed::TrainingKernels *heed::training_avx2() { return nullptr; }
#endif
