// Quick paths of the golden model; every result equals the NumPy definitions bit for bit (tests/golden/fast).
// Built by golden/fast/kernels.py. No fast-math: the order of the additions written here is the law.

#include "aligned_stack.h"
#include "alike.h"
#include "alike_norm.h"
#include "chain.h"
#include "depthwise.h"
#include "elements.h"
#include "emulate.h"
#include "grouped.h"
#include "numbers.h"
#include "stack.h"

extern "C" {

// See convert().
void hbfp_encode(const float *x, int64_t ldx, float *y, int64_t ldy, const int32_t *noise, int64_t ldn,
                 int64_t rows, int64_t columns, int64_t high, int64_t wide, const Format *f, Span *span) {
    convert(x, ldx, y, ldy, noise, ldn, rows, columns, high, wide, *f, *span);
}

// See convert_drawn().
void hbfp_encode_drawn(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t columns, int64_t high,
                       int64_t wide, const Format *f, Lanes *lanes, Span *span) {
    convert_drawn(x, ldx, y, ldy, rows, columns, high, wide, *f, *lanes, *span);
}

// The next numbers of the generators; `out` has SLACK more.
void hbfp_draw(Lanes *lanes, int32_t *out, int64_t numbers, int32_t bits) { lanes->draw(out, numbers, bits); }

// See turn().
void hbfp_turn(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t columns) {
    turn(x, ldx, y, ldy, rows, columns);
}

// Mantissas, exponents and flags of bands first .. last of a stack of contiguous matrices (rows, columns): docs/numerics.md,
// section 2. A band is one row of blocks.
#define HBFP_MANTISSAS(NAME, INT) \
void NAME(const float *x, INT *m, int32_t *exponent, uint8_t *invalid, const int32_t *noise, int64_t rows, \
          int64_t columns, int64_t high, int64_t wide, int64_t first, int64_t last, const Format *f) { \
    const int64_t bands = (rows + high - 1) / high, blocks = (columns + wide - 1) / wide; \
    std::vector<float> values; \
    std::vector<uint32_t> largest; \
    std::vector<double> scale; \
    const int64_t most = high == 1 && columns && columns % wide == 0 ? std::max<int64_t>(1, 2048 / columns) : 1; \
    for (int64_t b = first; b < last; b += most) {                  /* several rows of whole blocks as one */ \
        const int64_t top = b % bands * high, at = (b / bands * rows + top) * columns, n = std::min(most, last - b) * columns; \
        const int64_t h = std::min(high, rows - top); \
        if (!noise && rounded_mantissas(x + at, m + at, exponent + b * blocks, invalid + b * blocks, h, n, high, wide, *f)) \
            continue; \
        mantissas(x + at, n, m + at, n, exponent + b * blocks, invalid + b * blocks, noise ? noise + at : nullptr, n, h, n, \
                  high, wide, *f, values, largest, scale); \
    } \
}
HBFP_MANTISSAS(hbfp_mantissas, int32_t)
HBFP_MANTISSAS(hbfp_float_mantissas, float)
#undef HBFP_MANTISSAS

// Mantissas as floats of a matrix in blocks of `high` rows and one column, the rows of which lie at x + row[i].
void hbfp_row_mantissas(const float *x, const int64_t *row, int64_t rows, int64_t columns, int64_t high, float *m,
                        int32_t *exponent, uint8_t *invalid, const Format *f) {
    std::vector<float> values, band(high * columns);
    std::vector<uint32_t> largest;
    std::vector<double> scale;
    for (int64_t r = 0, at = 0; r < rows; r += high, at += columns) {
        const int64_t h = std::min(high, rows - r);
        for (int64_t i = 0; i < h; i++) std::copy_n(x + row[r + i], columns, &band[i * columns]);
        mantissas(band.data(), columns, m + r * columns, columns, exponent + at, invalid + at, nullptr, 0, h, columns, high,
                  1, *f, values, largest, scale);
    }
}

// The inverse, for the same stack.
void hbfp_decode(const int32_t *m, const int32_t *exponent, const uint8_t *invalid, float *y, int64_t rows,
                 int64_t columns, int64_t high, int64_t wide, int64_t first, int64_t last, int32_t magnitude) {
    const int64_t bands = (rows + high - 1) / high, blocks = (columns + wide - 1) / wide;
    for (int64_t b = first; b < last; b++) {
        const int64_t top = b % bands * high, at = (b / bands * rows + top) * columns;
        values(m + at, columns, exponent + b * blocks, invalid + b * blocks, y + at, columns, std::min(high, rows - top),
               columns, wide, magnitude);
    }
}

// y (m_count, n_count) = sum over blocks j, ascending, of the dot products of `terms[j]` elements:
// a[row[m] + block[j] + k * stride] * b[(first[j] + k) * bk + n * bn]. Each block sum must be exact in FP32.
void hbfp_product(const float *a, const int64_t *row, int64_t m_count, const int64_t *block, const int64_t *terms,
                  int64_t blocks, int64_t stride, const float *b, int64_t bk, int64_t bn, int64_t n_count,
                  float *y, int64_t ldy, float *work, const Flush *flush) {
    by_rule(*flush, [&](const auto &rule) {
        multiply(a, Rows{row, m_count, block, terms, blocks, stride}, b, bk, bn, n_count, y, ldy, work, rule);
    });
}

// The same for sums that FP32 does not hold: each exact in float64, rounded once.
void hbfp_wide_product(const double *a, const int64_t *row, int64_t m_count, const int64_t *block, const int64_t *terms,
                       int64_t blocks, int64_t stride, const float *b, int64_t bk, int64_t bn, int64_t n_count,
                       float *y, int64_t ldy, double *work, const Flush *flush) {
    by_rule(*flush, true, [&](const auto &rule) {
        multiply(a, Rows{row, m_count, block, terms, blocks, stride}, b, bk, bn, n_count, y, ldy, work, rule);
    });
}

// hbfp_product in integers, for operands that passes() allows; a as PairedRows takes it.
void hbfp_pair_product(const float *a, int64_t length, const int64_t *row, int64_t m_count, const int64_t *block,
                       const int64_t *terms, int64_t blocks, int64_t stride, const float *b, int64_t bk, int64_t bn,
                       int64_t n_count, float *y, int64_t ldy, int64_t side, const Format *fa, const Format *fb,
                       const Span *sa, const Span *sb, const Flush *flush) {
    const Rows at{row, m_count, block, terms, blocks, stride};
    PairedOperand(passes(*fa, *fb, side, *sa, *sb), b, bk, bn, n_count, at, *fb, *sb)
        .multiply(PairedRows(a, length, at, side, *fa, *sa), y, ldy, false, *flush);
}

// b (k, n) in panels, for hbfp_packed_product.
void hbfp_pack(const float *b, int64_t bk, int64_t bn, int64_t k, int64_t n, float *packed) {
    pack_all(b, bk, bn, k, n, packed);
}

// hbfp_product with b from hbfp_pack.
void hbfp_packed_product(const float *a, const int64_t *row, int64_t m_count, const int64_t *block, const int64_t *terms,
                         int64_t blocks, int64_t stride, const float *packed, int64_t n_count, float *y, int64_t ldy) {
    multiply_packed(a, Rows{row, m_count, block, terms, blocks, stride}, packed, n_count, y, ldy, false, Keep());
}

// b (k, n), with contiguous rows, in panels for hbfp_aligned.
void hbfp_aligned_pack(const float *b, int64_t k, int64_t n, int32_t guard, float *packed) {
    aligned_pack(b, n, 1, k, n, guard, packed);
}

// y (m, n): see multiply_aligned(); a (m, k) lies as Rows says, its exponents as Exponents; b (k, n) has contiguous rows,
// and is also there in panels. `most`: 0 where float and int32 hold every block's sum and every running sum; below that
// where they do not; above, of sums of blocks that float holds, as multiply_aligned() has it.
void hbfp_aligned(const float *a, const int64_t *row, int64_t m, const int64_t *block, const int64_t *terms,
                  int64_t blocks, int64_t stride, const int32_t *ea, const int64_t *ea_row, const int64_t *ea_block,
                  int64_t size, const float *packed, const float *b, const int32_t *eb, int64_t n, int64_t lde, int32_t guard,
                  int64_t most, float *y, const Flush *flush) {
    const Rows at{row, m, block, terms, blocks, stride};
    const Exponents exponents{ea, ea_row, ea_block};
    multiply_mantissas(a, size, at, exponents, packed, b, n, 1, eb, n, lde, guard, most, y, *flush);
}

// Stacks of pairs: see AlignedPair. odd[i] becomes 1 where a block of pair i is invalid, and y then holds anything there.
void hbfp_aligned_stack(int64_t count, const float *a, int64_t a_step, int64_t am, int64_t ak, const float *b,
                        int64_t b_step, int64_t bk, int64_t bn, int64_t m, int64_t k, int64_t n, float *y,
                        const Format *fa, const Format *fb, int64_t terms, int32_t guard, int64_t most, const Flush *flush,
                        uint8_t *odd) {
    AlignedPair pair(m, k, n, terms);
    for (int64_t i = 0; i < count; i++)
        odd[i] = !pair.multiply(a + i * a_step, am, ak, *fa, b + i * b_step, bk, bn, *fb, guard, most, y + i * m * n, *flush);
}

// The same with the patches of pair i, those of p moved by i * step, for a; `turned`: k runs over the pixels.
void hbfp_aligned_patches(int64_t count, const Patches *p, int64_t step, int32_t turned, const float *b, int64_t b_step,
                          int64_t bk, int64_t bn, int64_t n, float *y, const Format *fa, const Format *fb, int64_t terms,
                          int32_t guard, int64_t most, const Flush *flush, uint8_t *odd) {
    const int64_t m = turned ? p->columns() : p->pixels, k = turned ? p->pixels : p->columns();
    AlignedPair pair(m, k, n, terms);
    for (int64_t i = 0; i < count; i++) {
        Patches own = *p;
        own.x += i * step;
        odd[i] = !pair.multiply_patches(own, turned, *fa, b + i * b_step, bk, bn, *fb, guard, most, y + i * m * n, *flush);
    }
}

// x (N, C, D, H, W), any strides, into y, of any strides with channels or columns without gaps, from depth `front`, row
// `top`, column `left` on; what falls outside is left out, and there are zeros around. `s`: strides of x, its sides,
// strides of y, its depth, rows and columns, front, top, left.
void hbfp_lay(const float *x, const int64_t *s, float *y) {
    const int64_t sn = s[0], sc = s[1], sd = s[2], sh = s[3], sw = s[4], n = s[5], c = s[6], d = s[7], h = s[8], w = s[9],
                  yn = s[10], yc = s[11], yd = s[12], yh = s[13], yw = s[14], depth = s[15], rows = s[16],
                  columns = s[17], front = s[18], top = s[19], left = s[20];
    constexpr int64_t SIDE = 16;
    const int64_t first = std::max<int64_t>(0, -left), last = std::min(w, columns - left);
    const bool turned = !(sc == 1 && yc == 1) && !(sw == 1 && yw == 1);
    for (int64_t image = 0; image < n * depth; image++) {
        const int64_t layer = image % depth - front;
        for (int64_t k = 0; k < c; k += turned ? SIDE : c)              // some channels of a whole image: lines of memory
            for (int64_t r = 0; r < rows; r++) {
                const int64_t i = r - top, some = turned ? std::min(SIDE, c - k) : c;
                float *line = y + image / depth * yn + image % depth * yd + r * yh + k * yc;
                const auto clear = [&](int64_t j, int64_t end) {
                    if (yc == 1)
                        for (; j < end; j++) std::fill_n(line + j * yw, some, 0.0f);
                    else
                        for (int64_t l = 0; l < some && j < end; l++)
                            for (int64_t m = j; m < end; m++) line[l * yc + m * yw] = 0.0f;
                };
                if (layer < 0 || layer >= d || i < 0 || i >= h || first >= last) {
                    clear(0, columns);
                    continue;
                }
                clear(0, left + first);
                clear(left + last, columns);
                const float *from = x + image / depth * sn + layer * sd + i * sh + k * sc;
                float *to = line + left * yw;
                if (sc == 1 && yc == 1 && sw == c && yw == c)
                    std::copy_n(from + first * c, (last - first) * c, to + first * c);
                else if (sc == 1 && yc == 1)
                    for (int64_t j = first; j < last; j++) std::copy_n(from + j * sw, c, to + j * yw);
                else if (!turned)
                    for (int64_t l = 0; l < c; l++)
                        std::copy_n(from + l * sc + first, last - first, to + l * yc + first);
                else if (sw == 1 && yc == 1)
                    turn(from + first, sc, to + first * yw, yw, some, last - first);
                else if (sc == 1 && yw == 1)
                    turn(from + first * sw, sw, to + first, yc, last - first, some);
                else
                    for (int64_t l = 0; l < some; l++)
                        for (int64_t m = first; m < last; m++) to[m * yw + l * yc] = from[l * sc + m * sw];
            }
    }
}

// y (copies, planes, depth, rows, columns): of planes of `size` numbers, from first to last, the elements from starts[i] on
// that lie steps[0] .. steps[2] apart, sides[0] .. sides[2] of them; converted, unless f is null, in blocks of `terms` along
// lines of `length`.
void hbfp_copies(const float *x, int64_t size, const int64_t *starts, int64_t copies, const int64_t *sides, const int64_t *steps,
                 float *y, int64_t planes, int64_t first, int64_t last, int64_t length, int64_t terms, const Format *f,
                 Span *span) {
    const int64_t volume = sides[0] * sides[1] * sides[2];
    for (int64_t p = first; p < last; p++)
        for (int64_t i = 0; i < copies; i++) {
            float *copy = y + (i * planes + p) * volume, *to = copy;
            for (int64_t d = 0; d < sides[0]; d++)
                for (int64_t r = 0; r < sides[1]; r++, to += sides[2])
                    line_of(x + p * size + starts[i] + d * steps[0] + r * steps[1], steps[2], to, sides[2]);
            if (f) convert(copy, length, copy, length, nullptr, 0, volume / length, length, 1, terms, *f, *span);
        }
}

// See patches_product(), patches_turned_product() and patches_turned_drawn(). `lanes` may be null.
void hbfp_patches(const Patches *p, const Format *f, int64_t high, int64_t wide, Lanes *lanes, const Values *b, float *y,
                  int64_t first, int64_t last, const Flush *flush) {
    patches_product(*p, *f, high, wide, lanes, *b, y, first, last, *flush);
}

void hbfp_patches_turned(const Patches *p, const Format *f, int64_t high, int64_t wide, Lanes *lanes, const Values *g,
                         float *y, const Flush *flush) {
    if (lanes && wide == 1) patches_turned_drawn(*p, *f, high, *lanes, *g, y, *flush);
    else patches_turned_product(*p, *f, high, wide, lanes, *g, y, *flush);
}

// See depthwise.h. `drawing` may be null.
void hbfp_depthwise(const Patches *p, int32_t turned, const Format *f, int64_t high, int64_t terms, const Values *b,
                    const Drawing *drawing, float *y, int64_t first, int64_t last, const Flush *flush) {
    depthwise(*p, turned, *f, high, terms, *b, drawing, y, first, last, *flush);
}

void hbfp_depthwise_aligned(const Patches *p, int32_t turned, const Format *f, int64_t terms, const Values *b,
                            const Whole *whole, float *y, int64_t first, int64_t last, const Flush *flush,
                            uint8_t *left) {
    depthwise_aligned(Apart(*p, turned, 1, terms, *b), turned, *f, *whole, y, first, last, *flush, left);
}

// See columns_drawn(); x and y without gaps.
void hbfp_columns_drawn(const float *x, float *y, int64_t rows, int64_t columns, int64_t terms, const Format *f,
                        const Drawing *drawing, Span *span) {
    columns_drawn(x, y, rows, columns, terms, *f, *drawing, *span);
}

// Generators go on by `count` times `steps`; starts[i], if asked for, is their state after i times.
void hbfp_leap(Lanes *lanes, int64_t count, int64_t steps, uint32_t (*starts)[32]) {
    const Leaps &leaps = Leaps::of(*lanes);
    for (int64_t i = 0; i < count; i++) {
        if (starts) std::memcpy(starts[i], lanes->state, sizeof lanes->state);
        leaps.forward(lanes->state, steps);
    }
}

// Calls with units and totals for operand b: those of `whole`, which may be null, or of FP32 and less.
extern "C++" template <class Call>
void by_totals(const Format &f, const Values &b, int64_t terms, const Whole *whole, const Flush &flush, const Call &call) {
    if (whole) call(Units(f), WholeTotals(*whole, terms, flush));
    else by_rule(flush, [&](const auto &rule) {
        call(float_units(f, *b.format, *b.span, terms), FloatTotals<std::decay_t<decltype(rule)>>(rule));
    });
}

// Pixels first .. last of y (pixels, groups * n), rows of `width` or tiles `high` pixels high: see Planes. Group i has the
// planes from x + i * step on and columns i * n of w and y; odd[i] becomes 1 where it cannot be done so, and its part of y
// then holds anything. Group i draws for x, if at all, from starts[i] of `drawing` on.
void hbfp_planes(const float *x, const int64_t *row, int64_t width, const int64_t *offset, int64_t k, int64_t high,
                 int64_t terms, const Format *f, const Values *w, const Whole *whole, const Drawing *drawing,
                 int64_t groups, int64_t step, float *y, int64_t first, int64_t last, uint8_t *odd, const Flush *flush) {
    const int64_t n = w->n / groups, strip = high == 1 ? width : up_to(96, high);
    by_totals(*f, *w, terms, whole, *flush, [&](const Units &units, const auto &totals) {
        for (int64_t i = 0; i < groups; i++) {
            const auto run = [&](const auto &rounding) {
                Planes planes(units, rounding, offset, k, terms, *w, i * n, n, totals);
                for (int64_t m = first; m < last && !odd[i]; m += strip) {
                    float *out = y + m * w->n + i * n;
                    odd[i] = high == 1 ? !planes.row(x + i * step + row[m / width], width, out, w->n)
                        : !planes.tiles(x + i * step, row, width, m, std::min(strip, last - m), high, out, w->n);
                }
            };
            if (!drawing) {
                run(Nearest(*f));
                continue;
            }
            Lanes lanes = *drawing->lanes;
            std::memcpy(lanes.state, drawing->starts[i], sizeof lanes.state);
            Leaps::of(lanes).forward(lanes.state, drawing->ahead + first * ((k + terms - 1) / terms * terms / lanes.count));
            run(LineNoise(*f, lanes, k, terms));
        }
    });
    canonical(y + first * w->n, (last - first) * w->n);
}

// y (taps, n, ld): gradient of the weights of channel c of p for the n columns of g of its group; see GroupedTaps. `ld` is
// a multiple of 16. *odd becomes 1 where it cannot be done so. Channel c draws, if at all, from starts[c] of `drawing` on.
void hbfp_grouped_turned(const Patches *p, const Format *f, int64_t high, int64_t terms, const Values *g, const Whole *whole,
                         const Drawing *drawing, const int64_t *group, int64_t n, float *y, int64_t ld, uint8_t *odd,
                         const Flush *flush) {
    by_totals(*f, *g, terms, whole, *flush, [&](const Units &units, auto totals) {
        const auto run = [&](const auto &rounding) {
            GroupedTaps taps(units, rounding, *p, *g, group, n, high, terms, ld, totals);
            for (int64_t m = 0; m < p->pixels && !*odd; m += terms) {
                Across::Ints left = {};
                taps.add(m, std::min(terms, p->pixels - m), left);
                totals.after(m / terms + 1, left);
                *odd = Across::any(left);
            }
        };
        if (drawing) run(Stochastic(*f, *drawing, p->length, p->segments, p->pixels, terms, p->length / (g->n / n)));
        else run(Nearest(*f));
        for (int64_t i = 0; i < p->segments * n * ld / 16; i++) totals.read(i, y + 16 * i);
    });
    canonical(y, p->segments * n * ld);
}

// See stack.h.
void hbfp_stack(int64_t count, const float *a, int64_t a_step, int64_t am, int64_t ak, const float *b, int64_t b_step,
                int64_t bk, int64_t bn, int64_t m, int64_t k, int64_t n, float *y, const Format *fa, const Format *fb,
                const int64_t *high_a, const int64_t *high_b, const int64_t *terms, const Flush *flush,
                const uint8_t *skip) {
    Pair pair(m, k, n);
    for (int64_t i = 0; i < count; i++)
        if (!skip[i])
            pair.multiply(a + i * a_step, am, ak, fa[i], high_a[i], b + i * b_step, bk, bn, fb[i], high_b[i], terms[i],
                          y + i * m * n, flush[i]);
}

// The same for `each` products of every pair in one format, one pair after the other with all its products, which draw.
void hbfp_stack_drawn(int64_t count, const Drawn *products, int64_t each, int64_t terms, Lanes *lanes) {
    std::vector<Pair> pairs;
    for (const Drawn *p = products; p < products + each; p++) pairs.emplace_back(p->m, p->k, p->n);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < each; j++) {
            const Drawn &p = products[j];
            pairs[j].multiply(p.a + i * p.a_step, p.am, p.ak, *p.fa, p.high_a, p.b + i * p.b_step, p.bk, p.bn, *p.fb,
                              p.high_b, terms, p.y + i * p.m * p.n, *p.flush, lanes);
        }
}

