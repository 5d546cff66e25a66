"""The unit vector: programs of the vector unit on rows of V."""

from dataclasses import dataclass

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.vector import KIND, LENGTH_BITS, Kind, Source, Target, VectorUnit
from hbfp.isa.instructions import ARGUMENTS, VECTOR_INPUTS, VECTOR_OUTPUTS, Opcode
from hbfp.system import FUNCTIONS

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from ..lib.skew import delay
from ..vector.unit import Vector, word_layout
from .layouts import arguments_layout
from .loops import Loops
from .signatures import p_read, unit_members, v_read, v_write
from .sizes import Sizes
from .slots import INNER_BITS, Row, Slot


class VectorOnV(Component):
    """Runs a program of P on the vector unit, once and then for every iteration; feeds it rows of V and takes its own.

    A word of the program is asked for on ``p`` in the cycle after the instruction is taken, and further ones when the
    word before goes to the vector unit; it is offered to the unit one cycle after its grant. In the cycle in which the
    unit takes a pass that reads, the row's first word is asked for on ``read``, then one word in every cycle; the unit
    has each one cycle after its grant. So passes take as long as the unit by itself needs, where all reads are granted.
    Results are written when they come: ``write`` must be granted at once, so that the unit never stalls. Where the rows
    of passes in flight begin is kept: of one that is written, and of two behind it; a further pass that gives one
    waits.

    Where units are ``registered``, a word of the program passes a register before it is offered, behind which the next
    one is there already, and rows are asked for one cycle after the unit has taken their pass.

    Where the unit has fewer lanes than a word has numbers, it takes a word in ``turns`` beats, the lowest lanes first:
    the first as the word comes, the others from a register, and the next word is asked for with the last of them. Where
    its lanes share evaluators, ``function_turns`` each, and take so many cycles for a beat, or registers have one port
    (``single``) or are read in turns (``register_copies``), so that a beat may wait, that register has all of the word.
    Results are gathered, and written with the beat that fills a word or ends the row.

    ``done`` is high in the first cycle after the last word was taken in which the unit is idle; the next instruction is
    taken from the cycle after on. With p instructions that are passes of n beats each, which wait for nothing, that is
    2 + p n + the unit's ``pass`` cycles after the instruction was taken, if all reads are granted.

    Registers, scalars and the length of a row stay from instruction to instruction.

    Members
    -------
    instruction, held, done, fault :
        :func:`~rtl.accelerator.signatures.unit_members`. ``fault`` is high from a reserved word on.
    arguments : ``In(arguments_layout())``
        What programs may read.
    seed : ``In(32)``
        Only with stochastic rounding: the register, a part of every key.
    p, read, write : ``Out(p_read)``, ``Out(v_read)``, ``Out(v_write)``
        The data of ``p`` must stay until its next grant: P has no other reader.
    """
    kind, area, apart = "vector_on_v", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        row_words: int = parameter("w")
        vector_rows: int = parameter("r")
        turns: int = parameter("t", 1)
        function_turns: int = parameter("ft", 1)
        functions: tuple[str, ...] = parameter("fn", FUNCTIONS)
        function_pipeline: int = parameter("fp", 4, rare=True)
        multiplier: str = parameter("", "plain", rare=True)
        stochastic: bool = parameter("sr", False, rare=True)
        short_rows: int = parameter("ss", 0, rare=True)
        single: bool = parameter("single", False, rare=True)
        register_copies: int = parameter("rc", 3, rare=True)
        vector_registers: tuple[int, int] = parameter("mr", (0, 0), rare=True)
        registered: bool = parameter("rg", False, rare=True)

        @property
        def unit(self):
            """The parameters of the vector unit."""
            lanes = self.lanes // self.turns
            return VectorUnit(lanes=lanes, beats=self.row_words * self.turns, registers=self.vector_rows,
                              functions=self.functions, pipeline=self.function_pipeline,
                              function_lanes=lanes // self.function_turns, arguments=ARGUMENTS,
                              multiplier=self.multiplier, dropping=self.stochastic,
                              short_rows=self.short_rows, single=self.single, register_copies=self.register_copies,
                              product=self.vector_registers[0], sum=self.vector_registers[1])

    @staticmethod
    def ports(params):
        return unit_members(Opcode.VECTOR) | {
            "arguments": In(arguments_layout()), **({"seed": In(32)} if params.stochastic else {}),
            "p": Out(p_read()), "read": Out(v_read(params)), "write": Out(v_write(params))}

    def unit(self):
        """The vector unit."""
        return Vector.made(self.params.unit)

    def body(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit()
        new, held = self.instruction.payload, self.held
        active, finishing, start, taken, blocked = (
            Signal(name=name) for name in ("active", "finishing", "start", "taken", "blocked"))
        if self.params.stochastic:
            m.d.comb += unit.seed.eq(self.seed)
        program, tags = self._fetch(m, new, held, active, start, taken)
        m.d.comb += [
            self.instruction.ready.eq(~active), start.eq(self.instruction.valid & ~active),
            unit.i_program.payload.eq(program), unit.i_program.valid.eq(tags.there & ~blocked),
            unit.arguments.eq(self.arguments),
            taken.eq(unit.i_program.valid & unit.i_program.ready), self.fault.eq(unit.error),
            self.done.eq(finishing & ~unit.busy),
        ]
        with m.If(self.done):
            m.d.sync += [active.eq(0), finishing.eq(0)]
        with m.If(taken & tags.last):
            m.d.sync += finishing.eq(1)
        with m.If(start):
            m.d.sync += [active.eq(1)]

        word = Signal(word_layout(unit.params))
        reads = Signal()
        writes = Signal()
        length = Signal(range(unit.params.longest + 1), init=unit.params.longest)
        passes = word.kind == Kind.VECTOR
        gives = passes & (word.target == Target.STREAM)
        m.d.comb += [word.eq(program), writes.eq(taken & gives),
                     reads.eq(taken & passes & Cat(word[f"{name}_source"] == Source.STREAM for name in "abc").any())]
        with m.If(taken & (word.kind == Kind.LENGTH)):
            m.d.sync += length.eq(program[:KIND])
        events = start, taken & tags.inner, taken & tags.outer, start | taken & tags.ends
        bases = {name: new[f"{name}_base"] for name in (*VECTOR_INPUTS, *VECTOR_OUTPUTS)}
        # Rows may be asked for a cycle later, and so all that says where they lie.
        late = int(self.params.registered)
        asks = delay(m, reads, late, "reads", reset_less=False)
        of_inputs = [delay(m, event, late, name, reset_less=False)
                     for name, event in zip(("start", "inner", "outer", "anew"), events, strict=True)]
        bases |= {name: delay(m, bases[name], late, f"{name}_base") for name in VECTOR_INPUTS}
        slots = {name: Slot(m, name, bases[name], held[f"{name}_stride0"], held[f"{name}_stride1"],
                            *(of_inputs if name in VECTOR_INPUTS else events)[:-1]) for name in bases}
        low, high = ((lanes - 1).bit_length() for lanes in (unit.params.lanes, self.params.lanes))
        last = {"word": (length - 1)[high:len(length)], "turn": (length - 1)[low:high], "lane": (length - 1)[:low],
                "each": 0}
        if self.params.short_rows:    # rows of one word, of which each ends
            rows = Signal(range(self.params.short_rows + 1))
            with m.If(taken & (word.kind == Kind.LENGTH)):
                m.d.sync += rows.eq(program[LENGTH_BITS:])
            last |= {"each": rows.any(), "word": Mux(rows.any(), rows - 1, last["word"])}
        self._input(m, unit, held, slots, asks, reads | asks if late else reads, of_inputs[-1], last)
        full = self._output(m, unit, held, slots, writes, events[-1], last)
        m.d.comb += blocked.eq(gives & full)
        return m

    def _fetch(self, m, new, held, active, start, taken):
        """Words of the program, one ahead of the unit; the word that is there, and what is known of it."""
        tags = Signal(StructLayout({name: 1 for name in ("there", "ends", "inner", "outer", "last")}))
        moves, program, given = taken, self.p.data, tags
        if self.params.registered:
            program, given = Signal.like(self.p.data, name="program", reset_less=True), Signal.like(tags, name="given")
            moves = Signal(name="moves")
            m.d.comb += moves.eq(tags.there & (~given.there | taken))
            with m.If(moves):
                m.d.sync += [given.eq(tags), program.eq(self.p.data)]
            with m.Elif(taken):
                m.d.sync += given.there.eq(0)
        first, over, step = (Signal(name=name) for name in ("first", "over", "step"))
        counter, body = (Signal(12, name=name, reset_less=True) for name in ("counter", "body"))
        loops = Loops(m, "loop", (8, 16, 16), start, step)
        number, i0, i1 = loops.counter
        m.d.comb += [
            loops.ends[0].eq(number + 1 == Mux(first, held.before, held.body)),
            loops.ends[1].eq(first | (i0 + 1 == held.count0)), loops.ends[2].eq(first | (i1 + 1 == held.count1)),
            self.p.en.eq(active & ~over & (~tags.there | moves)), self.p.addr.eq(counter),
            step.eq(self.p.en & self.p.grant),
        ]
        with m.If(step):
            m.d.sync += [tags.there.eq(1), tags.ends.eq(loops.ends[0]), tags.inner.eq(loops.carry[1]),
                         tags.outer.eq(loops.carry[2]), tags.last.eq(loops.last & ~(first & held.body.any())),
                         counter.eq(Mux(loops.ends[0] & ~first, body, counter + 1))]
            with m.If(loops.last):
                m.d.sync += [first.eq(0), body.eq(counter + 1), over.eq(~(first & held.body.any()))]
        with m.Elif(moves):
            m.d.sync += tags.there.eq(0)
        with m.If(start):
            m.d.sync += [first.eq(new.before.any()), over.eq(0), counter.eq(new.program), body.eq(new.program)]
        return program, given

    def _input(self, m, unit, held, slots, reads, asked, anew, last):
        """Rows for the unit: slots in the order of the passes, or one slot at taps.

        A row is asked for with ``reads``; from its pass on, ``asked``, what is there of the one before counts no more.
        """
        number = Signal(2)
        current = Signal(2)
        select = Signal(2)
        tap = self._taps(m, held, reads, anew)
        m.d.comb += select.eq(Mux(held.taps, 0, Mux(reads, number, current)))
        with m.If(reads):
            m.d.sync += [current.eq(number), number.eq(Mux(number == 2, 2, number + 1))]
        with m.If(anew):
            m.d.sync += number.eq(0)

        def chosen(of):
            one, two, three = (of(name) for name in VECTOR_INPUTS)
            return Mux(select[1], three, Mux(select[0], two, one))
        first = chosen(lambda name: slots[name].here) + Mux(held.taps, tap, 0)
        feeding = Signal()
        there = Signal()
        advance = self.read.en & self.read.grant
        row = Row(m, "input", reads, first, chosen(lambda name: held[f"{name}_inner"]),
                  chosen(lambda name: held[f"{name}_step"]), advance, last["word"])
        m.d.comb += [self.read.addr.eq(row.address), unit.i.valid.eq(there)]
        m.d.sync += feeding.eq((reads | feeding) & ~(advance & row.last))
        if self.params.turns == 1 and not unit.params.pauses:
            m.d.comb += [self.read.en.eq(reads | feeding), unit.i.payload.eq(self.read.data)]
            m.d.sync += there.eq(advance)
            return
        over = self._beats(m, unit, there, advance, asked | advance)
        m.d.comb += self.read.en.eq(reads | feeding & (over | ~there))
        m.d.sync += there.eq(advance | there & ~(over | asked))

    def _beats(self, m, unit, there, comes, anew):
        """The beats of a word that is read; whether the unit takes the last one."""
        turns, word = self.params.turns, self.read.data.as_value()
        size = len(word) // turns
        waits = unit.params.pauses
        turn = Signal(index(turns), name="read_turn")
        rest = Signal(len(word) if waits else len(word) - size, reset_less=True)
        fresh = Signal()
        beats = Signal(len(word))
        moves = there & unit.i.ready
        m.d.comb += [beats.eq(Mux(fresh, word, rest)), unit.i.payload.eq(beats)]
        m.d.sync += [fresh.eq(comes), rest.eq(Mux(moves, beats[size:], beats) if waits else beats[size:]),
                     turn.eq(Mux(anew, 0, turn + moves))]
        return moves & (turn == turns - 1)

    def _taps(self, m, held, reads, anew):
        """How far the current tap lies from the first; slot i1 has the numbers."""
        tap = Signal(18)
        line = Signal(18)
        place = Signal(INNER_BITS)
        following = Signal(18)
        wraps = Signal()
        m.d.comb += [wraps.eq((place + 1)[:INNER_BITS] == held.i1_inner),
                     following.eq(Mux(wraps, line + held.i1_stride0, tap + held.i1_step))]
        with m.If(reads):
            m.d.sync += [tap.eq(following), line.eq(Mux(wraps, following, line)),
                         place.eq(Mux(wraps, 0, place + 1))]
        with m.If(anew):
            m.d.sync += [tap.eq(0), line.eq(0), place.eq(0)]
        return tap

    def _output(self, m, unit, held, slots, writes, anew, last):
        """Rows from the unit; lanes beyond the length are zeros. Whether as many rows wait as can."""
        number = Signal()
        with m.If(writes):
            m.d.sync += number.eq(1)
        with m.If(anew):
            m.d.sync += number.eq(0)

        # Where rows of passes in flight begin, and their slots: the next pass may be of another iteration.
        begin, advance, writing = (Signal(name=f"output_{name}") for name in ("begin", "advance", "writing"))
        here = {name: slots[name].here for name in VECTOR_OUTPUTS}
        rows = Array(Signal(1 + len(here["o0"]), name=f"row_{each}", reset_less=True) for each in range(2))
        put, get = Signal(name="row_put"), Signal(name="row_get")
        queued = Signal(2, name="rows_queued")
        select = Signal(name="output_select", reset_less=True)
        slot = Mux(begin, rows[get][0], select)
        m.d.comb += begin.eq(queued.any() & ~writing)
        m.d.sync += [queued.eq(queued + writes - begin), put.eq(put ^ writes), get.eq(get ^ begin), select.eq(slot)]
        with m.If(writes):
            m.d.sync += rows[put].eq(Cat(number, Mux(number, here["o1"], here["o0"])))

        def chosen(of):
            one, two = (of(name) for name in VECTOR_OUTPUTS)
            return Mux(slot, two, one)
        row = Row(m, "output", begin, rows[get][1:], chosen(lambda name: held[f"{name}_inner"]),
                  chosen(lambda name: held[f"{name}_step"]), advance, last["word"])
        m.d.comb += advance.eq(self.write.en & self.write.grant)
        m.d.sync += writing.eq((begin | writing) & ~(advance & row.last))
        turns = self.params.turns
        turn = Signal(range(turns), name="write_turn")
        final = row.last & (turn == last["turn"]) if turns > 1 else row.last
        m.d.comb += [self.write.addr.eq(row.address), self.write.mask.eq(-1), unit.o.ready.eq(self.write.grant)]
        ends = final | last["each"] if self.params.short_rows else final
        beat = [Mux(~ends | (lane <= last["lane"]) if lane else 1, value, 0)
                for lane, value in enumerate(unit.o.payload)]
        if turns == 1:
            m.d.comb += [self.write.en.eq(unit.o.valid), *(
                self.write.data[lane].eq(value) for lane, value in enumerate(beat))]
            return queued[1]
        # Zeros where no beat of the word has been yet, and so behind the last one of a row.
        word, size = self.write.data.as_value(), 32 * unit.params.lanes
        gathered = Signal(len(word) - size)
        m.d.comb += [self.write.en.eq(unit.o.valid & (final | (turn == turns - 1))), *(
            word[n * size:(n + 1) * size].eq(Mux(turn == n, Cat(beat), gathered[n * size:(n + 1) * size]))
            for n in range(turns))]
        with m.If(unit.o.valid & self.write.grant):
            m.d.sync += [turn.eq(Mux(self.write.en, 0, turn + 1)), gathered.eq(Mux(self.write.en, 0, word))]
        return queued[1]
