// Convolutions with one channel in and one out a group: neighbouring channels are neighbouring lanes.
#pragma once

#include "across.h"
#include "convolve.h"

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

// Rounding and dot product in one go, 16 channels at a time.
class Lane16 : public Across {
  public:
    using Across::Across;

    // out[j] = sum over i < n of q(x[offset[i] + j]) * w[i * ldw + j] for `columns` channels j; false where it may not.
    bool dot(const float *x, const int64_t *offset, const float *w, int64_t ldw, int64_t n, int64_t columns,
             float *out) const {
        Ints odd = {};
        int64_t c = 0;
        for (; c + 16 <= columns; c += 16) one<16>(x + c, offset, w + c, ldw, n, 16, out + c, odd);
        if (c < columns) one<0>(x + c, offset, w + c, ldw, n, columns - c, out + c, odd);
        return !any(odd);
    }

  private:
    template <int N>
    void one(const float *x, const int64_t *offset, const float *w, int64_t ldw, int64_t n, int64_t count, float *out,
             Ints &odd) const {
        const Scale scale = scale_of<N>(x, offset, n, count, odd);
        Floats p = {};
        for (int64_t i = 0; i < n; i++) p += scale.rounded(load<N>(x + offset[i], count)) * load<N>(w + i * ldw, count);
        if constexpr (N == 16) put(out, p);
        else
            for (int64_t j = 0; j < count; j++) out[j] = p[j];
    }
};

// y (pixels, channels): each channel's patch (segments, one element each) times its own column of w (segments, channels).
void depthwise(const Patches &p, const Format &f, int64_t terms, const Values &w, float *y, int64_t first, int64_t last,
               const Flush &flush) {
    const int64_t c = p.length, most = std::max<int64_t>(1, 512 / c), ld = most * c;
    std::vector<float> taps(p.segments * ld), sums(c);
    const Lane16 quick(f, *w.format, *w.span, terms);
    auto pixel = [&](int64_t m, float *out) {                       // whether quick arithmetic served
        std::fill(out, out + c, 0.0f);
        for (int64_t s = 0; s < p.segments; s += terms) {
            if (!quick.dot(p.x + p.row[m], p.segment + s, w.data + s * c, c, std::min(terms, p.segments - s), c,
                           sums.data())) return false;
            add_row(out, sums.data(), c, flush);
        }
        return true;
    };
    for (int64_t m = first; m < last; m += most) {
        const int64_t rows = std::min(most, last - m), columns = rows * c;
        bool done = quick.serves();
        for (int64_t i = 0; i < rows && done; i++) done = pixel(m + i, y + (m + i) * c);
        if (done) {
            canonical(y + m * c, columns);
            continue;
        }
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
void depthwise_turned(const Patches &p, const Format &f, int64_t terms, const Values &g, float *y, const Flush &flush) {
    const int64_t c = p.length;
    std::vector<float> strip(terms * c), sums(c);
    const Lane16 quick(f, *g.format, *g.span, terms);
    std::fill(y, y + p.segments * c, 0.0f);
    for (int64_t m = 0; m < p.pixels; m += terms) {
        const int64_t rows = std::min(terms, p.pixels - m);
        const float *b = g.data + m * g.ld;
        for (int64_t s = 0; s < p.segments; s++) {
            float *out = y + s * c;
            if (quick.serves() && quick.dot(p.x + p.segment[s], p.row + m, b, g.ld, rows, c, sums.data())) {
                add_row(out, sums.data(), c, flush);
                continue;
            }
            for (int64_t i = 0; i < rows; i++) std::copy_n(p.x + p.row[m + i] + p.segment[s], c, &strip[i * c]);
            Span span{1 << 20, -(1 << 20), 0};
            convert(strip.data(), c, strip.data(), c, nullptr, 0, rows, c, terms, 1, f, span);
            if (exact(f, *g.format, terms, span, *g.span))
                dot_columns<float>(strip.data(), b, 1, rows, c, c, g.ld, out, flush);
            else dot_columns<double>(strip.data(), b, 1, rows, c, c, g.ld, out, flush);
        }
    }
    canonical(y, p.segments * c);
}

}  // namespace
