"""One format of a task: several seeds are trained and judged, together or one by one; killed anywhere, it goes on.

What a step does follows from the state before it and from its number: the order of samples, their moves and dropout
are drawn from seed and step. A checkpoint after any step therefore gives the bits of a run that was never stopped.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch

from hbfp import files
from hbfp.format import HBFPFormat

from ...nn import HBFPConv2d, HBFPLinear, convert, errors, fused, hbfp_layers, report, sparsify, wide_weights
from ...schedule import MixedMantissa
from ...sparsity import prune
from ...spec.numbers import Number
from .. import shares
from .formats import Format
from .models import DENSE, model
from .task import Task, TaskError

#: Samples of the report by layer.
REPORTED = 8


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that decides the bits of the results of one format.

    Parameters
    ----------
    task : Task
        What is learned, with the recipe, epochs and batch in force.
    format : Format
        By name.
    fmt : HBFPFormat, Number or None
        The same with rounding and other options; None for FP32.
    accumulate : str
        As of :func:`golden.matmul.matmul`.
    wide : bool
        Keep master weights in HBFP with 16-bit mantissas.
    steps : int
        Length of the training; 0: all epochs.
    device : str
        Of torch.
    data, model : str
        Digests of the data, and of the folder of the model, if it has one.
    """
    task: Task
    format: Format
    fmt: HBFPFormat | Number | None
    accumulate: str
    wide: bool
    steps: int
    device: str
    data: str
    model: str = ""

    def key(self, *seeds: int) -> str:
        """Name of the files of a seed, or of a job of several."""
        table = asdict(self)
        for name in ("title", "published", "source", "formats", "together"):
            del table["task"][name]
        text = json.dumps([table, *seeds], sort_keys=True)
        return f"{self.format.name.replace(':', 'of')}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class Job:
    """Several seeds of one format.

    Parameters
    ----------
    work : Work
        What is done.
    data : object
        As of :mod:`golden.study.published.data`.
    seeds : sequence of int
        Of first weights, order and noise.
        Several are one job of :mod:`golden.nn.fused`, if the task says so and the device is the CPU; else they make
        their steps one after another.
    folder : path, optional
        Of the model.
    """

    def __init__(self, work: Work, data: Any, seeds: Sequence[int], folder: Path | None = None) -> None:
        self.work, self.data, self.seeds, self.folder = work, data, list(seeds), folder
        task, self.device = work.task, torch.device(work.device)
        self.epoch_steps = data.steps(task.batch) if task.recipe else 0
        self.total = (work.steps or self.epoch_steps * task.epochs) if task.recipe else 0
        self.epochs = max(1, -(-self.total // self.epoch_steps)) if task.recipe else 1
        self.schedule = None if not work.format.boost or not isinstance(work.fmt, HBFPFormat) else MixedMantissa(
            base=work.fmt.mantissa, boosted=work.format.boost, epochs=self.epochs)
        self.nets = [self._net(seed) for seed in self.seeds]
        for net in self.nets:
            net.to(self.device)
        self.optimisers = [self._optimiser(net) for net in self.nets] if task.recipe else []
        together = task.together and len(self.nets) > 1 and self.device.type == "cpu"
        self.fused = fused.fuse(self.nets) if together else None
        self.update = fused.Step(self.fused, self.optimisers) if self.fused else None
        self.step = 0
        self.curves: list[list[dict[str, float]]] = [[] for _ in self.seeds]
        self.losses = torch.zeros(len(self.seeds), dtype=torch.float64)
        self.counted = 0

    def _net(self, seed):
        """A seed's model, in its format."""
        work = self.work
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            net = model(work.task.model, self.data.outputs, self.folder)
        self.counts = shares.products(net, *self._sample(net)) if self.schedule else {}
        if work.fmt is not None:
            # Layers count on from here: a thousand to each run, around and around in 32 bits.
            convert(net, work.fmt, seed=(1 + 1000 * seed) % (2 ** 32 - 1000), accumulate=work.accumulate)
        if work.format.sparsity:
            _prune(net, work)
        _restart(net, work.task.batch)
        return net

    def _sample(self, net):
        """A few inputs to judge by, as a model takes them."""
        (x, *others), _ = next(self.data.tests(REPORTED))
        _restart(net, len(x))
        return (x, *others)

    def _optimiser(self, net):
        recipe = self.work.task.recipe
        parameters = [each for each in net.parameters() if each.requires_grad]
        if recipe.kind == "sgd":
            found = torch.optim.SGD(parameters, recipe.rate, momentum=recipe.momentum, weight_decay=recipe.decay,
                                    nesterov=recipe.nesterov)
        else:
            found = torch.optim.AdamW(parameters, recipe.rate, weight_decay=recipe.decay)
        return wide_weights(found) if self.work.wide and self.work.fmt is not None else found

    # --- Steps ----------------------------------------------------------------------------------

    def run(self, folder: Path | None = None, every: float = 30.0,
            progress: Callable[["Job"], object] = lambda job: None) -> list[dict[str, Any]]:
        """Train from where a killed run stopped, and judge; a checkpoint at most every so many seconds.

        Parameters
        ----------
        folder : path, optional
            Of checkpoints.
        every : float
            Seconds between checkpoints; 0: after each step.
        progress : callable
            Called after each step, and at first.

        Returns
        -------
        list of dict
            A result for each seed.
        """
        checkpoint = folder and folder / f"{self.work.key(*self.seeds)}.pt"
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if self.device.type == "cuda" else ()):
            if checkpoint and checkpoint.exists():
                self.load(torch.load(checkpoint, map_location=self.device))
            progress(self)
            saved = time.monotonic()
            while self.step < self.total:
                self._one()
                if self.step == self.total or self.step % self.epoch_steps == 0:
                    self._judge()
                if checkpoint and time.monotonic() - saved >= every:
                    with files.replacing(checkpoint) as temporary:
                        torch.save(self.state(), temporary)
                    saved = time.monotonic()
                progress(self)
            if not self.work.task.recipe:
                self.total = self.data.judged(self.work.task.batch) * len(self.nets)
                self._judge(progress)
            results = [self._result(index) for index in range(len(self.seeds))]
        self.checkpoint = checkpoint
        return results

    def _one(self):
        """A step of every model."""
        task, epoch = self.work.task, self.step // self.epoch_steps
        if self.step % self.epoch_steps == 0:
            for net in self.nets:
                _restart(net, task.batch)
        self._formats(epoch)
        rate = task.recipe.rate * _share(task.recipe, self.step / self.total)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate
        batches = [self._moved(self.data.batch(seed, self.step, task.batch)) for seed in self.seeds]
        if self.fused:
            self._together(batches)
        else:
            for index, (inputs, targets) in enumerate(batches):
                torch.manual_seed((self.seeds[index] << 32) + self.step)
                self.optimisers[index].zero_grad()
                loss = _loss(self.nets[index](*inputs), targets)
                loss.backward()
                self._clip(self.nets[index])
                self.optimisers[index].step()
                self.losses[index] += loss.item()
        self.step, self.counted = self.step + 1, self.counted + 1

    def _together(self, batches):
        """A step of all models as one job: each has the bits that it has alone."""
        self.update.zero_grad()
        targets = torch.cat([each for _, each in batches])
        logits = self.fused(torch.cat([inputs[0] for inputs, _ in batches]))
        fused.cross_entropy(logits, targets, len(batches)).backward()
        for net in self.nets:
            self._clip(net)
        self.update()
        for index, (part, (_, own)) in enumerate(zip(logits.detach().chunk(len(batches)), batches, strict=True)):
            self.losses[index] += _loss(part, own).item()

    def _clip(self, net):
        if self.work.task.recipe.clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), self.work.task.recipe.clip)

    def _formats(self, epoch):
        """Give layers the widths of an epoch."""
        if self.schedule:
            for net in self.nets:
                self.schedule.apply(hbfp_layers(net), min(epoch, self.epochs - 1))

    def _moved(self, batch):
        inputs, targets = batch
        return tuple(each.to(self.device) for each in inputs), targets.to(self.device)

    # --- Judging --------------------------------------------------------------------------------

    @torch.no_grad()
    def _judge(self, progress=None):
        """Add what the test data say to the curves; without a training these are the steps."""
        task = self.work.task
        for index, net in enumerate(self.nets):
            kept, right, loss, count = getattr(net, "state", None), 0, 0.0, 0
            net.eval()
            begun = False
            for inputs, targets in map(self._moved, self.data.tests(task.batch)):
                if not begun:
                    _restart(net, len(targets))
                    begun = True
                logits = net(*inputs)
                logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
                known = targets != -100
                right += int((logits.argmax(-1) == targets)[known].sum())
                loss += float(torch.nn.functional.cross_entropy(logits.double(), targets, reduction="sum"))
                count += int(known.sum())
                if progress:
                    self.step += 1
                    progress(self)
            net.train()
            if kept is not None:
                net.state = kept
            share = 100 * right / count
            value = {"accuracy": share, "error": 100 - share, "perplexity": math.exp(min(700.0, loss / count))}
            trained = {"loss": float(self.losses[index]) / self.counted,
                       "rate": self.optimisers[index].param_groups[0]["lr"]} if self.counted else {}
            done = self.step if task.recipe else 0
            place = {"step": done, "epoch": done / max(1, self.epoch_steps)}
            self.curves[index].append(place | trained | {"test loss": loss / count, task.metric: value[task.metric]})
        self.losses.zero_()
        self.counted = 0

    def _result(self, index):
        """The result of a seed, as it will be read back."""
        net, work = self.nets[index], self.work
        found = hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in net.parameters())).hexdigest()
        share = {work.fmt.mantissa: 1.0} if isinstance(work.fmt, HBFPFormat) else {}
        if self.schedule:
            share = shares.share_of(self.schedule, net, self.counts)
        result = {"work": asdict(work), "seed": self.seeds[index], "metric": work.task.metric,
                  "value": self.curves[index][-1][work.task.metric], "share": share, "curve": self.curves[index],
                  "digest": found}
        return json.loads(json.dumps(result))

    def layers(self) -> tuple[Any, Any]:
        """Products by layer, and errors of their operands where these are HBFP (else None), of the first seed."""
        net = self._net(self.seeds[0])
        if self.schedule:
            self.schedule.apply(hbfp_layers(net), self.epochs - 1)
        inputs = self._sample(net)
        targets = next(self.data.tests(REPORTED))[1]
        state = {name: value for name, value in self.nets[0].state_dict().items() if name != "state"}
        net.load_state_dict(state, strict=False)
        products = report(net, *inputs)
        if self.work.fmt is None:
            return products, None
        _restart(net, len(targets))
        loss = (lambda y: _loss(y, targets)) if self.work.task.recipe else None
        return products, errors(net, *inputs, loss=loss)

    # --- Checkpoints ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that the next step needs."""
        return {"step": self.step, "curves": self.curves, "losses": self.losses, "counted": self.counted,
                "nets": [net.state_dict() for net in self.nets],
                "optimisers": [optimiser.state_dict() for optimiser in self.optimisers]}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.step, self.curves, self.counted = state["step"], state["curves"], state["counted"]
        self.losses = state["losses"].cpu()
        self._formats(max(0, self.step - 1) // max(1, self.epoch_steps))
        for part, own in (*zip(self.nets, state["nets"], strict=True),
                          *zip(self.optimisers, state["optimisers"], strict=True)):
            part.load_state_dict(own)


def _loss(logits, targets):
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def _prune(net, work):
    """Make weights sparse; those that :data:`DENSE` names stay as they are."""
    def chosen(name, layer):
        kind = (HBFPLinear, HBFPConv2d) if work.fmt else torch.nn.Linear
        return isinstance(layer, kind) and not any(fnmatchcase(name, each) for each in DENSE)
    if work.fmt:
        sparsify(net, work.format.sparsity, work.format.order, layers=[chosen])
        return
    if work.task.recipe:
        raise TaskError(f"format {work.format.name} is for tasks without a recipe: in FP32 nothing keeps zeros")
    n, m = map(int, work.format.sparsity.split(":"))
    for name, layer in net.named_modules():
        if chosen(name, layer):
            layer.weight.data = torch.from_numpy(prune(layer.weight.detach().numpy(), n, m, axis=1))


def _restart(net, rows):
    """Forget what a language model has read."""
    if hasattr(net, "restart"):
        net.restart(rows)


def _share(recipe, done):
    """Share of the learning rate after a share of the training."""
    if done < recipe.warmup:
        return done / recipe.warmup
    match recipe.schedule:
        case "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        case "linear":
            return 1 - done
        case "steps":
            return recipe.factor ** sum(done >= each for each in recipe.milestones)
    return 1.0
