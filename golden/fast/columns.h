// Blocks of 16 neighbouring columns, a column a lane: how their numbers are rounded, with noise of each column's own.
#pragma once

#include "across.h"

namespace {

// How 16 blocks are rounded to mantissas: numbers times `up` are mantissas, with what noise is added to below the point.
struct Unit {
    Across::Floats up, step;
    Across::Ints power;                                             // of two, of the last bit
};

inline Across::Ints larger(const Across::Ints &largest, const Across::Floats &v) {
    const Across::Ints size = as<int32_t>(v) & 0x7FFFFFFF;
#if defined(__AVX512F__)
    return Across::Ints(_mm512_max_epi32(__m512i(largest), __m512i(size)));
#endif
    return select(size > largest, size, largest);
}

// Units of blocks in which float arithmetic rounds: see plain_range(). Exponents are fields where they lie in FP32.
class Units {
  public:
    explicit Units(const Format &f)
        : bottom_(std::max(64, f.lowest + 126) << 23), roof_(std::min(220, f.highest + 126) << 23),
          zero_(std::min(std::max(-126, f.lowest), f.highest)), magnitude_(f.magnitude),
          more_(f.rounding == 2 ? f.noise_bits : 0) {}

    // To fields from `bottom` to `roof`.
    void narrow(int32_t bottom, int32_t roof) {
        bottom_ = std::max(bottom_, std::min(bottom, 255) << 23);
        roof_ = std::min(roof_, std::min(std::max(roof, 0), 255) << 23);
    }

    // From the largest magnitudes, as bits. Sets `odd` in lanes that hold other blocks.
    __attribute__((always_inline)) Unit of(const Across::Ints &largest, Across::Ints &odd) const {
        const Across::Ints top = largest & 0x7F800000, zero = top == 0;
        odd = ~zero & ((top < bottom_) | (top > roof_));
        const Across::Ints at = select(zero | odd, zero * 0 + (126 << 23), top);
        return Unit{as<float>(-at + ((253 + magnitude_ + more_) << 23)), as<float>(at + (1 - magnitude_) * (1 << 23)),
                    select(zero, zero * 0 + zero_, (top >> 23) - 126) - magnitude_};
    }

  private:
    int32_t bottom_, roof_, zero_, magnitude_, more_;
};

// Rounding `rne`.
class Nearest {
  public:
    explicit Nearest(const Format &f) : most_(Across::Floats{} + float((1 << f.magnitude) - 1)) {}

    void outer(int64_t, int64_t) {}
    void next() {}
    void lines(int64_t) {}
    void rest(int64_t, int) {}
    const int32_t *numbers(int64_t, int64_t) { return nullptr; }

    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int = 0) const {
        Across::Floats m = (v * unit.up + 12582912.0f) - 12582912.0f;    // 1.5 * 2^23
        m = select(m < -most_, -most_, m);
        return select(m > most_, most_, m);
    }

  private:
    Across::Floats most_;
};

// The mantissas of v with noise of so many bits, at most `most`.
inline Across::Floats with_noise(const Across::Floats &v, const Unit &unit, const Across::Ints &noise, int32_t bits,
                                 const Across::Ints &most) {
    const Across::Ints word = as<int32_t>(v);
    Across::Ints m = (convert<int32_t>(Across::Floats(as<float>(word & 0x7FFFFFFF) * unit.up)) + noise) >> bits;
    m = select(m > most, most, m);
    return as<float>(as<int32_t>(convert<float>(m)) | (word & INT32_MIN));
}

// Where columns draw: column c from the states starts[c], `ahead` steps of the lanes later.
struct Drawing {
    const Lanes *lanes;
    const uint32_t (*starts)[32];
    int64_t ahead;
};

// Rounding `stochastic` of lines in blocks of `terms`, with numbers that the lines of a column draw one after the other.
class Stochastic {
  public:
    // `lines`: of so many, each of `length`, numbers are drawn side by side, else line by line; `between`: lines of others
    // from the start of one to that of a column's next.
    Stochastic(const Format &f, const Drawing &drawing, int64_t columns, int64_t lines, int64_t length, int64_t terms,
               int64_t between = 1)
        : lanes_(*drawing.lanes), terms_(terms), used_(std::min(lanes_.count, length)), slices_((columns + 15) / 16),
          bits_(f.noise_bits), most_(Across::Ints{} + ((1 << f.magnitude) - 1)), side_(lines > 1),
          states_(lines * slices_ * lanes_.count) {
        const int64_t apart = (length + terms - 1) / terms * terms / lanes_.count * between;
        const Leaps &leaps = Leaps::of(lanes_);
        for (int64_t c = 0; c < columns; c++) {
            uint32_t state[32];
            std::memcpy(state, drawing.starts[c], sizeof state);
            leaps.forward(state, drawing.ahead);
            for (int64_t line = 0; line < lines; line++) {
                uint32_t *to = reinterpret_cast<uint32_t *>(&states_[(line * slices_ + c / 16) * lanes_.count]) + c % 16;
                for (int64_t lane = 0; lane < lanes_.count; lane++) to[lane * 16] = state[lane];
                leaps.forward(state, apart);
            }
        }
    }

