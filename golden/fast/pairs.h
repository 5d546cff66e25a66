// Products of long mantissas in integers: neighbours along K in pairs of 16 bits, block sums in int32, rounded once.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <optional>

#include "product.h"

namespace {

typedef Vector<int32_t> Ints;
typedef Vector<float> Floats;

// sums + both products of the 16-bit halves of x with those of each of w's words. One instruction on x86, which compilers
// find in sums along a vector only, not in sums that stay in their lanes.
template <class V> inline V add_pairs(const V &sums, int32_t x, const V &w) {
#if defined(__AVX512BW__)
    return sums + V(_mm512_madd_epi16(_mm512_set1_epi32(x), __m512i(w)));
#elif defined(__AVX2__)
    return sums + V(_mm256_madd_epi16(_mm256_set1_epi32(x), __m256i(w)));
#else
    return sums + (w << 16 >> 16) * int32_t(int16_t(x)) + (w >> 16) * (x >> 16);
#endif
}

template <class T, int B> inline Split<T, B> add_pairs(const Split<T, B> &sums, int32_t x, const Split<T, B> &w) {
    return {add_pairs(sums.low, x, w.low), add_pairs(sums.high, x, w.high)};
}

inline int32_t pair_of(int32_t low, int32_t high) { return int32_t((uint32_t(low) & 0xFFFF) | uint32_t(high) << 16); }

// Passes over the terms in which int32 holds every sum of a block: 2 multiply with b's mantissas in two parts, b = 256
// upper + lower, neither beyond +-128. 0 where that does not do either, or FP32 does not hold the rounded sums.
inline int passes(const Format &fa, const Format &fb, int64_t terms, const Span &sa, const Span &sb) {
    if (sa.invalid || sb.invalid || !in_range(terms, sa, sb)) return 0;
    const int64_t a = (1 << fa.magnitude) - 1, b = (1 << fb.magnitude) - 1;
    return terms * a * b <= INT32_MAX ? 1 : terms * a * 128 <= INT32_MAX ? 2 : 0;
}

// A power of two of which all numbers up to `largest` (bits) of a block are multiples, fewer than 2^magnitude: they are
// multiples of 2^low, too, so it need not be less.
inline int32_t exponent_of(uint32_t largest, int32_t magnitude, int32_t low) {
    return std::max(int32_t(largest >> 23) - 126 - magnitude, std::min(low, 0));
}

inline float power_of(int32_t exponent) { return real(uint32_t(exponent + 127) << 23); }

// Words (pairs along K, columns) of x (k, columns), `ld` between rows, and steps (blocks, columns). PARTS: see passes().
template <int PARTS>
void pair_up(const float *x, int64_t ld, const int64_t *terms, int64_t blocks, int64_t columns, int32_t magnitude,
             int32_t low, int32_t *words, float *steps) {
    std::vector<uint32_t> largest(columns);
    std::vector<float> scale(columns), zeros(columns);
    for (int64_t j = 0; j < blocks; j++, steps += columns) {
        std::fill(largest.begin(), largest.end(), 0);
        for (int64_t k = 0; k < terms[j]; k++)
            for (int64_t c = 0; c < columns; c++) largest[c] = std::max(largest[c], word(x[k * ld + c]) & 0x7FFFFFFF);
        for (int64_t c = 0; c < columns; c++) {
            const int32_t e = exponent_of(largest[c], magnitude, low);
            steps[c] = power_of(e);
            scale[c] = power_of(-e);
        }
        for (int64_t k = 0; k < terms[j]; k += 2, words += PARTS * columns) {
            const float *even = x + k * ld, *odd = k + 1 < terms[j] ? even + ld : zeros.data();
            for (int64_t c = 0; c < columns; c++) {
                const int32_t u = int32_t(even[c] * scale[c]), v = int32_t(odd[c] * scale[c]);
                if (PARTS == 1) words[c] = pair_of(u, v);
                else {
                    const int32_t upper_u = (u + 128) >> 8, upper_v = (v + 128) >> 8;
                    words[c] = pair_of(upper_u, upper_v);
                    words[columns + c] = pair_of(u - upper_u * 256, v - upper_v * 256);
                }
            }
        }
        x += terms[j] * ld;
    }
}

// Operand a: pair i of row m of block j at data[row[m] + block[j] + i * stride], its step at steps[step_row[m] + step_block[j]].
class PairedRows {
  public:
    std::vector<int16_t> data;
    std::vector<float> steps;
    std::vector<int64_t> row, block, step_row, step_block;
    const int64_t *terms;
    int64_t stride;

