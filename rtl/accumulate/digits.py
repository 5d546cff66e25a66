"""Sums of digits of wide mantissas: shifted and added before anything is rounded."""

from dataclasses import dataclass

from amaranth import Signal, signed

from hbfp.format import HBFPFormat

from ..lib.names import parameter


@dataclass(frozen=True)
class Digits:
    """Joins the sums of the digits of wide mantissas; docs/design/08-wide.md.

    The two digits of a weight lie in two columns, the low one in the even column, which gives the whole. The two digits
    of an element of X come in two beats of a row, the high one first: what it gives is held until that of the low one
    comes. Odd columns give products of their own in commands without wide mantissas, and nothing of use in others.

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
        """The digits of a design's segments, or of those that a dense block takes; None if it has no wide mantissas."""
        return cls(design.format.mantissa, design.wide, design.height * design.joined) if design.wide else None

    def _sum(self, a, b):
        """Shape of a sum of products of numbers of magnitudes ``a`` and ``b`` at most."""
        return signed((self.terms * a * b).bit_length() + 1)

    def join(self, m, stem, sums, beat):
        """Sums of whole mantissas, in the cycle in which those of a row's last digits come.

        Parameters
        ----------
        m : Module
        stem : str
            Prefix of names, unique in ``m``.
        sums : list of Value
            The sums of the columns, of which there is an even number.
        beat : View
            About the row whose sums they are: ``high``, ``waits``, ``pair`` of ``beat_layout``.
        """
        shift = self.narrow - 1
        low, wide = (HBFPFormat(mantissa=bits).limit for bits in (self.narrow, self.wide))
        high = min(low, -(-wide >> shift))    # largest magnitude of a high digit
        totals = list(sums)
        for n in range(0, len(sums), 2):
            width = self._sum(low, high).width
            beside = (sums[n + 1].as_unsigned()[:width] & beat.pair.replicate(width)).as_signed()
            row = Signal(self._sum(low, wide), name=f"{stem}_row{n}")
            held = Signal(self._sum(high, wide), name=f"{stem}_held{n}", reset_less=True)
            total = Signal(self._sum(wide, wide), name=f"{stem}_total{n}")
            width = len(held)
            m.d.comb += [row.eq(sums[n] + (beside << shift)), total.eq(row + (held << shift))]
            # After low digits, or where there are but those, nothing is held.
            m.d.sync += held.eq((row.as_unsigned()[:width] & beat.high.replicate(width))
                                | (held.as_unsigned() & beat.waits.replicate(width)))
            totals[n] = total
        return totals
