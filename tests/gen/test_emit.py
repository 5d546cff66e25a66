# amaranth: UnusedElaboratable=no
"""What the emitter promises of its text.

Covers: gen/keywords.py.
"""

import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

import pytest
from amaranth import Module
from amaranth.lib.wiring import In, Out, Signature

from gen.emit import Emitter, verilog
from gen.heading import COLUMNS
from gen.readable import TEXTS
from gen.units import CORE_UNITS, make_unit
from hbfp.format import ROUNDINGS
from hbfp.options import design_from_values
from rtl.lib.banked import stored
from rtl.lib.component import Component
from rtl.lib.memory import Ram
from rtl.lib.names import parameter
from tests.cases import sweep

from .emitted import DESIGNS, Emitted, emitted, modules

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_same_input_same_bytes(tmp_path):
    """Two processes with other hash seeds; the second sees a newer Yosys, which would print another text."""
    texts, paths = [], [os.environ["PATH"], f"{tmp_path}{os.pathsep}{os.environ['PATH']}"]
    yosys = tmp_path / "yosys"
    yosys.write_text("#!/bin/sh\necho 'Yosys 0.70'\n")
    yosys.chmod(0o755)
    for seed, path in zip(("1", "2"), paths, strict=True):
        folder = tmp_path / seed
        subprocess.run([sys.executable, "-m", "gen", "--preset", "tiny", "--out", folder], cwd=ROOT, check=True,
                       capture_output=True, env=os.environ | {"PYTHONHASHSEED": seed, "PATH": path})
        texts.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(texts[0]) == 4 and texts[0] == texts[1]
    name = next(name for name in texts[0] if name.endswith(".v"))
    assert hashlib.sha256(texts[0][name]).hexdigest() in texts[0]["manifest.json"].decode()


@pytest.mark.parametrize("name", sweep(2, ["tiny", "aligned"]))
def test_twice_in_one_process_same_bytes(name):
    assert Emitted(DESIGNS[name]).text == emitted(name).text


@pytest.mark.parametrize("name", sweep(3, DESIGNS))
def test_no_vector_without_bits(name):
    assert "[-1:0]" not in emitted(name).text


@pytest.mark.parametrize("name", sweep(3, DESIGNS))
def test_text_says_nothing_of_its_source(name):
    text = emitted(name).text
    assert not re.search(r"\(\* *(src|generator|amaranth)|\.py|" + re.escape(str(ROOT)), text)


@pytest.mark.parametrize("name", sweep(3, DESIGNS))
def test_every_module_is_defined_once_and_used(name):
    text, top = emitted(name).text, emitted(name).manifest["top"]
    defined = re.findall(r"^module (\S+?)\(", text, re.MULTILINE)
    assert len(set(defined)) == len(defined)
    used = set(re.findall(r"^  (hbfp_\S+) \S+ +\(", text, re.MULTILINE))
    assert used | {top} == set(defined)


@pytest.mark.parametrize("name", sweep(3, DESIGNS))
def test_counts_are_those_of_the_text(name):
    parts = modules(emitted(name).text)

    def total(module):
        found = {module: 1}
        for used in re.findall(r"^  (hbfp_\S+) \S+ +\(", parts[module], re.MULTILINE):
            for part, count in total(used).items():
                found[part] = found.get(part, 0) + count
        return found
    counts = {part: row["count"] for part, row in emitted(name).manifest["modules"].items()}
    assert counts == total(emitted(name).manifest["top"])


@cache
def core(words):
    """Modules of a core, made once for the tests of all its units."""
    return rtlil(json.loads(words), "core")


def rtlil(values, unit):
    emitter = Emitter()
    emitter.convert(make_unit(unit, design_from_values(values)))
    return emitter.texts


