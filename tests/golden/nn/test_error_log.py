"""Errors through a training: what a file has of them, when, and that the training does not see it."""

import csv
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.nn.error_log import COLUMNS  # noqa: E402
from hbfp import extras  # noqa: E402

F = torch.nn.functional


def net(fmt="hbfp4"):
    torch.manual_seed(0)
    return gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Dropout(0.5), torch.nn.Linear(6, 3)), fmt)


def batches(count):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(4, 8, generator=generator), torch.arange(4) % 3) for _ in range(count)]


def loss(y, batch):
    return F.cross_entropy(y, batch[1])


def train(model, count, log=None):
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for batch in batches(count):
        if log is not None:
            log.step(model, batch)
        optimiser.zero_grad()
        loss(model(batch[0]), batch).backward()
        optimiser.step()
    return model


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_so_many_steps(tmp_path):
    train(net(), 7, gn.ErrorLog(tmp_path / "new/errors.csv", every=3, loss=loss))
    found = rows(tmp_path / "new/errors.csv")
    operands = [("0", product, role) for product, role in (("y", "x"), ("y", "w"))]
    assert list(found[0]) == list(COLUMNS) and sorted({row["step"] for row in found}) == ["0", "3", "6"]
    assert [(row["layer"], row["product"], row["role"]) for row in found][:2] == operands
    # Of the first layer no gradient of the inputs is asked for: y and gw; of the last gx, too.
    assert len(found) == 3 * (4 + 6)


def test_rows_are_what_errors_says(tmp_path):
    model, batch = net(), batches(1)[0]
    log = gn.ErrorLog(tmp_path / "errors.csv", loss=loss)
    found = log.step(model, batch)
    want = gn.errors(model, batch[0], loss=lambda y: loss(y, batch))
    assert str(found) == str(want)
    for row, each in zip(rows(log.path), want.operands, strict=True):
        counted = max(each.exponents, key=lambda exponent: each.exponents[exponent])
        assert row == {name: str(value) for name, value in {
            "step": 0, "layer": each.layer, "operation": each.operation, "product": each.product, "role": each.role,
            "format": each.format, "elements": each.elements, "qsnr": each.qsnr,
            "saturated_share": each.saturated_share, "flushed_share": each.flushed_share,
            "least_exponent": min(each.exponents), "most_frequent_exponent": counted,
            "greatest_exponent": max(each.exponents), "invalid": each.invalid}.items()}


@pytest.mark.parametrize("fmt", ["hbfp4", gn.HBFPFormat(mantissa=4, rounding="stochastic")], ids=str)
def test_the_training_keeps_its_bits(tmp_path, fmt):
    alone, seen = train(net(fmt), 5), train(net(fmt), 5, gn.ErrorLog(tmp_path / "a.csv", every=2, loss=loss))
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), seen.parameters(), strict=True))


def test_what_is_exact_has_no_figure(tmp_path):
    model = gn.convert(torch.nn.Linear(4, 2), "hbfp8")
    log = gn.ErrorLog(tmp_path / "errors.csv")
    log.step(model, torch.zeros(3, 4))
    x = rows(log.path)[0]
    assert (x["role"], x["qsnr"], x["least_exponent"], x["greatest_exponent"]) == ("x", "", "", "")


@pytest.mark.parametrize("batch, inputs", [
    (torch.ones(2, 8), None), ((torch.ones(2, 8), 1), None), ([torch.ones(2, 8), 1], None),
    ({"input": torch.ones(2, 8)}, None), ({"a": (torch.ones(2, 8), 3)}, lambda batch: batch["a"][0]),
    ({"a": torch.ones(2, 8)}, lambda batch: (batch["a"],))],
    ids=["tensor", "tuple", "list", "names", "chosen", "several"])
def test_batches_of_any_form(tmp_path, batch, inputs):
    log = gn.ErrorLog(tmp_path / "errors.csv", **({} if inputs is None else {"inputs": inputs}))
    model = gn.convert(torch.nn.Linear(8, 2), "hbfp4")
    assert str(log.step(model, batch)) == str(gn.errors(model, torch.ones(2, 8)))


