"""The texts that there are, each a list of steps from what Yosys writes: one operator a line, a number for each.

Their logic is the same (``python -m benchmarks.same_logic --text`` proves it). Areas are measured on the plain text,
since Yosys and ABC map equal logic to areas that differ with the order in which they meet operators; people get the
other one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .fields import explained
from .fold import fold
from .module import Module
from .naming import name
from .processes import together
from .simplify import clocked, gathered, named, neat, once, without_unread
from .text import in_order


@dataclass(frozen=True)
class Text:
    """One of the texts.

    Attributes
    ----------
    steps : tuple of callable
        Each changes a module.
    people : bool
        Whether logic stands in the order of the source, and comments tell what is in the bits of packed names.
    """
    steps: tuple[Callable[[Module], None], ...]
    people: bool = False


#: What ``--text`` may be.
TEXTS = {
    "readable": Text((gathered, named, without_unread, clocked, once, without_unread, fold, gathered, neat, together,
                      name, in_order, explained), people=True),
    "plain": Text((partial(without_unread, names=False),)),
}
#: What users get.
DEFAULT = "readable"
