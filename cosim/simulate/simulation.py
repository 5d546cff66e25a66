"""A Verilated design as a library: whole blocks of payloads in and out, one call for many cycles."""

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..manifest import Manifest
from .model import Model
from .verilator import Progress, build_library

_DRIVER = Path(__file__).with_name("driver.cpp")
#: Cycles without any transfer after which a run counts as stuck; far beyond any latency.
PATIENCE = 20_000
#: Cycles that a run goes on after the last transfer, to see that nothing more comes out.
TAIL = 64
_DONE, _STUCK, _LIMIT, _CHANGED, _WITHDRAWN, _EXTRA = range(6)


class ProtocolError(RuntimeError):
    """The design broke a rule of its streams, or stopped moving data."""


class _Stream(ctypes.Structure):
    """One stream of a call; mirrors ``struct Stream`` of driver.cpp."""
    _fields_ = [("data", ctypes.c_void_p), ("beats", ctypes.c_uint64), ("done", ctypes.c_uint64),
                ("first", ctypes.c_uint64), ("last", ctypes.c_uint64), ("blocked", ctypes.c_uint64),
                ("starved", ctypes.c_uint64), ("enter", ctypes.c_uint32), ("leave", ctypes.c_uint32),
                ("activity", ctypes.c_void_p)]


@dataclass(frozen=True)
class Pause:
    """A random pattern of pauses: idle on an input, stall on an output.

    Parameters
    ----------
    share : float
        Part of the cycles that pause, 0 to below 1.
    burst : float
        About how many cycles a pause lasts; 1 makes cycles independent.
    """
    share: float = 0.0
    burst: float = 1.0

    def chances(self) -> tuple[int, int]:
        """Chances in 2^32 of starting or prolonging a pause, and of its ending, each cycle."""
        leave = 1 / self.burst
        enter = self.share * leave / (1 - self.share + self.share * leave)
        return round(enter * (2**32 - 1)), round(leave * (2**32 - 1))


@dataclass(frozen=True)
class Traffic:
    """What one stream did in a run; cycles count from reset.

    Attributes
    ----------
    beats : int
        Transfers.
    first, last : int
        Cycles of the first and the last one.
    blocked, starved : int
        Cycles in which only the source was ready, and in which only the sink was.
    activity : ndarray of uint32 or None
        Transfers per bucket of cycles from the start of the run.
    """
    beats: int
    first: int
    last: int
    blocked: int
    starved: int
    activity: np.ndarray | None


@dataclass(frozen=True)
class Run:
    """Result of :meth:`Simulation.run`.

    Attributes
    ----------
    payloads : dict
        Output stream -> payloads (beats, stride).
    traffic : dict
        Stream -> :class:`Traffic`.
    cycles : int
        From the first transfer on any stream to the last, both included.
    """
    payloads: dict[str, np.ndarray]
    traffic: dict[str, Traffic]
    cycles: int


def _ports(manifest, model="Vdut"):
    """The header that binds driver.cpp to one design."""
    def streams(items):
        return " ".join(f"F({stream.name}, {stream.stride})" for stream in items)
    return (f'#include "{model}.h"\n#define MODEL {model}\n#define INPUTS(F) {streams(manifest.inputs())}\n'
            f"#define OUTPUTS(F) {streams(manifest.outputs())}\n"
            f"#define FLAGS(F) {' '.join(f'F({name})' for name in manifest.flags())}\n")


