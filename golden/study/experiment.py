"""One training run that can be killed at any moment and goes on to the same final bits."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from hbfp import files
from hbfp.checks import check_choice, check_range
from hbfp.format import HBFPFormat

from ..command.options import BATCH_RANGE, EPOCHS_RANGE, SEED_RANGE
from ..nn.optimiser import wide_weights
from ..nn.replace import convert, hbfp_layers
from ..schedule import MixedMantissa
from . import shares, tasks

#: Defaults of a task: epochs, batch, learning rate.
RECIPES = {"digits": (30, 32, 0.05), "teacher": (25, 64, 0.1)}


@dataclass(frozen=True, kw_only=True)
class Run:
    """All that decides the bits of a training run; ValueError if a value is not valid.

    Parameters
    ----------
    task : str
        One of :data:`golden.study.tasks.TASKS`.
    fmt : HBFPFormat or None
        Format of all roles; None trains in FP32.
    boost : int
        Mantissa width of what is boosted, by default the last epoch and the first and last layer; 0 boosts nothing.
    last_epochs, ends, first, last, intervals
        What is boosted, as of :class:`golden.schedule.MixedMantissa`.
    wide : bool
        Keep master weights in HBFP with 16-bit mantissas.
    accumulate : str
        As of :func:`golden.matmul.matmul`.
    seed : int
        Seed of start, data order and noise.
    epochs, batch : int
        0 takes the task's.
    rate : float
        Learning rate of SGD with momentum 0.9 on a cosine; 0 takes the task's.
    """
    task: str = "digits"
    fmt: HBFPFormat | None = field(default_factory=lambda: HBFPFormat(block=(1, 16)))
    boost: int = 0
    last_epochs: int = 1
    ends: bool = True
    first: int = 0
    last: int = 0
    intervals: tuple[tuple[int, int], ...] = ()
    wide: bool = False
    accumulate: str = "fp32"
    seed: int = 0
    epochs: int = 0
    batch: int = 0
    rate: float = 0.0

    def __post_init__(self):
        check_choice("Task", self.task, tasks.TASKS)
        check_range("Seed", self.seed, *SEED_RANGE)
        check_range("Epochs", self.epochs, *EPOCHS_RANGE)
        check_range("Batch", self.batch, *BATCH_RANGE)
        if self.rate < 0:
            raise ValueError(f"Rate must be 0 or more, not {self.rate!r}")
        for name, value in zip(("epochs", "batch", "rate"), RECIPES[self.task], strict=True):
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        if self.boost and self.fmt is None:
            raise ValueError(f"Boost needs an HBFP format, not {self.boost!r} with FP32")
        self.schedule()

    def schedule(self) -> MixedMantissa | None:
        """The widths by epoch and layer, None without a boost."""
        if not self.boost or self.fmt is None:
            return None
        return MixedMantissa(base=self.fmt.mantissa, boosted=self.boost, epochs=self.epochs,
                             last_epochs=self.last_epochs, ends=self.ends, first=self.first, last=self.last,
                             intervals=self.intervals)

    @property
    def name(self) -> str:
        """What a table calls the configuration, the seed left out."""
        if self.fmt is None:
            return "fp32"
        text = f"hbfp{self.fmt.mantissa}" + (f"+{self.boost}" if self.boost else "")
        extras = [self.fmt.rounding] * (self.fmt.rounding != "rne") + ["wide"] * self.wide
        published = self.last_epochs == 1 and self.ends and not (self.first or self.last or self.intervals)
        if self.boost and not published:
            extras.append(f"boosted: {self.boosts}")
        return " ".join([text, "x".join(map(str, self.fmt.block)), *extras])

    @property
    def boosts(self) -> str:
        """What is boosted, in words."""
        words = [f"last {self.last_epochs} epochs"] * bool(self.last_epochs)
        words += [f"epochs {start} to {stop - 1}" for start, stop in self.intervals]
        for name, width in (("first", self.first), ("last", self.last)):
            words += [f"{name} layer" + f" at {width}" * bool(width)] * bool(self.ends or width)
        return ", ".join(words) or "nothing"

    @property
    def key(self) -> str:
        """Name of the run's files: a hash of everything."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def train(run: Run, folder: Path | None = None, progress: Callable[[int], object] | None = None) -> dict[str, Any]:
    """Train, epoch by epoch, with a checkpoint after each.

    Parameters
    ----------
    run : Run
        What to train.
    folder : path, optional
        Where ``KEY.pt`` (checkpoint) and ``KEY.json`` (result) live; a finished run is read, a
        started one continued.
    progress : callable, optional
        Called with the number of epochs done.

    Returns
    -------
    dict
        ``run`` (its data), ``name``, ``share`` of the arithmetic at each width, ``accuracy`` in percent on
        the test data after the last epoch, ``curve`` (loss and accuracy per epoch), ``digest`` (SHA-256 of the final
        parameters).
    """
    folder = None if folder is None else Path(folder)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        done = folder / f"{run.key}.json"
        if done.exists():
            if progress:
                progress(run.epochs)
            return json.loads(done.read_text())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)                           # FP32 products depend on the number; the nets are small
    try:
        return _train(run, folder, progress)
    finally:
        torch.set_num_threads(threads)


def _train(run, folder, progress):
    """The training itself."""
    x, y, x_test, y_test = tasks.load(run.task)
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        net = tasks.network(run.task)
    counts = shares.products(net, x[:1])
    if run.fmt is not None:
        # Layers count on from here: a thousand to each run, around and around in 32 bits.
        convert(net, run.fmt, seed=(1 + 1000 * run.seed) % (2 ** 32 - 1000), accumulate=run.accumulate)
    optimiser = torch.optim.SGD(net.parameters(), run.rate, momentum=0.9, weight_decay=1e-4)
    if run.wide:
        wide_weights(optimiser)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, run.epochs)
    schedule, parts, curve = run.schedule(), {"net": net, "optimiser": optimiser, "scheduler": scheduler}, []
    checkpoint = folder and folder / f"{run.key}.pt"
    if checkpoint and checkpoint.exists():
        state = torch.load(checkpoint)
        curve = state["curve"]
        if schedule:
            schedule.apply(hbfp_layers(net), max(0, len(curve) - 1))
        for name, part in parts.items():
            part.load_state_dict(state[name])
    for epoch in range(len(curve), run.epochs):
        if progress:
            progress(epoch)
        if schedule:
            schedule.apply(hbfp_layers(net), epoch)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(run.seed * 100_003 + epoch))
        loss_sum = 0.0
        for rows in order.split(run.batch):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x[rows]), y[rows])
            loss.backward()
            optimiser.step()
            loss_sum += loss.item() * len(rows)
        scheduler.step()
        with torch.no_grad():
            accuracy = (net(x_test).argmax(1) == y_test).double().mean().item() * 100
        curve.append({"loss": loss_sum / len(x), "accuracy": accuracy})
        if checkpoint:
            state = {name: part.state_dict() for name, part in parts.items()} | {"curve": curve}
            with files.replacing(checkpoint) as temporary:
                torch.save(state, temporary)
    if progress:
        progress(run.epochs)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()
    share = {run.fmt.mantissa: 1.0} if run.fmt else {}
    if schedule:
        share = shares.share_of(schedule, net, counts)
    result = {"run": asdict(run), "name": run.name, "share": share,
              "accuracy": curve[-1]["accuracy"], "curve": curve, "digest": digest}
    result = json.loads(json.dumps(result))            # as it will be read back
    if folder:
        files.write_json(folder / f"{run.key}.json", result)
        checkpoint.unlink(missing_ok=True)
    return result
