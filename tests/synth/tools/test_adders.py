"""A library's full adder is found by what it computes."""

import pytest

from synth.tools import adders
from synth.tools.library import load
from tests.synth.tiny import ADDING, FULL_ADDER, LIBERTY


def found(tmp_path, text):
    (tmp_path / "cells.lib").write_text(text)
    return adders.full_adder(load(tmp_path / "cells.lib"))


def test_found_by_its_functions(tmp_path):
    assert found(tmp_path, ADDING) == adders.FullAdder("PLUS", ("P", "Q", "R"), ("ODD", True), ("MOST", False))


def test_smallest_of_several(tmp_path):
    more = FULL_ADDER.replace("PLUS", "CHEAP").replace("100", "99").replace("(P Q)+(R (P+Q))", "!((P Q)+(Q R)+(P R))")
    got = found(tmp_path, ADDING.replace("cell (PLUS)", more + "cell (PLUS)"))
    assert (got.name, got.carry) == ("CHEAP", ("MOST", True))


@pytest.mark.parametrize("old, new", [
    ("P^Q^R", "P^Q"), ("(P Q)+(R (P+Q))", "P Q R"), ("(P Q)+(R (P+Q))", "STATE"), ("area : 100", "area : 0")])
def test_others_are_none(tmp_path, old, new):
    assert FULL_ADDER in ADDING and old in FULL_ADDER and found(tmp_path, ADDING.replace(old, new)) is None


def test_library_without(tmp_path):
    assert found(tmp_path, LIBERTY) is None


def test_map_has_inverters_where_one_side_has_complements():
    text = adders.techmap(adders.FullAdder("PLUS", ("P", "Q", "R"), ("ODD", True), ("MOST", False)))
    assert text.count("PLUS _TECHMAP_REPLACE_ (.P(a), .Q(b), .R(~c), .ODD(sum), .MOST(out));\n"
                      "  assign total = ~sum;\n  assign carry = ~out;") == 1
    assert text.count("PLUS _TECHMAP_REPLACE_ (.P(~a), .Q(~b), .R(c), .ODD(sum), .MOST(out));\n"
                      "  assign total = sum;\n  assign carry = out;") == 1
