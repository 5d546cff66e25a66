"""Why points of an accelerator's text cannot be reached, whatever runs on it, or in no run that one could wait for.

What decode refuses reaches no unit; that it refuses just this is a law (``tests/formal``) or is compared with a second
decoder (``tests/hbfp/isa/plain_decode.py``). Bits of counts that take too long are above those that runs reach
(:mod:`tests.coverage.runs`); what their parts do is a law from any state.
"""

from .points import BRANCH, LINE, TOGGLE, Reason

_TOPS = "one context|dispatched"
_CODE, _BITS, _BRANCH = (LINE, BRANCH), (TOGGLE,), (BRANCH,)
REASONS = [
    Reason("wakes", "wakes processes of simulators that wait for events; it is never high",
           text=r"if \(wakes\) begin end"),
    Reason("fourth_wait", "a case has entries for all numbers of its bits; waits are three",
           "hbfp_queue_.*", "2'h3: ", _CODE),
    Reason("numbers_of_counters", "a case has entries for all numbers of its bits; counters are 24",
           "hbfp_counters_n24", "5'h(18|19|1[a-f]): ", _CODE),
    Reason("default_of_counters", "a case that has all numbers needs no default",
           "hbfp_counters_.*", r"default: ;", _CODE),
    Reason("fourth_memory", "decode refuses a load into a fourth memory",
           "hbfp_load_.*", "2'h3: ", _CODE),
    Reason("half_a_tile", "decode refuses weights that do not begin with a tile",
           "hbfp_weights_.*|hbfp_feed_weights_.*", "refused", _CODE),
    Reason("refused_earlier", "decode and MULTIPLY refuse commands that the core would",
           "hbfp_sequencer_.*", "~good", _CODE),
    Reason("one_context", "with one context nothing is parked, and a doorbell waits for one cycle",
           r"hbfp_control_l\d+", r"state_is_6|6'h28|waiting \? ", _CODE),
    Reason("third_loop", "the third loop has one turn where columns are not turned apart",
           "hbfp_convert_.*", r"if \(loop_carry2\)", _CODE),
    Reason("never", "the condition is the constant 0", text=r"if \(1'h0\)", kinds=_CODE),
    Reason("never_still", "in an accelerator the unit never stands still amid a pass",
           "hbfp_(function|vector|vector_lane)_.*", r"if \(en\) begin", _BRANCH, "else"),
    Reason("never_cleared", "an accelerator never clears an error of the vector unit: it resets the unit",
           "hbfp_vector_.*", r"if \(clear\)", _BRANCH, "if"),
    Reason("word_of_a_tile", "where a tile of weights is one word, its words are never counted on",
           "hbfp_weights_.*", r"if \(~\|tile_word\)", _BRANCH, "else"),
    Reason("read_always", "is read in every cycle", "hbfp_ram_.*", r"if \(r_en\)", _BRANCH, "else"),
    Reason("last_state", "a chain of all states has no other behind its last",
           "hbfp_dispatch_d.*", r"else if \(state_is_7\)", _BRANCH, "else"),
    Reason("early", "nobody tells this dispatcher of requests behind their time",
           r"hbfp_dispatch_ages_.*_t9_.*", "early", _BRANCH, "cond_then"),
    Reason("period", "takes 2^31 cycles, half a period of the dispatcher's time; those of 2^9 and 2^11 are "
           "counted, too, and have laws (tests/formal/test_ages.py, test_dispatcher.py)",
           r"hbfp_dispatch_(ages_)?d\d+_.*_t32_.*", r"turns|early|halves|state_is_8|begins_2\) state", _CODE),
    Reason("numbers", "bits of an instruction's number from 2^19 on: a program of 458 753 is counted, and control and "
           "fetch have laws (tests/formal/test_control.py, test_fetch.py)",
           fr"hbfp_(issue|queue|control|registers)_.*|{_TOPS}", kinds=_BITS, least=19, period=24,
           what=r"number|place|place[01]|place_plus_1|place_if_reader_error|pc|(bus|error|fault)_pc|queue_\w+_number"),
    Reason("completed", "bits of the instructions that a unit has completed from 2^17 on: 2^16 of each are counted",
           "hbfp_(issue|queue)_.*", kinds=_BITS, least=17, period=24, what=r"counts|counted|counts_\d+_\d+_plus_1"),
    Reason("cycles", "bits of counts of cycles from 2^21 on: a million is counted",
           fr"hbfp_(counters|registers|control)_.*|hbfp_ram_d(24|64)_w32|{_TOPS}", kinds=_BITS, least=21,
           what=r"count|counts_choice|timer|[rw]_data(_choice(_plus_amount)?)?|contents"),
    Reason("times", "bits of the dispatcher's times, and of their sums, from 2^21 on: two million cycles are counted, "
           "and dispatchers whose times wrap",
           r"hbfp_(dispatch_(\w+_)?d\d+_.*_t32_.*|(front|ring|registers)_.*)|dispatched", kinds=_BITS, least=21,
           what="clock|clock_plus_1|now|arrived|arrived_if_told|first|first_if_fresh|since|amount|(finished|started)(_2)?|"
                "tally|o_value__payload|o_counter__payload|r_data_128_96_if_choosing|result|total|w_data"),
    Reason("completions", "bits of the times of completions from 2^21 on, likewise",
           r"hbfp_(dispatch_(\w+_)?d\d+_.*_t32_.*|front_.*)|dispatched",
           kinds=_BITS, least=21, period=32, what="(front_)?completed|o_completion__payload|entry|head"),
    Reason("parity", "parity is wrong only where a bit of a memory has turned round, as test_state.py turns them",
           text="broken", kinds=(BRANCH, TOGGLE), what=r"cond_then|\w*broken\w*"),
]
