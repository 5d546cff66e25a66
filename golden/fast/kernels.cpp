// Quick paths of the golden model; every result equals the NumPy definitions bit for bit (tests/golden/fast/test_kernels.py).
// Built by golden/fast/kernels.py. No fast-math: the order of the additions written here is the law.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

struct Format {
    int32_t magnitude;            // bits m without sign
    int32_t lowest, highest;      // shared exponent
    int32_t rounding;             // 0 rne, 1 truncate, 2 stochastic
    int32_t noise_bits;
    int32_t gradual;              // keep subnormal elements
};

// What a conversion leaves to know: powers of two of the last bits in use, largest exponent, whether a block is invalid.
struct Span {
    int32_t low, high, invalid;
};

inline uint32_t word(float x) { uint32_t w; std::memcpy(&w, &x, 4); return w; }
inline float real(uint32_t w) { float x; std::memcpy(&x, &w, 4); return x; }
inline int32_t field_of(uint32_t w) { return int32_t(w >> 23 & 0xFF); }

// One element, any case: docs/numerics.md, section 2, steps 2, 4 and 5. Sets `used` if the mantissa is not 0.
float element(uint32_t w, int32_t exponent, const Format &f, int32_t noise, bool &used) {
    int32_t field = field_of(w);
    uint64_t significand = w & 0x7FFFFF;
    if (field) significand |= 1 << 23;
    else if (!f.gradual) return 0;
    int32_t shift = exponent + 126 - std::max(field, 1) + 24 - f.magnitude;
    shift = std::min(std::max(shift, 0), 63);
    uint64_t m = significand >> shift;
    if (f.rounding == 0 && shift) {
        uint64_t rest = significand - (m << shift), half = uint64_t(1) << (shift - 1);
        m += rest > half || (rest == half && (m & 1));
    } else if (f.rounding == 2) {
        uint64_t kept = shift > f.noise_bits ? significand >> (shift - f.noise_bits)
                                             : significand << (f.noise_bits - shift);
        m = (kept + uint64_t(noise)) >> f.noise_bits;
    }
    m = std::min(m, (uint64_t(1) << f.magnitude) - 1);
    used |= m != 0;
    float y = std::ldexp(float(m), exponent - f.magnitude);
    return m && w >> 31 ? -y : y;
}

// A block of rows x columns, any case.
void block_any(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
               int64_t rows, int64_t columns, int32_t top, const Format &f, Span &span) {
    int32_t exponent = std::min(std::max(top - 126, f.lowest), f.highest);
    bool used = false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * ldy + j] = top == 255 ? real(0x7FC00000)
                : element(word(x[i * ldx + j]), exponent, f, noise ? noise[i * ldn + j] : 0, used);
    span.invalid |= top == 255;
    if (used) {
        span.low = std::min(span.low, exponent - f.magnitude);
        span.high = std::max(span.high, exponent);
    }
}

// Blocks whose largest exponent field lies here, unclamped, may be rounded by float arithmetic: adding 1.5 * 2^23 steps
// and taking it away again rounds to whole steps, ties to even, and no number on the way leaves the normal range.
inline bool plain_range(int32_t top, const Format &f) {
    return top >= 64 && top <= 220 && top - 126 >= f.lowest && top - 126 <= f.highest
        && (f.rounding != 2 || f.noise_bits <= 24 - f.magnitude);
}

template <int ROUNDING>
inline float plain(float x, float step, float magic, float limit, int32_t top, const Format &f, int32_t noise) {
    if (ROUNDING == 0) {
        float v = (x + magic) - magic;
        v = v < -limit ? -limit : v;
        return v > limit ? limit : v;
    }
    uint32_t w = word(x);
    int32_t shift = top - field_of(w) + 24 - f.magnitude - (ROUNDING == 2 ? f.noise_bits : 0);
    uint32_t m = ((w & 0x7FFFFF) | 1 << 23) >> (shift > 31 ? 31 : shift);
    if (ROUNDING == 2) m = (m + uint32_t(noise)) >> f.noise_bits;
    uint32_t most = (1u << f.magnitude) - 1;
    float v = float(int32_t(m > most ? most : m)) * step;
    return real(word(v) | (w & 0x80000000)) + 0.0f;                 // -0 becomes 0
}

inline float step_of(int32_t top, const Format &f) { return real(uint32_t(top + 1 - f.magnitude) << 23); }

