// FP32 to blocks and back: docs/numerics.md, section 2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#if defined(__AVX512DQ__)
#include <immintrin.h>
#endif

#include "noise.h"

namespace {

struct Format {
    int32_t magnitude;            // bits m without sign
    int32_t lowest, highest;      // shared exponent
    int32_t rounding;             // 0 rne, 1 truncate, 2 stochastic
    int32_t noise_bits;
    int32_t gradual;              // keep subnormal elements
};

// What a conversion leaves to know: powers of two of the last bits in use, largest exponent, whether a block is invalid.
struct Span {
    int32_t low, high, invalid;
};

inline uint32_t word(float x) { uint32_t w; std::memcpy(&w, &x, 4); return w; }
inline float real(uint32_t w) { float x; std::memcpy(&x, &w, 4); return x; }
inline int32_t field_of(uint32_t w) { return int32_t(w >> 23 & 0xFF); }

// One element, any case: docs/numerics.md, section 2, steps 2, 4 and 5. Sets `used` if the mantissa is not 0.
float element(uint32_t w, int32_t exponent, const Format &f, int32_t noise, bool &used) {
    int32_t field = field_of(w);
    uint64_t significand = w & 0x7FFFFF;
    if (field) significand |= 1 << 23;
    else if (!f.gradual) return 0;
    int32_t shift = exponent + 126 - std::max(field, 1) + 24 - f.magnitude;
    shift = std::min(std::max(shift, 0), 63);
    uint64_t m = significand >> shift;
    if (f.rounding == 0 && shift) {
        uint64_t rest = significand - (m << shift), half = uint64_t(1) << (shift - 1);
        m += rest > half || (rest == half && (m & 1));
    } else if (f.rounding == 2) {
        uint64_t kept = shift > f.noise_bits ? significand >> (shift - f.noise_bits)
                                             : significand << (f.noise_bits - shift);
        m = (kept + uint64_t(noise)) >> f.noise_bits;
    }
    m = std::min(m, (uint64_t(1) << f.magnitude) - 1);
    used |= m != 0;
    float y = std::ldexp(float(m), exponent - f.magnitude);
    return m && w >> 31 ? -y : y;
}

// A block of rows x columns, any case.
void block_any(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
               int64_t rows, int64_t columns, int32_t top, const Format &f, Span &span) {
    int32_t exponent = std::min(std::max(top - 126, f.lowest), f.highest);
    bool used = false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * ldy + j] = top == 255 ? real(0x7FC00000)
                : element(word(x[i * ldx + j]), exponent, f, noise ? noise[i * ldn + j] : 0, used);
    span.invalid |= top == 255;
    if (used) {
        span.low = std::min(span.low, exponent - f.magnitude);
        span.high = std::max(span.high, exponent);
    }
}

// Blocks whose largest exponent field lies here, unclamped, may be rounded by float arithmetic: adding 1.5 * 2^23 steps
// and taking it away again rounds to whole steps, ties to even, and no number on the way leaves the normal range.
inline bool plain_range(int32_t top, const Format &f) {
    return top >= 64 && top <= 220 && top - 126 >= f.lowest && top - 126 <= f.highest
        && (f.rounding != 2 || f.noise_bits <= 24 - f.magnitude);
}

// `scale`: what scale_of() says.
template <int ROUNDING>
inline float plain(float x, float step, float scale, float limit, const Format &f, int32_t noise) {
    if (ROUNDING == 0) {
        float v = (x + scale) - scale;
        v = v < -limit ? -limit : v;
        return v > limit ? limit : v;
    }
    int32_t m = int32_t(std::fabs(x) * scale);                      // at most 24 bits, cut off
    if (ROUNDING == 2) m = (m + noise) >> f.noise_bits;
    const float v = float(std::min(m, (1 << f.magnitude) - 1)) * step;
    return real(word(v) | (word(x) & 0x80000000)) + 0.0f;           // -0 becomes 0
}

inline float step_of(int32_t top, const Format &f) { return real(uint32_t(top + 1 - f.magnitude) << 23); }

// What is added to round to steps; else what makes integers of the bits that count.
template <int ROUNDING> inline float scale_of(int32_t top, const Format &f) {
    if (ROUNDING == 0) return step_of(top, f) * 12582912.0f;
    return real(uint32_t(253 - top + f.magnitude + (ROUNDING == 2 ? f.noise_bits : 0)) << 23);
}