    // a in runs of `length` elements behind each other, in each of which a block begins after every `side`; or, if
    // at.stride is not 1, turned: (k, at.stride), rows ascending.
    PairedRows(const float *a, int64_t length, const Rows &at, int64_t side, const Format &f, const Span &span)
        : row(at.row, at.row + at.count), block(at.block, at.block + at.blocks), step_row(at.count),
          step_block(at.blocks), terms(at.terms), stride(at.stride == 1 ? 2 : 2 * (row.back() - row[0] + 1)) {
        if (at.stride == 1) runs(a, length, side, f.magnitude, span.low);
        else turned(a, at.stride, f.magnitude, span.low);
    }

  private:
    void runs(const float *a, int64_t length, int64_t side, int32_t magnitude, int32_t low) {
        const int64_t first = row[0] / length, last = row.back() / length + 1, each = (length + side - 1) / side;
        data.resize((last - first) * length + 1);                   // a pair may begin with the last
        steps.resize((last - first) * each);
        for (int64_t r = 0; r < last - first; r++)
            for (int64_t j = 0; j < each; j++) {
                const int64_t n = std::min(side, length - j * side), at = r * length + j * side;
                const float *x = a + first * length + at;
                const int32_t e = exponent_of(largest_of<0>(x, n), magnitude, low);
                const float scale = power_of(-e);
                for (int64_t i = 0; i < n; i++) data[at + i] = int16_t(x[i] * scale);
                steps[r * each + j] = power_of(e);
            }
        for (size_t m = 0; m < row.size(); m++) {
            row[m] -= first * length;
            step_row[m] = row[m] / length * each + row[m] % length / side;
        }
        for (size_t j = 0; j < block.size(); j++) step_block[j] = block[j] / side;
    }

