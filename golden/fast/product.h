// Products in the hardware's order: dot products of blocks, exact in any order, then one addition each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "convert.h"
#include "narrow.h"

namespace {

inline int64_t up_to(int64_t count, int64_t step) { return std::max<int64_t>(1, count / step) * step; }

// Vectors of 64 bytes of what holds every partial sum of a block exactly: float (24 bits) or double (53 bits).
template <class T> struct Vectors {
    typedef Vector<T> Type;
    static constexpr int64_t LANES = 64 / sizeof(T);
};

// Below what a block sum and a running sum become +0: docs/numerics.md, sections 4 and 5; 0 keeps subnormals. `cut`, where
// it is not 0: sums are those of Narrow.
struct Flush {
    double sum, total;
    int64_t cut;
};

// Where no sum lies below 2^-126.
struct Keep {};

// Calls with the rule of sums that are exact in FP32, and none below 2^-126.
template <class Call> inline void by_rule(const Flush &flush, const Call &call) {
    if (flush.cut == 8) call(Narrow<8, false>());
    else if (flush.cut == 16) call(Narrow<16, false>());
    else call(Keep());
}

// The same where sums have more bits, and may be `small`.
template <class Call> inline void by_rule(const Flush &flush, bool small, const Call &call) {
    if (!small || flush.sum == 0) by_rule(flush, call);
    else if (flush.cut == 8) call(Narrow<8, true>());
    else if (flush.cut == 16) call(Narrow<16, true>());
    else call(flush);
}

// y += p, a register of block sums, in FP32.
template <class V> inline void add(float *y, const V &p, const Keep &) {
    typedef float Floats __attribute__((vector_size(sizeof(V) / sizeof(Element<V>) * sizeof(float))));
    Floats v;
    std::memcpy(&v, y, sizeof v);
    v += __builtin_convertvector(p, Floats);
    std::memcpy(y, &v, sizeof v);
}

template <class V> inline void add(float *y, const V &given, const Flush &flush) {
    typedef float Floats __attribute__((vector_size(sizeof(V) / sizeof(Element<V>) * sizeof(float))));
    const Element<V> smallest = Element<V>(flush.sum);
    const V p = (given < smallest) & (given > -smallest) ? given - given : given;
    const float least = float(flush.total);
    Floats v;
    std::memcpy(&v, y, sizeof v);
    v += __builtin_convertvector(p, Floats);
    v = (v < least) & (v > -least) ? v - v : v;
    std::memcpy(y, &v, sizeof v);
}

template <class T, int B> inline void add(float *y, const Split<T, B> &p, const Keep &rule) {
    add(y, p.low, rule);
    add(y + Split<T, B>::HALF, p.high, rule);
}

template <class T, int B> inline void add(float *y, const Split<T, B> &p, const Flush &rule) {
    add(y, p.low, rule);
    add(y + Split<T, B>::HALF, p.high, rule);
}

// One block of `terms` along K into M x (N vectors) sums; rows of b are `ldb` apart.
template <class T, int M, int N, class Rule>
inline void micro(const T *a, const int64_t *row, int64_t stride, const T *b, int64_t ldb, int64_t terms, float *y,
                  int64_t ldy, const Rule &rule) {
    typedef typename Vectors<T>::Type V;
    constexpr int64_t LANES = Vectors<T>::LANES;
    V p[M][N] = {};
    for (int64_t k = 0; k < terms; k++) {
        V w[N];
        for (int n = 0; n < N; n++) get(w[n], b + k * ldb + n * LANES);
        for (int m = 0; m < M; m++) {
            T x = a[row[m] + k * stride];
            for (int n = 0; n < N; n++) p[m][n] += w[n] * x;
        }
    }
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) add(y + m * ldy + n * LANES, p[m][n], rule);
}

// Where the elements of an operand with M rows lie: (m, k) of block j at row[m] + block[j] + k * stride.
struct Rows {
    const int64_t *row;
    int64_t count;
    const int64_t *block, *terms;
    int64_t blocks, stride;

    int64_t depth() const {
        int64_t k = 0;
        for (int64_t j = 0; j < blocks; j++) k += terms[j];
        return k;
    }
};

