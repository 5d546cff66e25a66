"""Ports played cycle by cycle through a design in Icarus Verilog, as :class:`cosim.simulate.player.Player` does it.

The text loses its initial values first. A payload of a stream is undefined while it is not valid.
"""

import numpy as np

from tests.cosim.fourstate import build, run

_BENCH = """\
module bench;
  reg clk = 0;
  reg [{inputs}:0] now;
  reg [{inputs}:0] given [0:{cycles}];
  wire [{outputs}:0] shown;
  integer cycle, file;
  {top} dut (.clk(clk){ports});
  initial begin
    $readmemb("given.txt", given);
    file = $fopen("shown.txt", "w");
    for (cycle = 0; cycle <= {cycles}; cycle = cycle + 1) begin
      now = given[cycle];
      #5 $fwrite(file, "%b\\n", shown);
      clk = 1;
      #5 clk = 0;
    end
    $fclose(file);
    $finish(0);
  end
endmodule
"""


class FourStatePlayer:
    """A design whose ports are set and read in every cycle.

    Parameters
    ----------
    manifest : cosim.manifest.Manifest
        The design; ``rst`` is one of its inputs here.
    folder : Path
        Where the program and the ports' values lie.
    change : callable, optional
        Of the text, to plant a defect.

    Attributes
    ----------
    shown, undefined : dict of str to ndarray of object
        Of the last run: output port -> its value in each cycle, in which undefined bits are 0; a mask of those.
    """

    def __init__(self, manifest, folder, change=lambda text: text):
        ports = {name: (port.direction, port.width) for name, port in manifest.ports.items()}
        ports["rst"] = "in", 1
        self.widths = {flow: {name: width for name, (direction, width) in ports.items() if direction == flow}
                       for flow in ("in", "out")}
        self.top, self.text, self.folder = manifest.top, change(manifest.verilog.read_text()), folder
        self.shown, self.undefined = {}, {}

    def play(self, inputs):
        """As of :meth:`cosim.simulate.player.Player.play`; returns :attr:`shown`.

        Raises
        ------
        RuntimeError
            If Icarus Verilog is not there, or refuses the text.
        """
        cycles = len(inputs["rst"])
        lines = ["".join(self._bits(inputs, name, width, cycle) for name, width in self.widths["in"].items())
                 for cycle in range(cycles)]
        (self.folder / "given.txt").write_text("\n".join(lines))
        connected, totals = [], {}
        for flow, bundle in (("in", "now"), ("out", "shown")):
            totals[flow] = left = sum(self.widths[flow].values())
            for name, width in self.widths[flow].items():
                left -= width
                connected.append(f", .{name}({bundle}[{left + width - 1}:{left}])")
        build(self.folder, self.text, _BENCH.format(
            inputs=totals["in"] - 1, outputs=totals["out"] - 1, cycles=cycles - 1, top=self.top,
            ports="".join(connected)))
        run(self.folder)
        shown = (self.folder / "shown.txt").read_text().lower().split()
        start = 0
        for name, width in self.widths["out"].items():
            words = [line[start:start + width] for line in shown]
            self.shown[name], self.undefined[name] = (np.array([int(word.translate(bits), 2) for word in words], object)
                                                      for bits in _DIGITS)
            start += width
        return self.shown

    @staticmethod
    def _bits(inputs, name, width, cycle):
        stream = name.removesuffix("__payload")
        if stream != name and not inputs[f"{stream}__valid"][cycle]:
            return "x" * width
        return f"{int(inputs[name][cycle]):0{width}b}"


#: Bits where the undefined ones are 0; and where they, and no others, are 1.
_DIGITS = tuple(str.maketrans("01xz", digits) for digits in ("0100", "0011"))
