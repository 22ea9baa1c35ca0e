// Work in several threads. Each file that includes this has a namespace of its own, HEED_ISA.
#pragma once
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <dlfcn.h>
#endif

namespace HEED_ISA {

// GCC's OpenMP, if the program has loaded it, as torch does. Its threads spin for a while after each
// job: other threads would find no free core.
struct OpenMP {
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned) = nullptr;
    int (*number)() = nullptr, (*count)() = nullptr;

    OpenMP() {
#if defined(__linux__)
        parallel = reinterpret_cast<decltype(parallel)>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
        number = reinterpret_cast<decltype(number)>(dlsym(RTLD_DEFAULT, "omp_get_thread_num"));
        count = reinterpret_cast<decltype(count)>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
#endif
    }
    bool is_here() const { return parallel && number && count; }
};

// f(first, last, part) for n_parts equal parts of 0 … n - 1, in as many threads, the first one in this
// thread. f may not throw.
template <class F>
void in_threads(int64_t n, int n_parts, const F &f) {
    const auto work = [&](int part) { f(n * part / n_parts, n * (part + 1) / n_parts, part); };
    if (n_parts == 1) return work(0);
    static const OpenMP openmp;
    if (openmp.is_here()) {
        using Work = decltype(work);
        struct All {
            Work &work;
            int n_parts;
        } all{work, n_parts};
        const auto run = [](void *data) {
            const All &all = *static_cast<All *>(data);
            // There may be fewer threads than requested.
            for (int part = openmp.number(); part < all.n_parts; part += openmp.count()) all.work(part);
        };
        return openmp.parallel(run, &all, unsigned(n_parts), 0);
    }
    std::vector<std::thread> others;
    others.reserve(n_parts);
    for (int part = 1; part < n_parts; part++) {
        try {
            others.emplace_back(work, part);
        } catch (const std::system_error &) {  // the system gives no more threads
            work(part);
        }
    }
    work(0);
    for (std::thread &other : others) other.join();
}

}  // namespace HEED_ISA
