/* Steps of training: arguments 1 and 2 say which of two places a step reads and writes, the others are numbers. */
#include "words.h"

/* What lies behind the first place in the next step. */
static uint32_t turn(const struct hbfp_training *training)
{
    return training->step & 1u ? training->bytes : 0;
}

int hbfp_further(const struct hbfp_training *training, const char *name, uint32_t *further)
{
    struct hbfp_tensor tensor;
    if (!training || !further) return HBFP_E_ARGUMENT;
    int error = hbfp_tensor(training->program, name, &tensor);
    if (error) return error;
    uint32_t behind = tensor.address - training->place;    /* modulo 2^32: large before the first place */
    *further = behind < training->bytes ? turn(training) : behind < 2u * training->bytes ? 0u - turn(training) : 0;
    return HBFP_OK;
}

int hbfp_step(struct hbfp_training *training, const uint32_t *told, uint32_t count, uint32_t patience)
{
    if (!training || !training->program || (count && !told) || count > HBFP_ARGUMENTS - 2u) return HBFP_E_ARGUMENT;
    int error = hbfp_argument(training->program, 1, turn(training));
    if (!error) error = hbfp_argument(training->program, 2, 0u - turn(training));
    for (uint32_t i = 0; !error && i < count; ++i) error = hbfp_argument(training->program, 3u + i, told[i]);
    if (!error) error = hbfp_run(training->program, patience);
    if (!error) ++training->step;
    return error;
}
