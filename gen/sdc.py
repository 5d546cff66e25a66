"""Timing constraints beside the Verilog, as Synopsys Design Constraints: what a flow has to know of the clock."""

import re
from collections.abc import Mapping
from typing import Any

#: Part of the period that passes outside, before an input and behind an output.
OUTSIDE = 0.2
#: Periods that may be asked for, in ns.
PERIOD_RANGE = (0.01, 1000)


def ports(text: str, top: str) -> list[list[str]]:
    """Names of the inputs and of the outputs of a module, each in its order, with the clock."""
    body = re.search(rf"^module {top}\b.*?^endmodule$", text, re.MULTILINE | re.DOTALL)
    assert body is not None, top
    return [re.findall(rf"^  {kind} (?:reg )?(?:\[\d+:0\] )?(\w+)\b", body[0], re.MULTILINE)
            for kind in ("input", "output")]


def facts(text: str, top: str, period: float) -> dict[str, Any] | None:
    """What the manifest has of the constraints: file, period and delays in ns; None where there is no clock."""
    if "clk" not in ports(text, top)[0]:
        return None
    delay = round(OUTSIDE * period, 6)
    return {"file": f"{top}.sdc", "clock": "clk", "period_ns": period, "input_delay_ns": delay,
            "output_delay_ns": delay}


def constraints(text: str, top: str, facts: Mapping[str, Any]) -> str:
    """The file.

    One clock; inputs come, and outputs are wanted, :data:`OUTSIDE` of the period away from its edges, and so does the
    reset, which is synchronous. No path is false and none takes several cycles. What opens a gated clock
    (``rtl/lib/gated.py``) has to come before the clock rises.
    """
    inputs, outputs = ports(text, top)
    inputs.remove("clk")
    lines = [f"create_clock -name clk -period {facts['period_ns']:g} [get_ports clk]"]
    for names, command, delay in ((inputs, "set_input_delay", "input_delay_ns"),
                                  (outputs, "set_output_delay", "output_delay_ns")):
        lines += [f"{command} {facts[delay]:g} -clock clk [get_ports {name}]" for name in names]
    if re.search(r"^module hbfp_gated_", text, re.MULTILINE):
        lines.append("set_clock_gating_check -setup 0 -hold 0 [get_clocks clk]")
    return "\n".join(lines) + "\n"