// The same with the patches of model i, those of p moved by i * step, for a; `turned`: k runs over the pixels.
void hbfp_stack_patches(int64_t count, const Patches *p, int64_t step, int32_t turned, const float *b, int64_t b_step,
                        int64_t bk, int64_t bn, int64_t n, float *y, const Format *fa, const Format *fb,
                        const int64_t *high_a, const int64_t *high_b, const int64_t *terms, const Flush *flush,
                        const uint8_t *skip) {
    const int64_t m = turned ? p->columns() : p->pixels, k = turned ? p->pixels : p->columns();
    Pair pair(m, k, n);
    for (int64_t i = 0; i < count; i++) {
        if (skip[i]) continue;
        Patches own = *p;
        own.x += i * step;
        pair.multiply_patches(own, turned, fa[i], high_a[i], b + i * b_step, bk, bn, fb[i], high_b[i], terms[i],
                              y + i * m * n, flush[i]);
    }
}

// See chain.h; of models from `first` to `last`.
void hbfp_chain(const Link *links, int64_t count, int64_t first, int64_t last) { run_chain(links, count, first, last); }

// Steps of optimisers, see alike.h; one element of `c` for each model, `buffer` may be null.
void hbfp_alike_sgd(const alike::Parameter *parameters, int64_t count, int64_t models, int64_t ld, const alike::Sgd *c,
                    float *values, float *buffer) {
    alike::each_parameter(parameters, count, models, ld, [&](int64_t i, const float *g, int64_t at, int64_t n) {
        alike::sgd(c[i], g, values + at, buffer ? buffer + at : nullptr, n);
    });
}