// The largest magnitude of n elements, as bits; N, if not 0, is n at compile time.
template <int N>
inline uint32_t largest_of(const float *x, int64_t n) {
    uint32_t largest = 0;
#pragma GCC unroll 1                                                // vectors, not 16 scalar steps
    for (int64_t j = 0; j < (N ? N : n); j++) largest = std::max(largest, word(x[j]) & 0x7FFFFFFF);
    return largest;
}

template <int ROUNDING, int N>
inline void plain_block(const float *x, float *y, const int32_t *noise, int64_t n, float step, float scale, const Format &f) {
    const float limit = step * float((1 << f.magnitude) - 1);
#pragma GCC ivdep                                                   // y may be x
#pragma GCC unroll 1
    for (int64_t j = 0; j < (N ? N : n); j++)
        y[j] = plain<ROUNDING>(x[j], step, scale, limit, f, ROUNDING == 2 ? noise[j] : 0);
}

// Four numbers, and the larger of each two.
typedef int32_t Quad __attribute__((vector_size(16)));
inline Quad larger(const Quad &a, const Quad &b) { return a > b ? a : b; }

// The largest magnitudes of a block of N elements, as bits: one of every fourth.
template <int N> inline Quad largest_fourths(const float *x) {
    Quad largest = {};
#pragma GCC unroll 8
    for (int j = 0; j < N; j += 4) {
        Quad w;
        std::memcpy(&w, x + j, sizeof w);
        largest = larger(largest, w & 0x7FFFFFFF);
    }
    return largest;
}

// The largest exponent fields of four neighbouring blocks of N elements.
template <int N> inline Quad four_tops(const float *x) {
    const Quad a = largest_fourths<N>(x), b = largest_fourths<N>(x + N), c = largest_fourths<N>(x + 2 * N),
               d = largest_fourths<N>(x + 3 * N), even = {0, 4, 1, 5}, odd = {2, 6, 3, 7}, lower = {0, 1, 4, 5},
               upper = {2, 3, 6, 7};
    const Quad ab = larger(__builtin_shuffle(a, b, even), __builtin_shuffle(a, b, odd));
    const Quad cd = larger(__builtin_shuffle(c, d, even), __builtin_shuffle(c, d, odd));
    return larger(__builtin_shuffle(ab, cd, lower), __builtin_shuffle(ab, cd, upper)) >> 23;
}

// Four neighbouring blocks of N elements, if all may be rounded by float arithmetic, and what they add to the extremes
// `low` and `high` of their largest exponent fields.
template <int ROUNDING, int N>
inline bool four_blocks(const float *x, float *y, const int32_t *noise, int32_t bottom, int32_t roof, const Format &f,
                        Quad &low, Quad &high) {
    const Quad top = four_tops<N>(x);
    const Quad outside = (top < bottom) | (top > roof);
    int64_t any[2];
    std::memcpy(any, &outside, sizeof any);
    if (any[0] | any[1]) return false;
    low = top < low ? top : low;
    high = larger(high, top);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        plain_block<ROUNDING, N>(x + i * N, y + i * N, ROUNDING == 2 ? noise + i * N : nullptr, N, step_of(top[i], f),
                                 scale_of<ROUNDING>(top[i], f), f);
    return true;
}

// Blocks of one row, n elements each.
template <int ROUNDING>
void segments(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
              int64_t rows, int64_t columns, int64_t wide, const Format &f, Span &span) {
    int32_t lowest = 1 << 20, highest = -1;
    const int32_t bottom = std::max(64, f.lowest + 126);
    const int32_t roof = ROUNDING != 2 || f.noise_bits <= 24 - f.magnitude ? std::min(220, f.highest + 126) : -1;
    Quad low = Quad{} + lowest, high = Quad{} + highest;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c += wide) {
            const float *four = x + r * ldx + c;
            while ((wide == 16 || wide == 32) && columns - c >= 4 * wide
                   && (wide == 16 ? four_blocks<ROUNDING, 16> : four_blocks<ROUNDING, 32>)(
                       four, y + r * ldy + c, ROUNDING == 2 ? noise + r * ldn + c : nullptr, bottom, roof, f, low, high)) {
                four += 4 * wide;
                c += 4 * wide;
            }
            if (c == columns) break;
            const int64_t n = std::min(wide, columns - c);
            const float *in = x + r * ldx + c;
            float *out = y + r * ldy + c;
            const uint32_t largest = n == 16 ? largest_of<16>(in, n) : n == 32 ? largest_of<32>(in, n)
                                   : largest_of<0>(in, n);
            const int32_t top = int32_t(largest >> 23);
            if (top == 0 && !f.gradual) {
                std::fill(out, out + n, 0.0f);
                continue;
            }
            const int32_t *u = ROUNDING == 2 ? noise + r * ldn + c : nullptr;
            if (!plain_range(top, f)) {
                block_any(in, ldx, out, ldy, u, ldn, 1, n, top, f, span);
                continue;
            }
            lowest = std::min(lowest, top);
            highest = std::max(highest, top);
            const float step = step_of(top, f), scale = scale_of<ROUNDING>(top, f);
            if (n == 16) plain_block<ROUNDING, 16>(in, out, u, n, step, scale, f);
            else if (n == 32) plain_block<ROUNDING, 32>(in, out, u, n, step, scale, f);
            else plain_block<ROUNDING, 0>(in, out, u, n, step, scale, f);
        }
    for (int i = 0; i < 4; i++) {
        lowest = std::min(lowest, low[i]);
        highest = std::max(highest, high[i]);
    }
    if (highest >= 0) {
        span.low = std::min(span.low, lowest - 126 - f.magnitude);
        span.high = std::max(span.high, highest - 126);
    }
}

