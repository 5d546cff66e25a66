"""Sums of digits of wide mantissas: shifted and added before anything is rounded."""

from dataclasses import dataclass

from amaranth import Signal, signed

from hbfp.format import HBFPFormat

from ..lib.names import parameter


@dataclass(frozen=True)
class Digits:
    """Joins the sums of the digits of wide mantissas; docs/design/08-wide.md.

    The two digits of an element of X come in two beats of a row, the high one first: its sum is held until that of the
    low one comes. The two digits of a weight lie in two columns, the low one in the even column, which gives the whole.

    Parameters
    ----------
    narrow, wide : int
        Bits of a digit and of a mantissa.
    terms : int
        Products in a sum.
    """
    NAME = "digits"
    narrow: int = parameter("m")
    wide: int = parameter("v")
    terms: int = parameter("t")

    @classmethod
    def of(cls, design):
        """Those of a design's segments; None if it has no wide mantissas."""
        return cls(design.format.mantissa, design.wide, design.height) if design.wide else None

    @property
    def shift(self):
        """Bits by which a high digit counts more than a low one."""
        return self.narrow - 1

    def _bits(self, a, b):
        """Bits of a sum of products of numbers of magnitudes ``a`` and ``b`` at most."""
        return (self.terms * a * b).bit_length() + 1

    @property
    def _limits(self):
        """Largest magnitudes: of a low digit or narrow mantissa, of a high digit, of a wide mantissa."""
        low, wide = (HBFPFormat(mantissa=bits).limit for bits in (self.narrow, self.wide))
        return low, min(low, -(-wide >> self.shift)), wide

    def columns(self, count):
        """Shapes of the sums of so many columns: even ones give products of weights of either width."""
        low, _, wide = self._limits
        return [signed(self._bits(wide, low if n % 2 else wide)) for n in range(count)]

    def join(self, m, stem, sums, beat):
        """Sums with all digits; in the cycle in which those of the last digit come.

        Parameters
        ----------
        m : Module
        stem : str
            Prefix of names, unique in ``m``.
        sums : list of Value
            Of the columns, an even number of them.
        beat : View
            About the row whose sums they are: ``high``, ``waits``, ``pair`` of ``beat_layout``.
        """
        low, high, wide = self._limits
        held_bits, pair_bits = self._bits(high, low), self._bits(wide, high)
        shapes, totals = self.columns(len(sums)), []
        for n, value in enumerate(sums):
            # After a low digit, or where there is but one, nothing is held.
            held = Signal(signed(held_bits), name=f"{stem}_held{n}", reset_less=True)
            m.d.sync += held.eq((value.as_unsigned()[:held_bits] & beat.high.replicate(held_bits))
                                | (held.as_unsigned() & beat.waits.replicate(held_bits)))
            row = Signal(signed(self._bits(wide, low)), name=f"{stem}_row{n}")
            m.d.comb += row.eq(value + (held << self.shift))
            totals.append(row)
        for n in range(0, len(sums), 2):
            beside = (totals[n + 1].as_unsigned()[:pair_bits] & beat.pair.replicate(pair_bits)).as_signed()
            total = Signal(shapes[n], name=f"{stem}_total{n}")
            m.d.comb += total.eq(totals[n] + (beside << self.shift))
            totals[n] = total
        return totals
