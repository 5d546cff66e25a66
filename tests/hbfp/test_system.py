"""The accelerator's sizes: what follows from them, and what does not go together."""

import re

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.registers import parameters
from hbfp.system import FUNCTIONS, Accelerator, Share


def core(mantissa=8, block=(1, 16), rows=16, **rest):
    words = {name: rest.pop(name) for name in ("rounding", "subnormals") if name in rest}
    return Design(format=HBFPFormat(mantissa=mantissa, block=block, **words), rows=rows, **rest)


@pytest.mark.parametrize("mantissa, block, stored, packed, beats", [
    (4, (1, 16), 4, 8, 3), (5, (1, 16), 8, 4, 5), (8, (1, 8), 8, 4, 3), (9, (1, 32), 16, 2, 9),
    (16, (16, 16), 16, 2, 9)])
def test_words(mantissa, block, stored, packed, beats):
    """Mantissas are stored in 4, 8 or 16 bits; a segment of the column and its exponents are a record."""
    found = Accelerator(core=core(mantissa, block))
    assert (found.lanes, found.beat, found.stored, found.packed, found.record_beats) == (16, 64, stored, packed, beats)
    assert (found.mantissa, found.exponent, found.plain) == (mantissa, 10, "")


@pytest.mark.parametrize("arithmetic, bits, packed, beats", [
    ("fp32", 32, 1, 16), ("bf16", 16, 2, 8), ("fp16", 16, 2, 8)])
def test_words_of_numbers_without_exponents(arithmetic, bits, packed, beats):
    """A record has no beat of exponents; a column is one segment, whatever the option for blocks says."""
    found = Accelerator(core=core(block=(4, 4), arithmetic=arithmetic))
    assert (found.mantissa, found.exponent, found.plain) == (bits, 0, arithmetic)
    assert (found.stored, found.packed, found.record_beats) == (bits, packed, beats)
    assert found.core.format.block == (1, 16) and Accelerator.from_dict(found.as_dict()) == found


@pytest.mark.parametrize("rows, cols, terms, word, row, segments", [
    (8, 8, 4, 1, 1, 2), (4, 16, 4, 4, 1, 1), (4, 16, 16, 4, 1, 1), (16, 8, 4, 1, 2, 2), (64, 4, 32, 1, 16, 1)])
def test_pieces(rows, cols, terms, word, row, segments):
    """An address of X is a row of the core or a word of V, whichever is less; both are whole addresses."""
    found = Accelerator(core=core(block=(1, terms), rows=rows, cols=cols), x_words=1024)
    assert (found.piece, found.whole, found.oblong) == (min(rows, cols), max(rows, cols), rows != cols)
    assert (found.word_pieces, found.row_pieces, found.piece_segments) == (word, row, segments)
    assert found.x_pieces == 1024 * row and Share.of_all(0, 1).words(found)["x"] == (0, 64 * row)


