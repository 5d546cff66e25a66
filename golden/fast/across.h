// Blocks that lie across vectors, a block a lane: converted on the way to a product, without being stored.
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

inline void add_row(float *y, const float *sums, int64_t count, const Flush &flush) {
    by_rule(flush, [&](const auto &rule) {
        typedef Vector<float> Floats;
        Floats total, sum;
        int64_t i = 0;
        for (; i + 16 <= count; i += 16) {
            get(total, y + i);
            get(sum, sums + i);
            put(y + i, plus(total, sum, rule));
        }
        float parts[2][16] = {};
        std::copy(y + i, y + count, parts[0]);
        std::copy(sums + i, sums + count, parts[1]);
        get(total, parts[0]);
        get(sum, parts[1]);
        put(parts[0], plus(total, sum, rule));
        std::copy_n(parts[0], count - i, y + i);
    });
}

inline void canonical(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] == y[i] ? y[i] : real(0x7FC00000);
}

// Rounding `rne` of blocks whose largest exponent field lies between `bottom` and `roof`: there float arithmetic rounds
// (see plain_range()) and holds every sum of `terms` products with operand w (see exact()).
class Across {
  public:
    typedef Vector<float> Floats;
    typedef Vector<int32_t> Ints;

    Across(const Format &f, const Format &fw, const Span &w, int64_t terms)
        : serves_(f.rounding == 0 && exact(f, fw, terms, Span{0, 0, 0}, Span{0, 0, 0}) && w.low <= w.high
                  && w.low >= -126 && w.high <= 127 && !f.gradual),
          steps_(1 - f.magnitude), most_(float((1 << f.magnitude) - 1)) {
        int32_t reach = w.high;
        for (int64_t t = terms; t; t >>= 1) reach++;
        bottom_ = std::max({64, f.lowest + 126, f.magnitude - w.low});
        roof_ = std::min({220, f.highest + 126, 253 - reach});
    }

    bool serves() const { return serves_; }

    // How 16 blocks are rounded.
    struct Scale {
        Floats magic, limit;

        Floats rounded(Floats v) const {
            v = (v + magic) - magic;
            v = select(v < -limit, -limit, v);
            return select(v > limit, limit, v);
        }
    };

    // Of the blocks of n elements at x[offset[i]], `count` of them (16 if N is 16); sets lanes of `odd` that lie outside.
    template <int N>
    Scale scale_of(const float *x, const int64_t *offset, int64_t n, int64_t count, Ints &odd) const {
        Ints largest = {};
        for (int64_t i = 0; i < n; i++) {
            const Ints size = as<int32_t>(load<N>(x + offset[i], count)) & 0x7FFFFFFF;
            largest = select(size > largest, size, largest);
        }
        const Ints top = largest >> 23, zero = top == 0;
        odd |= ~zero & ((top < bottom_) | (top > roof_));
        const Floats step = as<float>((top + steps_) << 23 & ~zero);
        return Scale{step * 12582912.0f, step * most_};
    }

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

  private:
    bool serves_;
    int32_t steps_, bottom_, roof_;
    float most_;
};

}  // namespace
