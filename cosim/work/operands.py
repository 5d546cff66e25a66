"""What a core's ports see of a workload: the payloads of a few of its products, and what the core answers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hbfp import entries, files
from hbfp.design import Design
from hbfp.golden.bfp import Blocks, cut
from hbfp.golden.core import core as golden_core
from hbfp.golden.core.device import quantise

from ..bench.tiling import block_beats
from ..manifest import Manifest
from ..simulate.simulation import Run, Traffic
from .device import Core
from .digits import prepare

#: Name -> what it is; others are models of :mod:`golden.lower.zoo`, or files.
NAMES = {"gaussian": "random normal numbers, a product of 512 x 512 x 512",
         "digits": "the classifier of digits of python -m cosim --bench workload"}
#: Rows of a command, passes of one at most, and commands, of which the first and the last stand beside what is counted.
ROWS, PASSES, COMMANDS = 32, 6, 5
#: Passes of a command that has more rows.
LEAST_PASSES = 2
_GAUSSIAN = 512


@dataclass(frozen=True, eq=False)
class Product:
    """A matrix product of a workload, or a part of one.

    Attributes
    ----------
    name : str
    rows, columns : int
        M and N of the whole product.
    x, w : ndarray of float32
        Rows of X (any of M, K), and W (K, any of N).
    """
    name: str
    rows: int
    columns: int
    x: np.ndarray
    w: np.ndarray

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole product, for as many terms as there are here."""
        return self.rows * self.columns * len(self.w)


def products(name: str) -> list[Product]:
    """The products of a workload.

    Raises
    ------
    ValueError
        If there is none of that name; one line.
    """
    if name == "gaussian":
        rng = np.random.default_rng(0)
        x, w = (rng.standard_normal((_GAUSSIAN, _GAUSSIAN)).astype(np.float32) for _ in range(2))
        return [Product(name, _GAUSSIAN, _GAUSSIAN, x, w)]
    if name == "digits":
        layers, x, _ = prepare()
        found = []
        for number, layer in enumerate(layers, 1):
            found.append(Product(f"layer {number}", len(x), layer.weight.shape[1], x, layer.weight))
            x = x @ layer.weight + layer.bias
            x = np.maximum(x, 0)
        return found
    with np.load(_forward(name)) as data:
        return [Product(f"product {n + 1}", int(rows), data[f"w{n}"].shape[1], data[f"x{n}"], data[f"w{n}"])
                for n, rows in enumerate(data["rows"])]


def _forward(name):
    """The file of a model's products, from the cache or into it: some models are trained first."""
    from hbfp.golden import lower, study

    def make(folder):
        from hbfp.golden.lower.operands import recorded  # needs PyTorch

        found = recorded(name)
        arrays = {f"x{n}": x for n, (_, x, _) in enumerate(found)} | {f"w{n}": w for n, (_, _, w) in enumerate(found)}
        np.savez(folder / "products.npz", rows=[rows for rows, _, _ in found], **arrays)

    read = [path for part in (lower, study) for path in sorted(Path(part.__path__[0]).rglob("*.py"))]
    read += [Path(name)] if name.endswith(".py") else []
    key = files.key(name, version("torch"), *(path.read_bytes() for path in read))
    return entries.entry(files.cache("cosim") / f"products-{key}", make) / "products.npz"


