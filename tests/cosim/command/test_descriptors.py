"""What is said of options that make requests descriptors of a ring."""

from argparse import Namespace

import pytest

from cosim.__main__ import main
from cosim.command.descriptors import corrupt_from_args, ring_of
from hbfp.system import Accelerator


@pytest.mark.parametrize(("words", "line"), [
    (["--corrupt", "0.1"], "--corrupt must not be given without --ring"),
    (["--ring", "--corrupt", "0.95"], "--corrupt 0.95: must be 0 to 0.9"),
    (["--ring", "--corrupt", "some"], "--corrupt some: must be 0 to 0.9"),
    (["--ring", "--dispatch", "0"], "--dispatch-ring True: must not be given without a dispatcher")])
def test_what_is_said_of_a_ring(capsys, words, line):
    with pytest.raises(SystemExit) as ended:
        main(["colocate", "serve.py", "none", "--quiet", *words])
    assert ended.value.code == 2 and line in capsys.readouterr().err


def test_without_a_ring_there_is_none():
    none = corrupt_from_args(Namespace(ring=False, corrupt=None))
    assert none is None and ring_of(Accelerator(), 10, none, (32, 64), 0) is None
    assert corrupt_from_args(Namespace(ring=True, corrupt=None)) == 0.0
