"""One format, all seeds: trained from the first weights, or judged with weights that FP32 has learned.

A run goes on where it was killed, to the same bits: what a step does follows from the state before it, from the seed
and from the step's number.
"""

import copy
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hbfp import files

from ... import nn as gn
from ...command.source import Wrong, line
from ...nn import fused
from ...nn.operand_errors import decibels
from ...nn.rounded import held
from ...sparsity import prune, prune_fraction
from ..devices import device
from ..published.samples import order
from .choice import Choice
from .user import User, moved

#: Layers whose weights are pruned: all that has a weight of two dimensions or more, but embeddings.
PRUNED = (nn.Linear, nn.modules.conv._ConvNd)


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that decides the numbers of a run.

    Parameters
    ----------
    text : str
        The user's file.
    digest : str
        Of the file, and of the checkpoint.
    seeds : tuple of int
    epochs : int
        Passes over the batches.
    post : bool
        Formats take the weights that FP32 has learned, or those of the checkpoint, and are not trained.
    checkpoint : str
        File of a ``state_dict``; "" trains FP32.
    data, calibration : str
        What a folder's model is judged on, and what fixed scales of its inputs follow from.
    device : str
        ``cpu`` or ``cuda``.
    """
    text: str
    digest: str
    seeds: tuple[int, ...] = (0,)
    epochs: int = 1
    post: bool = False
    checkpoint: str = ""
    data: str = ""
    calibration: str = ""
    device: str = "cpu"

    def key(self, choice: Choice) -> str:
        """Name of the files of a format's run."""
        words = [self.digest, self.seeds, self.epochs, self.post, choice.name.lower(), bool(self.checkpoint),
                 *[self.device] * (self.device != "cpu")]
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in choice.name.lower())
        return f"{name}-{hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]}"


def digest(*paths: str) -> str:
    """A name that follows from the bytes of files, and of all files below folders."""
    every = [each for path in map(Path, paths) for each in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return files.digest(path for path in every if path.is_file())


def run(work: Work, name: str, folder: Path, every: float = 30.0,
        progress: Callable[[int, int], object] = lambda done, total: None) -> dict[str, Any]:
    """Train or judge all seeds of a format; a finished run is read, a started one continued.

    Raises
    ------
    ValueError
        If the user's file cannot be run so; one line.

    Returns
    -------
    dict
        ``name``; ``values``, the metric of each seed; ``curves``, losses of each seed's steps; ``qsnr`` in dB of
        operands x, w and g of the first seed (None: exact, or not there); ``together``, whether seeds were one job, or
        why not; ``seconds``.
    """
    done = folder / f"{work.key(Choice.of(name))}.json"
    if done.exists():
        return json.loads(done.read_text())
    begun, threads = time.monotonic(), torch.get_num_threads()
    torch.set_num_threads(1)                               # FP32 products depend on the number
    try:
        device(work.device)                                # of a process that is not the command's
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if work.device == "cuda" else ()):
            found = _Run(work, Choice.of(name), folder).all(every, progress)
    except Wrong:
        raise
    except Exception as error:                             # of the user's model, loss or optimiser
        raise Wrong(f"Model {work.text} does not run in {name}: {line(error)}") from error
    finally:
        torch.set_num_threads(threads)
    found = json.loads(json.dumps(found | {"seconds": time.monotonic() - begun}))
    files.write_json(done, found)
    return found