@pytest.mark.parametrize("options, line", [
    ({"core": core(arithmetic="fma")}, "Arithmetic fma must be one of hbfp, fp32, bf16, fp16, int8 in an accelerator"),
    ({"core": core(arithmetic="int")}, "Arithmetic int must be one of hbfp, fp32, bf16, fp16, int8 in an accelerator"),
    ({"core": core(rows=2)}, "Rows 2 must be one of 4, 8, 16, 32, 64, 128, 256 in an accelerator"),
    ({"core": core(mantissa=4, rows=4)}, "Rows 4 must be at least 8 in an accelerator of 4 bits"),
    ({"core": core(cols=64)}, "Cols 64 must be one of 4, 8, 16, 32 in an accelerator"),
    ({"arrays": 17}, "Arrays must be 1 to 16 cores, not 17"),
    ({"core": core(rows=8), "arrays": 3}, "Arrays 3 times the 8 columns of a core must be one of 4, 8, 16, 32"),
    ({"core": core(), "arrays": 4}, "Arrays 4 times the 16 columns of a core must be one of 4, 8, 16, 32"),
    ({"core": core(rows=8, cols=4), "arrays": 2, "vector_lanes": 16},
     "Vector lanes 16 must be 0 or divide the 8 columns"),
    ({"core": core(rows=4, cols=8, sparse=(2, 4), block=(1, 8)), "arrays": 2},
     "Block 1,8 must have at least 16 terms along K, as many as columns, in an accelerator with sparse weights"),
    ({"core": core(rows=256, cols=4), "x_words": 8192},
     "X words 8192 must be at most 4096 with 256 rows and 4 columns"),
    ({"core": core(rows=4, cols=16, sparse=(2, 4), block=(1, 8))},
     "Block 1,8 must have at least 16 terms along K, as many as columns, in an accelerator with sparse weights"),
    ({"core": core(rows=8, cols=4, sparse=(2, 4))},
     "Rows 8 must be at most 4, as many as columns, in an accelerator with sparse weights"),
    ({"core": core(rows=4, cols=32), "x_words": 64, "memory_banks": 16},
     "X words 64 must be at least 128 in 16 banks of words of 8 rows"),
    ({"core": core(rows=4, cols=32), "x_words": 64, "contexts": 2},
     "X words 64 must be at least 128 with two contexts and 0 banks: memories are shared by sixteenths"),
    ({"core": core(convert_lanes=2)}, "Convert lanes 2 must be 0 in an accelerator"),
    ({"core": core(sparse=(2, 4))},
     "Block 1,16 must have at least 32 terms along K, those of a sparse pass, in an accelerator with sparse weights"),
    ({"core": core(sparse=(4, 8), rows=4, block=(1, 16))},
     "Rows 4 must be a multiple of 8 in an accelerator whose weights are 4 of 8"),
    ({"core": core(mantissa=2, sparse=(4, 8), block=(1, 32))},
     "Mantissa 2 must be at least 3, the bits of an index of sparse weights, in an accelerator"),
    ({"core": core(sparse=(1, 4), block=(1, 64)), "contexts": 2, "memory_banks": 8, "x_words": 256},
     "X words 256 must be at least 512 with two contexts and 8 banks: memories are shared by sixteenths"),
    ({"core": core(block=(1, 24), ragged=True)}, "Ragged True must be False in an accelerator"),
    ({"core": core(subnormals="gradual")}, "Subnormals gradual must be flush in an accelerator"),
    ({"core": core(mantissa=4, block=(1, 4))},
     "Block 1,4 must be a power of two of at least 8 along K in an accelerator of 4 bits"),
    ({"x_words": 96}, "X words 96 must be a power of two"), ({"p_words": 33}, "P words 33 must be a power of two"),
    ({"v_words": 32}, "V memory must be 64 to 65536 words, not 32"),
    ({"vector_lanes": 33}, "Vector lanes must be 0 to 32, not 33"),
    ({"vector_lanes": 3}, "Vector lanes 3 must be 0 or divide the 32 columns"),
    ({"core": core(), "vector_lanes": 32}, "Vector lanes 32 must be 0 or divide the 16 columns"),
    ({"function_lanes": 33}, "Function lanes must be 0 to 32, not 33"),
    ({"vector_lanes": 8, "function_lanes": 16}, "Function lanes 16 must be 0 or divide the 8 lanes of the vector unit"),
    ({"functions": ("exp", "sin")}, f"Each of functions must be one of {', '.join(FUNCTIONS)}, not 'sin'"),
    ({"functions": ("exp", "exp")}, "Functions must differ, not exp, exp"),
    ({"functions": "exp"}, "Functions must be a list, not 'exp'"),
    ({"functions": (), "function_lanes": 2}, "Function lanes 2 must be 0 where the vector unit has no function"),
    ({"contexts": 3}, "Contexts must be 1 to 2, not 3"),
    ({"contexts": 2, "w_words": 128, "core": Design(rows=16)},
     "W words 128 must be at least 256 with two contexts, 16 times 16: memories are shared by sixteenths"),
    ({"contexts": 2, "p_words": 128, "core": Design(rows=32)},
     "P words 128 must be at least 256 with two contexts, 16 times 16: memories are shared by sixteenths"),
    ({"memory_banks": 3}, "Memory banks 3 must be a power of two"),
    ({"short_rows": 1}, "Short rows 1 must be 0, or 2 to 32: they are as many words as the longest row at most"),
    ({"short_rows": 33}, "Short rows 33 must be 0, or 2 to 32: they are as many words as the longest row at most"),
    ({"short_rows": 2, "vector_lanes": 8},
     "Short rows 2 must be 0 where the vector unit has fewer lanes than a word has numbers"),
    ({"contexts": 2, "memory_banks": 8, "v_words": 64},
     "V words 64 must be at least 128 with two contexts and 8 banks: memories are shared by sixteenths"),
    ({"queue": 1}, "Queue must be 2 to 64 instructions, not 1"),
    ({"core": Design(rows=32), "burst": 33}, "Burst must be 1 to 32 beats, not 33")])
