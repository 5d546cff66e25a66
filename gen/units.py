# amaranth: UnusedElaboratable=no
"""Parts that can be emitted alone, by name: those of a core, FP32 and vector units, dispatcher, networks."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hbfp.design import ConflictError, Design
from hbfp.rtl.accumulate.accumulator import Accumulator
from hbfp.rtl.accumulate.block_sum import BlockSum
from hbfp.rtl.accumulate.shared_accumulator import SharedAccumulator
from hbfp.rtl.accumulate.shared_control import SharedControl
from hbfp.rtl.array.array import Array, GroupRow
from hbfp.rtl.array.dot_product import DotProduct
from hbfp.rtl.array.pe import Group
from hbfp.rtl.array.sparse_weights import SparseWeightBuffer
from hbfp.rtl.array.weights import WeightBuffer
from hbfp.rtl.convert.credit_encode import CreditEncode
from hbfp.rtl.convert.encode import Encode
from hbfp.rtl.convert.encode_lane import EncodeLane
from hbfp.rtl.convert.noise import Xorshift32
from hbfp.rtl.convert.numbers import Numbers
from hbfp.rtl.convert.prune import Prune
from hbfp.rtl.core.core import Core, interval
from hbfp.rtl.core.credit_drain import CreditDrain
from hbfp.rtl.core.drain import Drain
from hbfp.rtl.core.placement import Placement
from hbfp.rtl.core.sequencer import Sequencer
from hbfp.rtl.core.side import SideLane
from hbfp.rtl.dispatch.dispatcher import Dispatcher
from hbfp.rtl.fixed.align import AlignAdd
from hbfp.rtl.fp32.units import FP32_UNITS
from hbfp.rtl.lib.component import Component
from hbfp.rtl.lib.stages import Stages
from hbfp.rtl.pods.benes import Benes
from hbfp.rtl.pods.butterfly import Butterfly
from hbfp.rtl.pods.crossbar import Crossbar
from hbfp.rtl.vector.hbfp import VectorHBFP
from hbfp.rtl.vector.unit import VECTOR_UNITS
from hbfp.values import OptionError, flag, refuse, shown

#: Parts of a core: name -> component, which takes its parameters from a design.
CORE_UNITS = {
    "core": Core,
    "group": Group,
    "row": GroupRow,
    "array": Array,
    "accumulator": Accumulator,
    "block_sum": BlockSum,
    "shared_accumulator": SharedAccumulator,
    "shared_control": SharedControl,
    "weights": WeightBuffer,
    "sparse_weights": SparseWeightBuffer,
    "placement": Placement,
    "sequencer": Sequencer,
    "drain": Drain,
    "side": SideLane,
    "align": AlignAdd,
    "prune": Prune,
    "encode": Encode,
    "encode_lane": EncodeLane,
    "dot_product": DotProduct,
    "dot_product.both": DotProduct,
    "vector.hbfp": VectorHBFP,
    "xorshift32": Xorshift32,
    "numbers": Numbers,
}
#: Those of them that are others where nothing stalls.
FREE_OF_STALLS = {"drain": CreditDrain, "encode": CreditEncode}
#: What a name means beside the component.
MORE = {"sequencer": lambda design: (interval(design),), "dot_product.both": lambda design: (True,)}

#: Networks between pods and banks.
NETWORKS = {"butterfly": Butterfly, "crossbar": Crossbar, "benes": Benes}
#: Units that belong to no design: name -> constructor from keywords.
FREE_UNITS: dict[str, Any] = FP32_UNITS | VECTOR_UNITS | {"dispatch": Dispatcher} | NETWORKS
#: Parameters whose option has another name: a network has a port for each pod.
OPTIONS_OF = {"ports": "pods"}


def options_of(name: str) -> dict[str, str]:
    """Option -> parameter of the unit of that name which belongs to no design; its name may stand for some of them."""
    make = FREE_UNITS[name]
    fixed = getattr(make, "keywords", {})
    return {OPTIONS_OF.get(item.name, item.name): item.name
            for item in fields(getattr(make, "func", make).Parameters)
            if item.name not in fixed and (item.name != "functions" or make is VECTOR_UNITS["vector"])}


def make_part(name: str, options: Mapping[str, Any]) -> Component:
    """The unit of that name which belongs to no design, from the options that the user gave.

    Raises
    ------
    OptionError
        If it has no such option, or not that value.
    """
    make, parameters = FREE_UNITS[name], options_of(name)
    if name in VECTOR_UNITS:    # always flush
        options = {option: value for option, value in options.items() if (option, value) != ("subnormals", "flush")}
    for option, value in options.items():
        if option not in parameters:
            given = flag(option) + ("" if value is True else f" {shown(value)}")
            raise OptionError(f"{given}: must not be given, {name} has none")
    try:
        return make(**{parameters[option]: value for option, value in options.items()})
    except ValueError as error:
        blame = [f"{flag(option)} {shown(value)}" for option, value in options.items()] if len(options) == 1 else []
        raise OptionError(f"{blame[0] if blame else f'--unit {name}'}: {error}") from None


def make_unit(name: str, design: Design) -> Component:
    """The component of that name.

    Raises
    ------
    OptionError
        If there is none, or the design has none.
    """
    if name not in CORE_UNITS:
        raise refuse("unit", name, f"must be one of {', '.join((*CORE_UNITS, *FREE_UNITS))}")
    component = (FREE_OF_STALLS if Stages.of(design).free else {}).get(name, CORE_UNITS[name])
    if component.blocked and not design.blocked:
        raise OptionError(f"--unit {name}: must be a part of --arithmetic {design.arithmetic}, which has no blocks")
    try:
        return component.of(design, *MORE.get(name, lambda design: ())(design))
    except ConflictError as error:
        raise OptionError(f"--{error.name} {error.value}: {error.rule}") from None
    except ValueError as error:
        raise OptionError(f"--unit {name}: {error}") from None
