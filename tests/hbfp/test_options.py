"""The way from options to a design: what wins, and every message word for word."""

import re
from pathlib import Path

import pytest

from hbfp.command import Parser
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import (
    OPTIONS,
    add_design_options,
    add_system_options,
    design_from_args,
    page,
    system_from_args,
)
from hbfp.system import FUNCTIONS, Accelerator
from hbfp.values import OptionError


def parse(*arguments):
    parser = Parser(prog="prog")
    add_design_options(parser)
    return design_from_args(parser.parse_args(arguments))


def test_no_option_is_the_default():
    assert parse() == Design()


@pytest.mark.parametrize("arguments, expected", [
    (["--mantissa", "4"], Design(format=HBFPFormat(mantissa=4))),
    (["--exponent", "6", "--rounding", "stochastic", "--noise-bits", "3", "--subnormals", "gradual"],
     Design(format=HBFPFormat(exponent=6, rounding="stochastic", noise_bits=3, subnormals="gradual"))),
    (["--rows", "16", "--cols", "8", "--block", "16,16"], Design(format=HBFPFormat(block=(16, 16)), rows=16, cols=8)),
    (["--rows", "16", "--block", "8x8"], Design(format=HBFPFormat(block=(8, 8)), rows=16)),
    (["--accumulate", "aligned", "--guard", "2", "--growth", "3"], Design(accumulate="aligned", guard=2, growth=3)),
    (["--arithmetic", "int", "--depth", "7", "--group", "2,2"], Design(arithmetic="int", depth=7, group=(2, 2))),
    (["--block", "1,128", "--share", "4"], Design(format=HBFPFormat(block=(1, 128)), share=4)),
    (["--multiplier", "recoded"], Design(multiplier="recoded")),
    (["--rows", "5", "--block", "1,3", "--ragged"], Design(format=HBFPFormat(block=(1, 3)), rows=5, ragged=True)),
    (["--preset", "tiny"], Design(format=HBFPFormat(block=(1, 4)), rows=4, depth=32)),
    (["--preset", "tiny", "--cols", "2", "--depth", "9"],
     Design(format=HBFPFormat(block=(1, 4)), rows=4, cols=2, depth=9)),
])
def test_options_make_the_design(arguments, expected):
    assert parse(*arguments) == expected


@pytest.mark.parametrize("rows, block", [(1, 32), (8, 32), (32, 32), (64, 32), (3, 3), (24, 24), (31, 31), (33, 33)])
def test_default_block_fits_the_rows(rows, block):
    assert parse("--rows", str(rows)).format.block == (1, block)
    assert parse("--rows", str(rows), "--ragged").format.block == (1, 32)


def test_order_of_sources(tmp_path):
    """Preset, then file, then command line; each replaces only what it names."""
    file = tmp_path / "design.toml"
    file.write_text('depth = 100\nrounding = "truncate"\nblock = [1, 2]\n')
    design = parse("--preset", "tiny", "--config", str(file), "--depth", "50")
    assert design == Design(format=HBFPFormat(block=(1, 2), rounding="truncate"), rows=4, depth=50)


OUT_OF_RANGE = {"mantissa": (1, 17, "2 to 16"), "exponent": (4, 17, "5 to 16"), "rows": (0, 257, "1 to 256"),
                "cols": (0, 257, "1 to 256"), "depth": (0, 65537, "1 to 65536"), "guard": (-1, 17, "0 to 16"),
                "growth": (-1, 17, "0 to 16"), "noise-bits": (0, 25, "1 to 24"), "pipeline": (-1, 9, "0 to 8"),
                "share": (0, 65, "1 to 64")}
WRONG = [([f"--{name}", str(value)], f"--{name} {value}: must be {valid}")
         for name, (low, high, valid) in OUT_OF_RANGE.items() for value in (low, high, "x", "", "8.0")]
WRONG += [([f"--{name}", value], f"--{name} {value}: must be one of {valid}") for name, valid in (
    ("accumulate", "fp32, aligned, fp24, bf16"), ("multiplier", "plain, recoded"),
    ("arithmetic", "hbfp, fp32, fma, bf16, fp16, int8, int"), ("rounding", "rne, stochastic, truncate"),
    ("subnormals", "flush, gradual")) for value in ("none", "", "RNE")]
WRONG += [([f"--{name}", value], f"--{name} {value}: must be two numbers such as 1,32, each {valid}")
          for name, valid in (("block", "1 to 1024"), ("group", "1 to 256"))
          for value in ("8", "1,2,3", "a,b", "0,8", "1,1025", "", ",")]
