"""Matrix products and conversions on a simulated core: tensors to beats, beats to tensors."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hbfp.golden.bfp import Blocks, block_axis, cut, join, per_line
from hbfp.golden.core.baselines import BASELINES
from hbfp.golden.noise import mix
from hbfp.golden.sparsity import compress

from ..bench.digits import is_wide
from ..bench.tiling import Tiling, block_beats, commands, w_beats, x_beats
from ..simulate.simulation import Pause, ProtocolError, Simulation


@dataclass
class Tally:
    """Work done so far by a :class:`Core`.

    Attributes
    ----------
    macs : int
        Multiply-accumulates that products asked for, padding not counted.
    product_cycles, encode_cycles : int
        Clock cycles from first to last transfer.
    product_seconds, encode_seconds : float
        Wall time, packing and unpacking included.
    product_cpu, encode_cpu : float
        Processor time of the same, in seconds.
    """
    macs: int = 0
    product_cycles: int = 0
    encode_cycles: int = 0
    product_seconds: float = 0.0
    encode_seconds: float = 0.0
    product_cpu: float = 0.0
    encode_cpu: float = 0.0


class Core:
    """A core under simulation, as a device that multiplies and converts tensors.

    Parameters
    ----------
    simulation : Simulation
        The Verilated core.
    pauses : dict, optional
        Stream -> :class:`~cosim.simulate.simulation.Pause` for every run.
    """

    def __init__(self, simulation: Simulation, pauses: Mapping[str, Pause] | None = None) -> None:
        self.simulation, self.pauses = simulation, pauses
        self.design = simulation.manifest.design
        self.tally = Tally()
        self.last_run = None
        self.bucket = None    # cycles a bucket, to record activity of products
        self.activity: list[dict[str, np.ndarray]] = []    # one dict a product: stream -> transfers per bucket

    def _run(self, inputs, outputs, bucket=None):
        limit = None
        if bucket:    # generous: all beats one after the other, twice
            limit = 2 * sum(len(beats) for beats in inputs.values()) + 2 * sum(outputs.values()) + 10_000
        self.last_run = self.simulation.run(inputs, outputs, pauses=self.pauses, limit=limit, bucket=bucket)
        return self.last_run

    # --- FP32 -> HBFP ---------------------------------------------------------------------------

    def encode(self, x: np.ndarray, axis: int = -1, *, seed: int = 1, wide: bool = False) -> Blocks:
        """``x`` through the converter; for ``stochastic``, from a fresh reset so that the random stream starts anew.

        Parameters
        ----------
        x : ndarray of float32
            Two or more dimensions for square tiles, else one or more.
        axis : int
            Axis that blocks ``(1, B)`` run along.
        seed : int
            Seed of the random stream; 1 is what the reset leaves, others go through `i_seed`.
        wide : bool
            Whether mantissas have the design's ``wide`` bits.

        Returns
        -------
        golden.bfp.Blocks

        Raises
        ------
        ProtocolError
            If the core breaks a rule of its streams.
        """
        began, used = time.perf_counter(), time.process_time()
        design = self.design
        fmt = design.widest if wide else design.format
        axis = block_axis(x.ndim, fmt, axis)
        pieces = cut(np.ascontiguousarray(x, np.float32), fmt, axis)
        if fmt.square:
            *lead, rows, side, columns, _ = pieces.shape
            ordered = pieces.swapaxes(-3, -2)                    # (..., rows, columns, t, t)
        else:
            ordered = pieces
        beats = block_beats(design, np.ascontiguousarray(ordered).view(np.uint32))
        streams = self.simulation.streams
        if fmt.rounding == "stochastic":
            self.simulation.reset()
            if seed != 1:
                self._run({"i_seed": streams["i_seed"].pack(value=np.array([mix(seed)]))}, {})
        modes = {"wide": np.full(len(beats), wide)} if design.wide else {}
        run = self._run({"i_q": streams["i_q"].pack(value=beats, **modes)}, {"o_q": len(beats)})
        self.tally.encode_cycles += run.cycles
        fields = streams["o_q"].unpack(run.payloads["o_q"])
        mantissa = fields["mantissa"].astype(np.int32).reshape(ordered.shape)
        steady = {}
        for name in ("exponent", "invalid"):
            per_beat = fields[name].reshape(-1, design.encode_beats)
            if (per_beat != per_beat[:, :1]).any():
                raise ProtocolError(f"o_q: {name} changes inside a block")
            steady[name] = per_beat[:, 0]
        if fmt.square:
            shape = (*lead, rows, columns)
            mantissa = np.ascontiguousarray(mantissa.swapaxes(-3, -2))
            exponent, invalid = (steady[name].reshape(shape) for name in ("exponent", "invalid"))
        else:
            exponent, invalid = (np.ascontiguousarray(np.moveaxis(steady[name].reshape(pieces.shape[:-1]), -1, axis))
                                 for name in ("exponent", "invalid"))
        mantissa = join(mantissa, x.shape, fmt, axis)
        self.tally.encode_seconds += time.perf_counter() - began
        self.tally.encode_cpu += time.process_time() - used
        return Blocks(mantissa, exponent.astype(np.int32), invalid.astype(bool), fmt, axis)

    # --- Products -------------------------------------------------------------------------------

    def _operand(self, value, axis):
        """Mantissas (or bit patterns), exponents per line and block, invalid flags; the last two None if unused."""
        design = self.design
        if design.arithmetic in BASELINES:
            return BASELINES[design.arithmetic].patterns(value), None, None
        if not design.blocked:
            return np.asarray(value), None, None
        blocks = value if isinstance(value, Blocks) else self.encode(value, axis)
        return blocks.mantissa, *(per_line(blocks, part, 1 + axis) for part in (blocks.exponent, blocks.invalid))

    def matmul(self, x: np.ndarray | Blocks, w: np.ndarray | Blocks, *, scale: np.ndarray | None = None,
               bias: np.ndarray | None = None, relu: bool = False, sparse: bool = False) -> np.ndarray:
        """``x @ w`` and then, where asked for, times ``scale``, plus ``bias``, ReLU.

        Parameters
        ----------
        x, w : ndarray of float32, or Blocks
            (M, K) and (K, N), at least one element each; integers for arithmetic ``int``.
        scale, bias : ndarray of float32, (N,), optional
            One for each column.
        relu : bool
            Clamp below at 0.
        sparse : bool
            Send the weights compressed; only N of every M along K may differ from zero.

        Returns
        -------
        ndarray of float32, (M, N); int64 for arithmetic ``int``

        Raises
        ------
        ValueError
            If the core takes no sparse weights, or too many of these differ from zero.
        ProtocolError
            If the core breaks a rule of its streams.
        """
        if sparse and not self.design.takes_sparse:
            raise ValueError(f"Weights must be dense: {self.design.name} takes no sparse ones")
        design, streams = self.design, self.simulation.streams
        wide_x, wide_w = (isinstance(part, Blocks) and is_wide(design, part.fmt) for part in (x, w))
        pairs = wide_x or wide_w
        x_parts, w_parts = self._operand(x, -1), self._operand(w, -2)
        began, used = time.perf_counter(), time.process_time()
        (count, terms), width = x_parts[0].shape, w_parts[0].shape[1]
        tiling, index = Tiling(design, terms, sparse), None
        if sparse:
            mantissa, index = compress(w_parts[0], *design.sparse)
            w_parts = mantissa, *w_parts[1:]
        w_fields = w_beats(tiling, *w_parts, wide=wide_w, pairs=pairs, index=index)
        tiles, parts = len(w_fields["mantissa"]), commands(design, count)
        w_payloads = [streams["i_w"].pack(**{name: value[tile] for name, value in w_fields.items()})
                      for tile in range(tiles)]
        x_payload = np.concatenate([
            streams["i_x"].pack(**x_beats(tiling, x_parts[0][rows], *(
                None if part is None else part[rows] for part in x_parts[1:]), wide=wide_x))
            for rows in parts])
        flags = {"scale": scale is not None, "bias": bias is not None, "relu": relu, "wide_x": wide_x,
                 "wide_w": wide_w, "sparse": sparse}
        inputs = {"i_cmd": self._commands([rows.stop - rows.start for rows in parts] * tiles, tiling.passes, flags),
                  "i_x": np.tile(x_payload, (tiles, 1)),
                  "i_w": np.concatenate([w_payload for w_payload in w_payloads for _ in parts])}
        beats = [vector for vector in (scale, bias) if vector is not None]
        if beats:
            inputs["i_v"] = self._vectors(beats, tiles, len(parts), 1 + pairs)
        run = self._run(inputs, {"o": tiles * count}, self.bucket)
        if self.bucket:
            self.activity.append({name: run.traffic[name].activity for name in ("i_w", "i_x", "o")})
        self.tally.macs += count * terms * width
        self.tally.product_cycles += run.cycles
        fields = streams["o"].unpack(run.payloads["o"])
        self._check_last(fields["last"][:, 0], parts, tiles)
        value = fields["value"][:, ::1 + pairs]
        value = value.astype(np.int64) if design.arithmetic == "int" else value.astype(np.uint32).view(np.float32)
        value = np.ascontiguousarray(
            value.reshape(tiles, count, -1).swapaxes(0, 1).reshape(count, -1)[:, :width])
        self.tally.product_seconds += time.perf_counter() - began
        self.tally.product_cpu += time.process_time() - used
        return value

    def _commands(self, rows, passes, flags):
        stream = self.simulation.streams["i_cmd"]
        fields = {"rows": np.array(rows), "tiles": np.full(len(rows), passes)}
        fields |= {name: np.full(len(rows), flag) for name, flag in flags.items() if flag or name in stream.field}
        return stream.pack(**fields)

    def _vectors(self, vectors, tiles, parts, step):
        cols = self.design.cols
        lanes = np.zeros((len(vectors), tiles * cols), np.float32)
        for line, vector in zip(lanes, vectors, strict=True):
            line[:step * len(vector):step] = vector
        lanes = lanes.view(np.uint32).reshape(len(vectors), tiles, 1, cols).transpose(1, 2, 0, 3)
        return self.simulation.streams["i_v"].pack(value=lanes.repeat(parts, 1).reshape(-1, cols))

    def _check_last(self, last, parts, tiles):
        want = np.zeros(sum(rows.stop - rows.start for rows in parts), last.dtype)
        want[[rows.stop - 1 for rows in parts]] = 1
        if not np.array_equal(last, np.tile(want, tiles)):
            raise ProtocolError("o: last is not set on exactly the last row of each command")
