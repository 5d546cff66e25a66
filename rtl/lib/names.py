"""Names of Verilog modules: one word for each parameter, so that what differs has different names."""

from dataclasses import MISSING, field, fields, is_dataclass

from amaranth import Shape

#: Fields of the specification's dataclasses, which carry no letter of their own.
LETTERS = {"mantissa": "m", "exponent": "e", "block": "b", "rounding": "", "noise_bits": "n", "subnormals": "",
           "lanes": "l", "function_lanes": "fl", "beats": "b", "registers": "r", "functions": "", "pipeline": "p",
           "arguments": "ar", "multiplier": "", "fraction": "f", "depth": "d", "address": "a", "tag": "g", "time": "t",
           "counter": "c", "stamped": "st", "ports": "n", "width": "w", "copies": "k", "register_copies": "rc",
           "product": "pr", "sum": "su"}
#: Those that stand in a name even at their default.
ALWAYS = ("mantissa", "exponent", "fraction", "lanes", "beats", "registers", "depth", "address", "tag", "time",
          "counter", "ports", "width", "copies")


def parameter(letter, default=MISSING, rare=False):
    """A field of a component's parameters; ``letter`` stands before its value in the module's name.

    A value equal to ``default``, the usual one, is left out of the name; if ``rare``, out of the comment, too.
    """
    return field(default=default, metadata={"letter": letter, "rare": rare})


def word(letter, value):
    """One parameter as it stands in a name."""
    if is_dataclass(value):
        return letter + "_".join(words(value))
    if value is True:
        return letter
    if isinstance(value, Shape):
        return f"{letter}{value.width}{'' if value.signed else 'u'}"
    if isinstance(value, tuple):
        separator = "x" if all(isinstance(part, int) for part in value) else "_"
        return letter + (separator.join(map(str, value)) or "none")
    return f"{letter}{int(value) if value is False else 'none' if value is None else value}"


def words(params):
    """The words of a dataclass, in the order of its fields: its ``NAME``, if it has one, and its parameters."""
    result = [params.NAME] if hasattr(params, "NAME") else []
    for item in fields(params):
        value = getattr(params, item.name)
        if "letter" in item.metadata:
            letter, usual = item.metadata["letter"], value == item.default
        else:
            letter, usual = LETTERS.get(item.name, item.name), value == item.default and item.name not in ALWAYS
        if not usual:    # of two values the unusual one needs its letter alone
            result.append(letter if isinstance(item.default, bool) else word(letter, value))
    return [text for text in result if text]