// Blocks of several rows: a band of `high` rows, many columns at once; each block `tile` columns wide.
template <int ROUNDING>
void bands(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
           int64_t rows, int64_t columns, int64_t high, int64_t tile, const Format &f, Span &span) {
    constexpr int64_t most = 1024;                                  // BLOCK_LIMIT of golden/spec/format.py
    const int64_t wide = tile * std::max<int64_t>(1, 512 / tile);
    const float limit_steps = float((1 << f.magnitude) - 1);
    const int32_t bottom = std::max(64, f.lowest + 126), roof = std::min(220, f.highest + 126);
    const bool noise_fits = ROUNDING != 2 || f.noise_bits <= 24 - f.magnitude;
    int32_t lowest = 1 << 20, highest = -1;
    for (int64_t r = 0; r < rows; r += high) {
        int64_t h = std::min(high, rows - r);
        for (int64_t c = 0; c < columns; c += wide) {
            const int64_t n = std::min(wide, columns - c);
            const float *in = x + r * ldx + c;
            float *out = y + r * ldy + c;
            const int32_t *u = ROUNDING == 2 ? noise + r * ldn + c : nullptr;
            uint32_t largest[most] = {};
            int32_t odd = 0, low = 1 << 20, up = -1;
            float step[most], scale[most], limit[most];
            for (int64_t i = 0; i < h; i++)
                for (int64_t j = 0; j < n; j++)
                    largest[j] = std::max(largest[j], word(in[i * ldx + j]) & 0x7FFFFFFF);
            for (int64_t t = 0; tile > 1 && t < n; t += tile) {
                int64_t end = std::min(t + tile, n);
                uint32_t one = 0;
                for (int64_t j = t; j < end; j++) one = std::max(one, largest[j]);
                for (int64_t j = t; j < end; j++) largest[j] = one;
            }
            for (int64_t j = 0; j < n; j++) {
                int32_t t = int32_t(largest[j] >> 23), zero = (t == 0) & !f.gradual;
                odd |= !zero & ((t < bottom) | (t > roof));
                low = std::min(low, zero ? 1 << 20 : t);
                up = std::max(up, zero ? -1 : t);
                const int32_t own = std::min(std::max(t, bottom), roof);
                float s = step_of(own, f);
                scale[j] = scale_of<ROUNDING>(own, f);
                limit[j] = zero ? 0.0f : s * limit_steps;
                step[j] = zero ? 0.0f : s;
            }
            if (odd || !noise_fits) {
                for (int64_t j = 0; j < n; j += tile)
                    block_any(in + j, ldx, out + j, ldy, u ? u + j : nullptr, ldn, h, std::min(tile, n - j),
                              int32_t(largest[j] >> 23), f, span);
                continue;
            }
            lowest = std::min(lowest, low);
            highest = std::max(highest, up);
            for (int64_t i = 0; i < h; i++)
#pragma GCC ivdep                                                   // y may be x
                for (int64_t j = 0; j < n; j++)
                    out[i * ldy + j] = plain<ROUNDING>(in[i * ldx + j], step[j], scale[j], limit[j], f,
                                                       ROUNDING == 2 ? u[i * ldn + j] : 0) + 0.0f;
        }
    }
    if (highest >= 0) {
        span.low = std::min(span.low, lowest - 126 - f.magnitude);
        span.high = std::max(span.high, highest - 126);
    }
}

