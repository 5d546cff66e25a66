"""Declared fields: all that follows from them, for designs and for a nested description that is made up here.

Covers: hbfp/fields.py, hbfp/declared.py, hbfp/checks.py.
"""

import json
import random
from dataclasses import FrozenInstanceError, asdict, dataclass

import pytest

from hbfp import describe
from hbfp.command import Parser
from hbfp.design import ConflictError, Design
from hbfp.fields import choice, flag, nested, pair, whole
from hbfp.format import HBFPFormat
from hbfp.options import add_design_options, design_from_args, design_from_values, read
from hbfp.values import ContradictionError, OptionError

VALUES = {"mantissa": (2, 4, 8, 16), "exponent": (5, 10, 16), "block": ((1, 4), (1, 32), (1, 64), (8, 8), (1, 3)),
          "rounding": ("rne", "stochastic", "truncate"), "noise_bits": (1, 8, 24), "subnormals": ("flush", "gradual"),
          "rows": (1, 4, 8, 24, 32), "cols": (None, 1, 6, 32), "accumulate": ("fp32", "aligned", "fp24", "bf16"),
          "arithmetic": ("hbfp", "fp32", "fma", "bf16", "int"), "group": (None, (1, 1), (2, 2)),
          "multiplier": ("plain", "recoded"), "pipeline": (0, 1, 6), "depth": (1, 512), "share": (1, 2),
          "ragged": (False, True), "sparse": ((1, 1), (2, 4)), "guard": (0, 4), "growth": (3, 8),
          "wide": (0, 0, 3, 6), "side_lanes": (0, 1, 2, 0), "banks": (1, 2),
          "weight_tiles": (1, 2), "convert_lanes": (0, 0, 1, 2), "fabric": ("gates", "gates", "fpga"),
          "weight_clock": ("free", "free", "gated")}


def random_designs(seed, count):
    """So many designs that are possible, of values drawn from :data:`VALUES`."""
    rng, found = random.Random(seed), []
    while len(found) < count:
        try:
            found.append(design_from_values({name: rng.choice(few) for name, few in VALUES.items()}))
        except OptionError:
            continue
    return found


DESIGNS = random_designs(1, 100)


def test_values_reach_every_field():
    assert set(VALUES) == set(describe.declared(Design))
    for name in VALUES:
        assert len({describe.flat(design)[name] for design in DESIGNS}) > 1, name


def test_words_give_the_design_again():
    parser = Parser(prog="prog")
    add_design_options(parser)
    for design in DESIGNS:
        assert design_from_args(parser.parse_args(design.words())) == design


def test_plain_data_gives_the_design_again():
    for design in DESIGNS:
        assert Design.from_dict(json.loads(json.dumps(design.as_dict()))) == design
        assert design_from_values(describe.flat(design)) == design


def test_data_with_something_else_is_refused():
    with pytest.raises(ValueError, match="^Design must have no fields but its own, not colour$"):
        Design.from_dict(Design().as_dict() | {"colour": 3})


def test_data_that_lacks_something_is_refused():
    """A field that is deleted is not silently its default."""
    data = Design().as_dict()
    del data["format"]
    with pytest.raises(ValueError, match="^Design must have all of its fields, not lack format$"):
        Design.from_dict(data)
    with pytest.raises(ValueError, match="^HBFPFormat must be an object with its fields, not 8$"):
        Design.from_dict(Design().as_dict() | {"format": 8})


def test_same_name_only_where_the_hardware_is_the_same():
    """Designs of one name differ in nothing but fields without effect, and ``ragged``, which the block implies."""
    names = {}
    for design in random_designs(2, 200):
        effective = {name: value for name, value in describe.flat(design).items()
                     if (where := describe.declared(Design)[name][0].where) is None or getattr(design, where)}
        effective.pop("ragged")
        assert names.setdefault(design.name, effective) == effective


def test_words_word_for_word():
    assert describe.words(HBFPFormat(mantissa=4, noise_bits=3)) == [
        "--mantissa", "4", "--exponent", "10", "--block", "1,32", "--rounding", "rne", "--noise-bits", "3",
        "--subnormals", "flush"]
    assert "--ragged" in Design(ragged=True).words() and "--ragged" not in Design().words()


def test_every_option_may_stand_in_a_file(tmp_path):
    file, parser = tmp_path / "design.toml", Parser(prog="prog")
    add_design_options(parser)
    args = parser.parse_args(["--config", str(file)])
    for design in DESIGNS:
        file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in describe.flat(design).items()))
        assert design_from_args(args) == design


