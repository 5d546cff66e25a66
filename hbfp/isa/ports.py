"""The ports of the memories: which units share each, and who comes first.

Read by the RTL (``rtl/accelerator/memories.py``) and by the cycle model (:mod:`golden.perf.accelerator.ports`).
"""

from .instructions import Unit

#: Port -> its users; of those that ask in a cycle, the first has it. Where memories have one port, it goes to a write
#: before a read of the same bank, unless :data:`PATIENT` has the unit.
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
    "w_scales_read": (Unit.WEIGHTS,),
    # Places of sparse weights.
    "w_index": (Unit.CONVERT,),
    "w_index_read": (Unit.WEIGHTS,),
    "p_read": (Unit.VECTOR,),
    "p_write": (Unit.LOAD,),
}

#: Port -> the unit whose writes come after reads where memories have one port: weights are loaded ahead.
PATIENT = {"w_write": Unit.LOAD, "w_scales": Unit.LOAD}


def users(port: str) -> tuple[str, ...]:
    """Names of a port's users, the first in priority first."""
    return tuple(unit.name.lower() for unit in PORTS[port])
