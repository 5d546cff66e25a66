// Convolutions with one channel in and one out a group: neighbouring channels are neighbouring lanes.
#pragma once

#include "depthwise_wide.h"

namespace {

// Outer ones from o0 to o1 with inner ones from i0 to i1, of `count` channels from c on.
template <int N, class Rounding, class Sums>
void sum_blocks(const Apart &a, const Units &units, int64_t o0, int64_t o1, int64_t i0, int64_t i1, int64_t c,
                int64_t count, Rounding &rounding, Sums &sums) {
    for (int64_t o = o0; o < o1; o += a.high) {
        const int64_t h = std::min(a.high, o1 - o);
        rounding.outer(o, c);
        for (int64_t i = i0; i < i1; i += a.terms) {
            const int64_t n = std::min(a.terms, i1 - i);
            Across::Ints largest = {};
            for (int64_t r = 0; r < h; r++) {
                const float *x = a.x + a.outer[o + r] + c;
                for (int64_t k = 0; k < n; k++) largest = larger(largest, Across::load<N>(x + a.inner[i + k], count));
            }
            Across::Ints odd;
            const Unit unit = units.of(largest, odd);
            if (Across::any(odd) && sums.any(o, h, i, n, c, count, odd, rounding.numbers(h, n))) continue;
            sums.block(i / a.terms, c, unit);
            for (int64_t r = 0; r < h; r++) {
                const float *x = a.x + a.outer[o + r] + c, *b = a.b.data + i * a.b.ld + c;
                Across::Floats p = {};
                for (int64_t k = 0; k < n; k++, b += a.b.ld)
                    p += rounding.mantissa(Across::load<N>(x + a.inner[i + k], count), unit) * Across::load<N>(b, count);
                rounding.rest(n);
                sums.template add<N>(o + r, c, count, p, unit);
            }
        }
    }
}

// All sums from outer one o0 to o1. Some outer ones at a time take `chunk` inner ones at a time, which stay in the caches.
template <class Rounding, class Sums>
void sum_apart(const Apart &a, const Format &f, int64_t o0, int64_t o1, int64_t chunk, Rounding &rounding,
               Sums &sums) {
    const Units units = Sums::units(a, f);
    const int64_t strip = up_to(64, a.high), whole = a.channels / 16 * 16;
    for (int64_t o = o0; o < o1; o += strip) {
        const int64_t last = std::min(o + strip, o1);
        sums.begin(o, last);
        for (int64_t i = 0; i < a.inners; i += chunk) {
            const int64_t end = std::min(i + chunk, a.inners);
            for (int64_t c = 0; c < whole; c += 16) sum_blocks<16>(a, units, o, last, i, end, c, 16, rounding, sums);
            if (whole < a.channels)
                sum_blocks<0>(a, units, o, last, i, end, whole, a.channels - whole, rounding, sums);
            sums.after(o, last);
        }
        sums.end(o, last);
    }
}

// How many inner ones are taken at a time: all of a pixel, or some blocks of pixels, or as many as `most` says, if it does.
inline int64_t chunk_of(const Apart &a, bool turned, int64_t most) {
    const int64_t some = turned ? 8 * a.terms : up_to(a.inners, a.terms) + a.terms;
    return most ? std::min(some, most) : some;
}

// Calls with the rounding of operand x.
template <class Call>
void by_rounding(const Apart &a, bool turned, const Format &f, const Drawing *drawing, const Call &call) {
    if (drawing) call(Stochastic(f, *drawing, a.channels, turned ? a.outers : 1, a.inners, a.terms));
    else call(Nearest(f));
}

// y (outers, channels) from outer one `first` to `last`: all of them where they are taps, or draw.
void depthwise(const Patches &p, bool turned, const Format &f, int64_t high, int64_t terms, const Values &b,
               const Drawing *drawing, float *y, int64_t first, int64_t last, const Flush &flush) {
    const Apart a(p, turned, high, terms, b);
    if (high == 1 && !drawing && !serves(a, f)) {
        if (turned) depthwise_wide_turned(p, f, terms, b, y, flush);
        else depthwise_wide(p, f, terms, b, y, first, last, flush);
        return;
    }
    by_rounding(a, turned, f, drawing, [&](auto rounding) {
        by_rule(flush, true, [&](const auto &rule) {
            FloatSums sums(a, f, flush, rule, y);
            sum_apart(a, f, first, last, chunk_of(a, turned, 0), rounding, sums);
        });
    });
}

// The same with `aligned` sums; left[c] becomes 1 where channel c is left to others.
void depthwise_aligned(const Apart &a, bool turned, const Format &f, const Whole &whole, float *y, int64_t first,
                       int64_t last, const Flush &flush, uint8_t *left) {
    WholeSums sums(a, whole, flush, y);
    Nearest rounding(f);
    sum_apart(a, f, first, last, chunk_of(a, turned, whole.most), rounding, sums);
    for (int64_t c = 0; c < a.channels; c++) left[c] |= sums.left[c / 16][c % 16] != 0;
}

}  // namespace
