// Convolutions with one channel in and one out a group: neighbouring channels are neighbouring lanes.
#pragma once

#include "depthwise_wide.h"

namespace {

// Calls with k = 0 .. n, and with 0 and 1 in turns: what goes into two sums need not wait as long.
template <class Call> inline void in_turns(int64_t n, const Call &call) {
    int64_t k = 0;
    for (; k + 2 <= n; k += 2) {
        call(k, 0);
        call(k + 1, 1);
    }
    if (k < n) call(k, 0);
}

// A block of h outer ones from o and n inner ones from i, of S times `count` channels from c on, side by side.
template <int N, int S, class Rounding, class Sums>
inline void sum_block(const Apart &a, const Units &units, int64_t o, int64_t h, int64_t i, int64_t n, int64_t c,
                      int64_t count, Rounding &rounding, Sums &sums) {
    Across::Ints largest[S] = {}, odd[S], any = {};
    for (int64_t r = 0; r < h; r++) {
        const float *x = a.x + a.outer[o + r] + c;
        for (int64_t k = 0; k < n; k++)
            for (int s = 0; s < S; s++) largest[s] = larger(largest[s], Across::load<N>(x + a.inner[i + k] + 16 * s, count));
    }
    Unit unit[S];
    for (int s = 0; s < S; s++) {
        unit[s] = units.of(largest[s], odd[s]);
        any |= odd[s];
    }
    if (Across::any(any)) {
        if constexpr (S > 1) {
            for (int s = 0; s < S; s++) sum_block<N, 1>(a, units, o, h, i, n, c + 16 * s, count, rounding, sums);
            return;
        }
        rounding.outer(o, c);
        if (sums.any(o, h, i, n, c, count, any, rounding.numbers(h, n))) return;
    }
    rounding.outer(o, c);
    sums.block(i / a.terms, c);
    const auto block = rounding.block();
    for (int64_t r = 0; r < h; r++) {
        const float *x = a.x + a.outer[o + r] + c, *b = a.b.data + i * a.b.ld + c;
        Across::Floats p[S][2] = {};
        in_turns(n, [&](int64_t k, int way) __attribute__((always_inline)) {
            for (int s = 0; s < S; s++)
                p[s][way] += block.mantissa(Across::load<N>(x + a.inner[i + k] + 16 * s, count), unit[s], k, s)
                           * Across::load<N>(b + k * a.b.ld + 16 * s, count);
        });
        rounding.rest(n);
        for (int s = 0; s < S; s++) sums.template add<N>(o + r, c, s, count, p[s][0] + p[s][1], unit[s]);
    }
}

// The same of blocks of K inner ones and 16 channels with noise, `count` of them from outer one o and inner one i on, each
// `across` outer ones and `along` inner ones behind the last. Each takes K lanes once, whose states stay in registers.
template <int K, class Sums>
void sum_drawn(const Apart &a, const Units &units, int64_t o, int64_t i, int64_t c, int64_t count, int64_t across,
               int64_t along, Stochastic &rounding, Sums &sums) {
    const auto block = rounding.block();
    Stochastic::Words state[K];
    std::copy_n(block.states, K, state);
    for (; count--; o += across, i += along) {
        const float *x = a.x + a.outer[o] + c, *b = a.b.data + i * a.b.ld + c;
        Across::Floats p[2] = {};
        Across::Ints largest = {}, odd;
#pragma GCC unroll 16
        for (int k = 0; k < K; k++) largest = larger(largest, Across::load<16>(x + a.inner[i + k], 16));
        const Unit unit = units.of(largest, odd);
        if (Across::any(odd)) {
            std::copy_n(state, K, block.states);
            sum_block<16, 1>(a, units, o, 1, i, K, c, 16, rounding, sums);
            std::copy_n(block.states, K, state);
            continue;
        }
#pragma GCC unroll 16
        for (int k = 0; k < K; k++)
            p[k & 1] += block.mantissa(Across::load<16>(x + a.inner[i + k], 16), unit, k, state[k])
                      * Across::load<16>(b + k * a.b.ld, 16);
        sums.template add<16>(o, c, 0, 16, p[0] + p[1], unit);
    }
    std::copy_n(state, K, block.states);
}

// The same of all blocks of outer ones from `first` to `last` and inner ones from `start` to `end`; false where they take
// other lanes.
template <int K, class Sums>
bool sum_drawn(const Apart &a, const Units &units, int64_t first, int64_t last, int64_t start, int64_t end, int64_t c,
               Stochastic &rounding, Sums &sums) {
    if (!rounding.once(K)) return false;
    if (a.inners == K && !rounding.side()) {                        // all in one line
        rounding.outer(first, c);
        sum_drawn<K>(a, units, first, start, c, last - first, 1, 0, rounding, sums);
        return true;
    }
    if (a.terms != K) return false;
    const int64_t blocks = (end - start) / K, rest = start + blocks * K;
    for (int64_t o = first; o < last; o++) {
        rounding.outer(o, c);
        sum_drawn<K>(a, units, o, start, c, blocks, 0, K, rounding, sums);
        if (rest < end) sum_block<16, 1>(a, units, o, 1, rest, end - rest, c, 16, rounding, sums);
    }
    return true;
}

// All sums from outer one o0 to o1. Some outer ones at a time take `chunk` inner ones at a time: these stay in the caches.
template <class Rounding, class Sums>
void sum_apart(const Apart &a, const Format &f, int64_t o0, int64_t o1, int64_t chunk, Rounding &rounding,
               Sums &sums) {
    const Units units = Sums::units(a, f);
    constexpr int MOST = Rounding::AT_ONCE;
    const int64_t strip = up_to(64, a.high), most = a.channels / (16 * MOST) * (16 * MOST), whole = a.channels / 16 * 16;
    for (int64_t first = o0; first < o1; first += strip) {
        const int64_t last = std::min(first + strip, o1);
        sums.begin(first, last);
        for (int64_t start = 0; start < a.inners; start += chunk) {
            const int64_t end = std::min(start + chunk, a.inners);
            const auto some = [&](auto lanes, auto times, int64_t c, int64_t count) {
                if constexpr (Rounding::DRAWS && lanes() == 16)
                    if (sum_drawn<9>(a, units, first, last, start, end, c, rounding, sums)
                        || sum_drawn<16>(a, units, first, last, start, end, c, rounding, sums)) return;
                for (int64_t o = first; o < last; o += a.high)
                    for (int64_t i = start; i < end; i += a.terms) {
                        const int64_t h = std::min(a.high, last - o), n = std::min(a.terms, end - i);
                        sum_block<lanes(), times()>(a, units, o, h, i, n, c, count, rounding, sums);
                    }
            };
            for (int64_t c = 0; c < most; c += 16 * MOST) some(Count<16>(), Count<MOST>(), c, 16);
            for (int64_t c = most; c < whole; c += 16) some(Count<16>(), Count<1>(), c, 16);
            if (whole < a.channels) some(Count<0>(), Count<1>(), whole, a.channels - whole);
            sums.after(first, last);
        }
        sums.end(first, last);
    }
}

// How many inner ones are taken at a time: all of a pixel, as far as `most` allows, or a block of pixels.
inline int64_t chunk_of(const Apart &a, bool turned, int64_t most, int64_t blocks = 1) {
    return turned ? blocks * a.terms : most ? most : a.inners;
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
    if (high == 1 && !drawing && !float_serves(f, *b.format, *b.span, terms)) {
        if (turned) depthwise_wide_turned(p, f, terms, b, y, flush);
        else depthwise_wide(p, f, terms, b, y, first, last, flush);
        return;
    }
    by_rounding(a, turned, f, drawing, [&](auto rounding) {
        by_rule(flush, true, [&](const auto &rule) {
            FloatSums sums(a, f, flush, rule, y);
            sum_apart(a, f, first, last, chunk_of(a, turned, 0, rounding.BLOCKS), rounding, sums);
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
