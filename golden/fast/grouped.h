// Convolutions in groups of few channels, where a block straddles taps.
#pragma once

#include "across.h"
#include "convolve.h"

namespace {

// sums[o] += sum over i < n of v[i] * w(i, o), o < count.
template <int O, class W, class Rule>
inline void dots(const Across::Floats *v, int64_t n, const W &w, Across::Floats *sums, const Rule &rule) {
    Across::Floats p[O] = {};
    for (int64_t i = 0; i < n; i++)
        for (int o = 0; o < O; o++) p[o] += v[i] * w(i, o);
    for (int o = 0; o < O; o++) sums[o] = plus(sums[o], p[o], rule);
}

template <class W>
inline void all_dots(const Across::Floats *v, int64_t n, int64_t count, const W &w, Across::Floats *sums,
                     const Flush &flush) {
    constexpr int MOST = by_registers(8, 4, 2);
    by_rule(flush, [&](const auto &rule) {
        int64_t o = 0;
        const auto from = [&](int64_t i, int64_t j) { return w(i, o + j); };
        for (; o + MOST <= count; o += MOST) dots<MOST>(v, n, from, sums + o, rule);
        for (; o < count; o++) dots<1>(v, n, from, sums + o, rule);
    });
}

// Rows of output pixels, 16 neighbours at a time, in one group: x is planes (one for each channel), in which element k of
// the patch of pixel j of row r lies at row[r] + offset[k] + j; 16 more may be read behind the last. w (k, n).
class Planes {
  public:
    Planes(const Across &quick, const int64_t *offset, int64_t k, int64_t terms, const float *w, int64_t ldw, int64_t n,
           const Flush &flush)
        : quick_(quick), offset_(offset), k_(k), terms_(terms), w_(w), ldw_(ldw), n_(n), flush_(flush), values_(terms),
          sums_(n) {}

    // y (width, n) of one row, ld between pixels; false where a block is one that `quick` may not round.
    bool row(const float *x, int64_t width, float *y, int64_t ld) {
        for (int64_t j = 0; j < width; j += 16)
            if (!pixels(x + j, std::min<int64_t>(16, width - j), y + j * ld, ld)) return false;
        return true;
    }

  private:
    const Across &quick_;
    const int64_t *offset_;
    int64_t k_, terms_;
    const float *w_;
    int64_t ldw_, n_;
    const Flush &flush_;
    std::vector<Across::Floats> values_, sums_;

    bool pixels(const float *x, int64_t count, float *y, int64_t ld) {
        Across::Ints odd = {};
        std::fill(sums_.begin(), sums_.end(), Across::Floats{});
        for (int64_t k = 0; k < k_; k += terms_) {
            const int64_t n = std::min(terms_, k_ - k);
            const Across::Scale scale = quick_.scale_of<16>(x, offset_ + k, n, 16, odd);
            for (int64_t i = 0; i < n; i++) values_[i] = scale.rounded(Across::load<16>(x + offset_[k + i], 16));
            const float *w = w_ + k * ldw_;
            all_dots(values_.data(), n, n_, [&](int64_t i, int64_t o) { return w[i * ldw_ + o]; }, sums_.data(),
                     flush_);
        }
        for (int64_t i = 0; i < count; i++)                         // not the lanes behind the row
            if (odd[i]) return false;
        for (int64_t i = 0; i < count; i++)
            for (int64_t o = 0; o < n_; o++) y[i * ld + o] = sums_[o][i];
        return true;
    }
};

// The weights' gradient for 16 neighbouring channels of channels-last x: lane j of `wide` belongs to channel j's group.
class GroupedTaps {
  public:
    // `group` (channels): the first column of g of each channel's group; n columns a group.
    GroupedTaps(const Across &quick, const Patches &p, const Values &g, const int64_t *group, int64_t n, int64_t terms,
                const Flush &flush)
        : quick_(quick), p_(p), g_(g), group_(group), n_(n), flush_(flush), values_(terms), wide_(terms * n), sums_(n) {}

    // y (taps, n, ld) += over pixels m .. m + rows, channels c .. c + count; `ld` in whole vectors.
    template <int N> void add(int64_t m, int64_t rows, int64_t c, int64_t count, Across::Floats *y, int64_t ld,
                              Across::Ints &odd) {
        for (int64_t i = 0; i < rows; i++) spread(g_.data + (m + i) * g_.ld, group_ + c, count, &wide_[i * n_]);
        for (int64_t s = 0; s < p_.segments; s++) {
            const float *x = p_.x + p_.segment[s] + c;
            const Across::Scale scale = quick_.scale_of<N>(x, p_.row + m, rows, count, odd);
            for (int64_t i = 0; i < rows; i++) values_[i] = scale.rounded(Across::load<N>(x + p_.row[m + i], count));
            for (int64_t o = 0; o < n_; o++) sums_[o] = y[((s * n_ + o) * ld + c) / 16];
            all_dots(values_.data(), rows, n_, [&](int64_t i, int64_t o) { return wide_[i * n_ + o]; }, sums_.data(),
                     flush_);
            for (int64_t o = 0; o < n_; o++) y[((s * n_ + o) * ld + c) / 16] = sums_[o];
        }
    }

  private:
    const Across &quick_;
    const Patches &p_;
    const Values &g_;
    const int64_t *group_;
    int64_t n_;
    const Flush &flush_;
    std::vector<Across::Floats> values_, wide_, sums_;

    void spread(const float *g, const int64_t *group, int64_t count, Across::Floats *out) const {
        for (int64_t o = 0; o < n_; o++) {
            float v[16] = {};
            if (count == 16 && group[0] == group[7] && group[8] == group[15]) {
                std::fill_n(v, 8, g[group[0] + o]);
                std::fill_n(v + 8, 8, g[group[8] + o]);
            } else
                for (int64_t j = 0; j < count; j++) v[j] = g[group[j] + o];
            get(out[o], v);
        }
    }
};

}  // namespace
