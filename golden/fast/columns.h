// Blocks of 16 neighbouring columns, a column a lane: how their numbers are rounded, with noise of each column's own.
#pragma once

#include <array>

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

// Mantissas with noise that is added below the point: in floats where a sum is cut off towards zero in one instruction.
class Noise {
  public:
#if defined(__AVX512DQ__)
    static constexpr bool IN_FLOATS = true;

    explicit Noise(const Format &f)
        : step_(Across::Floats{} + real(uint32_t(127 - f.noise_bits) << 23)),
          most_(Across::Floats{} + float((1 << f.magnitude) - 1)) {}

    // Of v with numbers of the format's bits.
    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, const Across::Ints &numbers) const {
        const auto noise = as<float>(as<int32_t>(convert<float>(numbers)) | (as<int32_t>(v) & INT32_MIN));
        const __m512 sum = _mm512_fmadd_round_ps(__m512(noise), __m512(step_), __m512(v * unit.up),
                                                 _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        return within(Across::Floats(_mm512_roundscale_ps(sum, _MM_FROUND_TO_ZERO)), most_);
    }

  private:
    Across::Floats step_, most_;
#else
    static constexpr bool IN_FLOATS = false;

    explicit Noise(const Format &f) : bits_(f.noise_bits), most_(Across::Ints{} + ((1 << f.magnitude) - 1)) {}

    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, const Across::Ints &numbers) const {
        const Across::Ints word = as<int32_t>(v);
        Across::Ints m = (convert<int32_t>(Across::Floats(as<float>(word & 0x7FFFFFFF) * unit.up)) + numbers) >> bits_;
        m = select(m > most_, most_, m);
        return as<float>(as<int32_t>(convert<float>(m)) | (word & INT32_MIN));
    }

  private:
    int32_t bits_;
    Across::Ints most_;
#endif
};

// Units of blocks in which float arithmetic rounds: see plain_range(). Exponents are fields where they lie in FP32.
class Units {
  public:
    explicit Units(const Format &f)
        : bottom_(std::max(64, f.lowest + 126) << 23), roof_(std::min(220, f.highest + 126) << 23),
          zero_(std::min(std::max(-126, f.lowest), f.highest)), magnitude_(f.magnitude),
          more_(f.rounding == 2 && !Noise::IN_FLOATS ? f.noise_bits : 0) {}

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
    // Vectors of columns, and their blocks of pixels, that are taken at a time.
    static constexpr int AT_ONCE = by_registers(4, 2, 2), BLOCKS = 1;
    static constexpr bool DRAWS = false;

    explicit Nearest(const Format &f) : most_(Across::Floats{} + float((1 << f.magnitude) - 1)) {}

    void outer(int64_t, int64_t) {}
    void lines(int64_t) {}
    void rest(int64_t) {}
    const int32_t *numbers(int64_t, int64_t) { return nullptr; }
    const Nearest &block() const { return *this; }

    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int64_t, int = 0) const {
        return within((v * unit.up + 12582912.0f) - 12582912.0f, most_);    // 1.5 * 2^23
    }

  private:
    Across::Floats most_;
};

// Where columns draw: column c from the states starts[c], `ahead` steps of the lanes later.
struct Drawing {
    const Lanes *lanes;
    const uint32_t (*starts)[32];
    int64_t ahead;
};

// Rounding `stochastic` of lines in blocks of `terms`, with numbers that the lines of a column draw one after the other.
class Stochastic {
    typedef std::array<Vector<uint32_t>, 3> Shifts;                 // whole vectors: a number for all lanes costs more

  public:
    typedef Vector<uint32_t> Words;
    static constexpr int AT_ONCE = 1, BLOCKS = 8;                   // as few generators as stay in the first-level cache
    static constexpr bool DRAWS = true;

