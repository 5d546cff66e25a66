"""First fit: every operation in the earliest round that has room for it, product by product.

The rules stand in ``docs/pods.md``; ``tests/golden/perf/pods/plain.py`` has them once more, slowly.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from . import chains, state
from .machine import Machine
from .routes import find, take
from .state import NONE, after
from .tiling import Tiles


@njit(cache=True)
def _open_round(skip: np.ndarray, wanted: int) -> int:
    """The first round from ``wanted`` on that may have a free pod; ways are shortened as they are walked."""
    end = wanted
    while end < len(skip) and skip[end] != end:
        end = skip[end]
    while wanted < len(skip) and skip[wanted] != end:
        skip[wanted], wanted = end, skip[wanted]
    return end


@njit(cache=True)
def place(taken: state.Rounds, op: int, t: int, tile_x: int, tile_w: int, back: int, plan: state.Schedule,
          pods: int, must: bool = False) -> bool:
    """Put an operation into round ``t`` if it has room, and say whether it had.

    ``back`` is the partial sum to go on from if there is a way for it, or NONE; ``must``: not without it.
    """
    bank_x, bank_w, bank_out = tile_x % pods, tile_w % pods, op % pods
    if (taken.x[t, bank_x] != NONE and taken.x[t, bank_x] != tile_x
            or taken.w[t, bank_w] != NONE and taken.w[t, bank_w] != tile_w or taken.partial_out[t, bank_out] != NONE):
        return False
    if back != NONE and taken.partial_in[t, back % pods] != NONE:
        if must:
            return False
        back = NONE
    for pod in range(pods):
        if taken.pod[t, pod] != NONE:
            continue
        copy_x = find(taken.link_x[t], bank_x, pod)
        if copy_x < 0:
            continue
        copy_w = find(taken.link_w[t], bank_w, pod)
        if copy_w < 0:
            continue
        copy_out = find(taken.link_out[t], pod, bank_out)
        if copy_out < 0:
            continue
        copy_in = find(taken.link_in[t], back % pods, pod) if back != NONE else -1
        if must and back != NONE and copy_in < 0:
            continue
        take(taken.link_x[t], copy_x, bank_x, pod)
        take(taken.link_w[t], copy_w, bank_w, pod)
        take(taken.link_out[t], copy_out, pod, bank_out)
        plan.copy[op, 0], plan.copy[op, 1], plan.copy[op, 3] = copy_x, copy_w, copy_out
        if copy_in >= 0:
            take(taken.link_in[t], copy_in, back % pods, pod)
            taken.partial_in[t, back % pods] = back
            plan.chained[op], plan.copy[op, 2] = back, copy_in
        taken.x[t, bank_x], taken.w[t, bank_w], taken.partial_out[t, bank_out] = tile_x, tile_w, op
        taken.pod[t, pod] = op
        plan.round[op], plan.pod[op] = t, pod
        taken.used[t] += 1
        if taken.used[t] == pods:
            taken.skip[t] = t + 1
        return True
    return False


@njit(cache=True)
def add_up(busy: np.ndarray, length: np.ndarray, plan: state.Schedule, row: int, column: int, sums: np.ndarray,
           ready: np.ndarray, count: int, added: int, times: state.Times, pods: int) -> tuple[int, int]:
    """Add ``count`` partial sums of a tile, the two that are there first, and activate the last.

    Parameters
    ----------
    busy, length : ndarray
        Post-processors taken in each round, and its cycles.
    row, column : int
        The row tile and the column tile whose sums these are.
    sums, ready : ndarray
        Partial sums and the rounds in which they can be read; overwritten.
    added : int
        Additions that the schedule has.
    times : state.Times

    Returns
    -------
    tuple of int
        The round in which the tile can be read, additions that the schedule has now.
    """
    first = 0
    while True:
        for front in range(first, min(first + 2, count)):    # the two earliest; of equals the one that came first
            best = front
            for other in range(front + 1, count):
                if ready[other] < ready[best]:
                    best = other
            value, when = sums[best], ready[best]
            for other in range(best, front, -1):
                sums[other], ready[other] = sums[other - 1], ready[other - 1]
            sums[front], ready[front] = value, when
        last = min(first + 1, count - 1)
        t = ready[last]
        while busy[t] == pods or 0 < length[t] < times.round:
            t += 1
        length[t] = max(length[t], times.round)
        busy[t] += 1
        plan.add_a[added], plan.add_b[added] = sums[first], sums[last] if last > first else NONE
        plan.add_row[added], plan.add_column[added], plan.add_round[added] = row, column, t
        added += 1
        if count - first <= 2:
            return after(length, times.shortest, t, times.result), added
        first += 2
        for other in range(first, count):    # the sum comes last
            sums[other - 1], ready[other - 1] = sums[other], ready[other]
        first -= 1
        sums[count - 1], ready[count - 1] = len(plan.round) + added - 1, after(length, times.shortest, t, times.sum)


@njit(cache=True)
def fill(taken: state.Rounds, length: np.ndarray, plan: state.Schedule, sums: np.ndarray, ready: np.ndarray,
         count: np.ndarray, done: int, op: int, tile_x: int, tile_w: int, starts: np.ndarray,
         times: state.Times, chain: int = 0) -> int:
    """Place the operations of one row tile from number ``done`` on: the outer loop is along K, the inner over columns.

    Parameters
    ----------
    sums, ready : ndarray (columns, steps)
        Partial sums of each column tile and the rounds in which they can be read; ``count`` of each.
    op, tile_x, tile_w : int
        The first operation, tile of X and tile of W.
    starts : ndarray (steps,)
        The first round in which each tile of X is there.
    times : state.Times
    chain : int
        Most operations along K that have to go on from each other; 0: they may.

    Returns
    -------
    int
        How many are placed; fewer than all if there are too few rounds.
    """
    columns, steps = sums.shape
    pods = taken.pod.shape[1]
    for number in range(done, steps * columns):
        step, column = number // columns, number % columns
        goes_on = chain > 0 and step % chain > 0
        t = max(starts[step], ready[column, count[column] - 1]) if goes_on else starts[step]
        while True:
            t = _open_round(taken.skip, t)
            if t >= len(taken.used):
                return number
            if 0 < length[t] < times.round:
                t += 1
                continue
            oldest = count[column] - 1 if goes_on else NONE
            for other in range(0 if chain else count[column]):
                if ready[column, other] <= t and (oldest == NONE or ready[column, other] < ready[column, oldest]):
                    oldest = other
            if place(taken, op + number, t, tile_x + step, tile_w + number, NONE if oldest == NONE else
                     sums[column, oldest], plan, pods, goes_on):
                break
            t += 1
        length[t] = max(length[t], times.round)
        if plan.chained[op + number] == NONE:
            oldest = count[column]
            count[column] += 1
        sums[column, oldest] = op + number
        ready[column, oldest] = after(length, times.shortest, t, times.product)
    return steps * columns


@njit(cache=True)
def _add_all(busy, length, plan, row, sums, ready, count, added, times, pods):
    """:func:`add_up` for all columns of a row tile."""
    done = 0
    for column in range(len(count)):
        when, added = add_up(busy, length, plan, row, column, sums[column], ready[column], count[column], added, times,
                             pods)
        done = max(done, when)
    plan.ready[row] = done
    return added


@njit(cache=True)
def _earliest(plan, of, at, first, last, start):
    """The first rounds in which what each tile of X of a row needs can be read."""
    starts = np.full(len(of), start)
    for step in range(len(of)):
        if step and of[step] == of[step - 1]:
            starts[step] = starts[step - 1]
            continue
        for place_ in range(at[of[step]], at[of[step] + 1]):
            for other in range(first[place_], last[place_] + 1):
                starts[step] = max(starts[step], plan.ready[other])
    return starts


def first_fit(tiles: Tiles, machine: Machine, order: Sequence[int], starts: Sequence[int]) -> state.Schedule:
    """The schedule of published work: one product after the other, each operation in the earliest round with room.

    Where products have operations of different lengths, a round is as long as the first one in it asks for, and longer
    ones wait for another.

    Parameters
    ----------
    tiles : Tiles
    machine : Machine
    order : sequence of int
        Numbers of all products, those that others read before them.
    starts : sequence of int
        The first round in which each product may run: when its network arrives.

    Returns
    -------
    state.Schedule
    """
    plan, pods = state.schedule(tiles), machine.pods
    shortest = machine.round(int(tiles.partition.min()))
    taken = state.rounds(machine, tiles.operations // pods * 5 // 4 + 64)
    busy, length, added = np.zeros(0, np.int32), np.zeros(0, np.int32), 0
    feeds = chains.feeds(tiles, machine) if machine.chains else []
    for gemm in order:
        times = state.times(machine, int(tiles.partition[gemm]), shortest)
        groups, rows, steps, columns = (int(each) for each in tiles.shape[gemm])
        for number in range(groups * rows):
            tile_x = int(tiles.first_x[gemm]) + number * steps
            first = _earliest(plan, tiles.need_of[tile_x:tile_x + steps], tiles.need_at, tiles.need_first,
                              tiles.need_last, starts[gemm])
            sums, ready = (np.empty((columns, steps), np.int64) for _ in range(2))
            count, done = np.zeros(columns, np.int64), 0
            while True:
                # Rounds that additions cannot use are fewer than rounds with operations and operations / pods together.
                room = (2 * max(len(taken.used), int(first.max())) + tiles.operations // pods
                        + (steps + 2) * (times.product + times.result))
                if room > len(length):
                    busy, length = (np.concatenate((each, np.zeros(2 * room - len(each), np.int32)))
                                    for each in (busy, length))
                done = fill(taken, length, plan, sums, ready, count, done,
                            int(tiles.first_op[gemm]) + number * steps * columns, tile_x,
                            int(tiles.first_w[gemm]) + number % groups * steps * columns, first, times, machine.chains)
                if done == steps * columns:
                    break
                taken = state.longer(taken, machine, max(len(taken.used), int(first.max())) * 5 // 4 + 64)
            row = int(tiles.first_row[gemm]) + number
            if machine.chains:
                taken, length, added = chains.activate_all(taken, length, plan, machine, row, sums, ready, count, added,
                                                           chains.becomes(tiles, feeds, gemm, number), times)
                busy = np.concatenate((busy, np.zeros(len(length) - len(busy), np.int32)))
                continue
            added = _add_all(busy, length, plan, row, sums, ready, count, added, times, pods)
    length = length[:max(int(each.max()) for each in (plan.add_round[:added], plan.round)) + 1]
    return plan._replace(length=np.maximum(length, shortest), **{
        name: getattr(plan, name)[:added] for name in plan._fields if name.startswith("add_")})
