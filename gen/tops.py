# amaranth: UnusedElaboratable=no
"""What can be at the top of the Verilog: a core, or a system of cores; each is described by a dataclass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hbfp import describe
from hbfp.design import ConflictError, Design
from hbfp.isa.rdl import header_of, map_of, rdl
from hbfp.isa.registers import described
from hbfp.options import OPTIONS
from hbfp.pods import PodsDesign
from hbfp.rtl.accelerator.accelerator import Accelerator as AcceleratorTop
from hbfp.rtl.core.core import Core
from hbfp.rtl.lib.component import Component
from hbfp.rtl.pods.pods import Pods
from hbfp.system import Accelerator
from hbfp.values import OptionError


@dataclass(frozen=True)
class Top:
    """One kind of top.

    Attributes
    ----------
    description : type
        Of :mod:`hbfp.fields`: :class:`hbfp.design.Design`, or a dataclass that has one nested as ``core``.
    component : type
        Of :class:`rtl.lib.component.Component`; its ``of`` takes the description.
    facts : callable
        From the description to further fields of the manifest.
    beside : callable
        From the description to further files: name -> text.
    """
    description: type[describe.Description]
    component: type[Component]
    facts: Callable[[Any], dict[str, Any]] = lambda description: {}
    beside: Callable[[Any], dict[str, str]] = lambda description: {}

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that it has beside those of a design."""
        return tuple(name for name in describe.declared(self.description) if name not in OPTIONS)


#: Name on the command line -> what is built.
TOPS = {"core": Top(Design, Core),
        "accelerator": Top(Accelerator, AcceleratorTop,
                           lambda system: {"accelerator": system,
                                           "registers": described(*map_of(system))},
                           lambda system: {"registers.rdl": rdl(*map_of(system)),
                                          "hbfp_accelerator.h": header_of(system)}),
        "pods": Top(PodsDesign, Pods)}


def make_top(name: str, description: describe.Description) -> Component:
    """The component of a top.

    Raises
    ------
    OptionError
        If it cannot be built of these values; one line.
    """
    try:
        return TOPS[name].component.of(description)
    except ConflictError as error:
        raise OptionError(f"--{error.name} {error.value}: {error.rule}") from None
