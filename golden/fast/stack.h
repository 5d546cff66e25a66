// Products of many small pairs of matrices, conversions included.
#pragma once

#include <memory>

#include "convolve.h"

namespace {

// y (m, n) = q(a) q(b), a (m, k) and b (k, n) with strides of which one is 1; the room for it serves one pair after the
// other. With `lanes`, what rounds stochastically draws line by line along K, a before b.
class Pair {
  public:
    Pair(int64_t m, int64_t k, int64_t n)
        : m_(m), k_(k), n_(n), a_(new float[m * k]), b_(new float[k * n]), panels_(new float[64 * k]), row_(m), block_(k),
          length_(k) {}

    void multiply(const float *a, int64_t am, int64_t ak, const Format &fa, int64_t high_a, const float *b, int64_t bk,
                  int64_t bn, const Format &fb, int64_t high_b, int64_t terms, float *y, const Flush &flush,
                  Lanes *lanes = nullptr) {
        const bool drawn_a = lanes && fa.rounding == 2, drawn_b = lanes && fb.rounding == 2;
        const Span sa = drawn_a ? draw(a, am, ak, m_, terms, fa, *lanes, a_.get())
                                : encode(a, am, ak, m_, k_, high_a, terms, fa, a_.get());
        const Span sb = drawn_b ? draw(b, bn, bk, n_, terms, fb, *lanes, b_.get())
                                : encode(b, bk, bn, k_, n_, terms, high_b, fb, b_.get());
        if (drawn_a) ak = 1;
        if (drawn_b) bn = k_;
        const int64_t stride = ak == 1 ? 1 : m_;
        int64_t blocks = 0;
        for (int64_t r = 0; r < m_; r++) row_[r] = r * (ak == 1 ? k_ : 1);
        for (int64_t t = 0; t < k_; t += terms, blocks++) {
            block_[blocks] = t * stride;
            length_[blocks] = std::min(terms, k_ - t);
        }
        const Rows at{row_.data(), m_, block_.data(), length_.data(), blocks, stride};
        if (exact(fa, fb, terms, sa, sb)) {
            by_rule(flush, [&](const auto &rule) { run(a_.get(), at, bn, y, panels_.get(), rule); });
            return;
        }
        if (const int times = passes(fa, fb, terms, sa, sb)) {
            PairedOperand(times, b_.get(), bn == 1 ? n_ : 1, bn == 1 ? 1 : k_, n_, at, fb, sb)
                .multiply(PairedRows(a_.get(), k_, at, terms, fa, sa), y, n_, false, flush);
            return;
        }
        doubles_.assign(a_.get(), a_.get() + m_ * k_);
        wide_.resize(64 * k_);
        by_rule(flush, small(sa, sb), [&](const auto &rule) { run(doubles_.data(), at, bn, y, wide_.data(), rule); });
    }

    // The same with a = the patches, or the patches turned.
    void multiply_patches(const Patches &p, bool turned, const Format &fa, int64_t high_a, const float *b, int64_t bk,
                          int64_t bn, const Format &fb, int64_t high_b, int64_t terms, float *y, const Flush &flush) {
        if (!patches_) patches_.reset(new float[m_ * k_]);
        p.gather(0, p.pixels, patches_.get());
        multiply(patches_.get(), turned ? 1 : k_, turned ? m_ : 1, fa, high_a, b, bk, bn, fb, high_b, terms, y, flush);
    }

  private:
    int64_t m_, k_, n_;
    std::unique_ptr<float[]> a_, b_, panels_, patches_, lines_;     // without zeros, which would take time
    std::vector<double> doubles_, wide_;
    std::vector<int64_t> row_, block_, length_;

    // Converted, in the order that the matrix has in memory; a block has `high` rows and `wide` columns.
    static Span encode(const float *x, int64_t row, int64_t column, int64_t rows, int64_t columns, int64_t high,
                       int64_t wide, const Format &f, float *out) {
        Span span{1 << 20, -(1 << 20), 0};
        if (column == 1) convert(x, row, out, columns, nullptr, 0, rows, columns, high, wide, f, span);
        else convert(x, column, out, rows, nullptr, 0, columns, rows, wide, high, f, span);
        return span;
    }

    // Lines of k numbers behind each other, with noise; x has `line` from one to the next and `step` within, one of them 1.
    Span draw(const float *x, int64_t line, int64_t step, int64_t lines, int64_t terms, const Format &f, Lanes &lanes,
              float *out) {
        Span span{1 << 20, -(1 << 20), 0};
        if (step != 1) {
            if (!lines_) lines_.reset(new float[std::max(m_, n_) * k_]);
            turn(x, step, lines_.get(), k_, k_, lines);
            x = lines_.get();
            line = k_;
        }
        convert_drawn(x, line, out, k_, lines, k_, 1, terms, f, lanes, span);
        return span;
    }

    template <class T, class Rule>
    void run(const T *a, const Rows &at, int64_t bn, float *y, T *work, const Rule &rule) {
        ::multiply(a, at, b_.get(), bn == 1 ? n_ : 1, bn == 1 ? 1 : k_, n_, y, n_, work, rule);
    }
};

// Where the pairs of one product lie, and in what formats: see hbfp_stack_drawn().
struct Drawn {
    const float *a;
    int64_t a_step, am, ak;
    const float *b;
    int64_t b_step, bk, bn, m, k, n;
    float *y;
    const Format *fa, *fb;
    const Flush *flush;
    int64_t high_a, high_b;
};

}  // namespace