    // The line and the columns that draw next.
    void outer(int64_t line, int64_t c) { state_ = &states_[((side_ ? line : 0) * slices_ + c / 16) * lanes_.count]; }

    // Of a number in the s-th 16 columns from there.
    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int s = 0) {
        return with_noise(v, unit, drawn(s), bits_, most_);
    }

    // Goes on to the next number.
    void next() { lane_ = lane_ + 1 == lanes_.count ? 0 : lane_ + 1; }

    // Of a block, the numbers behind n elements, of `slices` times 16 columns.
    void rest(int64_t n, int slices = 1) {
        if (n < used_ || terms_ > lanes_.count)
            for (; n < terms_; n++, next())
                for (int s = 0; s < slices && lane_ < used_; s++) drawn(s);
        lane_ = 0;
    }

    // Those of h blocks of n elements: (h, n, 16).
    const int32_t *numbers(int64_t h, int64_t n) {
        numbers_.resize(h * n * 16);
        for (int64_t r = 0; r < h; r++) {
            for (int64_t k = 0; k < n; k++, next()) put(&numbers_[(r * n + k) * 16], drawn(0));
            rest(n);
        }
        return numbers_.data();
    }

  private:
    typedef Vector<uint32_t> Words;
    const Lanes &lanes_;
    int64_t terms_, used_, slices_, lane_ = 0;                      // lanes from `used_` on are never asked
    int32_t bits_;
    Across::Ints most_;
    bool side_;
    std::vector<Words> states_;
    std::vector<int32_t> numbers_;
    Words *state_ = nullptr;

    Across::Ints drawn(int slice) {
        Words &s = state_[slice * lanes_.count + lane_];
        s ^= s << lanes_.shifts[0][lane_];
        s ^= s >> lanes_.shifts[1][lane_];
        s ^= s << lanes_.shifts[2][lane_];
        return as<int32_t>(s >> uint32_t(32 - bits_));
    }
};

// The same of lines of k numbers, a lane each, that draw one line after the other.
class LineNoise {
  public:
    LineNoise(const Format &f, const Lanes &lanes, int64_t k, int64_t terms)
        : lanes_(lanes), length_((k + terms - 1) / terms * terms), bits_(f.noise_bits),
          most_(Across::Ints{} + ((1 << f.magnitude) - 1)), drawn_(16 * length_ + SLACK), turned_(16 * length_) {}

    // Draws for the next `count` lines.
    void lines(int64_t count) {
        lanes_.draw(reinterpret_cast<int32_t *>(drawn_.data()), count * length_, bits_);
        turn(drawn_.data(), length_, turned_.data(), 16, count, length_);
    }

    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int64_t k) const {
        Across::Ints noise;
        get(noise, reinterpret_cast<const int32_t *>(&turned_[16 * k]));
        return with_noise(v, unit, noise, bits_, most_);
    }

  private:
    Lanes lanes_;
    int64_t length_;
    int32_t bits_;
    Across::Ints most_;
    std::vector<float> drawn_, turned_;                             // integers, moved as floats
};

// y = q(x), (rows, columns), in blocks of `terms` rows and one column, each column with its own numbers.
template <int N>
void columns_drawn(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t c, int64_t count,
                   int64_t terms, const Format &f, Stochastic &drawn, Span &span) {
    const Units units(f);
    drawn.outer(0, c);
    for (int64_t r = 0; r < rows; r += terms) {
        const int64_t n = std::min(terms, rows - r);
        const float *in = x + r * ldx + c;
        float *out = y + r * ldy + c;
        Across::Ints largest = {}, odd;
        for (int64_t i = 0; i < n; i++) largest = larger(largest, Across::load<N>(in + i * ldx, count));
        const Unit unit = units.of(largest, odd);
        for (int64_t j = 0; j < count; j++) {
            const int32_t top = largest[j] >> 23;
            if (odd[j] || !top) continue;
            span.low = std::min(span.low, top - 126 - f.magnitude);
            span.high = std::max(span.high, top - 126);
        }
        if (Across::any(odd)) {
            const int32_t *noise = drawn.numbers(1, n);
            for (int64_t j = 0; j < count; j++)
                block_any(in + j, ldx, out + j, ldy, noise + j, 16, n, 1, largest[j] >> 23, f, span);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            const Across::Floats v = drawn.mantissa(Across::load<N>(in + i * ldx, count), unit) * unit.step + 0.0f;
            if constexpr (N == 16) put(out + i * ldy, v);
            else
                for (int64_t j = 0; j < count; j++) out[i * ldy + j] = v[j];
            drawn.next();
        }
        drawn.rest(n);
    }
}

