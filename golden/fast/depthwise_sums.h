// What sums of depthwise convolutions are kept in.
#pragma once

#include "convolve.h"
#include "totals.h"

namespace {

// Sums of each channel c: for every outer o, over the inner i, x[outer[o] + inner[i] + c] * b[i][c]. Outer ones are pixels
// and inner ones taps, or, for the weights' gradient, the other way round. A block has `terms` inner ones of `high`
// neighbouring outer ones.
struct Apart {
    const float *x;
    const int64_t *outer, *inner;
    int64_t outers, inners, channels, high, terms;
    Values b;

    Apart(const Patches &p, bool turned, int64_t high, int64_t terms, const Values &b)
        : x(p.x), outer(turned ? p.segment : p.row), inner(turned ? p.row : p.segment),
          outers(turned ? p.segments : p.pixels), inners(turned ? p.pixels : p.segments), channels(p.length), high(high),
          terms(terms), b(b) {}
};

// Sums in FP32 or less, in y itself.
template <class Rule> class FloatSums {
  public:
    FloatSums(const Apart &a, const Format &f, const Flush &flush, const Rule &rule, float *y)
        : a_(a), f_(f), flush_(flush), rule_(rule), y_(y) {}

    static Units units(const Apart &a, const Format &f) { return float_units(f, *a.b.format, *a.b.span, a.terms); }

    void begin(int64_t first, int64_t last) { std::fill(y_ + first * a_.channels, y_ + last * a_.channels, 0.0f); }
    void end(int64_t first, int64_t last) { canonical(y_ + first * a_.channels, (last - first) * a_.channels); }
    void block(int64_t, int64_t) {}
    void after(int64_t, int64_t) {}

    // In the s-th 16 channels from c on.
    template <int N>
    void add(int64_t o, int64_t c, int s, int64_t count, const Across::Floats &p, const Unit &unit) {
        float *y = y_ + o * a_.channels + c + 16 * s;
        const Across::Floats total = plus(Across::load<N>(y, count), Across::Floats(p * unit.step), rule_);
        if constexpr (N == 16) put(y, total);
        else
            for (int64_t j = 0; j < count; j++) y[j] = total[j];
    }

    // A block of any numbers, h outer ones from o and n inner ones from i; noise (h, n, 16) if any.
    bool any(int64_t o, int64_t h, int64_t i, int64_t n, int64_t c, int64_t count, const Across::Ints &,
             const int32_t *noise) {
        std::vector<float> part(h * n);
        std::vector<int32_t> own(noise ? h * n : 0);
        std::vector<double> sums(h * 16);
        for (int64_t j = 0; j < count; j++) {
            for (int64_t r = 0; r < h; r++)
                for (int64_t k = 0; k < n; k++) {
                    part[r * n + k] = a_.x[a_.outer[o + r] + a_.inner[i + k] + c + j];
                    if (noise) own[r * n + k] = noise[(r * n + k) * 16 + j];
                }
            Span span{};
            block_any(part.data(), n, part.data(), n, noise ? own.data() : nullptr, n, h, n,
                      int32_t(largest_of<0>(part.data(), h * n) >> 23), f_, span);
            for (int64_t r = 0; r < h; r++)
                for (int64_t k = 0; k < n; k++)
                    sums[r * 16 + j] += double(part[r * n + k]) * double(a_.b.data[(i + k) * a_.b.ld + c + j]);
        }
        for (int64_t r = 0; r < h; r++) {
            float *y = y_ + (o + r) * a_.channels + c, total[16] = {};
            std::copy_n(y, count, total);
            by_rule(flush_, true, [&](const auto &rule) { add_doubles(total, &sums[r * 16], rule); });
            std::copy_n(total, count, y);
        }
        return true;
    }

  private:
    const Apart &a_;
    const Format &f_;
    const Flush &flush_;
    const Rule &rule_;
    float *y_;

    template <class Any> static void add_doubles(float *total, const double *sums, const Any &rule) {
        typename Vectors<double>::Type v;
        for (int64_t j = 0; j < 16; j += Vectors<double>::LANES) {
            get(v, sums + j);
            ::add(total + j, v, rule);
        }
    }
};

// Sums in one accumulator of int32; what that does not hold is left.
class WholeSums {
  public:
    WholeSums(const Apart &a, const Whole &whole, const Flush &flush, float *y)
        : a_(a), whole_(whole), flush_(flush), y_(y), slices_((a.channels + 15) / 16) {
        left.resize(slices_);
    }

    static Units units(const Apart &, const Format &f) { return Units(f); }

    void begin(int64_t first, int64_t last) {
        first_ = first;
        total_.assign((last - first) * slices_, Across::Ints{});
        last_.assign((last - first) * slices_, Across::Ints{});
    }

    void block(int64_t j, int64_t c) {
        other_ = whole_.last + j * whole_.ld + c;
        start_ = j == 0;
    }

    template <int N> void add(int64_t o, int64_t c, int s, int64_t, const Across::Floats &p, const Unit &unit) {
        const int64_t at = (o - first_) * slices_ + c / 16 + s;
        Across::Ints &total = total_[at], &last = last_[at], power;
        get(power, other_ + 16 * s);
        power += unit.power;
        put_or_align(start_, total, last, convert<int32_t>(p), power);
    }

    bool any(int64_t, int64_t, int64_t, int64_t, int64_t c, int64_t, const Across::Ints &odd, const int32_t *) {
        left[c / 16] |= odd;
        return false;
    }

    // Behind some blocks: whether int32 holds as many more.
    void after(int64_t first, int64_t last) {
        for (int64_t i = 0; whole_.most && i < (last - first) * slices_; i++)
            left[i % slices_] |= (total_[i] ^ total_[i] >> 31) > (1 << 30) - 1;
    }

    void end(int64_t first, int64_t last) {
        for (int64_t i = 0; i < (last - first) * slices_; i++) {
            const int64_t c = i % slices_ * 16, count = std::min<int64_t>(16, a_.channels - c);
            float *y = y_ + (first + i / slices_) * a_.channels + c, out[16];
            round_lanes(total_[i], last_[i], whole_.guard + 1, count == 16 ? y : out, flush_);
            if (count < 16) std::copy_n(out, count, y);
        }
    }

    std::vector<Across::Ints> left;                                 // channels whose sums it does not hold

  private:
    const Apart &a_;
    const Whole &whole_;
    const Flush &flush_;
    float *y_;
    int64_t slices_, first_ = 0;
    std::vector<Across::Ints> total_, last_;
    const int32_t *other_ = nullptr;
    bool start_ = false;
};

}  // namespace
