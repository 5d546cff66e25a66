"""Networks of torchvision, a few channels wide, on small images; and what others build of such layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hbfp.golden.lower.source import Source
from hbfp.golden.vision import torchvision

CLASSES = 10


def _models(name: str = "") -> Any:
    """torchvision.models, or a module of it."""
    found = torchvision().models
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found


def _on(side: int, make: Callable[[], nn.Module]) -> Callable[[], Source]:
    """A model and an image of so many pixels a side."""
    return lambda: (make(), (torch.randn(1, 3, side, side),))


def narrow(make: Callable[[], nn.Module], by: int) -> nn.Module:
    """A network with so many times fewer channels than ``make`` gives, but for those of images and of classes."""
    with torch.device("meta"):                             # its own weights are replaced
        model = make()

    def fewer(count):
        return count if count in (1, 3, CLASSES) else max(1, count // by)
    for name, part in list(model.named_modules()):
        match part:
            case nn.Conv2d() | nn.Conv3d():
                kind = nn.Conv2d if isinstance(part, nn.Conv2d) else nn.Conv3d
                made = kind(fewer(part.in_channels), fewer(part.out_channels), part.kernel_size, part.stride,
                            part.padding, part.dilation, fewer(part.groups), part.bias is not None)
            case nn.BatchNorm2d() | nn.BatchNorm3d():
                made = type(part)(fewer(part.num_features), part.eps)
            case nn.Linear():
                made = nn.Linear(fewer(part.in_features), fewer(part.out_features), part.bias is not None)
            case _:
                continue
        parent, _, own = name.rpartition(".")
        model.get_submodule(parent).register_module(own, made)
    return model


def _named(name: str, by: int, side: int = 32, **options: Any) -> Callable[[], Source]:
    """A network of torchvision by its function there, so many times narrower."""
    return _on(side, lambda: narrow(lambda: getattr(_models(), name)(num_classes=CLASSES, **options), by))


def _resnet(block: str, by: int, groups: int = 1, width: int = 64) -> Callable[[], Source]:
    """A ResNet with one block a stage."""
    def make():
        module = _models("resnet")
        return module.ResNet(getattr(module, block), [1, 1, 1, 1], CLASSES, groups=groups, width_per_group=width)
    return _on(32, lambda: narrow(make, by))


def _densenet():
    return _models("densenet").DenseNet(8, (2, 2, 2), 16, num_classes=CLASSES)


def _mobilenet_v2():
    setting = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2]]
    return _models("mobilenetv2").MobileNetV2(CLASSES, 0.25, setting)


def _mobilenet_v3(size, stages):
    module = _models("mobilenetv3")
    setting, _ = module._mobilenet_v3_conf(f"mobilenet_v3_{size}", width_mult=0.25)
    return module.MobileNetV3(setting[:stages], 64, CLASSES)


def _efficientnet():
    module = _models("efficientnet")
    setting, _ = module._efficientnet_conf("efficientnet_b0", width_mult=0.25, depth_mult=0.4)
    return module.EfficientNet(setting[:5], 0.2, num_classes=CLASSES, last_channel=64)


def _efficientnet_v2():
    module = _models("efficientnet")
    fused, plain = module.FusedMBConvConfig, module.MBConvConfig
    return module.EfficientNet([fused(1, 3, 1, 8, 8, 1), fused(4, 3, 2, 8, 16, 1), plain(4, 3, 2, 16, 24, 1)], 0.2,
                               num_classes=CLASSES, last_channel=32)


def _regnet(squeeze):
    module = _models("regnet")
    params = module.BlockParams.from_init_params(depth=4, w_0=16, w_a=10.0, w_m=2.0, group_width=8, se_ratio=squeeze)
    return module.RegNet(params, CLASSES, stem_width=8)


def _convnext():
    module = _models("convnext")
    return module.ConvNeXt([module.CNBlockConfig(16, 32, 1), module.CNBlockConfig(32, None, 1)], num_classes=CLASSES)


def _vit():
    model = _models("vision_transformer").VisionTransformer(16, 4, 2, 2, 16, 32, num_classes=CLASSES)
    nn.init.normal_(model.heads.head.weight)
    return model


def _swin(block, merge):
    module = _models("swin_transformer")
    return module.SwinTransformer([2, 2], 16, [2, 2], [2, 2], [4, 4], num_classes=CLASSES,
                                  block=getattr(module, block), downsample_layer=getattr(module, merge))


def _maxvit():
    return _models("maxvit").MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 4, 0.2, num_classes=CLASSES)


class Out(nn.Module):
    """What a network of torchvision that gives a dictionary calls ``out``."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images to a number for each class and pixel."""
        return self.model(x)["out"]


