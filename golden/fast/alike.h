// What torch computes in FP32, for all models of a job at once and to its bits: golden/fast/alike.py proves them where a
// job runs, before it takes a result.
#pragma once

#include <cmath>
#include <cstdint>

namespace alike {

// A parameter of all models: `n` numbers of each from column `place` of a row of values and states on; a model's
// gradient behind that of the one before.
struct Parameter {
    const float *gradient;
    int64_t place, n;
};

// Calls with the numbers of each model's each parameter: model, gradient, where the others begin in rows of `ld`, how many.
template <class Call>
inline void each_parameter(const Parameter *parameters, int64_t count, int64_t models, int64_t ld, const Call &call) {
    for (int64_t i = 0; i < models; i++)
        for (const Parameter *p = parameters; p < parameters + count; p++)
            call(i, p->gradient + i * p->n, i * ld + p->place, p->n);
}

// Coefficients of a model in torch.optim.SGD; `fresh`: its first step.
struct Sgd {
    float decay, momentum, share, rate;             // share: 1 - dampening; rate: minus the learning rate
    int32_t nesterov, fresh;
};

inline void sgd(const Sgd &c, const float *gradient, float *value, float *buffer, int64_t n) {
    const bool decays = c.decay != 0;
    for (int64_t i = 0; i < n; i++) {
        float g = decays ? std::fma(value[i], c.decay, gradient[i]) : gradient[i];
        if (buffer) {
            const float kept = c.fresh ? g : std::fma(g, c.share, buffer[i] * c.momentum);
            buffer[i] = kept;
            g = c.nesterov ? std::fma(kept, c.momentum, g) : kept;
        }
        value[i] = std::fma(g, c.rate, value[i]);
    }
}

// Coefficients of a model in torch.optim.Adam and AdamW.
struct Adam {
    float decay, shrink;                            // added to the gradient; what AdamW multiplies values by, or 1
    float share, square, square_share;              // 1 - beta1, beta2, 1 - beta2
    float correction, eps, rate;                    // root of the second one, and minus the step over the first one
};

inline void moments(const Adam &c, const float *gradient, float *value, float *mean, float *square, int64_t n) {
    const bool decays = c.decay != 0, far = c.share >= 0.5f;
    for (int64_t i = 0; c.shrink != 1 && i < n; i++) value[i] *= c.shrink;
    const float weight = far ? c.share - 1 : c.share;
    for (int64_t i = 0; i < n; i++) {
        const float g = decays ? std::fma(value[i], c.decay, gradient[i]) : gradient[i];
        mean[i] = std::fma(weight, g - mean[i], far ? g : mean[i]);
        square[i] = std::fma(c.square_share * g, g, square[i] * c.square);
    }
}

// `root`: torch's own roots of the squares, some of which it rounds in a way of its own.
inline void adam(const Adam &c, const float *mean, const float *root, float *value, int64_t n) {
    for (int64_t i = 0; i < n; i++) value[i] += c.rate * mean[i] / (root[i] / c.correction + c.eps);
}

}  // namespace alike
