// Programs of the vector unit without sums and functions, one element after the other: docs/design/04-vector-unit.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "convert.h"

namespace elements {

constexpr uint32_t SIGN = 0x80000000, INF = 0x7F800000, NAN_BITS = 0x7FC00000, ONE = 0x3F800000;

// Mirrored by golden/fast/elements.py; keep both in step.
enum Kind : uint32_t { NUMBER = 0, REGISTER = 1, STREAM = 2 };
struct Operand {
    uint32_t kind, value;  // the number's pattern, the register, or the row of the inputs
};
enum Op : uint32_t { MULADD = 0, MAX = 1, GATE = 2 };
struct Pass {
    uint32_t op, relu, negate_a, negate_c;
    Operand a, b, c;
    int32_t target;  // a register, OUT or NONE
};
constexpr int32_t OUT = -1, NONE = -2;

// Elements at a time: the registers of a program stay in the first cache.
constexpr int64_t CHUNK = 512;

inline uint32_t flushed(uint32_t x) { return x & INF ? x : x & SIGN; }
inline uint32_t clean(uint32_t x) { return (x & ~SIGN) > INF ? NAN_BITS : flushed(x); }

// Of flushed numbers. What float64 holds exactly is rounded once; below 2^-126 less half a step of 24 bits it is no
// normal number when it is rounded to 24 bits.
inline uint32_t product(uint32_t a, uint32_t b) {
    constexpr double LEAST = 0x1p-126 - 0x1p-151;
    const double p = double(real(a)) * double(real(b));
    const uint32_t y = word(float(p));
    return std::fabs(p) < LEAST ? y & SIGN : y;
}

// Of flushed numbers: a sum below 2^-126 is exact.
inline uint32_t sum(uint32_t a, uint32_t b) { return clean(word(real(a) + real(b))); }

// 754-2019 maximum: NaN if either is, -0 below +0.
inline uint32_t larger(uint32_t a, uint32_t b) {
    const uint32_t x = flushed(a), y = flushed(b);
    const uint32_t most = int32_t(x ^ (x >> 31 ? ~SIGN : 0)) > int32_t(y ^ (y >> 31 ? ~SIGN : 0)) ? x : y;
    return std::max(a & ~SIGN, b & ~SIGN) > INF ? NAN_BITS : most;
}

inline bool positive(uint32_t x) { return int32_t(x) >= 0x800000 && int32_t(x) <= int32_t(INF); }

template <class F>
inline void each(int64_t n, uint32_t *y, F f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) y[i] = f(i);
}

// One pass over n elements; operands and y may be the same rows. A factor of one and an addend of -0 are left out: what
// is left of their step is to clean.
void run_pass(const Pass &pass, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *y, int64_t n) {
    const uint32_t na = pass.negate_a ? SIGN : 0, nc = pass.negate_c ? SIGN : 0;
    const bool multiplies = pass.b.kind != NUMBER || pass.b.value != ONE;
    const bool adds = pass.c.kind != NUMBER || (pass.c.value ^ nc) != SIGN;
    if (pass.op == MAX)
        each(n, y, [=](int64_t i) { return larger(a[i] ^ na, b[i]); });
    else if (pass.op == GATE)
        each(n, y, [=](int64_t i) { return positive(a[i] ^ na) ? b[i] : 0; });
    else if (multiplies && adds)
        each(n, y, [=](int64_t i) { return sum(product(flushed(a[i] ^ na), flushed(b[i])), flushed(c[i] ^ nc)); });
    else if (multiplies)
        each(n, y, [=](int64_t i) { return clean(product(flushed(a[i] ^ na), flushed(b[i]))); });
    else if (adds)
        each(n, y, [=](int64_t i) { return sum(flushed(a[i] ^ na), flushed(c[i] ^ nc)); });
    else
        each(n, y, [=](int64_t i) { return clean(a[i] ^ na); });
    if (pass.relu)
        each(n, y, [=](int64_t i) { return positive(y[i]) || (y[i] & ~SIGN) > INF ? y[i] : 0; });
}

// Elements first .. last of y.
void run(const Pass *passes, int64_t count, const uint32_t *const *inputs, uint32_t *y, int64_t first,
                  int64_t last) {
    int64_t registers = 1;
    for (int64_t i = 0; i < count; i++) registers = std::max<int64_t>(registers, passes[i].target + 1);
    std::vector<uint32_t> rows(registers * CHUNK), numbers(3 * count * CHUNK), lost(CHUNK);
    for (int64_t i = 0; i < count; i++) {
        const Operand operands[] = {passes[i].a, passes[i].b, passes[i].c};
        for (int64_t j = 0; j < 3; j++) std::fill_n(&numbers[(3 * i + j) * CHUNK], CHUNK, operands[j].value);
    }
    for (int64_t at = first; at < last; at += CHUNK) {
        const int64_t n = std::min(CHUNK, last - at);
        for (int64_t i = 0; i < count; i++) {
            const Pass &pass = passes[i];
            const Operand operands[] = {pass.a, pass.b, pass.c};
            const uint32_t *from[3];
            for (int64_t j = 0; j < 3; j++) {
                const Operand &operand = operands[j];
                from[j] = operand.kind == STREAM ? inputs[operand.value] + at
                    : operand.kind == REGISTER ? &rows[operand.value * CHUNK] : &numbers[(3 * i + j) * CHUNK];
            }
            uint32_t *to = pass.target == OUT ? y + at : pass.target == NONE ? lost.data() : &rows[pass.target * CHUNK];
            run_pass(pass, from[0], from[1], from[2], to, n);
        }
    }
}

}  // namespace elements
