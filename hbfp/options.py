"""The design options that every command line takes, and the way from them to a :class:`Design`."""

import tomllib
from dataclasses import fields

from .command import Parser as Parser
from .design import (
    ACCUMULATES,
    ARITHMETICS,
    DEPTH_RANGE,
    MULTIPLIERS,
    PIPELINES,
    SHARE_RANGE,
    SIDE_RANGE,
    ConflictError,
    Design,
)
from .format import BLOCK_LIMIT, EXPONENT_RANGE, MANTISSA_RANGE, ROUNDINGS, SUBNORMALS, HBFPFormat
from .presets import PRESETS
from .values import ContradictionError, OptionError, choice, flag, pair, read_file, refuse, shown, whole

#: Option name -> (type, what is valid); the names are those of a configuration file, too.
_INTEGERS = {
    "mantissa": (MANTISSA_RANGE, "mantissa bits, sign included"),
    "exponent": (EXPONENT_RANGE, "bits of the shared exponent"),
    "rows": (SIDE_RANGE, "elements along K"),
    "cols": (SIDE_RANGE, "elements along N (default: as many as rows)"),
    "depth": (DEPTH_RANGE, "rows of X that one command may stream"),
    "pipeline": ((0, max(PIPELINES.values())), "registers inside each FP32 multiply-add, or adder of block sums"),
    "share": (SHARE_RANGE, "columns that share a converter and an accumulator, where blocks are longer than the rows"),
    "guard": ((0, 16), "aligned: fraction bits below a block sum"),
    "growth": ((0, 16), "aligned: 2^growth blocks along K fit"),
    "noise_bits": ((1, 24), "stochastic: random bits of a rounding"),
}
_CHOICES = {
    "multiplier": (MULTIPLIERS, "of integers, equal bits: quick to simulate, or least area"),
    "accumulate": (ACCUMULATES, "how block sums add up along K"),
    "arithmetic": (ARITHMETICS, "hbfp, or a baseline with the same dataflow"),
    "rounding": (ROUNDINGS, "of FP32 -> HBFP"),
    "subnormals": (SUBNORMALS, "of FP32 -> HBFP"),
}
_PAIRS = {
    "block": ((1, BLOCK_LIMIT), "1,B along K, or t,t (default: 1,32 where that fits the rows, else 1,rows)"),
    "group": ((1, 256), f"rows,columns of one combinational dot product (default: what fits, at most {Design.GROUP})"),
}
_FLAGS = {"ragged": "accept a block that leaves rows idle"}
OPTIONS = (*_INTEGERS, *_CHOICES, *_PAIRS, *_FLAGS)
_FORMAT_FIELDS = {f.name for f in fields(HBFPFormat)}


def _checked(name, value):
    """The value of one option, from a command line or a file, or OptionError."""
    if name in _INTEGERS:
        return whole(name, value, *_INTEGERS[name][0])
    if name in _PAIRS:
        sides = pair(name, value, *_PAIRS[name][0])
        if name == "block" and sides[0] not in (1, sides[1]):
            raise OptionError(f"--block {sides[0]},{sides[1]}: must be 1,B or t,t")
        return sides
    if name in _CHOICES:
        return choice(name, value, _CHOICES[name][0])
    if not isinstance(value, bool):
        raise refuse(name, value, "must be true or false")
    return value


def add_design_options(parser):
    """Add the options of a design to an ``argparse`` parser; :func:`design_from_args` reads them."""
    group = parser.add_argument_group("design", "Values from --preset, then --config, then the command line.")
    for name, ((low, high), text) in _INTEGERS.items():
        group.add_argument(flag(name), metavar="N", help=f"{text}, {low} to {high}")
    for name, (choices, text) in _CHOICES.items():
        group.add_argument(f"--{name}", metavar="NAME", help=f"{text}: {', '.join(choices)}")
    for name, (_, text) in _PAIRS.items():
        group.add_argument(f"--{name}", metavar="A,B", help=text)
    for name, text in _FLAGS.items():
        group.add_argument(f"--{name}", action="store_true", default=None, help=text)
    group.add_argument("--preset", metavar="NAME", help=f"a named design: {', '.join(PRESETS)}")
    group.add_argument("--config", metavar="FILE", help="a TOML file with any of these options as keys")


def _read_config(path):
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
        if key not in OPTIONS:
            raise refuse("config", path, f"unknown key '{shown(key)}'; valid are {', '.join(OPTIONS)}")
    return values


def design_from_values(values):
    """A :class:`Design` from option names and values; those not named have their defaults.

    Raises
    ------
    OptionError
        If a value is out of range, or values contradict each other (:class:`ContradictionError`); one line.
    """
    values = {name: _checked(name, value) for name, value in values.items() if value is not None}
    rows = values.get("rows", Design.rows)
    if "block" not in values and 32 % rows and rows % 32 and not values.get("ragged"):
        values["block"] = (1, rows)
    try:
        fmt = HBFPFormat(**{name: value for name, value in values.items() if name in _FORMAT_FIELDS})
        return Design(format=fmt, **{name: value for name, value in values.items() if name not in _FORMAT_FIELDS})
    except ConflictError as error:
        raise ContradictionError(f"--{error.name} {error.value}: {error.rule}") from None
    except ValueError as error:
        raise OptionError(str(error)) from None


def values_from_args(args):
    """Option names and values that parsed arguments give: preset, then configuration file, then options.

    Raises
    ------
    OptionError
        If a preset or a file is not valid; one line.
    """
    values = {}
    if args.preset is not None:
        values |= PRESETS[choice("preset", args.preset, PRESETS)]
    if args.config is not None:
        values |= _read_config(args.config)
    return values | {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}


def design_from_args(args):
    """A :class:`Design` from parsed arguments: preset, then configuration file, then options.

    Raises
    ------
    OptionError
        If a value, a preset or a file is not valid; one line.
    """
    return design_from_values(values_from_args(args))
