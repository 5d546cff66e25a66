// Batch normalisation of all models of a job in training, to torch's bits: see alike.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
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

// y of x, and `mean` and `inverse` (the inverse deviation) of each channel, for the gradient; RECTIFIED: 0 in place of what
// is below.
template <bool RECTIFIED>
void normalise(const Norm &norm, const float *x, float *y, float *mean, float *inverse) {
    const auto put = [&](int64_t at, float v) { y[at] = RECTIFIED && v < 0 ? 0 : v; };
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
                for (int64_t j = 0; j < WIDE; j++) put(at + j, std::fma(x[at + j], scale[j], shift[j]));
            });
        else
            runs(norm, c, wide, [&](int64_t at, int64_t n, int64_t j) {
                for (int64_t t = at; t < at + n; t++) put(t, std::fma(x[t], scale[j], shift[j]));
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

// Gradients of x (may be null), weight and bias; RECTIFIED: y was, and g does not count where it is 0.
template <bool RECTIFIED>
void gradients(const Norm &norm, const float *x, const float *g, const float *y, const float *mean, const float *inverse,
               float *gx, float *gw, float *gb) {
    const float count = norm.count();
    std::vector<float> products(norm.pixels), kept(norm.pixels);
    const auto top = [=](int64_t at) {
        const float all = g[at];
        return RECTIFIED && y[at] <= 0 ? 0.0f : all;
    };
    groups(norm, [&](int64_t c, int64_t wide) {
        float k[WIDE], middle[WIDE];
        if (norm.last) {
            float sum[WIDE] = {}, dot[WIDE] = {};
            runs(norm, c, WIDE, [&](int64_t at, int64_t, int64_t) {
                for (int64_t j = 0; j < WIDE; j++) {
                    sum[j] += top(at + j);
                    dot[j] = std::fma(x[at + j] - mean[c + j], top(at + j), dot[j]);
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
                        gx[at + j] = std::fma(mean[c + j] - x[at + j], k[j], top(at + j) - middle[j]) * inverse[c + j]
                                   * norm.factor(c + j);
                });
            return;
        }
        double sum[WIDE] = {}, dot[WIDE] = {};
        runs(norm, c, wide, [&](int64_t at, int64_t n, int64_t j) {
            for (int64_t t = 0; t < n; t++) kept[t] = top(at + t);
            for (int64_t t = 0; t < n; t++) products[t] = (x[at + t] - mean[c + j]) * kept[t];
            sum[j] += chains(kept.data(), n);
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
                    gx[t] = std::fma(m - x[t], k[j], top(t) - middle[j]) * scale * factor;
            });
    });
}

}  // namespace alike
