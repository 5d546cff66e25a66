"""What a design is compared with: the same core for other numbers, made by the same generator."""

from dataclasses import replace

from hbfp.arithmetic import KINDS
from hbfp.design import Design
from hbfp.format import HBFPFormat

#: Arithmetic -> the name that tables print.
BASELINES = {name: kind.title for name, kind in KINDS.items() if not kind.blocked}


def baseline(design, arithmetic, group=None, pipeline=0):
    """The same core for other numbers: shape, dataflow and group alike.

    Floats have no blocks, so a block that cut the columns into segments does not cut theirs.
    """
    fmt = HBFPFormat(mantissa=design.format.mantissa) if KINDS[arithmetic].exact else HBFPFormat()
    return replace(design, format=fmt, arithmetic=arithmetic, group=group or design.group, pipeline=pipeline,
                   accumulate=Design.accumulate, share=Design.share, guard=Design.guard, growth=Design.growth,
                   wide=Design.wide, sparse=Design.sparse)
