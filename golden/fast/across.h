// Vectors of 16 lanes, a block each.
#pragma once

#include "product.h"

namespace {

// A vector of block sums, or `count` of them, added to those before.
template <class V> inline V plus(const V &total, const V &sum, const Keep &) { return total + sum; }
template <class V, int CUT, bool SMALL> inline V plus(const V &total, const V &sum, const Narrow<CUT, SMALL> &f) {
    return narrow_sum(total, narrowed(sum, f), f);
}
template <class V> inline V plus(const V &total, const V &sum, const Flush &) {
    const auto bits = as<int32_t>(V(total + sum)), size = bits & 0x7FFFFFFF;
    return as<float>(select(size < 0x800000, size - size, bits));
}

inline void canonical(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] == y[i] ? y[i] : real(0x7FC00000);
}

template <int N> using Count = std::integral_constant<int, N>;

// Blocks of 16 lanes.
struct Across {
    typedef Vector<float> Floats;
    typedef Vector<int32_t> Ints;

    template <int N> static Floats load(const float *x, int64_t count) {
        Floats v;
        if constexpr (N == 16) get(v, x);
        else {
            float part[16] = {};
            std::memcpy(part, x, 4 * count);
            get(v, part);
        }
        return v;
    }

    static bool any(const Ints &lanes) {
#if defined(__AVX512F__)
        return _mm512_test_epi32_mask(__m512i(lanes), __m512i(lanes));
#endif
        int32_t found = 0;
        for (int i = 0; i < 16; i++) found |= lanes[i];
        return found;
    }
};

}  // namespace
