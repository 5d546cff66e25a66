// The products of layers behind each other, of all models of a job: golden/fast/chain.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "alike_product.h"
#include "stack.h"

namespace {

// What is done for each model, whose numbers lie `step` behind those of the one before, those of y and mask one behind the
// other: y (m, n) = a (m, k) b (k, n), in FP32 or with a format of each model, or y (n) = sums over the rows of a (m, n).
// Then y gets a bias, what is below 0 becomes 0 if it is `rectified`, and so does what stands where `mask`, as y, has 0.
struct Link {
    const float *a, *b, *bias, *mask;               // bias and mask may be null
    float *y;
    int64_t a_step, am, ak, b_step, bk, bn, bias_step, m, k, n;
    int64_t rectified, dots, sums;                  // sums: 0 for a product, 1 from the first row on, else add_rows()'s `wide`
    const Format *fa, *fb;                          // null: FP32
    const int64_t *high_a, *high_b, *terms;
    const Flush *flush;

    void run(int64_t model, Pair *pair, float *work) const {
        const float *from = a + model * a_step;
        if (sums) {
            float *to = y + model * n;
            if (sums > 1) return alike::add_rows(from, m, n, sums, to);
            std::fill_n(to, n, 0.0f);
            for (int64_t r = 0; r < m; r++)
                for (int64_t c = 0; c < n; c++) to[c] += from[r * n + c];
            return;
        }
        float *to = y + model * m * n;
        const float *other = b + model * b_step;
        if (fa)
            pair->multiply(from, am, ak, fa[model], high_a[model], other, bk, bn, fb[model], high_b[model], terms[model], to,
                           flush[model]);
        else if (dots) alike::multiply_dots({from, am, ak, other, bk, bn, m, k, n}, to);
        else alike::multiply({from, am, ak, other, bk, bn, m, k, n}, to, work);
        finish(model, to);
    }

    void finish(int64_t model, float *to) const {
        const float *add = bias ? bias + model * bias_step : nullptr, *seen = mask ? mask + model * m * n : nullptr;
        if (add)
            for (int64_t r = 0; r < m; r++)
                for (int64_t c = 0; c < n; c++) {
                    const float v = to[r * n + c] + add[c];
                    to[r * n + c] = rectified && v < 0 ? 0 : v;
                }
        else if (rectified)
            for (int64_t i = 0; i < m * n; i++) to[i] = to[i] < 0 ? 0 : to[i];
        if (seen)
            for (int64_t i = 0; i < m * n; i++) to[i] = seen[i] <= 0 ? 0 : to[i];
    }
};

// Links of some models, all of one model before the next one.
inline void run_chain(const Link *links, int64_t count, int64_t first, int64_t last) {
    int64_t most = 0;
    std::vector<std::unique_ptr<Pair>> pairs(count);
    for (int64_t i = 0; i < count; i++) {
        most = std::max(most, links[i].k);
        if (links[i].fa) pairs[i].reset(new Pair(links[i].m, links[i].k, links[i].n));
    }
    std::unique_ptr<float[]> work(new float[most * 4 * alike::LANES]);
    for (int64_t model = first; model < last; model++)
        for (int64_t i = 0; i < count; i++) links[i].run(model, pairs[i].get(), work.get());
}

}  // namespace
