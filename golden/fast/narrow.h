// Sums in a float F of FP32's exponent and fewer bits of fraction: docs/numerics.md, section 5, `fp24` and `bf16`.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "vectors.h"

namespace {

// F has CUT bits of fraction less than FP32, at least 8; SMALL where a sum may lie below 2^-126, and is +0 there.
template <int CUT, bool SMALL> struct Narrow {};

// FP32 numbers rounded to F, to nearest even.
template <class V, int CUT, bool SMALL> inline V narrowed(const V &v, const Narrow<CUT, SMALL> &) {
    auto bits = as<uint32_t>(v);
    bits = (bits + (bits >> CUT & 1) + ((1u << (CUT - 1)) - 1)) & -(1u << CUT);
    if constexpr (!SMALL) return as<float>(bits);
    const auto size = as<int32_t>(bits & 0x7FFFFFFF);
    return as<float>(select(size < 0x800000, size - size, as<int32_t>(bits)));
}

// float64 numbers, rounded once to F, as half as many bytes of FP32.
template <class V, int CUT, bool SMALL> inline auto narrowed_wide(const V &v, const Narrow<CUT, SMALL> &) {
    constexpr int64_t OFF = CUT + 29;
    typedef float Floats __attribute__((vector_size(sizeof(V) / 2)));
    auto bits = as<int64_t>(v);
    bits = (bits + (bits >> OFF & 1) + ((int64_t(1) << (OFF - 1)) - 1)) & -(int64_t(1) << OFF);
    if constexpr (SMALL) {
        const auto size = bits & INT64_MAX;
        bits = select(size < int64_t(1023 - 126) << 52, size - size, bits);
    }
    return __builtin_convertvector(as<double>(bits), Floats);
}

// a + b in FP32, cut off towards zero, the last bit set where that is not all of it: what has fewer than 23 bits is
// rounded from there as from the sum.
template <class V> inline V odd_sum(const V &a, const V &b) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) {
        constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
        const __m512i down = _mm512_castps_si512(_mm512_add_round_ps(__m512(a), __m512(b), DOWN));
        const __m512i up = _mm512_castps_si512(_mm512_add_round_ps(__m512(a), __m512(b), UP));
        // Neighbours, of which one is odd, or the same number.
        return V(_mm512_mask_mov_epi32(up, _mm512_test_epi32_mask(down, _mm512_set1_epi32(1)), down));
    }
#endif
    const V sum = a + b, part = sum - a, rest = (a - (sum - part)) + (b - part);
    const auto bits = as<int32_t>(sum), less = (bits ^ as<int32_t>(rest)) >> 31;
    return as<float>(select((rest > 0.0f) | (rest < 0.0f), (bits + less) | 1, bits));
}

// The sum of two numbers of F. One of at most 11 bits may be rounded to FP32's 24 first.
template <class V, int CUT, bool SMALL> inline V narrow_sum(const V &a, const V &b, const Narrow<CUT, SMALL> &f) {
    if constexpr (CUT >= 13) return narrowed(V(a + b), f);
    else return narrowed(odd_sum(a, b), f);
}

// y += p, a register of block sums, in F.
template <class V, int CUT, bool SMALL> inline void add(float *y, const V &p, const Narrow<CUT, SMALL> &f) {
    if constexpr (sizeof(p[0]) == sizeof(float)) {
        V v;
        get(v, y);
        put(y, narrow_sum(v, narrowed(p, f), f));
    } else {
        const auto term = narrowed_wide(p, f);
        std::decay_t<decltype(term)> v;
        std::memcpy(&v, y, sizeof v);
        v = narrow_sum(v, term, f);
        std::memcpy(y, &v, sizeof v);
    }
}

template <class T, int B, int CUT, bool SMALL>
inline void add(float *y, const Split<T, B> &p, const Narrow<CUT, SMALL> &f) {
    add(y, p.low, f);
    add(y + Split<T, B>::HALF, p.high, f);
}

}  // namespace