template <int ROUNDING>
void tiles(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
           int64_t rows, int64_t columns, int64_t high, int64_t wide, const Format &f, Span &span) {
    const float limit_steps = float((1 << f.magnitude) - 1);
    int32_t lowest = 1 << 20, highest = -1;
    for (int64_t r = 0; r < rows; r += high) {
        int64_t h = std::min(high, rows - r);
        for (int64_t c = 0; c < columns; c += wide) {
            int64_t n = std::min(wide, columns - c);
            const float *in = x + r * ldx + c;
            float *out = y + r * ldy + c;
            uint32_t largest = 0;
            for (int64_t i = 0; i < h; i++)
                for (int64_t j = 0; j < n; j++)
                    largest = std::max(largest, word(in[i * ldx + j]) & 0x7FFFFFFF);
            int32_t top = int32_t(largest >> 23);
            if (top == 0 && !f.gradual) {
                for (int64_t i = 0; i < h; i++) std::fill(out + i * ldy, out + i * ldy + n, 0.0f);
                continue;
            }
            const int32_t *u = ROUNDING == 2 ? noise + r * ldn + c : nullptr;
            if (!plain_range(top, f)) {
                block_any(in, ldx, out, ldy, u, ldn, h, n, top, f, span);
                continue;
            }
            lowest = std::min(lowest, top);
            highest = std::max(highest, top);
            const float step = step_of(top, f), magic = step * 12582912.0f, limit = step * limit_steps;
            for (int64_t i = 0; i < h; i++)
                for (int64_t j = 0; j < n; j++)
                    out[i * ldy + j] = plain<ROUNDING>(in[i * ldx + j], step, magic, limit, top, f,
                                                       ROUNDING == 2 ? u[i * ldn + j] : 0);
        }
    }
    if (highest >= 0) {
        span.low = std::min(span.low, lowest - 126 - f.magnitude);
        span.high = std::max(span.high, highest - 126);
    }
}

// Blocks of several rows: a band of `high` rows, many columns at once; each block `tile` columns wide.
template <int ROUNDING>
void bands(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
           int64_t rows, int64_t columns, int64_t high, int64_t tile, const Format &f, Span &span) {
    constexpr int64_t most = 1024;                                  // BLOCK_LIMIT of golden/spec/format.py
    const int64_t wide = tile * std::max<int64_t>(1, 512 / tile);
    const float limit_steps = float((1 << f.magnitude) - 1);
    const int32_t bottom = std::max(64, f.lowest + 126), roof = std::min(220, f.highest + 126);
    const bool noise_fits = ROUNDING != 2 || f.noise_bits <= 24 - f.magnitude;
    int32_t lowest = 1 << 20, highest = -1;
    for (int64_t r = 0; r < rows; r += high) {
        int64_t h = std::min(high, rows - r);
        for (int64_t c = 0; c < columns; c += wide) {
            const int64_t n = std::min(wide, columns - c);
            const float *in = x + r * ldx + c;
            float *out = y + r * ldy + c;
            const int32_t *u = ROUNDING == 2 ? noise + r * ldn + c : nullptr;
            uint32_t largest[most] = {};
            int32_t top[most], odd = 0, low = 1 << 20, up = -1;
            float step[most], magic[most], limit[most];
            for (int64_t i = 0; i < h; i++)
                for (int64_t j = 0; j < n; j++)
                    largest[j] = std::max(largest[j], word(in[i * ldx + j]) & 0x7FFFFFFF);
            for (int64_t t = 0; tile > 1 && t < n; t += tile) {
                int64_t end = std::min(t + tile, n);
                uint32_t one = 0;
                for (int64_t j = t; j < end; j++) one = std::max(one, largest[j]);
                for (int64_t j = t; j < end; j++) largest[j] = one;
            }
            for (int64_t j = 0; j < n; j++) {
                int32_t t = int32_t(largest[j] >> 23), zero = (t == 0) & !f.gradual;
                odd |= !zero & ((t < bottom) | (t > roof));
                low = std::min(low, zero ? 1 << 20 : t);
                up = std::max(up, zero ? -1 : t);
                top[j] = zero ? 1 << 20 : t;                        // shifts everything out
                float s = step_of(zero ? 64 : t, f);
                magic[j] = s * 12582912.0f;
                limit[j] = zero ? 0.0f : s * limit_steps;
                step[j] = zero ? 0.0f : s;
            }
            if (odd || !noise_fits) {
                for (int64_t j = 0; j < n; j += tile)
                    block_any(in + j, ldx, out + j, ldy, u ? u + j : nullptr, ldn, h, std::min(tile, n - j),
                              int32_t(largest[j] >> 23), f, span);
                continue;
            }
            lowest = std::min(lowest, low);
            highest = std::max(highest, up);
            for (int64_t i = 0; i < h; i++)
                for (int64_t j = 0; j < n; j++)
                    out[i * ldy + j] = plain<ROUNDING>(in[i * ldx + j], step[j], magic[j], limit[j], top[j], f,
                                                       ROUNDING == 2 ? u[i * ldn + j] : 0) + 0.0f;
        }
    }
    if (highest >= 0) {
        span.low = std::min(span.low, lowest - 126 - f.magnitude);
        span.high = std::max(span.high, highest - 126);
    }
}