WRONG += [
    (["--block", "2,4"], "--block 2,4: must be 1,B or t,t"),
    (["--block", "1,24"], "--block 1,24: must divide or be divided by the 32 rows along K, or be ragged"),
    (["--block", "24x24"], "--block 24,24: must divide or be divided by the 32 rows along K, or be ragged"),
    (["--group", "3,4"], "--group 3,4: must divide 32 rows of a segment and 32 columns"),
    (["--arithmetic", "int", "--accumulate", "aligned"],
     "--accumulate aligned: must be fp32 where arithmetic is int"),
    (["--block", "1,4", "--accumulate", "aligned", "--growth", "2"],
     "--growth 2: must be 3 or more for 8 segments of a column"),
    (["--mantissa", "16", "--block", "1,1024", "--accumulate", "aligned", "--guard", "16", "--growth", "16"],
     "--growth 16: must keep the accumulator at 60 bits or fewer, not 73"),
    (["--share", "2"],
     "--share 2: must be a power of two that divides 32 columns and is at most 1, the passes of a block"),
    (["--arithmetic", "int", "--block", "1,128", "--share", "4"],
     "--share 4: must be 1 where arithmetic is int"),
    (["--block", "1,128", "--share", "3"],
     "--share 3: must be a power of two that divides 32 columns and is at most 4, the passes of a block"),
    (["--block", "1,128", "--share", "8"],
     "--share 8: must be a power of two that divides 32 columns and is at most 4, the passes of a block"),
    (["--block", "1,128", "--cols", "6", "--share", "4"],
     "--share 4: must be a power of two that divides 6 columns and is at most 4, the passes of a block"),
    (["--preset", "huge"],
     "--preset huge: must be one of default, tiny, hbfp4, hbfp6, hbfp8, hbfp8-aligned, hbfp8-tile24"),
    (["--preset", ""], "--preset : must be one of default, tiny, hbfp4, hbfp6, hbfp8, hbfp8-aligned, hbfp8-tile24"),
    (["--config", "/nowhere/x.toml"], "--config /nowhere/x.toml: cannot be read (No such file or directory)"),
    (["--config", "/"], "--config /: cannot be read (Is a directory)"),
]


