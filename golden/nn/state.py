"""What a module that computes in HBFP has: formats, which may change between steps, and its noise.

The noise is that of the module's own converter lanes. It is drawn in training only: in evaluation mode ``stochastic``
rounds to nearest, so that the same input gives the same output. A forward pass that activation checkpointing runs again
during the backward pass repeats the noise of the first time.
"""

import functools
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from hbfp.checks import check_kind

from ..noise import Stream, lane_starts, mix
from . import again
from .dropout import drops_by_position
from .formats import FormatLike, Formats
from .memory import array
from .placed import Placed, Places, check_formats
from .side import Side, call

#: How many forward passes that may run again are remembered for each module.
REMEMBERED = 4096
#: Why a program that draws noise cannot be exported.
NO_NOISE = ("Products with stochastic rounding draw noise in training and cannot be traced then; call eval(), which "
            "rounds to nearest, or use rounding='rne'")

#: Why a model is not TorchScript.
NO_SCRIPT = ("HBFP products have no form in TorchScript; torch.export.export keeps every bit, with the products as "
             "operators torch.ops.hbfp")


class _BufferStream(Stream):
    """A stream whose state lives in a module's buffer, so that it is saved, copied and moved with it.

    On a GPU the numbers are drawn where the buffer is (:func:`golden.nn.converted.drawn`), and nothing waits for it.
    """

    def __init__(self, buffer):
        self.take(buffer)

    def take(self, buffer):
        """Go on from another buffer."""
        self.buffer = buffer
        self._shared = array(buffer).view(np.uint32) if buffer.device.type == "cpu" else None

    @property
    def state(self):
        """As of :class:`Stream`: the buffer's memory on the CPU, elsewhere a copy."""
        return array(self.buffer.cpu()).view(np.uint32) if self._shared is None else self._shared

    def words(self, beats):
        if self._shared is not None:
            return super().words(beats)
        host = _BufferStream(self.buffer.cpu())
        words = host.words(beats)
        self.buffer.copy_(host.buffer)
        return words


class _Repeated(_BufferStream):
    """The noise of an earlier forward pass; once that is over, for the backward pass, the live stream."""

    def __init__(self, buffer, live):
        super().__init__(buffer.clone())
        self.live = live

    def finish(self):
        """The pass is over: from here on the numbers are those of the live stream."""
        self.take(self.live.buffer)


def untraced_noise(forward: Any) -> Any:
    """Decorator of methods: where torch.compile traces, what draws noise or has side arithmetic runs as it is.

    Within, the module's side arithmetic is in force, if it has one, and dropouts are by position where noise is.
    """
    @functools.wraps(forward)
    def method(self, *args, **kwargs):
        formats = self._hbfp_formats
        noisy = formats is not None and formats.stochastic and self.training
        noisy |= self.hbfp_places is not None and self.training
        if torch.compiler.is_dynamo_compiling() and (noisy or self.hbfp_side is not None):
            return outside(self, *args, **kwargs)
        if torch.compiler.is_dynamo_compiling():    # without side arithmetic, and nothing draws
            return forward(self, *args, **kwargs)
        if self.hbfp_places is None:
            return call(self.hbfp_side, forward, self, *args, **kwargs)
        with drops_by_position(self):
            return call(self.hbfp_side, forward, self, *args, **kwargs)
    outside = torch.compiler.disable(method)
    return method