// Blocks of one column, rounding `rne`, without subnormals: 16 columns at a time, their steps in registers.
void columns_rne(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t columns, int64_t high,
                 const Format &f, Span &span) {
    typedef Vector<float> Floats;
    typedef Vector<int32_t> Ints;
    const int32_t bottom = std::max(64, f.lowest + 126), roof = std::min(220, f.highest + 126);
    const float most = float((1 << f.magnitude) - 1);
    Ints lowest = Ints{} + (1 << 20), highest = Ints{} - 1;
    for (int64_t r = 0; r < rows; r += high) {
        const int64_t h = std::min(high, rows - r), whole = columns / 16 * 16;
        if (whole < columns) bands<0>(x + r * ldx + whole, ldx, y + r * ldy + whole, ldy, nullptr, 0, h, columns - whole, high,
                                      1, f, span);
        for (int64_t c = 0; c < whole; c += 16) {
            const float *in = x + r * ldx + c;
            float *out = y + r * ldy + c;
            Ints largest = {};
            Floats v;
            for (int64_t i = 0; i < h; i++) {
                get(v, in + i * ldx);
                const Ints size = as<int32_t>(v) & 0x7FFFFFFF;
                largest = select(size > largest, size, largest);
            }
            const Ints top = largest >> 23, zero = top == 0, odd = ~zero & ((top < bottom) | (top > roof));
            int32_t any = 0;
            for (int i = 0; i < 16; i++) any |= odd[i];
            if (any) {
                for (int i = 0; i < 16; i++)
                    block_any(in + i, ldx, out + i, ldy, nullptr, 0, h, 1, top[i], f, span);
                continue;
            }
            const Ints none = zero & (1 << 20), at_least = top | none;
            lowest = select(at_least < lowest, at_least, lowest);
            highest = select(top > highest, top, highest);
            const Floats step = as<float>((top + (1 - f.magnitude)) << 23 & ~zero), magic = step * 12582912.0f,
                         limit = step * most;
            for (int64_t i = 0; i < h; i++) {
                get(v, in + i * ldx);
                v = (v + magic) - magic;
                v = select(v < -limit, -limit, v);
                put(out + i * ldy, select(v > limit, limit, v) + 0.0f);    // -0 becomes 0
            }
        }
    }
    int32_t low = 1 << 20, up = -1;
    for (int i = 0; i < 16; i++) {
        low = std::min(low, lowest[i]);
        up = std::max(up, highest[i]);
    }
    if (up > 0) {
        span.low = std::min(span.low, low - 126 - f.magnitude);
        span.high = std::max(span.high, up - 126);
    }
}

// v, or where that is nearer to 0 `most`, with the sign of v.
inline Vector<float> within(const Vector<float> &v, const Vector<float> &most) {
#if defined(__AVX512DQ__)
    constexpr int NEARER_TO_ZERO = 2;
    return Vector<float>(_mm512_range_ps(__m512(v), __m512(most), NEARER_TO_ZERO));
#else
    const Vector<float> m = select(v < -most, -most, v);
    return select(m > most, most, m);
#endif
}

// Whether tiles are whole within so many columns that tiles_rne() takes at a time; of fewer bands() is quicker.
constexpr int64_t ABREAST = 96;
inline bool abreast(int64_t columns, int64_t wide) { return columns >= ABREAST && wide > 1 && ABREAST % wide == 0; }

