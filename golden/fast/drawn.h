// FP32 to blocks with noise from the generators, which give it in the order of the hardware's stream.
#pragma once

#include "columns.h"

namespace {

// Blocks of a line that have 16 N terms each, of as many lanes, four at a time, until four have one that float arithmetic
// does not round: y of as many numbers as are returned. Numbers are drawn beside the rounding of those before them, since
// a generator's next one has to wait for the last.
template <int N> int64_t drawn_blocks(const float *x, float *y, int64_t columns, const Format &f, Lanes &lanes, Span &span) {
    typedef Vector<uint32_t> Words;
    constexpr int64_t WIDE = 16 * N;
    const int32_t bottom = std::max(64, f.lowest + 126), roof = std::min(220, f.highest + 126), middle = 126;
    const Quad flushed = Quad{} - !f.gradual;                       // blocks of zeros are rounded as any others
    const Noise noise(f);
    Words state[N], shifts[3][N];
    for (int n = 0; n < N; n++) {
        get(state[n], lanes.state + 16 * n);
        for (int i = 0; i < 3; i++) get(shifts[i][n], lanes.shifts[i] + 16 * n);
    }
    Quad low = Quad{} + (1 << 20), high = Quad{} - 1;
    int64_t c = 0;
    for (; c + 4 * WIDE <= columns; c += 4 * WIDE) {
        const Quad top = four_tops<WIDE>(x + c), zero = (top == 0) & flushed, own = zero ? Quad{} + middle : top;
        const Quad outside = (own < bottom) | (own > roof);
        int64_t any[2];
        std::memcpy(any, &outside, sizeof any);
        if (any[0] | any[1]) break;
        low = zero | (top > low) ? low : top;
        high = larger(high, zero | top);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const Unit unit{Across::Floats{} + real(uint32_t(253 - own[i] + f.magnitude) << 23),
                            Across::Floats{} + step_of(own[i], f), {}};
#pragma GCC unroll 2
            for (int n = 0; n < N; n++) {
                state[n] ^= state[n] << shifts[0][n];
                state[n] ^= state[n] >> shifts[1][n];
                state[n] ^= state[n] << shifts[2][n];
                const int64_t at = c + i * WIDE + 16 * n;
                Across::Floats v;
                get(v, x + at);
                put(y + at, noise.mantissa(v, unit, as<int32_t>(state[n] >> (32 - f.noise_bits))) * unit.step + 0.0f);
            }
        }
    }
    for (int n = 0; n < N; n++) put(lanes.state + 16 * n, state[n]);
    for (int i = 0; i < 4; i++)
        if (high[i] >= 0) {
            span.low = std::min(span.low, low[i] - 126 - f.magnitude);
            span.high = std::max(span.high, high[i] - 126);
        }
    return c;
}

// One line in blocks of `wide`.
inline void drawn_line(const float *x, float *y, int64_t columns, int64_t wide, const Format &f, Lanes &lanes, Span &span,
                       std::vector<int32_t> &noise) {
    const bool quick = Noise::IN_FLOATS && lanes.count == wide && (wide == 16 || wide == 32)
                    && f.noise_bits <= 24 - f.magnitude;
    const int64_t most = wide * (quick ? 4 : std::max<int64_t>(1, 1024 / wide));       // pieces that stay in the caches
    noise.resize(most + SLACK);
    for (int64_t c = 0; c < columns; c += most) {
        if (quick) c += (wide == 16 ? drawn_blocks<1> : drawn_blocks<2>)(x + c, y + c, columns - c, f, lanes, span);
        const int64_t n = std::min(most, columns - c);
        lanes.draw(noise.data(), (n + wide - 1) / wide * wide, f.noise_bits);
        convert(x + c, columns, y + c, columns, noise.data(), most, 1, n, 1, wide, f, span);
    }
}

// Values after conversion, as convert() has them.
void convert_drawn(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t columns, int64_t high,
                   int64_t wide, const Format &f, Lanes &lanes, Span &span) {
    const int64_t blocks = (columns + wide - 1) / wide, ldn = blocks * wide + SLACK;
    if (high == 1 && columns % wide == 0 && ldx == columns && ldy == columns && rows > 1) {    // as good as one row
        convert_drawn(x, ldx * rows, y, ldy * rows, 1, columns * rows, 1, wide, f, lanes, span);
        return;
    }
    std::vector<int32_t> noise;
    if (high == 1) {
        for (int64_t r = 0; r < rows; r++) drawn_line(x + r * ldx, y + r * ldy, columns, wide, f, lanes, span, noise);
        return;
    }
    noise.resize(high * ldn);
    for (int64_t r = 0; r < rows; r += high) {
        for (int64_t c = 0; c < blocks; c++)
            for (int64_t i = 0; i < high; i++) lanes.draw(noise.data() + i * ldn + c * wide, wide, f.noise_bits);
        convert(x + r * ldx, ldx, y + r * ldy, ldy, noise.data(), ldn, std::min(high, rows - r), columns, high, wide, f,
                span);
    }
}

}  // namespace