def test_what_is_refused(options, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        Accelerator(**options)


def test_what_its_instructions_have():
    """What not all accelerators have, and the formats of conversions."""
    assert Accelerator(core=core(sparse=(1, 4), block=(1, 64))).extras == ("sparse",)
    both = Accelerator(core=core(4, rounding="stochastic", wide=6))
    assert Accelerator(core=core()).extras == () and both.extras == ("stochastic", "wide")
    assert [(each.mantissa, each.rounding) for each in (
        both.conversion(wide, stochastic) for wide in (False, True) for stochastic in (False, True))] == [
            (4, "rne"), (4, "stochastic"), (6, "rne"), (6, "stochastic")]
    assert Accelerator(core=core(rounding="truncate")).conversion(False).rounding == "truncate"


def test_vector_lanes():
    """As many as columns, unless said; fewer are in the name."""
    full, four = Accelerator(core=core()), Accelerator(core=core(), vector_lanes=4)
    assert (full.unit_lanes, full.turns) == (16, 1) and full.name == Accelerator(core=core(), vector_lanes=16).name
    assert (four.lanes, four.unit_lanes, four.turns) == (16, 4, 4) and four.name == f"{full.name}_vl4"
    assert (four.evaluators, four.function_turns) == (4, 1)
    assert Accelerator(core=core(), vector_lanes=4, function_lanes=1).name == f"{full.name}_vl4_fl1"


def test_several_cores_are_one_of_all_columns():
    """In all sizes and registers; the name has both."""
    several, wide = Accelerator(core=core(rows=8), arrays=4), Accelerator(core=core(rows=8, cols=32))
    assert several.name == f"{Accelerator(core=core(rows=8)).name}_ar4"
    assert parameters(several) == parameters(wide) and Accelerator.from_dict(several.as_dict()) == several
    sizes = [name for name, found in vars(Accelerator).items() if isinstance(found, property) and name != "name"]
    assert [name for name in sizes if getattr(several, name) != getattr(wide, name)] == []
    assert (several.lanes, several.piece, several.word_pieces, several.oblong) == (32, 8, 4, True)


def test_functions():
    """In one order, and in the name where some lack."""
    full, none = Accelerator(core=core()), Accelerator(core=core(), functions=[])
    assert full.functions == FUNCTIONS and none.functions == () and none.name == f"{full.name}_fnnone"
    assert Accelerator(core=core(), functions=("tanh", "exp")) == Accelerator(core=core(), functions=["exp", "tanh"])
    assert Accelerator(core=core(), functions=("tanh", "exp")).name == f"{full.name}_fnexp_tanh"


def test_longest_burst_stays_in_a_page():
    assert Accelerator(core=Design(rows=32), burst=32).burst * 128 == 4096


def test_shares():
    """Addresses, registers, and the accelerator that a context sees."""
    whole = Accelerator(contexts=2)
    assert Accelerator(contexts=2, p_words=256, core=Design(rows=32)).contexts == 2
    share = Share((0, 8, 3, 15), (16, 8, 4, 1))
    assert share.words(whole) == {"v": (0, 4096), "x": (4096, 8192), "w": (768, 1792), "p": (480, 512)}
    assert share.registers() == {"share_first": 0x0F030800, "share_size": 0x01040810}
    assert Share() == Share.of_all(0, 16)
    assert whole.share(8) == Accelerator(x_words=4096, w_words=2048, v_words=2048, p_words=256)
    with pytest.raises(ValueError, match="^Share of W must end at sixteenth 16 or before it, not be 3 from 14 on$"):
        Share((0, 0, 14, 0), (1, 1, 3, 1))
    with pytest.raises(ValueError, match="^X words 1536 must be a power of two$"):
        whole.share(3)


@pytest.mark.parametrize("given, line", [
    (((0, 0), (16,) * 4), "First of a share must be four whole numbers, not (0, 0)"),
    (((0,) * 4, 16), "Size of a share must be four whole numbers, not 16"),
    (((0,) * 4, (1.5,) * 4), "Size of a share must be four whole numbers, not (1.5, 1.5, 1.5, 1.5)")])
def test_shares_of_other_types(given, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        Share(*given)
