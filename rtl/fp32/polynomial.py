"""Piecewise polynomial: coefficient ROM and fixed-point Horner scheme, for any table format."""

from amaranth import Cat, Const, Module, Signal, Value, signed, unsigned

from hbfp.golden.spec.tables import TableFormat

from .times import times


def _shape(low, high):
    """Smallest shape that holds ``low..high``."""
    if low >= 0:
        return unsigned(max(high.bit_length(), 1))
    return signed(max(high.bit_length(), (-low - 1).bit_length()) + 1)


def _bounds(form, segments):
    """Ranges of the Horner values, highest degree first; the last is the polynomial's."""
    low = high = None
    result = []
    for i in range(form.degree, -1, -1):
        column = [segment[i] for segment in segments]
        if low is None:
            low, high = min(column), max(column)
        else:
            # |tau| is at most 1/2; a floor adds at most one unit to the magnitude.
            reach = (max(-low, high) << 8 >> (9 + form.fraction[i + 1] - form.fraction[i])) + 1
            low, high = min(column) - reach, max(column) + reach
        result.append((low, high))
    return result


class Polynomial:
    """One table's ROM and evaluator, built into a module piece by piece so that registers fit between.

    Parameters
    ----------
    m : Module
    form : TableFormat
    segments : sequence of tuple of int
        Coefficients of every segment in address order, constant first.
    name : str
        Prefix of the signals.
    multiplier : str
        As in :class:`~rtl.fp32.times.Times`.
    """

    def __init__(self, m: Module, form: TableFormat, segments, name: str, multiplier: str = "plain"):
        self.m, self.form, self.segments, self.name, self.multiplier = m, form, segments, name, multiplier
        columns = list(zip(*segments, strict=True))
        self.shapes = [_shape(min(column), max(column)) for column in columns]
        self.bounds = _bounds(form, segments)

    def rom(self, address: Value):
        """Coefficients of a segment, constant first. Addresses beyond the last give the last."""
        word = Signal(sum(shape.width for shape in self.shapes), name=f"{self.name}_rom")
        with self.m.Switch(address):
            for index, segment in enumerate(self.segments):
                with self.m.Case(index) if index < len(self.segments) - 1 else self.m.Default():
                    self.m.d.comb += word.eq(Cat(Const(c, s) for c, s in zip(segment, self.shapes, strict=True)))
        result, start = [], 0
        for i, shape in enumerate(self.shapes):
            coefficient = Signal(shape, name=f"{self.name}_c{i}")
            self.m.d.comb += coefficient.eq(word[start:start + shape.width])
            start += shape.width
            result.append(coefficient)
        return result

    def position(self, word: Value):
        """tau of a table word: its low bits about the middle of the segment."""
        width = self.form.position
        t = Signal(signed(width), name=f"{self.name}_t")
        self.m.d.comb += t.eq(Cat(word[:width - 1], ~word[width - 1]))
        return t

    def step(self, degree: int, value: Value, coefficient: Value, t: Value):
        """One Horner step: coefficient + value * tau, with the coefficient's fraction bits."""
        form = self.form
        used = form.used[degree]
        top = Signal(signed(used), name=f"{self.name}_t{degree}")
        low, high = self.bounds[form.degree - degree]
        if degree == 0:
            low = max(low, 0)    # every table holds positive functions
        total = Signal(_shape(low, high), name=f"{self.name}_value{degree}")
        drop = used + form.fraction[degree + 1] - form.fraction[degree]
        product = times(self.m, value, top, f"{self.name}_times{degree}", drop, self.multiplier)
        self.m.d.comb += [top.eq(t[form.position - used:]), total.eq(coefficient + product)]
        return total