    void turned(const float *a, int64_t ld, int32_t magnitude, int32_t low) {
        const int64_t first = row[0], columns = stride / 2, blocks = block.size();
        int64_t pairs = 0;
        for (int64_t j = 0; j < blocks; j++) {
            step_block[j] = j * columns;
            block[j] = pairs * stride;
            pairs += (terms[j] + 1) / 2;
        }
        for (size_t m = 0; m < row.size(); m++) {
            step_row[m] = row[m] - first;
            row[m] = step_row[m] * 2;
        }
        std::vector<int32_t> words(pairs * columns);
        steps.resize(blocks * columns);
        pair_up<1>(a + first, ld, terms, blocks, columns, magnitude, low, words.data(), steps.data());
        data.resize(2 * words.size());
        for (size_t i = 0; i < words.size(); i++) {
            data[2 * i] = int16_t(words[i]);
            data[2 * i + 1] = int16_t(words[i] >> 16);
        }
    }
};

// 256 upper + lower, of up to 37 bits, as a multiple of 2^20 and the 20 bits below it: both are floats.
struct Parts {
    Floats above, below;
};
inline Parts parts_of(const Ints &upper, const Ints &lower) {
    const Ints above = (upper + (lower >> 8)) & -0x1000;
    const Ints below = as<int32_t>((as<uint32_t>(upper) << 8) + as<uint32_t>(lower)) & 0xFFFFF;
    return {convert<float>(above) * 256.0f, convert<float>(below)};
}

// Block sums as FP32, with one rounding.
inline Floats rounded(const Ints &sums) { return convert<float>(sums); }
inline Floats rounded(const Ints &upper, const Ints &lower) {
    const Parts parts = parts_of(upper, lower);
    return parts.above + parts.below;
}

// The same for Narrow: cut off, with an odd last bit where that is not all.
inline Floats odd(const Ints &sums) { return odd_sum(convert<float>(sums & -0x100), convert<float>(sums & 0xFF)); }

inline Floats odd(const Ints &upper, const Ints &lower) {
    const Parts parts = parts_of(upper, lower);
    return odd_sum(parts.above, parts.below);
}

template <class... Sums> inline Floats added(const Floats &total, const Floats &scale, const Keep &, const Sums &...sums) {
    return total + rounded(sums...) * scale;
}
template <int CUT, class... Sums>
inline Floats added(const Floats &total, const Floats &scale, const Narrow<CUT, false> &f, const Sums &...sums) {
    return narrow_sum(total, narrowed(Floats(odd(sums...) * scale), f), f);
}

// Operand b (k, n) in panels, and products with it.
template <int PARTS>
class PairedColumns {
  public:
    PairedColumns(const float *b, int64_t bk, int64_t bn, int64_t n, const int64_t *terms, int64_t blocks,
                  int32_t magnitude, int32_t low)
        : terms_(terms), blocks_(blocks), n_(n) {
        int64_t k = 0;
        for (int64_t j = 0; j < blocks; j++) {
            k += terms[j];
            pairs_ += (terms[j] + 1) / 2;
        }
        words_.resize(pairs_ * PARTS * (n + MOST));
        steps_.resize(blocks * (n + MOST));
        std::vector<float> panel(k * MOST);
        for (int64_t first = 0; first < n; first += width(n - first)) {
            const int64_t lanes = width(n - first);
            pack(b + first * bn, bk, bn, k, std::min(lanes, n - first), lanes, panel.data());
            pair_up<PARTS>(panel.data(), lanes, terms, blocks, lanes, magnitude, low, &words_[pairs_ * PARTS * first],
                           &steps_[blocks * first]);
        }
    }

    // y (rows, n) (+)= sum over blocks, ascending, of a's dot products with b.
    template <class Rule> void multiply(const PairedRows &a, float *y, int64_t ldy, bool more, const Rule &rule) const {
        for (int64_t first = 0; first < n_; first += width(n_ - first)) {
            const int64_t lanes = width(n_ - first), columns = std::min(lanes, n_ - first);
            switch (lanes / LANES) {
                case 4: panel<4 / PARTS, by_registers(6, 6 / PARTS, 1)>(a, first, y + first, ldy, columns, more, rule); break;
                case 2: panel<2, by_registers(12, 6, 2) / PARTS>(a, first, y + first, ldy, columns, more, rule); break;
                default: panel<1, by_registers(16, 6, 2) / PARTS>(a, first, y + first, ldy, columns, more, rule);
            }
        }
    }

  private:
    static constexpr int64_t LANES = Vectors<float>::LANES, MOST = 4 / PARTS * LANES;
    const int64_t *terms_;
    int64_t blocks_, n_, pairs_ = 0;
    std::vector<int32_t> words_;
    std::vector<float> steps_;

    static int64_t width(int64_t left) { return std::min(MOST, (left > 2 * LANES ? 4 : left > LANES ? 2 : 1) * LANES); }

