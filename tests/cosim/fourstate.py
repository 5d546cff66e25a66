"""A design in Icarus Verilog, whose signals are undefined until something defines them: same calls as a Verilated one.

The text loses its initial values first, and payloads are undefined while they are not valid. Whatever an output
shows after reset must be defined: handshakes and flags always, a payload while it is valid.
"""

import re
import shutil
import subprocess

import numpy as np

from cosim.simulate.simulation import Pause, ProtocolError

#: Cycles without a transfer after which a run counts as stuck.
PATIENCE = 2000
#: Cycles that a run goes on after the last transfer.
TAIL = 64

_BENCH = """\
module bench;
  reg clk = 0, rst = 1;
  integer seed = 1, quiet = 0, after = 0, cycle = 0;
  reg moved, complete, leading;
{declarations}
  {top} dut (.clk(clk), .rst(rst){ports});
  always #5 clk = ~clk;

  task stop(input [8*80-1:0] message);
    begin
      $display("%0s in cycle %0d", message, cycle);
      $finish(0);
    end
  endtask

  initial begin
    if ($value$plusargs("seed=%d", seed)) begin end
{opening}
    repeat (3) @(negedge clk);
    rst = 0;
    forever begin
      moved = 0;
      complete = 1;
      leading = 0;
{lead}
{drive}
      #4;    // everything has settled; the edge comes next
{check}
{transfer}
      quiet = moved || complete ? 0 : quiet + 1;
      if (quiet > {patience}) stop("no transfer");
      after = complete ? after + 1 : 0;
      if (after > {tail}) begin
{closing}
        $display("done");
        $finish(0);
      end
      cycle = cycle + 1;
      @(negedge clk);
    end
  end
endmodule
"""

_PAUSE = """\
      paused_{name} = enter_{name} != 0 &&
        ((paused_{name} && {{$random(seed)}} > leave_{name}) || {{$random(seed)}} < enter_{name});
"""