    // `lines`: of so many, each of `length`, numbers are drawn side by side, else line by line; `between`: lines of others
    // from the start of one to that of a column's next.
    Stochastic(const Format &f, const Drawing &drawing, int64_t columns, int64_t lines, int64_t length, int64_t terms,
               int64_t between = 1)
        : lanes_(*drawing.lanes), terms_(terms), used_(std::min(lanes_.count, length)), slices_((columns + 15) / 16),
          bits_(f.noise_bits), noise_(f), side_(lines > 1),
          states_(lines * slices_ * lanes_.count), shifts_(lanes_.count) {
        for (int64_t lane = 0; lane < lanes_.count; lane++)
            for (int i = 0; i < 3; i++) shifts_[lane][i] = Words{} + lanes_.shifts[i][lane];
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

    // What draws for the numbers of a block, one after the other; a copy of its own, which registers hold.
    class Block {
      public:
        // Of number k.
        Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int64_t k, int = 0) const {
            return noise_.mantissa(v, unit, drawn(k));
        }

        // The same of a lane whose state the caller keeps.
        Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int64_t lane, Words &state) const {
            return noise_.mantissa(v, unit, next(lane, state));
        }

        Across::Ints drawn(int64_t k) const {
            const int64_t lane = k < count_ ? k : k % count_;
            return next(lane, states[lane]);
        }

        Words *states;                                              // of the lanes

      private:
        friend Stochastic;
        Block(Words *states, const Stochastic &of)
            : states(states), shifts_(of.shifts_.data()), count_(of.lanes_.count), down_(32 - of.bits_), noise_(of.noise_) {}

        Across::Ints next(int64_t lane, Words &state) const {
            Words word = state;
            word ^= word << shifts_[lane][0];
            word ^= word >> shifts_[lane][1];
            word ^= word << shifts_[lane][2];
            state = word;
            return as<int32_t>(word >> down_);
        }

        const Shifts *shifts_;
        int64_t count_;
        uint32_t down_;
        Noise noise_;
    };

    Block block() const { return Block(state_, *this); }

    // Whether blocks of n numbers take n lanes once.
    bool once(int64_t n) const { return n == used_ && terms_ == lanes_.count; }

    // Whether each line draws from states of its own.
    bool side() const { return side_; }

    // Of a block, the numbers behind n elements.
    void rest(int64_t n) {
        if (n >= used_ && terms_ == lanes_.count) return;
        const Block block = this->block();
        for (; n < terms_; n++)
            if (n % lanes_.count < used_) block.drawn(n);
    }

    // Those of h blocks of n elements: (h, n, 16).
    const int32_t *numbers(int64_t h, int64_t n) {
        numbers_.resize(h * n * 16);
        const Block block = this->block();
        for (int64_t r = 0; r < h; r++) {
            for (int64_t k = 0; k < n; k++) put(&numbers_[(r * n + k) * 16], block.drawn(k));
            rest(n);
        }
        return numbers_.data();
    }

  private:
    const Lanes &lanes_;
    int64_t terms_, used_, slices_;                                 // lanes from `used_` on are never asked
    int32_t bits_;
    Noise noise_;
    bool side_;
    std::vector<Words> states_;
    std::vector<Shifts> shifts_;
    std::vector<int32_t> numbers_;
    Words *state_ = nullptr;
};

// The same of lines of k numbers, a lane each, that draw one line after the other.
class LineNoise {
  public:
    LineNoise(const Format &f, const Lanes &lanes, int64_t k, int64_t terms)
        : lanes_(lanes), length_((k + terms - 1) / terms * terms), bits_(f.noise_bits), noise_(f), drawn_(16 * length_ + SLACK), turned_(16 * length_) {}

    // Draws for the next `count` lines.
    void lines(int64_t count) {
        lanes_.draw(reinterpret_cast<int32_t *>(drawn_.data()), count * length_, bits_);
        turn(drawn_.data(), length_, turned_.data(), 16, count, length_);
    }

    const LineNoise &block() const { return *this; }

    Across::Floats mantissa(const Across::Floats &v, const Unit &unit, int64_t k) const {
        Across::Ints noise;
        get(noise, reinterpret_cast<const int32_t *>(&turned_[16 * k]));
        return noise_.mantissa(v, unit, noise);
    }

