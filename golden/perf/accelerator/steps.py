"""One cycle after the other of the whole accelerator: the order in which its units look at each other's registers.

The units' own steps stand in the files beside; what gives the machine to one of two programs stands here, as in
``rtl/accelerator/control.py``.
"""

from pathlib import Path

import numpy as np
from numba import njit

from hbfp import files
from hbfp.isa.instructions import Opcode, Unit

from . import array, bus, convert, core, dma, dram, queue, vector, walk

#: Units, and one before them that instructions without a unit count as.
UNITS = len(Unit) + 1
_LOAD, _STORE, _CONVERT, _WEIGHTS, _MULTIPLY, _DRAIN, _VECTOR = (int(unit) for unit in Unit)
_NOP, _YIELD, _HALT = int(Opcode.NOP), int(Opcode.YIELD), int(Opcode.HALT)
#: How the program that has the machine stands; in PARK and IDLE none has it. Twins of ``control.py``, with the cycles
#: of END and PARK behind the first.
_START, _RUN, _TURN, _PARK, _IDLE, _END = range(6)
_PARKED, _SETTLED = 40, 64
#: What is kept of a program: its next instruction, first and last cycle, cycles that it had, turns that it gave.
PLACE, BEGIN, STOP, OWNED, TURNS = range(5)
#: Memories as :func:`golden.perf.accelerator.dma.target` counts them.
_V, _W = 0, 1


def _compiled(key):
    """The stepper, compiled; Numba keeps it for this ``key``, which stands for all files that it is made of."""

    @njit(cache=True)
    def run(*arguments):
        key    # noqa: B018    # Numba looks at what a function closes over, not at the files of what it calls
        return _step(*arguments)
    return run


@njit
def _step(opcode, unit, waits, fields, numbers, sizes, rung, priority, found, made, depth, c, d, fetches, reads, writes,
          loads, stores, load, store, blocks, rows_of, words, firsts, limit):
    """Cycles until HALT of the last program; into ``made`` when instructions start, complete, and how long they wait.

    ``found`` gets of each program what PLACE to TURNS name.
    """
    queues = np.zeros((UNITS, queue.SIZE), np.int64)
    feed, multiply, drain = (np.zeros(array.SIZE, np.int64), np.zeros(array.SIZE, np.int64),
                             np.zeros(array.SIZE, np.int64))
    fresh = (c.copy(), loads.copy(), stores.copy(), load.copy(), store.copy(), blocks.copy(), rows_of.copy())
    fetch = fetches[0].copy()
    counts = np.zeros(UNITS, np.int64)
    heads, done_of = np.zeros(UNITS, np.int64), np.zeros((len(sizes), UNITS), np.int64)
    holds, last, ready = np.zeros(UNITS, np.bool_), np.zeros(UNITS, np.bool_), np.zeros(UNITS, np.bool_)
    nop, taken, done = np.zeros(UNITS, np.bool_), np.zeros(UNITS, np.bool_), np.zeros(UNITS, np.bool_)
    owner = 0
    for other in range(1, len(sizes)):
        if rung[other] < rung[owner]:
            owner = other
    begun, ended = np.zeros(2, np.bool_), np.zeros(2, np.bool_)
    phase, timer, halt, left = _START, 0, 0, len(sizes)
    begun[owner], found[owner, BEGIN] = True, 0
    first = 0
    for other in range(owner):
        first += sizes[other]
    for now in range(limit):
        if phase > _TURN or phase == _START:    # the units are reset: nothing goes on but the bus
            dram.begin(d, now)
            if phase == _START:
                found[owner, OWNED] += 1
            quiet = reads[bus.UNDER_WAY] == 0
            over = d[dram.R_VALID] == 1 and d[dram.R_LAST] == 1
            offered = reads[bus.OFFERED]
            bus.address(reads, d[dram.AR_READY], 0, False, over)
            dram.end(d, now, offered, 0, False, True, True)
            timer += 1
            if phase == _START:
                if quiet:
                    phase = _RUN
            elif phase == _IDLE:
                other = 1 - owner
                if len(sizes) > 1 and rung[other] <= now + 1 and not ended[other]:
                    owner = other
                elif ended[owner]:
                    continue
                first = sizes[0] * owner
                phase = _START
                if not begun[owner]:
                    begun[owner], found[owner, BEGIN] = True, now + 1
                fetch[:] = fetches[owner]
                bus.start(fetch, found[owner, PLACE])
                for u in range(1, UNITS):
                    queues[u, queue.HEAD] = done_of[owner, u]
            elif timer > (_PARKED if phase == _PARK else _SETTLED):
                phase = _IDLE
            continue
        place = first + found[owner, PLACE]
        found[owner, OWNED] += 1

        # Queues: which heads are ready.
        empty = halt != 0
        for u in range(1, UNITS):
            q = queues[u]
            ready[u] = nop[u] = taken[u] = False
            done[u] = False
            if q[queue.VALID]:
                heads[u] = numbers[owner, u, q[queue.HEAD]]
                holds[u], last[u] = queue.look(q, waits[heads[u]], counts)
                if not (holds[u] and last[u]):
                    made[2, heads[u]] += 1
                elif opcode[heads[u]] == _NOP:
                    nop[u] = q[queue.TAKEN] == 0
                else:
                    ready[u] = q[queue.TAKEN] != queue.MOST_TAKEN
            empty = empty and q[queue.VALID] == 0 and q[queue.BEHIND] == 0 and q[queue.TAKEN] == 0
        if empty and halt == _HALT:
            found[owner, STOP] = now
            ended[owner] = True
            left -= 1
            if left == 0:
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
        if fetch[bus.VALID] and halt == 0 and found[owner, PLACE] < sizes[owner]:
            if opcode[place] == _HALT or opcode[place] == _YIELD:
                halt, push = opcode[place], -1
            elif queue.room(queues[unit[place]], depth):
                push = unit[place]
        bus.fetch(fetch, asked if free else 0, came, push != 0)
        found[owner, PLACE] += push != 0
        for u in range(1, UNITS):
            if nop[u] or (taken[u] and u != _LOAD and u != _STORE):
                made[0, heads[u]] = now
            if done[u] or nop[u]:
                made[1, numbers[owner, u, done_of[owner, u]]] = now
                done_of[owner, u] += 1
                counts[u] += 1
            queue.step(queues[u], push == u, taken[u], nop[u], done[u], holds[u], last[u])

        # YIELD and HALT.
        if phase == _TURN or (empty and halt == _HALT):
            c[:], loads[:], stores[:], load[:], store[:], blocks[:], rows_of[:] = fresh
            feed[:], multiply[:], drain[:], counts[:] = 0, 0, 0, 0
            other, timer = 1 - owner, 0
            if halt == _HALT:
                phase = _END
            elif len(sizes) > 1 and rung[other] < now + 1 and not ended[other] and not (priority and owner == 0):
                phase = _PARK
                found[owner, TURNS] += 1
            else:
                phase = _RUN
            halt = 0
        elif empty:
            phase = _TURN
    return limit


#: ``_step``, compiled once for all files of this folder.
STEPPER = _compiled(files.key(*(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))))
