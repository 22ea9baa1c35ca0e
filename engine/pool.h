// A few threads that run one function on different parts of the data.
//
// Threads take parts: if a thread is late, because it sleeps or the machine is busy, the others take its
// parts, and no thread waits for it. A call made while the pool is busy runs in its own thread, so no
// call waits for another.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace heed {

class Pool {
  public:
    explicit Pool(int n_threads) {
        try {
            for (int i = 1; i < n_threads; i++) threads_.emplace_back([this] { work(); });
        } catch (...) {
            stop();
            throw;
        }
    }
    ~Pool() { stop(); }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    int size() const { return int(threads_.size()) + 1; }

    // f(part, n_parts) for every part; as many parts as threads, or one if the pool is taken.
    // An exception of a part is thrown here, when all are done.
    template <class F>
    void run(const F &f) {
        std::unique_lock<std::mutex> owner(owner_, std::try_to_lock);
        if (threads_.empty() || !owner) return f(0, 1);
        call_ = [](const void *g, int part, int n) { (*static_cast<const F *>(g))(part, n); };
        context_ = &f;
        done_.store(0, std::memory_order_relaxed);
        publish();
        take(round());
        const auto are_done = [this] { return done_.load(std::memory_order_acquire) == size(); };
        while (!wait(are_done)) std::this_thread::yield();
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

  private:
    using Call = void (*)(const void *, int, int);
    // How long a thread spins before it sleeps: longer than a search takes between two steps.
    static constexpr std::chrono::microseconds kAwake{300};

    uint64_t round() const { return state_.load(std::memory_order_acquire) >> 32; }

    // Begin a round, with no part taken.
    void publish() {
        std::lock_guard<std::mutex> lock(mutex_);
        state_.store((round() + 1) << 32, std::memory_order_release);
        if (n_asleep_) wake_.notify_all();
    }

    // Run parts of a round while there are some. A running part keeps the round, and with it
    // `call_` and `context_`, from ending.
    void take(uint64_t mine) {
        uint64_t state = state_.load(std::memory_order_acquire);
        while (state >> 32 == mine && int(uint32_t(state)) < size()) {
            if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
            try {
                call_(context_, int(uint32_t(state)), size());
            } catch (...) {
                std::lock_guard<std::mutex> lock(mutex_);
                thrown_ = std::current_exception();
            }
            done_.fetch_add(1, std::memory_order_release);
            state = state_.load(std::memory_order_acquire);
        }
    }

    void work() {
        for (uint64_t seen = 0;;) {
            if (!wait([&] { return round() != seen; })) {
                std::unique_lock<std::mutex> lock(mutex_);
                n_asleep_++;
                wake_.wait(lock, [&] { return round() != seen; });
                n_asleep_--;
            }
            seen = round();
            if (is_over_) return;
            take(seen);
        }
    }

    void stop() {
        is_over_ = true;
        publish();
        for (auto &thread : threads_) thread.join();
    }

    // Waits; returns whether the condition became true in time.
    template <class F>
    static bool wait(const F &is_true) {
        const auto end = std::chrono::steady_clock::now() + kAwake;
        while (!is_true()) {
            if (std::chrono::steady_clock::now() > end) return false;
            pause();
        }
        return true;
    }

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        std::this_thread::yield();
#endif
    }

    std::vector<std::thread> threads_;
    std::mutex owner_, mutex_;
    std::condition_variable wake_;
    std::atomic<uint64_t> state_{0};  // the round, and in the lower half how many parts are taken
    std::atomic<int> done_{0};
    std::atomic<bool> is_over_{false};
    int n_asleep_ = 0;
    Call call_ = nullptr;
    const void *context_ = nullptr;
    std::exception_ptr thrown_;
};

}  // namespace heed