def without_initial_values(text):
    """Verilog whose registers and memories start undefined, as they do in hardware.

    The flag that starts combinational processes is no register and keeps its value.
    """
    text = re.sub(r"^  initial begin\n.*?^  end\n", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^(  (?:output )?reg (?:\[\d+:\d+\] )?\S+) +=.*;$", r"\1;", text, flags=re.MULTILINE)


def _bench(manifest):
    """The test bench of a design: offers, takes, pauses and looks for what is undefined."""
    lines = {name: [] for name in ("declarations", "ports", "opening", "lead", "drive", "check", "transfer", "closing")}
    for stream in manifest.streams.values():
        name, width = stream.name, stream.width
        lines["declarations"].append(
            f"  integer beats_{name} = 0, done_{name} = 0;\n  reg paused_{name} = 0, moved_{name} = 0;\n"
            f"  reg [31:0] enter_{name} = 0, leave_{name} = 0;\n")
        lines["ports"] += [f", .{name}__{part}({part}_{name})" for part in ("payload", "valid", "ready")]
        lines["opening"] += [f'    if ($value$plusargs("{word}_{name}=%d", {word}_{name})) begin end\n'
                             for word in ("beats", "enter", "leave")]
        if stream.direction == "in":
            lines["opening"].append(f'    if ($value$plusargs("leads_{name}=%d", leads_{name})) begin end\n')
            lines["declarations"].append(
                f"  reg [{width - 1}:0] data_{name} [0:65535], payload_{name};\n  reg valid_{name} = 0;\n"
                f"  reg leads_{name} = 0;\n  wire ready_{name};\n")
            lines["opening"].append(
                f'    if (beats_{name} != 0) $readmemh("{name}.hex", data_{name}, 0, beats_{name} - 1);\n')
            lines["lead"].append(f"      if (leads_{name} && done_{name} != beats_{name}) leading = 1;\n")
            lines["drive"].append(
                f"      if (!valid_{name} || moved_{name}) begin\n{_PAUSE.format(name=name)}"
                f"      valid_{name} = done_{name} < beats_{name} && !paused_{name} && (leads_{name} || !leading);\n"
                f"      payload_{name} = valid_{name} ? data_{name}[done_{name}] : {width}'bx;\n      end\n")
            lines["check"].append(f'      if (ready_{name} === 1\'bx) stop("{name}__ready is undefined");\n')
            taken = ""
        else:
            lines["declarations"].append(
                f"  wire [{width - 1}:0] payload_{name};\n  wire valid_{name};\n  reg ready_{name} = 0;\n"
                f"  reg waits_{name} = 0;\n  reg [{width - 1}:0] held_{name};\n  integer file_{name};\n")
            lines["opening"].append(f'    file_{name} = $fopen("{name}.hex", "w");\n')
            lines["closing"].append(f"        $fclose(file_{name});\n")
            lines["drive"].append(_PAUSE.format(name=name) +
                                  f"      ready_{name} = done_{name} < beats_{name} && !paused_{name};\n")
            lines["check"].append(
                f'      if (valid_{name} === 1\'bx) stop("{name}__valid is undefined");\n'
                f'      if (valid_{name} && ^payload_{name} === 1\'bx) stop("{name}__payload is undefined");\n'
                f'      if (waits_{name} && (!valid_{name} || payload_{name} !== held_{name}))\n'
                f'        stop("{name} changed while it waited");\n'
                f'      if (valid_{name} && done_{name} == beats_{name}) stop("{name} offers more");\n'
                f"      waits_{name} = valid_{name} && !ready_{name};\n      held_{name} = payload_{name};\n")
            taken = f'        $fwrite(file_{name}, "%h\\n", payload_{name});\n'
        lines["transfer"].append(
            f"      moved_{name} = valid_{name} && ready_{name};\n"
            f"      if (moved_{name}) begin\n        done_{name} = done_{name} + 1;\n"
            f"        moved = 1;\n{taken}      end\n      complete = complete && done_{name} == beats_{name};\n")
    for flag in manifest.flags():
        lines["declarations"].append(f"  wire flag_{flag};\n")
        lines["ports"].append(f", .{flag}(flag_{flag})")
        lines["check"].append(f'      if (flag_{flag} !== 0) stop("{flag} is not 0");\n')
    return _BENCH.format(top=manifest.top, patience=PATIENCE, tail=TAIL,
                         **{name: "".join(part).rstrip("\n") for name, part in lines.items()})


def build(folder, text, bench, **parameters):
    """Compile a design, whose initial values are taken away, with a bench of the module ``bench``, to ``bench.vvp``.

    ``parameters`` are those of the bench; one of text is a macro.

    Raises
    ------
    RuntimeError
        If Icarus Verilog is not there, or refuses the text.
    """
    if shutil.which("iverilog") is None:
        raise RuntimeError("iverilog is missing: apt-get install iverilog")
    (folder / "dut.v").write_text(without_initial_values(text))
    (folder / "bench.v").write_text(bench)
    options = [f"-D{name}={value}" if isinstance(value, str) else f"-Pbench.{name}={value}"
               for name, value in parameters.items()]
    done = subprocess.run(["iverilog", "-g2012", "-o", "bench.vvp", "-s", "bench", *options, "bench.v", "dut.v"],
                          cwd=folder, capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise RuntimeError(done.stdout + done.stderr)


def run(folder, *words):
    """Run what :func:`build` has built; the lines that it prints."""
    done = subprocess.run(["vvp", "-n", "bench.vvp", *words], cwd=folder, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().splitlines()


class FourState:
    """A design in Icarus Verilog, with those calls of :class:`cosim.simulate.simulation.Simulation` that a core makes.

    Every run starts from undefined registers and a reset. Inputs of a run without outputs, such as a seed, are kept
    and sent ahead of those of the runs after it, up to the next :meth:`reset`.

    Parameters
    ----------
    manifest : Manifest
        The design.
    folder : Path
        Where the program and the payloads lie.
    text : str, optional
        The Verilog, if it is not the manifest's.

    Raises
    ------
    RuntimeError
        If Icarus Verilog is not there, or refuses the text.
    """

    def __init__(self, manifest, folder, text=None):
        self.manifest, self.folder = manifest, folder
        self.streams = manifest.streams
        self.cycle = self._runs = 0
        self._ahead = {}
        build(folder, manifest.verilog.read_text() if text is None else text, _bench(manifest))

    def reset(self):
        """What was kept to be sent ahead is sent no more."""
        self._ahead = {}

    def run(self, inputs, outputs, *, pauses=None, limit=None, bucket=None):
        """Offer all inputs and take all outputs; as :meth:`cosim.simulate.simulation.Simulation.run`, without traffic.

        Raises
        ------
        ProtocolError
            If the design shows something undefined, stops, changes a stalled payload or sends more than asked for.
        """
        if not outputs:
            self._ahead |= inputs
            return None
        self._runs += 1
        inputs = self._ahead | inputs
        words = [f"+seed={self._runs}"]
        for name, stream in self.streams.items():
            if stream.direction == "in":
                data = inputs.get(name, np.empty((0, stream.stride), np.uint8))
                beats, digits = len(data), -(-stream.width // 4)
                words.append(f"+leads_{name}={int(name in self._ahead)}")
                assert beats <= 65536
                (self.folder / f"{name}.hex").write_text(
                    "".join(f"{line[::-1].tobytes().hex()[-digits:].rjust(digits, '0')}\n" for line in data))
            else:
                beats = outputs.get(name, 0)
            enter, leave = (pauses or {}).get(name, Pause()).chances()
            words += [f"+beats_{name}={beats}", f"+enter_{name}={enter}", f"+leave_{name}={leave}"]
        last = run(self.folder, *words)[-1]
        if last != "done":
            raise ProtocolError(last)
        return _Run({name: self._payloads(stream) for name, stream in self.streams.items()
                     if stream.direction == "out"})

    def _payloads(self, stream):
        """What came on an output: (beats, stride)."""
        lines = (self.folder / f"{stream.name}.hex").read_text().split()
        data = b"".join(int(line, 16).to_bytes(stream.stride, "little") for line in lines)
        return np.frombuffer(data, np.uint8).reshape(-1, stream.stride)


class _Run:
    """Payloads of one run, and no cycle count."""
    cycles = 0

    def __init__(self, payloads):
        self.payloads = payloads
