"""The page as plain loops: a second machine, one word at a time, with no look at undefined words or at order."""

from itertools import product

import numpy as np

from hbfp.golden import bfp
from hbfp.golden.core import core
from hbfp.golden.matmul import matmul_blocks
from hbfp.golden.number.blocks import Blocks
from hbfp.golden.spec.noise import TAPS
from hbfp.golden.spec.vector import Kind, Source, Target, VectorUnit, field_values
from hbfp.golden.vector import unit as vector
from hbfp.isa.instructions import Memory, Opcode


def loops(*counts):
    """(i0, i1 ...) with i0 the fastest."""
    return (each[::-1] for each in product(*map(range, counts[::-1])))


def number(key, place):
    """The number of 8 bits that is drawn at a place, as numerics says it."""
    return sums(key, place, 2 * (place % 32))


def shared(key, place):
    """That which the places of a group share."""
    return sums(key, place, 1)


def sums(key, place, further):
    """Sums of three bits of a group's state, all of them so many places further left."""
    x, y = key, place // 32
    for _ in range(12):
        one, eight, two = ((x << by | x >> 32 - by) % (1 << 32) for by in (1, 8, 2))
        x, y = y ^ one & eight ^ two ^ 0x9E3779B9, x
    state, found = x << 32 | y, 0
    for taps in TAPS:
        found = 2 * found + sum(state >> (tap + further) % 64 for tap in taps) % 2
    return found


