// Convolutions in groups of few channels, where a block straddles taps.
#pragma once

#include "columns.h"
#include "convolve.h"
#include "totals.h"

namespace {

// Calls with o and the sum over i < n of value(i) * w(i, o), for O outputs from `first` on.
template <int O, class Value, class W, class Add>
inline void dots(const Value &value, int64_t n, int64_t first, const W &w, const Add &add) {
    Across::Floats p[O] = {};
    for (int64_t i = 0; i < n; i++) {
        const Across::Floats v = value(i);
        for (int o = 0; o < O; o++) p[o] += v * w(i, first + o);
    }
    for (int o = 0; o < O; o++) add(first + o, p[o]);
}

// The same of all o < count; every value is asked for once, in their order, and kept where registers do not hold all sums.
template <class Value, class W, class Add>
inline void all_dots(const Value &value, int64_t n, int64_t count, const W &w, const Add &add,
                     std::vector<Across::Floats> &kept) {
    constexpr int MOST = by_registers(16, 4, 2), SOME = by_registers(8, 4, 2), FEW = SOME / 2;
    if (count == MOST) return dots<MOST>(value, n, 0, w, add);
    if (count == SOME) return dots<SOME>(value, n, 0, w, add);
    kept.resize(n);
    for (int64_t i = 0; i < n; i++) kept[i] = value(i);
    const auto again = [&](int64_t i) { return kept[i]; };
    int64_t o = 0;
    for (; o + SOME <= count; o += SOME) dots<SOME>(again, n, o, w, add);
    for (; o + FEW <= count; o += FEW) dots<FEW>(again, n, o, w, add);
    for (; o < count; o++) dots<1>(again, n, o, w, add);
}

// Rows of output pixels, 16 neighbours at a time, in one group: x is planes (one for each channel), in which element k of
// the patch of pixel j of row r lies at row[r] + offset[k] + j; 16 more may be read behind the last. w (k, n) has the
// group's columns from `first` on. Of tiles, a block is as many pixels high, whichever rows they are of.
template <class Totals, class Rounding> class Planes {
  public:
    Planes(const Units &units, const Rounding &rounding, const int64_t *offset, int64_t k, int64_t terms, const Values &w,
           int64_t first, int64_t n, const Totals &totals)
        : units_(units), rounding_(rounding), offset_(offset), k_(k), terms_(terms), w_(w.data + first), ldw_(w.ld), first_(first),
          n_(n), unit_((k + terms - 1) / terms), out_(16 * n), totals_(totals) {
        totals_.resize(n);
    }

    // y (width, n) of one row, ld between pixels; false where a block or a sum is not one of these.
    bool row(const float *x, int64_t width, float *y, int64_t ld) {
        for (int64_t j = 0; j < width; j += 16)
            if (!pixels(x + j, offset_, nullptr, 0, std::min<int64_t>(16, width - j), y + j * ld, ld)) return false;
        return true;
    }

    // The same of pixels first .. first + count of rows of `width`, in tiles `high` pixels high from the first on. Where 16
    // neighbours are not of one row, patches are gathered.
    bool tiles(const float *x, const int64_t *row, int64_t width, int64_t first, int64_t count, int64_t high, float *y,
               int64_t ld) {
        const int64_t room = (count + 15) / 16 * 16, blocks = (k_ + terms_ - 1) / terms_;
        const bool apart = width % 16 || first % 16;
        tops_.assign(blocks * room, 0);
        if (apart) gather(x, row, width, first, count, room);
        const int64_t *offset = apart ? own_.data() : offset_;
        const auto from = [&](int64_t j) {
            return apart ? &strip_[j] : x + row[(first + j) / width] + (first + j) % width;
        };
        for (int64_t j = 0; j < count; j += 16) {
            const float *at = from(j);
            for (int64_t b = 0; b < blocks; b++) {
                Across::Ints largest = {};
                for (int64_t k = b * terms_; k < std::min((b + 1) * terms_, k_); k++)
                    largest = larger(largest, Across::load<16>(at + offset[k], 16));
                put(&tops_[b * room + j], largest);
            }
        }
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t j = 0; j < count; j += high) {
                int32_t *top = &tops_[b * room + j], largest = 0;
                const int64_t n = std::min(high, count - j);
                for (int64_t i = 0; i < n; i++) largest = std::max(largest, top[i]);
                std::fill_n(top, n, largest);
            }
        for (int64_t j = 0; j < count; j += 16)
            if (!pixels(from(j), offset, &tops_[j], room, std::min<int64_t>(16, count - j), y + j * ld, ld)) return false;
        return true;
    }