  private:
    Lanes lanes_;
    int64_t length_;
    int32_t bits_;
    Noise noise_;
    std::vector<float> drawn_, turned_;                             // integers, moved as floats
};

// Exponent fields of the largest numbers of blocks that are not 0: the least and the greatest in each lane.
struct Fields {
    Across::Ints least = Across::Ints{} + 255, greatest = {};

    void add(const Across::Ints &largest, const Across::Ints &odd) {
        const Across::Ints field = (largest & ~odd) >> 23;
        least = select((field > 0) & (field < least), field, least);
        greatest = select(field > greatest, field, greatest);
    }

    void join(const Format &f, Span &span) const {
        for (int j = 0; j < 16; j++) {
            if (!greatest[j]) continue;
            span.low = std::min(span.low, least[j] - 126 - f.magnitude);
            span.high = std::max(span.high, greatest[j] - 126);
        }
    }
};

// y = q(x), (rows, columns), in blocks of `terms` rows and one column, each column with its own numbers.
template <int N>
void columns_drawn(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t c, int64_t count,
                   int64_t terms, const Format &f, Stochastic &drawn, Fields &fields, Span &span) {
    const Units units(f);
    drawn.outer(0, c);
    for (int64_t r = 0; r < rows; r += terms) {
        const int64_t n = std::min(terms, rows - r);
        const float *in = x + r * ldx + c;
        float *out = y + r * ldy + c;
        Across::Ints largest = {}, odd;
        for (int64_t i = 0; i < n; i++) largest = larger(largest, Across::load<N>(in + i * ldx, count));
        const Unit unit = units.of(largest, odd);
        fields.add(largest, odd);
        if (Across::any(odd)) {
            const int32_t *noise = drawn.numbers(1, n);
            for (int64_t j = 0; j < count; j++)
                block_any(in + j, ldx, out + j, ldy, noise + j, 16, n, 1, largest[j] >> 23, f, span);
            continue;
        }
        const auto block = drawn.block();
        for (int64_t i = 0; i < n; i++) {
            const Across::Floats v = block.mantissa(Across::load<N>(in + i * ldx, count), unit, i) * unit.step + 0.0f;
            if constexpr (N == 16) put(out + i * ldy, v);
            else
                for (int64_t j = 0; j < count; j++) out[i * ldy + j] = v[j];
        }
        drawn.rest(n);
    }
}

// The same of all columns.
inline void columns_drawn(const float *x, float *y, int64_t rows, int64_t columns, int64_t terms, const Format &f,
                          const Drawing &drawing, Span &span) {
    Stochastic drawn(f, drawing, columns, 1, rows, terms);
    const int64_t whole = columns / 16 * 16, most = up_to(64, terms);    // rows of all columns at a time: lines of memory
    Fields fields;
    for (int64_t r = 0; r < rows; r += most, x += most * columns, y += most * columns) {
        const int64_t some = std::min(most, rows - r);
        for (int64_t c = 0; c < whole; c += 16)
            columns_drawn<16>(x, columns, y, columns, some, c, 16, terms, f, drawn, fields, span);
        if (whole < columns)
            columns_drawn<0>(x, columns, y, columns, some, whole, columns - whole, terms, f, drawn, fields, span);
    }
    fields.join(f, span);
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
            const auto v = convert<INT>(nearest.mantissa(Across::load<N>(x + i * columns + c, count), unit, i));
            if constexpr (N == 16) put(m + i * columns + c, v);
            else std::memcpy(m + i * columns + c, &v, sizeof(INT) * count);
        }
        return true;
    };
    std::fill_n(invalid, columns, 0);
    int64_t c = 0;
    for (; c + 16 <= columns; c += 16)
        if (!some(Count<16>(), c, 16)) return false;
    return c == columns || some(Count<0>(), c, columns - c);
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
            put(m + j, convert<INT>(nearest.mantissa(Across::load<16>(x + j, 16), unit, j)));
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