class Trainer:
    """Stands in for Lightning's: calls hooks by name on callbacks of its class, which have all of them."""

    class Callback:
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): ...
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
        def on_fit_end(self, trainer, pl_module): ...

    def __init__(self, callback, zero=True):
        assert isinstance(callback, self.Callback)
        self.callback, self.global_step, self.is_global_zero = callback, 0, zero

    def fit(self, module, data, accumulate=1):
        for number, batch in enumerate(data):
            self.callback.on_train_batch_start(self, module, batch, number)
            self.callback.on_train_batch_end(self, module, None, batch, number)
            self.global_step += (number + 1) % accumulate == 0
        self.callback.on_fit_end(self, module)


class Log(gn.ErrorLog, Trainer.Callback):
    """As the docstring says it."""


def test_lightning(tmp_path):
    Trainer(Log(tmp_path / "a.csv", every=2, loss=loss)).fit(net(), batches(5))
    assert list(dict.fromkeys(row["step"] for row in rows(tmp_path / "a.csv"))) == ["0", "2", "4"]
    # Two batches a step: the first of each counts.
    Trainer(Log(tmp_path / "b.csv", every=1)).fit(net(), batches(6), accumulate=2)
    assert [row["step"] for row in rows(tmp_path / "b.csv")] == [step for step in "012" for _ in range(4)]
    Trainer(Log(tmp_path / "c.csv"), zero=False).fit(net(), batches(3))
    assert rows(tmp_path / "c.csv") == []


class Writer:
    """Stands in for TensorBoard's writer."""

    def __init__(self, folder=None):
        self.folder, self.seen, self.closed = folder, [], False

    def add_scalar(self, name, value, step):
        self.seen.append((name, value, step))

    def close(self):
        self.closed = True


def test_curves_for_tensorboard(tmp_path, monkeypatch):
    made = []
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = lambda folder: made.append(Writer(folder)) or made[-1]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(extras, "find_spec", lambda name: name == "tensorboard")
    given = Writer()
    for name, where in (("a.csv", tmp_path / "events"), ("b.csv", given)):
        log = gn.ErrorLog(tmp_path / name, every=2, tensorboard=where)
        train(net(), 3, log)
        log.close()
    assert made[0].folder == str(tmp_path / "events") and (made[0].closed, given.closed) == (True, False)
    assert made[0].seen == given.seen and len(given.seen) == 2 * 4 * 3
    row = rows(tmp_path / "a.csv")[1]
    assert given.seen[3:6] == [(f"{figure}/0 linear y w", float(row[figure]), 0)
                               for figure in ("qsnr", "saturated_share", "flushed_share")]


def test_a_training_goes_on(tmp_path):
    path = tmp_path / "errors.csv"
    train(net(), 3, gn.ErrorLog(path, every=2))
    log = gn.ErrorLog(path, every=2, resume=True)
    log.step(net(), batches(1)[0], 4)
    assert [row["step"] for row in rows(path)] == [step for step in "024" for _ in range(4)]


def test_refused(tmp_path):
    there, other = tmp_path / "there.csv", tmp_path / "other.csv"
    there.write_text("a,b\n")
    for make, kind, message in (
            (lambda: gn.ErrorLog(there), FileExistsError, f"{there} is there already; resume=True goes on with it"),
            (lambda: gn.ErrorLog(there, resume=True), ValueError,
             f"{there} must have the columns {', '.join(COLUMNS)}, not a, b"),
            (lambda: gn.ErrorLog(other, every=0), ValueError, "Interval must be 1 to 2147483647 steps, not 0"),
            (lambda: gn.ErrorLog(other).step(torch.nn.Linear(8, 2), torch.ones(1, 8)), ValueError,
             "No product of the model is HBFP: convert it first; of a fused job give one of its models")):
        with pytest.raises(kind) as error:
            make()
        assert str(error.value) == message
    assert there.read_text() == "a,b\n"


def test_tensorboard_that_is_missing_is_said_before_the_training(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="^No module named 'tensorboard'$"):
        gn.ErrorLog(tmp_path / "errors.csv", tensorboard="events")
    assert not (tmp_path / "errors.csv").exists()
