#include "kernels.h"
#include "training.h"
#if defined(__aarch64__)
#define HEED_NEON
#define HEED_ISA heed_training_neon
#include "lanes.h"
#include "attention.inc"
#include "dropout.inc"

const heed::TrainingKernels *heed::training_neon() {
    static const TrainingKernels kernels{"neon", HEED_ISA::attend, HEED_ISA::attend_backward, HEED_ISA::drop};
    return &kernels;
}
#else
const heed::TrainingKernels *heed::training_neon() { return nullptr; }
#endif
