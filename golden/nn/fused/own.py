"""Products of a module's own code in a job."""

from collections.abc import Callable, Sequence
from typing import Any

from ..formats import Formats
from ..scope import Scope
from .each import Each


class Together:
    """Runs the own code of a module that is a :class:`~golden.nn.scope.Scope` once for all models, or model by model.

    Once where it gives the bits of the models alone: their formats are equal at the moment, nothing is drawn, and
    blocks are parts of rows, into which nothing of another model can come.

    Parameters
    ----------
    layers : sequence of Scope
        The same module of each model.
    merged : Scope
        The first one's copy, whose parts are those of the job.
    each : Each
        The models' own.
    """

    def __init__(self, layers: Sequence[Scope], merged: Scope, each: Each) -> None:
        self.layers, self.merged, self.each = list(layers), merged, each

    def __call__(self, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """As :meth:`golden.nn.scope.Scope.hbfp_forward`."""
        first, *others = [(_now(layer), layer.hbfp_strict) for layer in self.layers]
        if any(other != first for other in others) or not _exact(first[0]):
            return self.each(*args, **kwargs)
        formats, self.merged.hbfp_strict = first
        self.merged._hbfp_formats = self.merged._hbfp_nearest = formats
        return Scope.hbfp_forward(self.merged, forward, args, kwargs)


def _now(layer):
    """Formats of a call made now, or None for FP32."""
    return layer._hbfp_formats if layer.training else layer._hbfp_nearest


def _exact(formats: Formats | None) -> bool:
    """Whether a product has the same bits beside those of other models."""
    return formats is None or (not formats.stochastic and formats.mode == "hbfp" and formats.order == "block"
                               and not any(fmt.square for fmt in (formats.x, formats.w, formats.g)))