@pytest.mark.parametrize("arguments, message", WRONG, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_wrong_option(arguments, message):
    with pytest.raises(OptionError) as caught:
        parse(*arguments)
    assert str(caught.value) == message


KEYS = ", ".join(OPTIONS)


@pytest.mark.parametrize("text, message", [
    ("rows = 0", "--rows 0: must be 1 to 256"),
    ("rows = 4.0", "--rows 4.0: must be 1 to 256"),
    ("rows = true", "--rows True: must be 1 to 256"),
    ("rows = [4]", "--rows [4]: must be 1 to 256"),
    ("rows = 1979-05-27", "--rows 1979-05-27: must be 1 to 256"),
    ("noise_bits = 99", "--noise-bits 99: must be 1 to 24"),
    ("block = 32", "--block 32: must be two numbers such as 1,32, each 1 to 1024"),
    ("block = [1, 2, 3]", "--block [1, 2, 3]: must be two numbers such as 1,32, each 1 to 1024"),
    ("block = [1, 2.5]", "--block [1, 2.5]: must be two numbers such as 1,32, each 1 to 1024"),
    ("block = {a = 1, b = 2}", "--block {'a': 1, 'b': 2}: must be two numbers such as 1,32, each 1 to 1024"),
    ("ragged = 1", "--ragged 1: must be true or false"),
    ('ragged = "yes"', "--ragged yes: must be true or false"),
    ("rounding = 3", "--rounding 3: must be one of rne, stochastic, truncate"),
    ('rounding = ["rne"]', "--rounding ['rne']: must be one of rne, stochastic, truncate"),
    ("colour = 3", "--config FILE: unknown key 'colour'; valid are " + KEYS),
    ("[rows]\nx = 1", "--rows {'x': 1}: must be 1 to 256"),
    ("[design]\nrows = 4", "--config FILE: unknown key 'design'; valid are " + KEYS),
])
def test_wrong_file(tmp_path, text, message):
    file = tmp_path / "design.toml"
    file.write_text(text)
    with pytest.raises(OptionError) as caught:
        parse("--config", str(file))
    assert str(caught.value) == message.replace("FILE", str(file))


@pytest.mark.parametrize("text", ["rows = ", "rows 4", "rows = 4\nrows = 5"])
def test_wrong_syntax(tmp_path, text):
    """What is wrong is in the words of the TOML reader."""
    file = tmp_path / "design.toml"
    file.write_text(text)
    with pytest.raises(OptionError) as caught:
        parse("--config", str(file))
    assert str(caught.value).startswith(f"--config {file}: is not TOML (") and "\n" not in str(caught.value)


def test_wrong_encoding(tmp_path):
    file = tmp_path / "design.toml"
    file.write_bytes(b"rows = 4 # \xff")
    with pytest.raises(OptionError, match=rf"^--config {re.escape(str(file))}: is not TOML \('utf-8' codec can't "
                                          r"decode byte 0xff in position 11: invalid start byte\)$"):
        parse("--config", str(file))


@pytest.mark.parametrize("arguments, message", [
    (["--row", "4"], "unrecognized arguments: --row 4"),
    (["--rows"], "argument --rows: expected one argument"),
    (["--ragged=1"], "argument --ragged: ignored explicit argument '1'"),
    (["stray"], "unrecognized arguments: stray"),
    (["two\nlines"], "unrecognized arguments: two\\nlines"),
])
def test_wrong_command_line(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        parse(*arguments)
    assert stop.value.code == 2
    assert capsys.readouterr() == ("", f"prog: error: {message}\n")


def test_page_of_options_is_up_to_date():
    """Written by ``python -m hbfp.options > docs/options.md``."""
    assert Path(__file__).parents[2].joinpath("docs/options.md").read_text() == page()
    assert "| `--noise-bits` | random bits of a stochastic rounding, 1 to 24 | 8 |\n" in page()
    assert "| `tiny` | `--rows 4 --cols 4 --block 1,4 --depth 32` |\n" in page()


def test_a_system_has_its_own_options_beside_those_of_its_core():
    parser = Parser(prog="prog")
    add_system_options(parser, Accelerator, "accelerator")
    read = parser.parse_args("--preset hbfp4 --rows 16 --cols 16 --v-words 128".split())
    assert system_from_args(read, Accelerator) == Accelerator(
        core=design_from_args(read), v_words=128) and design_from_args(read).format.mantissa == 4
    with pytest.raises(OptionError, match="^--v-words 96: must be a power of two$"):
        system_from_args(parser.parse_args(["--v-words", "96"]), Accelerator)


def accelerator(*arguments):
    parser = Parser(prog="prog")
    add_system_options(parser, Accelerator, "accelerator")
    return system_from_args(parser.parse_args(arguments), Accelerator)


@pytest.mark.parametrize("arguments, expected", [
    ([], Accelerator()), (["--rows", "8"], Accelerator(core=Design(rows=8))),
    (["--x-words", "1024", "--v-words", "64", "--w-words", "65536", "--p-words", "32"],
     Accelerator(x_words=1024, v_words=64, w_words=65536, p_words=32)),
    (["--row-words", "256", "--vector-rows", "16", "--queue", "2", "--reads", "1", "--burst", "32",
      "--vector-lanes", "4", "--function-lanes", "2"],
     Accelerator(row_words=256, vector_rows=16, vector_lanes=4, function_lanes=2, queue=2, reads=1,
                 burst=32)),
    (["--functions", "tanh,exp"], Accelerator(functions=("exp", "tanh"))),
    (["--functions", "none"], Accelerator(functions=())),
    (["--preset", "hbfp4", "--rows", "16"], Accelerator(core=Design(rows=16, format=HBFPFormat(mantissa=4))))])
def test_options_make_the_accelerator(arguments, expected):
    assert accelerator(*arguments) == expected == accelerator(*expected.words())
    assert Accelerator.from_dict(expected.as_dict()) == expected


def test_files_hold_the_options_of_a_system(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("queue = 8\nrows = 16\n")
    assert accelerator("--config", str(file), "--burst", "2") == Accelerator(core=Design(rows=16), queue=8, burst=2)
    with pytest.raises(OptionError) as caught:
        parse("--config", str(file))
    assert str(caught.value) == f"--config {file}: unknown key 'queue'; valid are {KEYS}"


@pytest.mark.parametrize("arguments, message", [
    (["--queue", "1"], "--queue 1: must be 2 to 64"), (["--queue", "65"], "--queue 65: must be 2 to 64"),
    (["--x-words", "63"], "--x-words 63: must be 64 to 65536"),
    (["--x-words", "96"], "--x-words 96: must be a power of two"),
    (["--rows", "24"], "--rows 24: must be one of 4, 8, 16, 32, 64, 128, 256 in an accelerator"),
    (["--burst", "33"], "--burst 33: must be 1 to 32"), (["--reads", "0"], "--reads 0: must be 1 to 16"),
    (["--row-words", "257"], "--row-words 257: must be 1 to 256"),
    *((["--functions", text], f"--functions {text}: must be none, or of {', '.join(FUNCTIONS)}, each once")
      for text in ("exp,sin", "exp,exp", "")),
    (["--row-words", "x"], "--row-words x: must be 1 to 256"),
    (["--cols", "64"], "--cols 64: must be one of 4, 8, 16, 32 in an accelerator"),
    (["--arithmetic", "fma"], "--arithmetic fma: must be one of hbfp, fp32, bf16, fp16, int8 in an accelerator"),
    (["--mantissa", "17"], "--mantissa 17: must be 2 to 16")])
def test_accelerators_that_are_none(arguments, message):
    with pytest.raises(OptionError) as caught:
        accelerator(*arguments)
    assert str(caught.value) == message