def _features(last):
    resnet = _models("resnet")
    model = narrow(lambda: resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], CLASSES,
                                         replace_stride_with_dilation=[False, True, True]), 32)
    return _models("_utils").IntermediateLayerGetter(model, last)


def _fcn():
    module = _models("segmentation.fcn")
    return Out(module.FCN(_features({"layer4": "out"}), module.FCNHead(64, CLASSES)))


def _deeplab():
    module = _models("segmentation.deeplabv3")
    head = nn.Sequential(module.ASPP(64, [2, 4], 16), nn.Conv2d(16, 16, 3, padding=1, bias=False),
                         nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, CLASSES, 1))
    return Out(module.DeepLabV3(_features({"layer4": "out"}), head))


def _lraspp():
    module = _models("segmentation.lraspp")
    return Out(module.LRASPP(_features({"layer2": "low", "layer4": "high"}), 16, 64, CLASSES, 16))


def _video():
    module = _models("video.resnet")
    return narrow(lambda: module.VideoResNet(module.BasicBlock, [module.Conv3DSimple] * 4, [1, 1, 1, 1],
                                             module.BasicStem, CLASSES), 8), (torch.randn(1, 3, 4, 16, 16),)


def _double(ins, outs):
    return nn.Sequential(nn.Conv2d(ins, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU(inplace=True),
                         nn.Conv2d(outs, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Down by pooling and up again, beside what is passed across; enlarged by transposed convolutions or bilinear."""

    def __init__(self, bilinear: bool, width: int = 8) -> None:
        super().__init__()
        self.first, self.pool = _double(3, width), nn.MaxPool2d(2)
        self.down = nn.ModuleList(_double(width << n, width << n + 1) for n in range(2))
        self.enlarge = nn.ModuleList(nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(width << n + 1, width << n, 1))
            if bilinear else nn.ConvTranspose2d(width << n + 1, width << n, 2, 2) for n in (1, 0))
        self.up = nn.ModuleList(_double(width << n + 1, width << n) for n in (1, 0))
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 3, H, W) -> (N, 2, H, W)."""
        kept = [self.first(x)]
        for part in self.down:
            kept.append(part(self.pool(kept[-1])))
        x = kept.pop()
        for enlarge, part in zip(self.enlarge, self.up, strict=True):
            x = part(torch.cat([kept.pop(), enlarge(x)], 1))
        return self.last(x)


def _autoencoder():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
                         nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 3, 3, 2, 1, 1),
                         nn.Sigmoid())


NETWORKS: dict[str, Callable[[], Source]] = {
    "alexnet": _named("alexnet", 16, 64), "vgg11": _named("vgg11", 16), "vgg11_bn": _named("vgg11_bn", 16),
    "resnet18": _resnet("BasicBlock", 8), "resnet50": _resnet("Bottleneck", 8),
    "resnext50": _resnet("Bottleneck", 8, 32, 4), "wide_resnet50": _resnet("Bottleneck", 8, 1, 128),
    "densenet": _on(32, _densenet), "squeezenet1_0": _named("squeezenet1_0", 8, 48),
    "squeezenet1_1": _named("squeezenet1_1", 8), "googlenet": _named("googlenet", 8, aux_logits=False,
                                                                     init_weights=False),
    "inception_v3": _named("inception_v3", 16, 75, aux_logits=False, init_weights=False),
    "mobilenet_v2": _on(32, _mobilenet_v2), "mobilenet_v3_small": _on(32, lambda: _mobilenet_v3("small", 6)),
    "mobilenet_v3_large": _on(32, lambda: _mobilenet_v3("large", 8)), "mnasnet": _named("mnasnet1_0", 8),
    "shufflenet_v2": _on(32, lambda: _models("shufflenetv2").ShuffleNetV2([1, 2, 1], [8, 16, 32, 64, 64], CLASSES)),
    "efficientnet_b0": _on(32, _efficientnet), "efficientnet_v2": _on(32, _efficientnet_v2),
    "regnet_x": _on(32, lambda: _regnet(None)), "regnet_y": _on(32, lambda: _regnet(0.25)),
    "convnext": _on(32, _convnext), "vit": _on(16, _vit),
    "swin": _on(16, lambda: _swin("SwinTransformerBlock", "PatchMerging")),
    "swin_v2": _on(16, lambda: _swin("SwinTransformerBlockV2", "PatchMergingV2")), "maxvit": _on(32, _maxvit),
    "fcn": _on(32, _fcn), "deeplabv3": _on(32, _deeplab), "lraspp": _on(32, _lraspp), "r3d": _video,
    "unet_transposed": _on(16, lambda: UNet(False)), "unet_bilinear": _on(16, lambda: UNet(True)),
    "autoencoder": _on(16, _autoencoder)}
