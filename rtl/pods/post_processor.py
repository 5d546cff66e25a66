"""A post-processor: adds tiles of sums, takes them through the side unit, converts them for the banks of X."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hbfp.design import Design
from hbfp.golden.spec.pods import STEPS

from ..accumulate.signatures import read_signature
from ..convert.encode import Encode
from ..core.side import SideLane
from ..fp32.arith import Add
from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from ..number.accumulation import RULES
from ..number.streams import activations_layout
from .tile_walk import TileWalk, command_layout, load_signature, write


def more_layout(depth):
    """What a command says beside the rows of the post-processor's memory.

    ``vectors``: the pair of words with factors and biases. :data:`STEPS`: what is done. ``add``: to what the memory
    has there. ``keep``: FP32 results go there.
    """
    return StructLayout({"vectors": index(depth // 2), **{step: 1 for step in STEPS}, "add": 1, "keep": 1})


class PostProcessor(Component):
    """Takes one tile of partial sums a round: ``relu((kept + sum) * scale + bias)``, each step optional.

    Cycles are counted from the one after ``go``, in which the first row of the memory is read. Golden twin:
    :func:`golden.pods.execute.passed`.

    Parameters
    ----------
    design : Design
        Number format, and columns.
    depth, rounds : int
        Rows of a bank; words of a schedule memory.

    Members
    -------
    vectors, schedule : ``In(load_signature)``
        A host's writes: factors and biases, words 2 n and 2 n + 1 of pair n; commands.
    rewind, go, rows
        See :class:`~rtl.pods.tile_walk.TileWalk`.
    sums : ``In``
        A row of sums, from cycle 1 on.
    kept, kept_address, value : ``Out``
        A row of FP32 results from cycle 4 on, whether it is kept, and where. A later round may read it from the next
        cycle on: rounds have at least :attr:`ROUND` cycles.
    o : ``Out(activations_layout)``
        The same row converted, from cycle 5 on.
    host, host_o : ``In(read_signature)``, ``Out``
        A row that was kept, for a host; not while the memory is read for a round.
    """
    kind, area, apart = "post_processor", "post-processors", True
    #: Cycles from the memory's row to its converted one; least cycles of a round.
    LATENCY, ROUND = 2 + SideLane.LATENCY, 2 + SideLane.LATENCY

    @dataclass(frozen=True)
    class Parameters:
        design: Design = parameter("")
        depth: int = parameter("k")
        rounds: int = parameter("t")

        @property
        def more(self):
            """Layout of what a command says beside the tile."""
            return more_layout(self.depth)

    @property
    def module(self):
        """Name of the Verilog module: the design's."""
        params = self.params
        return f"{params.design.name}_post_k{params.depth}_t{params.rounds}"

    @staticmethod
    def ports(params):
        depth, values = params.depth, ArrayLayout(32, params.design.cols)
        return {"vectors": In(load_signature(depth, values.size)),
                "schedule": In(load_signature(params.rounds, command_layout(depth, params.more.size).size)),
                "rewind": In(1), "go": In(1), "rows": In(index(depth + 1)), "sums": In(values),
                "kept": Out(1), "kept_address": Out(index(depth)), "value": Out(values),
                "o": Out(activations_layout(params.design)),
                "host": In(read_signature(depth)), "host_o": Out(values)}

    @property
    def latencies(self):
        """``result``: from the memory's row to its converted one."""
        return {"result": self.LATENCY}

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.walk = walk = TileWalk(params.depth, params.rounds, params.more.size)
        m.submodules.vectors = vectors = Ram(params.depth, len(self.vectors.data))
        write(m, vectors, self.vectors)
        more = View(params.more, walk.more)
        m.d.comb += [
            walk.load.en.eq(self.schedule.en), walk.load.address.eq(self.schedule.address),
            walk.load.data.eq(self.schedule.data), walk.rewind.eq(self.rewind), walk.go.eq(self.go),
            walk.rows.eq(self.rows),
            # Factors are read in cycle 0 and biases in cycle 1: the lanes have each as its first row needs it.
            vectors.r_en.eq(1), vectors.r_addr.eq(Cat(~walk.start, more.vectors)),
        ]
        load_scale = delay(m, walk.start, 1, "load_scale", reset_less=False)
        load_bias = delay(m, load_scale, 1, "load_bias", reset_less=False)
        scale, bias, relu = (delay(m, more[step], cycles, step)
                             for step, cycles in zip(STEPS, range(2, 2 + len(STEPS)), strict=True))
        kept = self._keep(m, walk, more)
        for column in range(params.design.cols):
            m.submodules[f"add{column}"] = add = Add(pipeline=0, enable=False, **RULES["flush"])
            m.submodules[f"lane{column}"] = lane = SideLane()
            m.d.comb += [add.a.eq(kept.word_select(column, 32)), add.b.eq(self.sums[column])]
            m.d.comb += [
                lane.en.eq(1), lane.steps.scale.eq(scale), lane.steps.bias.eq(bias), lane.steps.relu.eq(relu),
                lane.load_scale.eq(load_scale), lane.load_bias.eq(load_bias),
                lane.v.eq(vectors.r_data.word_select(column, 32)), lane.i.eq(add.o),
                self.value[column].eq(lane.o),
            ]
        self._convert(m)
        return m

    def _keep(self, m, walk, more):
        """The memory: what a round's sums are added to, beside them; where results go."""
        late = 1 + SideLane.LATENCY
        m.submodules.results = results = Ram(self.params.depth, len(self.vectors.data))
        adds = delay(m, walk.en & more.add, 1, "adds", reset_less=False)
        kept = Signal(len(results.r_data))
        m.d.comb += [
            self.kept.eq(delay(m, walk.en & more.keep, late, "kept", reset_less=False)),
            self.kept_address.eq(delay(m, walk.address, late, "kept_address")),
            results.w_en.eq(self.kept), results.w_addr.eq(self.kept_address), results.w_data.eq(self.value),
            results.r_en.eq(walk.en | self.host.en), results.r_addr.eq(Mux(walk.en, walk.address, self.host.address)),
            kept.eq(results.r_data & adds.replicate(len(kept))), self.host_o.eq(results.r_data),
        ]
        return kept

    def _convert(self, m):
        """Rows of X, a converter for each of their blocks; nothing ever waits."""
        fmt, terms = self.params.design.format, self.params.design.format.terms
        for s in range(self.params.design.cols // terms):
            m.submodules[f"encode{s}"] = encode = Encode(fmt, terms)
            m.d.comb += [encode.i.valid.eq(1), encode.o.ready.eq(1)]
            for n, column in enumerate(range(s * terms, (s + 1) * terms)):
                m.d.comb += [encode.i.payload[n].eq(self.value[column]),
                             self.o.mantissa[column].eq(encode.o.payload.mantissa[n])]
            m.d.comb += [
                self.o.exponent[s].eq(encode.o.payload.exponent), self.o.invalid[s].eq(encode.o.payload.invalid),
            ]
