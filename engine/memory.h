// Memory of batches: large blocks, in huge pages if the system has them, which a batch leaves to
// the next. Fresh memory comes from the system page by page, and each page is zeroed first.
#pragma once
#include <cstddef>
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
};

// Blocks left by ended batches, for any thread.
class Blocks {
  public:
    // At least `n_bytes` bytes, uninitialized.
    Block take(size_t bytes) {
        bytes = (bytes + kUnit - 1) / kUnit * kUnit;
        std::lock_guard<std::mutex> lock(mutex_);
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
        Block made{std::unique_ptr<char, Block::Free>((char *)std::aligned_alloc(kAlign, bytes)), bytes};
        if (!made.data) throw std::bad_alloc();
        n_blocks_++;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        madvise(made.data.get(), bytes, MADV_HUGEPAGE);
#endif
        return made;
    }

    void give(Block &&block) noexcept {
        std::lock_guard<std::mutex> lock(mutex_);
        left_.push_back(std::move(block));
    }

  private:
#if defined(HEED_SANITIZED)
    static constexpr size_t kUnit = 64, kAlign = 64;  // a block for each, so that its end is watched
#else
    static constexpr size_t kUnit = 4 << 20, kAlign = 2 << 20;
#endif
    std::mutex mutex_;
    std::vector<Block> left_;
    size_t n_blocks_ = 0;
};

// Memory of one batch, freed with it.
class Arena {
  public:
    explicit Arena(Blocks &blocks) : blocks_(blocks) {}
    ~Arena() {
        for (Block &block : mine_) blocks_.give(std::move(block));
    }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    // n floats, uninitialized.
    float *take(size_t n) {
        const size_t bytes = (n * sizeof(float) + 63) / 64 * 64;
        if (mine_.empty() || mine_.back().bytes - used_ < bytes) {
            mine_.push_back(blocks_.take(bytes));
            used_ = 0;
        }
        float *found = (float *)(mine_.back().data.get() + used_);
        used_ += bytes;
        return found;
    }

  private:
    Blocks &blocks_;
    std::vector<Block> mine_;
    size_t used_ = 0;
};

}  // namespace heed
