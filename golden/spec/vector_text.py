"""Words of the vector unit as text, and back: what the disassembler shows of memory P."""

import struct
from collections.abc import Callable

from .vector import (
    BEATS_RANGE,
    BELOW_BITS,
    FIELDS,
    KEY_BITS,
    KIND,
    LANES_RANGE,
    LENGTH_BITS,
    PLACE_BITS,
    POSTS,
    ROWS_BITS,
    STEP_BITS,
    WORD,
    Kind,
    Op,
    Reduce,
    Source,
    Target,
    field_values,
    length_of,
)

#: What the constants of an operand are called, by index.
CONSTANTS = ("0", "1", "-0")
_FIELD = dict(FIELDS)
_NAMES = {"post": POSTS, "op": tuple(each.name.lower() for each in Op),
          "reduce": tuple(each.name.lower() for each in Reduce), "target": tuple(each.name.lower() for each in Target)}
_SOURCES = tuple(each.name.lower() for each in Source)
#: Kind -> the names and bits of its two immediates, from bit 0 up.
_TWO = {Kind.KEY: (("key", KEY_BITS), ("below", BELOW_BITS)), Kind.PLACE: (("place", PLACE_BITS), ("step", STEP_BITS))}


class TextError(ValueError):
    """A line is no instruction of the vector unit."""


def line(word: int) -> str:
    """A word as text: :func:`parse` gives the word back.

    A pass, or its like on scalars, has the operands ``a``, ``b`` and ``c``, the operation, and of all else what is not
    0. What no unit may execute, whatever its size, is ``RESERVED`` and the bits.
    """
    kinds: dict[int, Callable[[int], str | None]] = {Kind.SET: _set, Kind.LENGTH: _length, Kind.ARGUMENT: _argument,
                                                          Kind.KEY: _two, Kind.PLACE: _two}
    found = kinds.get(word >> KIND, _step)(word)
    return found or f"RESERVED 0x{word:016X}"


def _set(word):
    value = word & (1 << 32) - 1
    if word >> 36 & (1 << KIND - 36) - 1:
        return None
    return f"SET scalar{word >> 32 & 15}=0x{value:08X}    # {struct.unpack('>f', value.to_bytes(4, 'big'))[0]:g}"


def _argument(word):
    if not word & 15 or word & (1 << KIND) - 1 & ~(15 << 32 | 15):
        return None
    return f"ARGUMENT scalar{word >> 32 & 15}={word & 15}"


def _two(word):
    kind = Kind(word >> KIND)
    (one, low), (two, high) = _TWO[kind]
    if word >> low + high & (1 << KIND - low - high) - 1:
        return None
    shown = f"0x{word & (1 << low) - 1:08X}" if kind == Kind.KEY else word & (1 << low) - 1
    return f"{kind.name} {one}={shown} {two}={word >> low & (1 << high) - 1}"


def _length(word):
    elements, rows = length_of(word)
    if rows:
        return f"LENGTH {elements} x {rows}" if 0 < elements <= LANES_RANGE[1] and 1 < rows <= BEATS_RANGE[1] else None
    return f"LENGTH {elements}" if 0 < elements <= LANES_RANGE[1] * BEATS_RANGE[1] else None


def _step(word):
    """A pass or its like on scalars; None of a word that is reserved."""
    f = field_values(word)
    if f["kind"] not in (Kind.VECTOR, Kind.SCALAR) or f["spare"] or any(
            f[name] >= len(names) for name, names in _NAMES.items()):
        return None
    scalar = f["kind"] == Kind.SCALAR
    sources = [(Source(f[f"{name}_source"]), f[name]) for name in "abc"]
    if any(source == Source.CONSTANT and index >= len(CONSTANTS) or source == Source.STREAM and index
           or scalar and source in (Source.REGISTER, Source.STREAM) for source, index in sources):
        return None
    if f["target"] in ((Target.REGISTER, Target.STREAM) if scalar else (Target.SCALAR,)) or scalar and (
            f["reduce"] or f["drop"]):
        return None
    words = [Kind(f["kind"]).name]
    for name, (source, index) in zip("abc", sources, strict=True):
        words.append(f"{name}={CONSTANTS[index] if source == Source.CONSTANT else _SOURCES[source]}"
                     f"{index if source in (Source.REGISTER, Source.SCALAR) else ''}")
    words.append(f"op={_NAMES['op'][f['op']]}")
    words += [f"{name}=1" for name in ("drop", "negate_a", "negate_c") if f[name]]
    if f["post"]:
        words.append(f"post={POSTS[f['post']]}")
    for name in ("target", "reduce"):
        index = f[f"{name}_index"]
        if f[name] or index:    # an index without a use is a bit of the word, too
            bare = name == "target" and f[name] == Target.STREAM and not index
            words.append(f"{name}={_NAMES[name][f[name]]}" + ("" if bare else f":{index}"))
    return " ".join(words)


def parse(text: str) -> int:
    """The word of a line; TextError if it is none."""
    head, *words = text.partition("#")[0].split() or [""]
    try:
        if head == "RESERVED":
            return _number(WORD, *words)
        if head == "LENGTH":
            elements, _, *rows = words if len(words) == 3 and words[1] == "x" else (*words, "", "0")
            return Kind.LENGTH << KIND | _number(ROWS_BITS, *rows) << LENGTH_BITS | _number(LENGTH_BITS, elements)
        if head in ("SET", "ARGUMENT"):
            (name, value), = (word.split("=") for word in words)
            bits = 32 if head == "SET" else 4
            return Kind[head] << KIND | _number(4, name.removeprefix("scalar")) << 32 | _number(bits, value)
        if head in ("KEY", "PLACE"):
            (one, low), (two, high) = _TWO[Kind[head]]
            given = dict(word.split("=") for word in words)
            return Kind[head] << KIND | _number(high, given.pop(two)) << low | _number(low, given[one])
        return _word(Kind[head], dict(word.split("=") for word in words))
    except (KeyError, ValueError, TypeError):
        raise TextError(f"An instruction of the vector unit must be as the disassembler writes it, not "
                        f"{text.strip()!r}") from None


def _number(bits, text):
    """A number of so many bits, decimal or with 0x before it."""
    value = int(text, 0)
    if not 0 <= value < 1 << bits:
        raise ValueError(text)
    return value


def _word(kind, values):
    """The word of a pass or its like on scalars."""
    if kind not in (Kind.VECTOR, Kind.SCALAR):
        raise ValueError(kind)
    f = dict.fromkeys(_FIELD, 0)
    for name, value in values.items():
        if name in ("a", "b", "c"):
            source = value.rstrip("0123456789") if value not in CONSTANTS else "constant"
            f[f"{name}_source"] = _SOURCES.index(source)
            f[name] = CONSTANTS.index(value) if source == "constant" else _number(4, value[len(source):] or "0")
        elif name in ("target", "reduce"):
            what, _, index = value.partition(":")
            f[name], f[f"{name}_index"] = _NAMES[name].index(what), _number(4, index or "0")
        else:
            f[name] = _NAMES[name].index(value) if name in _NAMES else _number(_FIELD[name], value)
    word, position = kind << KIND, 0
    for name, bits in FIELDS:
        word |= f[name] << position
        position += bits
    return word
