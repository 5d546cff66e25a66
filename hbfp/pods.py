"""A machine of many pods, as data: what the generator emits and the compiler of programs aims at."""

import hashlib
import json
from dataclasses import asdict, dataclass

from . import describe
from .declared import PODS
from .design import ConflictError, Design
from .fields import choice, nested, whole

#: Networks between pods and banks, by name.
INTERCONNECTS = ("butterfly-1", "butterfly-2", "butterfly-4", "butterfly-8", "butterfly-16", "crossbar", "benes")


@dataclass(frozen=True, kw_only=True)
class PodsDesign(describe.Description):
    """Pods, each with the array of a core, and their banks; docs/design/10-pods.md.

    Parameters
    ----------
    core : Design
        The array of a pod, and the number format. What a pod does not have keeps its default.
    pods : int
        Pods, banks of each kind and post-processors; a power of two.
    interconnect : str
        The networks between pods and banks.
    bank : int
        Rows of tiles that each bank holds.
    rounds : int
        Words of each schedule memory: rounds of the longest program.

    Raises
    ------
    ValueError
        If a value is out of range or two contradict each other.
    """
    #: A block's sum leaves a pod with its operation.
    SHORT_BLOCKS = True

    core: Design = nested(Design)
    pods: int = whole(8, 2, 256, title="Pods", text="pods, banks of each kind and post-processors, a power of two")
    interconnect: str = choice("butterfly-2", INTERCONNECTS, title="Interconnect",
                               text="networks between pods and banks")
    bank: int = whole(2048, 2, 65536, title="Bank", unit=" rows", text="rows of tiles in each bank")
    rounds: int = whole(2048, 2, 65536, title="Rounds", text="rounds of the longest program")

    def __post_init__(self):
        describe.check(self)
        if self.pods & (self.pods - 1):
            raise ConflictError("pods", self.pods, "must be a power of two")
        core, fmt = self.core, self.core.format
        core.require(PODS)
        if core.cols != core.rows:
            raise ConflictError("cols", core.cols, f"must be {core.rows} in a pod")
        if fmt.rounding == "stochastic":
            raise ConflictError("rounding", fmt.rounding, "must be rne or truncate in a pod")
        if fmt.square or core.rows % fmt.terms:
            raise ConflictError("block", fmt.block, f"must be 1,B in a pod, B a divisor of {core.rows}")
        if self.bank < core.rows:
            raise ConflictError("bank", self.bank, f"must hold a tile of {core.rows} rows")

    @property
    def name(self) -> str:
        """Name of the top module."""
        return f"{self.core.name}_pods{self.pods}_{self.interconnect.replace('-', '')}_k{self.bank}_t{self.rounds}"

    @property
    def key(self) -> int:
        """32 bits that tell this machine from others; programs carry them."""
        text = json.dumps(asdict(self), sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    def words(self) -> list[str]:
        """The generator's words for this machine."""
        return ["--top", "pods", *super().words()]
