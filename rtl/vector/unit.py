"""Vector unit: lanes, registers, reductions, and the execution of instructions one pass after another."""

from functools import partial

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.vector import (
    BELOW_BITS,
    CONSTANTS,
    DROPPING,
    FIELDS,
    KEY_BITS,
    KIND,
    LENGTH_BITS,
    SCALARS,
    WORD,
    Kind,
    Op,
    Reduce,
    Source,
    Target,
    VectorUnit,
)

from ..lib.banked import stored
from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.pick import pick
from .dropping import Dropping
from .fetches import Fetches
from .lane import VectorLane, evaluator
from .line import Line
from .several import Several
from .totals import Totals
from .waits import Waits, has_function


def word_layout(unit):
    """A word, with the fields that a unit has."""
    fields = {name: width for name, width in FIELDS if unit.dropping or name not in DROPPING}
    return StructLayout(fields | {"spare": KIND - sum(fields.values()), "kind": WORD - KIND})


#: What a lane needs to know of a beat with its operands.
OPERATION = StructLayout({name: width for name, width in FIELDS if name in (
    "a_source", "a", "b_source", "b", "c_source", "c", "op", "negate_a", "negate_c")})


class Vector(Component):
    """Executes instructions on rows of FP32 numbers, ``lanes`` elements a cycle.

    Instructions, their order of events and cycles: docs/design/04-vector-unit.md. Golden twin:
    :class:`golden.vector.unit.Machine`.

    Parameters
    ----------
    lanes, beats, registers, functions, pipeline, function_lanes, arguments, multiplier, dropping, short_rows, single,
    register_copies
        As of :class:`golden.spec.vector.VectorUnit`. Where lanes share evaluators, a pass with a function issues a beat
        in as many cycles as an evaluator has lanes, which hold their values for so long; a pass without one has its
        results behind the lanes, without the cycles of the functions.

    Members
    -------
    i_program : ``In(stream.Signature(64))``
        Instruction words. A reserved one sets ``error``, is taken and changes nothing else; no other is taken then.
    i : ``In(stream.Signature(32 bits x lanes))``
        Beats of the rows that passes read, lane 0 first.
    o : ``Out(stream.Signature(32 bits x lanes))``
        Beats of the rows that passes give; lanes beyond the length of a row are undefined.
    arguments : ``In(32 bits x arguments)``
        What programs may read, number 1 first; there is no such port where there are none.
    seed : ``In(32)``
        Only of a unit that drops: a part of the key of every number that is drawn.
    error : ``Out(1)``
        A reserved instruction was met; holds until ``clear``.
    clear : ``In(1)``
        Resets ``error``.
    busy : ``Out(1)``
        A pass is in flight.
    """
    kind, area, apart, inline = "vector", "control", True, 1
    Parameters = VectorUnit

    @staticmethod
    def ports(params):
        beat = ArrayLayout(32, params.lanes)
        arguments = {"arguments": In(ArrayLayout(32, params.arguments))} if params.arguments else {}
        arguments |= {"seed": In(32)} if params.dropping else {}
        return {"i_program": In(stream.Signature(WORD)), "i": In(stream.Signature(beat)),
                "o": Out(stream.Signature(beat)), "error": Out(1), "clear": In(1), "busy": Out(1),
                **arguments}

    @property
    def lane(self):
        """Parameters of a lane."""
        unit = self.params
        shared = unit.function_turns > 1
        return VectorLane.Parameters(() if shared else unit.functions, unit.pipeline, shared, unit.multiplier,
                                     unit.product, unit.sum)

    @property
    def first(self):
        """Cycles from a beat to the last register but one of its first step."""
        return 2 + self.params.product + self.params.sum

    @property
    def latencies(self):
        """``pass``: from a pass's acceptance until nothing is in flight, less the beats of the row.

        ``reduce``: more, with a reduction. ``result``: from an accepted beat to its result on ``o``. Where lanes share
        evaluators of functions, ``turns``: cycles of a beat with a function; ``function``: more of its pass, and with
        one less than the turns of its result.
        """
        result, turns = self.lane.latency + 2, self.params.function_turns
        return {"pass": result + 1, "reduce": self.params.reduce_cycles, "result": result,
                **({"function": self.params.pipeline, "turns": turns} if turns > 1 else {})}

    def body(self, platform):
        m, unit = Module(), self.params
        word = Signal(word_layout(unit))
        current = Signal(word_layout(unit))
        m.d.comb += word.eq(self.i_program.payload)
        # the one write port of the scalars
        put = Signal()
        put_index = Signal(4)
        put_value = Signal(32)
        scalars = self._scalars(m, put, put_index, put_value)
        length = Signal(range(unit.longest + 1), init=unit.longest)
        legal = self._legal(m, word)

        # Issue: one beat a cycle while the stream, if read, has one and the output, if written, takes one.
        running = Signal()
        en = Signal()
        issue = Signal()
        last = Signal()
        reads = Signal()
        beat = Signal(index(unit.beats))
        last_beat = Signal(index(unit.beats))
        low = (unit.lanes - 1).bit_length()
        several = Several(m, unit, word, en)
        may = Signal()    # the bank that the beat reads is not written
        ready, fetches = running & may if unit.single else running, None
        if unit.register_copies == 1:
            fetches = Fetches(m, current, running, issue, en, may if unit.single else 1)
            ready = ready & fetches.over
        goes = self._pace(m, current, ready, issue, en)
        m.d.comb += [reads.eq(Cat(getattr(current, f"{name}_source") == Source.STREAM for name in "abc").any()),
                     self.i.ready.eq(goes & en & reads), issue.eq(goes & (self.i.valid | ~reads)),
                     last_beat.eq(several.last_beat(Mux(current.kind == Kind.SCALAR, 0, (length - 1)[low:]))),
                     last.eq(beat == last_beat)]
        with m.If(issue & en):
            m.d.sync += beat.eq(beat + 1)
            with m.If(last):
                m.d.sync += running.eq(0)

        line = Line(m, unit, current, issue, ~beat.any(), last, en, 1 + self.lane.latency)
        result = Signal.like(self.o.payload, reset_less=True)
        total = Totals(m, unit, line, result, length, en, several)
        passes = (word.kind == Kind.VECTOR) | (word.kind == Kind.SCALAR)
        taken = Signal()
        begins = Signal()
        comes = line.comes.valid & (line.comes.beat.target == Target.SCALAR)
        if unit.short_rows:
            comes = comes & line.comes.beat.last
        written = [(comes, line.comes.beat.target_index), total.comes]
        waits = Waits(m, unit, 2 + self.lane.latency, unit.function_delay, word, current, running, issue, last, en,
                      begins, written)
        m.d.comb += [self.busy.eq(running | line.busy | total.busy), self.i_program.ready.eq(
            ~self.error & Mux(passes, en & waits.over, ~self.busy)),
            taken.eq(self.i_program.ready & self.i_program.valid)]
        with m.If(self.clear):
            m.d.sync += self.error.eq(0)
        dropping = None
        if unit.dropping:
            dropping = Dropping(m, unit, self.seed, word, self.i_program.payload, taken & legal, begins, issue & en)
        with m.If(taken):
            with m.If(~legal):
                m.d.sync += self.error.eq(1)
            with m.Elif(word.kind == Kind.SET):
                m.d.comb += [put.eq(1), put_index.eq(self.i_program.payload[32:36]),
                             put_value.eq(self.i_program.payload[:32])]
                several.set(put_index)
            if unit.arguments:
                with m.Elif(word.kind == Kind.ARGUMENT):
                    m.d.comb += [put.eq(1), put_index.eq(self.i_program.payload[32:36]),
                                 put_value.eq(Array([0, *self.arguments])[self.i_program.payload[:4]])]
                    several.set(put_index)
            with m.Elif(word.kind == Kind.LENGTH):
                m.d.sync += length.eq(self.i_program.payload[:len(length)])
                several.told(self.i_program.payload)
            with m.Elif(passes) if unit.dropping else m.Else():
                m.d.comb += begins.eq(1)
                m.d.sync += [current.eq(word), running.eq(1), beat.eq(0)]
                several.begins()

        # Operands are there a cycle after the issue, when the next pass may be the current one.
        row = Signal.like(self.i.payload, reset_less=True)
        operation = Signal(OPERATION, reset_less=True)
        with m.If(en):
            m.d.sync += [row.eq(self.i.payload), *(operation[name].eq(current[name]) for name in OPERATION.members)]
        stored = line.stored
        operands = self._operands(m, current, operation, scalars, row, beat,
                                  en & issue if unit.single or fetches else en, result, line, several, fetches)
        if unit.single:
            registers = Cat(current[f"{name}_source"] == Source.REGISTER for name in "abc").any()
            writes = stored.valid & (stored.beat.target == Target.REGISTER)
            m.d.comb += may.eq(~(registers & writes & (beat[:1] == line.place[:1])))
        if unit.dropping:
            drops = Signal(reset_less=True)
            with m.If(en):
                m.d.sync += drops.eq(current.drop)
            operands[1] = self._kept(m, operands[1], drops, dropping.gone)
        lanes = [self._lane(m, lane, operation, line, operands, en) for lane in range(unit.lanes)]
        if unit.function_turns > 1:
            self._share(m, lanes, line, en, result)
        else:
            with m.If(en):
                m.d.sync += [result[number].eq(lane.o) for number, lane in enumerate(lanes)]

        # Result register: to the stream, a vector register, a scalar, the reduction.
        m.d.comb += [self.o.valid.eq(stored.valid & (stored.beat.target == Target.STREAM)),
                     self.o.payload.eq(result), en.eq(~self.o.valid | self.o.ready)]
        for there, number, place, value in (
                (stored.valid & (stored.beat.target == Target.SCALAR), stored.beat.target_index, line.place, result[0]),
                (total.there & en, total.index, total.place, total.value)):
            with m.If(there):
                m.d.comb += [put.eq(several.alone), put_index.eq(number), put_value.eq(value)]
                several.put(number, place, value)
        return m

    def _scalars(self, m, put, put_index, put_value):
        """The scalar of a number, as a function of an operand's name and that: flip-flops and their multiplexers, or on
        an FPGA a memory of LUTs for each operand.
        """
        if not self.params.sum:
            scalars = Array(Signal(32, name=f"scalar_{n}", reset_less=True) for n in range(SCALARS))
            for n, value in enumerate(scalars):
                with m.If(put & (put_index == n if n else ~put_index.any())):
                    m.d.sync += value.eq(put_value)
            return lambda name, number: scalars[number]

        def scalar(name, number):
            m.submodules[f"scalars_{name}"] = kept = Memory(shape=32, depth=SCALARS, init=[])
            write, read = kept.write_port(), kept.read_port(domain="comb")
            m.d.comb += [write.en.eq(put), write.addr.eq(put_index), write.data.eq(put_value), read.addr.eq(number)]
            return read.data
        return scalar

    def _legal(self, m, word):
        """Whether a word may be executed; mirrors nothing of the golden model but its contract."""
        unit, bits = self.params, self.i_program.payload
        once, vector = word.kind == Kind.SCALAR, word.kind == Kind.VECTOR
        posts = Cat(word.post == code if code else ~word.post.any() for code in unit.posts)
        good = [~word.spare.any(), word.op <= max(Op), posts.any(), word.reduce <= max(Reduce),
                ~(once & word.reduce.any()), Mux(once, ~word.target[0], word.target != Target.SCALAR),
                (word.target != Target.REGISTER) | (word.target_index < unit.registers)]
        if unit.dropping:
            good.append(~(once & word.drop))
        for name in "abc":
            source, number = getattr(word, f"{name}_source"), getattr(word, name)
            good += [(source != Source.CONSTANT) | (number < len(CONSTANTS)),
                     (source != Source.REGISTER) | (number < unit.registers) & vector,
                     (source != Source.STREAM) | ~number.any() & vector]
        legal = Signal()
        with m.Switch(word.kind):
            with m.Case(Kind.VECTOR, Kind.SCALAR):
                m.d.comb += legal.eq(Cat(good).all())
            with m.Case(Kind.SET):
                m.d.comb += legal.eq(~bits[36:KIND].any())
            if unit.dropping:
                with m.Case(Kind.KEY):
                    m.d.comb += legal.eq(~bits[KEY_BITS + BELOW_BITS:KIND].any())
                with m.Case(Kind.PLACE):
                    m.d.comb += legal.eq(1)
            with m.Case(Kind.LENGTH):
                elements, rows = bits[:LENGTH_BITS], bits[LENGTH_BITS:KIND]
                m.d.comb += legal.eq(bits[:KIND].any() & ~rows.any() & (elements <= unit.longest))
                if unit.short_rows:
                    with m.If(rows.any()):
                        m.d.comb += legal.eq(elements.any() & (elements <= unit.lanes) & (rows != 1)
                                             & (rows <= unit.short_rows))
            if unit.arguments:
                with m.Case(Kind.ARGUMENT):
                    m.d.comb += legal.eq(bits[:4].any() & (bits[:4] <= unit.arguments)
                                         & ~Cat(bits[4:32], bits[36:KIND]).any())
            with m.Default():
                m.d.comb += legal.eq(0)
        return legal

    def _operands(self, m, current, operation, scalars, row, beat, takes, result, line, several, fetches):
        """The three operands of a beat, a cycle after its issue, in which they are taken: packed lanes each."""
        unit, operands, end = self.params, [], line.stored
        write = end.valid & (end.beat.target == Target.REGISTER)
        # With two banks of one port, a register has as many words in each.
        banks = min(unit.beats, 2) if unit.single else 0
        beats = unit.beats + unit.beats % 2 if banks == 2 else unit.beats
        words = {}
        for name in "abc":
            source, number = operation[f"{name}_source"], operation[name]
            own = fetches is None or not words
            if own:
                ram = stored(m, f"registers_{name}", unit.registers * beats, 32 * unit.lanes, banks=banks)
                words |= {name: ram.r_data} if fetches is None else fetches.words(m, ram.r_data)
            constant = Signal(32, name=f"constant_{name}")
            with m.Switch(number):
                for code, pattern in enumerate(CONSTANTS):
                    with m.Case(code) if code < len(CONSTANTS) - 1 else m.Default():
                        m.d.comb += constant.eq(pattern)
            broadcast = Signal(32, name=f"broadcast_{name}")
            operand = Signal(32 * unit.lanes, name=f"operand_{name}")
            if own:
                m.d.comb += [
                    ram.w_en.eq(write), ram.w_data.eq(result),
                    ram.r_en.eq(takes if fetches is None else takes | fetches.takes),
                    ram.w_addr.eq(end.beat.target_index * beats + line.place),
                    ram.r_addr.eq((current[name] if fetches is None else fetches.number) * beats + beat)]
            m.d.comb += [
                broadcast.eq(Mux(source == Source.SCALAR, several.scalar(name, current, beat, scalars(name, number)),
                                 constant)),
                operand.eq(Mux(source == Source.REGISTER, words[name], Mux(
                    source == Source.STREAM, row.as_value(), broadcast.replicate(unit.lanes)))),
            ]
            operands.append(operand)
        return operands

    @staticmethod
    def _kept(m, operand, drops, gone):
        """Operand b, of which +0 is left where an element is dropped."""
        kept = Signal.like(operand, name="operand_kept")
        m.d.comb += kept.eq(operand & Cat((~(drops & each)).replicate(32) for each in gone))
        return kept

    def _pace(self, m, current, running, issue, en):
        """Whether a beat may go: it waits for those whose function lanes share, for their results if it has none; one
        that is added up for the sum before it.
        """
        unit, turns = self.params, self.params.function_turns
        if unit.sum:
            adds, reduces = Signal(range(unit.reduce_turns)), current.reduce.any()
            with m.If(en):
                m.d.sync += adds.eq(Mux(issue & reduces, unit.sum, Mux(adds.any(), adds - 1, 0)))
            running = running & ~(reduces & adds.any())
        if turns == 1:
            return running
        left = Signal(range(unit.function_delay + 1))
        slow = has_function(current)
        with m.If(en):
            m.d.sync += left.eq(Mux(issue, Mux(slow, unit.function_delay, 0), Mux(left.any(), left - 1, 0)))
        return running & Mux(slow, left <= unit.pipeline, ~left.any())

    def _share(self, m, lanes, line, en, result):
        """Evaluators that lanes share, neighbours each, and the result register."""
        unit, turns = self.params, self.params.function_turns
        given, taken = (Signal(range(turns), name=f"turn_{name}") for name in ("given", "taken"))
        with m.If(en):    # the lanes have a beat's values behind its second stage, evaluators the first of them later
            m.d.sync += [turn.eq(Mux(line.stages[self.first + after].valid, 0, turn + 1))
                         for turn, after in ((given, 0), (taken, unit.pipeline))]
        ends = line.stages[self.first + 1]
        plain = ends.valid & ~ends.beat.function
        for number in range(0, unit.lanes, turns):
            values = [lane.o for lane in lanes[number:number + turns]]
            found = evaluator(m, f"functions{number // turns}", unit.functions, unit.pipeline, unit.multiplier, en,
                              ends.beat.select, pick(values, given))
            for turn, value in enumerate(values):
                with m.If(en & (plain | (taken == turn))):
                    m.d.sync += result[number + turn].eq(Mux(plain, value, found))

    def _lane(self, m, lane, operation, line, operands, en):
        """One lane."""
        m.submodules[f"lane{lane}"] = part = VectorLane.made(self.lane)
        for port, operand in zip("abc", operands, strict=True):
            m.d.comb += getattr(part, port).eq(operand[32 * lane:32 * lane + 32])
        product, value = line.stages[self.first:][:2]
        m.d.comb += [part.en.eq(en), part.op.eq(operation.op), part.negate_a.eq(operation.negate_a),
                     part.negate_c.eq(operation.negate_c), part.other.eq(product.beat.other),
                     part.relu.eq(value.beat.relu)]
        if self.lane.holds:
            m.d.comb += part.take.eq(product.valid)
        elif self.lane.functions:
            m.d.comb += [part.select.eq(value.beat.select), part.use_function.eq(line.arrives.beat.function)]
        return part


#: Unit name -> constructor from the keywords of :class:`golden.spec.vector.VectorUnit`, for ``python -m gen --unit``.
VECTOR_UNITS = {"vector": Vector, "vector.lean": partial(Vector, functions=("exp", "recip", "rsqrt"))}
