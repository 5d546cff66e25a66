"""The register map in SystemRDL, and as a C header."""

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


def header(contexts: int = 1, stochastic: bool = False, dispatched: bool = False, ringed: bool = False) -> str:
    """C header of :func:`~hbfp.isa.registers.registers`: addresses, masks and shifts of fields, causes."""
    lines = ["/* Registers of the HBFP accelerator: byte addresses from its base, bits, causes of errors. */",
             "#ifndef HBFP_ACCELERATOR_H", "#define HBFP_ACCELERATOR_H", "",
             f"#define HBFP_IDENTITY 0x{IDENTITY:08X}u", f"#define HBFP_VERSION {VERSION}u",
             f"#define HBFP_SPAN {(contexts + dispatched) * SPAN}u", ""]
    for register in registers(contexts, stochastic, dispatched, ringed):
        name = f"HBFP_REG_{register.name.upper()}"
        lines.append(f"#define {name} 0x{register.address:03X}u    /* {register.text} */")
        for field in register.fields:
            mask = (1 << field.width) - 1 << field.low
            lines += [f"#define {name}_{field.name.upper()}_SHIFT {field.low}u",
                      f"#define {name}_{field.name.upper()}_MASK 0x{mask:08X}u    /* {field.text} */"]
    lines += ["", *(f"#define HBFP_CAUSE_{cause.name} {cause.value}u" for cause in Cause), "", "#endif"]
    return "\n".join(lines) + "\n"