class _Run:
    """The models of a format's seeds, and where they are."""

    def __init__(self, work, choice, folder):
        self.work, self.choice, self.folder = work, choice, folder
        self.user = User.read(work.text, work.data, work.calibration, work.device)
        plain = choice.formats is None and not choice.sparsity
        self.trained = self.user.trains and (plain and not work.checkpoint if work.post else True)
        self.nets = [self.user.model(seed) for seed in work.seeds]
        self.curves: list[list[float]] = [[] for _ in work.seeds]
        self.optimisers = []
        self.together = ""

    def all(self, every, progress):
        if self.work.checkpoint:
            for net in self.nets:
                _load(net, self.work.checkpoint)
        elif self.work.post and not self.trained and self.user.trains:
            for net, seed in zip(self.nets, self.work.seeds, strict=True):
                net.load_state_dict(torch.load(weights(self.work, self.folder, seed), map_location="cpu"))
        self._prune(self.choice.after)
        if self.trained:
            self._train(every, progress)
        else:
            self._convert()
        if self.work.post and self.trained:
            for net, seed in zip(self.nets, self.work.seeds, strict=True):
                with files.replacing(weights(self.work, self.folder, seed)) as temporary:
                    torch.save(net.state_dict(), temporary)
        values = [self.user.judge(net, partial(self._plain, index)) for index, net in enumerate(self.nets)]
        return {"name": self.choice.name, "values": values, "curves": self.curves, "qsnr": self._qsnr(),
                "together": self.together}

    def _plain(self, index):
        """The model of a seed in FP32."""
        net = self.user.model(self.work.seeds[index])
        if self.work.checkpoint:
            _load(net, self.work.checkpoint)
        return net

    def _convert(self):
        if self.choice.formats is not None:
            self.nets = [gn.convert(net, self.choice.formats, seed=1 + 1000 * seed)
                         for net, seed in zip(self.nets, self.work.seeds, strict=True)]
        if self.choice.reach:
            for net in self.nets:
                gn.calibrate(net, self.user.calibration(), reach=self.choice.reach)

    def _prune(self, converted):
        """Make the weights of models that are not trained sparse, along what their forward product sums."""
        if not self.choice.sparsity or self.trained:
            return
        for net in self.nets:
            for layer in net.modules():
                if isinstance(layer, PRUNED):
                    w = layer.weight.detach()
                    if converted and self.choice.formats is not None:
                        w = held(w, self.choice.formats.w, tuple(range(1, w.dim())))
                    layer.weight.data = pruned(w, self.choice.sparsity)

    # --- Training -------------------------------------------------------------------------------

    def _train(self, every, progress):
        work, choice = self.work, self.choice
        batches = list(self.user.batches())
        if not batches:
            raise Wrong(f"batches() of {work.text} must give a batch at least")
        self._convert()
        self.optimisers = [self.user.optimiser(net) for net in self.nets]
        found = [self.user.schedule(optimiser) for optimiser in self.optimisers]
        self.schedules, self.clip = [each for each in found if each is not None], self.user.clip()
        if choice.sparsity:
            for net, optimiser in zip(self.nets, self.optimisers, strict=True):
                gn.sparsify(net, choice.sparsity, "quantise-sparsify" if choice.after else "sparsify-quantise",
                            optimiser=optimiser)
        schedule = choice.boosted and gn.FormatSchedule(base=choice.formats, boosted=choice.boosted, epochs=work.epochs)
        self._join(batches[0])
        checkpoint, step, total = self.folder / f"{work.key(choice)}.pt", 0, work.epochs * len(batches)
        if checkpoint.exists():
            step = self._resume(torch.load(checkpoint, map_location="cpu"), schedule, len(batches))
        saved, orders = time.monotonic(), []
        while step < total:
            progress(step, total)
            epoch, place = divmod(step, len(batches))
            if not place or not orders:
                orders = [order(len(batches), seed, epoch).tolist() for seed in work.seeds]
            if schedule and not place:
                self._boost(schedule, epoch)
            self._step([batches[own[place]] for own in orders], step)
            step += 1
            if time.monotonic() - saved >= every:
                with files.replacing(checkpoint) as temporary:
                    torch.save(self._state(step), temporary)
                saved = time.monotonic()
        progress(total, total)
        checkpoint.unlink(missing_ok=True)

    def _boost(self, schedule, epoch):
        for net in self.nets:
            schedule.apply(gn.hbfp_layers(net), epoch)

    def _join(self, batch):
        """Make one job of all seeds, if that is possible."""
        self.job = self.update = None
        if len(self.nets) == 1:
            return
        try:
            if self.work.device != "cpu":
                raise ValueError("A job runs on the CPU")
            if len(batch[0]) != 1:
                raise ValueError(f"A job takes one input, not {len(batch[0])}")
            self._try(*batch)
            self.job = fused.fuse(self.nets)
            self.update = fused.Step(self.job, self.optimisers)
            self.together = "one job"
        except ValueError as error:
            self.job, self.together = None, str(error)

    def _try(self, inputs, targets):
        """ValueError unless copies of the models give in a job what each gives alone, gradients included: their own
        code may look at a batch, or at a parameter, as no job can, or change in place what it may change alone."""
        alone, joined = copy.deepcopy(self.nets), copy.deepcopy(self.nets)
        job, (x,) = fused.fuse(joined).train(), inputs
        parts = [x.flip(-1) if index % 2 else x for index in range(len(alone))]
        try:
            found = job(torch.cat(parts)).chunk(len(parts))
            torch.stack([self.user.loss(y, targets) for y in found]).sum().backward()
            expected = [net.train()(own) for net, own in zip(alone, parts, strict=True)]
            for y in expected:
                self.user.loss(y, targets).backward()
            same = all(map(torch.equal, found, expected)) and all(map(_same_gradients, alone, joined))
        except Exception as error:    # of the model's own code
            raise ValueError(f"In a job the model does not run: {line(error)}") from error
        if not same:
            raise ValueError("In a job the model gives other numbers")

    def _step(self, batches, step):
        """A step of every seed."""
        if self.job is None or len({inputs[0].shape for inputs, _ in batches}) > 1:
            for index, (inputs, targets) in enumerate(batches):
                torch.manual_seed((self.work.seeds[index] << 32) + step)
                net, optimiser = self.nets[index].train(), self.optimisers[index]
                optimiser.zero_grad()
                loss = self.user.loss(net(*inputs), targets)
                loss.backward()
                self._clip(net)
                optimiser.step()
                self.curves[index].append(loss.item())
            self._rates()
            return
        self.update.zero_grad()
        outputs = self.job.train()(torch.cat([inputs[0] for inputs, _ in batches])).chunk(len(batches))
        losses = [self.user.loss(y, targets) for y, (_, targets) in zip(outputs, batches, strict=True)]
        torch.stack(losses).sum().backward()
        for net in self.nets:
            self._clip(net)
        self.update()
        self._rates()
        for curve, loss in zip(self.curves, losses, strict=True):
            curve.append(loss.item())

    def _clip(self, net):
        if self.clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), self.clip)

    def _rates(self):
        for schedule in self.schedules:
            schedule.step()

    def _state(self, step):
        return {"step": step, "curves": self.curves} | {name: [each.state_dict() for each in parts]
                                                        for name, parts in self._parts().items()}

    def _parts(self):
        return {"nets": self.nets, "optimisers": self.optimisers, "schedules": self.schedules}

    def _resume(self, state, schedule, batches):
        if schedule:
            self._boost(schedule, max(0, state["step"] - 1) // batches)
        self.curves = state["curves"]
        for name, parts in self._parts().items():
            for part, own in zip(parts, state[name], strict=True):
                part.load_state_dict(own)
        return state["step"]

    # --- Judging --------------------------------------------------------------------------------

    def _qsnr(self):
        """Signal to quantisation noise of operands, in dB, over all products of the first seed: of inputs, weights and
        gradients, and of all."""
        inputs, targets = moved(self.user.sample(), "cpu")  # where operands are looked at
        if self.choice.formats is None or not inputs:
            return None
        loss = None if targets is None else lambda y: self.user.loss(y, targets)
        found = gn.errors(self.nets[0].to("cpu"), *inputs, loss=loss).operands
        parts = {"x": [e for e in found if (e.product, e.role) == ("y", "x")],
                 "w": [e for e in found if (e.product, e.role) == ("y", "w")],
                 "g": [e for e in found if e.role == "g"], "all": found}
        return {role: decibels(sum(e.signal for e in some), sum(e.noise for e in some)) for role, some in parts.items()}


def _same_gradients(net, other):
    pairs = [(p.grad, q.grad) for p, q in zip(net.parameters(), other.parameters(), strict=True)]
    return all(g is h if g is None or h is None else torch.equal(g, h) for g, h in pairs)


def weights(work: Work, folder: Path, seed: int) -> Path:
    """Where the weights are that FP32 has learned with a seed."""
    return folder / f"{work.key(Choice.of('fp32'))}-{seed}.weights"


def pruned(w: torch.Tensor, sparsity: str) -> torch.Tensor:
    """A weight with N:M of each row of what a product sums, kernel row, kernel column and channel, or without P% of
    all."""
    if sparsity.endswith("%"):
        return torch.from_numpy(prune_fraction(w.cpu().numpy(), int(sparsity[:-1]) / 100)).to(w.device)
    rows = w.cpu().movedim(1, -1).contiguous()
    n, m = map(int, sparsity.split(":"))
    found = torch.from_numpy(prune(rows.flatten(1).numpy(), n, m, axis=1)).view(rows.shape).movedim(-1, 1)
    return found.contiguous().to(w.device)


def _load(net, checkpoint):
    try:
        net.load_state_dict(torch.load(checkpoint, map_location="cpu"))
    except Exception as error:    # of many kinds: no file of torch's, other names, other shapes
        first = next(iter(str(error).splitlines()), "")
        raise Wrong(f"Checkpoint {checkpoint} is not of this model: {type(error).__name__}: {first}") from error
