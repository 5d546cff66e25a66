// Batch normalisation of all models of a job in training, and maximum pooling, to torch's bits: see alike.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace alike {

// What one model normalises, x (images, channels, pixels), or with `last` (images, pixels, channels), and its coefficients.
// weight, bias and the running statistics may be null. Eight is torch's vector here: it divides pixels, or channels.
struct Norm {
    int64_t images, channels, pixels, last;
    const float *weight, *bias;
    float *running_mean, *running_variance;
    float momentum, kept;                           // share of the new statistics, and of those before
    double eps;

    float count() const { return float(images * pixels); }
    float factor(int64_t c) const { return weight ? weight[c] : 1; }
};

constexpr int64_t WIDE = 8;

// A number that no compiler merges with what is done to it next.
inline float rounded(float x) {
    volatile float kept = x;
    return kept;
}

// Calls with each group of WIDE channels and how many of them there are.
template <class Call> inline void groups(const Norm &norm, const Call &call) {
    for (int64_t c = 0; c < norm.channels; c += WIDE) call(c, std::min(WIDE, norm.channels - c));
}

// `sum` and `square`, of each channel: the sum, and that of squared differences from the mean.
inline void sums(const Norm &norm, const float *x, int64_t c, int64_t wide, float *mean, float *square) {
    double sum[WIDE] = {}, squares[WIDE] = {};
    const int64_t s = norm.pixels;
    for (int64_t i = 0; i < norm.images; i++) {
        const float *from = x + (i * norm.channels + c) * s;
        for (int64_t t = 0; t < s; t++)
            for (int64_t j = 0; j < wide; j++) sum[j] += from[j * s + t];
    }
    for (int64_t j = 0; j < wide; j++) mean[j] = float(sum[j] / double(norm.images * s));
    for (int64_t i = 0; i < norm.images; i++) {
        const float *from = x + (i * norm.channels + c) * s;
        for (int64_t t = 0; t < s; t++)
            for (int64_t j = 0; j < wide; j++) {
                const float d = from[j * s + t] - mean[j];
                squares[j] += double(d * d);
            }
    }
    for (int64_t j = 0; j < wide; j++) square[j] = float(squares[j]);
}

inline void sums_last(const Norm &norm, const float *x, int64_t c, float *mean, float *square) {
    float sum[WIDE] = {}, squares[WIDE] = {};
    const int64_t rows = norm.images * norm.pixels;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < WIDE; j++) sum[j] += x[r * norm.channels + c + j];
    for (int64_t j = 0; j < WIDE; j++) mean[j] = sum[j] / norm.count();
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < WIDE; j++) {
            const float d = x[r * norm.channels + c + j] - mean[j];
            squares[j] = std::fma(d, d, squares[j]);
        }
    std::copy_n(squares, WIDE, square);
}

// Calls with each run of numbers in memory of a group: where it begins, how long it is, and of how many channels.
template <class Call> inline void runs(const Norm &norm, int64_t c, int64_t wide, const Call &call) {
    if (norm.last)
        for (int64_t r = 0; r < norm.images * norm.pixels; r++) call(r * norm.channels + c, wide, int64_t(0));
    else
        for (int64_t i = 0; i < norm.images; i++)
            for (int64_t j = 0; j < wide; j++) call((i * norm.channels + c + j) * norm.pixels, norm.pixels, j);
}

// y of x, and `mean` and `inverse` (the inverse deviation) of each channel, for the gradient.
inline void normalise(const Norm &norm, const float *x, float *y, float *mean, float *inverse) {
    groups(norm, [&](int64_t c, int64_t wide) {
        float square[WIDE], scale[WIDE], shift[WIDE];
        if (norm.last) sums_last(norm, x, c, mean + c, square);
        else sums(norm, x, c, wide, mean + c, square);
        for (int64_t j = 0; j < wide; j++) {
            const float m = mean[c + j];
            inverse[c + j] = float(1 / std::sqrt(double(square[j] / norm.count()) + norm.eps));
            scale[j] = rounded(inverse[c + j] * norm.factor(c + j));
            shift[j] = std::fma(-m, scale[j], norm.bias ? norm.bias[c + j] : 0);
            if (norm.running_mean) {
                float &kept = norm.running_mean[c + j], &variance = norm.running_variance[c + j];
                kept = rounded(norm.momentum * m) + rounded(norm.kept * kept);
                variance = std::fma(norm.momentum, square[j] / (norm.count() - 1), rounded(norm.kept * variance));
            }
        }
        if (norm.last)
            runs(norm, c, WIDE, [&](int64_t at, int64_t, int64_t) {
                for (int64_t j = 0; j < WIDE; j++) y[at + j] = std::fma(x[at + j], scale[j], shift[j]);
            });
        else
            runs(norm, c, wide, [&](int64_t at, int64_t n, int64_t j) {
                for (int64_t t = at; t < at + n; t++) y[t] = std::fma(x[t], scale[j], shift[j]);
            });
    });
}

