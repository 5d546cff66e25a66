// Accumulation `aligned`: block sums as integers, shifted to the larger exponent, converted once at the end.
// docs/numerics.md, section 5; the definition is golden.matmul._accumulate_aligned.
#pragma once

#include "product.h"

namespace {

// Vectors of integers as wide as T, and of the floats that hold a block's sum.
template <class T> struct Aligned;
template <> struct Aligned<float> { typedef int32_t Int; };
template <> struct Aligned<double> { typedef int64_t Int; };

// One block: p = a b exactly, shifted to the running sum or that to it; rounding half up.
template <class T, int M, int N>
inline void align_block(const T *a, int64_t lda, const int32_t *ea, int64_t lde, const T *b, const int32_t *eb,
                        int64_t terms, int32_t guard, bool first, typename Aligned<T>::Int *acc,
                        typename Aligned<T>::Int *last) {
    typedef typename Aligned<T>::Int Int;
    typedef typename Vectors<T>::Type V;
    typedef Int I __attribute__((vector_size(64)));
    constexpr int64_t LANES = Vectors<T>::LANES;
    constexpr Int LONGEST = 8 * sizeof(Int) - 1;
    V p[M][N] = {};
    for (int64_t k = 0; k < terms; k++) {
        V w[N];
        for (int n = 0; n < N; n++) std::memcpy(&w[n], b + (k * N + n) * LANES, sizeof(V));
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) p[m][n] += a[m * lda + k] * w[n];
    }
    for (int n = 0; n < N; n++) {
        I step_b;
        for (int64_t i = 0; i < LANES; i++) step_b[i] = eb[n * LANES + i];
        for (int m = 0; m < M; m++) {
            Int *sum = acc + (m * N + n) * LANES, *power = last + (m * N + n) * LANES;
            I total = __builtin_convertvector(p[m][n], I) << guard, step = step_b + Int(ea[m * lde]);
            if (!first) {
                I s, e;
                std::memcpy(&s, sum, 64);
                std::memcpy(&e, power, 64);
                const I ahead = step - e, later = ahead > 0, most = step - step + LONGEST;
                const I shift = later ? ahead : -ahead, some = shift > 0;             // some: -1 or 0
                I less = shift + some;
                less = less > most ? most : less;
                const I moved = later ? s : total, kept = later ? total : s;
                total = (((moved >> less) - some) >> -some) + kept;
                step = later ? step : e;
            }
            std::memcpy(sum, &total, 64);
            std::memcpy(power, &step, 64);
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

// y (m, n) of mantissas a (m, k) and b (k, n, packed), exponents ea (m, blocks) and eb (blocks, n to whole panels).
template <class T>
void multiply_aligned(const T *a, const int32_t *ea, int64_t m_count, int64_t k, int64_t side, const T *packed,
                      const int32_t *eb, int64_t n_count, int64_t lde, int32_t guard, float *y, const Flush &flush) {
    typedef typename Aligned<T>::Int Int;
    constexpr int64_t LANES = Vectors<T>::LANES, ROWS = 8, N = 2, WIDE = N * LANES;
    const int64_t blocks = (k + side - 1) / side;
    alignas(64) Int acc[ROWS * WIDE], last[ROWS * WIDE];
    for (int64_t c = 0; c < n_count; c += WIDE)
        for (int64_t m = 0; m < m_count; m += ROWS) {
            const int64_t rows = std::min(ROWS, m_count - m), columns = std::min(WIDE, n_count - c);
            for (int64_t j = 0; j < blocks; j++) {
                const int64_t terms = std::min(side, k - j * side);
                const T *b = packed + c * k + j * side * WIDE, *from = a + m * k + j * side;
                const int32_t *e = eb + j * lde + c, *f = ea + m * blocks + j;
                if (rows == ROWS) align_block<T, ROWS, N>(from, k, f, blocks, b, e, terms, guard, !j, acc, last);
                else
                    for (int64_t i = 0; i < rows; i++)
                        align_block<T, 1, N>(from + i * k, k, f + i * blocks, blocks, b, e, terms, guard, !j,
                                             acc + i * WIDE, last + i * WIDE);
            }
            for (int64_t i = 0; i < rows; i++)
                for (int64_t n = 0; n < columns; n++)
                    y[(m + i) * n_count + c + n] = rounded(acc[i * WIDE + n], last[i * WIDE + n] - guard, flush);
        }
}

}  // namespace
