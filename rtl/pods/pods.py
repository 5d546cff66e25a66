# amaranth: UnusedElaboratable=no
"""Many pods: banks, networks, pods, post-processors; see docs/design/10-pods.md."""

from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.golden.spec.pods import Network as Net
from hbfp.golden.spec.pods import Place
from hbfp.pods import PodsDesign

from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.skew import delay
from ..number.streams import activations_layout, weights_layout
from .bank import Bank
from .benes import Benes
from .butterfly import Butterfly
from .crossbar import Crossbar
from .pod import Pod, w_layout, x_layout
from .post_processor import PostProcessor
from .rounds import Rounds, run_layout
from .tile_walk import Station


def network(design, width):
    """The network of a machine for payloads of so many bits."""
    name, _, copies = design.interconnect.partition("-")
    if copies:
        return Butterfly(ports=design.pods, width=width, copies=int(copies))
    return {"crossbar": Crossbar, "benes": Benes}[name](ports=design.pods, width=width)


def latencies(design):
    """Cycles of a machine by name: see :attr:`Pods.latencies`."""
    through = network(design, 1).latencies["result"]
    return {"network": through, "product": 2 * through + Pod.latency(design.core) + 2,
            "result": 2 * through + PostProcessor.LATENCY,
            "round": max(Pod.interval(design.core), 2 * through + 2, PostProcessor.ROUND)}


def parts(design):
    """A bank of X, of W and of sums, a post-processor and the networks of a machine, as components."""
    x, w, sums = (layout.size for layout in (activations_layout(design.core), weights_layout(design.core),
                                             ArrayLayout(32, design.core.cols)))
    banks = [Bank(width, design.bank, design.rounds, **options) for width, options in (
        (x, {"loaded": True, "written": True}), (w, {"loaded": True}), (sums, {"written": True, "shared": True}))]
    networks = {Net.X: x + 1, Net.W: w + 1, **dict.fromkeys((Net.SUM_IN, Net.SUM_OUT, Net.POST), sums), Net.RESULT: x}
    return banks, PostProcessor(design.core, design.bank, design.rounds), {
        net: network(design, width) for net, width in networks.items()}


def widths(design):
    """Bits of a word of each :class:`golden.spec.pods.Place`."""
    (x, w, sums), post, networks = parts(design)
    return {Place.X: x.params.width, Place.W: w.params.width, Place.VECTORS: sums.params.width,
            **dict.fromkeys((Place.READ_X, Place.READ_W, Place.READ_SUM, Place.READ_POST, Place.WRITE_SUM,
                             Place.WRITE_X),
                            len(x.read.data)),
            Place.POST: len(post.schedule.data), Place.ROUTE: max(len(each.route.as_value())
                                                                 for each in networks.values())}


def load_layout(design):
    """A word for a memory: ``place`` is which (:class:`golden.spec.pods.Place`), ``unit`` whose."""
    return StructLayout({"place": index(len(Place)), "unit": index(max(design.pods, len(Net))),
                         "address": index(max(design.bank, design.rounds)), "data": max(widths(design).values())})


