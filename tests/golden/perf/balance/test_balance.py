"""The search over the accelerator's options: prices of what was measured, fronts, limits, and going on.

Covers: golden/perf/balance/point.py, golden/perf/balance/search.py, golden/perf/balance/command.py.
"""

import json
from dataclasses import replace

import pytest

from golden.__main__ import main
from golden.lower.command import lowered
from golden.perf.accelerator.command import lowered_step
from golden.perf.accelerator.model import times
from golden.perf.balance import point as balance
from golden.perf.balance import search as balance_search
from golden.perf.balance.point import Point, beaten, front, smallest
from hbfp.figures import figure
from hbfp.manifest import core_latency
from hbfp.presets import SYSTEMS
from hbfp.system import FUNCTIONS, Accelerator


def made(area, **cycles):
    return Point({}, area, 0.0, cycles)


POINTS = [made(9, a=100, b=50), made(5, a=104, b=None), made(4, a=120, b=55), made(6, a=130, b=50)]


def test_front():
    """Sorted by area; a point is left out where a smaller one is as fast, or the network does not fit."""
    assert [each.area for each in front(POINTS, "a")] == [4, 5, 9]
    assert [each.area for each in front(POINTS, "b")] == [4, 6]


@pytest.mark.parametrize("bounds, area", [({"a": 103}, 9), ({"a": 104}, 5), ({"a": 120, "b": 55}, 4),
                                          ({"a": 119, "b": 55}, 9), ({"a": 99}, None)])
def test_smallest_within_bounds(bounds, area):
    found = smallest(POINTS, bounds)
    assert (found and found.area) == area


def test_beaten():
    """By what is no worse in area and in each network, and better in one; never by itself or its equal."""
    small, quick, equal = made(4, a=100, b=60), made(5, a=90, b=60), made(4, a=100, b=60)
    assert beaten(made(5, a=100, b=60), [quick, small]) is small and beaten(made(4, a=100, b=None), [small]) is small
    assert beaten(small, [small, equal, quick, made(3, a=101, b=60), made(3, a=90, b=None)]) is None


@pytest.mark.parametrize("network", ["lstm", "train:docs/examples/training.py"])
@pytest.mark.parametrize("options", [{}, {"vector_lanes": 4, "memory_banks": 2, "v_words": 128, "register_copies": 1}])
def test_cycles_are_those_of_the_network_s_own_program(network, options):
    """The graph that serves every accelerator, and a step without numbers, give the cycles of each alone."""
    system = balance.accelerator({"rows": 8, "block": (1, 8)} | options)
    step = network.removeprefix(balance.TRAIN)
    program, = (lowered(network, system) if step == network else lowered_step(step, system)[1]).programs
    assert balance.cycles(network, system) == times(program, core_latency(system.core), balance.LATENCY,
                                                    system.beat).cycles


def test_logic_is_what_was_measured():
    base, side = figure("vector_lanes.lanes"), figure("core_options.side")
    assert balance.logic(Accelerator()) == base["l32"]["all"]
    few = balance.accelerator({"vector_lanes": 16, "function_lanes": 4, "side_lanes": 16})
    assert balance.logic(few) == base["l16_f4"]["all"] - side["l32"]["side"] + side["l16"]["side"]
    lists = [balance.logic(replace(few, functions=names)) for names in (
        FUNCTIONS, ("exp", "recip", "tanh"), ("exp", "gelu"))]
    assert lists == sorted(lists, reverse=True) and len(set(lists)) == 3


@pytest.mark.parametrize("values, line", [
    ({"vector_lanes": 2}, "No logic was measured of 2 lanes with 2 evaluators and side lanes 32"),
    ({"side_lanes": 2}, "No logic was measured of 32 lanes with 32 evaluators and side lanes 2"),
    ({"rows": 16, "block": (1, 16)}, "Logic was measured of accelerators of 32 x 32 for HBFP8")])
def test_what_was_not_measured(values, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        balance.logic(balance.accelerator(values))


def test_every_choice_is_an_accelerator():
    assert balance.accelerator(balance_search.values(balance_search.USUAL, ("exp",))) == Accelerator()
    for name, choices in balance_search.CHOICES.items():
        for choice in choices:
            values = balance_search.values(balance_search.USUAL | {name: choice}, ("exp",))
            assert balance.logic(balance.accelerator(values)) > 0
    assert all(set(each) == set(balance_search.CHOICES) for each in balance_search.SEEDS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_presets_lie_on_a_front(name):
    """By what was measured of these very options; none is better than one of them."""
    needed = next(iter(figure("balance.front").values()))["title"].partition("--functions ")[2].split()[0].split(",")
    chosen = balance_search.SEEDS[list(SYSTEMS).index(name)]
    words = balance.options(balance_search.values(chosen, needed))
    title = f"`{words}`" if words else "the default"
    found, = (each for each in figure("balance.front").values() if each["title"] == title)
    preset = figure(f"balance.presets.{name}")
    assert found | {"title": ""} == {key: preset[key] for key in found} | {"title": ""} and preset["better"] == "none"


@pytest.fixture
def formula(monkeypatch):
    """In place of lowering and the cycle model: fewer words are smaller and slower, and ``b`` needs 2048 of V."""
    asked = []

    def point(values, networks):
        asked.append(values)
        system = balance.accelerator(values)
        taken = {name: None if name == "b" and system.v_words < 2048 else 10 ** 6 + 10 ** 9 // system.v_words
                 for name in networks}
        return Point(values, balance.logic(system), 100.0 * system.v_words, taken, "")
    monkeypatch.setattr(balance, "point", point)
    monkeypatch.setattr(balance, "functions", lambda network: ["exp"] if network == "b" else [])
    return asked


def test_search_goes_on(formula, tmp_path, capsys):
    """A search of four trials, and one of nine that begins with them; the table, the picture and the results."""
    words = ["balance", "a", "b", "--jobs", "1", "--out", str(tmp_path), "--limit", "60,100"]
    assert main([*words, "--trials", "4"]) == 0
    first = list(formula)
    file = tmp_path / "found.json"
    assert main([*words, "--trials", "9", "--json", str(file)]) == 0
    assert formula[4:8] == first and len(formula) == 4 + 9
    tried = [str(each) for each in formula[4:]]
    assert len(set(tried)) == len(tried)
    data = json.loads(file.read_text())
    assert len(data["points"]) == 9 and data["points"][0]["options"] == ""
    assert data["best"]["all"] == min(each["all"] for each in data["points"] if all(
        (taken := each["cycles"][name]) is not None and taken <= bound for name, bound in data["bounds"].items()))
    assert all("--functions exp" in each["options"] for each in data["points"][1:])
    assert data["presets"]["full"]["point"] == 0 and list(data["presets"]) == ["full", "large", "medium", "small"]
    assert (tmp_path / "balance.png").stat().st_size > 1000 and "smallest within the limits" in capsys.readouterr().out


@pytest.mark.parametrize("words, line", [
    (["--limit", "3,x"], "--limit must be percent, 0 to 1000, one or 1 with commas between, not 3,x"),
    (["--limit", "3,4"], "--limit must be percent, 0 to 1000, one or 1 with commas between, not 3,4"),
    (["--limit", "-1"], "--limit must be percent, 0 to 1000, one or 1 with commas between, not -1"),
    (["mlp"], "NETWORK must be given once each"), (["--trials", "1"], "--trials 1: must be 2 to 100000")])
def test_wrong_option(words, line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["balance", "mlp", *words])
    assert stop.value.code == 2 and capsys.readouterr().err == f"python -m golden: error: {line}\n"
