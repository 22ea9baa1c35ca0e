// Finds the instruction set of calls from Python, and the mistakes in calls of training.
#pragma once
#include <cstring>
#include <exception>
#include <initializer_list>

namespace heed {

// The kernels of that name, "" = the first that this processor has; null if there are none.
template <class Kernels>
const Kernels *named(std::initializer_list<const Kernels *> all, const char *name) {
    for (const Kernels *one : all)
        if (one && (!*name || !std::strcmp(name, one->name))) return one;
    return nullptr;
}

inline const char *mistake_in_threads(int n_threads) { return n_threads < 1 || n_threads > 1024 ? "the threads are too few or too many" : nullptr; }

// f(kernels), unless there is a mistake; null or an error message.
template <class Kernels, class F>
const char *call(const char *mistake, const Kernels *kernels, const F &f) {
    if (mistake) return mistake;
    if (!kernels) return "this processor lacks that instruction set";
    try {
        f(*kernels);
    } catch (const std::exception &) {
        return "there is not enough memory";
    }
    return nullptr;
}

}  // namespace heed
