/* The dispatcher in front of two contexts: what it may start, requests, and what became of them. */
#include "words.h"

#ifdef HBFP_REG_REQUEST_TAG

static uint32_t field(uint32_t value, uint32_t shift, uint32_t mask)
{
    return value << shift & mask;
}

int hbfp_attach(struct hbfp_device *device, const struct hbfp_policy *policy)
{
    int error;
    if (!device || !policy || policy->batch > HBFP_REG_POLICY_BATCH_MASK >> HBFP_REG_POLICY_BATCH_SHIFT ||
        policy->share > HBFP_SIXTEENTHS)
        return HBFP_E_ARGUMENT;
    uint32_t word = HBFP_REG_POLICY_ATTACHED_MASK | (policy->inference ? HBFP_REG_POLICY_INFERENCE_MASK : 0) |
                    (policy->training ? HBFP_REG_POLICY_TRAINING_MASK : 0) |
                    (policy->priority ? HBFP_REG_POLICY_PRIORITY_MASK : 0) |
                    (policy->closes ? HBFP_REG_POLICY_CLOSES_MASK : 0) |
                    field(policy->batch, HBFP_REG_POLICY_BATCH_SHIFT, HBFP_REG_POLICY_BATCH_MASK) |
                    field(policy->share, HBFP_REG_POLICY_SHARE_SHIFT, HBFP_REG_POLICY_SHARE_MASK);
    if ((error = hbfp_put(device, 0, HBFP_REG_TIMEOUT, policy->timeout)) ||
        (error = hbfp_put(device, 0, HBFP_REG_PATIENCE, policy->patience)) ||
        (error = hbfp_put(device, 0, HBFP_REG_INTERRUPT_ENABLE, 0)) ||    /* completions tell more than ends of batches */
        (error = hbfp_put(device, 0, HBFP_REG_DISPATCH_ENABLE,
                          device->interrupts ? HBFP_REG_DISPATCH_ENABLE_COMPLETION_MASK : 0)))
        return error;
    return hbfp_put(device, 0, HBFP_REG_POLICY, word);
}

int hbfp_detach(struct hbfp_device *device)
{
    return device ? hbfp_put(device, 0, HBFP_REG_POLICY, field(1, HBFP_REG_POLICY_BATCH_SHIFT, UINT32_MAX))
                  : HBFP_E_ARGUMENT;
}

int hbfp_request(struct hbfp_device *device, uint32_t input, uint32_t output, uint32_t tag)
{
    uint32_t before = 0, after = 0;
    int error, answer;
    if (!device) return HBFP_E_ARGUMENT;
    if ((error = hbfp_get(device, 0, HBFP_REG_REFUSED, &before)) ||
        (error = hbfp_put(device, 0, HBFP_REG_REQUEST_INPUT, input)) ||
        (error = hbfp_put(device, 0, HBFP_REG_REQUEST_OUTPUT, output)))
        return error;
    if (device->io->sync) device->io->sync(device->io->self, 1);
    answer = hbfp_put(device, 0, HBFP_REG_REQUEST_TAG, tag);    /* a bridge may hide that it was refused, or not */
    if ((error = hbfp_get(device, 0, HBFP_REG_REFUSED, &after))) return error;
    return after != before ? HBFP_E_FULL : answer;
}

int hbfp_completion(struct hbfp_device *device, struct hbfp_completion *completion)
{
    uint32_t state = 0;
    int error;
    if (!device || !completion) return HBFP_E_ARGUMENT;
    if ((error = hbfp_get(device, 0, HBFP_REG_COMPLETION, &state))) return error;
    if (!(state & HBFP_REG_COMPLETION_VALID_MASK)) {
        uint32_t enabled = device->interrupts ? HBFP_REG_DISPATCH_ENABLE_COMPLETION_MASK : 0;
        error = hbfp_put(device, 0, HBFP_REG_DISPATCH_ENABLE, enabled);
        return error ? error : HBFP_E_EMPTY;
    }
    completion->failed = (state & HBFP_REG_COMPLETION_FAILED_MASK) != 0;
    completion->refused = (state & HBFP_REG_COMPLETION_REFUSED_MASK) >> HBFP_REG_COMPLETION_REFUSED_SHIFT;
    if ((error = hbfp_get(device, 0, HBFP_REG_COMPLETION_TAG, &completion->tag)) ||
        (error = hbfp_get(device, 0, HBFP_REG_COMPLETION_ARRIVED, &completion->arrived)) ||
        (error = hbfp_get(device, 0, HBFP_REG_COMPLETION_STARTED, &completion->started)) ||
        (error = hbfp_get(device, 0, HBFP_REG_COMPLETION_FINISHED, &completion->finished)))
        return error;
    if (device->io->sync) device->io->sync(device->io->self, 0);
    return hbfp_put(device, 0, HBFP_REG_COMPLETION, HBFP_REG_COMPLETION_VALID_MASK);
}

#else
typedef int hbfp_no_dispatcher;    /* C wants something in every file */
#endif
