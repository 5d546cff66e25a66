"""A user's own model beside FP32: every operand of its products on one batch, as figures and as a picture."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hbfp import files
from hbfp.format import HBFPFormat

from ..nn import Errors, convert, errors
from .tune_model import Model, ModelError

#: Of each role, readable with colour-blind eyes (Okabe and Ito).
COLOURS = {"x": "#0072b2", "w": "#d55e00", "g": "#009e73"}
#: Height of a row in inches, and rows that a picture has at most: more has no PNG that viewers open.
ROW, MOST = 0.19, 1500


def examine(name: str, fmt: HBFPFormat, *, params: dict[str, Any] | None = None, checkpoint: Path | None = None,
            seed: int = 0) -> Errors:
    """Errors of the model of a file on the first batch of its training data, with cross-entropy as loss.

    Parameters
    ----------
    name : str
        As of :class:`golden.study.tune_model.Search`.
    fmt : HBFPFormat
        Of all products.
    params : dict
        What the file's trial suggests; what is left out is drawn from ``seed``, as the first weights are.
    checkpoint : Path
        A ``state_dict`` that ``torch.save`` has written, of the model as it is or converted.

    Raises
    ------
    ModelError
        If the file, a parameter or the checkpoint is not what is needed; one line.
    """
    model, params = Model(name), params or {}
    net = convert(_net(model, params, seed), fmt)
    if checkpoint is not None:
        _load(net, checkpoint)
    x, classes = (tensor[:model.batch] for tensor in model.data[:2])
    return model.call("errors", lambda: errors(net, x, loss=lambda y: torch.nn.functional.cross_entropy(y, classes)))


def _net(model, params, seed):
    """The network of a trial with ``params``."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    study.enqueue_trial(params)
    trial = study.ask()
    with warnings.catch_warnings(action="ignore"):     # of values out of range, which Optuna takes
        net = model.net(trial, seed)
    for name, value in params.items():
        if name not in trial.params:
            known = ", ".join(trial.params) or "nothing: model(trial) suggests none"
            raise ModelError(f"--params {name}={value}: must be of {known}")
        if trial.params[name] != value or not _allowed(trial.distributions[name], value):
            raise ModelError(f"--params {name}={value}: must be one of the values that model(trial) allows")
    return net


def _allowed(values, value):
    """Whether a value is among those of an Optuna distribution."""
    if isinstance(values, optuna.distributions.CategoricalDistribution):
        return value in values.choices
    return values.low <= value <= values.high


def _load(net, checkpoint):
    try:
        net.load_state_dict(torch.load(checkpoint, weights_only=True))
    except Exception as error:
        line = " ".join(str(error).split())
        raise ModelError(f"--checkpoint {checkpoint}: {type(error).__name__}: {line[:300]}") from error


def picture(found: Errors, path: Path, title: str) -> None:
    """QSNR, saturated and flushed shares and shared exponents, a row for each operand, as PNG.

    Raises
    ------
    ModelError
        If there are more than :data:`MOST` operands.
    """
    if len(found.operands) > MOST:
        raise ModelError(f"A picture has at most {MOST} operands, not {len(found.operands)}; the table has all")
    rows = _sorted(found.operands)
    figure = Figure((13, 1.3 + ROW * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    quality, saturated, flushed, exponents = figure.subplots(1, 4, sharey=True, width_ratios=(1, 0.8, 0.8, 1.4))
    _bars(quality, rows, lambda each: each.qsnr, "{:.1f}", "QSNR, dB")
    _bars(saturated, rows, lambda each: 100 * each.saturated_share, "{:.2f}", "saturated, % of what is not 0")
    _bars(flushed, rows, lambda each: 100 * each.flushed_share, "{:.2f}", "flushed to 0, % of what is not 0")
    _exponents(exponents, rows)
    quality.set_ylim(len(rows) - 0.4, -0.6)
    for i, name in enumerate(names := _names(rows)):
        if i and " " * 3 in name:                      # the first of a layer
            for axes in (quality, saturated, flushed, exponents):
                axes.axhline(i - 0.5, color="#bbbbbb", linewidth=0.6)
    quality.set_yticks(range(len(rows)), names, fontsize=8)
    for label, each in zip(quality.get_yticklabels(), rows, strict=True):
        label.set_color(COLOURS[each.role])
    figure.suptitle(title, fontsize=11)
    with files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=100, format="png")


def _sorted(operands):
    """Operands of a layer together, in the order of the first call."""
    places: dict[tuple[str, str], int] = {}
    for each in operands:
        places.setdefault((each.layer, each.operation), len(places))
    return sorted(operands, key=lambda each: places[each.layer, each.operation])


def _names(rows):
    """What a row is called: the layer at its first row alone."""
    names, before = [], None
    for each in rows:
        layer = f"{each.layer or '(model)'} {each.operation}"
        names.append(f"{layer + '   ' if layer != before else ''}{each.product}: {each.role}")
        before = layer
    return names


def _bars(axes: Any, rows: Any, figure: Callable[[Any], float | None], form: str, title: str) -> None:
    values = [figure(each) for each in rows]
    axes.barh(range(len(rows)), [value or 0 for value in values], color=[COLOURS[each.role] for each in rows],
              height=0.7)
    for i, value in enumerate(values):
        axes.annotate("exact" if value is None else form.format(value), (max(value or 0, 0), i), (3, 0),
                      textcoords="offset points", va="center", fontsize=7)
    ends = [0, *(value for value in values if value is not None)]
    axes.set_xlim(min(ends), (max(ends) or 1) * 1.2)   # room for the figure beside the longest bar
    _bare(axes, title)


def _exponents(axes, rows):
    """Share of an operand's blocks at each exponent, the darker the more; few are to be seen, too."""
    every = [exponent for each in rows for exponent in each.exponents]
    low, high = min(every, default=0), max(every, default=0)
    shares = np.zeros((len(rows), high - low + 1))
    for i, each in enumerate(rows):
        for exponent, blocks in each.exponents.items():
            shares[i, exponent - low] = blocks / sum(each.exponents.values())
    axes.imshow(shares ** 0.5, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest",
                extent=(low - 0.5, high + 0.5, len(rows) - 0.5, -0.5))
    axes.xaxis.get_major_locator().set_params(integer=True)
    _bare(axes, "shared exponents, the darker the more blocks")


def _bare(axes, title):
    axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