// Sum of n numbers: WIDE chains, which are added by halves.
inline float chains(const float *x, int64_t n) {
    float sum[WIDE];
    std::copy_n(x, WIDE, sum);
    for (int64_t t = WIDE; t < n; t += WIDE)
        for (int64_t j = 0; j < WIDE; j++) sum[j] += x[t + j];
    for (int64_t half = WIDE / 2; half; half /= 2)
        for (int64_t j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

// Gradients of x (may be null), weight and bias.
inline void gradients(const Norm &norm, const float *x, const float *g, const float *mean, const float *inverse,
                      float *gx, float *gw, float *gb) {
    const float count = norm.count();
    std::vector<float> products(norm.pixels);
    groups(norm, [&](int64_t c, int64_t wide) {
        float k[WIDE], middle[WIDE];
        if (norm.last) {
            float sum[WIDE] = {}, dot[WIDE] = {};
            runs(norm, c, WIDE, [&](int64_t at, int64_t, int64_t) {
                for (int64_t j = 0; j < WIDE; j++) {
                    sum[j] += g[at + j];
                    dot[j] = std::fma(x[at + j] - mean[c + j], g[at + j], dot[j]);
                }
            });
            for (int64_t j = 0; j < WIDE; j++) {
                gw[c + j] = dot[j] * inverse[c + j];
                gb[c + j] = sum[j];
                k[j] = dot[j] * inverse[c + j] * inverse[c + j] / count;
                middle[j] = sum[j] / count;
            }
            if (gx)
                runs(norm, c, WIDE, [&](int64_t at, int64_t, int64_t) {
                    for (int64_t j = 0; j < WIDE; j++)
                        gx[at + j] = std::fma(mean[c + j] - x[at + j], k[j], g[at + j] - middle[j]) * inverse[c + j]
                                   * norm.factor(c + j);
                });
            return;
        }
        double sum[WIDE] = {}, dot[WIDE] = {};
        runs(norm, c, wide, [&](int64_t at, int64_t n, int64_t j) {
            for (int64_t t = 0; t < n; t++) products[t] = (x[at + t] - mean[c + j]) * g[at + t];
            sum[j] += chains(g + at, n);
            dot[j] += chains(products.data(), n);
        });
        for (int64_t j = 0; j < wide; j++) {
            gw[c + j] = float(dot[j] * inverse[c + j]);
            gb[c + j] = float(sum[j]);
            k[j] = float(dot[j]) * inverse[c + j] * inverse[c + j] / count;
            middle[j] = float(sum[j] / double(norm.images * norm.pixels));
        }
        if (gx)
            runs(norm, c, wide, [&](int64_t at, int64_t n, int64_t j) {
                const float m = mean[c + j], scale = inverse[c + j], factor = norm.factor(c + j);
                for (int64_t t = at; t < at + n; t++)
                    gx[t] = std::fma(m - x[t], k[j], g[t] - middle[j]) * scale * factor;
            });
    });
}

// Windows of a plane (high, wide), and how many there are.
struct Windows {
    int64_t high, wide, kernel[2], stride[2], padding[2], dilation[2], rows, columns;
};

// Largest number of each window of each plane of x, and where in its plane it is: the first one, or the last NaN.
inline void largest(const float *x, int64_t planes, const Windows &w, float *y, int64_t *index) {
    std::vector<int32_t> places(w.columns), starts(w.columns), first(w.kernel[1]), last(w.kernel[1]);
    for (int64_t c = 0; c < w.columns; c++) {
        int64_t left = c * w.stride[1] - w.padding[1];
        while (left < 0) left += w.dilation[1];
        starts[c] = int32_t(left);
    }
    for (int64_t k = 0; k < w.kernel[1]; k++) {         // the windows that have column k inside the plane
        const int64_t shift = k * w.dilation[1] - w.padding[1];
        first[k] = int32_t(std::min(w.columns, shift < 0 ? (-shift + w.stride[1] - 1) / w.stride[1] : 0));
        const int64_t room = w.wide - 1 - shift;
        last[k] = int32_t(room < 0 ? 0 : std::min(w.columns, room / w.stride[1] + 1));
    }
    for (int64_t p = 0; p < planes; p++, x += w.high * w.wide)
        for (int64_t r = 0; r < w.rows; r++, y += w.columns, index += w.columns) {
            int64_t top = r * w.stride[0] - w.padding[0];
            const int64_t below = std::min(top + (w.kernel[0] - 1) * w.dilation[0] + 1, w.high);
            while (top < 0) top += w.dilation[0];
            for (int64_t c = 0; c < w.columns; c++) {
                y[c] = -std::numeric_limits<float>::infinity();
                places[c] = int32_t(top * w.wide) + starts[c];
            }
            for (int64_t i = top; i < below; i += w.dilation[0])
                for (int64_t k = 0; k < w.kernel[1]; k++) {
                    const int64_t at = i * w.wide + k * w.dilation[1] - w.padding[1];
                    for (int64_t c = first[k]; c < last[k]; c++) {      // selected, since to guess a branch fails
                        const float v = x[at + c * w.stride[1]], found = y[c];
                        const bool more = !(v <= found) & !(found != found & v == v);
                        y[c] = more ? v : found;
                        places[c] = more ? int32_t(at + c * w.stride[1]) : places[c];
                    }
                }
            for (int64_t c = 0; c < w.columns; c++) index[c] = places[c];
        }
}

}  // namespace alike