// A band of tiles in so many columns, rounding `rne`, without subnormals: what rounds them is in registers. False where a
// tile is not one of those that float arithmetic rounds; y may be x, `lowest` and `highest` are of exponent fields.
inline bool tiles_abreast(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t h, int64_t wide, const Format &f,
                          int32_t &lowest, int32_t &highest) {
    typedef Vector<float> Floats;
    typedef Vector<int32_t> Ints;
    constexpr int N = ABREAST / 16;
    const int32_t bottom = std::max(64, f.lowest + 126), roof = std::min(220, f.highest + 126);
    const float most = float((1 << f.magnitude) - 1);
    int32_t tops[ABREAST], low = 1 << 20, up = -1;
    Ints largest[N] = {};
    for (int64_t i = 0; i < h; i++)
#pragma GCC unroll 6
        for (int n = 0; n < N; n++) {
            Floats v;
            get(v, x + i * ldx + 16 * n);
            const Ints size = as<int32_t>(v) & 0x7FFFFFFF;
            largest[n] = select(size > largest[n], size, largest[n]);
        }
#pragma GCC unroll 6
    for (int n = 0; n < N; n++) put(tops + 16 * n, largest[n]);
    for (int64_t t = 0; t < ABREAST; t += wide) {
        const int32_t top = *std::max_element(tops + t, tops + t + wide) >> 23;
        std::fill_n(tops + t, wide, top);
        if (!top) continue;
        low = std::min(low, top);
        up = std::max(up, top);
    }
    if (up >= 0 && (low < bottom || up > roof)) return false;
    lowest = std::min(lowest, low);
    highest = std::max(highest, up);
    Floats magic[N], limit[N];
#pragma GCC unroll 6
    for (int n = 0; n < N; n++) {
        Ints top;
        get(top, tops + 16 * n);
        const Floats step = as<float>((top + (1 - f.magnitude)) << 23 & ~(top == 0));
        magic[n] = step * 12582912.0f;
        limit[n] = step * most;
    }
    for (int64_t i = 0; i < h; i++)
#pragma GCC unroll 6
        for (int n = 0; n < N; n++) {
            Floats v;
            get(v, x + i * ldx + 16 * n);
            put(y + i * ldy + 16 * n, within((v + magic[n]) - magic[n], limit[n]) + 0.0f);    // -0 becomes 0
        }
    return true;
}

// The same of all columns and bands.
void tiles_rne(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t columns, int64_t high,
               int64_t wide, const Format &f, Span &span) {
    const int64_t whole = columns / ABREAST * ABREAST, rest = columns - whole;
    std::vector<float> own(rest ? high * ABREAST : 0);              // the last columns, with zeros beside them
    int32_t lowest = 1 << 20, highest = -1;
    for (int64_t r = 0; r < rows; r += high) {
        const int64_t h = std::min(high, rows - r);
        for (int64_t c = 0; c < whole; c += ABREAST) {
            const float *in = x + r * ldx + c;
            float *out = y + r * ldy + c;
            if (!tiles_abreast(in, ldx, out, ldy, h, wide, f, lowest, highest))
                bands<0>(in, ldx, out, ldy, nullptr, 0, h, ABREAST, high, wide, f, span);
        }
        if (!rest) continue;
        const float *in = x + r * ldx + whole;
        float *out = y + r * ldy + whole;
        for (int64_t i = 0; i < h; i++) std::copy_n(in + i * ldx, rest, &own[i * ABREAST]);
        if (tiles_abreast(own.data(), ABREAST, own.data(), ABREAST, h, wide, f, lowest, highest))
            for (int64_t i = 0; i < h; i++) std::copy_n(&own[i * ABREAST], rest, out + i * ldy);
        else bands<0>(in, ldx, out, ldy, nullptr, 0, h, rest, high, wide, f, span);
    }
    if (highest >= 0) {
        span.low = std::min(span.low, lowest - 126 - f.magnitude);
        span.high = std::max(span.high, highest - 126);
    }
}

// Values after conversion, as FP32: rows x columns of x in blocks high x wide. `noise` may be null unless stochastic.
void convert(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
             int64_t rows, int64_t columns, int64_t high, int64_t wide, const Format &f, Span &span) {
    if (high > 1 && wide == 1 && f.rounding == 0 && !f.gradual)
        columns_rne(x, ldx, y, ldy, rows, columns, high, f, span);
    else if (high > 1 && abreast(columns, wide) && f.rounding == 0 && !f.gradual)
        tiles_rne(x, ldx, y, ldy, rows, columns, high, wide, f, span);
    else if (high > 1 && f.rounding == 0) bands<0>(x, ldx, y, ldy, noise, ldn, rows, columns, high, wide, f, span);
    else if (high > 1 && f.rounding == 1) bands<1>(x, ldx, y, ldy, noise, ldn, rows, columns, high, wide, f, span);
    else if (high > 1) bands<2>(x, ldx, y, ldy, noise, ldn, rows, columns, high, wide, f, span);
    else if (f.rounding == 0) segments<0>(x, ldx, y, ldy, noise, ldn, rows, columns, wide, f, span);
    else if (f.rounding == 1) segments<1>(x, ldx, y, ldy, noise, ldn, rows, columns, wide, f, span);
    else segments<2>(x, ldx, y, ldy, noise, ldn, rows, columns, wide, f, span);
}

// --- Mantissas and exponents ------------------------------------------------------------------------------------

