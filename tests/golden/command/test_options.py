"""Commands of the golden model take options that change numbers and refuse the others, in one line."""

import pytest

from golden.__main__ import main, make_parser
from golden.command import options
from hbfp import command
from hbfp.options import OPTIONS

FORMAT = "--mantissa, --exponent, --block, --rounding, --noise-bits, --subnormals"
TRAINING = f"{FORMAT}, --accumulate, --arithmetic"
SWEEP = f"{FORMAT.removeprefix('--mantissa, ')}, --accumulate"
HAVE = "options of a design that have one"
REFUSED = [
    (["train", "--rows", "4"], f"--rows 4: has no effect on training; {HAVE}: {TRAINING}"),
    (["train", "--ragged"], f"--ragged True: has no effect on training; {HAVE}: {TRAINING}"),
    (["train", "--arithmetic", "bf16"], "--arithmetic bf16: must be hbfp or fp32 for training"),
    (["train", "--arithmetic", "fp32", "--mantissa", "4"],
     f"--mantissa 4: has no effect on training in FP32; {HAVE}: --arithmetic"),
    (["train", "--arithmetic", "fp32", "--wide"],
     "--wide: must not be given for training in FP32, whose weights are as wide as they are"),
    (["sweep", "--mantissa", "4"],
     f"--mantissa 4: has no effect on a sweep, whose --widths are its formats; {HAVE}: {SWEEP}"),
    (["sweep", "--arithmetic", "fp32"],
     f"--arithmetic fp32: has no effect on a sweep, whose --widths are its formats; {HAVE}: {SWEEP}"),
    (["error", "--block", "1,32"], f"--block 1,32: has no effect without --prune; {HAVE}: --mantissa"),
    (["error", "--prune", "2:4", "--multiplier", "plain"],
     f"--multiplier plain: has no effect on pruning; {HAVE}: {FORMAT}"),
    (["error", "--prune", "2:4", "--rounding", "stochastic"],
     "--rounding stochastic: must be rne or truncate with --prune"),
]


@pytest.mark.parametrize("words, line", REFUSED, ids=lambda value: None)
def test_option_without_effect_is_refused(capsys, words, line):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert (stop.value.code, *capsys.readouterr()) == (2, "", f"python -m golden: error: {line}\n")


@pytest.mark.parametrize("words", [
    ["train", "--mantissa", "4", "--exponent", "8", "--block", "1,8", "--rounding", "stochastic", "--noise-bits", "8",
     "--subnormals", "gradual", "--accumulate", "aligned", "--wide"],
    ["train", "--arithmetic", "fp32"], ["train", "--preset", "tiny"],
    ["sweep", "--block", "1,8", "--rounding", "truncate", "--accumulate", "aligned", "--preset", "hbfp4"],
    ["error", "--mantissa", "5"], ["error", "--prune", "2:4", "--mantissa", "5", "--block", "1,64"]])
def test_option_with_effect_is_taken(monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "perform", lambda job: 0)
    if words[0] != "error":
        pytest.importorskip("torch")
    assert main(words) == 0


def test_blocks_of_16_unless_told_otherwise():
    def block(*words):
        return options.design(make_parser().parse_args(["train", *words]), OPTIONS, "").format.block
    assert block() == (1, 16) and block("--block", "1,8") == (1, 8) and block("--preset", "hbfp8-tile24") == (24, 24)


def test_help_shows_what_is_taken(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = capsys.readouterr().out.partition("examples:")[0]
    assert all((f"--{name.replace('_', '-')} " in shown) == (name in options.TRAINING) for name in OPTIONS
               if name not in options.LEFT_OUT)
    assert "master weights" in shown
