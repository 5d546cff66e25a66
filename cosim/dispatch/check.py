"""The dispatcher's Verilog beside its twin, every port in every cycle, under every policy.

An executor, a host and a reader of counters, all of random pace, are played against the twin; then the same inputs
go through the Verilog. Faults are part of it: ends that nobody asked for, quanta that do not yield, policies that are
none, more requests than can be served, resets in the middle; and waits and runs on both sides of where times wrap.
"""

import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hbfp.golden.perf.dispatch.twin import Inputs, Outputs, Request, Twin
from hbfp.golden.spec.dispatch import DispatchUnit, Policy, policies

from ..bench.comparison import Comparison
from ..simulate.player import Player

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
#: Cycles of a batch, and of a quantum of training.
SERVICE, QUANTUM = 120, 25
BATCH, TIMEOUT = 4, 300
#: Small, so that queues fill, times wrap and counters end.
SMALL = DispatchUnit(depth=16, address=16, tag=8, time=9, counter=10)
#: The same where requests are told behind their time; no quantum lasts for a period.
STAMPED = replace(SMALL, time=11, stamped=1)
#: States in which it may be told of them.
_TOLD = ("CHOOSE", "PAUSE", "TIME", "COUNT")
#: Payload fields of each stream, lowest first; widths by :func:`_widths`.
_FIELDS = {"i_request": ("address", "address", "tag"), "o_item": ("address", "address", "tag"),
           "o_start": ("flag", "batch"), "o_completion": ("tag", "time", "time", "time")}
_POLICY = (("inference", "flag"), ("training", "flag"), ("priority", "flag"), ("batch", "batch"),
           ("timeout", "time"), ("share", "share"), ("patience", "time"), ("closes", "flag"))


@dataclass(frozen=True)
class Case:
    """One run: a policy, the load that the requests make, how many there are, the pace of the others, faults."""
    name: str
    policy: Policy
    load: float
    requests: int
    seed: int
    pace: float = 0.8       # share of the cycles in which an output is taken
    faults: bool = False
    service: int = SERVICE
    quantum: int = QUANTUM
    unit: DispatchUnit = SMALL


