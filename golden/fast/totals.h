// Running sums of 16 lanes each, to which block sums of mantissas are added.
#pragma once

#include "aligned.h"
#include "columns.h"

namespace {

// Whether FP32 holds the sums of blocks of mantissas times operand b, in any order, and what it holds times their step.
inline bool float_serves(const Format &f, const Format &fb, const Span &b, int64_t terms) {
    return f.rounding != 1 && !f.gradual && (f.rounding != 2 || f.noise_bits <= 24 - f.magnitude)
        && exact(f, fb, terms, Span{0, 0, 0}, Span{0, 0, 0}) && b.low >= -126 && b.high <= 96;
}

// Units of blocks whose sums of `terms` products with mantissas times operand b, in any order, FP32 holds; of none where
// it does not.
inline Units float_units(const Format &f, const Format &fb, const Span &b, int64_t terms) {
    const bool zeros = b.low > b.high;
    int32_t reach = zeros ? 0 : b.high;
    for (int64_t t = terms; t; t >>= 1) reach++;
    Units units(f);
    if (float_serves(f, fb, b, terms)) units.narrow(f.magnitude - (zeros ? 0 : b.low), 253 - reach);
    else units.narrow(255, 0);
    return units;
}

// In FP32 or less.
template <class Rule> class FloatTotals {
  public:
    static constexpr bool WHOLE = false;

    explicit FloatTotals(const Rule &rule) : rule_(rule) {}

    void resize(int64_t count) { sums_.resize(count); }
    void clear() { std::fill(sums_.begin(), sums_.end(), Across::Floats{}); }
    int32_t power(int64_t, int64_t) const { return 0; }

    void add(int64_t at, bool, const Across::Floats &p, const Unit &unit, const Across::Ints &) {
        sums_[at] = plus(sums_[at], Across::Floats(p * unit.step), rule_);
    }

    void after(int64_t, Across::Ints &) const {}
    void read(int64_t at, float *out) const { put(out, sums_[at]); }

  private:
    const Rule &rule_;
    std::vector<Across::Floats> sums_;
};

// What `aligned` sums take beside mantissas b, times 2^(guard + 1): see multiply_aligned(). last (blocks, ld): b's powers of
// two.
struct Whole {
    const int32_t *last;
    int64_t ld;
    int32_t guard;
    int64_t most;
};

// 16 sums, each an integer times a power of two, less 2^less, as FP32: see round_all().
inline void round_lanes(const Across::Ints &total, const Across::Ints &power, int32_t less, float *out, const Flush &flush) {
    const Across::Ints exponent = power - less;
    if (!Across::any((exponent < -126) | (exponent > 96))) {
        put(out, convert<float>(total) * as<float>((exponent + 127) << 23));
        return;
    }
    int32_t each[2][16];
    put(each[0], total);
    put(each[1], power);
    round_all(each[0], each[1], 16, less, out, flush);
}

// In one accumulator of int32.
class WholeTotals {
  public:
    static constexpr bool WHOLE = true;

    WholeTotals(const Whole &whole, int64_t terms, const Flush &flush)
        : whole_(whole), every_(whole.most / terms), flush_(flush) {}

    void resize(int64_t count) {
        total_.resize(count);
        last_.resize(count);
    }

    void clear() {}
    int32_t power(int64_t block, int64_t column) const { return whole_.last[block * whole_.ld + column]; }

    // `power`: that of b's last bit; `first`: the sum begins.
    void add(int64_t at, bool first, const Across::Floats &p, const Unit &unit, const Across::Ints &power) {
        put_or_align(first, total_[at], last_[at], convert<int32_t>(p), unit.power + power);
    }

    // Behind so many blocks: sets `left` in lanes in which int32 may not hold as many more as it must.
    void after(int64_t blocks, Across::Ints &left) const {
        if (!every_ || blocks % every_) return;
        for (const Across::Ints &total : total_) left |= (total ^ total >> 31) > (1 << 30) - 1;
    }

    void read(int64_t at, float *out) const {
        round_lanes(total_[at], last_[at], whole_.guard + 1, out, flush_);
    }

  private:
    const Whole &whole_;
    int64_t every_;
    const Flush &flush_;
    std::vector<Across::Ints> total_, last_;
};

}  // namespace