// Dot products of all blocks of M rows with N vectors of columns, ascending; rows of b are `ldb` apart. `take` is given the
// block, the number of a vector (row by row) and the vector, each while the next block is multiplied: what is done with
// sums runs beside the multiplications.
template <class T, int M, int N, class Take>
inline void dot_blocks(const T *a, const int64_t *row, const Rows &at, const T *b, int64_t ldb, const Take &take) {
    typedef typename Vectors<T>::Type V;
    constexpr int64_t LANES = Vectors<T>::LANES;
    constexpr int COUNT = M * N, EACH = COUNT > 16 ? 2 : 1;
    V sums[COUNT];
    const T *lines[M];
    for (int m = 0; m < M; m++) lines[m] = a + row[m];
    const int64_t blocks = at.blocks, stride = at.stride, *const block = at.block, *const terms = at.terms;
    for (int64_t j = 0; j < blocks; j++) {
        V p[M][N] = {};
        int taken = j ? 0 : COUNT;
        for (int64_t place = block[j], end = place + terms[j] * stride; place != end; place += stride, b += ldb) {
            V w[N];
            for (int n = 0; n < N; n++) get(w[n], b + n * LANES);
            for (int m = 0; m < M; m++) {
                const T x = lines[m][place];
                for (int n = 0; n < N; n++) p[m][n] += w[n] * x;
            }
            if (taken < COUNT) {
                for (int i = 0; i < EACH; i++) take(j - 1, taken + i, sums[taken + i]);
                taken += EACH;
            }
        }
        for (; taken < COUNT; taken++) take(j - 1, taken, sums[taken]);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) sums[m * N + n] = p[m][n];
    }
    for (int i = 0; i < COUNT && blocks; i++) take(blocks - 1, i, sums[i]);
}

// Whether adding up takes so long that it should run beside the multiplications, and rows of a panel then.
template <class Rule> struct Slow : std::false_type {};
template <int CUT, bool SMALL> struct Slow<Narrow<CUT, SMALL>> : std::true_type {};
template <class Rule> constexpr int rows_by(int quick, int slow) { return Slow<Rule>::value ? slow : quick; }

// A panel of N vectors of columns; `packed` holds K rows of it. `more`: the sums go on from what y holds. Of N vectors
// as many at a time as there are registers for their sums.
template <class T, int N, int ROWS, class Rule>
void panel(const T *a, const Rows &at, const T *packed, float *y, int64_t ldy, int64_t columns, bool more,
           const Rule &rule) {
    constexpr int AT_ONCE = by_registers(N, 1, 1);
    constexpr int64_t WIDTH = Vectors<T>::LANES, LANES = N * WIDTH, STEP = AT_ONCE * WIDTH;
    float sums[ROWS * LANES];
    for (int64_t m = 0; m < at.count; m += ROWS) {
        int64_t rows = std::min<int64_t>(ROWS, at.count - m);
        std::fill(sums, sums + ROWS * LANES, 0.0f);
        for (int64_t i = 0; more && i < rows; i++)
            std::copy(y + (m + i) * ldy, y + (m + i) * ldy + columns, sums + i * LANES);
        if constexpr (Slow<Rule>::value) {
            for (int64_t n = 0; n < LANES; n += STEP) {
                if (rows == ROWS)
                    dot_blocks<T, ROWS, AT_ONCE>(a, at.row + m, at, packed + n, LANES, [&](int64_t, int i, const auto &p) {
                        add(sums + i / AT_ONCE * LANES + n + i % AT_ONCE * WIDTH, p, rule);
                    });
                else
                    for (int64_t r = 0; r < rows; r++)
                        dot_blocks<T, 1, AT_ONCE>(a, at.row + m + r, at, packed + n, LANES, [&](int64_t, int i, const auto &p) {
                            add(sums + r * LANES + n + i * WIDTH, p, rule);
                        });
            }
        } else {
            const T *b = packed;
            for (int64_t j = 0; j < at.blocks; j++) {
                const T *from = a + at.block[j];
                for (int64_t n = 0; n < LANES; n += STEP)
                    if (rows == ROWS)
                        micro<T, ROWS, AT_ONCE>(from, at.row + m, at.stride, b + n, LANES, at.terms[j], sums + n, LANES, rule);
                    else
                        for (int64_t i = 0; i < rows; i++)
                            micro<T, 1, AT_ONCE>(from, at.row + m + i, at.stride, b + n, LANES, at.terms[j],
                                                 sums + i * LANES + n, LANES, rule);
                b += at.terms[j] * LANES;
            }
        }
        for (int64_t i = 0; i < rows; i++)
            for (int64_t n = 0; n < columns; n++) {
                float v = sums[i * LANES + n];
                y[(m + i) * ldy + n] = v == v ? v : real(0x7FC00000);
            }
    }
}

// Columns of the panel that starts where `left` columns are left.
template <class T> inline int64_t panel_width(int64_t left) {
    constexpr int64_t LANES = Vectors<T>::LANES;
    return (left > 3 * LANES ? 4 : left > LANES ? 2 : 1) * LANES;
}

// Rows 0 .. k of `columns` columns of b, `lanes` wide, filled up with zeros.
template <class T>
void pack(const float *b, int64_t bk, int64_t bn, int64_t k_count, int64_t columns, int64_t lanes, T *packed) {
    if (bn == 1)
        for (int64_t k = 0; k < k_count; k++) {
            std::copy(b + k * bk, b + k * bk + columns, packed + k * lanes);
            std::fill(packed + k * lanes + columns, packed + (k + 1) * lanes, T(0));
        }
    else                                                            // 16 rows of the panel at once, for the caches
        for (int64_t k = 0; k < k_count; k += 16)
            for (int64_t i = 0; i < lanes; i++)
                for (int64_t l = k; l < std::min(k + 16, k_count); l++)
                    packed[l * lanes + i] = i < columns ? b[l * bk + i * bn] : 0.0f;
}

