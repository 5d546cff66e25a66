"""What the kernels of alike models are given: the structs of alike.h and alike_norm.h."""

import ctypes

_FLOAT, _INT, _LONG, _ADDRESS = ctypes.c_float, ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p


class Parameter(ctypes.Structure):
    """``struct Parameter`` of alike.h."""
    _fields_ = [("gradient", _ADDRESS), ("place", _LONG), ("n", _LONG)]


class Sgd(ctypes.Structure):
    """``struct Sgd`` of alike.h."""
    _fields_ = [*((name, _FLOAT) for name in ("decay", "momentum", "share", "rate")), ("nesterov", _INT),
                ("fresh", _INT)]


class Adam(ctypes.Structure):
    """``struct Adam`` of alike.h."""
    _fields_ = [(name, _FLOAT) for name in
                ("decay", "shrink", "share", "square", "square_share", "correction", "eps", "rate")]


class Norm(ctypes.Structure):
    """``struct Norm`` of alike_norm.h."""
    _fields_ = [*((name, _LONG) for name in ("images", "channels", "pixels", "last")),
                *((name, _ADDRESS) for name in ("weight", "bias", "running_mean", "running_variance")),
                ("momentum", _FLOAT), ("kept", _FLOAT), ("eps", ctypes.c_double)]
