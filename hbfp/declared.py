"""What is declared of a field, whatever its kind: :mod:`hbfp.fields` has the kinds.

Beside it stands what a field may serve: kinds of cores, and the systems around them.
"""

from dataclasses import dataclass
from typing import Any

from . import values

#: Where a dataclass field keeps what was declared.
KEY = "declared"
#: Place of a field in a name where none is given: behind the others, so that old names stay.
LAST = 100
#: What a core may be: its elements share exponents, or are floats, or integers whose sums leave as FP32 or as they are.
BLOCKS, FLOATS, SCALED, INTEGERS = CORES = "blocks", "floats", "scaled integers", "integers"
#: What a core may be a part of.
ACCELERATOR, PODS = SYSTEMS = "accelerator", "pods"
#: What a field may serve, and how the line goes on that says where it does not.
USES = {**{name: "where arithmetic is {0.arithmetic}" for name in CORES}, ACCELERATOR: "in an accelerator",
        PODS: "in a pod"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """What is known of a field beside its name and its default.

    Parameters
    ----------
    text : str
        What it is, in the words of ``--help`` and of tables.
    title : str
        What messages of a description call it.
    unit : str
        Of the value, with a space before it, or nothing.
    usual : str
        What a default of None stands for, in words.
    tag : str, optional
        What stands before its value in a name; None keeps it out of names.
    place : int
        Where in the name, counted from the left.
    always : bool
        Whether names have it even at its default.
    where : str, optional
        The property of the description that is named which says whether the field has an effect; always by default.
    serves : tuple of str
        Those of :data:`USES` in which it may have another value than its default: any core, and no system around one,
        unless said.
    rare : bool
        Whether comments in Verilog leave it out at its default.
    """
    text: str
    title: str
    unit: str = ""
    usual: str = ""
    tag: str | None = None
    place: int = LAST
    always: bool = False
    where: str | None = None
    serves: tuple[str, ...] = CORES
    rare: bool = False

    #: Of the command line: what stands for a value.
    METAVAR = "N"

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        raise NotImplementedError

    def check(self, value: Any) -> Any:
        """The value, or ValueError."""
        raise NotImplementedError

    def read(self, name: str, value: Any) -> Any:
        """The value from text or a file's data, or OptionError."""
        raise NotImplementedError

    @property
    def help(self) -> str:
        """The text of ``--help``."""
        return f"{self.text}, {self.valid}"

    def default(self, value: Any) -> str:
        """The default in words."""
        return self.usual or self.spelled(value)

    def argument(self, default: Any) -> dict[str, Any]:
        """Keywords of ``add_argument``."""
        return {"metavar": self.METAVAR, "help": f"{self.help} (default {self.default(default)})"}

    def spelled(self, value: Any) -> str:
        """The value as the command line takes it."""
        return str(value)

    def words(self, name: str, value: Any) -> list[str]:
        """The command line's words for the value."""
        return [values.flag(name), self.spelled(value)]

    def named(self, value: Any) -> str:
        """The value as a name has it."""
        return str(value)