def cases(requests: int = 1000, seed: int = 1) -> list[Case]:
    """Every policy under every load, then faults under every policy, times that wrap under every policy, and such where
    requests are told late."""
    found = policies(BATCH, TIMEOUT)
    plain = [Case(f"{name}, load {load}", policy, load, requests, seed + n)
             for n, (name, policy) in enumerate(found.items()) for load in LOADS]
    faults = [Case(f"{name}, faults", replace(policy, patience=3 * QUANTUM), 2.0, requests, seed + n, 0.5, True)
              for n, (name, policy) in enumerate(found.items())]
    most = SMALL.longest
    # The timeout, what it leaves of the longest time, and one longer than both.
    wraps = [Case(f"{name}, wrap {quantum}", replace(policy, timeout=min(policy.timeout, 1) * timeout), 0.1, requests,
                  seed + n, service=service, quantum=quantum)
             for n, (name, policy) in enumerate(found.items())
             for timeout, service, quantum in ((2 * most // 3, SERVICE, most // 3), (most, SERVICE, most // 2),
                                               (most - 1, most + 1, 2 * most))]
    stamped = [Case(f"{name}, told late, load {load}", policy, load, requests, seed + n, unit=STAMPED)
               for n, (name, policy) in enumerate(found.items()) for load in LOADS[::2]]
    stamped += [replace(case, name=f"{case.name}, told late", unit=STAMPED) for case in faults]
    # Waits of several periods, whether a timeout or other batches are what is waited for.
    most = STAMPED.longest
    stamped += [Case(f"{name}, told late, wrap {load}", replace(policy, timeout=most // 2), load, requests, seed + n,
                     service=service, quantum=most // 3, unit=STAMPED)
                for n, (name, policy) in enumerate(found.items())
                for load, service in ((0.1, SERVICE), (2, 3 * most // 4))]
    # Two that came while a quantum ran, longer than the timeout, are told of one behind the other, where none waited.
    stamped += [Case(f"{name}, told late, pairs", replace(policy, timeout=most // 4), 0.05, requests, seed + n,
                     quantum=most // 3, unit=STAMPED)
                for n, (name, policy) in enumerate(found.items()) if policy.closes]
    return plain + faults + wraps + stamped


class _Surroundings:
    """Host, executor and reader of counters around a twin; makes the inputs of the next cycle."""

    def __init__(self, case):
        self.unit, self.case, self.rng = case.unit, case, random.Random(case.seed)
        self.left = case.requests    # requests still to come
        self.policy = case.policy
        self.restart()

    def restart(self):
        """After a reset nothing is offered and nothing runs."""
        self.request = self.done = self.counter = None
        self.outside = deque[tuple[Request, int]]()    # those that are to be told, and since when they are there
        self.remaining, self.kind, self.items = None, False, 0

    def inputs(self, twin):
        """What the twin sees in this cycle."""
        rng, case, arrived = self.rng, self.case, None
        if self.request is None and self.left and rng.random() < case.load * BATCH / case.service:
            self.request = Request(rng.getrandbits(self.unit.address), rng.getrandbits(self.unit.address),
                                   self.left % 2 ** self.unit.tag)
        if self.unit.stamped and self.request and len(self.outside) + twin.held < self.unit.depth:
            self.outside.append((self.request, twin.now))
            self.request, self.left = None, self.left - 1
        request, holds = None if self.unit.stamped else self.request, False
        if self.outside and twin.state in _TOLD:
            holds = twin.now - self.outside[0][1] > self.unit.longest // 8    # nothing is chosen before it is told
            if rng.random() < 0.7:
                (request, arrived), holds = self.outside.popleft(), True
        if self.remaining is not None:
            self.remaining = max(self.remaining - 1, 0)
            if not self.remaining and not self.items and self.done is None:
                self.done, self.remaining = self.kind, None
        if self.counter is None and rng.random() < 0.02:
            self.counter = rng.randrange(self.unit.counters + 2)
        clear = False
        if case.faults:
            clear = rng.random() < 0.002
            if self.done is None and rng.random() < 0.0005:
                self.done = rng.random() < 0.5
            if rng.random() < 0.002:
                depth = self.unit.depth
                self.policy = case.policy if rng.random() < 0.3 else replace(
                    case.policy, batch=rng.choice((0, 1, 2, 3, BATCH, depth // 2, depth, depth + 1)),
                    share=rng.choice((0, 1, 5, 8, 15, 16, 17)),
                    timeout=rng.choice((0, 1, 10, 100, TIMEOUT, self.unit.longest)),
                    patience=rng.choice((0, 20, 3 * QUANTUM)), closes=rng.random() < 0.5)
        policy = replace(self.policy, inference=False, training=False) if holds else self.policy
        return Inputs(request, self.done, self.counter, *(rng.random() < case.pace for _ in range(4)), clear, policy,
                      arrived)

    def see(self, inputs, outputs):
        """Take note of what was taken and started."""
        if inputs.request and inputs.arrived is None and outputs.request_ready:
            self.request, self.left = None, self.left - 1
        if inputs.done is not None and outputs.done_ready:
            self.done = None
        if inputs.counter is not None and outputs.counter_ready:
            self.counter = None
        if outputs.start and inputs.start_ready:
            self.kind, self.items = outputs.start.training, outputs.start.count
            longest = self.case.quantum if self.kind else self.case.service
            duration = max(1, longest - int(longest * self.rng.random()**2))
            if self.case.faults and self.kind and self.rng.random() < 0.05:
                duration *= 30    # does not yield in time
            self.remaining = duration
        if outputs.item and inputs.item_ready:
            self.items -= 1


def record(case: Case, limit: int = 2_000_000
           ) -> tuple[list[Inputs | None], list[Outputs | None], Twin]:
    """Play a case against the twin.

    Returns
    -------
    (list of (Inputs or None), list of (Outputs or None), Twin)
        Cycle by cycle; None is a cycle of reset.
    """
    surroundings, twin, quiet = _Surroundings(case), Twin(case.unit), 0
    inputs: list[Inputs | None] = [None]
    outputs: list[Outputs | None] = [None]
    stays = 20 * (SERVICE + TIMEOUT)
    while quiet < stays and len(inputs) < limit:
        if case.faults and surroundings.rng.random() < 0.0002:
            twin = Twin(case.unit)
            surroundings.restart()
            inputs.append(None)
            outputs.append(None)
            continue
        now = surroundings.inputs(twin)
        out = twin.step(now)
        surroundings.see(now, out)
        inputs.append(now)
        outputs.append(out)
        # Where no batch is started, the queue is full at last and the other requests stay outside.
        quiet = quiet + 1 if not surroundings.left or not (out.request_ready or case.policy.inference) else 0
    return inputs, outputs, twin


def _widths(unit):
    return {"flag": 1, "address": unit.address, "tag": unit.tag, "time": unit.time, "batch": unit.batch_bits,
            "share": 5}


def _values(payload):
    """Fields of a payload, the lowest first."""
    return payload if isinstance(payload, tuple) else (payload.training, payload.count)


def _word(values, widths):
    """Fields as one number, the first one lowest."""
    word = shift = 0
    for value, width in zip(values, widths, strict=True):
        word |= int(value) << shift
        shift += width
    return word


def ports_in(unit: DispatchUnit, inputs: Iterable[Inputs | None]) -> dict[str, list[int]]:
    """Input port -> its value in each cycle."""
    widths = _widths(unit)
    request = [widths[name] for name in _FIELDS["i_request"]]
    policy = [widths[kind] for _, kind in _POLICY]
    names = ["rst", "clear", "policy", *(f"{stream}__{part}" for stream in ("i_request", "i_done", "i_counter")
                                          for part in ("payload", "valid")),
             *(f"{stream}__ready" for stream in ("o_start", "o_item", "o_completion", "o_counter")),
             *(("told", "arrived") if unit.stamped else ())]
    columns: dict[str, list[int]] = {name: [] for name in names}
    words = {}
    for each in inputs:
        row = dict.fromkeys(names, 0)
        if each is None:
            row["rst"] = 1
        else:
            if each.policy not in words:
                words[each.policy] = _word((getattr(each.policy, name) for name, _ in _POLICY), policy)
            row |= {"clear": each.clear, "policy": words[each.policy],
                    "o_start__ready": each.start_ready, "o_item__ready": each.item_ready,
                    "o_completion__ready": each.completion_ready, "o_counter__ready": each.counter_ready}
            if each.arrived is not None:
                row |= {"told": 1, "arrived": each.arrived % 2 ** (unit.time + 1)}
            for stream, value in (("i_request", each.request and _word(each.request, request)),
                                  ("i_done", each.done), ("i_counter", each.counter)):
                if value is not None:
                    row |= {f"{stream}__valid": 1, f"{stream}__payload": value}
        for name, value in row.items():
            columns[name].append(int(value))
    return columns


def ports_out(unit: DispatchUnit, outputs: Iterable[Outputs | None]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What must come out of a run.

    Returns
    -------
    dict of str to (ndarray of int, ndarray)
        Output port -> cycles in which it is looked at (not in reset; a payload while it is valid), and its values then:
        uint64, or Python's integers where one is wider.
    """
    widths = _widths(unit)
    fields = {stream: [widths[name] for name in _FIELDS[stream]] for stream in ("o_start", "o_item", "o_completion")}
    rows: dict[str, list[int | None]] = {}
    for each in outputs:
        row: dict[str, int | None] = {}
        if each is not None:
            row = {"i_request__ready": each.request_ready, "i_done__ready": each.done_ready,
                   "i_counter__ready": each.counter_ready, "now": each.now, "overdue": each.overdue,
                   "error": each.error}
            for stream, value in (("o_start", each.start), ("o_item", each.item),
                                  ("o_completion", each.completion)):
                row[f"{stream}__valid"] = value is not None
                row[f"{stream}__payload"] = None if value is None else _word(_values(value), fields[stream])
            row |= {"o_counter__valid": each.counter is not None, "o_counter__payload": each.counter}
        for name in ("i_request__ready", "i_done__ready", "i_counter__ready", "now", "overdue", "error",
                     *(f"{stream}__{part}" for stream in ("o_start", "o_item", "o_completion", "o_counter")
                       for part in ("valid", "payload"))):
            value = row.get(name)
            rows.setdefault(name, []).append(None if value is None else int(value))
    looked_at = {name: [cycle for cycle, value in enumerate(column) if value is not None]
                 for name, column in rows.items()}
    values = {name: [rows[name][cycle] or 0 for cycle in cycles] for name, cycles in looked_at.items()}
    return {name: (np.array(cycles, int), np.array(values[name], np.uint64 if max(values[name], default=0) < 1 << 64
                                                   else object)) for name, cycles in looked_at.items()}


def differences(got: Mapping[str, np.ndarray],
                wanted: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> list[tuple[int, str, int, int]]:
    """(cycle, port, value, value that was wanted) of every difference, in order."""
    found = []
    for name, (cycles, values) in wanted.items():
        have = got[name][cycles]
        found += [(int(cycles[n]), name, int(have[n]), int(values[n])) for n in np.flatnonzero(have != values)]
    return sorted(found)


def compare(player: Player, case: Case) -> tuple[Comparison, int, Twin]:
    """Play one case on twin and Verilog.

    Returns
    -------
    (Comparison, int, Twin)
        What all port values came to; the cycles; the twin at the end.
    """
    inputs, outputs, twin = record(case)
    wanted = ports_out(case.unit, outputs)
    found = differences(player.play(ports_in(case.unit, inputs)), wanted)
    lines = [f"{case.name}, cycle {cycle}: {name} is {have:#x} instead of {want:#x}"
             for cycle, name, have, want in found[:5]]
    return Comparison(sum(len(cycles) for cycles, _ in wanted.values()), len(found), lines), len(inputs), twin


def words(unit: DispatchUnit) -> list[str]:
    """The generator's options for a dispatcher."""
    pairs = [(f"--{name}", str(value)) for name, value in unit.parameters.items()]
    return ["--unit", "dispatch", *(word for pair in pairs for word in pair)]
