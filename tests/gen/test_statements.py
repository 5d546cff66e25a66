"""Statements of processes: read as Yosys writes them, written shorter with the same meaning."""

import pytest

from gen.statements import COLUMNS, Reader

CASES = """\
    casez (at)
      2'h0:
          x = a;
      2'h1, 2'h2:
        begin
          x = b;
          y = b;
        end
      2'h3:
          /* empty */;
    endcase
""".splitlines()


def shown(lines):
    return [line for each in Reader(lines, lambda target: 8).block() for line in each.lines("")]


@pytest.mark.parametrize("lines, written", [
    (["x = a + b;"], ["x = a + b;"]), (["x <= a;"], ["x <= a;"]), (["memory[a][3:0] <= b;"], ["memory[a][3:0] <= b;"]),
    (["{ x[3:2], x[1:0] } = { a[7:6], b };"], ["x[3:2] = a[7:6];", "x[1:0] = b;"]),
    (["if (c) begin", "x = a;", "end"], ["if (c) x = a;"]), (["if (c)", "x[1] <= a;"], ["if (c) x[1] <= a;"]),
    (["if (c) begin", "x = a;", "y = b;", "end"], ["if (c) begin", "  x = a;", "  y = b;", "end"]),
    (["if (c) begin", "x = a;", "end else if (d) begin", "x = b;", "end else begin", "x = e;", "end"],
     ["if (c) x = a;", "else if (d) x = b;", "else x = e;"]),
    (["if (c) begin", "if (d) begin", "x = a;", "end", "end else begin", "x = b;", "end"],
     ["if (c) begin", "  if (d) x = a;", "end else begin", "  x = b;", "end"]),
    (["if (c) begin", "end else if (d) begin", "ends = a;", "begins = b;", "end"],
     ["if (c) begin", "end else if (d) begin", "  ends = a;", "  begins = b;", "end"]),
    (["(* full_case = 32'd1 *)", "if (c) begin", "end else begin", "x = a;", "end"],
     ["if (c) begin end", "else x = a;"]),
    (CASES, ["casez (at)", "  2'h0: x = a;", "  2'h1, 2'h2: begin", "    x = b;", "    y = b;", "  end", "  2'h3: ;",
             "  default: ;", "endcase"]),
    (["(* full_case = 32'd1 *)", "casez (c)", "1'h0:", "x = a;", "default:", "x = b;", "endcase"],
     ["(* full_case = 32'd1 *)", "casez (c)", "  1'h0: x = a;", "  default: x = b;", "endcase"]),
    (["(* full_case = 32'd1 *)", "casez (c)", "1'h0:", "x = a;", "1'h1:", "x = b;", "endcase"],
     ["(* full_case = 32'd1 *)", "casez (c)", "  1'h0: x = a;", "  1'h1: x = b;", "endcase"]),
])
def test_statements(lines, written):
    assert shown(lines) == written


def test_a_long_line_is_broken():
    long = "a" * COLUMNS
    assert shown(["if (c) begin", f"x = {long};", "end"]) == ["if (c) begin", f"  x = {long};", "end"]


@pytest.mark.parametrize("line", ["{ x, y } = { y, x };", "{ x, y } = a;"])
def test_parts_that_meet_or_do_not_match_are_refused(line):
    with pytest.raises(ValueError, match="^No statement: "):
        shown([line])


def test_what_is_none_is_refused():
    with pytest.raises(ValueError, match=r"^No statement: 'forever x;'$"):
        shown(["forever x;"])
    with pytest.raises(ValueError, match=r"^No branch: 'end otherwise'$"):
        shown(["if (c) begin", "x = a;", "end otherwise", "x = b;", "end"])
