"""The ports of the memories: which units share each, and who comes first.

Read by the RTL (``rtl/accelerator/memories.py``) and by the cycle model (:mod:`golden.perf.accelerator.ports`).
"""

from .instructions import Unit

#: Port -> its users; of those that ask in a cycle, the first has it.
PORTS = {
    # Drain first, since the way out of the core waits for its operands.
    "v_read": (Unit.DRAIN, Unit.CONVERT, Unit.VECTOR, Unit.STORE),
    # Vector first, so that a pass never stalls.
    "v_write": (Unit.VECTOR, Unit.DRAIN, Unit.LOAD),
    "x_read": (Unit.MULTIPLY,),
    "x_write": (Unit.CONVERT,),
    "w_read": (Unit.WEIGHTS,),
    # Convert first, so that it never stalls; of mantissas, and of exponents.
    "w_write": (Unit.CONVERT, Unit.LOAD),
    "w_scales": (Unit.CONVERT, Unit.LOAD),
    "p_read": (Unit.VECTOR,),
    "p_write": (Unit.LOAD,),
}


def users(port: str) -> tuple[str, ...]:
    """Names of a port's users, the first in priority first."""
    return tuple(unit.name.lower() for unit in PORTS[port])