class Plain:
    """Executes a program; V, X, W and P are dicts of addresses, DRAM a bytearray."""

    def __init__(self, program):
        self.program, self.system, self.core = program, program.accelerator, program.accelerator.core
        self.lanes = self.system.lanes
        self.dram = bytearray(program.limit)
        for region in program.memory:
            self.dram[region.address:region.end] = region.data
        self.v = np.zeros((self.system.v_words, self.lanes), np.uint32)
        self.x, self.w, self.scales, self.p, self.terms = {}, {}, {}, {}, {}
        self.tiles, self.commands, self.drains, self.passes = [], [], [], []
        self.unit = vector.Machine(VectorUnit.of(self.system))
        self.unit.arguments, self.unit.seed = program.arguments, program.seed

    def run(self):
        for each in self.program.instructions:
            if each.opcode not in (Opcode.NOP, Opcode.YIELD, Opcode.HALT):
                getattr(self, each.opcode.name.lower())(each)
        assert not (self.tiles or self.commands or self.drains)

    # --- DMA ------------------------------------------------------------------------------------

    def transfers(self, i, step, buffer_step):
        start = i["offset"] + (self.program.arguments[i["argument"] - 1] if i["argument"] else 0)
        for i0, i1, i2 in loops(i["count0"], i["count1"], i["count2"]):
            yield (start % 2 ** 32 + i2 * i["dram2"] + i1 * i["dram1"] + i0 * step,
                   i["base"] + i2 * i["buffer2"] + i1 * i["buffer1"] + i0 * buffer_step)

    def load(self, i):
        beat, height = self.system.beat, self.core.height
        if i["elements"]:
            for address, element in self.transfers(i, i["dram0"], i["buffer0"]):
                for n in range(i["run"]):
                    self.v[(element + n) // self.lanes, (element + n) % self.lanes] = self.word(address + 4 * n)
        elif i["memory"] == Memory.W:
            for address, row in self.transfers(i, beat * self.system.record_beats, height):
                self.record(address, row)
        else:
            for address, word in self.transfers(i, beat, 1):
                if i["memory"] == Memory.V:
                    self.v[word] = [self.word(address + 4 * n) for n in range(self.lanes)]
                else:
                    for n in range(self.lanes // 2):
                        self.p[word * self.lanes // 2 + n] = int.from_bytes(
                            self.dram[address + 8 * n:address + 8 * n + 8], "little")

    def word(self, address):
        return int.from_bytes(self.dram[address:address + 4], "little")

    def record(self, address, row):
        """A segment of W: mantissas of so many bits, row after row, then exponents and flags."""
        bits, columns, height = self.system.stored, self.lanes, self.core.height
        data = int.from_bytes(self.dram[address:address + self.system.beat * self.system.record_beats], "little")
        for r in range(height):
            values = [data >> bits * (r * columns + c) & (1 << bits) - 1 for c in range(columns)]
            self.w[row + r] = [value - (value >> bits - 1 << bits) for value in values]
        scales = data >> 8 * self.system.beat * (self.system.record_beats - 1)
        scales = [scales >> 16 * c & 0xFFFF for c in range(columns)]
        self.scales[row // height] = ([(s & 0x7FFF) - ((s & 0x4000) << 1) for s in scales], [s >> 15 for s in scales])

    def store(self, i):
        steps = (i["dram0"], i["buffer0"]) if i["elements"] else (self.system.beat, 1)
        for address, word in self.transfers(i, *steps):
            for n in range(i["run"] if i["elements"] else self.lanes):
                self.dram[address + 4 * n:address + 4 * n + 4] = int(self.v[word, n]).to_bytes(4, "little")

    # --- Conversion -----------------------------------------------------------------------------

    def convert(self, i):
        rows, words, lanes = i["rows"], i["words"], self.lanes
        matrix = np.array([np.concatenate([self.v[i["base"] + r * i["stride"] + k] for k in range(words)])
                           for r in range(rows)]).view(np.float32)
        step = max(self.core.rows, lanes, self.core.format.terms) if i["columns"] else lanes if i["to_w"] else 1
        if i["prune"]:
            matrix = self.pruned(matrix)
        wide = lanes if i["columns"] else max(lanes, self.core.rows)
        whole = np.zeros((-(-rows // step) * step, -(-matrix.shape[1] // wide) * wide), np.float32)
        whole[:rows, :matrix.shape[1]] = matrix
        drawn = np.zeros(whole.shape, np.int32)
        for r, k, lane in product(range(rows if i["stochastic"] else 0), range(words), range(self.lanes)):
            place = (i["place"] + r * i["place_row"] + k) * self.lanes + lane
            drawn[r, k * self.lanes + lane] = number(i["key"] ^ self.program.seed, place % (1 << 32))
        self.fmt, self.i = self.system.conversion(i["wide"], i["stochastic"]), i
        self.noise = (drawn,) if i["stochastic"] else ()
        if i["sparse"]:
            self.sparse_to_w(whole)
        elif i["to_w"] and i["columns"]:
            self.to_w(whole, lambda k: i["target"] + k * i["target_word"])
        elif i["to_w"]:
            self.noise = tuple(each.T for each in self.noise)
            self.to_w(whole.T.copy(), lambda j: i["target"] + j * i["target_row"])
        elif i["columns"]:
            self.noise = tuple(each.T for each in self.noise)
            apart = 1 if lanes == self.core.rows else i["target_word"] // lanes
            self.to_x(whole.T.copy(), lambda r, k: (
                i["target"] + k * i["target_row"] + r // lanes * i["target_word"] + r % lanes * apart))
        else:
            self.to_x(whole, lambda r, k: i["target"] + r * i["target_row"] + k * i["target_word"])

    def pruned(self, matrix):
        """The N largest of each M lanes, of equal ones the first; and which they are."""
        (n, m), self.kept = self.core.sparse, []
        found = np.zeros_like(matrix)
        for r, row in enumerate(matrix):
            self.kept.append([])
            for first in range(0, len(row), m):
                magnitudes = (row[first:first + m].view(np.uint32) & 0x7FFFFFFF).tolist()
                order = sorted(range(m), key=lambda lane, of=magnitudes: (-of[lane], lane))
                self.kept[r] += sorted(first + lane for lane in order[:n])
            found[r, self.kept[r]] = row[self.kept[r]]
        return found

    def sparse_to_w(self, matrix):
        """Of each row of a matrix (N, K) what is kept, in a column of W; beside W the term that each weight meets."""
        (n, m), side, terms, i = self.core.sparse, self.lanes, self.core.format.terms, self.i
        height = self.core.rows
        blocks = bfp.encode_plain(matrix, self.fmt, *self.noise)
        width = matrix.shape[1]
        beyond = [group * m + e for group in range(width // m) for e in range(n)]    # of rows of zeros
        for j, k in product(range(len(matrix) // side), range(width * n // m)):
            at, rows = i["target"] + j * i["target_row"] + k, range(j * side, (j + 1) * side)
            if i["wide"]:    # a pair of columns for every other one
                rows = [r // 2 * 2 + i["part"] for r in rows]
            lanes = [(self.kept[r] if r < i["rows"] else beyond)[k] for r in rows]
            self.w[at] = [self.digit(int(blocks.mantissa[r, lane]), c % 2)
                          for c, (r, lane) in enumerate(zip(rows, lanes, strict=True))]
            self.terms[at] = [k // n * m % (height * m // n) + lane % m for lane in lanes]
            if k % height == 0:
                places = [(r // terms if self.core.format.square else r, lanes[0] // terms) for r in rows]
                self.scales[at // height] = tuple([each[place] for place in places]
                                                for each in (blocks.exponent, blocks.invalid))

    def digit(self, mantissa, high):
        """The high digit of a wide mantissa or the low one, both of one sign only where that needs no more bits."""
        if not self.i["wide"]:
            return mantissa
        size = 1 << self.core.format.mantissa - 1
        above = max(mantissa // size, 1 - size)
        return above if high else mantissa - above * size

    def to_x(self, matrix, place):
        """A matrix (rows, K), word by word."""
        terms, side = self.core.format.terms, min(self.core.rows, self.lanes)
        blocks, pieces = bfp.encode_plain(matrix, self.fmt, *self.noise), self.lanes // side
        for r, k in product(range(len(matrix)), range(matrix.shape[1] // side)):
            row = r // terms if self.core.format.square else r
            at = [(k * side + s) // terms for s in range(0, side, min(side, terms))]
            self.x[place(r, k // pieces) + k % pieces] = (
                [self.digit(m, 1 - self.i["part"]) for m in blocks.mantissa[r, k * side:(k + 1) * side]],
                blocks.exponent[row, at], blocks.invalid[row, at])

    def x_row(self, address, words=1):
        """A row of the core, of so many pieces as it has, or mantissas of several with the first one's exponents."""
        each = max(1, self.core.rows // self.lanes)
        pieces = [self.x[address + n] for n in range(words * each)]
        _, *scales = (np.concatenate(parts) for parts in zip(*pieces[:each], strict=True))
        mantissa = np.concatenate([piece[0] for piece in pieces])
        return mantissa, *(each[::len(each) // self.core.segments] for each in scales)

    def to_w(self, matrix, place):
        """A matrix (K, N), column tile by column tile."""
        terms, height, side = self.core.format.terms, self.core.height, self.lanes
        blocks = bfp.encode_plain(matrix, self.fmt, *self.noise, axis=-2)
        for j in range(matrix.shape[1] // side):
            columns = np.arange(j * side, (j + 1) * side)
            if self.i["wide"]:    # a pair for every other one
                columns = columns // 2 * 2 + self.i["part"]
            exponents = columns // terms if self.core.format.square else columns
            for r in range(len(matrix)):
                self.w[place(j) + r] = [self.digit(m, n % 2) for n, m in enumerate(blocks.mantissa[r, columns])]
                if r % height == 0:
                    self.scales[(place(j) + r) // height] = (list(blocks.exponent[r // terms, exponents]),
                                                             list(blocks.invalid[r // terms, exponents]))

    # --- The core -------------------------------------------------------------------------------

    def weights(self, i):
        side, segments = self.core.rows, self.core.segments
        for _, t in product(range(i["repeats"]), range(i["tiles"])):
            row = i["base"] + t * side
            scales = [self.scales[row // self.core.height + s] for s in range(segments)]
            self.tiles.append(([self.w[row + r] for r in range(side)], scales, row))
        self.progress()

    def multiply(self, i):
        for p0, p1, p2 in loops(i["passes0"], i["passes1"], i["passes2"]):
            rows = []
            for i0, i1 in loops(i["rows0"], i["rows1"]):
                x, y = i["x"] + i0 * i["x_row"] + p1 * i["x_pass"], i["y"] + i1 * i["y_row"] + p2 * i["y_pass"]
                if i["bounded"] and not (0 <= x < i["width"] and 0 <= y < i["height"]):
                    least = max(-126, -2 ** (self.core.format.exponent - 1))
                    words = self.system.spread if i["sparse"] else 1
                    rows.append((np.zeros(words * self.core.rows, int), [least] * self.core.segments,
                                 [False] * self.core.segments))
                else:
                    address = (i["base"] + i0 * i["row0"] + i1 * i["row1"] + p0 * i["pass0"] + p1 * i["pass1"]
                               + p2 * i["pass2"])
                    words = self.system.spread if i["sparse"] else 1
                    row = self.x_row(address, words)
                    if i["wide_x"]:
                        low = self.x_row(address + i["low"], words)
                        row = self.joined(row[0], low[0]), *low[1:]
                    rows.append(row)
            self.passes.append(rows)
        if i["last"]:
            self.commands += [(self.passes, i)] * i["columns"]
            self.passes = []
        self.progress()

    def dense(self, rows, _, first):
        """A tile of sparse weights as the dense one that it stands for."""
        found = np.zeros((self.core.reach(len(rows)), self.lanes), int)
        for (r, row), c in product(enumerate(rows), range(self.lanes)):
            found[self.terms[first + r][c], c] += row[c]
        return list(found)

    def joined(self, high, low):
        """Wide mantissas of their digits."""
        return [above * (1 << self.core.format.mantissa - 1) + below for above, below in zip(high, low, strict=True)]

    def drain(self, i):
        for j in range(i["columns"]):
            word, lanes = (j // 2, range(j % 2, self.lanes, 2)) if i["wide"] else (j, range(self.lanes))
            vectors = [self.v[i[f"{name}_base"] + word, lanes].copy() if i[name] else None
                       for name in ("scale", "bias")]
            places = [i["base"] + i0 * i["row0"] + i1 * i["row1"] + word * i["column"]
                      for i0, i1 in loops(i["rows0"], i["rows1"])]
            # Of round i1 of the outer loop lane i1 and those behind it.
            first = [n // i["rows0"] % self.lanes * i["diagonal"] for n in range(len(places))]
            self.drains.append((places, lanes, first, vectors))
        self.progress()

    def progress(self):
        while self.commands and self.drains and len(self.tiles) >= len(self.commands[0][0]):
            (passes, i), (places, lanes, first, vectors) = self.commands.pop(0), self.drains.pop(0)
            tiles = [self.tiles.pop(0) for _ in passes]
            if i["sparse"]:
                tiles = [(self.dense(*tile), *tile[1:]) for tile in tiles]
            reach = self.core.reach(self.core.rows) if i["sparse"] else self.core.rows
            per = max(self.core.format.terms // reach, 1)    # passes of a block: its last exponents count
            last = [number for number in range(len(passes)) if number % per == per - 1 or number == len(passes) - 1]
            if i["wide_x"] or i["wide_w"]:    # a pair of columns, the exponents of its first
                tiles = [([self.joined(row[1::2], row[::2]) if i["wide_w"] else row[::2] for row in rows],
                          [[part[::2] for part in scale] for scale in scales]) for rows, scales, _ in tiles]
            fmts = [type(self.core.format)(mantissa=self.core.wide if i[f"wide_{name}"] else self.core.format.mantissa,
                                           exponent=self.core.format.exponent, block=(1, self.core.format.terms))
                    for name in "xw"]
            x = Blocks(*(np.array([np.concatenate([np.array(passes[p][row][part]) for p in which])
                                   for row in range(len(places))])
                         for part, which in ((0, range(len(passes))), (1, last), (2, last))), fmts[0], -1)
            w = Blocks(np.array([row for tile in tiles for row in tile[0]]),
                       *(np.array([scale[part] for p in last for scale in tiles[p][1]]) for part in (0, 1)),
                       fmts[1], -2)
            x, w = (Blocks(each.mantissa.astype(np.int32), each.exponent.astype(np.int32), each.invalid.astype(bool),
                           each.fmt, each.axis) for each in (x, w))
            y = matmul_blocks(x, w, self.core.accumulate, guard=self.core.guard, growth=self.core.growth, plain=True)
            y = core.side(y.view(np.uint32), *vectors, relu=bool(i["relu"]))
            for place, at, row in zip(places, first, y, strict=True):
                self.v[place, lanes[at:]] = row[at:]

    # --- The vector unit ------------------------------------------------------------------------

    def vector(self, i):
        words = [self.p[i["program"] + n] for n in range(i["before"] + i["body"])]
        if i["before"]:
            self.iteration(i, words[:i["before"]], 0, 0)
        if i["body"]:
            for i0, i1 in loops(i["count0"], i["count1"]):
                self.iteration(i, words[i["before"]:], i0, i1)

    def iteration(self, i, words, i0, i1):
        taken = given = 0
        for word in words:
            f, inputs = field_values(word), []
            beats = range(-(-self.unit.length // self.lanes))
            if f["kind"] == Kind.VECTOR and Source.STREAM in (f["a_source"], f["b_source"], f["c_source"]):
                if i["taps"]:
                    inner = i["i1_inner"] or 256
                    ahead = taken % inner * i["i1_step"] + taken // inner * i["i1_stride0"]
                    places = [self.place(i, "i0", beat, i0, i1) + ahead for beat in beats]
                else:
                    places = [self.place(i, f"i{min(taken, 2)}", beat, i0, i1) for beat in beats]
                taken += 1
                inputs = [np.concatenate([self.v[place] for place in places])[:self.unit.length]]
            rows = self.unit.run([word], inputs)
            if f["kind"] == Kind.VECTOR and f["target"] == Target.STREAM:
                row = np.zeros(len(beats) * self.lanes, np.uint32)
                row[:self.unit.length] = rows[0]
                for beat in beats:
                    self.v[self.place(i, f"o{min(given, 1)}", beat, i0, i1)] = row[beat * self.lanes:][:self.lanes]
                given += 1

    @staticmethod
    def place(i, slot, word, i0, i1):
        inner = i[f"{slot}_inner"] or 256
        return (i[f"{slot}_base"] + word % inner + word // inner * i[f"{slot}_step"] + i0 * i[f"{slot}_stride0"]
                + i1 * i[f"{slot}_stride1"])
