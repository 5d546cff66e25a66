"""Registers of the accelerator as data: addresses, access, fields; docs/design/11-accelerator.md.

The Verilog, the drivers, the SystemRDL text (:mod:`hbfp.isa.rdl`) and the C header take them from here.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from ..system import FUNCTIONS, SHARES, Accelerator
from .descriptors import LEAST, MOST, NUMBER, Refusal
from .instructions import ARGUMENTS, Unit

#: Of the bus, in bits; bytes that the registers take of its addresses, those of a second context not counted.
WORD, SPAN = 32, 256
#: From here on registers are a context's; those of context 1 lie :data:`SPAN` bytes behind those of context 0.
CONTEXT = 0x40
#: The register ``id``: "HBFP" in ASCII, its first letter lowest.
IDENTITY = int.from_bytes(b"HBFP", "little")
#: The register ``version``: of the instructions and the registers.
VERSION = 3


class Access(IntEnum):
    """What a register is for the host."""
    READ = 0      # writes are ignored
    WRITE = 1     # read and written
    ACT = 2       # a one that is written does something; read as 0
    CLEAR = 3     # a one that is written clears the bit


class Cause(IntEnum):
    """Why a program stopped with an error; 0 is none."""
    ILLEGAL = 1         # illegal instruction
    ADDRESS = 2         # outside a memory or the limit
    MISALIGNED = 3      # DMA
    BUS = 4             # error response
    WATCHDOG = 5
    BUSY = 6            # doorbell while busy
    END = 7             # the program runs beyond its instructions
    REFUSED = 8         # the core or the vector unit refused
    STOPPED = 9
    OVERDUE = 10        # the dispatcher's patience is over
    PARITY = 11         # a bit in a memory has turned round


@dataclass(frozen=True)
class Field:
    """Bits of a register, from ``low`` up."""
    name: str
    low: int
    width: int
    text: str


@dataclass(frozen=True)
class Register:
    """One register.

    Attributes
    ----------
    name : str
        As ports, headers and drivers spell it.
    address : int
        Byte address, a multiple of 4.
    access : Access
    text : str
        What it is.
    fields : tuple of Field
        Its bits; none where all 32 are one number.
    several : bool
        Whether only an accelerator with more than one context has it.
    dispatched : bool
        Whether only an accelerator with a dispatcher has it.
    stochastic : bool
        Whether only an accelerator with stochastic rounding has it.
    ringed : bool
        Whether only a dispatcher with a ring of descriptors has it.
    reset : int
        Its value at reset, if the host writes it.
    """
    name: str
    address: int
    access: Access
    text: str
    fields: tuple[Field, ...] = ()
    several: bool = False
    dispatched: bool = False
    stochastic: bool = False
    ringed: bool = False
    reset: int = 0


def _parameters(*rows):
    return tuple(Register(name, 0x08 + 4 * number, Access.READ, *rest) for number, (name, *rest) in enumerate(rows))


def _counters():
    """Three for each unit, and two of the bus."""
    names = [(f"{unit.name.lower()}_{what}", f"{unit.name}: {text}") for unit in Unit for what, text in (
        ("completed", "instructions completed"), ("busy", "cycles with an instruction under way"),
        ("waiting", "cycles in which the next instruction waited for others"))]
    names += [("words_loaded", "beats read by LOAD"), ("words_stored", "beats written by STORE")]
    return tuple(Register(name, 0x84 + 4 * number, Access.READ, text) for number, (name, text) in enumerate(names))


def _arguments():
    """What the host tells a program; number 1 stands behind the counters."""
    return tuple(Register(f"argument{number}", 0xDC + 4 * number, Access.WRITE, "for its instructions: a part of "
                          "addresses in DRAM, or the bits of a scalar") for number in range(1, ARGUMENTS + 1))


def _shares(width):
    """A field of each memory."""
    return tuple(Field(name, 8 * place, width, f"of {name.upper()}") for place, name in enumerate("vxwp"))


#: Behind those of two contexts.
DISPATCH = 2 * SPAN
#: Bits of ``policy`` that are one, and of ``dispatch_error``.
_POLICY = (Field("attached", 0, 1, "the dispatcher has the contexts"), Field("inference", 1, 1, "batches are started"),
           Field("training", 2, 1, "quanta are started"), Field("priority", 3, 1, "a batch that is due goes first"),
           Field("closes", 4, 1, "a batch has no more requests than waited when it became due beside a quantum"),
           Field("batch", 8, 6, "requests that make a batch due at once, and the most that it takes"),
           Field("share", 16, 5, "sixteenths of the time that training has at most"))
_ERRORS = (Field("overdue", 0, 1, "training did not yield within patience, and was stopped"),
           Field("unasked", 1, 1, "something ended that was not started"),
           Field("policy", 2, 1, "the policy is none: nothing is started"),
           Field("time", 3, 1, "a time did not fit its bits"))
_STATE = (Field("completion", 0, 1, "a completion waits"), Field("error", 1, 1, "dispatch_error is not 0"))


def _dispatcher():
    """Its registers: requests, policy, completions, counters."""
    rows = (
        ("request_input", Access.WRITE, "place of the next request's input, bytes from the base of context 0"),
        ("request_output", Access.WRITE, "place of its output"),
        ("request_tag", Access.WRITE, "its tag; writing it puts the request into the queue: SLVERR if that is full"),
        ("refused", Access.READ, "requests that a full queue has refused"),
        ("policy", Access.WRITE, "what is started when the machine is free; a batch of 1 at reset", _POLICY),
        ("timeout", Access.WRITE, "cycles after which the oldest request makes a batch due"),
        ("patience", Access.WRITE, "cycles after which a quantum that has not yielded is stopped; 0: never"),
        ("dispatch_status", Access.READ, "what the dispatcher does", (
            *_STATE, Field("batch", 2, 1, "a batch is under way"), Field("quantum", 3, 1, "a quantum is"),
            Field("overdue", 4, 1, "training was stopped, and has not ended"))),
        ("dispatch_enable", Access.WRITE, "what raises the interrupt while it lasts", _STATE),
        ("dispatch_error", Access.CLEAR, "of the dispatcher; a one in any bit clears all", _ERRORS),
        ("now", Access.READ, "cycles since reset"),
        ("completion", Access.CLEAR, "the oldest request that is done", (
            Field("valid", 0, 1, "there is one, and the next four registers have it; a one goes on to the next"),
            Field("failed", 1, 1, "its batch ended with an error"),
            Field("refused", 4, 3, "with a ring, why its descriptor was refused; " + "; ".join(
                f"{cause.value} {cause.name.lower()}" for cause in Refusal)))),
        ("completion_tag", Access.READ, "its tag"), ("completion_arrived", Access.READ, "when it came"),
        ("completion_started", Access.READ, "when its batch was started"),
        ("completion_finished", Access.READ, "when that was done"),
        ("count_select", Access.WRITE, "address of a counter of the dispatcher"),
        ("count_low", Access.READ, "its value"),
        ("count_high", Access.READ, "the rest of it", (
            Field("value", 0, 16, "bits 47 to 32"), Field("known", 31, 1, "the value is that of count_select"))))
    return tuple(Register(name, DISPATCH + 4 * number, access, *rest, dispatched=True,
                          reset=(name == "policy") << 8)
                 for number, (name, access, *rest) in enumerate(rows))


def _ring():
    """Those of a ring of descriptors, behind the dispatcher's others."""
    first, number = _dispatcher()[-1].address + 4, (Field("number", 0, NUMBER, "modulo 2^16"),)
    rows = (
        ("ring_low", Access.WRITE, "byte address of the ring of descriptors, a multiple of its bytes"),
        ("ring_high", Access.WRITE, "its upper half"),
        ("ring_size", Access.WRITE, "its places", (
            Field("log", 0, 4, f"it has 2^log, of a beat each, {LEAST} to {MOST}; below that there is no ring"),)),
        ("ring_first", Access.WRITE, "the first place that a descriptor may have, a multiple of the beat"),
        ("ring_last", Access.WRITE, "the last one, a multiple of the beat"),
        ("ring_tail", Access.WRITE, "number of the descriptor behind the last that is there", number),
        ("ring_head", Access.READ, "number of the next that is read", number))
    return tuple(Register(name, first + 4 * place, access, *rest, dispatched=True, ringed=True,
                          reset=(name == "ring_last") * 0xFFFFFFFF)
                 for place, (name, access, *rest) in enumerate(rows))


