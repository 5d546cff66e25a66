"""A transformer of one's own in HBFP: convert, report, train, evaluate, export.

Run it: python docs/examples/pytorch.py
"""

import torch

import golden.nn

F = torch.nn.functional


class Transformer(torch.nn.Module):
    """Says which of eight tokens came three places before; its attention is code of its own."""

    def __init__(self, width=32):
        super().__init__()
        self.embedding, self.place = torch.nn.Embedding(8, width), torch.nn.Embedding(16, width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, 8)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.place(torch.arange(tokens.shape[1]))
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5               # HBFP after convert, as the next line
        x = x + self.out(scores.softmax(-1) @ v)
        return self.head(self.norm(x))


def batch(count=32):
    tokens = torch.randint(0, 8, (count, 16))
    return tokens, tokens.roll(3, 1)


def main():
    torch.manual_seed(1)
    model, (tokens, _) = Transformer(), batch(2)

    # All products in HBFP6 with stochastic rounding, the head in HBFP8; an error if one were left in FP32.
    fmt = golden.nn.HBFPFormat(mantissa=6, block=(1, 16), rounding="stochastic")
    golden.nn.convert(model, fmt, layers={"head": golden.nn.HBFPFormat(mantissa=8, block=(1, 16))}, strict=True,
                      example=tokens)
    print(golden.nn.report(model, tokens))

    optimiser = golden.nn.wide_weights(torch.optim.Adam(model.parameters(), 0.01))
    for _ in range(60):
        tokens, wanted = batch()
        optimiser.zero_grad()
        F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten()).backward()
        optimiser.step()

    model.eval()                                                            # rounds to nearest: no noise
    tokens, wanted = batch(256)
    right = (model(tokens).argmax(-1) == wanted).float().mean()
    print(f"right: {100 * right:.1f} %")

    program = torch.export.export(model, (tokens,))
    operators = sorted({str(node.target) for node in program.graph.nodes if "hbfp" in str(node.target)})
    print("operators:", ", ".join(operators))
    print("equal bits:", torch.equal(program.module()(tokens), model(tokens)))


if __name__ == "__main__":
    main()
