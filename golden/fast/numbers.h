// Numbers of other formats than HBFP: golden/formats/rules.py defines them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "convert.h"

namespace numbers {

// An element of few bits, and how many share a power of two; see golden.fast.numbers.
struct Number {
    float least, most;       // powers of two between which an element's last bit follows its size; equal: an integer's
    float unit;              // of the last bit, over that power
    float largest;
    int32_t emax, block;
};

// v to the nearest element, ties to even, in steps: below 2^22 of them nothing else rounds. Signs of 0 stay.
inline float element(float v, const Number &number) {
    const float power = std::min(std::max(real(word(v) & 0x7F800000), number.least), number.most);
    const float shift = power * number.unit * 12582912.0f;          // 1.5 * 2^23 steps: exact
    const float y = std::min(std::max((v + shift) - shift, -number.largest), number.largest);
    return std::copysign(y, v);
}

// 2^exponent, -127 .. 127.
inline float power_of(int32_t exponent) { return real(exponent > -127 ? uint32_t(exponent + 127) << 23 : 1u << 22); }

// Elements of n numbers that have been divided by their scales.
void elements(const float *x, float *y, int64_t n, const Number &number) {
    const Number own = number;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] == x[i] ? element(x[i], own) : x[i];
}

// Scales of n blocks with these largest magnitudes (bits): up to the elements, and down; invalid ones are NaN.
void scales(const uint32_t *largest, float *up, float *down, int64_t n, const Number &number) {
    for (int64_t j = 0; j < n; j++) {
        const int32_t field = largest[j] >> 23;
        const int32_t power = std::min(std::max(field - 127 - number.emax, -127), 127);
        up[j] = power_of(-power);
        down[j] = field == 255 ? real(0x7FC00000) : power_of(power);
    }
}

// (outer, length, inner) in blocks along the length: those of one outer, side by side.
void blocks(const float *x, float *y, int64_t length, int64_t inner, const Number &number) {
    constexpr int64_t WIDE = 256;
    const Number own = number;
    uint32_t largest[WIDE];
    float up[WIDE], down[WIDE];
    for (int64_t first = 0; first < length; first += own.block) {
        const int64_t last = std::min<int64_t>(first + own.block, length);
        if (inner == 1) {
            uint32_t most = 0;
            for (int64_t k = first; k < last; k++) most = std::max(most, word(x[k]) & 0x7FFFFFFF);
            scales(&most, up, down, 1, own);
            const float to = up[0], back = down[0];
            for (int64_t k = first; k < last; k++) y[k] = element(x[k] * to, own) * back;
            continue;
        }
        for (int64_t c = 0; c < inner; c += WIDE) {
            const int64_t n = std::min(WIDE, inner - c);
            std::fill_n(largest, n, 0u);
            for (int64_t k = first; k < last; k++)
                for (int64_t j = 0; j < n; j++)
                    largest[j] = std::max(largest[j], word(x[k * inner + c + j]) & 0x7FFFFFFF);
            scales(largest, up, down, n, own);
            for (int64_t k = first; k < last; k++) {
                const float *from = x + k * inner + c;
                float *to = y + k * inner + c;
                for (int64_t j = 0; j < n; j++) to[j] = element(from[j] * up[j], own) * down[j];
            }
        }
    }
}

}  // namespace numbers
