"""Counts the named corners that a bench must have seen, or it fails: passing without them means little."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hbfp.design import Design

from .corners import reachable
from .dense import dense_beats

_NAN, _INF, _SIGN = 0x7FC00000, 0x7F800000, 0x80000000


class Coverage:
    """Counts how often each corner was seen.

    Parameters
    ----------
    design : Design
        Decides, with ``unit``, which corners are asked for.
    unit : str
        Part of the core that is tested, a key of :data:`cosim.bench.corners.CORNERS`.
    """

    def __init__(self, design: Design, unit: str = "core") -> None:
        self.design = design
        self.seen = dict.fromkeys(reachable(design, unit), 0)
        self.compared = 0    # elements of results
        self._last = None    # whether the last command was sparse

    def see(self, name: str, count: int | np.bool = 1) -> None:
        """Count a corner; ``count`` may be a truth value."""
        if name in self.seen:
            self.seen[name] += int(count)

    def missing(self) -> list[str]:
        """Corners not seen."""
        return [name for name, count in self.seen.items() if not count]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Add the counts to those in a JSON file, and start from zero."""
        path = Path(path)
        before: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"compared": 0, "corners": {}}
        corners = {name: count + before["corners"].get(name, 0) for name, count in self.seen.items()}
        path.write_text(json.dumps({"compared": before["compared"] + self.compared, "corners": corners}, indent=1))
        self.seen, self.compared = dict.fromkeys(self.seen, 0), 0

    # --- What was seen --------------------------------------------------------------------------

    def product(self, command: Mapping[str, int], x: Mapping[str, np.ndarray], w: Mapping[str, np.ndarray],
                result: np.ndarray) -> None:
        """Corners of one command: its fields, its beats, its result as bit patterns."""
        design = self.design
        self.see("one row", command["rows"] == 1)
        self.see("depth rows", command["rows"] == design.depth)
        self.see("one pass", command["tiles"] == 1)
        self.see("several passes", command["tiles"] > 1)
        if design.arithmetic == "int":
            self.see("negative result", (result < 0).any())
            self.see("zero result", (result == 0).any())
            return
        self.see("scale", command["scale"])
        self.see("bias", command["bias"])
        self.see("no steps", not (command["scale"] or command["bias"] or command["relu"]))
        self.see("ReLU clamps", command["relu"] and (result == 0).any())
        self.see("ReLU passes", command["relu"] and ((result > 0) & (result < _INF)).any())
        self.see("negative result", ((result & _SIGN) > 0).any())
        self.see("zero result", (result == 0).any())
        self.see("NaN result", (result == _NAN).any())
        self.see("infinite result", ((result & ~np.uint32(_SIGN)) == _INF).any())
        wide = command.get("wide_x", 0), command.get("wide_w", 0)
        for name, mode in (("wide X", (1, 0)), ("wide W", (0, 1)), ("wide X and W", (1, 1))):
            self.see(name, wide == mode)
        if design.takes_sparse:
            self._sparse(command, w)
        if design.blocked and not any(wide):
            self._blocks(command, x, w, result)

    def _blocks(self, command, x, w, result):
        beats, passes = dense_beats(self.design, command, x, w), command["tiles"]
        a = beats.x[:, :, :beats.used].reshape(passes, -1, beats.segments, beats.height).astype(np.int64)
        b = beats.w[:, :beats.used].reshape(passes, beats.segments, beats.height, -1).astype(np.int64)
        sums = np.einsum("pmsh,pshc->pmsc", a, b)
        self.see("invalid block of X", beats.x_scales["invalid"].any())
        self.see("invalid block of W", beats.w_scales["invalid"].any())
        empty = ~a.any(-1)                                                   # (pass, m, segment)
        self.see("zero block of X", empty.any())
        busy = np.einsum("pmsh,pshc->pmsc", (a != 0).astype(int), (b != 0).astype(int)) > 0
        self.see("cancelled sum", ((sums == 0) & busy).any())
        lay = self.design.lay(bool(command.get("sparse")))
        self.see("largest sum", (np.abs(sums) == lay.height * self.design.format.limit ** 2).any())
        plain = not (command["scale"] or command["bias"] or command["relu"])
        alone = (sums != 0).sum((0, 2)) == 1                                 # nothing else can have cancelled it
        self.see("underflow to +0", plain and ((result == 0) & alone).any())

    def _sparse(self, command, w):
        """Corners of commands that may be sparse: their order, and the order of indices."""
        sparse, kept = bool(command["sparse"]), self.design.sparse[0]
        self.see("sparse after dense", sparse and self._last is False)
        self.see("dense after sparse", not sparse and self._last is True)
        self._last = sparse
        if sparse and kept > 1:
            index = w["index"].astype(np.int64).reshape(-1, kept, self.design.cols)
            self.see("index out of order", (np.diff(index, axis=1) < 0).any())
            self.see("index repeated", (np.diff(index, axis=1) == 0).any())

    def conversion(self, value: np.ndarray, want: Mapping[str, np.ndarray], wide: np.ndarray | None = None) -> None:
        """Corners of whole blocks: bit patterns (beats, lanes), expected fields of `o_q`, and which blocks are wide."""
        design, fmt = self.design, self.design.format
        if wide is not None:
            self.see("converter: wide block", wide.any())
            self.see("converter: width changes", (wide[1:] != wide[:-1]).any())
            mine = (~wide).repeat(design.encode_beats)
            value, want = value[mine], {name: part[mine] for name, part in want.items()}
            if not len(value):
                return
        bits = value.reshape(-1, design.encode_beats * design.encode_lanes).astype(np.int64)
        mantissa = want["mantissa"].reshape(bits.shape).astype(np.int64)
        exponent = want["exponent"].reshape(len(bits), -1)[:, :1].astype(np.int64)
        valid = ~want["invalid"].reshape(len(bits), -1)[:, :1]
        field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
        top = field.max(1, keepdims=True)
        shift = exponent + 126 - field + 24 - fmt.magnitude
        significand = np.where(field > 0, fraction | 1 << 23, 0)
        cut = np.clip(shift, 0, 40)
        half = (significand & (1 << cut) - 1) == 1 << cut >> 1
        half &= valid & (shift > 0) & (field > 0)
        kept = np.where(shift >= 0, significand >> cut, 0)
        see = {"zero block": (top == 0).any(), "Inf": ((field == 255) & (fraction == 0)).any(),
               "NaN": ((field == 255) & (fraction > 0)).any(), "negative zero": (bits == _SIGN).any(),
               "subnormal": ((field == 0) & (fraction > 0)).any(), "largest exponent": (top == 254).any(),
               "largest mantissa": (np.abs(mantissa) == fmt.limit).any(),
               "saturated by rounding": (valid & (np.abs(mantissa) == fmt.limit) & (shift > 0) & (
                   significand * 2 >= (2 * fmt.limit + 1) << cut)).any(),
               "far below the maximum": (valid & (field > 0) & (shift > 25)).any(),
               "cut off exactly half": half.any(),
               "tie to even, down": (half & (kept % 2 == 0)).any(),
               "tie to even, up": (half & (kept % 2 == 1) & (kept < fmt.limit)).any(),
               "exponent clamped": (exponent != top - 126).any()}
        for name, hit in see.items():
            self.see(f"converter: {name}", hit)