def runs_once() -> bool:
    """Whether a forward pass made now is certain not to be one of two that activation checkpointing makes."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return torch._C._current_graph_task_id() == -1 and hooks is None and torch.is_grad_enabled()


class HBFPState(torch.nn.Module):
    """Mixed into modules; its names start with ``hbfp_`` but for the buffer ``noise_state``."""
    noise_state: torch.Tensor | None
    hbfp_seed: int
    #: Of the whole model, where this module is the outermost: the accelerator's arithmetic beside products.
    hbfp_side: Side | None = None
    #: Of the whole model, if its noise is by position.
    hbfp_places: Places | None = None
    _hbfp_formats: Formats | None
    _hbfp_nearest: Formats | None

    def hbfp_setup(self, formats: FormatLike, seed: int) -> None:
        """Take formats and seed for the first time."""
        mix(seed)                                              # checks the range
        self.hbfp_seed = seed
        self.register_buffer("noise_state", None)
        self.hbfp_set_formats(formats)

    def hbfp_set_formats(self, formats: FormatLike) -> None:
        """Change the formats. The noise runs on, if its lanes are as before."""
        formats = Formats.of(formats)
        self._hbfp_formats, self._hbfp_nearest = formats, formats.nearest()
        if self.hbfp_places is not None:
            check_formats(formats)
        if formats.stochastic and self.hbfp_places is None:
            if self.noise_state is None or len(self.noise_state) != formats.lanes:
                self._restart()
        else:
            self.noise_state = None

    @property
    def hbfp_formats(self) -> Formats:
        """The formats in force."""
        assert self._hbfp_formats is not None
        return self._hbfp_formats

    @property
    def hbfp_now(self) -> Formats:
        """Formats of a call made now: in evaluation mode those without noise."""
        formats = self._hbfp_formats if self.training else self._hbfp_nearest
        assert formats is not None
        return formats

    def _restart(self):
        state = lane_starts(self.hbfp_seed, self._hbfp_formats.lanes).view(np.int32)
        where = next((p.device for p in self.parameters()), torch.device("cpu"))
        self.noise_state = torch.from_numpy(state.copy()).to(where)

    def hbfp_place(self, places: Places | None) -> None:
        """Draw noise by position, or of the module's own lanes again."""
        self.hbfp_places = places
        if self._hbfp_formats is not None:
            self.hbfp_set_formats(self._hbfp_formats)

    def hbfp_reformat(self, formats: FormatLike, *, seed: int | None = None) -> None:
        """Change the formats; a ``seed`` restarts the noise."""
        if seed is not None:
            mix(seed)
            self.hbfp_seed, self.noise_state = seed, None
        self.hbfp_set_formats(formats)

    @property
    def hbfp_stream(self) -> Stream | None:
        """The noise of ``stochastic``, else None."""
        return None if self.noise_state is None else _BufferStream(self.noise_state)

    @contextmanager
    def hbfp_call(self) -> Iterator[tuple[Any, Any]]:
        """Within, a forward pass runs with the formats and the noise that this gives."""
        formats = self._hbfp_formats
        if not self.training:
            yield self._hbfp_nearest, None
        elif formats is None or not formats.stochastic:
            yield formats, None
        elif self.hbfp_places is None and (self.noise_state is None or self.noise_state.is_meta):
            yield self._hbfp_nearest, None
        elif torch.compiler.is_compiling():
            raise ValueError(NO_NOISE)
        elif again.transforms():
            raise NotImplementedError(again.NO_RULE)
        elif self.hbfp_places is not None:
            begun = self.hbfp_places.begun.get(self.hbfp_seed, -1) + 1
            yield formats, Placed(self.hbfp_places, self.hbfp_seed, self.hbfp_earlier(begun))
        else:
            stream = self._noise()
            try:
                yield formats, stream
            finally:
                if isinstance(stream, _Repeated):
                    stream.finish()

    def _noise(self):
        """The stream of one forward pass."""
        live = _BufferStream(self.noise_state)
        earlier = self.hbfp_earlier(self.noise_state.clone())
        return live if earlier is None else _Repeated(earlier, live)

    def hbfp_earlier(self, now: Any) -> Any:
        """Where the noise of a pass that runs again began the first time; None if this is the first, from ``now`` on.
        """
        if runs_once():
            return None
        repeated = torch._C._current_graph_task_id() != -1     # within a backward pass
        # Checkpointing restores torch's generator before it repeats a pass: a number drawn from it tells which.
        ticket = int(torch.randint(2 ** 63 - 1, (), device="cpu"))
        starts = self.__dict__.setdefault("_hbfp_starts", OrderedDict())
        if not repeated:
            starts[ticket] = now
            while len(starts) > REMEMBERED:
                starts.popitem(last=False)
            return None
        if ticket not in starts:
            raise RuntimeError("A forward pass with stochastic rounding runs again during the backward pass, and its "
                               "noise is not known; checkpointing needs preserve_rng_state=True")
        return starts[ticket]

    def __prepare_scriptable__(self) -> Any:
        """What ``torch.jit.script`` asks of every part of a model."""
        raise NotImplementedError(NO_SCRIPT)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """As of torch; noise that leaves the device ``meta``, where nothing has a value, starts anew."""
        before = self.noise_state
        super()._apply(fn, recurse)
        if before is not None and before.is_meta and self.noise_state is not None and not self.noise_state.is_meta:
            start = torch.from_numpy(lane_starts(self.hbfp_seed, len(before)).view(np.int32).copy())
            self.noise_state = start.to(self.noise_state.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, metadata: Any, strict: bool,
                              missing: list[str], unexpected: list[str], errors: list[str]) -> None:
        """As of torch; a checkpoint without noise leaves the noise as it is, noise without use is left out."""
        name = f"{prefix}noise_state"
        known = state_dict.get(name)
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)
        if known is None and name in missing:
            missing.remove(name)
        if self.noise_state is None and name in unexpected:
            unexpected.remove(name)


#: Buffers that a model does not have in plain torch: the noise, and what :mod:`golden.nn.sparse` adds.
OURS = ("noise_state", "weight_mask", "mask_rule")


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The ``state_dict`` without noise and masks: what the model has in plain torch; sparse weights are dense in it."""
    check_kind("module", module, torch.nn.Module)
    return {name: value for name, value in module.state_dict().items() if name.rpartition(".")[2] not in OURS}