def pieces(found: list[Product], design: Design, count: int = COMMANDS, interval: int = 1) -> list[Product]:
    """A part of the products, as large as a command: evenly over their multiply-accumulates, in their order.

    Each has some rows, terms of K from the beginning of what its product has, and one tile of its columns. A core whose
    passes start ``interval`` cycles apart, or load more rows of weights, gets as many rows, and fewer passes, so that
    it does not wait.
    """
    most = max(ROWS, interval, design.rows)
    passes = max(LEAST_PASSES, PASSES * ROWS // most)
    sums = np.cumsum([each.macs for each in found])
    rng = np.random.default_rng(1)
    result = []
    for number in range(count):
        place = (number + 0.5) / count * sums[-1]
        product = found[int(np.searchsorted(sums, place))]
        terms = min(product.w.shape[0], passes * design.lay().tile_rows)
        rows = min(len(product.x), most, design.depth)
        top = int(rng.integers(0, len(product.x) - rows + 1))
        tile = int(rng.integers(0, -(-product.columns // design.cols))) * design.cols
        result.append(replace(product, x=product.x[top:top + rows, :terms],
                              w=product.w[:terms, tile:tile + design.cols]))
    return result


class _Ports:
    """Stands in a simulation's place: keeps what is offered, and gives what the golden core answers."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.answer: np.ndarray = np.empty(0)
        self.streams = {s.name: s for s in manifest.inputs() + manifest.outputs()}
        self.seen: dict[str, np.ndarray] = {}

    def run(self, inputs: dict[str, np.ndarray], outputs: dict[str, int], **_: Any) -> Run:
        """One product."""
        self.seen = dict(inputs)
        last = np.zeros(len(self.answer), bool)
        last[-1] = True
        kept = self.answer.view(np.uint32) if self.answer.dtype == np.float32 else self.answer
        wide: np.ndarray = np.zeros((len(kept), self.manifest.design.cols), kept.dtype)
        wide[:, :kept.shape[1]] = kept
        self.seen["o"] = self.streams["o"].pack(value=wide, last=last)
        traffic = Traffic(0, 0, 0, 0, 0, None)
        return Run({"o": self.seen["o"]}, {name: traffic for name in inputs}, 0)


class Recorded(Core):
    """A device that writes down what the streams of a core carry; its bits are those of the golden core."""

    def __init__(self, manifest: Manifest) -> None:
        self.ports = _Ports(manifest)
        super().__init__(self.ports)    # type: ignore[arg-type]

    def encode(self, x: np.ndarray, axis: int = -1, *, seed: int = 1, wide: bool = False) -> Blocks:
        """FP32 to blocks."""
        return golden_core.encode(self.design, x, axis, seed=seed, wide=wide)

    def product(self, x: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
        """Stream -> the payloads of a product of one command."""
        if self.design.arithmetic == "int":
            x, w = (quantise(part, self.design.format.mantissa)[0] for part in (x, w))
        self.ports.answer = golden_core.matmul(self.design, x, w)
        self.matmul(x, w)
        return self.ports.seen

    def conversion(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """`i_q` and `o_q`: the beats of a matrix that is converted along its rows."""
        fmt, design, streams = self.design.format, self.design, self.simulation.streams
        blocks = self.encode(x)
        parts = [cut(np.ascontiguousarray(part), fmt, -1) for part in (x, blocks.mantissa)]
        if fmt.square:
            parts = [part.swapaxes(-3, -2) for part in parts]
        beats = [block_beats(design, np.ascontiguousarray(part)) for part in parts]
        spread = {name: np.repeat(value.reshape(-1), design.encode_beats)
                  for name, value in (("exponent", blocks.exponent), ("invalid", blocks.invalid))}
        return {"i_q": streams["i_q"].pack(value=beats[0].view(np.uint32)),
                "o_q": streams["o_q"].pack(mantissa=beats[1], **spread)}


def record(manifest: Manifest, name: str, progress: Callable[[int, int], object] | None = None) -> dict[str, Any]:
    """What the streams of a core carry of a workload.

    Returns
    -------
    dict
        Stream -> payloads (beats, bytes), of outputs what is right; ``beats`` of `i_x` and multiply-accumulates,
        padding not counted, of each command: ``commands`` (commands, 2); ``every``: beats of `i_x` for one of `i_q`,
        as many as the whole workload converts, every number of X and of W once; ``names``.
    """
    device, design = Recorded(manifest), manifest.design
    chosen = pieces(products(name), design, interval=manifest.latency["interval"])
    streams: dict[str, list[np.ndarray]] = {}
    commands, converted, numbers = [], 0.0, []
    for number, piece in enumerate(chosen):
        seen = device.product(piece.x, piece.w)
        for stream, payloads in seen.items():
            streams.setdefault(stream, []).append(payloads)
        macs = len(piece.x) * piece.w.size
        commands.append((len(seen["i_x"]), macs))
        converted += macs / piece.columns + macs / piece.rows
        numbers.append(piece.x)
        if progress:
            progress(number + 1, len(chosen))
    found: dict[str, Any] = {stream: np.concatenate(parts) for stream, parts in streams.items()}
    if design.blocked:
        beats = max(1, round(converted / design.encode_lanes))
        every = max(1, len(found["i_x"]) // beats)
        parts = [device.conversion(x) for x in numbers]
        for stream in ("i_q", "o_q"):
            whole = np.concatenate([part[stream] for part in parts])
            count = len(found["i_x"]) // every // design.encode_beats * design.encode_beats
            found[stream] = np.resize(whole, (count, whole.shape[1]))
        found["every"] = every
    return found | {"commands": np.array(commands), "names": np.array([piece.name for piece in chosen])}


