"""Whole accelerators of other numbers: the same options, as far as they serve, around another array."""

import re
from collections.abc import Mapping

from hbfp import describe
from hbfp.arithmetic import KINDS
from hbfp.declared import ACCELERATOR
from hbfp.design import Design
from hbfp.options import design_from_values
from hbfp.system import NUMBERS, Accelerator
from hbfp.values import OptionError

from ..measure.accelerator import AcceleratorReport

#: HBFP by its mantissa's width.
_HBFP = re.compile(r"hbfp(\d+)")
#: What a number is called that is not said: hbfpW, or an arithmetic.
VALID = f"hbfpW, W bits, {', '.join(name for name in NUMBERS if name != 'hbfp')}"


def name_of(system: Accelerator) -> str:
    """What a machine's number is called here."""
    core = system.core
    return f"hbfp{core.format.mantissa}" if core.blocked else core.arithmetic


def machine(system: Accelerator, name: str) -> Accelerator:
    """The accelerator of another number, all else as it is.

    Parameters
    ----------
    system : Accelerator
    name : str
        ``hbfpW``, W bits, or one of :data:`hbfp.system.NUMBERS`.

    Raises
    ------
    OptionError
        If there is no such number, or an option of the machine does not go with it.
    """
    found = _HBFP.fullmatch(name)
    if not found and (name not in NUMBERS or name == "hbfp"):
        raise OptionError(f"--against {name}: must be of {VALID}")
    arithmetic = "hbfp" if found else name
    values = describe.flat(system) | {"arithmetic": arithmetic} | ({"mantissa": int(found[1])} if found else {})
    unserved = describe.unserved(Design, KINDS[arithmetic].use) | describe.unserved(Design, ACCELERATOR)
    return design_from_values({option: value for option, value in values.items() if option not in unserved},
                              Accelerator)


def ratios(reports: Mapping[str, AcceleratorReport]) -> dict[str, dict[str, float]]:
    """Logic, memories and both of each machine, NAND2-equivalents, and both ratios to the first one's."""
    rows = {name: {"logic": each.logic, "memories": each.memories, "all": each.logic + each.memories}
            for name, each in reports.items()}
    first = next(iter(rows.values()))
    return {name: row | {f"{what}_ratio": row[what] / first[what] for what in ("logic", "all") if first[what]}
            for name, row in rows.items()}