// The same of all columns.
inline void columns_drawn(const float *x, float *y, int64_t rows, int64_t columns, int64_t terms, const Format &f,
                          const Drawing &drawing, Span &span) {
    Stochastic drawn(f, drawing, columns, 1, rows, terms);
    const int64_t whole = columns / 16 * 16;
    for (int64_t c = 0; c < whole; c += 16)
        columns_drawn<16>(x, columns, y, columns, rows, c, 16, terms, f, drawn, span);
    if (whole < columns)
        columns_drawn<0>(x, columns, y, columns, rows, whole, columns - whole, terms, f, drawn, span);
}

// Mantissas (as INT), exponents and flags of a band of h rows in blocks of one column, rounded to nearest in registers, as
// mantissas() gives them; false where a block is not one of those, and they then hold anything.
template <class INT>
bool column_mantissas(const float *x, INT *m, int32_t *exponent, uint8_t *invalid, int64_t h, int64_t columns,
                      const Format &f) {
    const Units units(f);
    const Nearest nearest(f);
    const auto some = [&](auto whole, int64_t c, int64_t count) {
        constexpr int N = decltype(whole)::value;
        Across::Ints largest = {}, odd;
        for (int64_t i = 0; i < h; i++) largest = larger(largest, Across::load<N>(x + i * columns + c, count));
        const Unit unit = units.of(largest, odd);
        if (Across::any(odd)) return false;
        const Across::Ints own = unit.power + f.magnitude;
        std::memcpy(exponent + c, &own, 4 * count);
        for (int64_t i = 0; i < h; i++) {
            const auto v = convert<INT>(nearest.mantissa(Across::load<N>(x + i * columns + c, count), unit));
            if constexpr (N == 16) put(m + i * columns + c, v);
            else std::memcpy(m + i * columns + c, &v, sizeof(INT) * count);
        }
        return true;
    };
    std::fill_n(invalid, columns, 0);
    int64_t c = 0;
    for (; c + 16 <= columns; c += 16)
        if (!some(std::integral_constant<int, 16>(), c, 16)) return false;
    return c == columns || some(std::integral_constant<int, 0>(), c, columns - c);
}

// The same of a line in blocks of `wide` neighbours, a multiple of 16.
template <class INT>
bool line_mantissas(const float *x, INT *m, int32_t *exponent, uint8_t *invalid, int64_t columns, int64_t wide,
                    const Format &f) {
    const Units units(f);
    const Nearest nearest(f);
    for (int64_t c = 0, b = 0; c < columns; c += wide, b++) {
        const int32_t largest = int32_t(wide == 16 ? largest_of<16>(x + c, 16) : largest_of<0>(x + c, wide));
        Across::Ints odd;
        const Unit unit = units.of(Across::Ints{} + largest, odd);
        if (odd[0]) return false;
        exponent[b] = unit.power[0] + f.magnitude;
        invalid[b] = 0;
        for (int64_t j = c; j < c + wide; j += 16)
            put(m + j, convert<INT>(nearest.mantissa(Across::load<16>(x + j, 16), unit)));
    }
    return true;
}

// Either, where it serves blocks of `high` by `wide`; h rows without gaps.
template <class INT>
bool rounded_mantissas(const float *x, INT *m, int32_t *exponent, uint8_t *invalid, int64_t h, int64_t columns,
                       int64_t high, int64_t wide, const Format &f) {
    if (f.rounding || f.gradual) return false;
    if (wide == 1 && high > 1) return column_mantissas(x, m, exponent, invalid, h, columns, f);
    return high == 1 && h == 1 && wide % 16 == 0 && columns % wide == 0
        && line_mantissas(x, m, exponent, invalid, columns, wide, f);
}

}  // namespace
