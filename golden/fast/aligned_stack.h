// Products of many small pairs of matrices with accumulation `aligned`, conversions included.
#pragma once

#include "aligned.h"
#include "convolve.h"

namespace {

// A matrix (rows, columns) with strides of which one is 1, in blocks of `terms` along `along` (0: down, 1: across):
// mantissas as they lie, and the powers of two of last bits, (blocks, other side) with `ld` between blocks.
struct Mantissas {
    std::vector<float> values, band;
    std::vector<int32_t> last, found;
    std::vector<uint8_t> invalid;
    std::vector<uint32_t> largest;
    std::vector<double> scale;

    // False where a block is invalid.
    bool convert(const float *x, int64_t row, int64_t rows, int64_t column, int64_t columns, bool down, int64_t terms,
                 const Format &f, int64_t ld) {
        const bool turned = column != 1;                            // as it lies: lines behind each other
        const int64_t lines = turned ? columns : rows, length = turned ? rows : columns, step = turned ? column : row;
        const int64_t high = down == turned ? 1 : terms, wide = down == turned ? terms : 1;
        const int64_t across = (length + wide - 1) / wide, bands = (lines + high - 1) / high;
        const int64_t blocks = down == turned ? across : bands;
        const int64_t many = high == 1 && length % wide == 0 && step == length ? std::max<int64_t>(1, 2048 / length) : 1;
        values.resize(lines * length);
        found.resize(bands * across);
        invalid.resize(bands * across);
        last.assign(blocks * ld, 0);
        for (int64_t b = 0; b < bands; b += many) {                 // lines of whole blocks as one
            const int64_t top = b * high, n = std::min(many, bands - b) * length;
            mantissas(x + top * step, step, &values[top * length], length, &found[b * across], &invalid[b * across], nullptr, 0,
                      std::min(high, lines - top), n, high, wide, f, band, largest, scale);
        }
        for (int64_t b = 0; b < bands; b++)
            for (int64_t j = 0; j < across; j++) {
                if (invalid[b * across + j]) return false;
                last[down == turned ? j * ld + b : b * ld + j] = found[b * across + j] - f.magnitude;
            }
        return true;
    }
};

// y (m, n) of a (m, k) and b (k, n), each with strides of which one is 1; the room serves one pair after the other.
class AlignedPair {
  public:
    AlignedPair(int64_t m, int64_t k, int64_t n, int64_t terms)
        : m_(m), k_(k), n_(n), terms_(terms), row_(m), line_(m) {
        for (int64_t i = 0; i < m; i++) line_[i] = i;
        for (int64_t t = 0; t < k; t += terms) length_.push_back(std::min(terms, k - t));
        block_.resize(length_.size());
        exponent_.resize(length_.size());
    }

    // False where a block is invalid, and nothing is written.
    bool multiply(const float *a, int64_t am, int64_t ak, const Format &fa, const float *b, int64_t bk, int64_t bn,
                  const Format &fb, int32_t guard, int64_t most, float *y, const Flush &flush) {
        const int64_t stride = ak == 1 ? 1 : m_, blocks = length_.size(), lde = (n_ + 31) / 32 * 32;
        if (!a_.convert(a, am, m_, ak, k_, false, terms_, fa, m_) || !b_.convert(b, bk, k_, bn, n_, true, terms_, fb, lde))
            return false;
        for (int64_t i = 0; i < m_; i++) row_[i] = ak == 1 ? i * k_ : i;
        for (int64_t j = 0; j < blocks; j++) {
            block_[j] = j * terms_ * stride;
            exponent_[j] = j * m_;
        }
        const int64_t row = bn == 1 ? n_ : 1, column = bn == 1 ? 1 : k_;
        panels_.resize(aligned_size<float>(k_, n_));
        if (most >= 0) aligned_pack(b_.values.data(), row, column, k_, n_, guard, panels_.data());
        multiply_mantissas(a_.values.data(), m_ * k_, Rows{row_.data(), m_, block_.data(), length_.data(), blocks, stride},
                           Exponents{a_.last.data(), line_.data(), exponent_.data()}, panels_.data(), b_.values.data(), row,
                           column, b_.last.data(), n_, lde, guard, most, y, flush);
        return true;
    }

    // The same with a = the patches, or the patches turned.
    bool multiply_patches(const Patches &p, bool turned, const Format &fa, const float *b, int64_t bk, int64_t bn,
                          const Format &fb, int32_t guard, int64_t most, float *y, const Flush &flush) {
        patches_.resize(m_ * k_);
        p.gather(0, p.pixels, patches_.data());
        return multiply(patches_.data(), turned ? 1 : k_, turned ? m_ : 1, fa, b, bk, bn, fb, guard, most, y, flush);
    }

  private:
    int64_t m_, k_, n_, terms_;
    Mantissas a_, b_;
    std::vector<float> patches_, panels_;
    std::vector<int64_t> row_, line_, block_, length_, exponent_;
};

}  // namespace
