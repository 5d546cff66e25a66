"""Which of torch's operations multiply matrices: by the words of their names, whatever library they come from.

An operator of anybody's is known by its name: ``aten::addmm``, ``quantized::linear_dynamic``, the higher-order operator
``flex_attention``, a custom ``grouped_mm_fallback``. The tests walk all operators that torch has registered, and run
those that take matrices, to find products that no word here meets.
"""

import re
from typing import Any

import torch

#: A word between the underscores of a name that says that the operation multiplies matrices.
WORDS = re.compile(r"(?!symm|comm)\w*mm|(add)?mv|v?dot|vecdot|tensordot|\w*matmul|\w*linear|q?conv\d?d?|convolution|"
                   r"gemm|inner|einsum|lstm|gru|rnn|attention|transformer|cdist|trilinear")
#: Whole names of products without such a word: distances, powers, and what multiplies on its way to something else.
NAMES = {"_euclidean_dist", "matrix_exp", "linalg_matrix_exp", "matrix_exp_backward", "matrix_power",
         "linalg_matrix_power", "cov", "corrcoef", "lobpcg", "pca_lowrank", "svd_lowrank"}
#: Names with such a word that are no product: what brings weights into another form or tells of it, interpolation,
#: cells after their products, and pieces of names that are about something else.
OTHERS = re.compile(r"upsample|interpolate|(^|_)(pre|un)?pack(_|$)|reorder|flatten|quantize_weight|choose|search$|"
                    r"thnn_(fused|differentiable)|inner_tensor|has_|dropout_mask|is_causal|"
                    r"conv(_transpose)?\dd_(stride|padding|output_padding|dilation|groups|transpose)$")
#: Operators whose insides nobody sees, which count as products.
CLOSED = re.compile(r"triton_kernel|call_torchbind|delegate|compiled_code")


def name_of(func: Any) -> str:
    """The name of a function or an operator of torch, without namespace and overload."""
    func = getattr(func, "overloadpacket", func)
    return getattr(func, "__name__", "") or type(func).__name__


def multiplies(func: Any) -> bool:
    """Whether a function of torch, an operator or a higher-order operator multiplies matrices, outside HBFP."""
    packet = getattr(func, "overloadpacket", func)
    if str(getattr(packet, "_qualified_op_name", "")).startswith("hbfp::"):
        return False
    return named(name_of(func))


def named(name: str) -> bool:
    """Whether a name, without namespace and overload, is that of an operation that multiplies matrices."""
    if CLOSED.search(name) or name in NAMES:
        return True
    return not OTHERS.search(name) and any(WORDS.fullmatch(word) for word in name.split("_"))


def counts(func: Any, args: Any) -> bool:
    """Whether an operation on ``args`` is a product of real, complex or quantised numbers, and not of integers alone.

    Products of integers as such (``_int_mm``) stand for those of quantised numbers.
    """
    if not multiplies(func):
        return False
    tensors = [each for each in torch.utils._pytree.tree_leaves(args) if isinstance(each, torch.Tensor)]
    return "int" in name_of(func) or not tensors or any(
        each.is_floating_point() or each.is_complex() or each.is_quantized for each in tensors)
