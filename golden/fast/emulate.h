// The published research emulator's rounding: docs/numerics.md, section 10; the definition is golden.bfp.emulate_plain.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "convert.h"

namespace emulator {

// Columns at a time: what a band of tiles needs of them stays in the first cache.
constexpr int64_t MOST = 512;

// How the columns of a band are rounded, each a lane of its own.
struct Scales {
    std::vector<float> up, down, limit;
    std::vector<uint8_t> invalid;
    bool any = false;

    explicit Scales(int64_t columns) : up(columns), down(columns), limit(columns), invalid(columns) {}

    // Columns first .. last, of a block with this largest magnitude (bits).
    void set(int64_t first, int64_t last, uint32_t largest, int32_t magnitude) {
        const uint32_t bits = word(real(largest) + real(0x322BCC77));
        const int32_t k = field_of(bits) - 127, reach = k < 0 ? -1 - k : k;    // -4 .. 3 reach 3, -8 .. 7 reach 7
        const uint32_t threshold = reach < 4 ? 0 : reach < 8 ? 1 : reach < 16 ? 2 : reach < 32 ? 5 : reach < 64 ? 11 : 22;
        const int32_t exponent = k + ((bits & 0x7FFFFF) > threshold);
        const float step = float(power(exponent - magnitude));
        std::fill(&up[first], &up[0] + last, float(power(magnitude - exponent)));
        std::fill(&down[first], &down[0] + last, step);
        std::fill(&limit[first], &limit[0] + last, exponent > 127 ? INFINITY : float(power(exponent)) - step);
        std::fill(&invalid[first], &invalid[0] + last, largest >> 23 == 255);
        any |= largest >> 23 == 255;
    }

    // n numbers of a row, the first in column `at` of the scales. `noise` may be null.
    void round(const float *x, const float *noise, float *y, int64_t n, int64_t at) const {
        const float *s = &up[at], *r = &down[at], *l = &limit[at];
        for (int64_t j = 0; j < n; j++) y[j] = x[j] * s[j];
        if (noise)                                                  // apart from the product, which is rounded before
            for (int64_t j = 0; j < n; j++) y[j] = noise[j] + y[j];
        for (int64_t j = 0; j < n; j++) {
            float v = std::rint(y[j]) * r[j];
            v = v < -l[j] ? -l[j] : v;
            y[j] = v > l[j] ? l[j] : v;
        }
        for (int64_t j = 0; any && j < n; j++)
            if (invalid[at + j]) y[j] = real(0x7FC00000);
    }
};

// Rows of x (rows, columns) in tiles of side `tile`; `noise` has the shape of x, or is null.
void tiles(const float *x, const float *noise, float *y, int64_t rows, int64_t columns, int64_t tile, int32_t magnitude) {
    const int64_t wide = tile * std::max<int64_t>(1, MOST / tile);
    std::vector<uint32_t> largest(wide);
    for (int64_t r = 0; r < rows; r += tile)
        for (int64_t c = 0; c < columns; c += wide) {
            const int64_t n = std::min(wide, columns - c), end = std::min(r + tile, rows);
            Scales scales(n);
            std::fill_n(largest.begin(), n, 0);
            for (int64_t i = r; i < end; i++)
                for (int64_t j = 0; j < n; j++)
                    largest[j] = std::max(largest[j], word(x[i * columns + c + j]) & 0x7FFFFFFF);
            for (int64_t t = 0; t < n; t += tile) {
                const int64_t last = std::min(t + tile, n);
                scales.set(t, last, *std::max_element(&largest[t], &largest[0] + last), magnitude);
            }
            for (int64_t i = r; i < end; i++) {
                const int64_t at = i * columns + c;
                scales.round(x + at, noise ? noise + at : nullptr, y + at, n, 0);
            }
        }
}

// All numbers in one block.
void whole(const float *x, const float *noise, float *y, int64_t count, int32_t magnitude) {
    Scales scales(MOST);
    scales.set(0, MOST, largest_of<0>(x, count), magnitude);
    for (int64_t at = 0; at < count; at += MOST)
        scales.round(x + at, noise ? noise + at : nullptr, y + at, std::min(MOST, count - at), 0);
}

}  // namespace emulator
