"""What an accelerator costs and how long networks take on it: a point of the space that ``golden balance`` searches.

Logic is what was measured of accelerators of 32 x 32 for HBFP8 by the lanes and evaluators of their vector units, less
what fewer side lanes and functions take away (``vector_lanes.json`` and ``core_options.json`` of the figures).
Memories are those of the manifest, as macros of their words, width and ports (:mod:`hbfp.macros`). Cycles are the cycle
model's.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from hbfp import describe, files, generator, macros
from hbfp.design import Design
from hbfp.figures import figure
from hbfp.generator import GeneratorError
from hbfp.isa.vector_words import loaded, loads
from hbfp.manifest import Manifest, core_latency
from hbfp.options import design_from_values
from hbfp.program import Program
from hbfp.system import FUNCTIONS, Accelerator
from hbfp.values import OptionError, refuse

from ...lower.command import lowered
from ...spec.vector import KIND, POSTS, Kind, field_values
from ..accelerator.command import lowered_step
from ..accelerator.steps import key

#: Cycles to the first beat of DRAM.
LATENCY = 32
#: What stands before the name of a training, of which a step counts.
TRAIN = "train:"
#: How the command calls a network.
NAME = "NETWORK"


@dataclass(frozen=True)
class Point:
    """An accelerator, NAND2-equivalents of its logic and of its memories, and cycles of each network.

    A network that its memories are too small for has None, with the reason in ``refused``.
    """
    values: dict[str, Any]
    logic: float
    memories: float
    cycles: dict[str, int | None]
    refused: str = ""

    @property
    def area(self) -> float:
        """Everything."""
        return self.logic + self.memories

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"values": self.values, "options": options(self.values),
                "logic": self.logic, "memories": self.memories, "all": self.area, "cycles": self.cycles,
                "refused": self.refused}


def lanes() -> list[tuple[int, int]]:
    """Lanes of the vector unit and evaluators of functions of which the logic was measured."""
    return [(int(each["lanes"]), int(each["functions"])) for each in figure("vector_lanes.lanes").values()]


def side_lanes() -> list[int]:
    """Side lanes of which it was."""
    return [int(name[1:]) for name in figure("core_options.side")]


def logic(system: Accelerator) -> float:
    """NAND2-equivalents of an accelerator's logic.

    Raises
    ------
    ValueError
        If no such accelerator was measured.
    """
    core = system.core
    if (core.rows, core.cols, core.format, core.share) != (32, 32, Design().format, 1):
        raise ValueError("Logic was measured of accelerators of 32 x 32 for HBFP8")
    found = {pair: each["all"] for pair, each in zip(lanes(), figure("vector_lanes.lanes").values(), strict=True)}
    pair, side = (system.unit_lanes, system.evaluators), f"l{core.cols // core.side_turns}"
    sides = figure("core_options.side")
    if pair not in found or side not in sides:
        raise ValueError(f"No logic was measured of {pair[0]} lanes with {pair[1]} evaluators and side lanes "
                         f"{side[1:]}")
    saved = sides["l32"]["side"] - sides[side]["side"]
    return float(found[pair] - saved - system.evaluators * _left_out(system.functions))


def _left_out(functions: Sequence[str]) -> float:
    """What an evaluator has less without the others, by the smallest measured list that has these."""
    known = figure("core_options.functions")
    lists = {name: FUNCTIONS if name == "all" else tuple(each["title"].strip("`").split(","))
             for name, each in known.items() if name != "none"}
    fitting = [known[name]["evaluator"] for name, names in lists.items() if set(functions) <= set(names)]
    return float(known["all"]["evaluator"] - (min(fitting) if functions else 0))


def memories(system: Accelerator) -> float:
    """NAND2-equivalents of its memories."""
    folder = generator.emitted(system.name, ["--top", "accelerator", *system.words()])
    return sum(each.count * macros.memory(*each.shape).area for each in Manifest.load(folder).modules.values()
               if each.shape)


def accelerator(values: dict[str, Any]) -> Accelerator:
    """The accelerator of these options; ValueError if they contradict each other."""
    return design_from_values(values, Accelerator)


def options(values: dict[str, Any]) -> str:
    """What a command is told of it: options that differ from their defaults."""
    kinds, usual = describe.declared(Accelerator), describe.flat(Accelerator())
    return " ".join(word for name, value in describe.flat(accelerator(values)).items() if value != usual[name]
                    for word in kinds[name][0].words(name, value))


def functions(network: str) -> list[str]:
    """Functions that a network needs of the vector unit."""
    def made():
        try:
            program = _program(network, Accelerator())
        except OptionError:
            raise
        except ValueError as error:
            raise refuse(NAME, network, str(error)) from None
        words = {word for each in program.instructions if loads(each) for _, brought in loaded(program, each)
                 if brought is not None for word in brought}
        posts = {POSTS[field_values(word)["post"]] for word in words if word >> KIND in (Kind.VECTOR, Kind.SCALAR)}
        return [name for name in FUNCTIONS if name in posts]
    return _kept([network, "functions"], made)


def cycles(network: str, system: Accelerator) -> int:
    """Cycles of a network; ValueError if it does not fit."""
    from ..accelerator.model import times  # with Numba

    return times(_program(network, system), core_latency(system.core), LATENCY, system.beat).cycles


def _program(network: str, system: Accelerator) -> Program:
    """A network's program for an accelerator, or that of a step of training, whose numbers do not matter."""
    if network.startswith(TRAIN):
        program, = lowered_step(network.removeprefix(TRAIN), system, NAME, values=False)[1].programs
        return program
    from ...lower.lowering import lower_graph  # with PyTorch

    graph = _graph(network)
    return lowered(network, system, name=NAME).program if graph is None else lower_graph(graph, system).program


