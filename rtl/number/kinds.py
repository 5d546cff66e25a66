"""Kinds of number by the name that a design gives them, and how their sums add up."""

from hbfp.design import FLOAT_SUMS
from hbfp.golden.spec.floats import FloatFormat

from ..fixed.scales import Scales
from ..lib.stages import Stages
from .accumulation import AlignedSum, ScaledSum
from .bf16 import Bf16, Fp16
from .fp32 import Fp32, Fused
from .integer import Integer
from .recoded import Recoded
from .sparse import Sparse, SparseRecoded

#: Arithmetic of a design -> floats that its elements compute with.
FLOATS = {kind.NAME: kind for kind in (Fp32, Fused, Bf16, Fp16)}
#: How integer products are formed -> integers, or mantissas, that elements compute with.
INTEGERS = {"plain": Integer, "recoded": Recoded}
#: The same where commands may have sparse weights.
SPARSE = {"plain": Sparse, "recoded": SparseRecoded}


def number_of(design):
    """The kind of number that the elements of a design compute with."""
    if design.arithmetic in FLOATS:
        return FLOATS[design.arithmetic].of(design)
    stages = Stages.of(design)
    more = {"lead": stages.element} | ({"quick": True} if design.multiplier == "recoded" and stages.free else {})
    if design.takes_sparse:
        kept, group = design.sparse
        return SPARSE[design.multiplier](design.lane_width, kept=kept, group=group, **more)
    return INTEGERS[design.multiplier](design.lane_width, **more)


def accumulation_of(design):
    """How the sums of a design's passes add up."""
    if not design.blocked:
        return number_of(design).accumulation(design)
    stages = Stages.of(design)
    if design.aligned:
        return AlignedSum(design.accumulator_width, design.guard, Scales.of(design).sum,
                          design.scale_cols if design.share == 1 else 1, stages.align, stages.leaving,
                          int(stages.free))
    return ScaledSum("flush", stages.sum, fmt=FloatFormat(fraction=FLOAT_SUMS[design.accumulate]),
                     term=stages.term, chain=design.on_fpga)
