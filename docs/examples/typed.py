"""Types of a model's class, of its layers and of the options survive a conversion; a name that is mistyped is an error.

Check it: mypy --strict --allow-untyped-calls docs/examples/typed.py (torch's own backward() has no types).
Run it: python docs/examples/typed.py
"""

import torch

import hbfp.golden.nn as gn
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


if __name__ == "__main__":
    main()