@cache
def _graph(network: str) -> Any:
    """A network's graph, which serves all accelerators, since cycles depend on no number; None for a job of several.

    A process traces it once: that takes as long as a program of it.
    """
    from ...lower.graph import traced
    from ...lower.zoo import source

    model, inputs = source(network)
    return None if isinstance(model, list) else traced(model, inputs, Accelerator())


def point(values: dict[str, Any], networks: Iterable[str]) -> Point:
    """What the accelerator of these options costs and takes; kept in the cache, network by network."""
    system, taken, refused = accelerator(values), dict[str, int | None](), ""
    size = float(_kept([system.name, "memories"], lambda: memories(system)))
    for network in networks:
        try:
            taken[network] = int(_kept([system.name, network], partial(cycles, network, system)))
        except GeneratorError:
            raise
        except ValueError as error:
            taken[network], refused = None, f"{network}: {error}"
    return Point(values, logic(system), size, taken, refused)


def _kept(words: list[str], make: Callable[[], Any]) -> Any:
    """What ``make`` gives, from the cache where it has been found before with the same files of ours."""
    path = files.cache("balance") / f"{files.key(*words, generator.key(), _lowering())}.json"
    if path.is_file():
        return json.loads(path.read_text())
    path.parent.mkdir(parents=True, exist_ok=True)
    value = make()
    files.write_json(path, value)
    return value


@cache
def _lowering() -> str:
    """What stands for the files that a program and its cycles follow from, beside the generator's."""
    golden = Path(__file__).parents[2]
    parts = ("lower", "ops", "vector", "spec")
    return files.key(key(), *(path.read_bytes() for part in parts for path in sorted((golden / part).rglob("*.py"))))


def front(points: Iterable[Point], network: str) -> list[Point]:
    """Points that no other beats in both area and cycles of a network, the smallest first."""
    found: list[Point] = []
    fit = [each for each in points if each.cycles[network] is not None]
    for each in sorted(fit, key=lambda each: (each.area, each.cycles[network])):
        if not found or (each.cycles[network] or 0) < (found[-1].cycles[network] or 0):
            found.append(each)
    return found


def beaten(point: Point, points: Iterable[Point]) -> Point | None:
    """The smallest point that is no larger and for no network slower, and better in one of both; None if none is."""
    def beats(other: Point) -> bool:
        pairs = [(mine, other.cycles[name]) for name, mine in point.cycles.items()]
        return other.area <= point.area and all(
            theirs is not None and (mine is None or theirs <= mine) for mine, theirs in pairs) and (
            other.area < point.area or any(mine != theirs for mine, theirs in pairs))
    return min(filter(beats, points), key=lambda each: each.area, default=None)


def smallest(points: Iterable[Point], bounds: dict[str, float]) -> Point | None:
    """The smallest point whose cycles keep the bounds, or None."""
    return min((each for each in points if all((taken := each.cycles[name]) is not None and taken <= bound
                                               for name, bound in bounds.items())),
               key=lambda each: each.area, default=None)
