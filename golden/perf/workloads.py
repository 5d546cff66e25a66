"""Networks as lists of matrix products, worked out from their published shapes.

``rows`` of a product are those of X for one sample; its ``count`` are made one after the other.
"""

from hbfp.checks import check_range
from hbfp.program import Product


def _check(**sizes):
    for name, value in sizes.items():
        check_range(name.capitalize(), value, 1, 1 << 40)


def lstm(width: int = 2048, steps: int = 15) -> list[Product]:
    """An LSTM layer: in every step one product of input and state, 2 H, with the weights of four gates, 4 H."""
    _check(width=width, steps=steps)
    return [Product(1, 2 * width, 4 * width, steps)]


def resnet50(side: int = 224, classes: int = 1000) -> list[Product]:
    """ResNet-50 (He et al. 2016, stride in the 3 x 3 convolution); a row of X is one output pixel."""
    _check(side=side, classes=classes)
    half = side // 2
    products, channels, side = [Product(half * half, 3 * 49, 64)], 64, side // 4
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            out = side // 2 if stage and block == 0 else side
            products += [Product(side * side, channels, width), Product(out * out, 9 * width, width),
                         Product(out * out, width, 4 * width)]
            if block == 0:
                products.append(Product(out * out, channels, 4 * width))
            channels, side = 4 * width, out
    return [*products, Product(1, channels, classes)]


def bert(tokens: int = 128, layers: int = 12, width: int = 768, heads: int = 12) -> list[Product]:
    """BERT (Devlin et al. 2018) on a sequence; scores and their products with the values are products, too."""
    _check(tokens=tokens, layers=layers, width=width, heads=heads)
    part = width // heads
    return [Product(tokens, width, width, 4 * layers), Product(tokens, part, tokens, heads * layers),
            Product(tokens, tokens, part, heads * layers), Product(tokens, width, 4 * width, layers),
            Product(tokens, 4 * width, width, layers)]


#: Name -> (products, what it is).
WORKLOADS = {"lstm": (lstm(), "LSTM of width 2048, 15 steps"), "resnet50": (resnet50(), "ResNet-50, 224 x 224"),
             "bert": (bert(), "BERT-base, 128 tokens")}
