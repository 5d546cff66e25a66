"""Sums over the iterations of a VECTOR: what they add is computed side by side, and added in order."""

from collections.abc import Sequence

from ..spec.vector import FIELDS, KIND, NOTHING, POSTS, Kind, Op, Reduce, Source, Target


def apart(words: Sequence[int], fields: Sequence[dict[str, int]]) -> tuple[list[int], dict[int, int]]:
    """A body that gives what it adds to the stream, in place of adding it to registers.

    Parameters
    ----------
    words : sequence of int
        Of an instruction of the vector unit each.
    fields : sequence of dict
        What they say.

    Returns
    -------
    words : list of int
        The same, but for sums ``r = a * b + r`` in registers that nothing else of the body reads or writes.
    places : dict
        Place among all that the body gives to the stream -> the register of the sum.
    """
    found, places, given = [], {}, 0
    for number, (word, f) in enumerate(zip(words, fields, strict=True)):
        others = [each for place, each in enumerate(fields) if place != number]
        if _adds(f) and not any(_uses(each, f["target_index"]) for each in others):
            places[given] = f["target_index"]
            word = _encoded(f | {"c_source": Source.CONSTANT, "c": NOTHING, "target": Target.STREAM, "target_index": 0})
            f = f | {"target": Target.STREAM}
        given += f["kind"] == Kind.VECTOR and f["target"] == Target.STREAM
        found.append(word)
    return found, places


def _adds(f):
    """Whether an instruction is ``r = a * b + r`` with a and b from elsewhere."""
    own = Source.REGISTER, f["target_index"]
    return (f["kind"] == Kind.VECTOR and f["op"] == Op.MULADD and POSTS[f["post"]] == "none"
            and f["reduce"] == Reduce.NONE and f["target"] == Target.REGISTER and not f["negate_c"]
            and (f["c_source"], f["c"]) == own and own not in ((f["a_source"], f["a"]), (f["b_source"], f["b"])))


def _uses(f, index):
    """Whether an instruction reads or writes a register."""
    if f["kind"] not in (Kind.VECTOR, Kind.SCALAR):
        return False
    return (f["target"] == Target.REGISTER and f["target_index"] == index
            or any((f[f"{name}_source"], f[name]) == (Source.REGISTER, index) for name in "abc"))


def _encoded(f):
    word, position = f["kind"] << KIND, 0
    for name, width in FIELDS:
        word |= int(f[name]) << position
        position += width
    return word
