"""Expressions of Verilog: what is read is written with the same meaning, and measured as Verilog measures it."""

import pytest

from gen.expression import Expression, places, read, replaced, show, signed, together, width

WIDTHS = {"a": 8, "b": 4, "c": 1, "memory": 8, "memory[]": 16, "$7": 3}


@pytest.mark.parametrize("text, written", [
    ("a", "a"), ("\\$7 ", "\\$7 "), ("\\$7 [2:1]", "\\$7 [2:1]"), ("a[3]", "a[3]"), ("a[b +: 2]", "a[b +: 2]"),
    ("memory[b]", "memory[b]"), ("memory[b][7:4]", "memory[b][7:4]"), ("~ a", "~a"), ("~ (| a)", "~(|a)"),
    ("& (~ a)", "&(~a)"), ("^ (~ a)", "^(~a)"), ("a ^ (~ b)", "a ^ ~b"),
    ("a & b & c", "a & b & c"), ("a & (b & c)", "a & (b & c)"), ("a - (b - c)", "a - (b - c)"),
    ("a & b | c", "(a & b) | c"), ("a + b * c", "a + (b * c)"), ("(a + b) << c", "(a + b) << c"),
    ("c ? a : c ? b : a", "c ? a : (c ? b : a)"), ("{ a, b, b, b }", "{a, {3{b}}}"), ("{ c, c }", "{2{c}}"),
    ("{ a, { b, c } }", "{a, b, c}"), ("{4{ c }}", "{4{c}}"), ("{a, {2{b, c}}}", "{a, b, c, b, c}"),
    ("$signed(a) * $signed(b)", "$signed(a) * $signed(b)"), ("a == b", "a == b"), ("| { a, c }", "|{a, c}"),
    ("a < b & c", "(a < b) & c"), ("8'h7f + a", "8'h7f + a"), ("-a + b", "(-a) + b"),
])
def test_what_is_read_is_written(text, written):
    assert show(read(text)) == written
    assert read(written) == read(text)


@pytest.mark.parametrize("text", ["a &", "(a", "a b", "", "{a", "a ? b", "@", "a[1", "& ) a"])
def test_what_is_none_is_refused(text):
    with pytest.raises(ValueError):
        read(text)


@pytest.mark.parametrize("text, bits", [
    ("a", 8), ("a[6:2]", 5), ("a[1]", 1), ("memory[b]", 16), ("memory[b][7:4]", 4), ("a[b +: 3]", 3), ("9'h0", 9),
    ("{a, b, c}", 13), ("a + b", 8), ("b * b", 4), ("a == b", 1), ("|a", 1), ("~a", 8), ("c ? b : a", 8),
    ("b << a", 4), ("a << b", 8), ("$signed(a * b)", 8), ("a && b", 1), ("{3{b}}", 12), ("a & (b == c)", 8),
])
def test_width(text, bits):
    assert width(read(text), WIDTHS) == bits


@pytest.mark.parametrize("text, has", [
    ("a", False), ("$signed(a)", True), ("$signed(a) + $signed(b)", True), ("$signed(a) + b", False),
    ("$signed(a) < $signed(b)", False), ("{$signed(a)}", False), ("$signed(a) >>> b", True), ("b >> $signed(a)", False),
    ("c ? $signed(a) : $signed(b)", True), ("c ? $signed(a) : b", False), ("~$signed(a)", True), ("|$signed(a)", False),
    ("$unsigned(a)", False), ("4'sh3", True), ("$signed(a) + 4'h3", False),
])
def test_sign(text, has):
    assert signed(read(text)) is has


@pytest.mark.parametrize("text, around, found", [
    ("a + b", 9, {"a": 9, "b": 9}), ("a + b", None, {"a": 8, "b": 8}), ("b + c", 4, {"b": 4, "c": 4}),
    ("{a + b, c}", 20, {"a": 8, "b": 8, "c": None}), ("(a + c) == b", 20, {"a": 8, "c": 8, "b": 8}),
    ("|b", 8, {"b": None}), ("b << c", 8, {"b": 8, "c": None}), ("c ? a : b", 9, {"c": None, "a": 9, "b": 9}),
    ("$signed(b)", 9, {"b": None}), ("a[b +: 2]", 9, {"a": 9, "b": None}), ("~(b & c)", 9, {"b": 9, "c": 9}),
    ("a && b", 9, {"a": None, "b": None}),
])
def test_places(text, around, found):
    assert {each.word: bits for each, bits in places(read(text), around, WIDTHS)} == found


def test_replaced():
    def how(of):
        return read("b & c") if of.word == "a" and of.kind == "name" else None
    assert show(replaced(read("a | {a, c}"), how)) == "(b & c) | {b & c, c}"
    whole = read("b | c")
    assert replaced(whole, how) is whole


def test_operators_are_counted():
    assert read("{a & ~b, c}").operators == 2 and read("a").operators == 0


def test_together():
    assert together([read("a"), read("{b, c}")]) == Expression("{}", "{}", (read("a"), read("b"), read("c")))