#: Options that change the hardware, one at a time, from a common design.
BASE = {"rows": 4, "cols": 4, "block": (1, 4), "depth": 8}
VARIANTS = [{}, {"mantissa": 5}, {"exponent": 6}, {"exponent": 9}, {"exponent": 11}, {"rows": 8}, {"cols": 2},
            {"cols": 3},
            {"block": (1, 2)}, {"block": (1, 8)}, {"block": (1, 16)}, {"block": (4, 4)}, {"depth": 9}, {"depth": 5},
            {"group": (1, 1)}, {"group": (2, 4)}, {"group": (4, 2)}, {"rounding": "truncate"},
            {"rounding": "truncate", "mantissa": 2},
            {"rounding": "stochastic"}, {"rounding": "stochastic", "noise_bits": 5},
            {"accumulate": "aligned"}, {"accumulate": "aligned", "guard": 5}, {"accumulate": "aligned", "growth": 9},
            {"accumulate": "aligned", "guard": 5, "growth": 7}, {"accumulate": "aligned", "block": (1, 8)},
            {"arithmetic": "fp32"}, {"arithmetic": "bf16"}, {"arithmetic": "int"}, {"arithmetic": "int", "growth": 9},
            {"arithmetic": "int", "mantissa": 5}, {"rows": 5, "block": (1, 2), "ragged": True},
            {"block": (1, 3), "ragged": True}, {"block": (1, 6), "ragged": True}, {"rows": 16, "block": (1, 8)},
            {"multiplier": "recoded"}, {"multiplier": "recoded", "mantissa": 5},
            *({"block": (1, 16), "share": 2} | values for values in (
                {}, {"share": 4}, {"mantissa": 5}, {"exponent": 6}, {"accumulate": "aligned"}, {"depth": 9},
                {"accumulate": "aligned", "guard": 5, "growth": 7}, {"block": (1, 8)}, {"group": (2, 2)},
                {"multiplier": "recoded"}, {"rows": 2}, {"pipeline": 2}, {"pipeline": 2, "accumulate": "aligned"})),
            {"multiplier": "recoded", "block": (1, 2)}, {"multiplier": "recoded", "arithmetic": "int"}]


@pytest.mark.slow    # tests/gen/test_names.py has random designs always
def test_a_name_means_one_text():
    """Over all variants: modules of one name are the same, so files of two designs can be put together."""
    seen = {}
    for values in VARIANTS:
        for name, text in rtlil(BASE | values, "core").items():
            assert seen.setdefault(name, (text, values))[0] == text, f"{name}: {seen[name][1]} and {values}"
    assert len({values for values in map(str, VARIANTS)}) == len(VARIANTS)


def test_other_parameters_other_top():
    tops = [design_from_values(BASE | values).name for values in VARIANTS]
    assert len(set(tops)) == len(tops)


#: No parts of the core.
BESIDE = ("vector", "dot_product", "prune", "numbers")


@pytest.mark.parametrize("unit", sweep(4, [unit for unit in CORE_UNITS if not unit.startswith(BESIDE)]))
def test_units_have_the_names_they_have_in_the_core(unit):
    values = BASE | {"rounding": "stochastic", "accumulate": "aligned"}
    if unit in ("block_sum", "shared_accumulator", "shared_control"):
        values |= {"block": (1, 16), "share": 2}
    if unit in ("sparse_weights", "placement"):
        values |= {"block": (1, 16), "sparse": (1, 2)}
    whole, alone = core(json.dumps(values)), rtlil(values, unit)
    assert all(whole[name] == text for name, text in alone.items())


# --- Size of the text ---------------------------------------------------------------------------


def size(rows, cols, **values):
    result = Emitted({"rows": rows, "cols": cols, "block": (1, 8)} | values)
    return len(result.text), len(result.manifest["modules"])


def test_text_grows_with_rows_plus_columns():
    """Twice the side is at most twice the text and a bit; a module for each element would be four times."""
    (small, _), (large, modules) = size(8, 8), size(16, 16)
    assert large < 2 * small
    assert modules <= 64


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, {"accumulate": "aligned"}, {"arithmetic": "fp32"}, {"arithmetic": "int"},
                                    {"block": (24, 24), "ragged": True}], ids=str)
def test_text_of_large_cores(values):
    sizes = [size(side, side, **{"block": (1, 32)} | values) for side in (32, 64, 128)]
    assert all(modules <= 64 for _, modules in sizes)
    assert sizes[1][0] < 2.2 * sizes[0][0] and sizes[2][0] < 2.2 * sizes[1][0]


# --- Every width ---------------------------------------------------------------------------------


def emits(mantissa, exponent, **values):
    values = {"rows": 2, "block": (1, 2), "depth": 2} | values
    emitter = Emitter()
    top = emitter.convert(make_unit("core", design_from_values(values | {"mantissa": mantissa, "exponent": exponent})))
    return f"m{mantissa}_e{exponent}_" in top and "wire width 0 " not in "".join(emitter.texts.values())


@pytest.mark.parametrize("mantissa, exponent, rounding", sweep(5, [
    (*sizes, rounding) for rounding in ROUNDINGS
    for sizes in ((2, 5), (3, 9), (5, 16), (9, 6), (12, 8), (15, 7), (16, 16), (16, 5))]))
