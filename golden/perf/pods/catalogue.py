"""Names and sizes of the networks that can be asked for; free of PyTorch, so that a command line is read quickly."""

RESNETS = ("resnet50", "resnet101", "resnet152")
DENSENETS = ("densenet121", "densenet169", "densenet201")
BERTS = ("bert-medium", "bert-base", "bert-large")
#: The ten networks of the published study.
STUDY = ("inception", *RESNETS, *DENSENETS, *BERTS)
#: Name -> pixels of a side, or tokens. ``-v1``: the stride of a block in its first convolution.
SIZES = ({"inception": 299} | {name: 224 for name in (*RESNETS, *DENSENETS)}
         | {f"{name}-v1": 224 for name in RESNETS} | {name: 128 for name in BERTS})
NAMES = tuple(SIZES)
#: Sizes that may be asked for.
SIZE_RANGE = (1, 4096)