void hbfp_alike_moments(const alike::Parameter *parameters, int64_t count, int64_t models, int64_t ld,
                        const alike::Adam *c, float *values, float *mean, float *square) {
    alike::each_parameter(parameters, count, models, ld, [&](int64_t i, const float *g, int64_t at, int64_t n) {
        alike::moments(c[i], g, values + at, mean + at, square + at, n);
    });
}

void hbfp_alike_adam(int64_t models, int64_t ld, const alike::Adam *c, const float *mean, const float *root,
                     float *values) {
    for (int64_t i = 0; i < models; i++) alike::adam(c[i], mean + i * ld, root + i * ld, values + i * ld, ld);
}

// See alike_norm.h; tensors of one model behind those of another, `gx` may be null. `y` is read if it is `rectified`.
void hbfp_alike_normalise(int64_t models, const alike::Norm *norms, int32_t rectified, const float *x, float *y,
                          float *mean, float *inverse) {
    for (int64_t i = 0; i < models; i++) {
        const int64_t at = i * norms->images * norms->channels * norms->pixels, c = i * norms->channels;
        (rectified ? alike::normalise<true> : alike::normalise<false>)(norms[i], x + at, y + at, mean + c, inverse + c);
    }
}

void hbfp_alike_gradients(int64_t models, const alike::Norm *norms, int32_t rectified, const float *x, const float *g,
                          const float *y, const float *mean, const float *inverse, float *gx, float *gw, float *gb) {
    for (int64_t i = 0; i < models; i++) {
        const int64_t at = i * norms->images * norms->channels * norms->pixels, c = i * norms->channels;
        (rectified ? alike::gradients<true> : alike::gradients<false>)(
            norms[i], x + at, g + at, y + at, mean + c, inverse + c, gx ? gx + at : nullptr, gw + c, gb + c);
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

// Sums over the rows of a matrix (rows, columns) of patterns, added to y from the first row on: see elements.h.
void hbfp_ascending(const uint32_t *x, int64_t rows, int64_t columns, uint32_t *y) {
    for (int64_t r = 0; r < rows; r++, x += columns)
        elements::each(columns, y, [=](int64_t c) { return elements::sum(y[c], elements::flushed(x[c])); });
}

// See emulate.h; one block of all where `tile` is 0.
void hbfp_emulate(const float *x, const float *noise, float *y, int64_t rows, int64_t columns, int64_t tile,
                  int32_t magnitude) {
    if (tile) emulator::tiles(x, noise, y, rows, columns, tile, magnitude);
    else emulator::whole(x, noise, y, rows * columns, magnitude);
}

// See numbers.h.
void hbfp_number_elements(const float *x, float *y, int64_t n, const numbers::Number *number) {
    numbers::elements(x, y, n, *number);
}

void hbfp_number_blocks(const float *x, float *y, int64_t outer, int64_t length, int64_t inner,
                        const numbers::Number *number) {
    for (int64_t i = 0; i < outer; i++) numbers::blocks(x + i * length * inner, y + i * length * inner, length, inner,
                                                       *number);
}

// Elements first .. last of what a program gives: see elements.h.
void hbfp_elements(const elements::Pass *passes, int64_t count, const uint32_t *const *inputs, uint32_t *y,
                   int64_t first, int64_t last) {
    elements::run(passes, count, inputs, y, first, last);
}

}  // extern "C"
