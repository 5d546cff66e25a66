// Accumulation `aligned`: block sums as integers, shifted to the larger exponent, converted once at the end.
// docs/numerics.md, section 5; the definition is golden.matmul._accumulate_aligned.
#pragma once

#include "product.h"

namespace {

// Vectors of integers as wide as T, and of the floats that hold a block's sum.
template <class T> struct Aligned;
template <> struct Aligned<float> { typedef int32_t Int; };
template <> struct Aligned<double> { typedef int64_t Int; };

// Exponents of the last bits of an operand with M rows: of row m and block j at row[m] + block[j].
struct Exponents {
    const int32_t *data;
    const int64_t *row, *block;
};

// Adds block sums with the powers `step` to running sums with the powers `last`: the one with the smaller power is shifted
// right, rounding half up. Integers are twice the law's, which leaves a bit for the half; the other one is even, so that
// the sum may be rounded for it. Shifts by more than all bits leave signs, which the rounding makes zeros.
template <class I> inline void align_one(I &total, I &last, const I &fresh, const I &step) {
#if defined(__AVX512F__)
    if constexpr (sizeof(I) == 64 && sizeof(Element<I>) == 4) {
        const __m512i top = _mm512_max_epi32(__m512i(last), __m512i(step));
        const I old = I(_mm512_srav_epi32(__m512i(total), _mm512_sub_epi32(top, __m512i(last))));
        const I own = I(_mm512_srav_epi32(__m512i(fresh), _mm512_sub_epi32(top, __m512i(step))));
        total = (old + (own + 1)) & -2;
        last = I(top);
        return;
    }
#endif
    const I most = I{} + Element<I>(8 * sizeof(Element<I>) - 1), top = select(step > last, step, last);
    I behind = top - last, back = top - step;
    behind = select(behind > most, most, behind);
    back = select(back > most, most, back);
    total = ((total >> behind) + ((fresh >> back) + 1)) & -2;
    last = top;
}

// The same, or the sum begins with `fresh`.
template <class I> inline void put_or_align(bool first, I &total, I &last, const I &fresh, const I &step) {
    if (!first) return align_one(total, last, fresh, step);
    total = fresh;
    last = step;
}

// M rows and N vectors of columns: exact block sums, added to the running sums; b, with N vectors a row, is scaled so that
// integers are twice the law's. `sum` and `power` are rows of N vectors; `more`: the sums go on from there.
template <class T, int M, int N>
inline void align(const T *a, const Rows &at, const Exponents &ea, int64_t m, const T *b, const int32_t *eb, int64_t lde,
                  typename Aligned<T>::Int *sum, typename Aligned<T>::Int *power, bool more) {
    typedef typename Aligned<T>::Int Int;
    typedef typename Vectors<T>::Type V;
    typedef Vector<Int> I;
    constexpr int64_t LANES = Vectors<T>::LANES;
    const T *lines[M];
    const int32_t *steps[M];
    for (int i = 0; i < M; i++) {
        lines[i] = a + at.row[m + i];
        steps[i] = ea.data + ea.row[m + i];
    }
    for (int64_t j = 0; j < at.blocks; j++) {
        V p[M][N] = {};
        for (int64_t place = at.block[j], end = place + at.terms[j] * at.stride; place != end; place += at.stride, b += N * LANES) {
            V w[N];
            for (int n = 0; n < N; n++) get(w[n], b + n * LANES);
            for (int i = 0; i < M; i++) {
                const T x = lines[i][place];
                for (int n = 0; n < N; n++) p[i][n] += w[n] * x;
            }
        }
        for (int n = 0; n < N; n++) {
            I column;
            get_whole<Int>(column, eb + j * lde + n * LANES);
            for (int i = 0; i < M; i++) {
                const I fresh = convert<Int>(p[i][n]), step = column + Int(steps[i][ea.block[j]]);
                Int *const total = sum + (i * N + n) * LANES, *const last = power + (i * N + n) * LANES;
                const bool first = !j && !more;
                I before, shift;
                if (!first) {
                    get(before, total);
                    get(shift, last);
                }
                put_or_align(first, before, shift, fresh, step);
                put(total, before);
                put(last, shift);
            }
        }
    }
}

// An integer times 2^exponent as FP32, rounded once to nearest even: section 4.
inline float rounded(int64_t total, int64_t exponent, const Flush &flush) {
    const uint64_t size = total < 0 ? -uint64_t(total) : uint64_t(total);
    if (size >> 53) total = (total >> 11 | ((total & 0x7FF) != 0)) * 2048;    // odd where inexact: no second rounding
    const double y = double(total) * power(int32_t(exponent));
    return std::fabs(y) < flush.sum ? 0.0f : float(y);
}

// The same for many; 32 bits are rounded by their conversion where no result can leave the normal numbers.
template <class Int>
inline void round_all(const Int *total, const Int *exponent, int64_t count, int32_t less, float *y, const Flush &flush) {
    if constexpr (sizeof(Int) == 4) {
        int32_t low = 1 << 20, high = -(1 << 20);
        for (int64_t i = 0; i < count; i++) {
            low = std::min(low, exponent[i] - less);
            high = std::max(high, exponent[i] - less);
        }
        if (low >= -126 && high <= 96) {
            for (int64_t i = 0; i < count; i++) y[i] = float(total[i]) * real(uint32_t(exponent[i] - less + 127) << 23);
            return;
        }
    }
    for (int64_t i = 0; i < count; i++) y[i] = rounded(total[i], exponent[i] - less, flush);
}

// Vectors of a panel that starts where `left` columns are left.
template <class T> inline int aligned_width(int64_t left) { return by_registers(left > Vectors<T>::LANES ? 2 : 1, 1, 1); }

// b (k, n) in panels of one or two vectors' columns, times 2^(guard + 1).
template <class T>
void aligned_pack(const float *b, int64_t bk, int64_t bn, int64_t k, int64_t n, int32_t guard, T *packed) {
    for (int64_t c = 0, wide; c < n; c += wide) {
        wide = aligned_width<T>(n - c) * Vectors<T>::LANES;
        T *const panel = packed + c * k;
        pack(b + c * bn, bk, bn, k, std::min(wide, n - c), wide, panel);
        for (int64_t i = 0; i < k * wide; i++) panel[i] *= T(2 << guard);
    }
}

// Numbers of the panels of b (k, n).
template <class T> inline int64_t aligned_size(int64_t k, int64_t n) { return k * (n + Vectors<T>::LANES); }

// Whether integers are far from the ends of int32, by what a part of the terms may add.
inline bool within(const int32_t *sum, int64_t count) {
    int32_t most = 0;
    for (int64_t i = 0; i < count; i++) most |= sum[i] ^ sum[i] >> 31;
    return most < 1 << 30;
}

// Rows whose running sums are kept while a part of the blocks is taken.
constexpr int64_t STRIP = 256;

// Rows of y, N vectors of columns, as of multiply_aligned().
template <class T, int N>
bool aligned_columns(const T *a, const Rows &at, const Exponents &ea, const T *packed, const int32_t *eb, int64_t columns,
                     int64_t lde, int32_t guard, int64_t most, int64_t cached, float *y, int64_t ldy, const Flush &flush) {
    typedef typename Aligned<T>::Int Int;
    constexpr int64_t ROWS = by_registers(8 / N, 4, 2), WIDE = N * Vectors<T>::LANES;
    alignas(64) Int sum[STRIP * WIDE], power[STRIP * WIDE];
    int64_t done = 0, block = 0;
    bool fits = true;
    in_parts(at, most ? std::min(cached, most) : cached, [&](const Rows &part) {
        if (!fits) return;
        const Exponents own{ea.data, ea.row, ea.block + block};
        const T *b = packed + done * WIDE;
        const int32_t *last = eb + block * lde;
        int64_t m = 0;
        for (; m + ROWS <= part.count; m += ROWS)
            align<T, ROWS, N>(a, part, own, m, b, last, lde, sum + m * WIDE, power + m * WIDE, block > 0);
        for (; m < part.count; m++)
            align<T, 1, N>(a, part, own, m, b, last, lde, sum + m * WIDE, power + m * WIDE, block > 0);
        done += part.depth();
        block += part.blocks;
        if constexpr (sizeof(T) == sizeof(float))
            if (most) fits = within(sum, part.count * WIDE);
    });
    for (int64_t m = 0; fits && m < at.count; m++)
        round_all(sum + m * WIDE, power + m * WIDE, columns, guard + 1, y + m * ldy, flush);
    return fits;
}

// y (m, n) of mantissas a (m, k) and b (k, n, packed, times 2^(guard + 1)) with exponents ea and eb (blocks, n to whole
// panels). Some rows at a time take some blocks at a time, which stay in the caches. `most`, if not 0: terms that add less
// than 2^30 to a sum; false where a sum went beyond that, and y then holds anything.
template <class T>
bool multiply_aligned(const T *a, const Rows &at, const Exponents &ea, const T *packed, const int32_t *eb,
                      int64_t n_count, int64_t lde, int32_t guard, int64_t most, float *y, const Flush &flush) {
    constexpr int64_t LANES = Vectors<T>::LANES;
    const int64_t k = at.depth(), cached = IN_CACHE / (aligned_width<T>(n_count) * LANES * int64_t(sizeof(T)));
    const int64_t strip = k > cached || most ? STRIP : 64;
    for (int64_t top = 0; top < at.count; top += strip) {
        const Rows rows{at.row + top, std::min(strip, at.count - top), at.block, at.terms, at.blocks, at.stride};
        const Exponents own{ea.data, ea.row + top, ea.block};
        for (int64_t c = 0, wide; c < n_count; c += wide) {
            const int vectors = aligned_width<T>(n_count - c);
            wide = vectors * LANES;
            if (!(vectors == 2 ? aligned_columns<T, 2> : aligned_columns<T, 1>)(
                    a, rows, own, packed + c * k, eb + c, std::min(wide, n_count - c), lde, guard, most, cached,
                    y + top * n_count + c, n_count, flush))
                return false;
        }
    }
    return true;
}

// Float and int32, with b packed for them, as far as `most` says, as of multiply_aligned(), or below 0 not at all; else
// double and int64.
inline void multiply_mantissas(const float *a, int64_t size, const Rows &at, const Exponents &ea, const float *packed,
                               const float *b, int64_t bk, int64_t bn, const int32_t *eb, int64_t n, int64_t lde, int32_t guard,
                               int64_t most, float *y, const Flush &flush) {
    if (most >= 0 && multiply_aligned(a, at, ea, packed, eb, n, lde, guard, most, y, flush)) return;
    std::vector<double> panels(aligned_size<double>(at.depth(), n)), wide(a, a + size);
    aligned_pack(b, bk, bn, at.depth(), n, guard, panels.data());
    multiply_aligned(wide.data(), at, ea, panels.data(), eb, n, lde, guard, 0, y, flush);
}

}  // namespace
