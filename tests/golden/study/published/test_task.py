"""Tasks as files, formats by name: all that ship are valid, and what is wrong is said in one line.

Covers: golden/study/published/formats.py, golden/study/published/models.py.
"""

import re

import pytest

torch = pytest.importorskip("torch")

from golden.spec.numbers import NUMBERS  # noqa: E402
from golden.study.published import task as tasks  # noqa: E402
from golden.study.published.data import loader  # noqa: E402
from golden.study.published.formats import RULE, Format  # noqa: E402
from golden.study.published.generate import GENERATORS  # noqa: E402
from golden.study.published.models import HELD, MODELS, densenet40, lstm, resnet50  # noqa: E402
from golden.study.published.task import options, read  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402
from hbfp.values import OptionError  # noqa: E402


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_is_valid(name):
    task = read(name)
    found, given = loader(task.data)
    options((MODELS | HELD)[task.model["kind"]], task.model, "model.")
    assert task.name == name and set(task.published) <= set(task.formats)
    assert bool(task.published) == bool(task.source)
    assert task.data["kind"] in GENERATORS or not found.files(**given)


def test_formats_by_name():
    assert Format.of("fp32") == Format(name="fp32")
    assert Format.of("hbfp8_576").fmt == HBFPFormat(mantissa=8, block=(24, 24))
    assert Format.of("hbfp6_225").fmt == HBFPFormat(mantissa=6, block=(15, 15))
    assert Format.of("hbfp4_1").fmt == HBFPFormat(mantissa=4, block=(1, 1))
    assert Format.of("hbfp4_1x48+6") == Format(name="hbfp4_1x48+6", fmt=HBFPFormat(mantissa=4, block=(1, 48)), boost=6)
    first, last = Format.of("2:4-hbfp6_64"), Format.of("hbfp6_64-2:4")
    assert first.fmt == last.fmt == HBFPFormat(mantissa=6, block=(8, 8)) and first.sparsity == last.sparsity == "2:4"
    assert (first.order, last.order) == ("sparsify-quantise", "quantise-sparsify")
    assert Format.of("2:4") == Format(name="2:4", sparsity="2:4")
    assert Format.of("mxfp8") == Format(name="mxfp8", fmt=NUMBERS["mxfp8-e4m3"])
    assert Format.of("mxfp8-e5m2-2:4") == Format(name="mxfp8-e5m2-2:4", fmt=NUMBERS["mxfp8-e5m2"], sparsity="2:4",
                                                order="quantise-sparsify")


@pytest.mark.parametrize("name", ["", "hbfp8", "hbfp8_500", "hbfp_16", "mxfp5", "2:4-2:4", "2:4-mxfp4-2:4",
                                  "hbfp8_64-hbfp6_64", "2:4-fp32", "hbfp8_64+", "hbfp8_2x32"])
def test_wrong_format(name):
    with pytest.raises(ValueError, match=f"^{re.escape(RULE)}$"):
        Format.of(name)


GOOD = {"title": '"T"', "data": '{kind = "digits"}', "model": '{kind = "mlp", sizes = [64]}', "metric": '"error"',
        "formats": '["fp32"]'}


def written(folder, **changed):
    path = folder / "own.toml"
    path.write_text("".join(f"{name} = {value}\n" for name, value in (GOOD | changed).items() if value))
    return str(path)


def test_own_task(tmp_path):
    task = read(written(tmp_path, recipe="{rate = 1}", published="{fp32 = 5}"))
    assert (task.name, task.epochs, task.recipe.rate, task.recipe.kind, task.published) == (
        "own", 1, 1.0, "sgd", {"fp32": 5})
    assert read(written(tmp_path)).recipe is None


@pytest.mark.parametrize("changed, line", [
    ({"title": ""}, "lacks the key title"), ({"epochs": "0"}, "epochs must be 1 or more, not 0"),
    ({"epochs": "true"}, "epochs must be a whole number, not True"),
    ({"epoch": "3"}, ("unknown key epoch; valid are name, title, data, model, metric, formats, recipe, epochs, batch, "
                     "together, published, source")),
    ({"metric": '"speed"'}, "metric must be one of error, accuracy, perplexity, not speed"),
    ({"formats": '"fp32"'}, "formats must be a list, not fp32"),
    ({"formats": '["hbfp8"]'}, f"format hbfp8: {RULE}"),
    ({"formats": '["hbfp1_64"]'}, "format hbfp1_64: Mantissa width must be 2 to 16 bits, not 1"),
    ({"recipe": "{rat = 1}"}, ("unknown key recipe.rat; valid are kind, rate, momentum, nesterov, decay, clip, "
                              "schedule, milestones, factor, warmup")),
    ({"recipe": "{milestones = ['a']}"}, "recipe.milestones must be a number, not a"),
    ({"recipe": '{schedule = "up"}'}, "recipe.schedule must be one of constant, cosine, linear, steps, not up"),
    ({"published": '{fp32 = "low"}'}, "published.fp32 must be a number, not low"),
])
def test_wrong_task(tmp_path, changed, line):
    path = written(tmp_path, **changed)
    with pytest.raises(OptionError, match=f"^{re.escape(f'--task {path}: {line}')}$"):
        read(path)


def test_no_task(tmp_path):
    with pytest.raises(OptionError, match=r"^--task cifar: must be one of .*resnet20-cifar10.*, or a TOML file like "
                                          r"these$"):
        read("cifar")
    path = tmp_path / "broken.toml"
    path.write_text("a = ")
    with pytest.raises(OptionError, match=f"^{re.escape(f'--task {path}: is no TOML (')}.*\\)$"):
        read(str(path))


def test_models():
    """DenseNet-40 has about 1.0 M parameters (Huang et al. 2017); those of an LSTM are counted by hand."""
    def count(net):
        return sum(p.numel() for p in net.parameters())
    assert 1.0e6 < count(densenet40(10)) < 1.1e6
    net = lstm(100, width=8, layers=2)
    assert count(net) == 100 * 8 + 2 * (2 * 4 * 8 * 8 + 2 * 4 * 8) + 100 * 8 + 100
    assert count(lstm(100, width=8, tied=True)) == count(net) - 800
    assert [each.kernel_size for each in resnet50(5).modules() if isinstance(each, torch.nn.Conv2d)].count((3, 3)) == 25
