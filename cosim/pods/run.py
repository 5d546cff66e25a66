"""Programs on a Verilated machine of pods: words into its memories, rounds, and what is written in which cycle."""

from dataclasses import dataclass

import numpy as np

from hbfp import generator
from hbfp.golden.pods.program import Program
from hbfp.golden.pods.words import words
from hbfp.pods import PodsDesign

from ..manifest import Manifest
from ..simulate.player import Player

#: What banks write, by the output ports of that name.
KINDS = ("sums", "operands", "results")

#: (bank, cycle) -> (address, value).
Events = dict[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Written:
    """What a run wrote.

    Attributes
    ----------
    begins : ndarray of int
        Cycles in which a round begins, counted from the first one.
    events : dict of str to dict
        For each of :data:`KINDS`: (bank, cycle) -> (address, value).
    kept : dict
        (post-processor, address) -> value that a host reads in the end.
    lead : int
        Cycles from the host's word to the first round.
    busy, error : bool
        Whether the machine runs in the end, and whether it has refused the program.
    """
    begins: np.ndarray
    events: dict[str, Events]
    kept: dict[tuple[int, int], int]
    lead: int
    busy: bool
    error: bool


class Pods:
    """A Verilated machine.

    Parameters
    ----------
    design : hbfp.pods.PodsDesign
    """

    def __init__(self, design: PodsDesign) -> None:
        self.design = design
        self.manifest = Manifest.load(generator.emitted(f"pods{design.pods}", design.words()))
        self.player = Player(self.manifest, level="-O1")    # building takes longer than running

    def _word(self, stream, **values):
        """A payload from the values of its fields."""
        fields = self.manifest.streams[stream].field
        return sum(int(value) << fields[name].offset for name, value in values.items())

    def run(self, program: Program, key: int | None = None) -> Written:
        """Load a program, run it, read what it kept.

        Parameters
        ----------
        program : Program
        key : int, optional
            Key of the machine that the run says it is for; the program's by default.

        Returns
        -------
        Written
        """
        loads = [self._word("i_load", **word._asdict()) for word in words(self.design, program)]
        kept = [(one.post.bank, one.post.address + n) for every in program.passes for one in every
                if one.last and one.keep for n in range(program.rows)]
        start = 2 + len(loads)
        latency = self.manifest.latency
        running = (program.rounds + 1) * program.length + max(latency["product"], latency["result"]) + program.rows + 8
        cycles = start + 1 + running + len(kept) + 1
        ports = {name: np.zeros(cycles, object) for name in self.player.widths["in"]}
        ports["rst"][:2] = 1
        ports["i_load__valid"][2:start], ports["i_load__payload"][2:start] = 1, loads
        ports["i_run__valid"][start] = 1
        ports["i_run__payload"][start] = self._word("i_run", key=program.key if key is None else key, rows=program.rows,
                                                    rounds=program.rounds, length=program.length)
        unit_bits = max(1, (self.design.pods - 1).bit_length())
        ports["i_kept"][start + 1 + running:-1] = [unit | address << unit_bits for unit, address in kept]
        out = self.player.play(ports)
        begins = np.flatnonzero(out["begins"])
        first = int(begins[0]) if len(begins) else start
        values = [int(word) for word in out["o_kept"][start + 2 + running:]]
        return Written(begins - first, {kind: self._events(out, kind, first) for kind in KINDS},
                       dict(zip(kept, values, strict=True)), first - start, bool(out["busy"][-1]),
                       bool(out["error"][-1]))

    def _events(self, out, kind, first):
        """What banks of a kind write: lowest bit valid, then the address, then the value."""
        bits, found = max(1, (self.design.bank - 1).bit_length()), {}
        for bank in range(self.design.pods):
            for cycle, word in enumerate(out[f"{kind}__{bank}"]):
                word = int(word)
                if word & 1:
                    found[bank, cycle - first] = word >> 1 & (1 << bits) - 1, word >> 1 + bits
        return found
