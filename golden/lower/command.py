"""``python -m golden lower``: a network's graph, and what each of its nodes becomes on the accelerator."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
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


def lowered(text: str, accelerator: Accelerator, yields: bool = False, name: str = "MODEL",
            exclude: Sequence[str] = ()) -> Any:
    """A network, or a job of several, as a program, and what PyTorch computes; OptionError if it cannot be one.

    ``yields``: with a YIELD behind each layer; ``name`` is the option that gave it; with ``exclude``, names of layers
    that run on the host, it is a :class:`~golden.lower.split.Split`.
    """
    from .errors import LoweringError  # PyTorch takes a moment; complaints about options come before
    from .lowering import lower, lower_job
    from .split import lower_split
    from .zoo import source

    try:
        model, inputs = source(text)
        if exclude:
            if isinstance(model, list):
                raise ValueError("--exclude must not be given with a job")
            return lower_split(model, inputs, accelerator, exclude)
        return (lower_job if isinstance(model, list) else lower)(model, inputs, accelerator, yields=yields)
    except OptionError:
        raise
    except (LoweringError, ValueError) as error:
        raise refuse(name, text, str(error)) from None


def add_exclude(parser: Any) -> None:
    """Add the option ``--exclude``."""
    parser.add_argument("--exclude", action="append", default=[], metavar="NAME", help="a layer of the model that runs "
                        "on the host, in plain PyTorch, between two programs: its qualified name, with wildcards; may "
                        "be given more than once")


def check_exclude(args: Namespace, others: Iterable[str]) -> None:
    """OptionError if ``--exclude`` is given with one of other options, which are of one program."""
    for name in others:
        if args.exclude and getattr(args, name) not in (None, False):
            raise OptionError(f"--{name} must not be given with --exclude, which makes several programs")


def traffic(hosts: Sequence[str], read: int, written: int) -> str:
    """A line that tells what ran on the host, and how many bytes of DRAM it moved."""
    return f"on the host: {', '.join(hosts)}; {read:,} bytes read, {written:,} written, its time not counted"


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
    add_exclude(lower)
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
    console, made = Console(highlight=False), lowered(args.model, accelerator, exclude=args.exclude)
    title, programs = f"{args.model} on {accelerator.name}", made.programs
    instructions = sum(len(each.instructions) for each in programs)
    space = max((each.limit for each in programs), default=0)
    console.print(_table(title, made.inputs, made.became))
    several = f" of {len(programs)} programs" if len(programs) > 1 else ""
    console.print(f"{len(made.became):,} nodes, {instructions:,} instructions{several}, "
                  f"{sum(layer.macs for each in programs for layer in each.layers):,} MACs, {space:,} bytes of DRAM; "
                  f"gives {', '.join(made.outputs)}", markup=False, soft_wrap=True)
    if args.picture is not None:
        from .picture import draw  # with matplotlib

        with writing("picture", args.picture):
            draw(args.picture, title, made.inputs, made.became)
        console.print(f"picture:  {args.picture}", markup=False, soft_wrap=True)
    if args.json is not None:
        data = {"model": args.model, "accelerator": accelerator.name, "inputs": made.inputs, "outputs": made.outputs,
                "instructions": instructions, "bytes": space,
                "nodes": [asdict(each) | {"becomes": each.text} for each in made.became]}
        with writing("json", args.json):
            files.write_json(args.json, data)


def _table(title, inputs, nodes):
    """What nodes become, for people; of nodes in one layer the first has its name."""
    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for head in ("layer", "node", "operation", "becomes", "shape"):
        made.add_column(head, overflow="fold")
    for name, shape in inputs.items():
        made.add_row("", name, "input", "", _shape(shape))
    before = ""
    for each in nodes:
        shape = _shape(each.shapes[0]) if each.shapes else ""
        made.add_row(each.layer if each.layer != before else "", each.node, each.operation, each.text, shape)
        before = each.layer
    return made


def _shape(shape):
    return "x".join(map(str, shape)) or "1"