_DONE = (Field("done", 0, 1, "the program has come to HALT"), Field("error", 1, 1, "the program has stopped"))
#: All of them, in the order of addresses.
REGISTERS = (
    Register("id", 0x00, Access.READ, f"0x{IDENTITY:08X}"),
    Register("version", 0x04, Access.READ, "of instructions and registers"),
    *_parameters(
        ("rows", "sides of the core", (
            Field("rows", 0, 16, "its rows"),
            Field("columns", 16, 16, "its columns, numbers of a word of V, if these are not as many; else 0"))),
        ("mantissa", "bits of a mantissa, sign included", (
            Field("narrow", 0, 8, "in most operands"), Field("wide", 8, 8, "in those that are wide; 0: none can be"),
            Field("kept", 16, 4, "of sparse weights, terms that are kept"),
            Field("group", 20, 4, "of how many; 0: none can be"))),
        ("exponent", "bits of an exponent"),
        ("block", "terms of a block along K"),
        ("block_rows", "rows of a block: 1, or as many as terms"), ("x_words", "words of memory X"),
        ("w_words", "rows of memory W"), ("v_words", "words of memory V"), ("p_words", "instructions of memory P"),
        ("row_words", "words of the vector unit's longest row"), ("vector_rows", "rows that the vector unit holds"),
        ("contexts", "programs at a time")),
    Register("yielding", 0x38, Access.WRITE, "who goes first where programs yield", (
        Field("first", 0, 1, "context 0 does not give way at its YIELDs"),), several=True),
    Register("vector_lanes", 0x3C, Access.READ, "of the vector unit", (
        Field("lanes", 0, 8, "numbers that it takes in a cycle"),
        Field("functions", 8, 8, "of them at a time to a function"),
        Field("has", 16, 16, "functions that it has, a bit each: " + ", ".join(FUNCTIONS)))),
    Register("control", 0x40, Access.ACT, "doorbell", (
        Field("start", 0, 1, "start the program; an error if it is busy"),
        Field("stop", 1, 1, "stop the program, and clear the status"))),
    Register("status", 0x44, Access.READ, "how the program stands", (
        Field("busy", 0, 1, "it runs"), Field("done", 1, 1, "it has come to HALT"),
        Field("error", 2, 1, "it has stopped"),
        Field("waiting", 3, 1, "it is busy, and another context has the machine"))),
    Register("cause", 0x48, Access.READ, "of the error", (Field("cause", 0, 4, "; ".join(
        f"{cause.value} {cause.name.lower()}" for cause in Cause)),)),
    Register("error_pc", 0x4C, Access.READ, "number of the instruction at fault"),
    Register("program_low", 0x50, Access.WRITE, "byte address of the first instruction, a multiple of 64 and the beat"),
    Register("program_high", 0x54, Access.WRITE, "its upper half"),
    Register("base_low", 0x58, Access.WRITE, "byte address that offsets count from, a multiple of 4096"),
    Register("base_high", 0x5C, Access.WRITE, "its upper half"),
    Register("limit", 0x60, Access.WRITE, "bytes from base that loads and stores may reach, a multiple of the beat"),
    Register("instructions", 0x64, Access.WRITE, "of the program"),
    Register("watchdog", 0x68, Access.WRITE, "cycles without progress after which the program stops; 0: never"),
    Register("interrupt_enable", 0x6C, Access.WRITE, "what raises the interrupt", _DONE),
    Register("interrupt_status", 0x70, Access.CLEAR, "what has raised the interrupt", _DONE),
    Register("share_first", 0x74, Access.WRITE, "the first sixteenth of its share of each memory", _shares(4),
             several=True),
    Register("share_size", 0x78, Access.WRITE, "sixteenths of its share of each memory, 0 to 16; all at reset",
             _shares(5), several=True, reset=sum(SHARES << field.low for field in _shares(5))),
    Register("seed", 0x7C, Access.WRITE, "part of the key of all numbers that are drawn", stochastic=True),
    Register("cycles", 0x80, Access.READ, "that it has had the machine, from the doorbell to the end"),
    *_counters(),
    *_arguments(),
    *_dispatcher(),
    *_ring(),
)