    // One block into M x (N vectors) sums, of a panel of WIDE vectors.
    template <int WIDE, int N, int M, class Rule>
    static void micro(const int16_t *a, const int64_t *row, int64_t stride, const float *step, const int64_t *step_row,
                      const int32_t *b, const float *b_step, int64_t pairs, float *y, const Rule &rule) {
        Ints p[PARTS][M][N] = {};
        for (int64_t k = 0; k < pairs; k++, b += PARTS * WIDE * LANES) {
            Ints w[PARTS][N];
#pragma GCC unroll 8
            for (int i = 0; i < PARTS * N; i++) get(w[i / N][i % N], b + (i / N * WIDE + i % N) * LANES);
#pragma GCC unroll 16                                               // else the sums are kept in memory
            for (int m = 0; m < M; m++) {
                int32_t x;
                std::memcpy(&x, a + row[m] + k * stride, sizeof x);
#pragma GCC unroll 4
                for (int n = 0; n < N; n++)
#pragma GCC unroll 2
                    for (int i = 0; i < PARTS; i++) p[i][m][n] = add_pairs(p[i][m][n], x, w[i][n]);
            }
        }
#pragma GCC unroll 16
        for (int m = 0; m < M; m++)
#pragma GCC unroll 4
            for (int n = 0; n < N; n++) {
                Floats total, scale;
                get(total, y + (m * WIDE + n) * LANES);
                get(scale, b_step + n * LANES);
                scale *= step[step_row[m]];
                if constexpr (PARTS == 1) total = added(total, scale, rule, p[0][m][n]);
                else total = added(total, scale, rule, p[0][m][n], p[1][m][n]);
                put(y + (m * WIDE + n) * LANES, total);
            }
    }

    template <int N, int M, class Rule>
    void panel(const PairedRows &a, int64_t first, float *y, int64_t ldy, int64_t columns, bool more,
               const Rule &rule) const {
        constexpr int AT_ONCE = by_registers(N, 1, 1);
        constexpr int64_t WIDE = N * LANES;
        float sums[M * WIDE];
        for (int64_t m = 0; m < int64_t(a.row.size()); m += M) {
            const int64_t rows = std::min<int64_t>(M, a.row.size() - m);
            std::fill(sums, sums + M * WIDE, 0.0f);
            for (int64_t i = 0; more && i < rows; i++)
                std::copy_n(y + (m + i) * ldy, columns, sums + i * WIDE);
            const int32_t *b = &words_[pairs_ * PARTS * first];
            for (int64_t j = 0; j < blocks_; j++) {
                const int16_t *from = &a.data[a.block[j]];
                const float *step = &a.steps[a.step_block[j]], *b_step = &steps_[blocks_ * first + j * WIDE];
                const int64_t pairs = (terms_[j] + 1) / 2;
                for (int64_t n = 0; n < WIDE; n += AT_ONCE * LANES)
                    if (rows == M)
                        micro<N, AT_ONCE, M>(from, &a.row[m], a.stride, step, &a.step_row[m], b + n, b_step + n, pairs,
                                             sums + n, rule);
                    else
                        for (int64_t i = 0; i < rows; i++)
                            micro<N, AT_ONCE, 1>(from, &a.row[m + i], a.stride, step, &a.step_row[m + i], b + n,
                                                 b_step + n, pairs, sums + i * WIDE + n, rule);
                b += pairs * PARTS * WIDE;
            }
            for (int64_t i = 0; i < rows; i++) std::copy_n(sums + i * WIDE, columns, y + (m + i) * ldy);
        }
    }
};

// The same for any number of passes.
class PairedOperand {
  public:
    PairedOperand(int passes, const float *b, int64_t bk, int64_t bn, int64_t n, const Rows &at, const Format &f,
                  const Span &span) {
        if (passes == 1) one_.emplace(b, bk, bn, n, at.terms, at.blocks, f.magnitude, span.low);
        else two_.emplace(b, bk, bn, n, at.terms, at.blocks, f.magnitude, span.low);
    }

    void multiply(const PairedRows &a, float *y, int64_t ldy, bool more, const Flush &flush) const {
        by_rule(flush, [&](const auto &rule) {
            if (one_) one_->multiply(a, y, ldy, more, rule);
            else two_->multiply(a, y, ldy, more, rule);
        });
    }

  private:
    std::optional<PairedColumns<1>> one_;
    std::optional<PairedColumns<2>> two_;
};

}  // namespace
