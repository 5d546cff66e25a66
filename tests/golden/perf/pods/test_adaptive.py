"""The scheduler of our own: its schedules keep the rules and take fewer cycles than first fit's."""

import pytest

from golden.perf.pods import simulate
from golden.perf.pods.adaptive import partitions
from golden.perf.pods.graph import Gemm, Graph
from golden.perf.pods.interconnect import parse
from golden.perf.pods.machine import Machine
from golden.perf.pods.networks import named
from tests.cases import sweep

from .check import verify

MACHINE = Machine(64, 32, 32, parse("butterfly-2"))


@pytest.mark.parametrize("rows, most, partition", [
    (49, 64, 49), (49, 40, 32), (196, 64, 49), (1, 64, 32), (100, 64, 50), (128, 32, 32), (3136, 64, 64)])
def test_partitions(rows, most, partition):
    gemm = Gemm("a", 1, rows, 32, 32, height=rows)
    assert partitions([gemm], MACHINE, most) == [partition]
    cycles = {p: -(-rows // p) * MACHINE.round(p) for p in range(32, most + 1)}
    assert cycles[partition] == min(cycles.values())


@pytest.mark.parametrize("name", sweep(3, ["bert-medium", "resnet50", "densenet121@96"]))
def test_fewer_cycles_than_first_fit(name):
    tenants = [simulate.Tenant(named(name))]
    first, own = (simulate.run(tenants, MACHINE, scheduler=each) for each in ("first-fit", "adaptive"))
    assert own.cycles < first.cycles and own.macs == first.macs


def test_its_schedules_keep_the_rules():
    machine = Machine(16, 32, 32, parse("butterfly-2"))
    graph = named("densenet121@32")
    first, second = Graph("start", graph.gemms[:16]), Graph("bert", named("bert-medium@49").gemms[:8])
    tenants = [simulate.Tenant(first), simulate.Tenant(second, arrival=500, priority=1)]
    for scheduler in ("first-fit", "adaptive"):
        outcome = simulate.run(tenants, machine, scheduler=scheduler)
        verify(outcome.tiles, outcome.machine, outcome.plan)


def test_a_tenant_waits_until_it_arrives():
    graph = Graph("one", (Gemm("a", 1, 64, 64, 64, height=64),))
    alone = simulate.run([simulate.Tenant(graph)], MACHINE).cycles
    late = simulate.run([simulate.Tenant(graph, arrival=1000)], MACHINE).cycles
    assert late == alone + 31 * 33    # the first round that starts at 1000 or later
