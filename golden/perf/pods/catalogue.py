"""Names of what can be asked for; without PyTorch and numba, so that a command line is read quickly."""

RESNETS = ("resnet50", "resnet101", "resnet152")
DENSENETS = ("densenet121", "densenet169", "densenet201")
BERTS = ("bert-medium", "bert-base", "bert-large")
#: The same as the published study has them: each head a product of its own, and behind the encoder the layers of masked
#: words and of next sentences.
PUBLISHED_BERTS = tuple(f"{name}-v1" for name in BERTS)
#: The ten networks of the published study.
STUDY = ("inception", *RESNETS, *DENSENETS, *BERTS)
#: Name -> pixels of a side, or tokens. ``-v1``: the stride of a block in its first convolution.
SIZES = ({"inception": 299} | {name: 224 for name in (*RESNETS, *DENSENETS)}
         | {f"{name}-v1": 224 for name in RESNETS} | {name: 128 for name in (*BERTS, *PUBLISHED_BERTS)})
NAMES = tuple(SIZES)
POLICIES = ("first-fit", "adaptive")
#: What a tile of X waits for: the rows that it needs of all that its product reads; the same of what its own channels
#: come from; or all of what its product reads.
WAITS = ("rows", "channels", "layer")
#: How tiles are numbered that lie in the banks in turn: through the network, or from 0 in each product.
BANKS = ("network", "product")
STUDIES = ("granularity", "partition", "interconnect", "banks", "tenancy", "fused")
#: Sizes that may be asked for.
SIZE_RANGE = (1, 4096)
