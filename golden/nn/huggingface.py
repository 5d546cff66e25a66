"""HBFP as a quantisation method of transformers: ``from_pretrained(folder, quantization_config=HBFPConfig("hbfp8"))``.

Loading this file registers the method, so that a folder that was saved with it is converted when it is read again.
Nothing else of ours loads transformers: :class:`~golden.nn.HBFPConfig` does when transformers asks for its method, or
is there already. torchvision, which the files of models import, is loaded first, so that its build need not be torch's.
"""

from typing import Any

import torch

from hbfp import extras

if line := extras.lacking("transformers"):
    raise ModuleNotFoundError(line, name="transformers")

from ..vision import torchvision

if not extras.lacking("torchvision"):
    torchvision()

from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from . import config
from .state import weights


class HBFPConfig(config.HBFPConfig, QuantizationConfigMixin):
    """The same, of the class and the name that transformers asks for where it reads ``config.json``."""


class HBFPQuantizer(HfQuantizer):
    """Converts a model behind the loading of its weights, which stay those of the folder; what is saved is plain, too.

    Parameters
    ----------
    quantization_config : HBFPConfig
        What to do.
    options
        Those of transformers' own class.
    """

    def __init__(self, quantization_config: config.HBFPConfig, **options: Any) -> None:
        super().__init__(quantization_config, **options)

    def _process_model_after_weight_loading(self, model, **options):
        config.quantize_(model, self.quantization_config)
        return model

    def get_state_dict_and_metadata(self, model: torch.nn.Module) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """The weights as any other model has them: noise is left out."""
        return weights(model), {"format": "pt"}

    def is_serializable(self) -> bool:
        """A folder holds plain weights and, in ``config.json``, the configuration."""
        return True

    @property
    def is_trainable(self) -> bool:
        """Every layer has gradients, in HBFP."""
        return True

    @property
    def is_qat_trainable(self) -> bool:
        """Training is what HBFP is for."""
        return True

    @property
    def is_compileable(self) -> bool:
        """``torch.compile`` traces a converted model."""
        return True


register_quantization_config(config.METHOD)(HBFPConfig)
register_quantizer(config.METHOD)(HBFPQuantizer)
