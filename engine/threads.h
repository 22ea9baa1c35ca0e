// Work in several threads. Each file that includes this has a namespace of its own, HEED_ISA.
#pragma once
#include <cstdint>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <dlfcn.h>
#endif

namespace HEED_ISA {

// GCC's OpenMP, if the program has loaded it, as torch does. Its threads wait actively for a while
// after each work: other threads beside them would find no free core.
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

// f(part) for parts 0 … n_parts - 1, in as many threads, the first one in this thread. f may not throw.
template <class F>
void in_threads(int n_parts, const F &f) {
    if (n_parts == 1) return f(0);
    static const OpenMP openmp;
    if (openmp.is_here()) {
        struct Work {
            const F &f;
            int n_parts;
        } work{f, n_parts};
        const auto run = [](void *data) {
            const Work &work = *static_cast<Work *>(data);
            // There may be fewer threads than were asked for.
            for (int part = openmp.number(); part < work.n_parts; part += openmp.count()) work.f(part);
        };
        return openmp.parallel(run, &work, unsigned(n_parts), 0);
    }
    std::vector<std::thread> others;
    others.reserve(n_parts);
    for (int part = 1; part < n_parts; part++) {
        try {
            others.emplace_back([&f, part] { f(part); });
        } catch (const std::system_error &) {  // the system gives no more threads
            f(part);
        }
    }
    f(0);
    for (std::thread &other : others) other.join();
}

// Where part `part` of n_parts equal ones begins among n.
inline int begin_of(int part, int n_parts, int n) { return int(int64_t(n) * part / n_parts); }

}  // namespace HEED_ISA