class Pods(Component):
    """Pods between banks of X, W and partial sums, with post-processors; all work in rounds, as a program says.

    Golden twin: :func:`golden.pods.execute.execute`; cycles: :mod:`golden.perf.pods`.

    Parameters
    ----------
    core, pods, interconnect, bank, rounds
        See :class:`hbfp.pods.PodsDesign`.

    Members
    -------
    i_load : ``In(stream.Signature(load_layout))``
        Words for memories, one a cycle. Not while a program runs.
    i_run : ``In(stream.Signature(run_layout))``
        Runs the program that was loaded; see :class:`~rtl.pods.rounds.Rounds`.
    busy, error : ``Out(1)``
        A program runs; the last one was for another machine.
    begins : ``Out(1)``
        The banks of X give the first rows of a round in the next cycle.
    sums, operands, results : ``Out.array``
        What is written in this cycle, by bank: partial sums, rows of X that come from post-processors, FP32 results.
        For benches and debuggers.
    i_kept, o_kept : ``In``, ``Out``
        A result that was kept, a cycle later: which post-processor's, and which row.
    """
    kind = "pods"
    Parameters = PodsDesign

    @classmethod
    def of(cls, design):
        """The machine of a description."""
        return cls.made(design)

    @staticmethod
    def ports(design):
        address, values = index(design.bank), ArrayLayout(32, design.core.cols)
        row = activations_layout(design.core)
        written = {name: Out(StructLayout({"valid": 1, "address": address, "value": value})).array(design.pods)
                   for name, value in (("sums", values), ("operands", row), ("results", values))}
        return {"i_load": In(stream.Signature(load_layout(design))),
                "i_run": In(stream.Signature(run_layout(design.bank, design.rounds))), "busy": Out(1), "error": Out(1),
                "begins": Out(1), **written,
                "i_kept": In(StructLayout({"unit": index(design.pods), "address": address})), "o_kept": Out(values)}

    @property
    def module(self):
        """Name of the Verilog module: the machine's."""
        return self.params.name

    @property
    def latencies(self):
        """``network``: through a network. ``product``: from a round's begin to the first row of a sum in its bank.

        ``result``: from the begin of a round in which a tile is activated to its first row in a bank of X. ``round``:
        least cycles of a round, if tiles have no more rows than that.
        """
        return latencies(self.params)

    def body(self, platform):
        m, design = Module(), self.params
        cycles, pod_cycles = latencies(design), Pod.latency(design.core)
        through = cycles["network"]
        tail = max(cycles["product"], cycles["result"])
        m.submodules.rounds = rounds = Rounds(design.key, design.bank, design.rounds, tail)
        connect(m, flipped(self.i_run), rounds.i)
        m.d.comb += [self.busy.eq(rounds.busy), self.error.eq(rounds.error), self.i_load.ready.eq(1)]
        m.d.sync += self.begins.eq(rounds.go)
        # When a round begins for each place, counted from `go`; a bank is read in the cycle after that.
        out = 1 + through + pod_cycles
        late = [rounds.go]
        for cycle in range(max(out, through + PostProcessor.LATENCY) + through):
            late.append(delay(m, late[-1], 1, f"go_{cycle}", reset_less=False))
        result = through + PostProcessor.LATENCY
        begins = {Net.X: late[1], Net.W: delay(m, rounds.go_w, 1, "go_w", reset_less=False), Net.SUM_IN: late[1],
                  Net.SUM_OUT: late[out], Net.POST: late[1], Net.RESULT: late[result]}
        self._rounds, self._go_sum, self._go_post, self._go_x = (
            rounds, late[out + through], late[through], late[result + through])

        _, _, networks = parts(design)
        for net, each in networks.items():
            m.submodules[f"network_{net.name.lower()}"] = each
            m.submodules[f"station_{net.name.lower()}"] = station = Station(design.rounds, len(each.route.as_value()))
            self._load(m, station.load, Place.ROUTE, net)
            m.d.comb += [station.rewind.eq(rounds.rewind), station.go.eq(begins[net]), each.start.eq(station.start),
                         each.route.as_value().eq(station.word)]
        kept = Signal(index(design.pods))
        m.d.sync += kept.eq(self.i_kept.unit)
        posts = [self._unit(m, unit, networks) for unit in range(design.pods)]
        for post in posts:
            m.d.comb += [post.host.en.eq(1), post.host.address.eq(self.i_kept.address)]
        with m.Switch(kept):
            for unit, post in enumerate(posts):
                with m.Case(unit):
                    m.d.comb += self.o_kept.eq(post.host_o)
        return m

    def _load(self, m, load, place, unit):
        """Wire a memory to the words that come for it."""
        word = self.i_load.payload
        m.d.comb += [load.en.eq(self.i_load.valid & (word.place == place) & (word.unit == unit)),
                     load.address.eq(word.address), load.data.eq(word.data)]

    def _unit(self, m, unit, networks):
        """A pod, a bank of each kind and a post-processor, on the networks; the post-processor."""
        rounds, core = self._rounds, self.params.core
        (x, w, sums), post, _ = parts(self.params)
        pod = Pod.made(core)
        for name, each in (("x", x), ("w", w), ("sums", sums), ("post", post), ("pod", pod)):
            m.submodules[f"{name}{unit}"] = each
        for bank, go, place in ((x, rounds.go, Place.READ_X), (w, rounds.go_w, Place.READ_W),
                                (sums, rounds.go, Place.READ_SUM)):
            self._load(m, bank.read, place, unit)
            m.d.comb += [bank.rewind.eq(rounds.rewind), bank.go_read.eq(go)]
        m.d.comb += [x.rows.eq(rounds.rows), w.rows.eq(core.rows), sums.rows.eq(rounds.rows)]
        for bank, go, place in ((x, self._go_x, Place.WRITE_X), (sums, self._go_sum, Place.WRITE_SUM)):
            self._load(m, bank.write, place, unit)
            m.d.comb += bank.go_write.eq(go)
        for load, place in ((sums.other, Place.READ_POST), (x.load, Place.X), (w.load, Place.W),
                            (post.vectors, Place.VECTORS), (post.schedule, Place.POST)):
            self._load(m, load, place, unit)
        m.d.comb += [
            post.rewind.eq(rounds.rewind), post.go.eq(self._go_post), post.rows.eq(rounds.rows),
            networks[Net.POST].i[unit].eq(sums.other_o), post.sums.eq(networks[Net.POST].o[unit]),
        ]
        row_x, row_w = Signal(x_layout(core), name=f"row_x{unit}"), Signal(w_layout(core), name=f"row_w{unit}")
        m.d.comb += [
            row_x.first.eq(x.first), row_x.row.eq(x.o), row_w.valid.eq(w.valid), row_w.row.eq(w.o),
            networks[Net.X].i[unit].eq(row_x), pod.x.eq(networks[Net.X].o[unit]),
            networks[Net.W].i[unit].eq(row_w), pod.w.eq(networks[Net.W].o[unit]),
            networks[Net.SUM_IN].i[unit].eq(sums.o), pod.sums.eq(networks[Net.SUM_IN].o[unit]),
            networks[Net.SUM_OUT].i[unit].eq(pod.o), sums.i.eq(networks[Net.SUM_OUT].o[unit]),
            networks[Net.RESULT].i[unit].eq(post.o), x.i.eq(networks[Net.RESULT].o[unit]),
        ]
        for member, valid, address, value in ((self.sums, sums.wrote, sums.address, sums.i),
                                              (self.operands, x.wrote, x.address, x.i),
                                              (self.results, post.kept, post.kept_address, post.value)):
            m.d.comb += [member[unit].valid.eq(valid), member[unit].address.eq(address), member[unit].value.eq(value)]
        return post