def test_widths_emit(mantissa, exponent, rounding):
    assert emits(mantissa, exponent, rounding=rounding)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_all_widths_emit(accumulate, rounding):
    for mantissa, exponent in itertools.product(range(2, 17), range(5, 17)):
        assert emits(mantissa, exponent, accumulate=accumulate, rounding=rounding)


# --- The emitter itself --------------------------------------------------------------------------


class Wire(Component):
    """A wire."""
    kind = "wire"

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("w")

    @staticmethod
    def ports(params):
        return {"i": In(params.width), "o": Out(params.width)}

    def body(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.i)
        return m


class Nameless(Wire):
    """Two of these with different widths have one name."""
    module = "hbfp_wire"


class Pair(Component):
    """Two wires."""
    kind = "pair"

    @dataclass(frozen=True)
    class Parameters:
        wires: tuple = parameter("")

    module = "hbfp_pair"

    @staticmethod
    def ports(params):
        return {"i": In(4), "o": Out(4)}

    def body(self, platform):
        m, wires = Module(), self.params.wires
        m.submodules += wires
        m.d.comb += [wire.i.eq(self.i) for wire in wires] + [self.o.eq(wires[0].o)]
        return m


def test_equal_cells_are_one_module():
    emitter = Emitter()
    emitter.convert(Pair((Wire(4), Wire(4))))
    assert list(emitter.texts) == ["hbfp_wire_w4", "hbfp_pair"]
    assert emitter.counts("hbfp_pair") == {"hbfp_wire_w4": 2, "hbfp_pair": 1}
    assert verilog(emitter).count("\nmodule ") == 2


def test_memories_have_no_values():
    """Neither in the text nor on the way to it, where each bit would be an object."""
    emitter = Emitter()
    emitter.convert(Ram(64, 8))
    text, = emitter.texts.values()
    assert re.search(r"cell \$meminit_v2 \S+\n +end\n", text)
    assert "initial" not in verilog(emitter)


@pytest.mark.parametrize("words, banks", [(1, 1), (2, 1), (2, 2), (4, 2), (4, 4)])
def test_banks_of_one_word_are_verilog(words, banks):
    """A bank of one word has no address, and Verilog no wire without bits."""
    class Banks(Component):
        kind = "banks"

        @staticmethod
        def ports(params):
            return {"addr": In(max(words - 1, 1).bit_length()), "w_en": In(1), "r_en": In(1), "r_data": Out(8)}

        def body(self, platform):
            m = Module()
            ram = stored(m, "words", words, 8, banks=banks)
            m.d.comb += [ram.w_en.eq(self.w_en), ram.r_en.eq(self.r_en), ram.w_addr.eq(self.addr),
                         ram.r_addr.eq(self.addr), ram.w_data.eq(self.addr), self.r_data.eq(ram.r_data)]
            return m

    emitter = Emitter()
    emitter.convert(Banks())
    assert "[-1:0]" not in verilog(emitter)


@pytest.mark.parametrize("text", TEXTS)
def test_a_long_name_stays_behind_module(text):
    """What reads the text looks for both in one line: areas, constraints, empty modules for synthesis."""
    class Long(Wire):
        module = "hbfp_wire_" + "x" * COLUMNS
    emitter = Emitter()
    emitter.convert(Long(4))
    assert f"\nmodule {Long.module}(i,\n" in verilog(emitter, text)


def test_wrong_names():
    with pytest.raises(ValueError, match=r"^Two different cells have the name 'hbfp_wire': their parameters must tell "
                                         r"them apart$"):
        Emitter().convert(Pair((Nameless(4), Nameless(3))))


@pytest.mark.parametrize("port, refused", [("output", True), ("logic", True), ("input_", False), ("i", False)])
def test_a_port_is_no_keyword(port, refused):
    """Neither of Verilog nor of SystemVerilog; what is nested in an interface has another name."""
    class Named(Wire):
        @staticmethod
        def ports(params):
            return {port: In(1), "reg": Out(Signature({"wire": Out(1)})), "o": Out(1)}

        def body(self, platform):
            m = Module()
            m.d.comb += [self.o.eq(getattr(self, port)), self.reg.wire.eq(self.o)]
            return m
    if not refused:
        assert Emitter().convert(Named(1)) == "hbfp_wire_w1"
        return
    with pytest.raises(ValueError, match=f"^Port '{port}' of hbfp_wire_w1 must have another name: it is a keyword of "
                                         "Verilog$"):
        Emitter().convert(Named(1))
