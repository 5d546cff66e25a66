"""Random legal instructions, on memories of which every word is defined."""

from collections.abc import Sequence
from random import Random

import numpy as np

from hbfp.isa.instructions import ARGUMENTS, Instruction, Memory, Opcode, Unit
from hbfp.system import Accelerator

from .loops import nest
from .random_vectors import VectorProgram

#: Times that addresses are drawn until they fit.
_TRIES = 200
#: Most that a stride of a CONVERT is, or as much below 0.
_STRIDE = (1 << 15) - 1


class Draw:
    """Draws instructions, and groups of those that belong together.

    Parameters
    ----------
    accelerator : Accelerator
    pick : Random
        Where random numbers come from.
    vectors : list of VectorProgram
        What P holds.
    words : int
        Words of V in the part of DRAM, from offset 0 on, that loads and stores may use.
    records_at, vectors_at : int
        Byte offsets in DRAM of records that fill W, and of what P holds.
    arguments : sequence of int
        Values of the registers that instructions read.
    """

    def __init__(self, accelerator: Accelerator, pick: Random, vectors: list[VectorProgram], words: int,
                 records_at: int, vectors_at: int, arguments: Sequence[int]) -> None:
        self.arguments = arguments
        self.accelerator, self.pick, self.vectors, self.words = accelerator, pick, vectors, words
        self.records_at, self.vectors_at = records_at, vectors_at
        self._kinds = (self._load, self._load_runs, self._load_records, self._load_vectors, *[self._store] * 2,
                       *[self._convert] * 3, *[self._product] * 2, *[self._vector] * 4, self._nop)

    def group(self) -> list[Instruction]:
        """Instructions of one kind without waits, or the three of the core that make commands."""
        return self.pick.choice(self._kinds)()

    # --- Addresses ------------------------------------------------------------------------------

    def _counts(self, loops, most):
        """Counts of loops whose product is at most ``most``."""
        counts = []
        for _ in range(loops):
            counts.append(self.pick.randint(1, min(max(most, 1), self.pick.choice((1, 2, 5, 9)))))
            most //= counts[-1]
        self.pick.shuffle(counts)
        return counts

    def _place_loops(self, counts, words, *, each=1, step=None, distinct=True, size=1):
        """(base, strides) of loops whose addresses, multiples of ``each``, fit in ``words``.

        ``step`` is the innermost stride where it is not free; at each address ``size`` words are used.
        """
        for _ in range(_TRIES):
            strides = [self.pick.choice((1, size, self.pick.randint(-9, 9), self.pick.randint(-40, 40))) * each
                       for _ in counts]
            if step is not None:
                strides[0] = step
            found = nest(counts, strides)
            room = words - size - int(found.max() - found.min())
            if room < 0:
                continue
            if distinct and np.unique(found[..., None] + np.arange(size)).size != found.size * size:
                continue
            return self.pick.randint(0, room // each) * each - int(found.min()), strides
        return None

    def _until(self, draw):
        """What ``draw`` gives when it gives something."""
        return next(found for found in iter(draw, object()) if found is not None)

    # --- One of a kind --------------------------------------------------------------------------

    def _load(self):
        def draw():
            counts = self._counts(3, 40)
            v = self._place_loops(counts, self.accelerator.v_words, step=1)
            dram = self._place_loops(counts, self.words, step=1, distinct=False)
            return v and dram and [Instruction(Opcode.LOAD, self._transfer(counts, v, dram))]
        return self._until(draw)

    def _transfer(self, counts, buffer, dram, each=None, at=0, **more):
        """Values of a transfer whose DRAM addresses are in units of ``each`` bytes from byte ``at`` on."""
        each = self.accelerator.beat if each is None else each
        first = 0 if "run" in more else 1
        values = {"base": buffer[0]} | self._begin(dram[0] * each + at)
        values |= {f"count{loop}": count for loop, count in enumerate(counts)}
        values |= {f"buffer{loop}": buffer[1][loop] for loop in range(first, 3)}
        return values | {f"dram{loop}": dram[1][loop] * each for loop in range(first, 3)} | more

    def _begin(self, offset):
        """Values of a transfer that begin it at an offset: this alone, or an argument and what it leaves of it."""
        number = self.pick.choice((0, 0, self.pick.randint(1, ARGUMENTS)))
        return {"argument": number, "offset": offset - self.arguments[number - 1] & 0xFFFFFFFF} if number else {
            "offset": offset}

    def _load_runs(self):
        def draw():
            counts, lanes = self._counts(3, 30), self.accelerator.lanes
            run = self.pick.randint(1, lanes)
            v = self._place_loops(counts, self.accelerator.v_words * lanes, size=run)
            dram = self._place_loops(counts, self.words * lanes, size=run, distinct=False)
            return v and dram and [Instruction(Opcode.LOAD, self._transfer(counts, v, dram, 4, run=run, elements=1))]
        return self._until(draw)

    def _load_records(self):
        def draw():
            system, height = self.accelerator, self.accelerator.core.height
            counts, records = self._counts(3, 12), system.w_words // height
            w = self._place_loops(counts, system.w_words, each=height, step=height, size=height)
            dram = self._place_loops(counts, records, step=1, distinct=False)
            if not w or not dram:
                return None
            return [Instruction(Opcode.LOAD, self._transfer(
                counts, w, dram, system.record_beats * system.beat, self.records_at, memory=Memory.W))]
        return self._until(draw)

    def _load_vectors(self):
        """The same words of P once more: only their order counts."""
        words = 2 * self.accelerator.p_words // self.accelerator.lanes
        first = self.pick.randrange(words)
        return [Instruction(Opcode.LOAD, {
            **self._begin(self.vectors_at + first * self.accelerator.beat), "memory": Memory.P, "base": first,
            "count0": self.pick.randint(1, words - first), "count1": 1, "count2": 1})]

    def _store(self):
        def draw():
            counts, lanes = self._counts(3, 30), self.accelerator.lanes
            if self.pick.random() < 0.5:
                v = self._place_loops(counts, self.accelerator.v_words, step=1, distinct=False)
                dram = self._place_loops(counts, self.words, step=1)
                return v and dram and [Instruction(Opcode.STORE, self._transfer(counts, v, dram))]
            run = self.pick.randint(1, lanes)
            v = self._place_loops(counts, self.accelerator.v_words, distinct=False)
            dram = self._place_loops(counts, self.words * lanes, size=run)
            return v and dram and [Instruction(Opcode.STORE, self._transfer(counts, v, dram, 4, run=run, elements=1))]
        return self._until(draw)

    def _convert(self):
        def draw():
            system, core, pick = self.accelerator, self.accelerator.core, self.pick
            words, rows = pick.randint(1, 3), pick.choice((pick.randint(1, 4), pick.randint(1, 2 * core.rows)))
            v = self._place_loops([words, rows], system.v_words, step=1, distinct=False)
            if not v:
                return None
            values = {"words": words, "rows": rows, "base": v[0], "stride": v[1][1]}
            to_w, columns = pick.choice(((0, 0), (0, 1), (1, 0), (1, 1)))
            prune = int(core.takes_sparse and pick.random() < 0.5)
            sparse = int(prune and to_w and not columns and words % system.sparse_words == 0)
            block = max(system.whole, core.format.terms)
            tall, wide = -(-rows // block) * block, -(-words * system.lanes // core.rows) * core.rows // system.lanes
            if not to_w:
                target = self._turned(words, tall) if columns else self._place_loops(
                    [wide, rows], system.x_pieces, each=system.word_pieces)
                strides = ("target_word", "target_row")
            elif columns:
                target = self._place_loops([words], system.w_words, each=core.rows, size=tall)
                strides = ("target_word",)
            else:
                target = self._place_loops([-(-rows // system.lanes)], system.w_words, each=core.rows,
                                           size=wide * system.lanes // (system.spread if sparse else 1))
                strides = ("target_row",)
            if not target or max(abs(stride) for stride in target[1]) > _STRIDE:
                return None
            values |= {"to_w": to_w, "columns": columns, "target": target[0]}
            if system.stochastic and pick.random() < 0.7:
                values |= {"stochastic": 1, "key": pick.getrandbits(32),
                           "place": pick.getrandbits(pick.choice((3, 30))),
                           "place_row": pick.choice((words, pick.getrandbits(16)))}
            if core.wide and pick.random() < 0.5:
                values |= {"wide": 1, "part": pick.randint(0, 1)}
            if prune:
                values |= {"prune": 1, "sparse": sparse}
            return [Instruction(Opcode.CONVERT, values | dict(zip(strides, target[1], strict=True)))]
        return self._until(draw)

    def _turned(self, words, tall):
        """:meth:`_place_loops` of words and squares of ``tall`` terms whose lanes are rows of X."""
        system, lanes = self.accelerator, self.accelerator.lanes
        if not system.oblong:
            return self._place_loops([words, tall // lanes], system.x_pieces, size=lanes)
        found = self._place_loops([lanes * words, tall // lanes], system.x_pieces, each=system.word_pieces)
        return found and (found[0], [found[1][0] * lanes, found[1][1]])

    def _vector(self):
        def draw():
            vector, pick = self.pick.choice(self.vectors), self.pick
            counts, values, used = self._counts(2, 12), {}, set()
            inner = pick.randint(1, vector.words)
            row = [inner, -(-vector.words // inner), *counts]
            taps = pick.randint(1, vector.reads) if vector.reads and pick.random() < 0.3 else 0
            inputs = ["i0"] if taps else ["i0", "i1", "i2"][:vector.reads]
            places = {}
            for slot in (*inputs, *["o0", "o1"][:vector.writes]):
                if slot == "o0" and not taps and pick.random() < 0.3 and self._in_place(row, places):
                    values |= {name.replace("i0", "o0"): value for name, value in values.items() if "i0" in name}
                    continue
                loops = [*row, taps, -(-vector.reads // taps)] if taps and slot == "i0" else row
                found = self._place_loops(loops, self.accelerator.v_words, step=1, distinct=slot[0] == "o")
                if not found:
                    return None
                base, strides = found
                places[slot] = nest(loops, strides, base).ravel().tolist()
                if slot[0] == "o" and not used.isdisjoint(places[slot]):
                    return None
                used.update(places[slot])
                values |= {f"{slot}_base": base, f"{slot}_inner": inner, f"{slot}_step": strides[1],
                           f"{slot}_stride0": strides[2], f"{slot}_stride1": strides[3]}
                if len(strides) > 4:
                    values |= {"taps": 1, "i1_inner": taps, "i1_step": strides[4], "i1_stride0": strides[5]}
            return [Instruction(Opcode.VECTOR, values | {
                "program": vector.place, "before": vector.before, "body": vector.body,
                **{f"count{loop}": count for loop, count in enumerate(counts)}})]
        return self._until(draw)

    @staticmethod
    def _in_place(row, places):
        """Whether results may go where slot i0 reads: each word once, and no other slot any of them."""
        first, *others = places.values() or [[]]
        return len(set(first)) == len(first) == np.prod(row) and all(set(first).isdisjoint(each) for each in others)

    def _product(self):
        """Commands of the core: weights, rows and results, in any order of the three."""
        def draw():
            system, core, pick = self.accelerator, self.accelerator.core, self.pick
            rows, passes = self._counts(2, min(core.depth, 12)), self._counts(3, 4)
            parts, columns = pick.choice(((1, 1), (1, 2), (1, 3), (2, 1)))
            tiles = parts * int(np.prod(passes))
            repeats = pick.randint(1, 2) if tiles * columns % 2 == 0 else 1
            sparse = {"sparse": pick.randint(0, 1)} if core.takes_sparse else {}
            if tiles > core.most_tiles(any(sparse.values())) or tiles * columns // repeats * core.rows > system.w_words:
                return None
            wide = {name: pick.randint(0, 1) for name in ("wide_x", "wide_w")} if core.wide else {}
            pairs = int(any(wide.values()))
            words = columns + pairs >> pairs    # of V, of a row of results
            target = self._place_loops([*rows, words], system.v_words)
            if not target:
                return None
            steps = {"scale": pick.randint(0, 1), "bias": pick.randint(0, 1)}
            common = {"rows0": rows[0], "rows1": rows[1], **steps}
            sent = tiles * columns // repeats
            group = [Instruction(Opcode.WEIGHTS, {
                "base": pick.randint(0, system.w_words // core.rows - sent) * core.rows, "tiles": sent,
                "repeats": repeats})]
            each = system.spread if any(sparse.values()) else 1
            before = self._wide_weights(group[0]) if wide.get("wide_w") and each == 1 else []
            if each > 1:
                before = self._sparse_weights(group[0], wide.get("wide_w", 0))
            x = self._wide_rows(each) if wide.get("wide_x") else None
            if before is None or x and x[0] is None:
                return None
            before += x[0] if x else []
            relu = pick.randint(0, 1)
            multiplies = []
            for part in range(parts):
                values = self._pass(rows, passes, *(x[1:] if x else ()), each=each)
                if values is None:
                    return None
                multiplies.append(Instruction(Opcode.MULTIPLY, common | values | wide | sparse | {
                    "first": int(part == 0), "last": int(part == parts - 1), "tiles": tiles, "columns": columns,
                    "relu": relu}))
            drain = common | {"columns": columns, "base": target[0], "row0": target[1][0], "row1": target[1][1],
                              "column": target[1][2], **({"wide": pairs} if core.wide else {})}
            if not drain.get("wide") and pick.random() < 0.3:
                drain |= {"diagonal": 1, "row1": pick.choice([0, drain["row1"]])}
            results = set(nest([*rows, words], target[1], target[0]).ravel().tolist())
            for name in ("scale", "bias"):
                if steps[name]:
                    base = drain[f"{name}_base"] = pick.randint(0, system.v_words - words)
                    if not results.isdisjoint(range(base, base + words)):
                        return None
            drains = [Instruction(Opcode.DRAIN, drain)]
            first, second, third = pick.sample((group, multiplies, drains), 3)
            return [*before, *first, *second, *third]
        return self._until(draw)

    def _wide_weights(self, weights):
        """Conversions to the tiles of a WEIGHTS, of one half of column pairs or the other; None if V has no room."""
        system, core, pick, tiles = self.accelerator, self.accelerator.core, self.pick, weights["tiles"]
        columns = pick.randint(0, 1)
        words, rows = (1, tiles * core.rows) if columns else (tiles * core.rows // system.lanes, system.lanes)
        if tiles * core.rows % (max(system.whole, core.format.terms) if columns else system.lanes):
            return None
        v = self._place_loops([words, rows], system.v_words, step=1, distinct=False)
        if not v:
            return None
        return [Instruction(Opcode.CONVERT, {
            "to_w": 1, "columns": columns, "words": words, "rows": rows, "base": v[0], "stride": v[1][1],
            "target": weights["base"], "wide": 1, "part": pick.randint(0, 1)})]

    def _sparse_weights(self, weights, wide):
        """A conversion to the tiles of a WEIGHTS, of one half of column pairs if ``wide``; None if V has no room."""
        system, pick = self.accelerator, self.pick
        words, rest = divmod(weights["tiles"] * system.core.reach(system.core.rows), system.lanes)
        if rest:
            return None
        rows = pick.randint(1, system.lanes)
        v = self._place_loops([words, rows], system.v_words, step=1, distinct=False)
        return v and [Instruction(Opcode.CONVERT, {
            "to_w": 1, "words": words, "rows": rows, "base": v[0], "stride": v[1][1], "target": weights["base"],
            "prune": 1, "sparse": 1, **({"wide": 1, "part": pick.randint(0, 1)} if wide else {})})]

    def _wide_rows(self, spread):
        """Conversions of rows to X, both digits of each; where they begin, how many words, how far the low digits.

        A command's row takes ``spread`` of them.
        """
        system, pick, each = self.accelerator, self.pick, self.accelerator.whole // self.accelerator.piece
        rows = pick.randint(1, min(40, system.x_pieces // each // spread // 2)) * spread
        v = self._place_loops([1, rows], system.v_words, step=1, distinct=False)
        places = self._place_loops([rows, 2], system.x_pieces, each=each * spread, step=each)
        if not v or not places:
            return None, 0, 0, 0
        base, (_, low) = places
        return [Instruction(Opcode.CONVERT, {
            "words": 1, "rows": rows, "base": v[0], "stride": v[1][1], "target": base + part * low, "target_row": each,
            "target_word": system.word_pieces, "wide": 1, "part": part}) for part in range(2)], base, rows * each, low

    def _pass(self, rows, passes, first=0, words=None, low=0, each=1):
        """Values of a MULTIPLY for its loops, bounded or not, within words of X from ``first`` on; a row has ``each``.
        """
        pick, words = self.pick, words or self.accelerator.x_pieces
        values = {f"passes{loop}": count for loop, count in enumerate(passes)}
        each *= self.accelerator.row_pieces
        found = self._place_loops([*rows, *passes], words, each=each, size=each, distinct=False)
        if not found:
            return None
        base, strides = found
        values |= {"base": base + first, "row0": strides[0], "row1": strides[1], **({"low": low} if low else {}),
                   **{f"pass{loop}": stride for loop, stride in enumerate(strides[2:])}}
        if pick.random() < 0.5:
            values |= {"bounded": 1, "x": pick.randint(-3, 3), "y": pick.randint(-3, 3), "x_row": pick.randint(0, 2),
                       "y_row": pick.randint(0, 2), "x_pass": pick.randint(0, 3), "y_pass": pick.randint(0, 3),
                       "width": pick.randint(0, 9), "height": pick.randint(0, 9)}
        return values

    def _nop(self):
        return [Instruction(Opcode.NOP, {"unit": self.pick.choice(list(Unit))})]
