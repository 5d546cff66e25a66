"""Training in the accelerator's arithmetic until a share of the test images is recognised, by PyTorch alone.

    python -m benchmarks.accuracy                            ResNet-20 on enlarged digits, from its start to 95 %
    python -m benchmarks.accuracy --mantissa 4 --most 540    the same in HBFP4, three epochs at most

The steps are those of python -m cosim train docs/examples/training_resnet.py: the same file, batches and arithmetic,
whose bits the golden machine and the Verilog have. Accuracy is that of the model in evaluation, in the same arithmetic.
"""

import runpy
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from rich.console import Console

from golden.lower.training.reference import Reference
from golden.lower.training.source import training
from golden.nn.side import sided
from golden.perf.pictures import figure, lines, save
from hbfp import files
from hbfp.command import Parser, run
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import whole, writable_file

from .tables import add_json

FILE = "docs/examples/training_resnet.py"
#: Accuracy that is asked for, in percent.
GOAL = 95
#: Images of a batch in evaluation.
BATCH = 60


def recognised(reference, images, classes):
    """Percent of images whose class a model finds, in evaluation."""
    reference.model.eval()
    with torch.no_grad(), sided(reference.side):
        found = torch.cat([reference.model(each).argmax(1) for each in images.split(BATCH)])
    reference.model.train()
    return 100 * float((found == classes).float().mean())


def trained(accelerator, most, every, tell):
    """Steps until the goal is reached, ``most`` at most: (steps, accuracy, mean loss since the last) every so many."""
    made, test = training(FILE), runpy.run_path(FILE)["test"]()
    reference = Reference(made.model, made.loss, made.optimiser, accelerator, plan=made.plan, clip=made.clip)
    losses, found = [], [(0, recognised(reference, *test), None)]
    tell(*found[-1])
    for number, batch in enumerate(islice(made.batches(), most), 1):
        losses.append(float(reference.step(*batch)))
        if number % every == 0 or number == most:
            found.append((number, recognised(reference, *test), sum(losses[-every:]) / len(losses[-every:])))
            tell(*found[-1])
            if found[-1][1] >= GOAL:
                break
    return found


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    accelerator = system_from_args(args, Accelerator)
    paths = [value and writable_file(name, value) for name, value in (("json", args.json), ("curve", args.curve))]
    return partial(work, accelerator, whole("most", args.most, 1, 100_000), whole("every", args.every, 1, 10_000),
                   *paths)


def work(accelerator, most, every, path, curve):
    """Train, print, keep; status 1 if the goal is not reached."""
    console = Console(highlight=False)

    def tell(steps, share, loss):
        console.print(f"{steps:5} steps: {share:.1f} % recognised" + ("" if loss is None else f", loss {loss:.3f}"))
    found = trained(accelerator, most, every, tell)
    if curve is not None:
        made, (axes,) = figure(1)
        lines(axes, {"test images recognised": ([each[0] for each in found], [each[1] for each in found])})
        axes.set_xlabel("step")
        axes.set_ylabel("percent")
        axes.set_title(f"{Path(FILE).name} on {accelerator.name}", fontsize=9)
        save(made, curve)
    if path is not None:
        files.write_json(path, {"steps": found[-1][0], "accuracy": found[-1][1], "start": found[0][1], "goal": GOAL,
                                "curve": [{"steps": each[0], "accuracy": each[1], "loss": each[2]} for each in found]})
    return int(found[-1][1] < GOAL)


def main(argv=None):
    """Run the command; return its exit status."""
    parser = Parser(prog="python -m benchmarks.accuracy", description=__doc__)
    add_system_options(parser, Accelerator, "accelerator")
    parser.add_argument("--most", default="900", metavar="N", help="steps at most (default 900, five epochs)")
    parser.add_argument("--every", default="45", metavar="N", help="steps between tests (default 45)")
    parser.add_argument("--curve", type=Path, help="also draw the accuracy there, as PNG")
    add_json(parser)
    return run(parser, prepare, argv)


if __name__ == "__main__":
    raise SystemExit(main())