inline double power(int32_t exponent) {                            // 2^exponent, any exponent
    uint64_t bits = uint64_t(std::min(std::max(exponent, -1000), 1000) + 1023) << 52;
    double y;
    std::memcpy(&y, &bits, 8);
    return y;
}

// One block of n elements that have been converted to `values`: N, if not 0, is n.
template <int N, class INT>
inline void block_mantissas(const float *x, const float *values, INT *m, int64_t n, int32_t &exponent, uint8_t &invalid,
                            const Format &f) {
    const int32_t top = int32_t(largest_of<N>(x, n) >> 23), e = std::min(std::max(top - 126, f.lowest), f.highest);
    exponent = e;
    invalid = top == 255;
    const double unit = power(f.magnitude - e);
    if (top == 255) std::fill_n(m, n, INT(0));
    else if (std::abs(f.magnitude - e) <= 126) {
        const float single = float(unit);
#pragma GCC unroll 1
        for (int64_t j = 0; j < (N ? N : n); j++) m[j] = INT(values[j] * single);
    } else
        for (int64_t j = 0; j < n; j++) m[j] = INT(double(values[j]) * unit);
}

// One band of blocks, h <= high rows: mantissas (as INT), and exponent and flag of each block.
template <class INT>
void mantissas(const float *x, int64_t ldx, INT *m, int64_t ldm, int32_t *exponent, uint8_t *invalid,
               const int32_t *noise, int64_t ldn, int64_t h, int64_t columns, int64_t high, int64_t wide,
               const Format &f, std::vector<float> &values, std::vector<uint32_t> &largest, std::vector<double> &scale) {
    Span span{};
    values.resize(h * columns);
    convert(x, ldx, values.data(), columns, noise, ldn, h, columns, high, wide, f, span);
    if (high == 1 && h == 1) {                                      // block by block, each in one go
        for (int64_t c = 0, b = 0; c < columns; c += wide, b++) {
            const int64_t n = std::min(wide, columns - c);
            (n == 16 ? block_mantissas<16, INT> : n == 32 ? block_mantissas<32, INT> : block_mantissas<0, INT>)(
                x + c, &values[c], m + c, n, exponent[b], invalid[b], f);
        }
        return;
    }
    largest.assign(columns, 0);
    scale.resize(columns);
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < columns; j++)
            largest[j] = std::max(largest[j], word(x[i * ldx + j]) & 0x7FFFFFFF);
    bool narrow = true;                                             // whether every scale is a normal float
    for (int64_t c = 0, b = 0; c < columns; c += wide, b++) {
        const int64_t end = std::min(c + wide, columns);
        uint32_t most = 0;
        for (int64_t j = c; j < end; j++) most = std::max(most, largest[j]);
        const int32_t top = int32_t(most >> 23), e = std::min(std::max(top - 126, f.lowest), f.highest);
        exponent[b] = e;
        invalid[b] = top == 255;
        narrow &= std::abs(f.magnitude - e) <= 126;
        const double unit = power(f.magnitude - e);
        for (int64_t j = c; j < end; j++) scale[j] = unit;
        if (top == 255)
            for (int64_t i = 0; i < h; i++) std::fill(&values[i * columns + c], &values[i * columns] + end, 0.0f);
    }
    if (narrow) {
        const std::vector<float> units(scale.begin(), scale.end());
        for (int64_t i = 0; i < h; i++)
            for (int64_t j = 0; j < columns; j++) m[i * ldm + j] = INT(values[i * columns + j] * units[j]);
        return;
    }
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < columns; j++) m[i * ldm + j] = INT(double(values[i * columns + j]) * scale[j]);
}

// One band of blocks back: M * 2^(E - m), rounded once where that leaves FP32; NaN for an invalid block.
void values(const int32_t *m, int64_t ldm, const int32_t *exponent, const uint8_t *invalid, float *y, int64_t ldy,
            int64_t h, int64_t columns, int64_t wide, int32_t magnitude) {
    for (int64_t c = 0, b = 0; c < columns; c += wide, b++) {
        const int64_t end = std::min(c + wide, columns);
        const double unit = power(std::min(std::max(exponent[b], -2000), 2000) - magnitude);
        for (int64_t i = 0; i < h; i++)
            for (int64_t j = c; j < end; j++)
                y[i * ldy + j] = invalid[b] ? real(0x7FC00000) : float(double(m[i * ldm + j]) * unit);
    }
}

}  // namespace
