"""What ``python -m golden pods`` does and prints, once its options are known to be good."""

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.golden.command.progress import Bars
from hbfp.values import OptionError, make_folder, shown, writing

from .catalogue import STUDY
from .machine import Machine

#: Networks of a study, unless some are given.
STUDIED = {"banks": ("resnet50", "densenet121", "bert-base"),
           "tenancy": ("resnet152", "bert-medium@20", "resnet152", "bert-medium@64", "resnet152", "bert-medium")}


def _graphs(networks, batch, train):
    from .networks import from_file, named  # with PyTorch, which help does not need
    for each in networks:
        try:
            yield from_file(each, train) if isinstance(each, Path) else named(each, batch)
        except ValueError as error:
            text = str(error) if isinstance(each, Path) else f"{each}: {error}"
            raise OptionError(f"--network {shown(text, 400)}") from None


def _traced(networks, setting, bar):
    """Graphs of networks, with a bar."""
    move, found = bar("trace networks"), []
    for graph in _graphs(networks, setting.batch, setting.train):
        found.append(graph)
        move(len(found), len(networks))
    return found


def _machine(setting):
    return Machine(setting.pods, setting.rows, setting.columns, setting.interconnect,
                   chains=setting.chain)


def run(setting: Any) -> None:
    """Schedule the networks, print and write the figures."""
    start, console = time.perf_counter(), Console(highlight=False)
    bar = Bars(console)
    with bar.progress:
        graphs = _traced(setting.networks, setting, bar)
        bar("schedule")
        _run(setting, graphs, console, start)


def _run(setting, graphs, console, start):
    """Schedule, print and write."""
    from ..prices import as_dict
    from . import memory, power, simulate
    from .tile_bytes import largest_partition

    machine = _machine(setting)
    constants, sources = setting.constants
    tenants = [simulate.Tenant(*each) for each in zip(graphs, setting.arrivals, setting.priorities, strict=True)]
    most = largest_partition(setting.bank, setting.rows, setting.columns, constants.element_bytes,
                                    range(setting.rows, 4 * setting.rows + 1))
    outcome = simulate.run(tenants, machine, setting.partition, setting.waits, setting.policy, most, setting.banks)
    figures = outcome.figures()
    if setting.dram is not None:
        traffic = memory.run(outcome.tiles, machine, outcome.plan, memory.Memory(
            setting.bank, memory.bandwidth(setting.dram, constants.ghz), constants.element_bytes), outcome.cycles)
        figures |= {"cycles_with_dram": traffic.cycles, "weight_bytes": traffic.weight_bytes,
                    "spilled_bytes": traffic.spilled_bytes}
    watts = power.of(constants, machine)
    figures |= {"watts": watts.total, "watts_banks": watts.banks, "watts_arrays": watts.arrays,
                "watts_network": watts.network, "joules": watts.total * figures["occupancy"] * outcome.cycles
                / (constants.ghz * 1e9), "tops": 2e-3 * outcome.macs * constants.ghz / outcome.cycles,
                "seconds": time.perf_counter() - start}
    console.print(_networks(setting, graphs, outcome, figures))
    console.print(f"{figures['cycles']} cycles, {figures['rounds']} rounds of up to {figures['round_cycles']}; pods "
                  f"taken {100 * figures['occupancy']:.1f} %, array used {100 * figures['utilisation']:.1f} %; "
                  f"{figures['seconds']:.1f} s", soft_wrap=True)
    if setting.dram is not None:
        console.print(f"{figures['cycles_with_dram']} cycles with {setting.dram:g} GB/s and banks of "
                      f"{setting.bank // 1024} kB; {figures['weight_bytes'] / 1e6:.1f} MB of weights, "
                      f"{figures['spilled_bytes'] / 1e6:.1f} MB of results out and back", soft_wrap=True)
    console.print(f"{figures['tops']:.1f} TOp/s, {figures['watts']:.1f} W with all pods at work (banks "
                  f"{watts.banks:.1f}, arrays {watts.arrays:.1f}, networks {watts.network:.1f}), "
                  f"{1e3 * figures['joules']:.3f} mJ", soft_wrap=True)
    if setting.view:
        from . import pictures
        make_folder("out", setting.out)
        with writing("out", setting.out):
            pictures.schedule(setting.out / "schedule.png", outcome, [each.name for each in graphs])
        console.print(f"schedule {setting.out}/schedule.png", soft_wrap=True)
    _write_json(setting, {"networks": [each.name for each in graphs], "pods": setting.pods,
                          "interconnect": setting.interconnect.name, "policy": setting.policy,
                          "partition": sorted(set(outcome.tiles.partition.tolist())), **figures,
                          "constants": as_dict(constants, sources)})


def _networks(setting, graphs, outcome, figures):
    table = Table(title=f"{setting.pods} pods of {setting.rows} x {setting.columns}, {setting.interconnect.name}, "
                        f"{setting.policy}")
    for head in ("network", "products", "MACs", "operations", "ends at cycle"):
        table.add_column(head, justify="left" if head == "network" else "right")
    for number, (graph, end) in enumerate(zip(graphs, figures["finished"], strict=True)):
        count = sum(int(each.prod()) for each in outcome.tiles.shape[outcome.tenant == number])
        table.add_row(graph.name, str(len(graph.gemms)), f"{graph.macs:.4g}", str(count), str(end))
    return table


def _write_json(setting, data):
    if setting.json is not None:
        with writing("json", setting.json):
            files.write_json(setting.json, data)


def study(setting: Any) -> None:
    """Run a study; print its table, write it as CSV, JSON and picture."""
    name, console = setting.study, Console(highlight=False)
    start, bar = time.perf_counter(), Bars(console)
    with bar.progress:
        rows, graphs = _study(setting, name, bar)
    from ..prices import as_dict
    from . import pictures

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=f"{name}, {setting.pods} pods of {setting.rows} x {setting.columns}, {setting.policy}")
    for head in columns:
        table.add_column(head.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(_text(row.get(key, "-")) for key in columns))
    console = Console(highlight=False, width=max(120, 14 * len(columns)))
    console.print(table)
    make_folder("out", setting.out)
    with writing("out", setting.out):
        files.write_csv(setting.out / f"{name}.csv", columns, rows)
        pictures.study(setting.out / f"{name}.png", name, rows)
    console.print(f"table {setting.out}/{name}.csv, picture {setting.out}/{name}.png; "
                  f"{time.perf_counter() - start:.0f} s", soft_wrap=True)
    _write_json(setting, {"study": name, "rows": rows, "networks": [each.name for each in graphs],
                          "constants": as_dict(*setting.constants)})


def _study(setting, name, bar):
    """Rows of a study, and the networks that it was made on."""
    if name == "fused" and not setting.networks:
        from .step import digits, lstm
        graphs = [digits(), lstm(512)]
    else:
        graphs = _traced(setting.networks or STUDIED.get(name, STUDY), setting, bar)
    from . import power
    from .study import STUDIES, Base

    sets = {key: made()[0] for key, made in power.SETS.items()} if name == "granularity" else {
        "given": setting.constants[0]}
    base = Base(tuple(graphs), _machine(setting), sets, setting.policy, setting.jobs, setting.scheduler, bar(name))
    try:
        return STUDIES[name](base), graphs
    except ValueError as error:
        raise OptionError(str(error)) from None


def _text(value):
    return f"{value:.3g}" if isinstance(value, float) and value < 100 else f"{value:.0f}" if isinstance(
        value, float) else str(value)
