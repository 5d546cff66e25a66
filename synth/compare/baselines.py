"""What a design is compared with: the same core for other numbers, made by the same generator."""

from hbfp import describe
from hbfp.arithmetic import KINDS
from hbfp.design import Design

#: Arithmetic -> the name that tables print.
BASELINES = {name: kind.title for name, kind in KINDS.items() if not kind.blocked}


def baseline(design: Design, arithmetic: str, group: tuple[int, int] | None = None, pipeline: int = 0) -> Design:
    """The same core for other numbers: shape, dataflow and group alike.

    What does not serve such a core has its default. Floats have no blocks, so a block that cut the columns into
    segments does not cut theirs. Without registers it is built for gates.
    """
    values = describe.flat(design) | {"arithmetic": arithmetic, "group": group or design.group, "pipeline": pipeline}
    left_out = {*describe.unserved(Design, KINDS[arithmetic].use), *(() if pipeline else ("fabric",))}
    return describe.build(Design, {name: value for name, value in values.items() if name not in left_out})
