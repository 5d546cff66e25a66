"""Why some points of an accelerator's text cannot be reached, whatever runs on it.

What decode refuses reaches no unit; that it refuses just this is a law (``tests/formal``) or is compared with a second
decoder (``tests/hbfp/isa/plain_decode.py``).
"""

from .points import BRANCH, LINE, Reason

_CODE = (LINE, BRANCH)
REASONS = [
    Reason("wakes processes of simulators that wait for events; it is never high", text=r"if \(wakes\) begin end"),
    Reason("a case has entries for all numbers of its bits; waits are three", "hbfp_queue_.*", "2'h3: ", _CODE),
    Reason("a case has entries for all numbers of its bits; counters are 24", "hbfp_counters_n24",
           "5'h(18|19|1[a-f]): ", _CODE),
    Reason("a case that has all numbers needs no default", "hbfp_counters_.*", r"default: ;", _CODE),
    Reason("decode refuses a load into a fourth memory", "hbfp_load_.*", "2'h3: ", _CODE),
    Reason("decode refuses weights that do not begin with a tile", "hbfp_weights_.*|hbfp_feed_weights_.*", "refused",
           _CODE),
    Reason("decode and MULTIPLY refuse commands that the core would", "hbfp_sequencer_.*", "~good", _CODE),
    Reason("with one context nothing is parked, and a doorbell waits for one cycle", "hbfp_control_l\\d+",
           r"state_is_6|6'h28|waiting \? ", _CODE),
    Reason("the third loop has one turn where columns are not turned apart", "hbfp_convert_.*",
           r"if \(loop_carry2\)|if \(1'h0\)", _CODE),
    Reason("in an accelerator the unit never stands still amid a pass", "hbfp_(function|vector|vector_lane)_.*",
           r"if \(en\) begin", (BRANCH,), "else"),
    Reason("an accelerator never clears an error of the vector unit: it resets the unit", "hbfp_vector_.*",
           r"if \(clear\)", (BRANCH,), "if"),
    Reason("where a tile of weights is one word, its words are never counted on", "hbfp_weights_.*",
           r"if \(~\|tile_word\)", (BRANCH,), "else"),
    Reason("is read in every cycle", "hbfp_ram_.*", r"if \(r_en\)", (BRANCH,), "else"),
]
