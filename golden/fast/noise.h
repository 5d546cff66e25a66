// The converter lanes' xorshift generators: docs/numerics.md, section 6.
#pragma once

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

}  // namespace
