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

// M rows and a vector of columns: exact block sums, added to the running sums; b is scaled so that integers are twice
// the law's. `sum` and `power` are rows of vectors; `more`: the sums go on from there.
template <class T, int M>
inline void align(const T *a, const Rows &at, const Exponents &ea, int64_t m, const T *b, const int32_t *eb, int64_t lde,
                  typename Aligned<T>::Int *sum, typename Aligned<T>::Int *power, bool more) {
    typedef typename Aligned<T>::Int Int;
    typedef typename Vectors<T>::Type V;
    typedef Vector<Int> I;
    constexpr int64_t LANES = Vectors<T>::LANES;
    I total[M] = {}, last[M] = {};
    for (int i = 0; more && i < M; i++) {
        get(total[i], sum + i * LANES);
        get(last[i], power + i * LANES);
    }
    for (int64_t j = 0; j < at.blocks; j++) {
        V p[M] = {};
        const T *from = a + at.block[j];
        for (int64_t k = 0; k < at.terms[j]; k++, b += LANES) {
            V w;
            get(w, b);
            for (int i = 0; i < M; i++) p[i] += w * from[at.row[m + i] + k * at.stride];
        }
        I column;
        get_whole<Int>(column, eb + j * lde);
        for (int i = 0; i < M; i++) {
            const I fresh = convert<Int>(p[i]), step = column + Int(ea.data[ea.row[m + i] + ea.block[j]]);
            if (!j && !more) last[i] = step;
            align_one(total[i], last[i], fresh, step);
        }
    }
    for (int i = 0; i < M; i++) {
        put(sum + i * LANES, total[i]);
        put(power + i * LANES, last[i]);
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

// b (k, n) in panels of a vector's columns, times 2^(guard + 1).
template <class T> std::vector<T> aligned_panels(const float *b, int64_t bk, int64_t bn, int64_t k, int64_t n, int32_t guard) {
    constexpr int64_t LANES = Vectors<T>::LANES;
    std::vector<T> packed(k * (n + LANES));
    for (int64_t c = 0; c < n; c += LANES)
        pack(b + c * bn, bk, bn, k, std::min(LANES, n - c), LANES, packed.data() + c * k);
    for (T &v : packed) v *= T(2 << guard);
    return packed;
}

// Whether integers are far from the ends of int32, by what a part of the terms may add.
inline bool within(const int32_t *sum, int64_t count) {
    int32_t most = 0;
    for (int64_t i = 0; i < count; i++) most |= sum[i] ^ sum[i] >> 31;
    return most < 1 << 30;
}

// y (m, n) of mantissas a (m, k) and b (k, n, packed, times 2^(guard + 1)) with exponents ea and eb (blocks, n to whole
// panels). Some rows at a time take some blocks at a time, which stay in the caches. `most`, if not 0: terms that add less
// than 2^30 to a sum; false where a sum went beyond that, and y then holds anything.
template <class T>
bool multiply_aligned(const T *a, const Rows &at, const Exponents &ea, const T *packed, const int32_t *eb,
                      int64_t n_count, int64_t lde, int32_t guard, int64_t most, float *y, const Flush &flush) {
    typedef typename Aligned<T>::Int Int;
    constexpr int64_t ROWS = by_registers(8, 4, 2), WIDE = Vectors<T>::LANES;
    const int64_t k = at.depth(), cached = IN_CACHE / (WIDE * int64_t(sizeof(T))), strip = k > cached || most ? 512 : 64;
    alignas(64) Int sum[512 * WIDE], power[512 * WIDE];
    bool fits = true;
    for (int64_t top = 0; top < at.count; top += strip)
        for (int64_t c = 0; c < n_count; c += WIDE) {
            const Rows rows{at.row + top, std::min(strip, at.count - top), at.block, at.terms, at.blocks, at.stride};
            int64_t done = 0, block = 0;
            in_parts(rows, most ? std::min(cached, most) : cached, [&](const Rows &part) {
                if (!fits) return;
                const Exponents own{ea.data, ea.row + top, ea.block + block};
                const T *b = packed + c * k + done * WIDE;
                const int32_t *last = eb + block * lde + c;
                int64_t m = 0;
                for (; m + ROWS <= part.count; m += ROWS)
                    align<T, ROWS>(a, part, own, m, b, last, lde, sum + m * WIDE, power + m * WIDE, block > 0);
                for (; m < part.count; m++)
                    align<T, 1>(a, part, own, m, b, last, lde, sum + m * WIDE, power + m * WIDE, block > 0);
                done += part.depth();
                block += part.blocks;
                if constexpr (sizeof(T) == sizeof(float))
                    if (most) fits = within(sum, part.count * WIDE);
            });
            if (!fits) return false;
            for (int64_t m = 0; m < rows.count; m++)
                round_all(sum + m * WIDE, power + m * WIDE, std::min(WIDE, n_count - c), guard + 1,
                          y + (top + m) * n_count + c, flush);
        }
    return true;
}

// Float and int32 as far as `most` says, as of multiply_aligned(), or below 0 not at all; else double and int64.
inline void multiply_mantissas(const float *a, int64_t size, const Rows &at, const Exponents &ea, const float *b, int64_t bk,
                               int64_t bn, const int32_t *eb, int64_t n, int64_t lde, int32_t guard, int64_t most, float *y,
                               const Flush &flush) {
    if (most >= 0) {
        const std::vector<float> packed = aligned_panels<float>(b, bk, bn, at.depth(), n, guard);
        if (multiply_aligned(a, at, ea, packed.data(), eb, n, lde, guard, most, y, flush)) return;
    }
    const std::vector<double> packed = aligned_panels<double>(b, bk, bn, at.depth(), n, guard), wide(a, a + size);
    multiply_aligned(wide.data(), at, ea, packed.data(), eb, n, lde, guard, 0, y, flush);
}

}  // namespace
