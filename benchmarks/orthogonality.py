"""Are sparsity and quantisation orthogonal? Errors of a small trained network: ``python -m benchmarks.orthogonality``.

The network of the task ``teacher`` or ``digits`` is trained in FP32; the table has, of each layer and format, the
relative errors of the outputs by sparsity alone, by quantisation alone and by both in either order, and those of both
over the sum of the first two. The picture and the table's numbers as JSON are in ``build/golden/orthogonality``.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from golden.study.interplay import CASES, measure, picture
from golden.study.tasks import TASKS, load, network
from hbfp import files

FORMATS = ("hbfp8", "hbfp6", "hbfp4", "mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e2m3", "mxfp6-e3m2", "int8")


def trained(task, epochs, seed=0):
    """The network and its test inputs."""
    torch.manual_seed(seed)
    x, y, x_test, _ = load(task)
    net = network(task)
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            optimiser.step()
    return net, x_test


def main():
    """Train, measure, print and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orthogonality", description=__doc__.partition("\n")[0])
    parser.add_argument("--task", choices=TASKS, default="teacher")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=files.output("golden", "orthogonality"), help="folder of results")
    options = parser.parse_args()
    rows = measure(*trained(options.task, options.epochs), FORMATS)
    table = Table("layer", "format", *(f"{case}, %" for case in CASES), "both / sum", "reverse / sum")
    for row in rows:
        table.add_row(row.layer, row.format, *(f"{100 * row.outputs[case]:.2f}" for case in CASES),
                      *(f"{row.beyond(order):.3f}" for order in CASES[2:]))
    Console().print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    picture(rows, options.out / "errors.png")
    files.write_json(options.out / "errors.json", [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
