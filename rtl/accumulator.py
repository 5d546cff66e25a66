"""What becomes of the sums of a group of columns: exponents, conversion, accumulation along K."""

from amaranth import Cat, Module, Mux, Shape, Signal, signed
from amaranth.lib.wiring import In, Out

from .align import AlignAdd, aligned_layout
from .array import group_sums
from .buffer import Ram
from .cell import Cell
from .fp32.arith import Add
from .fp32.convert import IntToFp32
from .lanes import exponent_shape, scale_layout
from .layout import ArrayLayout, index
from .mac import sum_registers, sum_rules
from .sequencer import beat_layout
from .skew import delay


def scale_offset(design):
    """What is taken off the exponent of X once, so that a block sum times 2^Es is its value."""
    return 2 * design.format.magnitude + (design.guard if design.accumulate == "aligned" else 0)


def row_exponent_shape(design):
    """Exponent of X, less :func:`scale_offset`."""
    low, high = design.format.exponent_range
    return signed(max((-low + scale_offset(design) - 1).bit_length(), high.bit_length()) + 1)


def sum_exponent_width(design):
    """Bits of Es = Ea + Ew, with the offset taken off."""
    return row_exponent_shape(design).width + 1


def accumulator_shape(design):
    """One word of an accumulator bank and column."""
    if design.accumulate == "aligned":
        return aligned_layout(design.accumulator_width, sum_exponent_width(design))
    return signed(design.accumulator_width) if design.arithmetic == "int" else 32


