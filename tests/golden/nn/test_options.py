"""A name that is mistyped in a call of golden.nn is an error, where it runs and for mypy."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
import hbfp  # noqa: E402
from golden.nn import functional, fused  # noqa: E402
from hbfp.checkout import PARTS  # noqa: E402

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/examples/typed.py"
FORMATS = "w, g, order, accumulate, guard, growth, mode"
#: Calls with a name that is wrong -> the message that we give, or None where it is Python's own.
WRONG = {
    "gn.convert(net, 'hbfp8', acumulate='aligned')":
        "convert() has no argument 'acumulate'; did you mean 'accumulate'?",
    "gn.convert(net, 'hbfp8', exlude=['head'])": "convert() has no argument 'exlude'; did you mean 'exclude'?",
    "gn.convert(net, 'hbfp8', quality=1)":
        "convert() has no argument 'quality'; it has module, fmt, exclude, only, layers, seed, strict, example, side, "
        f"noise, {FORMATS}",
    "gn.Formats.of('hbfp8', gard=4)": "Formats.of() has no argument 'gard'; did you mean 'guard'?",
    "gn.HBFPLinear(4, 4, mantisa=4)":
        "HBFPLinear() has no argument 'mantisa'; it has in_features, out_features, bias, fmt, seed, device, "
        f"{FORMATS}",
    "gn.HBFPConv2d(4, 4, 3, strid=2)": "HBFPConv2d() has no argument 'strid'; did you mean 'stride'?",
    "gn.HBFPLSTM(4, 4, bidirectionl=True)":
        "HBFPLSTM() has no argument 'bidirectionl'; did you mean 'bidirectional'?",
    "gn.HBFPMultiheadAttention(4, 2, droput=0.1)":
        "HBFPMultiheadAttention() has no argument 'droput'; did you mean 'dropout'?",
    "gn.HBFPLinear.of(net, grwth=2)": "HBFPLinear() has no argument 'grwth'; did you mean 'growth'?",
    "hbfp.HBFPConfig('hbfp8', acumulate='aligned')": None, "hbfp.quantize_(net, 'hbfp8', filter=None)": None,
    "gn.HBFPFormat(mantisa=8)": None, "gn.MixedMantissa(bas=4)": None,
    "gn.wide_weights(optimiser, format=gn.HBFPFormat())": None, "gn.optimiser(optimiser, gn.DESIGN_SIDE, of=1)": None,
    "gn.quantise(x, 'hbfp8', axs=-1)": None, "gn.report(net, x, mask=None)": None,
    "gn.errors(net, x, los=torch.sum)": None, "gn.fp32_products(net, x, mask=None)": None,
    "gn.distances(net, x, mask=None)": None, "gn.freeze(net, every=True)": None, "gn.thaw(net, every=True)": None,
    "gn.sparsify(net, '2:4', evry=2)": None, "gn.densify(net, every=True)": None, "gn.weights(net, prefx='')": None,
    "gn.begin_step(net, number=1, numbr=2)": None, "gn.hbfp_layers(net, owns=True)": None,
    "functional.linear(x, x, format='hbfp8')": None, "functional.matmul(x, x, fmt='hbfp8')": None,
    "functional.conv2d(x, x, strides=1)": None, "functional.scaled_dot_product_attention(x, x, x, masks=x)": None,
    "fused.fuse([net], seed=1)": None, "fused.cross_entropy(x, x, 1, reduction='sum')": None,
    "fused.mse_loss(x, x, 1, reduction='sum')": None, "fused.seed_dropout(net, sed=1)": None,
    "fused.Step(fused.fuse([net]), [optimiser], every=1)": None}
INNER = "from hbfp.golden.nn import functional, fused"
NET = "net = torch.nn.Linear(4, 4)\noptimiser = torch.optim.SGD(net.parameters(), 0.1)\nx = torch.ones(2, 4)\n"


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_name_is_an_error_where_it_runs(call):
    net = torch.nn.Linear(4, 4)
    given = {"hbfp": hbfp, "gn": gn, "functional": functional, "fused": fused, "torch": torch, "net": net,
             "x": torch.ones(2, 4), "optimiser": torch.optim.SGD(net.parameters(), 0.1)}
    with pytest.raises(TypeError) as error:
        eval(call, given)
    name = re.findall(r"(\w+)=", call)[-1]
    python = rf"[\w.]+\(\) got an unexpected keyword argument '{name}'"
    assert str(error.value) == WRONG[call] if WRONG[call] else re.fullmatch(python, str(error.value))
    assert type(net) is torch.nn.Linear


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """mypy of a script of a user's, who has the package installed, checked as strictly as it goes.

    torch's ``backward()`` has no types, which ``--strict`` alone holds against its callers.
    """
    place = tmp_path_factory.mktemp("user")
    (place / "hbfp").mkdir()
    for path in [*(ROOT / "hbfp").iterdir(), *(ROOT / part for part in PARTS)]:
        (place / "hbfp" / path.name).symlink_to(path)
    (place / "mypy.ini").write_text("[mypy]\nstrict = true\nallow_untyped_calls = true\n"
                                    f"cache_dir = {ROOT}/build/mypy-user\n"
                                    "[mypy-hbfp.*]\nfollow_imports = silent\n")

    def check(text):
        (place / "script.py").write_text(text)
        return subprocess.run([sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "script.py"], cwd=place,
                              capture_output=True, text=True)
    return check


def test_mypy_finds_every_wrong_name(user):
    head = f"import torch\n\nimport hbfp\nimport hbfp.golden.nn as gn\n{INNER}\n\n{NET}"
    first = head.count("\n") + 1
    found = user(head + "\n".join(WRONG)).stdout
    lines = {int(line.split(":")[1]) for line in found.splitlines() if "Unexpected keyword argument" in line}
    assert lines == set(range(first, first + len(WRONG))), found


def test_mypy_is_quiet_about_a_right_script(user):
    found = user(EXAMPLE.read_text())
    assert found.stdout == "Success: no issues found in 1 source file\n", found.stdout + found.stderr


def test_the_right_script_runs(capsys):
    runpy.run_path(str(EXAMPLE))["main"]()
    assert capsys.readouterr().out == ("2 products, 0 in FP32\nworst: True\nmargins: 32\nshapes: (32, 32) 0\n"
                                       "logged: (32,)\ntogether: 2 (3, 32, 32)\n")


def test_classes_survive_for_mypy(user):
    text = ("import torch\n\nimport hbfp.golden.nn as gn\n\nnet = torch.nn.Sequential(torch.nn.Linear(4, 4))\n"
            "a: torch.nn.Sequential = gn.freeze(gn.convert(net))\n"
            "b: torch.optim.SGD = gn.wide_weights(torch.optim.SGD(net.parameters(), 0.1))\n"
            "c: torch.nn.Linear = gn.convert(net)\n")
    found = user(text).stdout
    assert found.count("error:") == 1 and "script.py:8: error: Incompatible types in assignment" in found, found
