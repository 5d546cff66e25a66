"""Vector unit: lanes, registers, reductions, and the execution of instructions one pass after another."""

from functools import partial

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.vector import (
    CONSTANTS,
    FIELDS,
    KIND,
    POSTS,
    SCALARS,
    WORD,
    Kind,
    Op,
    Reduce,
    Source,
    Target,
    VectorUnit,
)

from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.memory import Ram
from ..lib.pick import pick
from .lane import Reduction, VectorLane, evaluator

WORD_LAYOUT = StructLayout({name: width for name, width in FIELDS} | {
    "spare": KIND - sum(width for _, width in FIELDS), "kind": WORD - KIND})


class Vector(Component):
    """Executes instructions on rows of FP32 numbers, ``lanes`` elements a cycle.

    Instructions, their order of events and cycles: docs/design/04-vector-unit.md. Golden twin:
    :class:`golden.vector.unit.Machine`.

    Parameters
    ----------
    lanes, beats, registers, functions, pipeline, function_lanes, arguments
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
        return {"i_program": In(stream.Signature(WORD)), "i": In(stream.Signature(beat)),
                "o": Out(stream.Signature(beat)), "error": Out(1), "clear": In(1), "busy": Out(1),
                **arguments}

    @property
    def lane(self):
        """Parameters of a lane."""
        unit = self.params
        shared = unit.function_turns > 1
        return VectorLane.Parameters(() if shared else unit.functions, unit.pipeline, shared)

    @property
    def latencies(self):
        """``pass``: from an instruction's acceptance to the next one's, less the beats of the row.

        ``reduce``: more, with a reduction. ``result``: from an accepted beat to its result on ``o``. Where lanes share
        evaluators of functions, ``function``: more, with a function; ``turns``: cycles of a beat then.
        """
        result, turns = self.lane.latency + 2, self.params.function_turns
        return {"pass": result + 1, "reduce": (self.params.lanes - 1).bit_length() + 1, "result": result,
                **({"function": self.params.pipeline, "turns": turns} if turns > 1 else {})}

    def body(self, platform):
        m, unit = Module(), self.params
        word = Signal(WORD_LAYOUT)
        current = Signal(WORD_LAYOUT)
        m.d.comb += word.eq(self.i_program.payload)
        scalars = Array(Signal(32, name=f"scalar_{n}", reset_less=True) for n in range(SCALARS))
        # the one write port of the scalars
        put = Signal()
        put_index = Signal(4)
        put_value = Signal(32)
        for n, value in enumerate(scalars):
            with m.If(put & (put_index == n if n else ~put_index.any())):
                m.d.sync += value.eq(put_value)
        length = Signal(range(unit.longest + 1), init=unit.longest)
        legal = self._legal(m, word)

        running = Signal()
        draining = Signal()
        reducing = Signal()
        taken = Signal()
        beat = Signal(index(unit.beats))
        last_beat = Signal(index(unit.beats))
        once = Signal()
        m.d.comb += [self.i_program.ready.eq(~(running | draining | reducing | self.error)), self.busy.eq(
            running | draining | reducing), taken.eq(self.i_program.ready & self.i_program.valid),
            once.eq(current.kind == Kind.SCALAR)]
        with m.If(self.clear):
            m.d.sync += self.error.eq(0)
        with m.If(taken):
            with m.If(~legal):
                m.d.sync += self.error.eq(1)
            with m.Elif(word.kind == Kind.SET):
                m.d.comb += [put.eq(1), put_index.eq(self.i_program.payload[32:36]),
                             put_value.eq(self.i_program.payload[:32])]
            if unit.arguments:
                with m.Elif(word.kind == Kind.ARGUMENT):
                    m.d.comb += [put.eq(1), put_index.eq(self.i_program.payload[32:36]),
                                 put_value.eq(Array([0, *self.arguments])[self.i_program.payload[:4]])]
            with m.Elif(word.kind == Kind.LENGTH):
                m.d.sync += length.eq(self.i_program.payload[:len(length)])
            with m.Else():
                m.d.sync += [current.eq(word), running.eq(1), beat.eq(0)]
        low = (unit.lanes - 1).bit_length()
        m.d.comb += last_beat.eq(Mux(once, 0, (length - 1)[low:]))

        # Issue: one beat a cycle while the stream, if read, has one and the output, if written, takes one.
        en = Signal()
        issue = Signal()
        last = Signal()
        reads = Signal()
        slow, goes = self._pace(m, current, running, issue, en)
        m.d.comb += [reads.eq(Cat(getattr(current, f"{name}_source") == Source.STREAM for name in "abc").any()),
                     self.i.ready.eq(goes & en & reads), issue.eq(goes & (self.i.valid | ~reads)),
                     last.eq(beat == last_beat)]
        with m.If(issue & en):
            m.d.sync += beat.eq(beat + 1)
            with m.If(last):
                m.d.sync += [running.eq(0), draining.eq(1)]
        row = Signal.like(self.i.payload, reset_less=True)
        with m.If(en):
            m.d.sync += row.eq(self.i.payload)
        # Where lanes share evaluators, only a pass with a function goes beyond the lanes.
        flags, turns = [Cat(issue, last, beat)], unit.function_turns
        short = 1 + self.lane.latency
        for stage in range(short + (unit.pipeline + turns - 1 if turns > 1 else 0)):
            held = Signal(len(flags[0]), name=f"flags_{stage}")
            with m.If(en):
                m.d.sync += held.eq(Mux(slow, flags[-1], 0) if stage == short else flags[-1])
            flags.append(held)

        result = Signal.like(self.o.payload, reset_less=True)
        stored = Signal(len(flags[0]))
        operands = self._operands(m, current, scalars, row, beat, en, result, stored)
        select = self._select(m, current.post)
        lanes = [self._lane(m, lane, current, select, operands, en) for lane in range(unit.lanes)]
        if turns > 1:
            m.d.comb += [lane.take.eq(~slow | flags[2][0]) for lane in lanes]
            self._share(m, lanes, slow, select, flags, en, result)
        else:
            with m.If(en):
                m.d.sync += [result[number].eq(lane.o) for number, lane in enumerate(lanes)]

        # Result register: to the stream, a vector register, a scalar, the reduction.
        with m.If(en):
            m.d.sync += stored.eq(Mux(slow, flags[-1], flags[short]) if turns > 1 else flags[-1])
        valid, final = stored[0], stored[1]
        m.d.comb += [self.o.valid.eq(valid & (current.target == Target.STREAM)), self.o.payload.eq(result),
                     en.eq(~self.o.valid | self.o.ready)]
        done = Signal()
        m.d.comb += done.eq(valid & final & en)
        with m.If(done):
            m.d.sync += draining.eq(0)
            with m.If(current.target == Target.SCALAR):
                m.d.comb += [put.eq(1), put_index.eq(current.target_index), put_value.eq(result[0])]
            with m.If(current.reduce != Reduce.NONE):
                m.d.sync += reducing.eq(1)
        self._reduce(m, current, word, taken, valid & en, done, reducing, length, result, put, put_index, put_value)
        return m

    def _legal(self, m, word):
        """Whether a word may be executed; mirrors nothing of the golden model but its contract."""
        unit, bits = self.params, self.i_program.payload
        once, vector = word.kind == Kind.SCALAR, word.kind == Kind.VECTOR
        posts = Cat(word.post == code if code else ~word.post.any() for code in unit.posts)
        good = [~word.spare.any(), word.op <= max(Op), posts.any(), word.reduce <= max(Reduce),
                ~(once & word.reduce.any()), Mux(once, ~word.target[0], word.target != Target.SCALAR),
                (word.target != Target.REGISTER) | (word.target_index < unit.registers)]
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
            with m.Case(Kind.LENGTH):
                m.d.comb += legal.eq(bits[:KIND].any() & ~bits[32:KIND].any() & (bits[:32] <= unit.longest))
            if unit.arguments:
                with m.Case(Kind.ARGUMENT):
                    m.d.comb += legal.eq(bits[:4].any() & (bits[:4] <= unit.arguments)
                                         & ~Cat(bits[4:32], bits[36:KIND]).any())
            with m.Default():
                m.d.comb += legal.eq(0)
        return legal

    def _operands(self, m, current, scalars, row, beat, en, result, stored):
        """The three operands of a beat, a cycle after its issue: packed lanes each."""
        unit, operands = self.params, []
        write = stored[0] & (current.target == Target.REGISTER)
        for name in "abc":
            source, number = getattr(current, f"{name}_source"), getattr(current, name)
            m.submodules[f"registers_{name}"] = ram = Ram(unit.registers * unit.beats, 32 * unit.lanes)
            constant = Signal(32, name=f"constant_{name}")
            with m.Switch(number):
                for code, pattern in enumerate(CONSTANTS):
                    with m.Case(code) if code < len(CONSTANTS) - 1 else m.Default():
                        m.d.comb += constant.eq(pattern)
            broadcast = Signal(32, name=f"broadcast_{name}")
            operand = Signal(32 * unit.lanes, name=f"operand_{name}")
            m.d.comb += [
                ram.w_en.eq(write), ram.w_data.eq(result), ram.r_en.eq(en),
                ram.w_addr.eq(current.target_index * unit.beats + stored[2:]),
                ram.r_addr.eq(number * unit.beats + beat),
                broadcast.eq(Mux(source == Source.SCALAR, scalars[number], constant)),
                operand.eq(Mux(source == Source.REGISTER, ram.r_data, Mux(
                    source == Source.STREAM, row.as_value(), broadcast.replicate(unit.lanes)))),
            ]
            operands.append(operand)
        return operands

    def _select(self, m, post):
        """Position among the unit's functions of the one that a code means."""
        select = Signal(4, name="select")
        with m.Switch(post):
            for position, name in enumerate(self.params.functions):
                with m.Case(POSTS.index(name)):
                    m.d.comb += select.eq(position)
            with m.Default():
                m.d.comb += select.eq(0)
        return select

    def _pace(self, m, current, running, issue, en):
        """Whether the pass has a function that lanes share, and whether a beat may go."""
        turns = self.params.function_turns
        if turns == 1:
            return Const(0, 1), running
        slow = Signal()
        left = Signal(range(turns))
        m.d.comb += slow.eq(current.post > POSTS.index("relu"))
        with m.If(en):
            m.d.sync += left.eq(Mux(issue, Mux(slow, turns - 1, 0), Mux(left.any(), left - 1, 0)))
        return slow, running & ~left.any()

    def _share(self, m, lanes, slow, select, flags, en, result):
        """Evaluators that lanes share, neighbours each, and the result register."""
        unit, turns = self.params, self.params.function_turns
        given, taken = (Signal(range(turns), name=f"turn_{name}") for name in ("given", "taken"))
        with m.If(en):    # the lanes have a beat's values behind its third flag, the evaluators the first of them later
            m.d.sync += [turn.eq(Mux(flags[2 + after][0], 0, turn + 1))
                         for turn, after in ((given, 0), (taken, unit.pipeline))]
        for number in range(0, unit.lanes, turns):
            values = [lane.o for lane in lanes[number:number + turns]]
            found = evaluator(m, f"functions{number // turns}", unit.functions, unit.pipeline, en, select,
                              pick(values, given))
            for turn, value in enumerate(values):
                with m.If(en & (~slow | (taken == turn))):
                    m.d.sync += result[number + turn].eq(Mux(slow, found, value))

    def _lane(self, m, lane, current, select, operands, en):
        """One lane."""
        m.submodules[f"lane{lane}"] = part = VectorLane.made(self.lane)
        for port, operand in zip("abc", operands, strict=True):
            m.d.comb += getattr(part, port).eq(operand[32 * lane:32 * lane + 32])
        m.d.comb += [part.en.eq(en), part.op.eq(current.op), part.negate_a.eq(current.negate_a),
                     part.negate_c.eq(current.negate_c), part.relu.eq(current.post == POSTS.index("relu")),
                     part.use_function.eq(current.post > POSTS.index("relu")), part.select.eq(select)]
        return part

    def _reduce(self, m, current, word, taken, valid, done, reducing, length, result, put, put_index, put_value):
        """Running totals of the lanes, and their tree once the row has passed."""
        unit = self.params
        levels = (unit.lanes - 1).bit_length()
        level = Signal(index(levels + 1))
        reductions = [Reduction() for _ in range(unit.lanes)]
        largest = Signal()
        m.d.comb += largest.eq(Mux(taken, word.reduce, current.reduce) == Reduce.MAX)
        tail = (length - 1)[:levels]    # last valid lane of the last beat
        for lane, reduction in enumerate(reductions):
            m.submodules[f"reduction{lane}"] = reduction
            inside = ~done | (lane <= tail) if lane else Const(1, 1)
            pair = (reductions[2 * lane].o, reductions[2 * lane + 1].o) if 2 * lane + 1 < unit.lanes else (0, 0)
            m.d.comb += [reduction.start.eq(taken), reduction.maximum.eq(largest), reduction.tree.eq(reducing),
                         reduction.x.eq(result[lane]), reduction.left.eq(pair[0]), reduction.right.eq(pair[1]),
                         reduction.step.eq(reducing | valid & inside)]
        with m.If(done):
            m.d.sync += level.eq(0)
        with m.If(reducing):
            m.d.sync += level.eq(level + 1)
            with m.If(level == levels):
                m.d.sync += reducing.eq(0)
                m.d.comb += [put.eq(1), put_index.eq(current.reduce_index), put_value.eq(reductions[0].o)]


#: Unit name -> constructor from the keywords of :class:`golden.spec.vector.VectorUnit`, for ``python -m gen --unit``.
VECTOR_UNITS = {"vector": Vector, "vector.lean": partial(Vector, functions=("exp", "recip", "rsqrt"))}