  private:
    const Units &units_;
    Rounding rounding_;
    const int64_t *offset_;
    int64_t k_, terms_;
    const float *w_;
    int64_t ldw_, first_, n_;
    std::vector<Unit> unit_;
    std::vector<Across::Floats> values_;
    std::vector<float> out_, strip_;
    std::vector<int32_t> tops_;
    std::vector<int64_t> own_;
    Totals totals_;

    // Patches of pixels of tiles(), each element of all of them in a line of `room`.
    void gather(const float *x, const int64_t *row, int64_t width, int64_t first, int64_t count, int64_t room) {
        strip_.assign(k_ * room, 0.0f);
        own_.resize(k_);
        for (int64_t k = 0; k < k_; k++) {
            own_[k] = k * room;
            for (int64_t j = 0, n; j < count; j += n) {
                const int64_t at = (first + j) % width;
                n = std::min(width - at, count - j);
                std::copy_n(x + row[(first + j) / width] + at + offset_[k], n, &strip_[k * room + j]);
            }
        }
    }

    // `tops`, unless null: the largest magnitudes, as bits, of these pixels' blocks, `apart` from one block to the next.
    bool pixels(const float *x, const int64_t *offset, const int32_t *tops, int64_t apart, int64_t count, float *y,
                int64_t ld) {
        Across::Ints left = {}, odd;
        totals_.clear();
        rounding_.lines(count);
        const auto measure = [&](int64_t k) {
            Across::Ints largest = {};
            if (tops) get(largest, tops + k / terms_ * apart);
            else
                for (int64_t i = k; i < std::min(k + terms_, k_); i++)
                    largest = larger(largest, Across::load<16>(x + offset[i], 16));
            unit_[k / terms_] = units_.of(largest, odd);
            left |= odd;
        };
        for (int64_t k = 0; k < k_ && !Totals::WHOLE; k += terms_) measure(k);    // none waits for it
        for (int64_t k = 0; k < k_; k += terms_) {
            if (Totals::WHOLE) measure(k);                          // beside the adding up of the last
            const int64_t n = std::min(terms_, k_ - k);
            const Unit unit = unit_[k / terms_];
            const float *w = w_ + k * ldw_;
            all_dots([&](int64_t i) { return rounding_.mantissa(Across::load<16>(x + offset[k + i], 16), unit, k + i); },
                     n, n_, [&](int64_t i, int64_t o) { return w[i * ldw_ + o]; },
                     [&](int64_t o, const Across::Floats &p) {
                         totals_.add(o, k == 0, p, unit, Across::Ints{} + totals_.power(k / terms_, first_ + o));
                     }, values_);
            totals_.after(k / terms_ + 1, left);
        }
        for (int64_t i = 0; i < count; i++)                         // not the lanes behind the row
            if (left[i]) return false;
        for (int64_t o = 0; o < n_; o++) totals_.read(o, &out_[16 * o]);
        turn(out_.data(), 16, y, ld, n_, count);
        return true;
    }
};

