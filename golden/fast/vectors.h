// Vectors of 64 bytes on every machine: one register where there are such, else several side by side.
// A compiler takes a vector that is wider than the registers apart in memory, element by element at times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace {

#if defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

// A number that depends on the registers: there are 32 of 64 bytes, and 16 of fewer.
constexpr int by_registers(int of_64, int of_32, int of_16) {
    return REGISTER == 64 ? of_64 : REGISTER == 32 ? of_32 : of_16;
}

// A vector, of the compiler where it fits a register.
template <class T, int BYTES> struct Split;
template <class T, int BYTES, bool FITS = (BYTES <= REGISTER)> struct VectorOf {
    typedef T Type __attribute__((vector_size(BYTES)));
};
template <class T, int BYTES> struct VectorOf<T, BYTES, false> { typedef Split<T, BYTES> Type; };
template <class T, int BYTES = 64> using Vector = typename VectorOf<T, BYTES>::Type;

template <class T, int BYTES> struct Split {
    typedef Vector<T, BYTES / 2> Half;
    static constexpr int HALF = BYTES / 2 / sizeof(T);
    Half low, high;

    T operator[](int i) const { return i < HALF ? low[i] : high[i - HALF]; }
    Split operator-() const { return {-low, -high}; }
    Split operator~() const { return {~low, ~high}; }
};

template <class V> using Element = std::decay_t<decltype(std::declval<V>()[0])>;
template <class V> inline Split<Element<V>, 2 * sizeof(V)> join(const V &low, const V &high) { return {low, high}; }

#define HBFP_OPERATOR(OP) \
    template <class T, int B> inline auto operator OP(const Split<T, B> &a, const Split<T, B> &b) { \
        return join(a.low OP b.low, a.high OP b.high); \
    } \
    template <class T, int B, class S, class = std::enable_if_t<std::is_arithmetic_v<S>>> \
    inline auto operator OP(const Split<T, B> &a, S b) { return join(a.low OP b, a.high OP b); }
HBFP_OPERATOR(+) HBFP_OPERATOR(-) HBFP_OPERATOR(*) HBFP_OPERATOR(&) HBFP_OPERATOR(|) HBFP_OPERATOR(^)
HBFP_OPERATOR(<<) HBFP_OPERATOR(>>) HBFP_OPERATOR(<) HBFP_OPERATOR(>) HBFP_OPERATOR(==)
#undef HBFP_OPERATOR

#define HBFP_ASSIGNMENT(OP) \
    template <class T, int B, class S> inline Split<T, B> &operator OP##=(Split<T, B> &a, const S &b) { return a = a OP b; }
HBFP_ASSIGNMENT(+) HBFP_ASSIGNMENT(-) HBFP_ASSIGNMENT(*) HBFP_ASSIGNMENT(&) HBFP_ASSIGNMENT(|) HBFP_ASSIGNMENT(^)
#undef HBFP_ASSIGNMENT

template <class S, class T, int B> inline Split<T, B> operator*(S a, const Split<T, B> &b) { return b * a; }

// Of each lane `a` where the mask is set, else `b`.
template <class M, class V> inline V select(const M &mask, const V &a, const V &b) { return mask ? a : b; }
template <class M, class T, int B>
inline Split<T, B> select(const Split<M, B> &mask, const Split<T, B> &a, const Split<T, B> &b) {
    return {select(mask.low, a.low, b.low), select(mask.high, a.high, b.high)};
}

// The bits of a vector as elements U of the same size, and its numbers as such.
template <class U, class V> inline Vector<U, sizeof(V)> as(const V &v) { return Vector<U, sizeof(V)>(v); }
template <class U, class T, int B> inline Split<U, B> as(const Split<T, B> &v) { return {as<U>(v.low), as<U>(v.high)}; }
template <class U, class V> inline Vector<U, sizeof(V)> convert(const V &v) {
    return __builtin_convertvector(v, Vector<U, sizeof(V)>);
}
template <class U, class T, int B> inline Split<U, B> convert(const Split<T, B> &v) {
    return {convert<U>(v.low), convert<U>(v.high)};
}

// From memory, a lane each, and to it.
template <class T, class V> inline void get(V &v, const T *from) { std::memcpy(&v, from, sizeof v); }
template <class T, int B> inline void get(Split<T, B> &v, const T *from) {
    get(v.low, from);
    get(v.high, from + Split<T, B>::HALF);
}
template <class T, class V> inline void put(T *to, const V &v) { std::memcpy(to, &v, sizeof v); }
template <class T, int B> inline void put(T *to, const Split<T, B> &v) {
    put(to, v.low);
    put(to + Split<T, B>::HALF, v.high);
}

// The same from int32, with the sign.
template <class T, class V> inline void get_whole(V &v, const int32_t *from) {
    typedef int32_t Narrow __attribute__((vector_size(sizeof(V) / sizeof(T) * 4)));
    Narrow narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    v = __builtin_convertvector(narrow, V);
}
template <class T, int B> inline void get_whole(Split<T, B> &v, const int32_t *from) {
    get_whole<T>(v.low, from);
    get_whole<T>(v.high, from + Split<T, B>::HALF);
}

// y = n numbers that lie `step` apart.
template <int STEP> inline void line_of(const float *x, int64_t step, float *y, int64_t n) {
    const int64_t apart = STEP ? STEP : step;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
#pragma GCC ivdep
        for (int64_t j = 0; j < 16; j++) y[i + j] = x[(i + j) * apart];
    for (; i < n; i++) y[i] = x[i * apart];
}
inline void line_of(const float *x, int64_t step, float *y, int64_t n) {
    (step == 1 ? line_of<1> : step == 2 ? line_of<2> : line_of<0>)(x, step, y, n);
}

// y (columns, rows) = x (rows, columns) turned: squares of 16 for the caches, of 4 in registers.
inline void turn(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t columns) {
    typedef float Four __attribute__((vector_size(16)));
    typedef int32_t Places __attribute__((vector_size(16)));
    constexpr int64_t SIDE = 16;
    constexpr Places EVEN = {0, 4, 1, 5}, ODD = {2, 6, 3, 7}, LOWER = {0, 1, 4, 5}, UPPER = {2, 3, 6, 7};
    for (int64_t top = 0; top < rows; top += SIDE)
        for (int64_t left = 0; left < columns; left += SIDE)
            for (int64_t r = top; r < std::min(top + SIDE, rows); r += 4)
                for (int64_t c = left; c < std::min(left + SIDE, columns); c += 4) {
                    const float *from = x + r * ldx + c;
                    float *to = y + c * ldy + r;
                    if (r + 4 > rows || c + 4 > columns) {
                        for (int64_t j = 0; j < std::min<int64_t>(4, columns - c); j++)
                            for (int64_t i = 0; i < std::min<int64_t>(4, rows - r); i++) to[j * ldy + i] = from[i * ldx + j];
                        continue;
                    }
                    Four line[4];
                    for (int i = 0; i < 4; i++) get(line[i], from + i * ldx);
                    const Four ab = __builtin_shuffle(line[0], line[1], EVEN), cd = __builtin_shuffle(line[2], line[3], EVEN);
                    const Four ef = __builtin_shuffle(line[0], line[1], ODD), gh = __builtin_shuffle(line[2], line[3], ODD);
                    put(to, __builtin_shuffle(ab, cd, LOWER));
                    put(to + ldy, __builtin_shuffle(ab, cd, UPPER));
                    put(to + 2 * ldy, __builtin_shuffle(ef, gh, LOWER));
                    put(to + 3 * ldy, __builtin_shuffle(ef, gh, UPPER));
                }
}

}  // namespace