# --- A description with another inside, as a system around a core will be ------------------------


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A core, a buffer beside it, and ports that must fit both."""
    core: Design = nested(Design)
    words: int = whole(64, 1, 1024, text="words of the buffer", title="Words", unit=" words", tag="w", always=True)
    ports: tuple[int, int] = pair((1, 1), 1, 4, text="of the buffer, in and out", title="Ports", tag="ports")
    kind: str = choice("sram", ("sram", "flops"), text="of the buffer", title="Kind", tag="")
    twin: bool = flag(text="two buffers", title="Twin")
    spare: int | None = whole(None, 0, 8, text="words held back", title="Spare", usual="as many as segments")

    def __post_init__(self):
        if self.spare is None:
            object.__setattr__(self, "spare", self.core.segments)
        describe.check(self)
        if self.words < self.core.rows:
            raise ConflictError("words", self.words, f"must be {self.core.rows} or more, the rows of the core")


def toy(*arguments):
    parser = Parser(prog="prog")
    describe.add_arguments(parser, Toy)
    return read(Toy, vars(parser.parse_args(arguments)))


def test_nested_description_is_flat_outside():
    every = ["--rows", "16", "--block", "1,8", "--words", "32", "--ports", "2,3", "--kind", "flops", "--twin"]
    made = toy(*every)
    assert made == Toy(core=Design(rows=16, format=HBFPFormat(block=(1, 8))), words=32, ports=(2, 3), kind="flops",
                       twin=True, spare=2)
    assert toy() == Toy() and toy(*made.core.words(), "--words", "32").core == made.core
    assert toy(*describe.words(made)) == made
    assert describe.from_dict(Toy, json.loads(json.dumps(asdict(made)))) == made


@pytest.mark.parametrize("arguments, message", [
    (["--words", "0"], "--words 0: must be 1 to 1024"), (["--kind", "x"], "--kind x: must be one of sram, flops"),
    (["--ports", "5,1"], "--ports 5,1: must be two numbers such as 1,32, each 1 to 4"),
    (["--rows", "300"], "--rows 300: must be 1 to 256"),
    (["--words", "16"], "--words 16: must be 32 or more, the rows of the core"),
    (["--share", "2"],
     "--share 2: must be a power of two that divides 32 columns and is at most 1, the passes of a block")])
def test_nested_description_is_checked_inside_and_across(arguments, message):
    with pytest.raises(OptionError) as caught:
        toy(*arguments)
    assert str(caught.value) == message
    assert isinstance(caught.value, ContradictionError) == (arguments in (["--words", "16"], ["--share", "2"]))


@pytest.mark.parametrize("options, message", [
    ({"words": 0}, "Words must be 1 to 1024 words, not 0"), ({"ports": 1}, "Ports must be a pair, not 1"),
    ({"kind": 3}, "Kind must be one of sram, flops, not 3"), ({"twin": 0}, "Twin must be True or False, not 0"),
    ({"spare": 9}, "Spare must be 0 to 8, not 9")])
def test_nested_description_by_itself(options, message):
    with pytest.raises(ValueError) as caught:
        Toy(**options)
    assert str(caught.value) == message
    with pytest.raises(FrozenInstanceError):
        Toy().words = 3


def test_lists_become_tuples():
    assert Toy(ports=[1, 2]).ports == (1, 2) and hash(Toy(ports=[1, 2])) == hash(Toy(ports=(1, 2)))


def test_names_and_tables_follow():
    made = Toy(core=Design(rows=8), ports=(1, 2), kind="flops", twin=True)
    assert describe.name_parts(made) == [made.core.name, "w64", "ports1x2", "flops"]
    assert describe.table(Toy)[-5:] == [
        ("--words", "words of the buffer, 1 to 1024", "64"),
        ("--ports", "of the buffer, in and out, each 1 to 4", "1,1"),
        ("--kind", "of the buffer: sram, flops", "sram"), ("--twin", "two buffers", "off"),
        ("--spare", "words held back, 0 to 8", "as many as segments")]


def test_one_name_twice_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Both:
        """A core, and a field that the core has, too."""
        core: Design = nested(Design)
        rows: int = whole(1, 1, 2, text="of something else", title="Rows")

    with pytest.raises(TypeError, match="^Both has more than one field rows$"):
        describe.declared(Both)
