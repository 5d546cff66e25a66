"""A second decoder: which words are instructions, by docs/design/11-accelerator.md, in plain Python.

It shares nothing with ``hbfp/isa``: bits stand here as numbers, rules as sentences of the page. Words that programs
hold must mean tomorrow what they mean today, so the numbers are not to be taken from there.
"""

#: Bits of every instruction's own fields, from bit 85 up; those with a minus are two's complement.
LOOPS = "count0 16 dram0 -32 buffer0 -22 count1 16 dram1 -32 buffer1 -22 count2 16 dram2 -32 buffer2 -22"
TRANSFER = f"offset 32 {LOOPS} base 22 run 7 argument 4 request 6"
SLOTS = " ".join(f"{slot}_base 16 {slot}_inner 8 {slot}_step -16 {slot}_stride0 -16 {slot}_stride1 -16"
                 for slot in ("i0", "i1", "i2", "o0", "o1"))
FIELDS = {
    1: ("LOAD", f"memory 2 elements 1 {TRANSFER}"),
    2: ("STORE", f"elements 1 {TRANSFER}"),
    3: ("CONVERT", ("columns 1 to_w 1 base 16 words 16 rows 16 stride -16 target 16 target_word -16 target_row -16 "
                   "stochastic 1 key 32 place 30 place_row 16 wide 1 part 1 prune 1 sparse 1")),
    4: ("WEIGHTS", "base 16 tiles 16 repeats 16"),
    5: ("MULTIPLY", ("first 1 last 1 scale 1 bias 1 relu 1 tiles 16 columns 12 base 16 rows0 12 rows1 12 row0 -16 "
                    "row1 -16 passes0 12 passes1 8 passes2 8 pass0 -16 pass1 -16 pass2 -16 bounded 1 x -13 y -13 "
                    "x_row 8 y_row 8 x_pass 8 y_pass 8 width 12 height 12 wide_x 1 wide_w 1 low -16 sparse 1")),
    6: ("DRAIN", ("scale 1 bias 1 columns 12 rows0 12 rows1 12 base 16 row0 -16 row1 -16 column -16 scale_base 16 "
                 "bias_base 16 wide 1 diagonal 1")),
    7: ("VECTOR", f"program 12 before 6 body 8 count0 16 count1 16 taps 1 {SLOTS}"),
    8: ("NOP", "unit 3"), 9: ("YIELD", ""), 15: ("HALT", ""),
}


class _Bits:
    """The bits of a word from the lowest up."""

    def __init__(self, word):
        self.left = word

    def take(self, width):
        """The next bits, a two's complement number if ``width`` is negative."""
        value = self.left & (1 << abs(width)) - 1
        self.left >>= abs(width)
        return value - (1 << -width) if width < 0 and value >> -width - 1 else value


def plain(word, system):
    """Opcode, values of its fields and waits of a word; None if an accelerator does not take it."""
    bits = _Bits(word)
    name, text = FIELDS.get(bits.take(4), (None, ""))
    waits = [(bits.take(3), bits.take(24)) for _ in range(3)]
    if name is None or any(not unit and count for unit, count in waits):
        return None
    words = text.split()
    found = {field: bits.take(int(width)) for field, width in zip(words[::2], words[1::2], strict=True)}
    if bits.left or not _fits(name, found, system):
        return None
    return name, found, [wait for wait in waits if wait[0]]


def _fits(name, f, system):
    """Whether the fields of an instruction are what the page says."""
    core, lanes = system.core, system.lanes
    rows = core.rows
    kept, group = core.sparse
    more_columns, more_rows = max(1, lanes // rows), max(1, rows // lanes)

    def zero(*names):
        return not any(f[each] for each in names)

    def some(*names):
        return all(f[each] for each in names)

    def steps(step, *names):
        return all(f[each] % step == 0 for each in names)
    if name in ("LOAD", "STORE"):
        right = some("count0", "count1", "count2") and f["argument"] <= 8 and f["request"] <= (
            system.dispatch_batch if system.dispatched else 0)
        right &= 1 <= f["run"] <= lanes if f["elements"] else zero("run", "dram0", "buffer0")
        if name == "LOAD":
            right &= f["memory"] == 0 if f["elements"] else f["memory"] in (0, 1, 2)
            if f["memory"] == 1 and not f["elements"]:
                right &= steps(core.height, "base", "buffer1", "buffer2")
        return right
    if name == "CONVERT":
        right = some("words", "rows")
        if f["to_w"]:
            right &= steps(rows, "target", "target_word", "target_row")
            right &= zero("target_row") if f["columns"] else zero("target_word")
        else:
            right &= steps(more_columns, "target", "target_word", "target_row")
            if f["columns"] and rows != lanes:
                right &= steps(lanes * more_columns, "target_word")
        right &= bool(f["stochastic"] <= system.stochastic and (f["stochastic"] or zero("key", "place", "place_row")))
        right &= f["wide"] <= bool(core.wide) and f["part"] <= f["wide"]
        right &= f["prune"] <= (group > 1) and f["sparse"] <= f["prune"]
        if f["sparse"]:
            right &= bool(f["to_w"] and not f["columns"] and steps(max(1, rows * group // kept // lanes), "words"))
        return right
    if name == "WEIGHTS":
        return some("tiles", "repeats") and steps(rows, "base")
    if name == "MULTIPLY":
        right = some("tiles", "columns", "rows0", "rows1", "passes0", "passes1", "passes2")
        right &= f["columns"] == 1 or bool(f["first"] and f["last"])
        right &= bool(f["bounded"]) or zero("x", "y", "x_row", "y_row", "x_pass", "y_pass", "width", "height")
        right &= f["wide_x"] <= bool(core.wide) and f["wide_w"] <= bool(core.wide) and f["sparse"] <= (group > 1)
        right &= bool(f["wide_x"]) or zero("low")
        step = more_rows * (group // kept if f["sparse"] else 1)
        return right and steps(step, "base", "row0", "row1", "pass0", "pass1", "pass2", "low")
    if name == "DRAIN":
        return some("columns", "rows0", "rows1") and bool(f["scale"] or zero("scale_base")) and bool(
            f["bias"] or zero("bias_base")) and f["wide"] <= bool(core.wide) and not (f["wide"] and f["diagonal"])
    if name == "VECTOR":
        second = ("i1_base", "i1_stride1", *(each for each in f if each.startswith("i2_")))
        return some("count0", "count1") and bool(f["before"] or f["body"]) and (not f["taps"] or zero(*second))
    return name != "NOP" or some("unit")
