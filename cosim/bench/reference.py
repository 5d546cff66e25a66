"""What a core must send for the beats that it took: the golden model behind the streams."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hbfp.design import Design
from hbfp.golden.bfp import Blocks, encode
from hbfp.golden.core.baselines import BASELINES, matmul_int
from hbfp.golden.core.core import side
from hbfp.golden.matmul import matmul_blocks
from hbfp.golden.noise import states

from .dense import dense_beats
from .digits import rows_of_beats, weights_of_columns


def wide_columns(command: Mapping[str, int]) -> int:
    """1 if weights have two columns each, since mantissas of X or of W are wide, else 0."""
    return command.get("wide_x", 0) or command.get("wide_w", 0)


class CoreReference:
    """Predicts stream `o`, command by command.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    """

    def __init__(self, design: Design) -> None:
        self.design = design

    def refuses(self, command: Mapping[str, int]) -> bool:
        """Whether a command raises `error`; ``command`` is a dict of the fields of `i_cmd`."""
        design = self.design
        most = design.most_tiles(bool(command.get("sparse")))
        return not (1 <= command["rows"] <= design.depth and 1 <= command["tiles"] <= most)

    def result(self, command: Mapping[str, int], x: Mapping[str, np.ndarray], w: Mapping[str, np.ndarray],
               v: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Rows of `o` (rows, columns), if X or W is wide the even columns alone.

        They are uint32 bit patterns, for arithmetic ``int`` int64 numbers.

        Parameters
        ----------
        command : dict
            Fields of `i_cmd`.
        x, w : dict
            Fields of the ``rows * tiles`` beats of `i_x`, twice as many if X is wide, and of the ``tiles * R`` beats
            of `i_w`.
        v : sequence of ndarray of uint32, (columns,)
            Beats of `i_v`.
        """
        design, beats = self.design, dense_beats(self.design, command, x, w)
        operands = self._flat(beats.x), beats.w.reshape(-1, design.cols)
        if not design.number.float_results:
            wide = matmul_int(*operands)
            half = 1 << design.accumulator_width - 1
            return (wide + half) % (2 * half) - half
        if design.blocked:
            y = self._blocked(beats, command.get("wide_x", 0), command.get("wide_w", 0))
        else:
            baseline = BASELINES[design.arithmetic]
            values = [baseline.values(operand) for operand in operands]
            y = baseline.matmul(values[0], values[1], design.rows)
        v = [each[::1 + wide_columns(command)] for each in v]
        scale = v.pop(0) if command["scale"] else None
        bias = v.pop(0) if command["bias"] else None
        return side(y.view(np.uint32), scale, bias, bool(command["relu"]))

    @staticmethod
    def _flat(lanes):
        """(pass, m, row) to (m, term)."""
        return lanes.swapaxes(0, 1).reshape(lanes.shape[1], -1)

    def _blocked(self, beats, wide_x, wide_w):
        """The same product of :class:`Blocks`: each block padded to the rows of the passes that it spans."""
        design, fmt = self.design, self.design.format
        pairs = wide_x or wide_w
        lanes = rows_of_beats(design, beats.x) if wide_x else beats.x
        tile = weights_of_columns(design, beats.w, wide_w) if pairs else beats.w
        (passes, count, _), columns = lanes.shape, tile.shape[2]
        span, used = beats.block_tiles, beats.used
        short = -passes % span
        mantissa = self._flat(np.pad(lanes[:, :, :used], ((0, short), (0, 0), (0, 0))))
        weight = np.pad(tile[:, :used], ((0, short), (0, 0), (0, 0))).reshape(-1, columns)
        last = np.minimum(np.arange(span - 1, passes + short, span), passes - 1)    # pass that ends each block
        x = {name: value[last, wide_x::1 + wide_x].swapaxes(0, 1).reshape(count, -1)
             for name, value in beats.x_scales.items()}
        w = {name: value[last][:, :, ::1 + pairs].reshape(-1, columns) for name, value in beats.w_scales.items()}
        blocks = (Blocks(np.ascontiguousarray(part).astype(np.int32), scales["exponent"],
                         scales["invalid"].astype(bool), replace(own, block=(1, beats.height * span)), axis)
                  for part, scales, own, axis in ((mantissa, x, design.widest if wide_x else fmt, -1),
                                                  (weight, w, design.widest if wide_w else fmt, -2)))
        return matmul_blocks(*blocks, design.accumulate, guard=design.guard, growth=design.growth)


class ConverterReference:
    """Predicts stream `o_q`, block by block, from reset.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    seed : int
        Seed of the random stream, not mixed: the port `i_seed` takes :func:`golden.noise.mix` of it.
    """

    def __init__(self, design: Design, seed: int = 1) -> None:
        self.design, self.seed, self.beats = design, seed, 0

    def result(self, value: np.ndarray, wide: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Fields of `o_q` for whole blocks: ``value`` (beats, lanes) of bit patterns, and ``wide`` (beats,), if any."""
        if wide is None:
            return self._result(value, self.design.format)
        beats = self.beats
        narrow = self._result(value, self.design.format)
        self.beats = beats
        both = narrow, self._result(value, self.design.widest)
        each = self.design.encode_beats
        chosen = np.asarray(wide, bool).reshape(-1, each)[:, -1].repeat(each)    # a block's last beat counts
        return {name: np.where(chosen.reshape(-1, *(1,) * (part.ndim - 1)), both[1][name], part)
                for name, part in narrow.items()}

    def _result(self, value, fmt):
        design = self.design
        x = np.ascontiguousarray(value, np.uint32).view(np.float32)
        beats, lanes = x.shape
        noise = None
        if fmt.rounding == "stochastic":
            words = states(self.seed, lanes, self.beats + beats)[self.beats:]
            noise = (words >> np.uint32(32 - fmt.noise_bits)).astype(np.int64)
        self.beats += beats
        flat = replace(fmt, block=(1, lanes * design.encode_beats))
        shape = (-1, lanes * design.encode_beats)
        blocks = encode(x.reshape(shape), flat, None if noise is None else noise.reshape(shape))
        return {"mantissa": blocks.mantissa.reshape(beats, lanes),
                "exponent": blocks.exponent.reshape(-1).repeat(design.encode_beats),
                "invalid": blocks.invalid.reshape(-1).repeat(design.encode_beats)}
