/* Errors and causes in words. */
#include "hbfp.h"

const char *hbfp_error_text(int error)
{
#define HBFP_AS_TEXT(name, text) text,
    static const char *const texts[] = {HBFP_ERRORS(HBFP_AS_TEXT)};
    return error >= 0 && error < HBFP_ERROR_COUNT ? texts[error] : "no error of this library";
}

const char *hbfp_cause_text(uint32_t cause)
{
    switch (cause) {
    case 0: return "none";
    case HBFP_CAUSE_ILLEGAL: return "an instruction is illegal";
    case HBFP_CAUSE_ADDRESS: return "an address lies outside of a memory, a share or the limit";
    case HBFP_CAUSE_MISALIGNED: return "an address in DRAM is not at a beat";
    case HBFP_CAUSE_BUS: return "DRAM answered with an error";
    case HBFP_CAUSE_WATCHDOG: return "nothing went on for as long as the watchdog waits";
    case HBFP_CAUSE_BUSY: return "the doorbell was rung while it ran";
    case HBFP_CAUSE_END: return "the program runs beyond its instructions";
    case HBFP_CAUSE_REFUSED: return "the core or the vector unit refused what it was given";
    case HBFP_CAUSE_STOPPED: return "it was stopped";
    case HBFP_CAUSE_OVERDUE: return "it did not give way within the dispatcher's patience";
    case HBFP_CAUSE_PARITY: return "a bit in a memory has turned round";
    default: return "no cause that this version knows";
    }
}
