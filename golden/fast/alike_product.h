// Products and sums in FP32 to the bits of a library that adds along K, a fused step each: see alike.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "product.h"

namespace alike {

using Floats = Vectors<float>::Type;
constexpr int64_t LANES = Vectors<float>::LANES;

// What is multiplied: a (m, k) and b (k, n), one stride of b is 1, into a contiguous y.
struct Factors {
    const float *a;
    int64_t am, ak;
    const float *b;
    int64_t bk, bn, m, k, n;
};

// M rows and N vectors of columns, `columns` of them there; rows of b are `ldb` apart.
template <int M, int N>
void tile(const Factors &p, const float *a, const float *b, int64_t ldb, int64_t columns, float *y) {
    Floats sum[M][N] = {};
    for (int64_t k = 0; k < p.k; k++, a += p.ak, b += ldb) {
        Floats w[N];
        for (int n = 0; n < N; n++) get(w[n], b + n * LANES);
        for (int m = 0; m < M; m++) {
            const float x = a[m * p.am];
            for (int n = 0; n < N; n++) sum[m][n] += w[n] * x;
        }
    }
    for (int m = 0; m < M; m++) {
        if (columns == N * LANES) {
            for (int n = 0; n < N; n++) put(y + m * p.n + n * LANES, sum[m][n]);
            continue;
        }
        float line[N * LANES];
        for (int n = 0; n < N; n++) put(line + n * LANES, sum[m][n]);
        std::copy_n(line, columns, y + m * p.n);
    }
}

// A panel of N vectors of columns, R rows at once.
template <int N, int R> void panel(const Factors &p, const float *b, int64_t ldb, int64_t columns, float *y) {
    int64_t m = 0;
    const auto run = [&](auto rows) {
        tile<decltype(rows)::value, N>(p, p.a + m * p.am, b, ldb, columns, y + m * p.n);
        m += decltype(rows)::value;
    };
    while (p.m - m >= R) run(std::integral_constant<int, R>());
    while (p.m - m >= (R + 1) / 2) run(std::integral_constant<int, (R + 1) / 2>());
    while (p.m > m) run(std::integral_constant<int, 1>());
}

// y = a b; `work` has room for a panel of b.
inline void multiply(const Factors &p, float *y, float *work) {
    for (int64_t first = 0; first < p.n; first += panel_width<float>(p.n - first)) {
        const int64_t lanes = panel_width<float>(p.n - first), columns = std::min(lanes, p.n - first);
        const float *from = p.b + first * p.bn;
        int64_t ldb = p.bk;
        if (p.bn != 1 || columns < lanes) {
            if (p.bn == 1) pack(from, p.bk, 1, p.k, columns, lanes, work);
            else {
                if (columns < lanes) std::fill_n(work, p.k * lanes, 0.0f);
                turn(from, p.bn, work, lanes, columns, p.k);
            }
            from = work;
            ldb = lanes;
        }
        switch (lanes / LANES) {
            case 4: panel<4, by_registers(6, 1, 1)>(p, from, ldb, columns, y + first); break;
            case 2: panel<2, by_registers(12, 2, 1)>(p, from, ldb, columns, y + first); break;
            default: panel<1, by_registers(16, 4, 1)>(p, from, ldb, columns, y + first);
        }
    }
}

typedef float Four __attribute__((vector_size(16)));

// What follows rounds products before they are added. Clang joins no two statements by itself.
#if defined(__clang__)
#define HBFP_ROUNDED
#else
#define HBFP_ROUNDED __attribute__((optimize("fp-contract=off")))
#endif

// y = dot products of a line of k numbers with N lines that are `ldb` apart: each of 4 * HALVES lanes is added by itself, then
// halves of the lanes.
template <int HALVES, int N> HBFP_ROUNDED void dots(const float *a, const float *b, int64_t ldb, int64_t k, float *y) {
    Four sum[N][HALVES] = {}, x, w;
    int64_t i = 0;
    for (; i + 4 * HALVES <= k; i += 4 * HALVES)
        for (int h = 0; h < HALVES; h++) {
            std::memcpy(&x, a + i + 4 * h, sizeof x);
            for (int n = 0; n < N; n++) {
                std::memcpy(&w, b + n * ldb + i + 4 * h, sizeof w);
                const Four each = x * w;
                sum[n][h] += each;
            }
        }
    for (int n = 0; n < N; n++) {
        const Four all = HALVES == 2 ? sum[n][0] + sum[n][HALVES - 1] : sum[n][0];
        y[n] = (all[0] + all[2]) + (all[1] + all[3]);
    }
    for (; i < k; i++)
        for (int n = 0; n < N; n++) {
            const float each = a[i] * b[n * ldb + i];
            y[n] += each;
        }
}

// y = a b as some libraries have it where b has few columns, K contiguous in both: fours of columns, and what is left of them.
inline void multiply_dots(const Factors &p, float *y) {
    for (int64_t m = 0; m < p.m; m++, y += p.n) {
        const float *a = p.a + m * p.am;
        int64_t n = 0;
        for (; n + 4 <= p.n; n += 4) dots<1, 4>(a, p.b + n * p.bn, p.bn, p.k, y + n);
        for (; n < p.n; n++) dots<2, 1>(a, p.b + n * p.bn, p.bn, p.k, y + n);
    }
}

// Sums of 16 columns of `count` rows that are `step` numbers apart: of 16 rows at a time, then of these sums.
inline Floats add_sixteen(const float *x, int64_t count, int64_t step) {
    Floats total = {}, sum = {}, line;
    for (int64_t i = 1; i <= count; i++, x += step) {
        get(line, x);
        sum += line;
        if (i % 16) continue;
        total += sum;
        sum = Floats{};
    }
    return sum + total;
}

// y = the sum of each column of x (rows, n). Those behind the last multiple of `wide` have each fourth row added by itself.
inline void add_rows(const float *x, int64_t rows, int64_t n, int64_t wide, float *y) {
    const int64_t whole = n - n % wide, fourth = rows / 4;
    int64_t c = 0;
    for (; c < whole; c += LANES) put(y + c, add_sixteen(x + c, rows, n));
    for (; c < n; c += LANES) {
        const int64_t columns = std::min(LANES, n - c);
        float some[LANES];
        std::vector<float> lines(rows * LANES);
        for (int64_t r = 0; r < rows; r++) std::copy_n(x + r * n + c, columns, lines.data() + r * LANES);
        Floats sums[4], line;
        for (int64_t i = 0; i < 4; i++) sums[i] = add_sixteen(lines.data() + i * LANES, fourth, 4 * LANES);
        for (int64_t r = 4 * fourth; r < rows; r++) {
            get(line, lines.data() + r * LANES);
            sums[0] += line;
        }
        put(some, sums[0] + sums[1] + sums[2] + sums[3]);
        std::copy_n(some, columns, y + c);
    }
}

}  // namespace alike
