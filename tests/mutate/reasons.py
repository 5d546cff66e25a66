"""Changes of Python that change nothing, with the reason why: they count as equal.

A change is named by its module, the first line that it changes, and what stands there then.
"""

#: Module -> (line, line behind the change) -> why nothing depends on it.
REASONS: dict[str, dict[tuple[str, str], str]] = {
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
        ("self.reads[what] = max(self.reads.get(what, 0), elements)",
         "self.reads[what] = max(self.reads.get(what, 1), elements)"):
            "nobody reads fewer elements than one"},
}


def reason(module: str, before: str, after: str) -> str:
    """Why a module's text may as well be another; empty if nothing says so."""
    lines = ((old.strip(), new.strip()) for old, new in zip(before.splitlines(), after.splitlines(), strict=False)
             if old != new)
    return REASONS.get(module, {}).get(next(lines, ("", "")), "")
