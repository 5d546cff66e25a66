"""A run as a trace that Perfetto and chrome://tracing open; a microsecond of theirs is a cycle."""

from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.isa.instructions import Unit
from hbfp.program import Program

from .times import Times, layers_of, moved


def trace(program: Program, times: Times) -> dict[str, Any]:
    """The trace: each unit has a row with a span for each instruction, and a row of waits below; layers have a row.

    Spans of a unit that takes an instruction before the last one is complete are cut where the next begins.
    """
    rows = [(0, "layers")] + [(10 * unit + wait, f"{unit.name.lower()}{' waits' if wait else ''}")
                              for unit in Unit for wait in (0, 1)]
    spans: list[dict[str, Any]] = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "accelerator"}}]
    for row, name in rows:
        spans += [{"ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": {"name": name}},
                  {"ph": "M", "pid": 1, "tid": row, "name": "thread_sort_index", "args": {"sort_index": row}}]

    def span(row: int, name: str, begin: int, end: int, **about: Any) -> None:
        if end > begin:
            spans.append({"ph": "X", "pid": 1, "tid": row, "name": name, "ts": begin, "dur": end - begin,
                          "args": about})

    layer: dict[int, str] = {}
    begin = 0
    for name, first, stop, macs in layers_of(program):
        end = max(begin, int(times.completed[first:stop].max(initial=0)))
        span(0, name, begin, end, macs=macs)
        layer |= dict.fromkeys(range(first, stop), name)
        begin = end
    follows: dict[Unit, int] = {}    # the start of the next instruction of a unit
    for number in range(len(program.instructions) - 1, -1, -1):
        each = program.instructions[number]
        if each.unit is None:
            continue
        start, done, waited = (int(part[number]) for part in (times.started, times.completed, times.waited))
        name = f"{layer.get(number, '')} {each.opcode.name.lower()}".strip()
        about: dict[str, Any] = {"instruction": number, "completed": done,
                                 "waits": [f"{wait.unit.name.lower()} {wait.count}" for wait in each.waits]}
        if bytes_moved := moved(each, program.accelerator):
            about["bytes"] = bytes_moved
        span(10 * each.unit, name, start, min(done, follows.get(each.unit, done)), **about)
        span(10 * each.unit + 1, name, start - waited, start, instruction=number)
        follows[each.unit] = start
    return {"displayTimeUnit": "ns", "traceEvents": spans}


def write(path: Path, program: Program, times: Times) -> Path:
    """Write :func:`trace` as JSON."""
    files.write_json(path, trace(program, times))
    return path
