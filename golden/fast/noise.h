// The converter lanes' xorshift generators: docs/numerics.md, section 6.
#pragma once

#include <vector>

#include "vectors.h"

namespace {

// Numbers that a draw may write behind its end.
constexpr int64_t SLACK = 32;

// Up to 32 lanes; entries beyond `count` run idle.
struct Lanes {
    uint32_t state[32], shifts[3][32];
    int64_t count;

    // The next `numbers` (a multiple of the lanes): their top `bits`.
    void draw(int32_t *out, int64_t numbers, int32_t bits) {
        if (count <= 16) run<1>(out, numbers, bits);
        else run<2>(out, numbers, bits);
    }

  private:
    typedef Vector<uint32_t> Words;

    template <int N>
    void run(int32_t *out, int64_t numbers, int32_t bits) {
        Words s[N], a[N], b[N], c[N];
        for (int n = 0; n < N; n++) {
            get(s[n], state + 16 * n);
            get(a[n], shifts[0] + 16 * n);
            get(b[n], shifts[1] + 16 * n);
            get(c[n], shifts[2] + 16 * n);
        }
        for (int64_t i = 0; i < numbers; i += count)
            for (int n = 0; n < N; n++) {
                s[n] ^= s[n] << a[n];
                s[n] ^= s[n] >> b[n];
                s[n] ^= s[n] << c[n];
                put(out + i + 16 * n, as<int32_t>(s[n] >> (32 - bits)));
            }
        for (int n = 0; n < N; n++) put(state + 16 * n, s[n]);
    }
};

// Many steps of all lanes at once: a step is linear in the bits of a state, and so are 2, 4, 8 ... steps.
class Leaps {
  public:
    // Those of the one table of shifts that all Lanes have.
    static const Leaps &of(const Lanes &lanes) {
        static const Leaps leaps(lanes);
        return leaps;
    }

    void forward(uint32_t (&state)[32], int64_t steps) const {
        for (int k = 0; steps; k++, steps >>= 1)
            if (steps & 1) leap(k, state);
    }

  private:
    static constexpr int MOST = 44;
    std::vector<uint32_t> bits_;                                    // (power, bit, lane): what becomes of a bit alone

    uint32_t *at(int k, int bit) { return &bits_[(k * 32 + bit) * 32]; }

    explicit Leaps(const Lanes &given) : bits_(MOST * 32 * 32) {
        Lanes lanes = given;
        lanes.count = 32;
        for (int bit = 0; bit < 32; bit++) {
            int32_t out[32 + SLACK];
            for (uint32_t &state : lanes.state) state = 1u << bit;
            lanes.draw(out, 32, 1);
            std::memcpy(at(0, bit), lanes.state, sizeof lanes.state);
        }
        for (int k = 1; k < MOST; k++)
            for (int bit = 0; bit < 32; bit++) {
                uint32_t state[32];
                std::memcpy(state, at(k - 1, bit), sizeof state);
                leap(k - 1, state);
                std::memcpy(at(k, bit), state, sizeof state);
            }
    }

    // 2^k steps.
    void leap(int k, uint32_t (&state)[32]) const {
        typedef Vector<uint32_t> Words;
        for (int half = 0; half < 32; half += 16) {
            Words from, total = {}, one;
            get(from, state + half);
            for (uint32_t bit = 0; bit < 32; bit++) {
                get(one, &bits_[(k * 32 + bit) * 32 + half]);
                total ^= one & -(from >> bit & 1);
            }
            put(state + half, total);
        }
    }
};

}  // namespace
