"""The simulator of mapped gates: C++ that is compiled when it is first used, and what goes in and comes out."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hbfp import entries, files

from ...tools.errors import SynthError

_FOLDER = Path(__file__).parent
_SOURCES = sorted([*_FOLDER.glob("*.cpp"), *_FOLDER.glob("*.h")])
_FLAGS = ("-O3", "-std=c++17", "-Wall", "-Wextra")


@dataclass(frozen=True)
class Stream:
    """A stream of payloads.

    Attributes
    ----------
    name : str
        Its ports are ``name__payload``, ``name__valid`` and ``name__ready``.
    width : int
        Bits of a payload.
    beats : ndarray of uint8 or int
        Payloads to offer (beats, bytes), or, of an output, how many to take.
    every, begin : int
        A beat is offered when ``begin`` beats of the stream that paces have been taken, and ``every`` more for each
        beat before.
    """
    name: str
    width: int
    beats: np.ndarray | int
    every: int = 0
    begin: int = 0


@dataclass(frozen=True)
class Settings:
    """How a netlist is run.

    Attributes
    ----------
    period : float
        ns; 0 for the longest path. Where that is longer nothing is run.
    wire : float
        fF of wire for each sink of a net.
    access : float
        ns until a memory's word is read.
    pace : str
        The input stream by which the window goes.
    window : (int, int)
        The window is open while so many beats of it have been taken, the last one excluded.
    stride : int
        Every how many cycles of the window changes are followed.
    tick : float
        ns in which delays are counted.
    limit : int
        Cycles after which a run that is not over is given up.
    """
    period: float
    wire: float
    access: float
    pace: str
    window: tuple[int, int]
    stride: int = 1
    tick: float = 0.0005
    limit: int = 1_000_000


@dataclass(frozen=True)
class Counts:
    """What a component did in the cycles that were followed: energies in fJ, leakage in nW.

    ``settled`` are the changes of nets to the value that they have at the end of a cycle, ``toggles`` all.
    """
    cells: int
    flipflops: int
    leakage: float
    switching: float
    internal: float
    clock: float
    toggles: int
    settled_switching: float
    settled_internal: float
    settled_toggles: int


@dataclass(frozen=True)
class Accesses:
    """Of one memory in the window: number of its module and component, words, bits of a word, bits that were read and
    written. A word that is read again in the next cycle, unchanged, counts once.
    """
    module: int
    component: int
    words: int
    width: int
    read: int
    written: int


@dataclass(frozen=True)
class Result:
    """What a run gave.

    Attributes
    ----------
    complete : bool
        Whether all streams were done.
    cycles, window, sampled : int
        Cycles in all, of the window, and of those that were followed.
    wrong : int
        Nets that ended a cycle that was followed with another value than without delays; 0 if the engine is right.
    events : int
        Changes that were followed.
    longest, last : float
        ns: the longest path, and the latest change that was seen.
    payloads : dict
        Output stream -> payloads that were taken (beats, bytes).
    components : list of Counts
    memories : list of Accesses
    """
    complete: bool
    cycles: int
    window: int
    sampled: int
    wrong: int
    events: int
    longest: float
    last: float
    payloads: dict[str, np.ndarray]
    components: list[Counts]
    memories: list[Accesses]


def program() -> Path:
    """The compiled simulator.

    Raises
    ------
    SynthError
        If there is no C++ compiler, or it fails.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    if compiler is None:
        raise SynthError("energies need a C++ compiler: g++ or clang++")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    key = files.key(version, *_FLAGS, *(path.read_bytes() for path in _SOURCES))

    def make(folder):
        words = [compiler, *_FLAGS, "-o", str(folder / "power"), str(_FOLDER / "main.cpp")]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            why = next((line for line in done.stderr.splitlines() if "error" in line), f"status {done.returncode}")
            raise SynthError(f"{compiler} cannot build {_FOLDER / 'main.cpp'}: {why}")

    return entries.entry(files.cache("synth") / f"power-{key}", make) / "power"


