"""Random words on the Verilated accelerator: what they do is told, a wrong cause or bit is seen, bad options refused.

Covers: cosim/accelerator/words.py.
"""

import json
from functools import partial

import numpy as np
import pytest

from cosim.__main__ import main
from cosim.accelerator import words
from golden.machine.machine import Machine
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.isa.registers import Cause

from ..accelerator.built import ACCELERATOR, LEVEL

SMALL = ["words", *ACCELERATOR.words(), "--quiet"]
#: Numbers of words of all kinds.
FIRST, COUNT = 120, 24


@pytest.mark.cosim
def test_words(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(words, "run", partial(words.run, level=LEVEL))
    path = tmp_path / "a.json"
    assert main([*SMALL, "--count", str(COUNT), "--seed", str(FIRST), "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert found["words"] == COUNT == sum(found["kinds"].values()) and not found["failures"]
    assert found["kinds"].keys() >= {"illegal", "fault", "executed"}
    assert capsys.readouterr().out.startswith(f"{COUNT} of {COUNT} words do what is defined (")

    def other(program, at, word):
        """Another cause, and another number in DRAM."""
        kind, program, result = expected(program, at, word)
        if kind == "executed":
            result.data[np.flatnonzero(result.defined[:, 0])[-1]] ^= 1
        return kind, program, Cause.BUS if kind in ("illegal", "fault") else result

    expected = words.expected
    monkeypatch.setattr(words, "expected", other)
    assert main([*SMALL, "--count", str(COUNT), "--seed", str(FIRST)]) == 1
    wrong = sum(found["kinds"].get(kind, 0) for kind in ("illegal", "fault", "executed"))
    said = capsys.readouterr().out
    assert said.splitlines()[-1].startswith(f"{COUNT - wrong} of {COUNT} words do what is defined (")
    assert "illegal: cause ILLEGAL at instruction" in said and "executed: 1 words of DRAM differ" in said


def test_the_program_around_is_legal_with_and_without_a_word():
    program, at = words.around(ACCELERATOR)
    Machine(program, races=True).run()
    word = Instruction(Opcode.LOAD, {"count0": 1, "count1": 1, "count2": 1, "base": 3, "offset": ACCELERATOR.beat})
    kind, changed, dram = words.expected(program, at, word.encode())
    assert kind == "executed" and changed.instructions[at].encode() == word.encode()
    Machine(changed, races=True).run()
    plain = Machine(program)
    plain.run()
    assert (dram.data != plain.dram.data).any()    # what the word loads comes to DRAM with all of V


def test_words_are_of_all_kinds():
    program, at = words.around(ACCELERATOR)
    kinds = [words.expected(program, at, words.random_word(ACCELERATOR, number))[0] for number in range(80)]
    assert set(kinds) == {"illegal", "fault", "part", "executed", "undefined"}
    assert words.random_word(ACCELERATOR, 7) == words.random_word(ACCELERATOR, 7) < 1 << 512


@pytest.mark.parametrize("words, message", [
    (["--count", "0"], "--count 0: must be 1 to 100000"), (["--seed", "-1"], "--seed -1: must be 0 to 2147483647"),
    (["--rows", "12", "--cols", "12"], "--rows 12: must be one of 4, 8, 16, 32, 64, 128, 256 in an accelerator"),
    (["--json", "/no/such/folder/file"],
     "--json /no/such/folder/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["words", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim words: error: {message}\n"
