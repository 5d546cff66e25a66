"""Types of a model's class, of its layers and of the options survive a conversion; a name that is mistyped is an error.

Check it: mypy --strict --allow-untyped-calls docs/examples/typed.py, or pyright in its standard mode
(torch's own backward() has no types).
Run it: python docs/examples/typed.py
"""

import os
import tempfile
from collections.abc import Sequence

import numpy as np
import torch

import hbfp.golden.nn as gn
from hbfp import HBFPConfig, quantize_
from hbfp.golden.bfp import decode, emulate, encode
from hbfp.golden.matmul import matmul, matmul_blocks
from hbfp.golden.nn import functional, fused


class Classifier(torch.nn.Module):
    """Two layers, and a product of its own."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, width), torch.nn.Linear(width, 4)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        hidden: torch.Tensor = self.first(x).relu()
        scores: torch.Tensor = self.last(hidden) * scale
        return scores

    def margins(self, x: torch.Tensor) -> torch.Tensor:
        best = self.forward(x).topk(2).values
        return best[..., 0] - best[..., 1]


def trained(model: Classifier, steps: int = 20) -> Classifier:
    x = torch.randn(32, 8)
    classes = x[:, :4].argmax(-1)
    optimiser = gn.wide_weights(torch.optim.Adam(model.parameters(), 0.01))
    schedule = gn.MixedMantissa(base=4, boosted=6, epochs=steps)
    for epoch in range(steps):
        schedule.apply(gn.hbfp_layers(model), epoch)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x), classes).backward()
        optimiser.step()
    return model


def logged(batches: Sequence[tuple[torch.Tensor, torch.Tensor]], path: str | os.PathLike[str]) -> Classifier:
    config = HBFPConfig("hbfp4_1x16", w="hbfp6_1x16", exclude=["first"], layers={"last": "mxfp6-e2m3"})
    model = Classifier()
    quantize_(model, HBFPConfig.from_dict(config.to_dict()),
              filter_fn=lambda module, name: isinstance(module, torch.nn.Linear))
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    log = gn.ErrorLog(path, every=2, loss=lambda y, batch: torch.nn.functional.cross_entropy(y, batch[1]))
    schedule = gn.FormatSchedule(base="mxfp4", boosted=gn.Formats.of("hbfp6", accumulate="bf16"), epochs=len(batches))
    for epoch, (x, classes) in enumerate(batches):
        schedule.apply(gn.hbfp_layers(model), epoch)
        log.step(model, (x, classes))
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x), classes).backward()
        optimiser.step()
    return model


def together(models: Sequence[Classifier], x: torch.Tensor) -> list[float]:
    job = fused.fuse(models)
    step = fused.Step(job, [torch.optim.SGD(model.parameters(), 0.1) for model in models])
    step.zero_grad()
    losses = torch.stack([y.square().mean() for y in job(x, shared=True).chunk(job.count)])
    losses.sum().backward()
    step()
    return [each.item() for each in losses]


def numbers(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    fmt = gn.HBFPFormat(mantissa=8, exponent=10, block=(1, 32))
    y = matmul(x, w, fmt, "aligned")
    parts = [y, matmul_blocks(encode(x, fmt), encode(w, fmt, axis=0)), decode(encode(emulate(y, 7, 24), fmt))]
    return np.stack(parts)


def main() -> None:
    torch.manual_seed(1)
    x = torch.randn(32, 8)
    fmt = gn.HBFPFormat(mantissa=4, block=(1, 8))
    model = gn.convert(Classifier(), fmt, exclude=["first"], layers={"last": fmt}, w=gn.HBFPFormat(block=(1, 8)),
                       accumulate="aligned", guard=4, growth=8, strict=False)          # a Classifier still
    model = gn.convert(model, "hbfp4", example=x, seed=1, noise="lanes")
    trained(model)

    report = gn.report(model, x, named={"scale": 2.0})
    print(f"{len(report.entries)} products, {len(report.left)} in FP32")
    errors = gn.errors(model, x, loss=lambda y: y.square().mean())
    print("worst:", min(each.qsnr for each in errors.operands if each.qsnr is not None) > 0)
    print("margins:", gn.freeze(model.eval()).margins(x).shape[0])
    gn.thaw(model)

    layers = torch.nn.Sequential(gn.HBFPLinear(8, 8, fmt="hbfp6", w="hbfp8", seed=3),
                                 gn.HBFPLinear(8, 4, bias=False, order="quick"))
    y: torch.Tensor = layers(gn.quantise(x, "hbfp8", axis=-1))
    scores = functional.matmul(y, y.mT, "hbfp8")
    job = fused.fuse([gn.convert(Classifier(), f"hbfp{bits}") for bits in (4, 6)])
    loss = fused.cross_entropy(job(x, shared=True), torch.arange(64) % 4, job.count)
    loss.backward()
    print("shapes:", tuple(scores.shape), loss.dim())

    with tempfile.TemporaryDirectory() as folder:
        batches = [(x[:16], torch.arange(16) % 4), (x[16:], torch.arange(16) % 4)]
        own = logged(batches, os.path.join(folder, "errors.csv"))
    print("logged:", tuple(own.margins(x).shape))
    losses = together([gn.convert(Classifier(), name) for name in ("mxfp8", "hbfp8")], x)
    print("together:", len(losses), numbers(x.numpy(), x.numpy().T).shape)


if __name__ == "__main__":
    main()
