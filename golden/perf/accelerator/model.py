"""The cycle model: programs stepped through cycle by cycle, without values.

It has a function for each unit of the RTL, with the registers that decide when things move, and must equal the Verilog
to the cycle.
"""

from pathlib import Path

import numpy as np
from numba import njit

from hbfp import files
from hbfp.isa.instructions import Opcode, Unit
from hbfp.program import Program

from . import array, bus, convert, core, dma, dram, programs, queue, vector, walk
from .decode import Decoded, decoded
from .times import Times

#: Cycles after which a program counts as one that never ends.
LIMIT = 1 << 40
_UNITS = len(Unit) + 1
_LOAD, _STORE, _CONVERT, _WEIGHTS, _MULTIPLY, _DRAIN, _VECTOR = (int(unit) for unit in Unit)
_NOP, _HALT = int(Opcode.NOP), int(Opcode.HALT)
#: Memories as :func:`golden.perf.accelerator.dma.target` counts them.
_V, _W = 0, 1


class EndlessError(ValueError):
    """A program does not end; one line."""


def times(program: Program, latency: dict[str, int], dram_latency: int, bandwidth: int) -> Times:
    """When each instruction of a program starts and completes.

    Parameters
    ----------
    program : Program
    latency : dict
        Of the core: the manifest's ``latency``.
    dram_latency, bandwidth : int
        Of the DRAM: cycles, and bytes a cycle.

    Raises
    ------
    EndlessError
        If the program does not end.
    """
    accelerator = program.accelerator
    arrays = decoded(program)
    count = len(program.instructions)
    made = np.zeros((3, count), np.int64)
    walkers = np.zeros((2, walk.SIZE), np.int64)
    for each in walkers:
        each[[walk.BEAT, walk.LONGEST, walk.RECORD, walk.HEIGHT]] = (
            accelerator.beat, accelerator.burst, accelerator.record_beats, accelerator.core.height)
    cycles = _RUN(*_fields(arrays), made, accelerator.queue,
                  core.fresh(accelerator.core, latency), dram.fresh(dram_latency, bandwidth, accelerator.beat),
                  bus.fresh_fetch(accelerator, count), bus.fresh(accelerator), bus.fresh(accelerator), walkers[0],
                  walkers[1], dma.fresh(accelerator.lanes, accelerator.record_beats, accelerator.reads),
                  dma.fresh(accelerator.lanes, accelerator.record_beats, dma.STORE_PIECES),
                  convert.fresh(accelerator.core), vector.fresh(accelerator), *programs.words(program), LIMIT)
    if cycles == LIMIT:
        raise EndlessError(f"The program does not end in {LIMIT} cycles")
    # The doorbell takes a cycle before the first one of the units; the last one counts.
    made += 1
    made[:2, arrays.opcode == _HALT] = cycles + 2
    return Times(cycles + 2, made[0], made[1], made[2] - 1)


def _fields(arrays: Decoded):
    return arrays.opcode, arrays.unit, arrays.waits, arrays.fields, arrays.numbers


def _compiled(key):
    """The stepper, compiled; Numba keeps it for this ``key``, which stands for all files that it is made of."""

    @njit(cache=True)
    def run(*arguments):
        key    # noqa: B018    # Numba looks at what a function closes over, not at the files of what it calls
        return _step(*arguments)
    return run


