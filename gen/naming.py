"""Names for what has none: numbered wires say what they hold, equal names of several parts say whose they are."""

import re
from collections import Counter
from collections.abc import Callable

from .expression import Expression
from .fields import fields
from .keywords import KEYWORDS
from .module import Assign, Instance, Module
from .simplify import helper, reads, renamed

#: Longest name that is made of an expression.
LONGEST = 30
#: Operator -> word between the names of its operands, and what its result is called where that would be too long.
_BETWEEN = {"+": ("plus", "sum"), "-": ("minus", "difference"), "*": ("times", "product"), "&": ("and", "masked"),
            "|": ("or", "joined"), "^": ("xor", "flipped"), "==": ("is", "match"), "!=": ("is_not", "mismatch"),
            "<": ("below", "order"), "<=": ("up_to", "order"), ">": ("above", "order"), ">=": ("from", "order"),
            "<<": ("left_by", "shifted"), ">>": ("right_by", "shifted"), ">>>": ("right_by", "shifted"),
            "<<<": ("left_by", "shifted")}
#: Unary operator -> word before the operand's name.
_BEFORE = {"~": "not", "!": "no", "|": "any", "&": "all", "^": "odd", "~|": "no", "~&": "not_all", "~^": "even",
           "-": "minus"}


def plain(name: str) -> str:
    """A name without the number that Amaranth adds to the second of equal ones."""
    return re.sub(r"\W", "_", re.sub(r"\$\d+$", "", name))


def _bits(of):
    """What is said of a name, or of bits of one."""
    places = (of.high, of.low)[:1 + (of.high > of.low)] if of.kind == "part" else ()
    return "_".join([plain(of.word), *map(str, places)])


def described(of: Expression, says: Callable[[Expression], str] = _bits) -> str:
    """A name made of an expression; ``says`` tells what a name, or bits of one, are called."""
    if of.kind in ("name", "part"):
        return says(of)
    if of.kind == "index":
        return f"{says(Expression('name', of.word))}_at_{described(of.args[0], says)}"
    if of.kind == "number":
        return str(int(of.word.split("h")[-1], 16)) if "'h" in of.word else plain(of.word)
    inside = [described(each, says) for each in of.args]
    if of.kind == "unary":
        return f"{_BEFORE.get(of.word, 'of')}_{inside[0]}"
    if of.kind == "binary":
        return f"{inside[0]}_{_BETWEEN.get(of.word, ('with',))[0]}_{inside[1]}"
    if of.kind == "?:":
        return f"{inside[1]}_if_{inside[0]}"
    if of.kind == "{}":
        named = [text for each, text in zip(of.args, inside, strict=True) if each.kind != "number"] or inside
        return f"{named[0]}_wide" if len(set(named)) == 1 else f"{named[0]}_etc"
    return inside[0]


def _result(of):
    """What the result of an expression is called."""
    while of.kind == "call":
        of = of.args[0]
    return (_BETWEEN[of.word][1] if of.kind == "binary" and of.word in _BETWEEN else
            _BEFORE.get(of.word, "value") if of.kind == "unary" else "choice" if of.kind == "?:" else "value")


class Names:
    """Gives names in one module; none is given twice."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.taken = {name.casefold() for name in module.declared if not helper(name)} | {
            item.name.casefold() for item in module.items if isinstance(item, Instance)}

    def free(self, *wanted: str) -> str:
        """The first of some names that nothing has; else the last with a number."""
        wanted = [name if re.match("[A-Za-z]", name) else f"value_{name}" for name in wanted]
        found, number = next((name for name in wanted if self._may(name)), None), 2
        while found is None:
            if self._may(f"{wanted[-1]}_{number}"):
                found = f"{wanted[-1]}_{number}"
            number += 1
        self.taken.add(found.casefold())
        return found

    def _may(self, name):
        return name.casefold() not in self.taken and name not in KEYWORDS


def name(module: Module) -> None:
    """Give every name of the module that is a number, or ends in one of Amaranth's, one that says what it is."""
    names = Names(module)
    found: dict[str, str] = {}
    for item in module.items:
        if isinstance(item, Instance) and "$" in item.name:
            item.name = names.free(f"{plain(item.name)}_unit")
    pins: dict[str, list[tuple[bool, str]]] = {}
    for item in module.items:
        for pin, slot, out in getattr(item, "pins", ()):
            if slot.value.kind == "name":
                pins.setdefault(slot.value.word, []).append((not out, f"{item.name}_{plain(pin)}"))
    for each in module.declared:
        if "$" in each and not helper(each):
            found[each] = names.free(*(word for _, word in sorted(pins.get(each, []), key=lambda pair: pair[0])[:1]),
                                     plain(each))
    _name_helpers(module, names, found)
    renamed(module, found)


def _name_helpers(module, names, found):
    """Names of numbered wires, from what they hold; of links of a chain, from its end."""
    read, users, values = reads(module), {}, {}
    for item in module.items:
        for each in item.sets():
            if helper(each.target.word) and isinstance(item, Assign):
                values[each.target.word] = each.value.value
        for slot in item.slots():
            for each in slot.value.names():
                users.setdefault(each.word, []).append(item)
    bases, wanted = {}, {}

    def base(of):
        """What the chain is called that a wire belongs to."""
        if of not in bases:
            bases[of] = None
            item = users.get(of, [None])[0]
            if read[of] == 1 and isinstance(item, Assign):
                target = item.target.word
                bases[of] = base(target) if helper(target) else plain(found.get(target, target))
        return bases[of]

    def says(of):
        """What a name is called, or a field of it."""
        word = wants(of.word) if helper(of.word) else plain(found.get(of.word, of.word))
        if of.kind == "part" and (field := fields(module.declared[of.word]).get((of.high, of.low))):
            return f"{word}_{plain(field)}"
        return _bits(Expression(of.kind, word, (), of.high, of.low))

    def wants(each):
        """What a numbered wire should be called."""
        if each not in wanted:
            wanted[each] = "value"    # of what leads back to itself
            value, end = values.get(each), base(each)
            if each in ends:
                wanted[each] = ends[each]
            elif value is None:
                wanted[each] = f"{end}_choice" if end else "choice"
            elif len(text := described(value, says)) <= LONGEST and text[0].isalpha():
                wanted[each] = text
            else:
                first = next((says(Expression("name", part.word)) for part in value.names()), "value")
                wanted[each] = f"{end or first}_{_result(value)}"
        return wanted[each]
    ends = {slot.value.word: f"{item.name}_{plain(pin)}" for item in reversed(module.items)
            for pin, slot, _ in reversed(getattr(item, "pins", ())) if slot.value.kind == "name"}
    for each in filter(helper, module.declared):
        wants(each)
    order = list(dict.fromkeys(part.target.word for item in module.items for part in item.sets()))
    times, numbers = Counter(wanted.values()), Counter[str]()
    for each in sorted(wanted, key=lambda each: order.index(each) if each in order else -1):
        word = wanted[each]
        if times[word] == 1:
            found[each] = names.free(word)
        else:
            found[each] = names.free(f"{word}_{numbers[word]}", word)
            numbers[word] += 1