// --- Products ---------------------------------------------------------------------------------------------------

typedef float Lanes __attribute__((vector_size(64)));
constexpr int64_t LANES = 16;

inline Lanes load(const float *p) { Lanes v; std::memcpy(&v, p, sizeof v); return v; }
inline void store(float *p, Lanes v) { std::memcpy(p, &v, sizeof v); }

// One block of `terms` along K into M x (16 N) sums: dot products from 0, then one addition each.
template <int M, int N>
inline void micro(const float *a, const int64_t *row, int64_t stride, const float *b, int64_t terms, float *y,
                  int64_t ldy) {
    Lanes p[M][N] = {};
    for (int64_t k = 0; k < terms; k++) {
        Lanes w[N];
        for (int n = 0; n < N; n++) w[n] = load(b + k * N * LANES + n * LANES);
        for (int m = 0; m < M; m++) {
            float x = a[row[m] + k * stride];
            for (int n = 0; n < N; n++) p[m][n] += x * w[n];
        }
    }
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) store(y + m * ldy + n * LANES, load(y + m * ldy + n * LANES) + p[m][n]);
}

// A panel of 16 N columns; `packed` holds K rows of it, `y` a strip of sums (rows, 16 N) to and from which results go.
template <int N, int ROWS>
void panel(const float *a, const int64_t *row, int64_t m_count, const int64_t *block, const int64_t *terms, int64_t blocks,
           int64_t stride, const float *packed, float *y, int64_t ldy, int64_t columns) {
    float sums[ROWS * N * LANES];
    for (int64_t m = 0; m < m_count; m += ROWS) {
        int64_t rows = std::min<int64_t>(ROWS, m_count - m);
        std::fill(sums, sums + ROWS * N * LANES, 0.0f);
        const float *b = packed;
        for (int64_t j = 0; j < blocks; j++) {
            const float *from = a + block[j];
            if (rows == ROWS) micro<ROWS, N>(from, row + m, stride, b, terms[j], sums, N * LANES);
            else
                for (int64_t i = 0; i < rows; i++)
                    micro<1, N>(from, row + m + i, stride, b, terms[j], sums + i * N * LANES, N * LANES);
            b += terms[j] * N * LANES;
        }
        for (int64_t i = 0; i < rows; i++)
            for (int64_t n = 0; n < columns; n++) {
                float v = sums[i * N * LANES + n];
                y[(m + i) * ldy + n] = v == v ? v : real(0x7FC00000);
            }
    }
}

}  // namespace

