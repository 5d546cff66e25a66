"""A post-processor: a tile of sums through the side unit, kept in FP32 and converted for the banks of X."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hbfp.design import Design
from hbfp.golden.spec.pods import STEPS

from ..accumulate.signatures import read_signature
from ..convert.encode import Encode
from ..core.side import SideLane
from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from ..number.streams import activations_layout
from .tile_walk import TileWalk, command_layout, load_signature, write


def more_layout(depth):
    """What a command says beside the tile of sums that is read.

    ``vectors``: the pair of words with factors and biases. :data:`STEPS`: what is done. ``keep`` and ``kept``: whether
    the FP32 results are kept, and where.
    """
    return StructLayout({"vectors": index(depth // 2), **{step: 1 for step in STEPS}, "keep": 1, "kept": index(depth)})


class PostProcessor(Component):
    """Takes one tile a round from its bank of partial sums: ``relu(sum * scale + bias)``, each step optional.

    Cycles are counted from the one after ``go``, in which the first row is asked for. Golden twin:
    :func:`golden.pods.execute.activation`.

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
        As of :class:`~rtl.pods.tile_walk.TileWalk`.
    read, sums : ``Out(read_signature)``, ``In``
        Rows of the bank.
    kept, kept_address, value : ``Out``
        A row of FP32 results from cycle 4 on, whether it is kept, and where.
    o : ``Out(activations_layout)``
        The same row converted, from cycle 5 on.
    host, host_o : ``In(read_signature)``, ``Out``
        A row that was kept, for a host.
    """
    kind, area, apart = "post_processor", "post-processors", True
    #: Cycles from a row that is asked for to its converted one.
    LATENCY = 2 + SideLane.LATENCY

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
                "rewind": In(1), "go": In(1), "rows": In(index(depth + 1)),
                "read": Out(read_signature(depth)), "sums": In(values),
                "kept": Out(1), "kept_address": Out(index(depth)), "value": Out(values),
                "o": Out(activations_layout(params.design)),
                "host": In(read_signature(depth)), "host_o": Out(values)}

    @property
    def latencies(self):
        """``result``: from a row that is asked for to its converted one."""
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
            walk.rows.eq(self.rows), self.read.en.eq(walk.en), self.read.address.eq(walk.address),
            # Factors are read in cycle 0 and biases in cycle 1: the lanes have each as its first row needs it.
            vectors.r_en.eq(1), vectors.r_addr.eq(Cat(~walk.start, more.vectors)),
        ]
        load_scale = delay(m, walk.start, 1, "load_scale", reset_less=False)
        load_bias = delay(m, load_scale, 1, "load_bias", reset_less=False)
        scale, bias, relu = (delay(m, more[step], cycles, step)
                             for step, cycles in zip(STEPS, range(2, 2 + len(STEPS)), strict=True))
        for column in range(params.design.cols):
            m.submodules[f"lane{column}"] = lane = SideLane()
            m.d.comb += [
                lane.en.eq(1), lane.steps.scale.eq(scale), lane.steps.bias.eq(bias), lane.steps.relu.eq(relu),
                lane.load_scale.eq(load_scale), lane.load_bias.eq(load_bias),
                lane.v.eq(vectors.r_data.word_select(column, 32)), lane.i.eq(self.sums[column]),
                self.value[column].eq(lane.o),
            ]
        self._keep(m, walk, more)
        self._convert(m)
        return m

    def _keep(self, m, walk, more):
        """FP32 results, for a host."""
        depth, late = self.params.depth, 1 + SideLane.LATENCY
        m.submodules.results = results = Ram(depth, len(self.vectors.data))
        address, following = (Signal(index(depth), name=name) for name in ("place", "following"))
        m.d.comb += address.eq(Mux(walk.start, more.kept, following))
        m.d.sync += following.eq(address + 1)
        m.d.comb += [
            self.kept.eq(delay(m, walk.en & more.keep, late, "kept", reset_less=False)),
            self.kept_address.eq(delay(m, address, late, "kept_address")),
            results.w_en.eq(self.kept), results.w_addr.eq(self.kept_address), results.w_data.eq(self.value),
            results.r_en.eq(self.host.en), results.r_addr.eq(self.host.address), self.host_o.eq(results.r_data),
        ]

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
