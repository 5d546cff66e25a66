"""Names of models that can be run without a file, for help, which does not load PyTorch."""

#: Images in one run of a model that takes images, where its line below says so.
IMAGES = 10
#: Width and steps of the wide LSTM.
WIDTH, STEPS = 2048, 15
#: Names behind which the size of a batch may stand, as in ``resnet50:4``, and the largest.
SIZED, MOST = ("resnet50", "bert-base", "lstm-2048"), 1024
#: Name -> what it is.
ZOO = {"mlp": "64-128-64-10 on the 360 test images of the digits, trained here",
       "cnn": "two convolutions with batch norm and pooling on the 360 test images of the digits, trained here",
       "resnet20": f"ResNet-20 on {IMAGES} digits of 32 x 32 pixels, trained here",
       "transformer": "two encoder layers, 2 x 16 words",
       "lstm": f"an LSTM of 3 steps on {IMAGES} digits",
       "resnet50": "ResNet-50 on a random image of 224 x 224 pixels, not trained",
       "bert-base": "the encoder of BERT-base on 128 random tokens, not trained",
       "lstm-2048": f"an LSTM of width {WIDTH} on {STEPS} steps of random numbers, not trained"}
#: A matrix product of any shape, (M, K) by (K, N).
PRODUCT = "gemm-MxKxN"


def zoo_text() -> str:
    """A line for each model of the zoo."""
    about = ZOO | {PRODUCT: "a product of random matrices, M x K by K x N"}
    return "\n".join(["the zoo:", *(f"  {name:<12} {text}" for name, text in about.items())])
