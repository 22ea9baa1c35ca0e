// Memory of batches: large blocks, in huge pages if the system has them, reused by later batches. The
// system hands out fresh memory page by page, and zeroes each page first. Blocks that no batch has
// used for a long time are freed, so a rare large batch does not keep its memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace heed {

struct Block {
    struct Free {
        void operator()(char *data) const { std::free(data); }
    };
    std::unique_ptr<char, Free> data;
    size_t bytes = 0;
    uint64_t given_at = 0;  // how many blocks had been taken by then
};

// Blocks left by ended batches, for any thread.
class Blocks {
  public:
    Blocks() {
        All &all = all_blocks();
        std::lock_guard<std::mutex> lock(all.mutex);
        all.blocks.push_back(this);
    }
    ~Blocks() {
        All &all = all_blocks();
        std::lock_guard<std::mutex> lock(all.mutex);
        all.blocks.erase(std::find(all.blocks.begin(), all.blocks.end(), this));
    }
    Blocks(const Blocks &) = delete;
    Blocks &operator=(const Blocks &) = delete;

    // At least `n_bytes` bytes, uninitialized.
    Block take(size_t bytes) {
        bytes = (bytes + kUnit - 1) / kUnit * kUnit;
        std::lock_guard<std::mutex> lock(mutex_);
        n_taken_++;
        size_t best = left_.size();
        for (size_t i = 0; i < left_.size(); i++)
            if (left_[i].bytes >= bytes && (best == left_.size() || left_[i].bytes < left_[best].bytes)) best = i;
        if (best < left_.size()) {
            Block found = std::move(left_[best]);
            left_.erase(left_.begin() + best);
            return found;
        }
        // A block that is too small is freed, so that their number stays bounded.
        if (!left_.empty()) left_.pop_back(), n_blocks_--;
        left_.reserve(n_blocks_ + 1);  // so that `give` needs no memory
        Block made{std::unique_ptr<char, Block::Free>((char *)std::aligned_alloc(kAlign, bytes)), bytes, 0};
        if (!made.data) throw std::bad_alloc();
        n_blocks_++;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        madvise(made.data.get(), bytes, MADV_HUGEPAGE);
#endif
        return made;
    }

    void give(Block &&block) noexcept {
        std::lock_guard<std::mutex> lock(mutex_);
        block.given_at = n_taken_;
        left_.push_back(std::move(block));
        forget([&](const Block &each) { return n_taken_ - each.given_at > kLong; });
    }

    // Frees the unused memory of batches, of all models; returns the number of bytes.
    static size_t give_back() {
        All &all = all_blocks();
        std::lock_guard<std::mutex> lock(all.mutex);
        size_t bytes = 0;
        for (Blocks *each : all.blocks) {
            std::lock_guard<std::mutex> own(each->mutex_);
            for (const Block &block : each->left_) bytes += block.bytes;
            each->forget([](const Block &) { return true; });
        }
        return bytes;
    }

  private:
    struct All {
        std::mutex mutex;
        std::vector<Blocks *> blocks;
    };
    static All &all_blocks() {
        static All *all = new All;  // never deleted: models may live until the process ends
        return *all;
    }
    template <typename F>
    void forget(const F &is_old) {
        const size_t before = left_.size();
        left_.erase(std::remove_if(left_.begin(), left_.end(), is_old), left_.end());
        n_blocks_ -= before - left_.size();
    }

    static constexpr uint64_t kLong = 1000;  // blocks taken: some hundred batches
#if defined(HEED_SANITIZED)
    static constexpr size_t kUnit = 64, kAlign = 64;  // a block for each, so that its end is watched
#else
    static constexpr size_t kUnit = 4 << 20, kAlign = 2 << 20;
#endif
    std::mutex mutex_;
    std::vector<Block> left_;
    size_t n_blocks_ = 0;
    uint64_t n_taken_ = 0;
};

// Memory of one batch, freed with it. The blocks may outlive their model: Python's garbage collector
// deletes a model and its batches in any order.
class Arena {
  public:
    explicit Arena(std::shared_ptr<Blocks> blocks) : blocks_(std::move(blocks)) {}
    ~Arena() {
        for (Block &block : mine_) blocks_->give(std::move(block));
    }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    // n floats, uninitialized.
    float *take(size_t n) {
        const size_t bytes = (n * sizeof(float) + 63) / 64 * 64;
        if (mine_.empty() || mine_.back().bytes - used_ < bytes) {
            mine_.push_back(blocks_->take(bytes));
            used_ = 0;
        }
        float *found = (float *)(mine_.back().data.get() + used_);
        used_ += bytes;
        return found;
    }

  private:
    std::shared_ptr<Blocks> blocks_;
    std::vector<Block> mine_;
    size_t used_ = 0;
};

}  // namespace heed
