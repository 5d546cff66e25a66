"""Levels of machine code: each that the machine has gives the same bits; what cannot be compiled is said in one line.

Covers: golden/fast/kernels.py.
"""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from golden import bfp, matmul, noise
from golden.fast import compiled, kernels
from hbfp.format import HBFPFormat
from hbfp.values import OptionError

from .test_kernels import awkward

torch = pytest.importorskip("torch")
import golden.nn as gn  # noqa: E402

ROOT = Path(__file__).parents[3]
needs_kernels = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")


def plain(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def products(fmt, accumulate="fp32", scale=1.0):
    """Ordinary numbers, which take the quick ways, and awkward ones; ragged sides of every width of a panel."""
    scale = np.float32(scale)
    for rows, terms, columns in ((37, 100, 141), (5, 33, 30), (9, 64, 16)):
        yield matmul.matmul(plain(1, rows, terms) * scale, plain(2, terms, columns) * scale, fmt, accumulate)
    yield matmul.matmul(awkward(3), awkward(4).T.copy(), fmt, accumulate)


def converted(**options):
    """Every block shape: conversions, mantissas, and the way back."""
    for block, axis in (((1, 32), -1), ((1, 7), 0), ((1, 16), 0), ((16, 16), -1)):
        fmt = HBFPFormat(block=block, **options)
        for x in (awkward(1), plain(3, 75, 141)):
            random = np.random.default_rng(1).integers(0, 256, x.shape) if fmt.rounding == "stochastic" else None
            blocks = bfp.encode(x, fmt, random, axis=axis)
            yield from (blocks.mantissa, blocks.exponent, bfp.decode(blocks))


def trained(layer, fmt, *shape, **options):
    """Forward, and gradients of inputs and weights."""
    torch.manual_seed(1)
    layer = gn.convert(layer(), fmt, **options)
    for scale in (1, 2.0 ** -70):
        x = (torch.from_numpy(plain(5, *shape)) * scale).requires_grad_()
        y = layer(x)
        (y * torch.from_numpy(plain(6, *y.shape))).sum().backward()
        yield from (y.detach().numpy(), x.grad.numpy(), layer.weight.grad.numpy())
        layer.weight.grad = None


STOCHASTIC = HBFPFormat(mantissa=6, block=(1, 16), rounding="stochastic")
CASES = {
    "words": lambda: [noise.states(1, 16, 40), noise.states(2, 32, 40)],
    "conversion": lambda: converted(),
    "stochastic": lambda: converted(rounding="stochastic"),
    "gradual": lambda: converted(subnormals="gradual", mantissa=12),
    "floats": lambda: products(HBFPFormat()),
    "tiles": lambda: products(HBFPFormat(mantissa=6, block=(16, 16))),
    "pairs": lambda: products(HBFPFormat(mantissa=12)),
    "pairs twice": lambda: products(HBFPFormat(mantissa=16)),
    "doubles": lambda: products(HBFPFormat(mantissa=16), scale=2.0 ** -60),
    "fp24": lambda: products(HBFPFormat(), "fp24"),
    "fp24 pairs": lambda: products(HBFPFormat(mantissa=12), "fp24"),
    "bf16 pairs twice": lambda: products(HBFPFormat(mantissa=16), "bf16"),
    "fp24 doubles": lambda: products(HBFPFormat(mantissa=16), "fp24", scale=2.0 ** -60),
    "aligned": lambda: products(HBFPFormat(), "aligned"),
    "aligned, wide": lambda: products(HBFPFormat(mantissa=14), "aligned"),
    "linear": lambda: trained(lambda: torch.nn.Linear(40, 24), STOCHASTIC, 35, 40),
    "convolution": lambda: trained(lambda: torch.nn.Conv2d(24, 20, 3), "hbfp8", 2, 24, 9, 9),
    "long convolution": lambda: trained(lambda: torch.nn.Conv2d(24, 20, 3), "hbfp16", 2, 24, 9, 9),
    "groups": lambda: trained(lambda: torch.nn.Conv2d(24, 48, 3, groups=6), "hbfp8", 2, 24, 9, 9),
    "depthwise": lambda: trained(lambda: torch.nn.Conv2d(40, 40, 3, groups=40), "hbfp8", 2, 40, 9, 9),
    "depthwise fp24": lambda: trained(lambda: torch.nn.Conv2d(40, 40, 3, groups=40), "hbfp8", 2, 40, 9, 9,
                                      accumulate="fp24"),
    "groups bf16": lambda: trained(lambda: torch.nn.Conv2d(24, 48, 3, groups=6), "hbfp8", 2, 24, 9, 9,
                                   accumulate="bf16")}


def digest(name):
    return b"".join(np.ascontiguousarray(each).tobytes() for each in CASES[name]())


@pytest.fixture(params=[each.name for each in compiled.levels()[1:]] or ["none"])
def other(request, monkeypatch):
    """The kernels of a level that is not the best of this machine, compiled in a third of the time (-O1); the slow
    test below has them as they are used.
    """
    which = next((each for each in compiled.LEVELS if each.name == request.param), None)
    if which is None:
        pytest.skip("the machine has one level alone")
    monkeypatch.setattr(compiled, "_FLAGS", tuple("-O1" if flag == "-O3" else flag for flag in compiled._FLAGS))
    loaded = kernels.load(compiled.file(which))

    def use():
        monkeypatch.setattr(kernels, "library", lambda: loaded)
    return use


@needs_kernels
@pytest.mark.parametrize("name", CASES)
def test_every_level_gives_the_same_bits(name, other):
    """Those of the best, which the other tests of this folder hold to the definitions."""
    best = digest(name)
    other()
    assert digest(name) == best


@needs_kernels
@pytest.mark.slow
@pytest.mark.parametrize("level", [each.name for each in compiled.levels()[1:]])
def test_every_level_passes_all_tests_of_kernels(level):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "not slow", "tests/golden/fast",
                           "tests/golden/nn"], cwd=ROOT,
                          env=os.environ | {compiled.CHOICE: level}, capture_output=True, text=True)
    assert not done.returncode, done.stdout