class Lanes(Cell):
    """Accumulation for the columns of one column group.

    Cycles are counted from the one in which ``west`` shows a row. The row's sum of segment 0 is there at cycle 1, of
    segment s at ``1 + s * h``; the row is in its bank :meth:`latency` cycles after cycle 0.

    Parameters
    ----------
    design : golden.spec.config.Design

    Members
    -------
    west, east : ``In``, ``Out(beat_layout)``
        About the row; ``east`` is a cycle later.
    address, address_east : ``In``, ``Out``
        Word of the bank, likewise.
    x_N, x_N_east : ``In``, ``Out``
        Exponent and invalid flag of the row in segment N, at cycle ``N * h``.
    load, load_east : ``In(S)``, ``Out(S)``
        Bit s: take ``w[s]``, a cycle ahead of the first row that uses it.
    w : ``In``
        Exponents and invalid flags of the columns, per segment.
    sums : ``In``
        Sums of the columns, per segment.
    draining : ``In(2)``
        Bank is read out: word ``drain_address``, one cycle later on ``o``, held while ``drain_en`` is low.
    o : ``Out``
        FP32 or integer values of the bank that is read out.
    """
    kind = "lanes"

    def __init__(self, design):
        self.design = design
        kc, s = design.group[1], design.segments
        word = index(design.depth)
        members = {
            "west": In(beat_layout()), "east": Out(beat_layout()), "address": In(word), "address_east": Out(word),
            "sums": In(group_sums(design, design.height)).array(s),
            "draining": In(2), "drain_en": In(1), "drain_address": In(word),
            "o": Out(ArrayLayout(design.result_width, kc)),
        }
        if design.blocked:
            members |= {"load": In(s), "load_east": Out(s), "w": In(scale_layout(design, kc)).array(s)}
            row = row_exponent_shape(design)
            for segment in range(s):
                members |= {f"x_{segment}": In(row), f"x_{segment}_east": Out(row),
                            f"nan_{segment}": In(1), f"nan_{segment}_east": Out(1)}
        fmt = design.format
        blocked = {"e": fmt.exponent, "b": design.format.terms, "h": design.height} if design.blocked else {}
        extra = {"aligned": f"{design.guard}_{design.growth}"} if design.accumulate == "aligned" else {}
        if design.arithmetic == "int":
            extra = {"a": design.accumulator_width}
        if design.pipeline:
            extra["p"] = design.pipeline
        super().__init__(members, **{design.arithmetic: design.lane_width}, r=design.rows, **blocked,
                         g=f"{design.group[0]}x{kc}", d=design.depth, **extra)

    # --- Timing ---------------------------------------------------------------------------------

    @staticmethod
    def _read(design):
        """Cycle in which a row's word is asked for; it is added one cycle later."""
        return int(design.blocked and design.accumulate == "fp32") + int(design.block_tiles > 1)

    @staticmethod
    def latency(design):
        """Cycle in which a row is written to its bank."""
        per_segment = design.height // design.group[0]
        return Lanes._read(design) + 1 + (design.segments - 1) * per_segment + sum_registers(design)

    @staticmethod
    def interval(design):
        """Fewest cycles between two rows with the same address."""
        return max(Lanes.latency(design) - Lanes._read(design) + 1, 3)

    # --- Logic ----------------------------------------------------------------------------------

    def body(self, platform):
        m = Module()
        design, kc = self.design, self.design.group[1]
        m.d.sync += [self.east.eq(self.west), self.address_east.eq(self.address)]
        read = self._read(design)
        late = [self.west]
        addresses = [self.address]
        for stage in range(self.latency(design)):
            late.append(Signal(beat_layout(), name=f"beat_{stage + 1}"))
            addresses.append(Signal(index(design.depth), name=f"address_{stage + 1}", reset_less=True))
            m.d.sync += [late[-1].eq(late[-2]), addresses[-1].eq(addresses[-2])]

        # Banks: one read port, for the accumulation or for the way out.
        width = Shape.cast(accumulator_shape(design)).width
        banks = [Ram(design.depth, kc * width) for _ in range(2)]
        written = Signal(kc * width)
        for n, bank in enumerate(banks):
            m.submodules[f"bank{n}"] = bank
            drains = self.draining[n]
            m.d.comb += [
                bank.w_en.eq(late[-1].valid & late[-1].closes & (late[-1].bank == n)),
                bank.w_addr.eq(addresses[-1]), bank.w_data.eq(written),
                bank.r_en.eq(~drains | self.drain_en),
                bank.r_addr.eq(Mux(drains, self.drain_address, addresses[read])),
            ]
        held = Signal(kc * width)
        out = Signal(kc * width)
        drained = Signal()
        m.d.sync += drained.eq(Mux(self.drain_en, self.draining[1], drained))
        fresh, bank = late[read + 1].first, late[read + 1].bank
        if design.accumulate == "aligned":
            m.d.comb += held.eq(Mux(bank, banks[1].r_data, banks[0].r_data))
        else:    # what is fresh starts from zero
            m.d.comb += held.eq(banks[0].r_data & (~bank & ~fresh).replicate(len(held))
                                | banks[1].r_data & (bank & ~fresh).replicate(len(held)))
        m.d.comb += out.eq(Mux(drained, banks[1].r_data, banks[0].r_data))

        if design.blocked:
            scales = self._scales(m)
            blocks = self._block_sums(m, late, addresses)
        for column in range(kc):
            acc = held.word_select(column, width)
            if not design.blocked:
                acc = self._add_plain(m, column, acc)
            elif design.accumulate == "aligned":
                acc = self._add_aligned(m, column, acc, fresh, scales, blocks)
            else:
                acc = self._add_fp32(m, column, acc, scales, blocks)
            m.d.comb += [written.word_select(column, width).eq(acc),
                         self.o[column].eq(self._result(m, column, out.word_select(column, width)))]
        return m

    def _scales(self, m):
        """Es and the NaN flag of each segment and column, beside the sum that they belong to."""
        design, kc = self.design, self.design.group[1]
        m.d.sync += self.load_east.eq(self.load)
        scales = []
        for s in range(design.segments):
            x, nan = getattr(self, f"x_{s}"), getattr(self, f"nan_{s}")
            m.d.sync += [getattr(self, f"x_{s}_east").eq(x), getattr(self, f"nan_{s}_east").eq(nan)]
            scales.append([])
            for column in range(kc):
                stem = f"s{s}_c{column}"
                exponent = Signal(exponent_shape(design), name=f"{stem}_w", reset_less=True)
                invalid = Signal(name=f"{stem}_w_invalid", reset_less=True)
                with m.If(self.load[s]):
                    m.d.sync += [exponent.eq(self.w[s].exponent[column]), invalid.eq(self.w[s].invalid[column])]
                total = Signal(signed(sum_exponent_width(design)), name=f"{stem}_exponent", reset_less=True)
                either = Signal(name=f"{stem}_invalid", reset_less=True)
                m.d.sync += [total.eq(x + exponent), either.eq(nan | invalid)]
                if design.block_tiles > 1:    # the block's sum comes a cycle later
                    total = delay(m, total, 1, f"{stem}_exponent_late")
                    either = delay(m, either, 1, f"{stem}_invalid_late")
                scales[-1].append((total, either))
        return scales

    def _block_sums(self, m, late, addresses):
        """Sums of whole blocks: those of the column, or of several passes where blocks are longer."""
        design, kc = self.design, self.design.group[1]
        if design.block_tiles == 1:
            return self.sums
        width = design.format.sum_width(design.format.terms)
        m.submodules.partial = bank = Ram(design.depth, kc * width)
        total = Signal(ArrayLayout(signed(width), kc), reset_less=True)
        m.d.comb += [bank.r_en.eq(1), bank.r_addr.eq(addresses[0]), bank.w_en.eq(late[2].valid),
                     bank.w_addr.eq(addresses[2]), bank.w_data.eq(total)]
        for column in range(kc):
            before = Signal(signed(width), name=f"before{column}")
            m.d.comb += before.eq(Mux(late[1].opens, 0, bank.r_data.word_select(column, width)))
            m.d.sync += total[column].eq(before + self.sums[0][column])
        return [total]

    def _chain(self, m, column, acc, step):
        """Segments of one column in ascending order, each ``h`` cycles after the last.

        The bank's write port registers the last one's sum.
        """
        between = self.design.height // self.design.group[0] - sum_registers(self.design)
        for s in range(self.design.segments):
            acc = step(s, delay(m, acc, between, f"c{column}_acc{s}") if s else acc)
        return acc

    def _add_fp32(self, m, column, acc, scales, blocks):
        def step(s, acc):
            exponent, invalid = scales[s][column]
            m.submodules[f"convert{s}_{column}"] = convert = IntToFp32(blocks[s][column].shape().width, len(exponent))
            product = Signal(32, name=f"s{s}_c{column}_product", reset_less=True)
            m.d.comb += [convert.i.eq(blocks[s][column]), convert.exponent.eq(exponent), convert.invalid.eq(invalid)]
            m.d.sync += product.eq(convert.o)
            return self._float_add(m, column, s, acc, product)
        return self._chain(m, column, acc, step)

    def _float_add(self, m, column, s, acc, value):
        m.submodules[f"add{s}_{column}"] = add = Add(
            pipeline=sum_registers(self.design), enable=False, **sum_rules(self.design))
        m.d.comb += [add.a.eq(acc), add.b.eq(value)]
        return add.o

    def _add_aligned(self, m, column, acc, fresh, scales, blocks):
        design = self.design

        def step(s, acc):
            exponent, invalid = scales[s][column]
            m.submodules[f"align{s}_{column}"] = align = AlignAdd(
                blocks[s][column].shape().width, design.accumulator_width, design.guard, len(exponent))
            m.d.comb += [align.fresh.eq(fresh if s == 0 else 0), align.acc.eq(acc), align.sum.eq(blocks[s][column]),
                         align.exponent.eq(exponent), align.invalid.eq(invalid)]
            return align.o
        return self._chain(m, column, acc, step)

    def _add_plain(self, m, column, acc):
        if self.design.arithmetic != "int":
            return self._float_add(m, column, 0, acc, self.sums[0][column])
        total = Signal(accumulator_shape(self.design), name=f"c{column}_acc")
        m.d.comb += total.eq(acc.as_signed() + self.sums[0][column])
        return total

    def _result(self, m, column, word):
        design = self.design
        if design.accumulate != "aligned":
            return word
        acc = Signal(accumulator_shape(design), name=f"c{column}_out")
        m.submodules[f"convert_{column}"] = convert = IntToFp32(design.accumulator_width, sum_exponent_width(design))
        m.d.comb += [Cat(acc).eq(word), convert.i.eq(acc.sum), convert.exponent.eq(acc.exponent),
                     convert.invalid.eq(acc.invalid)]
        return convert.o
