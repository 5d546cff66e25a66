"""Changes of Python that change nothing, with the reason why: they count as equal.

A change is named by its module, the first line that it changes, and what stands there then.
"""

#: Module -> (line, line behind the change) -> why nothing depends on it.
REASONS: dict[str, dict[tuple[str, str], str]] = {
    "golden/lower/operations/tables.py": {
        ("parts = running(programs.activation(), (Result(over=(0,)),), 0)",
         "parts = running(programs.activation(), (Result(over=(1,)),), 0)"):
            "it is asked only whether there is a dimension over which rows are added"},
    "golden/lower/operations/vector.py": {
        ("return [row.reshape(-1).view(np.float32) for row in form.fixed(*map(patterns, form.numbers))]",
         "return [row.reshape(-2).view(np.float32) for row in form.fixed(*map(patterns, form.numbers))]"):
            "NumPy takes any size below 0 for what is left"},
    "golden/lower/products/bands.py": {
        ("if wanted > most:", "if (wanted >= most):"): "of equal ones either is the smaller"},
    "golden/lower/reordered.py": {
        ('words = prod(f.get(f"count{n}", 1) for n in range(3))',
         'words = prod(f.get(f"count{n}", 2) for n in range(3))'):
            "every load and store has all three counts"},
    "golden/lower/same.py": {
        ('return train and argument(node, "p", 1) != 0', 'return train and argument(node, "p", 2) != 0'):
            "it is compared with 0 alone"},
    "golden/lower/vectors.py": {
        ("order = sorted(range(len(dims)), key=lambda d: (-dims[d][1], d) if dims[d][0] > 1 else (-1 << 60, d))",
         "order = sorted(range(len(dims)), key=lambda d: (-dims[d][1], d) if dims[d][0] > 1 else (-1 << 61, d))"):
            "both are below all strides"},
    "golden/lower/products/paired.py": {
        ("if sum(2 * each.words for each in planes.values()) >= 2 * plan(build, weights).tiles:",
         "if sum((2 + each.words) for each in planes.values()) >= 2 * plan(build, weights).tiles:"):
            "planes have two words, but for one at most, of the last tap alone, which counts 3 for 2: a sum of even "
            "numbers that is 1 more reaches an even number no sooner",
        ('own = Span("W", where.start + column * core.height, where.start + (column + 1) * core.height)',
         'own = Span("W", where.start + column * core.height, where.start + ((column - 1)) * core.height)'):
            "the core is asked for columns from the start of a span on, however many it has"},
    "golden/lower/products/wide.py": {
        ("""return f"--{'wide' if narrow < mantissa < 2 * narrow else 'mantissa'} {mantissa} would do\"""",
         """return f"--{'wide' if (narrow <= mantissa < 2 * narrow) else 'mantissa'} {mantissa} would do\""""):
            "the narrow width is one that every accelerator has"},
    "golden/lower/operations/convolutions.py": {
        ("weights = Weights(top.where.numel() // top.shape[1], taps * channels, wide=wide)",
         "weights = Weights(top.where.numel() // top.shape[1], (taps + channels), wide=wide)"):
            "asked for is whether W holds more than one column tile at a time: of channels that are whole words, with "
            "more than one word or tap, both have two column tiles, and then their number does not matter"},
    "golden/lower/operations/moved.py": {
        ("own = np.where((numbers >= 0) & (owners[numbers] == owner), places[numbers], -1)",
         "own = np.where((numbers >= 0) & (owners[numbers] == owner), places[numbers], -2)"):
            "any number below 0 is no place"},
    "golden/lower/products/matrix.py": {
        ("sizes = [size for size, _ in loops[0]]", "sizes = [size for size, _ in loops[1]]"):
            "loops of all operands have the same sizes"},
    "golden/lower/products/untouched.py": {
        ("many = prod(size for size, _ in loops[0])", "many = prod(size for size, _ in loops[1])"):
            "loops of all operands have the same sizes"},
    "golden/lower/yields.py": {
        ("sent = used = multiplied = drained = 0", "sent = used = multiplied = drained = 1"):
            "all begin alike, and are compared with each other alone",
        ("self.reads[what] = max(self.reads.get(what, 0), elements)",
         "self.reads[what] = max(self.reads.get(what, 1), elements)"):
            "nobody reads fewer elements than one"},
}


def reason(module: str, before: str, after: str) -> str:
    """Why a module's text may as well be another; empty if nothing says so."""
    lines = ((old.strip(), new.strip()) for old, new in zip(before.splitlines(), after.splitlines(), strict=False)
             if old != new)
    return REASONS.get(module, {}).get(next(lines, ("", "")), "")
