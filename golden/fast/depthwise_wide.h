// Depthwise convolutions in formats that columns.h does not round or that FP32 does not hold, in blocks of one line.
#pragma once

#include "depthwise_sums.h"

namespace {

// total[j] += sum over rows of a[i][j] * b[i][j]: exact in T, added as add() does.
template <class T>
void dot_columns(const float *a, const float *b, int64_t repeat, int64_t rows, int64_t columns, int64_t lda, int64_t ldb,
                 float *total, const Flush &flush) {
    constexpr int64_t WIDE = 64, LANES = Vectors<T>::LANES;
    for (int64_t r = 0; r < repeat; r++)
        for (int64_t c = 0; c < columns; c += WIDE) {
            const int64_t n = std::min(WIDE, columns - c);
            T p[WIDE] = {};
            for (int64_t i = 0; i < rows; i++) {
                const float *x = a + i * lda + r * columns + c, *w = b + i * ldb + c;
                if (n == WIDE)
                    for (int64_t j = 0; j < WIDE; j++) p[j] += T(x[j]) * T(w[j]);
                else
                    for (int64_t j = 0; j < n; j++) p[j] += T(x[j]) * T(w[j]);
            }
            float *out = total + r * columns + c, sums[WIDE] = {};
            std::copy_n(out, n, sums);
            by_rule(flush, sizeof(T) > sizeof(float), [&](const auto &rule) {
                typename Vectors<T>::Type v;
                for (int64_t j = 0; j < WIDE; j += LANES) {
                    get(v, p + j);
                    add(sums + j, v, rule);
                }
            });
            std::copy_n(sums, n, out);
        }
}

// y (pixels, channels): each channel's patch (segments, one element each) times its own column of w (segments, channels).
void depthwise_wide(const Patches &p, const Format &f, int64_t terms, const Values &w, float *y, int64_t first, int64_t last,
                    const Flush &flush) {
    const int64_t c = p.length, most = std::max<int64_t>(1, 512 / c), ld = most * c;
    std::vector<float> taps(p.segments * ld);
    for (int64_t m = first; m < last; m += most) {
        const int64_t rows = std::min(most, last - m), columns = rows * c;
        for (int64_t s = 0; s < p.segments; s++)
            for (int64_t i = 0; i < rows; i++)
                std::copy_n(p.x + p.row[m + i] + p.segment[s], c, &taps[s * ld + i * c]);
        Span span{1 << 20, -(1 << 20), 0};
        convert(taps.data(), ld, taps.data(), ld, nullptr, 0, p.segments, columns, terms, 1, f, span);
        const bool floats = exact(f, *w.format, terms, span, *w.span);
        float *out = y + m * c;
        std::fill(out, out + columns, 0.0f);
        for (int64_t s = 0; s < p.segments; s += terms) {
            const int64_t n = std::min(terms, p.segments - s);
            if (floats) dot_columns<float>(&taps[s * ld], w.data + s * c, rows, n, c, ld, c, out, flush);
            else dot_columns<double>(&taps[s * ld], w.data + s * c, rows, n, c, ld, c, out, flush);
        }
        canonical(out, columns);
    }
}

// y (segments, channels): per tap and channel the products of x and g (pixels, channels) over blocks of pixels.
void depthwise_wide_turned(const Patches &p, const Format &f, int64_t terms, const Values &g, float *y,
                           const Flush &flush) {
    const int64_t c = p.length;
    std::vector<float> strip(terms * c);
    std::fill(y, y + p.segments * c, 0.0f);
    for (int64_t m = 0; m < p.pixels; m += terms) {
        const int64_t rows = std::min(terms, p.pixels - m);
        for (int64_t s = 0; s < p.segments; s++) {
            for (int64_t i = 0; i < rows; i++) std::copy_n(p.x + p.row[m + i] + p.segment[s], c, &strip[i * c]);
            Span span{1 << 20, -(1 << 20), 0};
            convert(strip.data(), c, strip.data(), c, nullptr, 0, rows, c, terms, 1, f, span);
            dot_columns<double>(strip.data(), g.data + m * g.ld, 1, rows, c, c, g.ld, y + s * c, flush);
        }
    }
    canonical(y, p.segments * c);
}

}  // namespace
