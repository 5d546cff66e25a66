// Convolutions whose patches must be converted one by one: a strip of patches at a time, so that it stays in the caches.
#pragma once

#include "drawn.h"
#include "pairs.h"

namespace {

// Patches of a channels-last tensor: `segments` runs of `length` elements each, at row[pixel] + segment[s].
struct Patches {
    const float *x;
    const int64_t *row, *segment;
    int64_t pixels, segments, length;

    int64_t columns() const { return segments * length; }

    // Patches first .. first + rows, one behind the other.
    void gather(int64_t first, int64_t rows, float *out) const {
        for (int64_t i = first; i < first + rows; i++)
            for (int64_t s = 0; s < segments; s++, out += length)
                std::copy_n(x + row[i] + segment[s], length, out);
    }
};

// Elements of all patches, each behind each other, of patches that lie equally far apart in runs.
class Columns {
  public:
    explicit Columns(const Patches &p) : p_(p) {
        for (int64_t i = 0, next; i < p.pixels; i = next) {
            const int64_t step = i + 1 < p.pixels ? p.row[i + 1] - p.row[i] : 1;
            for (next = i + 1; next < p.pixels && p.row[next] - p.row[next - 1] == step;) next++;
            runs_.push_back({p.row[i], step, next - i});
        }
    }

    void gather(int64_t column, float *out) const {
        const float *from = p_.x + p_.segment[column / p_.length] + column % p_.length;
        for (const Run &run : runs_) {
            line_of(from + run.first, run.step, out, run.count);
            out += run.count;
        }
    }

  private:
    struct Run {
        int64_t first, step, count;
    };
    const Patches &p_;
    std::vector<Run> runs_;
};

// The other operand, converted: (rows, n) with `ld` between rows.
struct Values {
    const float *data;
    int64_t ld, n;
    const Format *format;
    const Span *span;
};

inline void encode(const float *x, float *y, int64_t rows, int64_t columns, int64_t high, int64_t wide, const Format &f,
                   Lanes *lanes, Span &span) {
    if (lanes) convert_drawn(x, columns, y, columns, rows, columns, high, wide, f, *lanes, span);
    else convert(x, columns, y, columns, nullptr, 0, rows, columns, high, wide, f, span);
}

// Operand b for each kind of arithmetic, each packed when first needed.
class Packed {
  public:
    Packed(const Values &b, int64_t k) : b_(b), k_(k) {}

    // y (+)= a b, `a` of `size` elements converted from format f, in floats where that is exact, else in integers
    // or in doubles. Rows that lie along K are `length` elements. `tiny`: a sum that y holds may have bits below 2^-126, so
    // that what follows can lie there.
    void multiply(const float *a, int64_t size, int64_t length, const Format &f, const Span &span, int64_t terms,
                  const Rows &at, float *y, int64_t ldy, bool more, bool tiny, const Flush &flush) {
        if (!tiny && exact(f, *b_.format, terms, span, *b_.span)) {
            by_rule(flush, [&](const auto &rule) { multiply_packed(a, at, get(singles_), b_.n, y, ldy, more, rule); });
            return;
        }
        const int times = tiny ? 0 : passes(f, *b_.format, terms, span, *b_.span);
        if (times) {
            if (!pairs_) pairs_.emplace(times, b_.data, b_.ld, 1, b_.n, at, *b_.format, *b_.span);
            pairs_->multiply(PairedRows(a, length, at, terms, f, span), y, ldy, more, flush);
            return;
        }
        wide_.assign(a, a + size);
        by_rule(flush, tiny || small(span, *b_.span), [&](const auto &rule) {
            multiply_packed(wide_.data(), at, get(doubles_), b_.n, y, ldy, more, rule);
        });
    }

  private:
    const Values &b_;
    int64_t k_;
    std::vector<float> singles_;
    std::vector<double> doubles_, wide_;
    std::optional<PairedOperand> pairs_;