// The weights' gradient for 16 neighbouring channels of channels-last x: lane j of `wide` belongs to channel j's group.
template <class Totals, class Rounding> class GroupedTaps {
  public:
    // `group` (channels): the first column of g of each channel's group; n columns a group. Sums are (taps, n, ld), `ld`
    // in whole vectors. A block has `high` of a group's weights, in the order (tap, channel).
    GroupedTaps(const Units &units, const Rounding &rounding, const Patches &p, const Values &g, const int64_t *group, int64_t n,
                int64_t high, int64_t terms, int64_t ld, Totals &totals)
        : units_(units), rounding_(rounding), p_(p), g_(g), group_(group), n_(n), high_(high), terms_(terms), ld_(ld),
          totals_(totals), unit_(p.segments), wide_(terms * n), powers_(n),
          tops_(high > 1 ? p.segments * ld : 0) {
        totals_.resize(p.segments * n * ld / 16);
    }

    // Adds pixels m .. m + rows, a block.
    void add(int64_t m, int64_t rows, Across::Ints &left) {
        for (int64_t i = m + rows; i < std::min(m + 2 * rows, p_.pixels); i++) fetch(i);
        const int64_t all = p_.length / 16 * 16, rest = p_.length - all;
        if (high_ > 1) {
            for (int64_t c = 0; c < all; c += 16) measure<16>(m, rows, c, 16);
            if (rest) measure<0>(m, rows, all, rest);
            join();
        }
        for (int64_t c = 0; c < all; c += 16) add<16>(m, rows, c, 16, left);
        if (rest) add<0>(m, rows, all, rest, left);
    }

  private:
    const Units &units_;
    Rounding rounding_;
    const Patches &p_;
    const Values &g_;
    const int64_t *group_;
    int64_t n_, high_, terms_, ld_;
    Totals &totals_;
    std::vector<Unit> unit_;
    std::vector<Across::Floats> values_, wide_;
    std::vector<Across::Ints> powers_;
    std::vector<int32_t> tops_;                                     // (taps, ld): the largest magnitude of a tile, as bits

    // Brings what pixel i needs into the cache, of its patch what is likely new: 16 channels of pixel after pixel are no
    // stream that a processor sees coming.
    void fetch(int64_t i) const {
        const float *g = g_.data + i * g_.ld, *x = p_.x + p_.row[i] + p_.segment[p_.segments - 1];
        for (int64_t c = 0; c < g_.n; c += 16) __builtin_prefetch(g + c);
        for (int64_t c = 0; c < p_.length; c += 16) __builtin_prefetch(x + c);
    }

    // The largest of each column.
    template <int N> void measure(int64_t m, int64_t rows, int64_t c, int64_t count) {
        for (int64_t s = 0; s < p_.segments; s++) {
            const float *x = p_.x + p_.segment[s] + c;
            Across::Ints largest = {};
            for (int64_t i = 0; i < rows; i++) largest = larger(largest, Across::load<N>(x + p_.row[m + i], count));
            put(&tops_[s * ld_ + c], largest);
        }
    }

    // The largest of each tile, from those of its columns.
    void join() {
        const int64_t channels = p_.length / (g_.n / n_), weights = p_.segments * channels;
        for (int64_t c = 0; c < p_.length; c += channels)
            for (int64_t k = 0; k < weights; k += high_) {
                const int64_t end = std::min(k + high_, weights);
                int32_t largest = 0;
                const auto runs = [&](const auto &call) {           // of one tap each
                    for (int64_t at = k, next; at < end; at = next) {
                        next = std::min((at / channels + 1) * channels, end);
                        int32_t *top = &tops_[at / channels * ld_ + c + at % channels];
                        call(top, top + next - at);
                    }
                };
                runs([&](int32_t *from, int32_t *to) { largest = std::max(largest, *std::max_element(from, to)); });
                runs([&](int32_t *from, int32_t *to) { std::fill(from, to, largest); });
            }
    }

    // Of channels c .. c + count.
    template <int N> void add(int64_t m, int64_t rows, int64_t c, int64_t count, Across::Ints &left) {
        for (int64_t i = 0; i < rows; i++)
            spread(group_ + c, count, [&](int64_t column) { return g_.data[(m + i) * g_.ld + column]; }, &wide_[i * n_]);
        if (Totals::WHOLE)
            spread(group_ + c, count, [&](int64_t column) { return totals_.power(m / terms_, column); }, powers_.data());
        Across::Ints odd;
        const auto measure = [&](int64_t s) {
            const float *x = p_.x + p_.segment[s] + c;
            Across::Ints largest = {};
            if (high_ > 1) get(largest, &tops_[s * ld_ + c]);
            else
                for (int64_t i = 0; i < rows; i++) largest = larger(largest, Across::load<N>(x + p_.row[m + i], count));
            unit_[s] = units_.of(largest, odd);
            left |= odd;
        };
        for (int64_t s = 0; s < p_.segments && !Totals::WHOLE; s++) measure(s);
        for (int64_t s = 0; s < p_.segments; s++) {
            if (Totals::WHOLE) measure(s);
            const float *x = p_.x + p_.segment[s] + c;
            const Unit unit = unit_[s];
            rounding_.outer(s, c);
            const auto &block = rounding_.block();
            const auto value = [&](int64_t i) {
                return block.mantissa(Across::load<N>(x + p_.row[m + i], count), unit, i);
            };
            all_dots(value, rows, n_, [&](int64_t i, int64_t o) { return wide_[i * n_ + o]; },
                     [&](int64_t o, const Across::Floats &p) {
                         totals_.add(((s * n_ + o) * ld_ + c) / 16, m == 0, p, unit, powers_[o]);
                     }, values_);
            rounding_.rest(rows);
        }
    }

    template <class At, class V> void spread(const int64_t *group, int64_t count, const At &at, V *out) const {
        auto *v = reinterpret_cast<Element<V> *>(out);
        if (count == 16 && group[0] == group[7] && group[8] == group[15])
            for (int64_t o = 0, first = group[0], second = group[8]; o < n_; o++, v += 16) {
                std::fill_n(v, 8, at(first + o));
                std::fill_n(v + 8, 8, at(second + o));
            }
        else
            for (int64_t o = 0; o < n_; o++, v += 16)
                for (int64_t j = 0; j < 16; j++) v[j] = j < count ? at(group[j] + o) : 0;
    }
};

}  // namespace
