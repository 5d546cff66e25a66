"""What several tests measure against: exact fractions."""

from fractions import Fraction


def exact_fp32(value, subnormals="flush"):
    """Bits of a fraction rounded to FP32: 24 bits, ties to even; then overflow and underflow."""
    if value == 0:
        return 0
    sign, value, exponent = (value < 0) << 31, abs(value), 0
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while value < Fraction(2) ** exponent:
        exponent -= 1
    if subnormals == "gradual":
        exponent = max(exponent, -126)
    significand = round(value / Fraction(2) ** (exponent - 23))
    if significand == 1 << 24:
        significand, exponent = 1 << 23, exponent + 1
    if exponent > 127:
        return sign | 0x7F800000
    if subnormals == "gradual" and significand < 1 << 23:
        return sign | significand
    return sign | exponent + 127 << 23 | significand & 0x7FFFFF if exponent >= -126 else 0
