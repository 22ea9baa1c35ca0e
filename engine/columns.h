// Some output columns of a matrix, copied side by side into a matrix of their own.
#pragma once
#include <cstring>
#include <vector>

#include "kernels.h"

namespace heed {

class Columns {
  public:
    Columns(const Matrix &from, const int32_t *ids, int n) : ids_(ids, ids + n), matrix_(from) {
        matrix_.n = n;
        if (from.ints) copy(from.ints, ints_, from.groups(), 4), matrix_.ints = ints_.data();
        if (from.floats) copy(from.floats, floats_, from.k, 1), matrix_.floats = floats_.data();
        if (from.scales) copy(from.scales, scales_, 1, 1), matrix_.scales = scales_.data();
        if (from.bias) copy(from.bias, bias_, 1, 1), matrix_.bias = bias_.data();
        if (from.starts) copy(from.starts, starts_, 1, 1), matrix_.starts = starts_.data();
    }
    Columns(const Columns &) = delete;
    Columns &operator=(const Columns &) = delete;

    const std::vector<int32_t> &ids() const { return ids_; }
    int size() const { return int(ids_.size()); }
    const Matrix &matrix() const { return matrix_; }

  private:
    // Panels of `groups` times 16 columns of `width` numbers.
    template <class T>
    void copy(const T *from, std::vector<T> &to, int groups, int width) {
        to.assign(size_t(matrix_.panels()) * groups * 16 * width, T(0));
        for (int i = 0; i < size(); i++) {
            const T *column = from + (size_t(ids_[i] / 16) * groups * 16 + ids_[i] % 16) * width;
            T *place = to.data() + (size_t(i / 16) * groups * 16 + i % 16) * width;
            for (int g = 0; g < groups; g++) std::memcpy(place + size_t(g) * 16 * width, column + size_t(g) * 16 * width, sizeof(T) * width);
        }
    }

    std::vector<int32_t> ids_;
    std::vector<int8_t> ints_;
    std::vector<float> floats_, scales_, bias_;
    std::vector<int32_t> starts_;
    Matrix matrix_;
};

}  // namespace heed