@njit
def _step(opcode, unit, waits, fields, numbers, made, depth, c, d, fetch, reads, writes, loads, stores, load, store,
         blocks, rows_of, words, firsts, limit):
    """Cycles until HALT; into ``made`` when instructions start, complete, and how long they wait."""
    queues = np.zeros((_UNITS, queue.SIZE), np.int64)
    feed, multiply, drain = (np.zeros(array.SIZE, np.int64), np.zeros(array.SIZE, np.int64),
                             np.zeros(array.SIZE, np.int64))
    counts, finished = np.zeros(_UNITS, np.int64), np.zeros(_UNITS, np.int64)
    heads = np.zeros(_UNITS, np.int64)
    holds, last, ready = np.zeros(_UNITS, np.bool_), np.zeros(_UNITS, np.bool_), np.zeros(_UNITS, np.bool_)
    nop, taken, done = np.zeros(_UNITS, np.bool_), np.zeros(_UNITS, np.bool_), np.zeros(_UNITS, np.bool_)
    place, halt = 0, False
    for now in range(limit):
        # Queues: which heads are ready.
        empty = halt
        for u in range(1, _UNITS):
            q = queues[u]
            ready[u] = nop[u] = taken[u] = False
            done[u] = False
            if q[queue.VALID]:
                heads[u] = numbers[u, q[queue.HEAD]]
                holds[u], last[u] = queue.look(q, waits[heads[u]], counts)
                if not (holds[u] and last[u]):
                    made[2, heads[u]] += 1
                elif opcode[heads[u]] == _NOP:
                    nop[u] = q[queue.TAKEN] == 0
                else:
                    ready[u] = q[queue.TAKEN] != queue.MOST_TAKEN
            empty = empty and q[queue.VALID] == 0 and q[queue.BEHIND] == 0 and q[queue.TAKEN] == 0
        if empty:
            return now

        # The bus.
        dram.begin(d, now)
        free = bus.free(reads, d[dram.AR_READY])
        asked = bus.fetch_asks(fetch)
        wants = loads[walk.PHASE] == walk.BURST and dma.room(load)
        asks = wants and free and asked == 0
        ar = asked if asked else walk.beats(loads) if wants else 0
        mine = d[dram.R_VALID] == 1 and reads[bus.MARKED] & 1 == 1
        came = d[dram.R_VALID] == 1 and not mine
        into = dma.target(load, mine)

        # Memories: V is written by vector first, then drain, then load; W by convert first.
        vector_writes, drain_wants = vector.writes(rows_of), array.drain_writes(drain, c)
        drained = drain_wants and not vector_writes
        granted = into >= 0 and not (into == _V and (vector_writes or drain_wants))
        if (into == _W and convert.writes_w(blocks)) or (into == dma.SCALES and convert.writes_scales(blocks)):
            granted = False
        straddles = into == _V and dma.straddles(load)
        beat = granted and not straddles
        # V is read by drain first, then convert, vector, store.
        free_v = not array.drain_reads(drain, c)
        convert_reads = free_v and convert.reads(blocks)
        free_v = free_v and not convert_reads
        vector_reads = free_v and vector.reads(rows_of, words)
        free_v = free_v and not vector_reads
        store_reads = free_v and store[dma.VALID] == 1 and bus.room(writes, store[dma.OUT])
        taken[_CONVERT], done[_CONVERT] = convert.step(blocks, ready[_CONVERT], fields[heads[_CONVERT]], convert_reads)
        head = heads[_VECTOR]
        taken[_VECTOR], done[_VECTOR] = vector.step(rows_of, words, ready[_VECTOR], firsts[head], fields[head],
                                                    vector_reads)

        # The array.
        done[_WEIGHTS], done[_MULTIPLY], done[_DRAIN] = feed[array.DONE], multiply[array.DONE], drain[array.DONE]
        w, taken[_WEIGHTS] = array.weights(feed, c, ready[_WEIGHTS], fields[heads[_WEIGHTS]])
        x, rows, taken[_MULTIPLY] = array.multiply(multiply, c, ready[_MULTIPLY], fields[heads[_MULTIPLY]])
        tiles, steps = multiply[array.COMMAND_TILES], multiply[array.COMMAND_STEPS]
        v, taken[_DRAIN] = array.drain(drain, c, drained, ready[_DRAIN], fields[heads[_DRAIN]])
        core.step(c, w, x, rows, tiles, steps, v, drained)
        if taken[_MULTIPLY]:
            array.begin_multiply(multiply, fields[heads[_MULTIPLY]])

        # Loads.
        ends = False
        if granted and into == _V:
            load[dma.SECOND] = straddles
        if beat:
            final = load[dma.head(load) + dma.LAST] == 1
            ends = dma.move(load)
            done[_LOAD] = ends and final
        taken[_LOAD] = asks and walk.last(loads, fields[heads[_LOAD]], 0)
        dma.step(load, asks, loads, fields[heads[_LOAD]], 0, ends)
        if ready[_LOAD] and loads[walk.PHASE] == walk.START:
            made[0, heads[_LOAD]] = now
        walk.step(loads, fields[heads[_LOAD]], 0, ready[_LOAD], asks)

        # Stores.
        room = dma.room(store)
        announces = stores[walk.PHASE] == walk.BURST and room and bus.free(writes, d[dram.AW_READY])
        out = store[dma.OUT]
        written = d[dram.B_VALID] == 1
        done[_STORE] = written and writes[bus.MARKED] & 1 == 1
        length = walk.beats(stores) if announces else 0
        marked = walk.last(stores, fields[heads[_STORE]], 1) if announces else False
        taken[_STORE] = marked
        gone = dma.move(store) if store_reads else False
        dma.step(store, announces, stores, fields[heads[_STORE]], 1, gone)
        if ready[_STORE] and stores[walk.PHASE] == walk.START:
            made[0, heads[_STORE]] = now
        walk.step(stores, fields[heads[_STORE]], 1, ready[_STORE], announces)
        store[dma.OUT] = store_reads

        # The bus's registers, and the DRAM's.
        r_ready = not mine or beat
        over = d[dram.R_VALID] == 1 and r_ready and d[dram.R_LAST] == 1
        w_valid, offered_ar, offered_aw = bus.w_valid(writes), reads[bus.OFFERED], writes[bus.OFFERED]
        ar_ready, aw_ready = d[dram.AR_READY], d[dram.AW_READY]
        took = ar if free else 0
        bus.write(writes, d, length, out)
        bus.address(writes, aw_ready, length, marked, written)
        bus.address(reads, ar_ready, took, asks, over)
        dram.end(d, now, offered_ar, offered_aw, w_valid, r_ready, True)

        # Decode, and what is completed.
        push = 0
        if fetch[bus.VALID] and not halt and place < len(opcode):
            if opcode[place] == _HALT:
                halt, push = True, -1
            elif queue.room(queues[unit[place]], depth):
                push = unit[place]
        bus.fetch(fetch, asked if free else 0, came, push != 0)
        place += push != 0
        for u in range(1, _UNITS):
            if nop[u] or (taken[u] and u != _LOAD and u != _STORE):
                made[0, heads[u]] = now
            if done[u] or nop[u]:
                made[1, numbers[u, finished[u]]] = now
                finished[u] += 1
                counts[u] += 1
            queue.step(queues[u], push == u, taken[u], nop[u], done[u], holds[u], last[u])
    return limit


_RUN = _compiled(files.key(*(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))))