    template <class T> const T *get(std::vector<T> &packed) {
        if (packed.empty()) {
            packed.resize(k_ * (b_.n + 64));
            pack_all(b_.data, b_.ld, 1, k_, b_.n, packed.data());
        }
        return packed.data();
    }
};

// y (pixels, n) = q(patches) b for pixels first .. last; `first` a multiple of `high`.
void patches_product(const Patches &p, const Format &f, int64_t high, int64_t wide, Lanes *lanes, const Values &b,
                     float *y, int64_t first, int64_t last, const Flush &flush) {
    const int64_t k = p.columns(), most = (96 + high - 1) / high * high;
    std::vector<float> strip(most * k);
    std::vector<int64_t> row(most), block, terms;
    for (int64_t i = 0; i < most; i++) row[i] = i * k;
    for (int64_t c = 0; c < k; c += wide) {
        block.push_back(c);
        terms.push_back(std::min(wide, k - c));
    }
    Packed other(b, k);
    for (int64_t m = first; m < last; m += most) {
        const int64_t rows = std::min(most, last - m);
        Span span{1 << 20, -(1 << 20), 0};
        p.gather(m, rows, strip.data());
        encode(strip.data(), strip.data(), rows, k, high, wide, f, lanes, span);
        other.multiply(strip.data(), rows * k, k, f, span, wide,
                       Rows{row.data(), rows, block.data(), terms.data(), int64_t(block.size()), 1}, y + m * b.n, b.n,
                       false, false, flush);
    }
}

// y (columns of a patch, n) = q(patches)^T g, blocks of `high` pixels by `wide` columns.
void patches_turned_product(const Patches &p, const Format &f, int64_t high, int64_t wide, Lanes *lanes, const Values &g,
                            float *y, const Flush &flush) {
    const int64_t k = p.columns(), most = up_to(std::max<int64_t>(1, 131072 / std::max<int64_t>(k, 1)), high);
    std::vector<float> strip(most * k);
    std::vector<int64_t> row(k), block, terms;
    for (int64_t i = 0; i < k; i++) row[i] = i;
    bool tiny = false;
    for (int64_t m = 0; m < p.pixels; m += most) {
        const int64_t rows = std::min(most, p.pixels - m);
        Span span{1 << 20, -(1 << 20), 0};
        p.gather(m, rows, strip.data());
        encode(strip.data(), strip.data(), rows, k, high, wide, f, lanes, span);
        block.clear();
        terms.clear();
        for (int64_t i = 0; i < rows; i += high) {
            block.push_back(i * k);
            terms.push_back(std::min(high, rows - i));
        }
        const Values part{g.data + m * g.ld, g.ld, g.n, g.format, g.span};
        Packed other(part, rows);
        other.multiply(strip.data(), rows * k, k, f, span, high,
                       Rows{row.data(), k, block.data(), terms.data(), int64_t(block.size()), k}, y, g.n, m > 0, tiny,
                       flush);
        tiny |= small(span, *g.span);
    }
}

// The same with blocks of one column that draw noise, column after column.
void patches_turned_drawn(const Patches &p, const Format &f, int64_t high, Lanes &lanes, const Values &g, float *y,
                          const Flush &flush) {
    // Not a power of two between columns: what is read together would share one set of the cache.
    const int64_t k = p.columns(), length = p.pixels + 16, most = up_to(131072 / length, 24);
    std::vector<float> strip(most * length);
    std::vector<int64_t> row(most), block, terms;
    for (int64_t i = 0; i < most; i++) row[i] = i * length;
    for (int64_t i = 0; i < p.pixels; i += high) {
        block.push_back(i);
        terms.push_back(std::min(high, p.pixels - i));
    }
    Packed other(g, p.pixels);
    const Columns columns_of(p);
    for (int64_t c = 0; c < k; c += most) {
        const int64_t columns = std::min(most, k - c);
        Span span{1 << 20, -(1 << 20), 0};
        for (int64_t i = 0; i < columns; i++) {
            float *line = &strip[i * length];
            columns_of.gather(c + i, line);
            convert_drawn(line, length, line, length, 1, p.pixels, 1, high, f, lanes, span);
        }
        other.multiply(strip.data(), columns * length, length, f, span, high,
                       Rows{row.data(), columns, block.data(), terms.data(), int64_t(block.size()), 1}, y + c * g.n, g.n,
                       false, false, flush);
    }
}

}  // namespace
