// A few threads that do the same to different parts of the data.
//
// They wait awake for a moment, since the next part mostly follows within microseconds, then sleep.
// Who comes while the pool is busy works alone: no call waits for another, and none can deadlock.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace heed {

class Pool {
  public:
    explicit Pool(int n_threads) {
        for (int i = 1; i < n_threads; i++) threads_.emplace_back([this, i] { work(i); });
    }
    ~Pool() {
        publish(nullptr, nullptr);
        for (auto &thread : threads_) thread.join();
    }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    int size() const { return int(threads_.size()) + 1; }

    // f(part, n_parts) for every part, on as many threads; one part only if the pool is taken.
    template <class F>
    void run(const F &f) {
        std::unique_lock<std::mutex> owner(owner_, std::try_to_lock);
        if (threads_.empty() || !owner) return f(0, 1);
        left_.store(int(threads_.size()), std::memory_order_relaxed);
        publish([](const void *g, int part, int n) { (*static_cast<const F *>(g))(part, n); }, &f);
        f(0, size());
        while (left_.load(std::memory_order_acquire)) pause();
    }

  private:
    using Call = void (*)(const void *, int, int);

    void publish(Call call, const void *context) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            call_ = call, context_ = context;
            round_.fetch_add(1, std::memory_order_release);
        }
        if (asleep_.load()) wake_.notify_all();
    }

    void work(int part) {
        for (unsigned seen = 0;;) {
            for (int i = 0; i < 20000 && round_.load(std::memory_order_acquire) == seen; i++) pause();
            if (round_.load(std::memory_order_acquire) == seen) {
                std::unique_lock<std::mutex> lock(mutex_);
                asleep_++;
                wake_.wait(lock, [&] { return round_.load() != seen; });
                asleep_--;
            }
            seen = round_.load(std::memory_order_acquire);
            if (!call_) return;
            call_(context_, part, size());
            left_.fetch_sub(1, std::memory_order_release);
        }
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
    std::atomic<unsigned> round_{0};
    std::atomic<int> left_{0}, asleep_{0};
    Call call_ = nullptr;
    const void *context_ = nullptr;
};

}  // namespace heed
