"""A value in a signal of its own."""

from amaranth import Signal


def named(m, value, name=None):
    """Give ``value`` a signal, so that using it twice does not emit it twice."""
    signal = Signal(value.shape(), name=name, src_loc_at=1)
    m.d.comb += signal.eq(value)
    return signal