# --- Which one --------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags, machine, names", [
    ("fpu sse2", "x86_64", ["native"]), (" ".join(sorted(compiled.LEVELS[1].needs)), "x86_64", ["avx2"]),
    (" ".join(sorted(compiled.LEVELS[0].needs)), "x86_64", ["avx512", "avx2"]),
    (" ".join(sorted(compiled.LEVELS[0].needs - {"avx512vl"})), "x86_64", ["avx2"]), ("asimd", "aarch64", ["native"])])
def test_levels_of_a_machine(monkeypatch, flags, machine, names):
    monkeypatch.setattr(compiled, "_processor", lambda: f"flags\t\t: {flags}")
    monkeypatch.setattr(compiled.platform, "machine", lambda: machine)
    assert [each.name for each in compiled.levels()] == names
    monkeypatch.delenv(compiled.CHOICE, raising=False)
    assert compiled.level().name == names[0]
    monkeypatch.setenv(compiled.CHOICE, names[-1])
    assert compiled.level().name == names[-1]
    monkeypatch.setenv(compiled.CHOICE, "0")
    assert compiled.level() is None
    monkeypatch.setenv(compiled.CHOICE, "mmx")
    with pytest.raises(OptionError, match="^HBFP_KERNELS mmx: must be 0 for NumPy, 1 for the best or, on this "
                       f"machine, {' or '.join(names)}$"):
        compiled.level()


def test_a_file_that_was_installed_is_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled, "_SOURCE", tmp_path / "kernels.cpp")
    (tmp_path / "kernels.cpp").write_text("one")
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    which = compiled.LEVELS[1]
    assert compiled.file(which) is None
    (tmp_path / compiled.name_of(which)).touch()
    assert compiled.file(which) == tmp_path / compiled.name_of(which)
    (tmp_path / "kernels.cpp").write_text("two")    # machine code of another text is not
    assert compiled.file(which) is None


# --- What fails -------------------------------------------------------------------------------------

PROGRAM = """if True:
    import numpy as np
    from golden.matmul import matmul
    from hbfp.format import HBFPFormat
    print(matmul(np.ones((2, 8), np.float32), np.ones((8, 2), np.float32), HBFPFormat()).sum())
"""


def run(program, tmp_path, **env):
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"HBFP_BUILD": str(tmp_path / "build")} | env)


def compiler(tmp_path, text):
    path = tmp_path / "cxx"
    path.write_text(f"#!/bin/sh\ncase $1 in --version) echo 1;; *) {text};; esac\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("text, reason", [
    ("echo 'x.h: error: no such thing' >&2; exit 1", r".*cxx cannot build kernels\.cpp: x\.h: error: no such thing"),
    ("kill -9 $$", r".*cxx cannot build kernels\.cpp: exit status -9"),
    ("touch $(echo $* | sed 's/.*-o \\([^ ]*\\).*/\\1/')", r".*kernels\.so: file too short"),
    ("exit 0", r".*kernels\.so: cannot open shared object file: No such file or directory")])
def test_a_compiler_that_fails(tmp_path, text, reason):
    """NumPy computes, and one line says why."""
    done = run(PROGRAM, tmp_path, CXX=compiler(tmp_path, text))
    assert (done.returncode, done.stdout) == (0, "32.0\n")
    first, second = done.stderr.splitlines()
    assert re.fullmatch(r"hbfp: compiling kernels\.cpp \(\w+\), once; that takes less than a minute", first)
    assert re.fullmatch(rf"hbfp: no compiled kernels, NumPy computes instead, more slowly \({reason}\)", second), second


def test_a_compiler_without_a_version(tmp_path):
    done = run(PROGRAM, tmp_path, CXX="false")
    assert (done.returncode, done.stdout) == (0, "32.0\n")
    assert re.fullmatch(r"hbfp: no compiled kernels, NumPy computes instead, more slowly "
                        r"\(Command .* returned non-zero exit status 1\.\)\n", done.stderr)


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    """No byte can be written: files have at most 0."""
    (tmp_path / "build").mkdir()
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + PROGRAM
    done = run(program, tmp_path)
    assert (done.returncode, done.stdout) == (0, "32.0\n")
    assert done.stderr.splitlines()[-1].startswith("hbfp: no compiled kernels, NumPy computes instead, more slowly (")
    assert "Traceback" not in done.stderr


def test_a_level_that_is_none(tmp_path):
    """Of a command it is bad input."""
    words = ["-m", "golden", "error", "--mantissa", "4", "--elements", "1000"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {compiled.CHOICE: "mmx"})
    assert done.returncode == 2 and done.stderr.startswith("python -m golden: error: HBFP_KERNELS mmx: must be 0 for")


@needs_kernels
def test_a_library_is_what_it_was():
    assert isinstance(kernels.library(), ctypes.CDLL) and kernels.library() is kernels.loaded()
