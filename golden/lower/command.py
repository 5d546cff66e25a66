"""``python -m golden lower``: a network's graph, and what each of its nodes becomes on the accelerator."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, refuse, writable_file, writing

from .names import zoo_text

#: How pictures end.
PICTURES = (".png", ".svg")


def lowered(text: str, accelerator: Accelerator, yields: bool = False, name: str = "MODEL") -> Any:
    """A network, or a job of several, as a program, and what PyTorch computes; OptionError if it cannot be one.

    ``yields``: with a YIELD behind each layer; ``name`` is the option that gave it.
    """
    from .errors import LoweringError  # PyTorch takes a moment; complaints about options come before
    from .lowering import lower, lower_job
    from .zoo import source

    try:
        model, inputs = source(text)
        return (lower_job if isinstance(model, list) else lower)(model, inputs, accelerator, yields=yields)
    except OptionError:
        raise
    except (LoweringError, ValueError) as error:
        raise refuse(name, text, str(error)) from None


def add_lower(commands: Any) -> None:
    """Add the parser of ``lower``."""
    lower = commands.add_parser("lower", help="a network's graph, and what each node becomes on the accelerator",
                                description="A network's graph in torch's core operations, and what each node becomes "
                                "on the accelerator: products (rows x terms x columns) and numbers of instructions, a "
                                "view of what lies in DRAM, or a part of another node's instructions.\n\n"
                                f"{zoo_text()}")
    lower.add_argument("model", metavar="MODEL", help="FILE.py with model(), one or a list, and inputs(); or a name of "
                       "the zoo, above")
    add_system_options(lower, Accelerator, "accelerator")
    lower.add_argument("--json", metavar="FILE", help="also write the graph there")
    lower.add_argument("--picture", metavar="FILE", help="also draw the graph: FILE.png or FILE.svg")


def prepare_lower(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    for name in ("json", "picture"):
        if getattr(args, name) is not None:
            setattr(args, name, writable_file(name, getattr(args, name)))
    if args.picture is not None and args.picture.suffix not in PICTURES:
        raise refuse("picture", args.picture, f"must end in {' or '.join(PICTURES)}")
    return partial(_lower, args, system_from_args(args, Accelerator))


def _lower(args, accelerator):
    """Lower, tell."""
    console, made = Console(highlight=False), lowered(args.model, accelerator)
    program, title = made.program, f"{args.model} on {accelerator.name}"
    inputs = {name: made.torch_order(name, made.expected[name]).shape for name, each in program.tensors.items()
              if each.role == "input"}
    console.print(_table(title, inputs, made.became, program))
    console.print(f"{len(made.became):,} nodes, {len(program.instructions):,} instructions, "
                  f"{sum(each.macs for each in program.layers):,} MACs, {program.limit:,} bytes of DRAM; gives "
                  f"{', '.join(made.outputs)}", markup=False, soft_wrap=True)
    if args.picture is not None:
        from .picture import draw  # with matplotlib

        with writing("picture", args.picture):
            draw(args.picture, title, inputs, made.became, program)
        console.print(f"picture:  {args.picture}", markup=False, soft_wrap=True)
    if args.json is not None:
        data = {"model": args.model, "accelerator": accelerator.name, "inputs": inputs, "outputs": made.outputs,
                "instructions": len(program.instructions), "bytes": program.limit,
                "nodes": [_entry(each, program) for each in made.became]}
        with writing("json", args.json):
            files.write_json(args.json, data)


def _entry(each, program):
    """A node of the JSON."""
    kept = {name: value for name, value in asdict(each).items() if name not in ("first", "stop")}
    return kept | {"instructions": each.instructions(program), "becomes": each.text(program)}


def _table(title, inputs, nodes, program):
    """What nodes become, for people; of nodes in one layer the first has its name."""
    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for head in ("layer", "node", "operation", "becomes", "shape"):
        made.add_column(head, overflow="fold")
    for name, shape in inputs.items():
        made.add_row("", name, "input", "", _shape(shape))
    before = ""
    for each in nodes:
        shape = _shape(each.shapes[0]) if each.shapes else ""
        made.add_row(each.layer if each.layer != before else "", each.node, each.operation, each.text(program), shape)
        before = each.layer
    return made


def _shape(shape):
    return "x".join(map(str, shape)) or "1"
