"""The register map in SystemRDL, and as a C header."""

from ..index import machine as machine_of
from ..system import Accelerator
from .instructions import ARGUMENTS
from .registers import IDENTITY, SPAN, VERSION, WORD, Access, Cause, Field, registers

#: How software and hardware may access a field.
_RDL = {Access.READ: "sw = r; hw = w;", Access.WRITE: "sw = rw; hw = r;",
        Access.ACT: "sw = w; hw = r; singlepulse;", Access.CLEAR: "sw = rw; hw = w; woclr;"}


def _fields(register):
    """Its fields; one of all bits where it has none."""
    return register.fields or (Field("value", 0, WORD, register.text),)


def rdl(contexts: int = 1, stochastic: bool = False, dispatched: bool = False, ringed: bool = False) -> str:
    """SystemRDL 2.0 of the address map ``hbfp_accelerator`` of :func:`~hbfp.isa.registers.registers`."""
    lines = ["addrmap hbfp_accelerator {", '    name = "HBFP accelerator";', f"    default regwidth = {WORD};",
             f"    default accesswidth = {WORD};", "    addressing = regalign;"]
    for register in registers(contexts, stochastic, dispatched, ringed):
        lines += ["    reg {", f'        desc = "{register.text}";']
        for field in _fields(register):
            value = register.reset >> field.low & (1 << field.width) - 1
            reset = f" = {value}" if register.access in (Access.WRITE, Access.ACT, Access.CLEAR) else ""
            lines.append(f'        field {{ desc = "{field.text}"; {_RDL[register.access]} }} '
                         f"{field.name}[{field.low + field.width - 1}:{field.low}]{reset};")
        lines.append(f"    }} {register.name} @ 0x{register.address:03X};")
    return "\n".join([*lines, "};"]) + "\n"


def header(contexts: int = 1, stochastic: bool = False, dispatched: bool = False, ringed: bool = False,
           machine: int = 0) -> str:
    """C header of :func:`~hbfp.isa.registers.registers`: addresses, masks and shifts of fields, causes.

    ``machine`` is the accelerator's hash (:func:`hbfp.index.machine`), of which 0 says nothing.
    """
    lines = ["/* Registers of the HBFP accelerator: byte addresses from its base, bits, causes of errors. */",
             "#ifndef HBFP_ACCELERATOR_H", "#define HBFP_ACCELERATOR_H", "",
             f"#define HBFP_IDENTITY 0x{IDENTITY:08X}u", f"#define HBFP_VERSION {VERSION}u",
             f"#define HBFP_SPAN {(contexts + dispatched) * SPAN}u", f"#define HBFP_CONTEXTS {contexts}u",
             f"#define HBFP_CONTEXT_SPAN {SPAN}u    /* from a register of a context to that of the next */",
             f"#define HBFP_ARGUMENTS {ARGUMENTS}u",
             f"#define HBFP_MACHINE 0x{machine:08X}u    /* hash of the machine, as programs have it; 0: any */", ""]
    for register in registers(contexts, stochastic, dispatched, ringed):
        name = f"HBFP_REG_{register.name.upper()}"
        lines.append(f"#define {name} 0x{register.address:03X}u    /* {register.text} */")
        for field in register.fields:
            mask = (1 << field.width) - 1 << field.low
            lines += [f"#define {name}_{field.name.upper()}_SHIFT {field.low}u",
                      f"#define {name}_{field.name.upper()}_MASK 0x{mask:08X}u    /* {field.text} */"]
    lines += ["", *(f"#define HBFP_CAUSE_{cause.name} {cause.value}u" for cause in Cause), "", "#endif"]
    return "\n".join(lines) + "\n"


def map_of(accelerator: Accelerator) -> tuple[int, bool, bool, bool]:
    """What decides which registers an accelerator has: the parameters of :func:`rdl`."""
    return accelerator.contexts, accelerator.stochastic, accelerator.dispatched, accelerator.dispatch_ring


def header_of(accelerator: Accelerator) -> str:
    """The :func:`header` of an accelerator, with its hash."""
    return header(*map_of(accelerator), machine_of(accelerator))
