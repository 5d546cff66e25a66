"""Values that a command line or a file of options may hold: some good, most not."""

MANY = "9" * 5000
NASTY = [
    "", " ", " 8 ", "8 ", "1_6", "１６", "٣", "²", "-1", "-0", "+8", "0x10", "1e3", "8.0", "nan", "inf", "-inf",
    "1e999", MANY, f"-{MANY}", f"1,{MANY}", f"{MANY}:{MANY}", "0" * 5000 + "8", "a\nb", "a\r\nb", "\x1b[31mred",
    "a\u2028b", "\udcff", "a\tb", "%s %d", "{}", "{0}", "[bold]x[/bold]", "[/]", ",", ",,", "1,", "1,32",
    "1x32x", "4:", ":4", "+", "8+", "4+６", "x" * 5000, "é" * 200, "/", ".", "..", "-", "--", "---", "'", '"',
    "None", "true", "0", "1", "256", "/dev/full", "/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem",
    "/nowhere/below/x", "fifo", "folder", "file", "file/below", "folder/" + "x" * 300, "loop", "x/" * 3000,
    "new/folder", "wrong.lib",
]
GOOD = [
    "1", "2", "4", "8", "16", "32", "1,1", "1,4", "4,4", "2x2", "8x4", "fp32", "aligned", "int", "hbfp", "fma",
    "bf16", "recoded", "plain", "stochastic", "truncate", "gradual", "tiny", "hbfp6", "core", "encode", "align",
    "array", "dot_product", "vector", "fp32.fma", "fp32.exp", "block_sum", "generic", "area", "fp32,int", "4,6",
    "1x1,3x5", "teacher", "uniform", "2:4", "0.1", "4+6", "table", "study", "yes", "ecp5", "ice40", "element",
    "folder", "out/new", "good.toml", "good.lib", "workload", "1000",
]
#: Name of a file -> its text.
TOML = {
    "digits": f"rows = {MANY}\n",
    "hex": f"rows = 0x{MANY}\n",
    "hexpair": f"block = [1, 0x{MANY}]\n",
    "deep": "rows = " + "[" * 5000 + "]" * 5000 + "\n",
    "nested": "rows = " + "[" * 300 + "]" * 300 + "\n",
    "line": 'rounding = "a\\nb"\n',
    "key": '"a\\nb" = 1\n',
    "long key": f"{'k' * 5000} = 1\n",
    "long": f'subnormals = "{"x" * 5000}"\n',
    "long file": "# comment\n" * 200_000,
    "table": "[rows]\nx = 1\n",
    "tables": "[[block]]\nx = 1\n",
    "dots": "a.b.c.d = 1\n",
    "pair": "block = [[1, 2], [3, 4]]\n",
    "date": "cols = 1979-05-27T07:32:00Z\n",
    "not a number": "depth = nan\n",
    "infinity": "guard = -inf\n",
    "bool": "mantissa = true\n",
    "text": 'mantissa = "1_6"\n',
    "flag": 'ragged = "yes"\n',
    "nul": 'arithmetic = "\\u0000"\n',
    "syntax": "rows = \n",
    "twice": "rows = 4\nrows = 5\n",
    "mark": "\ufeffrows = 4\n",
    "empty": "",
    "good.toml": "rows = 4\nblock = [1, 4]\n",
}
LIBERTY = "library (mine) {\n cell (NAND2) { area : 2; }\n}\n"