def _bytes(width):
    return -(-width // 8)


def _stimulus(streams, ports):
    """The lines of the streams, and the bytes of the inputs."""
    place = {name: n for n, name in enumerate(ports)}
    lines, data = [str(len(streams))], b""
    for stream in streams:
        inward = not isinstance(stream.beats, int)
        beats, stride = len(stream.beats) if inward else stream.beats, _bytes(stream.width)
        payload = [place[each] for each in bits(f"{stream.name}__payload", stream.width)]
        lines.append(f"{stream.name} {int(inward)} {beats} {stream.begin} {stream.every} {stride} "
                     f"{place[stream.name + '__valid']} {place[stream.name + '__ready']} "
                     f"{len(payload)} {' '.join(map(str, payload))}")
        data += np.ascontiguousarray(stream.beats[:, :stride]).tobytes() if inward else b""
    return "\n".join(lines) + "\n", data


def bits(name: str, width: int) -> list[str]:
    """The names of a port's bits."""
    return [name] if width == 1 else [f"{name}[{n}]" for n in range(width)]


def run(library: str, netlist: str, components: int, ports: Sequence[str], streams: Sequence[Stream],
        settings: Settings, progress: Callable[[int], object] | None = None) -> Result:
    """Run streams through a netlist.

    Parameters
    ----------
    library, netlist : str
        Texts of :mod:`synth.power.tables` and :mod:`synth.power.netlist`.
    components : int
        How many there are; nets that come from outside count to one more.
    ports : list of str
        Bits of the top's ports.
    streams : list of Stream
    settings : Settings
    progress : callable, optional
        Called with the percentage of the stream that the window goes by.

    Raises
    ------
    SynthError
        If it cannot be run.
    """
    s = settings
    clock = ports.index("clk") if "clk" in ports else -1
    head = (f"{components + 1} {components} {clock} 2 {s.window[0]} {s.window[1]} {s.stride} {s.period} {s.wire} "
            f"{s.access} {s.tick} {s.limit} {s.pace}\n")
    lines, data = _stimulus(streams, ports)
    reset = ports.index("rst") if "rst" in ports else -1
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "cells").write_text(library)
        (place / "netlist").write_text(f"{head}{netlist}{reset}\n{lines}")
        (place / "data").write_bytes(data)
        words = [str(program()), *(str(place / name) for name in ("cells", "netlist", "data", "out"))]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None and process.stdout is not None
            said = ""
            for said in process.stderr:
                if progress and said.startswith("progress"):
                    progress(int(said.split()[1]))
            text = process.stdout.read()
        if process.returncode:
            raise SynthError(f"the simulation of gates failed: {said.strip() or f'status {process.returncode}'}")
        return _result(text, (place / "out").read_bytes(), streams)


def _result(text: str, data: bytes, streams: Sequence[Stream]) -> Result:
    """What the engine printed, with the payloads that it took."""
    found: dict[str, list[Any]] = {"run": [], "component": [], "memory": []}
    done: dict[str, int] = {}
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "stream":
            done[words[0]] = int(words[1])
        else:
            found[kind].append([float(word) if "." in word or "e" in word else int(word) for word in words])
    payloads, begin = {}, 0
    for stream in streams:
        if isinstance(stream.beats, int):
            size = _bytes(stream.width)
            beats = np.frombuffer(data[begin:begin + stream.beats * size], np.uint8).reshape(-1, size)
            payloads[stream.name] = beats[:done[stream.name]]
            begin += stream.beats * size
    complete, cycles, window, sampled, wrong, events, longest, last, _ = found["run"][0]
    return Result(bool(complete), cycles, window, sampled, wrong, events, longest, last, payloads,
                  [Counts(*each[1:]) for each in found["component"]], [Accesses(*each) for each in found["memory"]])