class Simulation(Model):
    """One Verilated design. The streams are those of its manifest; `clk` and `rst` are driven here.

    Parameters
    ----------
    manifest : Manifest or Path
        The design.
    level : str
        ``-O3`` runs fastest, ``-O1`` builds fastest.
    trace : Path, optional
        A VCD file to write.
    seed : int
        Seed of the pause patterns.
    jobs : int, optional
        Compilers at a time; all cores by default.
    progress : callable, optional
        Called with (done, total) as a build goes on.
    cache : Path, optional
        Where built models are kept, if not with all others.

    Attributes
    ----------
    library : Path
        The built model.

    Raises
    ------
    BuildError
        If a tool is missing or fails.
    OSError
        If the VCD file cannot be written.
    """

    def __init__(self, manifest: Manifest | str | os.PathLike[str], *, level: str = "-O3",
                 trace: str | os.PathLike[str] | None = None, seed: int = 1, jobs: int | None = None,
                 progress: Progress | None = None, cache: Path | None = None) -> None:
        self.manifest = manifest if isinstance(manifest, Manifest) else Manifest.load(manifest)
        sources = {"driver.cpp": _DRIVER.read_text(), "ports.h": _ports(self.manifest)}
        self.library = build_library(self.manifest.verilog, self.manifest.top, sources, level=level,
                                     trace=trace is not None, jobs=jobs, progress=progress, cache=cache)
        self._open(self.library, _functions())
        self.streams = {s.name: s for s in self.manifest.inputs() + self.manifest.outputs()}
        self._library.sim_seed(self._handle, seed & 0xFFFFFFFF)
        if trace is not None:
            self._trace(trace)
        self.reset()

    def reset(self, cycles: int = 2) -> None:
        """Hold `rst` for some cycles."""
        self._library.sim_reset(self._handle, cycles)

    def flag(self, name: str) -> int:
        """Value of an output that belongs to no stream."""
        return self._library.sim_flag(self._handle, name.encode())

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, int], *,
            pauses: Mapping[str, Pause] | None = None, limit: int | None = None, patience: int = PATIENCE,
            tail: int = TAIL, bucket: int | None = None, partial: bool = False) -> Run:
        """Offer all inputs and take all outputs, each stream at its own pace.

        Parameters
        ----------
        inputs : dict
            Stream -> payloads (beats, stride); those absent offer nothing.
        outputs : dict
            Stream -> beats to take; none may come on those absent.
        pauses : dict, optional
            Stream -> :class:`Pause`.
        limit : int, optional
            Stop after that many cycles; an error, if not finished by then and not ``partial``.
        patience : int
            Cycles without a transfer that are an error.
        tail : int
            Cycles to go on after the last transfer.
        bucket : int, optional
            Also count transfers for each ``bucket`` cycles; needs ``limit``.
        partial : bool
            Whether to return what came until ``limit``, instead of an error.

        Returns
        -------
        Run

        Raises
        ------
        ProtocolError
            If the design stops, changes or withdraws a stalled payload, sends more than asked for, or is not finished
            by ``limit``.
        ValueError
            If payloads do not have the type and shape of their stream.
        """
        began = self.cycle
        calls, kept = self._calls(inputs, outputs, pauses or {}, limit, bucket)
        status = self._library.sim_run(self._handle, calls, limit or 2**63, patience, tail, bucket or 1)
        if status != _DONE and not (status == _LIMIT and partial):
            raise ProtocolError(self._complaint(status, calls, limit, patience))
        buckets = -(-(self.cycle - began) // bucket) if bucket else 0
        traffic = {name: Traffic(call.done, call.first, call.last, call.blocked, call.starved,
                                 kept[name][1][:buckets] if bucket else None)
                   for name, call in zip(self.streams, calls, strict=True)}
        busy = [t for t in traffic.values() if t.beats]
        cycles = max(t.last for t in busy) - min(t.first for t in busy) + 1 if busy else 0
        payloads = {name: kept[name][0][:traffic[name].beats] for name, stream in self.streams.items()
                    if stream.direction == "out"}
        return Run(payloads, traffic, cycles)

    def _calls(self, inputs, outputs, pauses, limit, bucket):
        """One :class:`_Stream` for each stream; and its payloads and activity by name, to be kept while they are used.

        Raises
        ------
        ValueError
            If payloads are not those of their stream.
        """
        calls, kept = (_Stream * len(self.streams))(), {}
        for (name, stream), call in zip(self.streams.items(), calls, strict=True):
            if stream.direction == "in":
                payloads = np.ascontiguousarray(inputs.get(name, np.empty((0, stream.stride), np.uint8)))
                if payloads.dtype != np.uint8 or payloads.ndim != 2 or payloads.shape[1] != stream.stride:
                    raise ValueError(f"Payloads of {name} must be uint8 of shape (beats, {stream.stride}), "
                                     f"not {payloads.dtype} of {payloads.shape}")
            else:
                payloads = np.empty((outputs.get(name, 0), stream.stride), np.uint8)
            activity = np.zeros(-(-limit // bucket), np.uint32) if bucket else None
            kept[name] = payloads, activity
            call.data, call.beats = payloads.ctypes.data, len(payloads)
            call.activity = activity.ctypes.data if bucket else None
            call.enter, call.leave = pauses.get(name, Pause()).chances()
        return calls, kept

    def _complaint(self, status, calls, limit, patience):
        """Why a run ended early, and how far each stream came."""
        names = list(self.streams)
        culprit = names[self._library.sim_culprit(self._handle)]
        unfinished = ", ".join(name for name, call in zip(names, calls, strict=True) if call.done < call.beats)
        reason = {_LIMIT: f"not finished after {limit} cycles",
                  _STUCK: f"no transfer for {patience} cycles on {unfinished}",
                  _EXTRA: f"{culprit} offers more than was asked for",
                  _CHANGED: f"{culprit} changed a payload that waited",
                  _WITHDRAWN: f"{culprit} withdrew a payload that waited"}[status]
        moved = ", ".join(f"{name} {call.done} of {call.beats}" for name, call in zip(names, calls, strict=True))
        return f"Cycle {self.cycle}: {reason} ({moved})"


def _functions():
    """The functions of the library: name, result, arguments."""
    handle, u64, u32 = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
    return (
        ("open", handle, []), ("close", None, [handle]), ("reset", None, [handle, u32]),
        ("seed", None, [handle, u32]), ("cycle", u64, [handle]), ("culprit", ctypes.c_int, [handle]),
        ("flag", u64, [handle, ctypes.c_char_p]), ("trace", ctypes.c_int, [handle, ctypes.c_char_p]),
        ("run", ctypes.c_int, [handle, ctypes.POINTER(_Stream), u64, u64, u64, u32]))
