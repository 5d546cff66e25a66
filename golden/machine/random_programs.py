"""Random legal programs: every opcode, on small memories, with the waits that they need and some that they do not."""

from random import Random

import numpy as np

from hbfp.isa.instructions import WAITS, Instruction, Memory, Opcode, Unit, Wait
from hbfp.program import Program, Region
from hbfp.system import Accelerator

from .layouts import pack_records
from .loops import nest
from .machine import Machine
from .random_vectors import vector_programs
from .vector import unit_of
from .waits import Accessed, Waits

_ONE = {"count0": 1, "count1": 1, "count2": 1}
#: Words of V in the part of DRAM that programs read and write.
_WORDS = 96
#: Times that addresses are drawn until they fit.
_TRIES = 200


def random_program(accelerator: Accelerator, seed: int, instructions: int = 40) -> Program:
    """A legal program of about so many instructions, the same for the same seed.

    It begins by filling V, W, X and P, so that nothing undefined is read; what comes then is random. It ends by
    bringing all of V to DRAM, then all of W and of X as products with the unit matrix (whose rows take the place of a
    few words of X), so that a difference in any word of a memory is one in DRAM.
    """
    return _Maker(accelerator, seed).program(instructions)


class _Maker:
    """A program under way; a machine executes it as it grows, and tells what its instructions access."""

    def __init__(self, accelerator, seed):
        self.accelerator, self.pick = accelerator, Random(seed)
        self.numbers = np.random.default_rng(seed)
        beat, core = accelerator.beat, accelerator.core
        data = self._floats(_WORDS * accelerator.lanes).tobytes()
        records = b"".join(
            pack_records(accelerator, self._floats(core.rows * core.cols).reshape(core.rows, -1)
                         )[:core.segments * accelerator.record_beats * beat]
            for _ in range(accelerator.w_words // core.rows))
        self.vectors, words = vector_programs(unit_of(accelerator), accelerator.p_words, self.pick)
        self.records_at = len(data)
        self.vectors_at = self.records_at + len(records)
        unit = np.eye(core.rows, dtype=np.float32)
        self.unit_at = self.vectors_at + 8 * accelerator.p_words
        self.unit_record_at = self.unit_at + unit.nbytes
        unit_records = pack_records(accelerator, unit)
        self.found_at = self.unit_record_at + len(unit_records)
        self.limit = self.found_at + (accelerator.v_words + accelerator.w_words + accelerator.x_words) * beat
        self.memory = (Region(0, data), Region(self.records_at, records),
                       Region(self.vectors_at, np.array(words, np.uint64).tobytes()),
                       Region(self.unit_at, unit.tobytes()), Region(self.unit_record_at, unit_records))
        self.machine = Machine(Program(accelerator=accelerator, instructions=(), limit=self.limit, memory=self.memory))
        self.accesses: dict[int, list[Accessed]] = {}
        for memory in (*self.machine.memories.all, self.machine.dram):
            memory.watch = self._watch
        self.waits, self.made, self.tried = Waits(), [], 0

    def _floats(self, count):
        """FP32 numbers of all kinds: small and large, zeros, subnormals, a few infinities and NaN."""
        values = self.numbers.standard_normal(count).astype(np.float32) * np.float32(2) ** self.numbers.integers(
            -6, 7, count).astype(np.float32)
        kind = self.numbers.random(count)
        values[kind < 0.1] = 0
        bits = values.view(np.uint32)
        extreme = kind > 0.998
        bits[extreme] = self.numbers.integers(0, 1 << 32, extreme.sum(), dtype=np.uint32)
        return values

    def _watch(self, memory, addresses, write):
        self.accesses.setdefault(self.machine.order.number, []).append((memory, addresses, write))

    # --- Instructions and their waits -----------------------------------------------------------

    def program(self, instructions):
        """The program."""
        self._fill()
        kinds = (self._load, self._load_runs, self._load_records, self._load_vectors, *[self._store] * 2,
                 *[self._convert] * 3, *[self._product] * 2, *[self._vector] * 4, self._nop)
        while len(self.made) < instructions:
            self._add(self.pick.choice(kinds)())
        self._dump()
        self.made.append(Instruction(Opcode.HALT, {}))
        return Program(accelerator=self.accelerator, instructions=self.made, limit=self.limit, memory=self.memory)

    def _add(self, group):
        """Try instructions that belong together on the machine, and append them with their waits."""
        first = self.tried
        for instruction in group:
            self.machine.step(self.tried, instruction)
            self.tried += 1
        complete = dict(self.waits.counts)    # those of the group are complete when all of it has come
        for number, instruction in enumerate(group, first):
            accesses = self.accesses.pop(number, [])
            needed = self.waits.needed(instruction.unit, accesses)
            waits = {unit: self.pick.choice((count, self.pick.randint(count, max(count, complete[unit]))))
                     for unit, count in needed.items()}
            if len(waits) < WAITS and self.pick.random() < 0.2:
                unit = self.pick.choice(list(Unit))
                waits.setdefault(unit, self.pick.randint(0, complete[unit]))
            while len(waits) > WAITS:
                self._place(Instruction(Opcode.NOP, {"unit": instruction.unit}), {
                    unit: waits.pop(unit) for unit in list(waits)[:WAITS]})
            self._place(instruction, waits, accesses)

    def _place(self, instruction, waits, accesses=()):
        self.waits.add(instruction.unit, waits, accesses)
        self.made.append(Instruction(instruction.opcode, instruction.values, tuple(
            Wait(unit, count) for unit, count in waits.items())))

    def _fill(self):
        """Define every word of the memories."""
        system, core = self.accelerator, self.accelerator.core
        for word in range(0, system.v_words, _WORDS):
            self._add([Instruction(Opcode.LOAD, _ONE | {"base": word, "count0": min(_WORDS, system.v_words - word)})])
        self._add([Instruction(Opcode.LOAD, _ONE | {
            "memory": Memory.W, "offset": self.records_at, "count0": system.w_words // core.height})])
        self._add([Instruction(Opcode.LOAD, _ONE | {
            "memory": Memory.P, "offset": self.vectors_at, "count0": 2 * system.p_words // system.lanes})])
        for word in range(0, system.x_words, system.v_words):
            self._add([Instruction(Opcode.CONVERT, {
                "words": 1, "rows": min(system.v_words, system.x_words - word), "stride": 1, "target": word,
                "target_row": 1})])

    def _dump(self):
        """Bring every word of V, W and X to DRAM."""
        system, side = self.accelerator, self.accelerator.core.rows
        at = self._found(self.found_at, system.v_words)
        lost = self.pick.randrange(system.x_words - side)
        self._add([Instruction(Opcode.LOAD, _ONE | {"offset": self.unit_at, "count0": side})])
        self._add([Instruction(Opcode.CONVERT, {"words": 1, "rows": side, "stride": 1, "target": lost,
                                                "target_row": 1})])
        each = system.v_words // side    # tiles whose products V holds
        for tile in range(0, system.w_words // side, each):
            tiles = min(each, system.w_words // side - tile)
            self._multiply({"base": tile * side, "tiles": tiles}, {"base": lost, "rows0": side, "columns": tiles})
            at = self._found(at, tiles * side)
        self._add([Instruction(Opcode.LOAD, _ONE | {"memory": Memory.W, "offset": self.unit_record_at,
                                                    "count0": system.core.segments})])
        rows = min(system.core.depth, system.v_words, system.x_words)
        for word in range(0, system.x_words, rows):
            count = min(rows, system.x_words - word)
            self._multiply({"tiles": 1}, {"base": word, "rows0": count, "columns": 1})
            at = self._found(at, count)

    def _multiply(self, weights, values):
        """Commands of one pass each, whose results fill V from its first word on."""
        once = {"rows1": 1, "passes0": 1, "passes1": 1, "passes2": 1, "tiles": 1, "first": 1, "last": 1, "row0": 1}
        self._add([Instruction(Opcode.WEIGHTS, {"repeats": 1} | weights),
                   Instruction(Opcode.MULTIPLY, once | values),
                   Instruction(Opcode.DRAIN, {"rows0": values["rows0"], "rows1": 1, "row0": 1,
                                              "columns": values["columns"], "column": values["rows0"]})])

    def _found(self, offset, words):
        """Store the first words of V; the next free place in DRAM."""
        self._add([Instruction(Opcode.STORE, _ONE | {"offset": offset, "count0": words})])
        return offset + words * self.accelerator.beat

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
            dram = self._place_loops(counts, _WORDS, step=1, distinct=False)
            return v and dram and [Instruction(Opcode.LOAD, self._transfer(counts, v, dram))]
        return self._until(draw)

    def _transfer(self, counts, buffer, dram, each=None, **more):
        """Values of a transfer whose DRAM addresses are in units of ``each`` bytes."""
        each = self.accelerator.beat if each is None else each
        first = 0 if "run" in more else 1
        values = {"base": buffer[0], "offset": dram[0] * each}
        values |= {f"count{loop}": count for loop, count in enumerate(counts)}
        values |= {f"buffer{loop}": buffer[1][loop] for loop in range(first, 3)}
        return values | {f"dram{loop}": dram[1][loop] * each for loop in range(first, 3)} | more

    def _load_runs(self):
        def draw():
            counts, lanes = self._counts(3, 30), self.accelerator.lanes
            run = self.pick.randint(1, lanes)
            v = self._place_loops(counts, self.accelerator.v_words * lanes, size=run)
            dram = self._place_loops(counts, _WORDS * lanes, size=run, distinct=False)
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
            values = self._transfer(counts, w, dram, system.record_beats * system.beat, memory=Memory.W)
            return [Instruction(Opcode.LOAD, values | {"offset": values["offset"] + self.records_at})]
        return self._until(draw)

    def _load_vectors(self):
        """The same words of P once more: only their order counts."""
        words = 2 * self.accelerator.p_words // self.accelerator.lanes
        first = self.pick.randrange(words)
        return [Instruction(Opcode.LOAD, {
            "memory": Memory.P, "base": first, "offset": self.vectors_at + first * self.accelerator.beat,
            "count0": self.pick.randint(1, words - first), "count1": 1, "count2": 1})]

    def _store(self):
        def draw():
            counts, lanes = self._counts(3, 30), self.accelerator.lanes
            if self.pick.random() < 0.5:
                v = self._place_loops(counts, self.accelerator.v_words, step=1, distinct=False)
                dram = self._place_loops(counts, _WORDS, step=1)
                return v and dram and [Instruction(Opcode.STORE, self._transfer(counts, v, dram))]
            run = self.pick.randint(1, lanes)
            v = self._place_loops(counts, self.accelerator.v_words, distinct=False)
            dram = self._place_loops(counts, _WORDS * lanes, size=run)
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
            way = pick.choice(("x", "rows", "columns"))
            if way == "x":
                target = self._place_loops([words, rows], system.x_words)
                strides = ("target_word", "target_row")
            elif way == "rows":
                tall = max(core.rows, core.format.terms)
                target = self._place_loops([words], system.w_words, each=core.rows, size=-(-rows // tall) * tall)
                strides = ("target_word",)
            else:
                target = self._place_loops([-(-rows // core.cols)], system.w_words, each=core.rows,
                                           size=words * core.rows)
                strides = ("target_row",)
            if not target:
                return None
            values |= {"to_w": int(way != "x"), "columns": int(way == "rows"), "target": target[0]}
            return [Instruction(Opcode.CONVERT, values | dict(zip(strides, target[1], strict=True)))]
        return self._until(draw)

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
            if tiles > core.max_tiles or tiles * columns // repeats * core.rows > system.w_words:
                return None
            target = self._place_loops([*rows, columns], system.v_words)
            if not target:
                return None
            steps = {"scale": pick.randint(0, 1), "bias": pick.randint(0, 1)}
            common = {"rows0": rows[0], "rows1": rows[1], **steps}
            sent = tiles * columns // repeats
            group = [Instruction(Opcode.WEIGHTS, {
                "base": pick.randint(0, system.w_words // core.rows - sent) * core.rows, "tiles": sent,
                "repeats": repeats})]
            relu = pick.randint(0, 1)
            multiplies = []
            for part in range(parts):
                values = self._pass(rows, passes)
                if values is None:
                    return None
                multiplies.append(Instruction(Opcode.MULTIPLY, common | values | {
                    "first": int(part == 0), "last": int(part == parts - 1), "tiles": tiles, "columns": columns,
                    "relu": relu}))
            drain = common | {"columns": columns, "base": target[0], "row0": target[1][0], "row1": target[1][1],
                              "column": target[1][2]}
            results = set(nest([*rows, columns], target[1], target[0]).ravel().tolist())
            for name in ("scale", "bias"):
                if steps[name]:
                    base = drain[f"{name}_base"] = pick.randint(0, system.v_words - columns)
                    if not results.isdisjoint(range(base, base + columns)):
                        return None
            drains = [Instruction(Opcode.DRAIN, drain)]
            first, second, third = pick.sample((group, multiplies, drains), 3)
            return [*first, *second, *third]
        return self._until(draw)

    def _pass(self, rows, passes):
        """Values of a MULTIPLY for its loops, bounded or not."""
        pick, words = self.pick, self.accelerator.x_words
        values = {f"passes{loop}": count for loop, count in enumerate(passes)}
        found = self._place_loops([*rows, *passes], words, distinct=False)
        if not found:
            return None
        base, strides = found
        values |= {"base": base, "row0": strides[0], "row1": strides[1],
                   **{f"pass{loop}": stride for loop, stride in enumerate(strides[2:])}}
        if pick.random() < 0.5:
            values |= {"bounded": 1, "x": pick.randint(-3, 3), "y": pick.randint(-3, 3), "x_row": pick.randint(0, 2),
                       "y_row": pick.randint(0, 2), "x_pass": pick.randint(0, 3), "y_pass": pick.randint(0, 3),
                       "width": pick.randint(0, 9), "height": pick.randint(0, 9)}
        return values

    def _nop(self):
        return [Instruction(Opcode.NOP, {"unit": self.pick.choice(list(Unit))})]