extern "C" {

// Values after conversion, as FP32: rows x columns of x in blocks high x wide. `noise` may be null unless stochastic.
void hbfp_encode(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
                   int64_t rows, int64_t columns, int64_t high, int64_t wide, const Format *f, Span *span) {
#define HBFP_CALL(R) \
    if (high > 1) bands<R>(x, ldx, y, ldy, noise, ldn, rows, columns, high, wide, *f, *span); \
    else tiles<R>(x, ldx, y, ldy, noise, ldn, rows, columns, high, wide, *f, *span)
    if (f->rounding == 0) { HBFP_CALL(0); }
    else if (f->rounding == 1) { HBFP_CALL(1); }
    else { HBFP_CALL(2); }
#undef HBFP_CALL
}

// y (m_count, n_count) = sum over blocks j, ascending, of the dot products of `terms[j]` elements:
// a[row[m] + block[j] + k * stride] * b[(first[j] + k) * bk + n * bn]. Each block sum must be exact in FP32.
void hbfp_product(const float *a, const int64_t *row, int64_t m_count, const int64_t *block, const int64_t *terms,
                  int64_t blocks, int64_t stride, const float *b, int64_t bk, int64_t bn, int64_t n_count,
                  float *y, int64_t ldy, float *work) {
    int64_t k_count = 0;
    for (int64_t j = 0; j < blocks; j++) k_count += terms[j];
    for (int64_t n = 0; n < n_count;) {
        int64_t left = n_count - n, wide = left > 32 ? 4 : left > 16 ? 2 : 1, lanes = wide * LANES;
        int64_t columns = std::min(left, lanes);
        const float *from = b + n * bn, *packed = work;
        if (bn == 1 && bk == lanes && columns == lanes) packed = from;
        else if (bn == 1)
            for (int64_t k = 0; k < k_count; k++) {
                std::copy(from + k * bk, from + k * bk + columns, work + k * lanes);
                std::fill(work + k * lanes + columns, work + (k + 1) * lanes, 0.0f);
            }
        else                                                        // 16 rows of the panel at once, for the caches
            for (int64_t k = 0; k < k_count; k += 16)
                for (int64_t i = 0; i < lanes; i++)
                    for (int64_t l = k; l < std::min(k + 16, k_count); l++)
                        work[l * lanes + i] = i < columns ? from[l * bk + i * bn] : 0.0f;
        if (wide == 4) panel<4, 6>(a, row, m_count, block, terms, blocks, stride, packed, y + n, ldy, columns);
        else if (wide == 2) panel<2, 8>(a, row, m_count, block, terms, blocks, stride, packed, y + n, ldy, columns);
        else panel<1, 16>(a, row, m_count, block, terms, blocks, stride, packed, y + n, ldy, columns);
        n += columns;
    }
}

// One product for each of `count` models, conversions included: y = q(a) q(b), a (m, k) and b (k, n) with strides of
// which one is 1. Model i has formats fa[i], fb[i], blocks high[i] x terms[i]; `done[i]` 0 asks for it and becomes 1, or
// 2 where FP32 would not hold every partial sum of a block (see kernels.exact) and y is left alone.
void hbfp_stack(int64_t count, const float *a, int64_t a_step, int64_t am, int64_t ak, const float *b, int64_t b_step,
                int64_t bk, int64_t bn, int64_t m, int64_t k, int64_t n, float *y, const Format *fa, const Format *fb,
                const int64_t *high, const int64_t *terms, int32_t *done, float *work, int64_t *index) {
    float *qa = work, *qb = qa + m * k, *panels = qb + k * n;
    int64_t *row = index, *block = row + m, *lengths = block + k;
    for (int64_t i = 0; i < count; i++) {
        if (done[i]) continue;
        Span sa{1 << 20, -(1 << 20), 0}, sb = sa;
        int64_t side = terms[i], h = high[i], length = 0;
        if (ak == 1) hbfp_encode(a + i * a_step, am, qa, k, nullptr, 0, m, k, h, side, fa + i, &sa);
        else hbfp_encode(a + i * a_step, ak, qa, m, nullptr, 0, k, m, side, h, fa + i, &sa);
        if (bn == 1) hbfp_encode(b + i * b_step, bk, qb, n, nullptr, 0, k, n, side, h, fb + i, &sb);
        else hbfp_encode(b + i * b_step, bn, qb, k, nullptr, 0, n, k, h, side, fb + i, &sb);
        uint64_t largest = uint64_t(side) * ((1 << fa[i].magnitude) - 1) * ((1 << fb[i].magnitude) - 1);
        int32_t reach = sa.high + sb.high;
        for (int64_t t = side; t; t >>= 1) reach++;
        if (largest >> 24 || std::min(sa.low + sb.low, std::min(sa.low, sb.low)) < -126
            || std::max(reach, std::max(sa.high, sb.high)) > 127) {
            done[i] = 2;
            continue;
        }
        for (int64_t r = 0; r < m; r++) row[r] = r * (ak == 1 ? k : 1);
        for (int64_t t = 0; t < k; t += side, length++) {
            block[length] = t * (ak == 1 ? 1 : m);
            lengths[length] = std::min(side, k - t);
        }
        hbfp_product(qa, row, m, block, lengths, length, ak == 1 ? 1 : m, qb, bn == 1 ? n : 1, bn == 1 ? 1 : k, n,
                     y + i * m * n, n, panels);
        done[i] = 1;
    }
}

// Sums over the rows of `count` matrices (rows, columns), ascending from the first row.
void hbfp_row_sums(const float *x, int64_t count, int64_t rows, int64_t columns, float *y) {
    for (int64_t i = 0; i < count; i++, x += rows * columns, y += columns) {
        std::fill(y, y + columns, 0.0f);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) y[c] += x[r * columns + c];
    }
}

}  // extern "C"