def registers(contexts: int = 1, stochastic: bool = False, dispatched: bool = False, ringed: bool = False
              ) -> tuple[Register, ...]:
    """All registers of an accelerator of so many contexts, with stochastic rounding, a dispatcher and its ring or
    without, in the order of addresses; those of a second context end in ``_1``.
    """
    own = [register for register in REGISTERS if (contexts > 1 or not register.several)
           and (stochastic or not register.stochastic) and not register.dispatched]
    return tuple(own + [replace(each, name=f"{each.name}_{context}", address=each.address + context * SPAN)
                        for context in range(1, contexts) for each in own if each.address >= CONTEXT]
                 + [register for register in REGISTERS
                    if register.dispatched and dispatched and (ringed or not register.ringed)])


#: Name -> register, those of a second context, too.
BY_NAME = {register.name: register for register in registers(2, True, True, True)}


def parameters(accelerator: Accelerator) -> dict[str, int]:
    """Name -> value of the registers that say what the machine is."""
    core = accelerator.core
    mantissa = core.format.mantissa | core.wide << 8
    if core.takes_sparse:
        mantissa |= core.sparse[0] << 16 | core.sparse[1] << 20
    rows = core.rows | accelerator.oblong * accelerator.lanes << 16
    return {"id": IDENTITY, "version": VERSION, "rows": rows, "mantissa": mantissa,
            "exponent": core.format.exponent, "block": core.format.terms, "block_rows": core.format.block[0],
            **{name: getattr(accelerator, name) for name in ("x_words", "w_words", "v_words", "p_words", "row_words",
                                                             "vector_rows", "contexts")},
            "vector_lanes": accelerator.unit_lanes | accelerator.evaluators << 8 | sum(
                1 << 16 + FUNCTIONS.index(name) for name in accelerator.functions)}