// All panels of b (k, n) behind each other.
template <class T>
void pack_all(const float *b, int64_t bk, int64_t bn, int64_t k, int64_t n, T *packed) {
    for (int64_t first = 0; first < n; first += panel_width<T>(n - first)) {
        const int64_t lanes = panel_width<T>(n - first);
        pack(b + first * bn, bk, bn, k, std::min(lanes, n - first), lanes, packed + k * first);
    }
}

// Bytes of a panel that stay in the caches while all rows of a are multiplied with it.
constexpr int64_t IN_CACHE = 1 << 17;

// Calls with blocks of `at`, ascending, of `terms` together, or one block.
template <class Call> inline void in_parts(const Rows &at, int64_t terms, const Call &call) {
    for (int64_t first = 0, last; first < at.blocks; first = last) {
        int64_t k = at.terms[first];
        for (last = first + 1; last < at.blocks && k + at.terms[last] <= terms; last++) k += at.terms[last];
        call(Rows{at.row, at.count, at.block + first, at.terms + first, last - first, at.stride});
    }
}

// y (rows, n) = sum over blocks of `at`, ascending, of a's dot products with the panels of b.
template <class T, class Rule>
void multiply_packed(const T *a, const Rows &at, const T *packed, int64_t n, float *y, int64_t ldy, bool more,
                     const Rule &rule) {
    const int64_t k = at.depth();
    for (int64_t first = 0; first < n; first += panel_width<T>(n - first)) {
        const int64_t lanes = panel_width<T>(n - first), columns = std::min(lanes, n - first);
        const T *b = packed + k * first;
        bool then = more;
        in_parts(at, IN_CACHE / (lanes * int64_t(sizeof(T))), [&](const Rows &part) {
            switch (lanes / Vectors<T>::LANES) {
                case 4: panel<T, 4, by_registers(rows_by<Rule>(6, 5), rows_by<Rule>(6, 4), 2)>(a, part, b, y + first, ldy, columns, then, rule); break;
                case 2: panel<T, 2, by_registers(8, rows_by<Rule>(6, 4), 2)>(a, part, b, y + first, ldy, columns, then, rule); break;
                default: panel<T, 1, by_registers(8, rows_by<Rule>(6, 4), 2)>(a, part, b, y + first, ldy, columns, then, rule);
            }
            b += part.depth() * lanes;
            then = true;
        });
    }
}

// The same for b that is packed on the way, a panel at a time, into `work` of k * 64 numbers.
template <class T, class Rule>
void multiply(const T *a, const Rows &at, const float *b, int64_t bk, int64_t bn, int64_t n, float *y, int64_t ldy,
              T *work, const Rule &rule) {
    for (int64_t first = 0; first < n; first += panel_width<T>(n - first)) {
        const int64_t lanes = panel_width<T>(n - first), columns = std::min(lanes, n - first);
        int64_t done = 0;
        in_parts(at, IN_CACHE / (lanes * int64_t(sizeof(T))), [&](const Rows &part) {
            const float *from = b + done * bk + first * bn;
            const int64_t k = part.depth();
            const T *packed = work;
            if constexpr (sizeof(T) == sizeof(float))
                if (bn == 1 && bk == lanes && columns == lanes) packed = from;
            if (packed == work) pack(from, bk, bn, k, columns, lanes, work);
            multiply_packed(a, part, packed, columns, y + first, ldy, done > 0, rule);
            done += k;
        });
    }
}

// Whether no sum of a block can lie below 2^-126 or above 2^127.
inline bool in_range(int64_t terms, const Span &sa, const Span &sb) {
    int32_t reach = sa.high + sb.high;
    for (int64_t t = terms; t; t >>= 1) reach++;
    return std::min(sa.low + sb.low, std::min(sa.low, sb.low)) >= -126
        && std::max(reach, std::max(sa.high, sb.high)) <= 127;
}

// Whether FP32 holds every partial sum of a block, in any order, and none can lie below 2^-126.
inline bool exact(const Format &fa, const Format &fb, int64_t terms, const Span &sa, const Span &sb) {
    const uint64_t largest = uint64_t(terms) * ((1 << fa.magnitude) - 1) * ((1 << fb.magnitude) - 1);
    return !(largest >> 24) && in_range(terms, sa, sb);
}

// Whether any sum of blocks may lie below 2^-126: all are multiples of the product of the last bits in use.
inline bool small(const Span &sa, const Span &sb) { return sa.low + sb.low < -126; }

}  // namespace
