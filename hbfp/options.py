"""The design options that every command line takes, and the way from them to a :class:`Design`."""

import argparse
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, overload

from . import describe
from .describe import D
from .design import ConflictError, Design
from .pods import PodsDesign
from .presets import PRESETS, SYSTEMS
from .system import Accelerator
from .values import ContradictionError, choice, flag, read_file, refuse, shown

#: Names of the options; those of a configuration file, too.
OPTIONS = tuple(describe.declared(Design))


def add_design_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a design to an ``argparse`` parser; :func:`design_from_args` reads them."""
    group = parser.add_argument_group("design", "Values from --preset, then --config, then the command line.")
    describe.add_arguments(group, Design)
    add_source_options(group)


def add_source_options(group: argparse._ActionsContainer) -> None:
    """Add the options that name where values come from."""
    group.add_argument("--preset", metavar="NAME", help=f"a named design: {', '.join(PRESETS)}; an accelerator: "
                       f"{', '.join(SYSTEMS)}")
    group.add_argument("--config", metavar="FILE", help="a TOML file with any of these options as keys")


def _read_config(path, names):
    data = read_file("config", path)
    try:
        values = tomllib.loads(data.decode())
    except RecursionError:
        raise refuse("config", path, "is nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise refuse("config", path, f"is not TOML ({shown(error)})") from None
    except ValueError:
        raise refuse("config", path, "holds an integer of too many digits") from None
    for key in values:
        if key not in names:
            raise refuse("config", path, f"unknown key '{shown(key)}'; valid are {', '.join(names)}")
    return values


def read(kind: type[D], given: Mapping[str, Any]) -> D:
    """A description from option names and values; those not named have their defaults.

    Parameters
    ----------
    kind : type
        A description: a dataclass of :mod:`hbfp.fields`.
    given : dict
        Text of a command line, data of a file, or values as they are; None is not given.

    Raises
    ------
    OptionError
        If a value is out of range, or values contradict each other (:class:`ContradictionError`); one line.
    """
    kinds = describe.declared(kind)
    values = {name: kinds[name][0].read(name, value) for name, value in given.items() if value is not None}
    try:
        return describe.build(kind, values)
    except ConflictError as error:
        raise ContradictionError(f"{flag(error.name)} {error.value}: {error.rule}") from None


@overload
def design_from_values(values: Mapping[str, Any]) -> Design: ...
@overload
def design_from_values(values: Mapping[str, Any], kind: type[D]) -> D: ...
def design_from_values(values: Mapping[str, Any], kind: type[Any] = Design) -> Any:
    """A :class:`Design`, or a description with one nested, by :func:`read`; its block fits the rows if not given.

    Blocks may be longer than the rows, unless the description's ``SHORT_BLOCKS`` says that they may not.
    """
    design_kinds = describe.declared(Design)
    rows = Design.rows if values.get("rows") is None else design_kinds["rows"][0].read("rows", values["rows"])
    short = getattr(kind, "SHORT_BLOCKS", False)
    if values.get("block") is None and (short or 32 % rows) and rows % 32 and not values.get("ragged"):
        values = {**values, "block": (1, rows)}
    return read(kind, values)


def pods_from_values(values: Mapping[str, Any]) -> PodsDesign:
    """A :class:`PodsDesign` by :func:`design_from_values`."""
    return design_from_values(values, PodsDesign)


def values_from_args(args: argparse.Namespace, names: Iterable[str] = OPTIONS,
                     presets: Mapping[str, Mapping[str, Any]] = PRESETS) -> dict[str, Any]:
    """The values of options ``names`` that parsed arguments give: preset, then configuration file, then options.

    ``presets`` are those that may be named.

    Raises
    ------
    OptionError
        If a preset or a file is not valid; one line.
    """
    values: dict[str, Any] = {}
    if args.preset is not None:
        values |= presets[choice("preset", args.preset, presets)]
    if args.config is not None:
        values |= _read_config(args.config, names)
    return values | {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def design_from_args(args: argparse.Namespace) -> Design:
    """A :class:`Design` from parsed arguments: preset, then configuration file, then options.

    Raises
    ------
    OptionError
        If a value, a preset or a file is not valid; one line.
    """
    return design_from_values(values_from_args(args))


def add_system_options(parser: argparse.ArgumentParser, kind: type[describe.Description], title: str) -> None:
    """Add the options of a system around a core, a description with a design nested in it, and those of its core."""
    add_design_options(parser)
    describe.add_arguments(parser.add_argument_group(title), kind, without=OPTIONS)


def system_from_args(args: argparse.Namespace, kind: type[D], **defaults: Any) -> D:
    """A system from parsed arguments, which takes its own options from where those of its core come from.

    ``defaults`` take the place of those of the description.

    Raises
    ------
    OptionError
        If a value, a preset or a file is not valid; one line.
    """
    presets = PRESETS | SYSTEMS if kind is Accelerator else PRESETS
    return design_from_values(defaults | values_from_args(args, tuple(describe.declared(kind)), presets), kind)


_HEAD = """\
# Design options

Every command describes a design by these options; `python -m golden` takes those that change numbers and refuses the
others. Values come from `--preset`, then from the keys of the TOML file of `--config` (names as here with `_` for `-`,
pairs as lists), then from the command line. This page is printed by `python -m hbfp.options` from the declarations in
`hbfp/format.py` and `hbfp/design.py`.
"""


def page() -> str:
    """The page docs/options.md: every option and every preset."""
    lines = [_HEAD, "| option | what it is, and what is valid | default |", "|---|---|---|"]
    lines += [f"| `{name}` | {text} | {default} |" for name, text, default in describe.table(Design)]
    lines += ["", "An accelerator (`--top accelerator`; [its page](design/11-accelerator.md)) takes these, too:", "",
              "| option | what it is, and what is valid | default |", "|---|---|---|"]
    lines += [f"| `{name}` | {text} | {default} |" for name, text, default in describe.table(Accelerator)
              if name not in map(flag, OPTIONS)]
    lines += ["", "| preset | its options |", "|---|---|"]
    kinds = describe.declared(Accelerator)
    for name, values in (PRESETS | SYSTEMS).items():
        words = (word for option, value in values.items() for word in kinds[option][0].words(option, value))
        lines.append(f"| `{name}` | {f'`{text}`' if (text := ' '.join(words)) else 'all defaults'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