def described(contexts: int = 1, stochastic: bool = False, dispatched: bool = False, ringed: bool = False
              ) -> dict[str, dict[str, Any]]:
    """The map of an accelerator, of which :func:`registers` has the parameters, as plain data, for manifests."""
    return {one.name: {"address": one.address, "access": one.access.name.lower(), "fields": {
        each.name: {"low": each.low, "width": each.width} for each in one.fields}}
        for one in registers(contexts, stochastic, dispatched, ringed)}


#: Access in the words of the page.
_WORDS = {Access.READ: "read", Access.WRITE: "read, write", Access.ACT: "write 1 to act",
          Access.CLEAR: "write 1 to clear"}


def _bits(field):
    """A field in words."""
    bits = f"bit {field.low}" if field.width == 1 else f"bits {field.low + field.width - 1}..{field.low}"
    return f"{bits} {field.name}: {field.text}"


def table() -> str:
    """The table of docs/design/11-accelerator.md: common registers and those of context 0."""
    lines = ["| address | register | access | |", "|---|---|---|---|"]
    for register in REGISTERS:
        text = "; ".join([register.text, *map(_bits, register.fields)])
        text += next((f" ({what})" for what, only in (
            ("two contexts", register.several), ("stochastic rounding", register.stochastic),
            ("a ring", register.ringed), ("a dispatcher", register.dispatched)) if only), "")
        lines.append(f"| 0x{register.address:03X} | `{register.name}` | {_WORDS[register.access]} | {text} |")
    return "\n".join(lines) + "\n"
