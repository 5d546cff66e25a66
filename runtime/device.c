/* The accelerator: whether it is one, shares of its memories, interrupts. */
#include "words.h"

/* Reads of the status within which a context that is stopped must be still: at most 4160 cycles, by the contract. */
#define STILL 100000u

#define ALL (HBFP_REG_INTERRUPT_ENABLE_DONE_MASK | HBFP_REG_INTERRUPT_ENABLE_ERROR_MASK)

int hbfp_get(struct hbfp_device *device, uint32_t context, uint32_t address, uint32_t *value)
{
    const struct hbfp_io *io = device->io;
    return io->read(io->self, address + context * HBFP_CONTEXT_SPAN, value) ? HBFP_E_BUS : HBFP_OK;
}

int hbfp_put(struct hbfp_device *device, uint32_t context, uint32_t address, uint32_t value)
{
    const struct hbfp_io *io = device->io;
    return io->write(io->self, address + context * HBFP_CONTEXT_SPAN, value) ? HBFP_E_BUS : HBFP_OK;
}

int hbfp_store(const struct hbfp_io *io, size_t place, const void *from, size_t bytes)
{
    if (!io->memory) return io->put(io->self, place, from, bytes) ? HBFP_E_BUS : HBFP_OK;
    hbfp_copy(io->memory + place, from, bytes);
    return HBFP_OK;
}

int hbfp_fetch(const struct hbfp_io *io, size_t place, void *to, size_t bytes)
{
    if (!io->memory) return io->get(io->self, place, to, bytes) ? HBFP_E_BUS : HBFP_OK;
    hbfp_copy(to, io->memory + place, bytes);
    return HBFP_OK;
}

int hbfp_halt(struct hbfp_device *device, uint32_t context)
{
    uint32_t status = 0;
    int error = hbfp_put(device, context, HBFP_REG_CONTROL, HBFP_REG_CONTROL_STOP_MASK);
    for (uint32_t tries = 0; !error && tries < STILL; ++tries) {
        error = hbfp_get(device, context, HBFP_REG_STATUS, &status);
        if (!error && !(status & HBFP_REG_STATUS_BUSY_MASK)) {    /* what the stop itself has left goes, too */
            error = hbfp_put(device, context, HBFP_REG_CONTROL, HBFP_REG_CONTROL_STOP_MASK);
            return error ? error : hbfp_put(device, context, HBFP_REG_INTERRUPT_STATUS, ALL);
        }
    }
    return error ? error : HBFP_E_TIMEOUT;
}

/* HBFP_OK if a register says what it should; else the error, with what it says. */
static int expect(struct hbfp_device *device, uint32_t address, uint32_t wanted, int otherwise)
{
    uint32_t found = 0;
    int error = hbfp_get(device, 0, address, &found);
    if (error) return error;
    if (found == wanted) return HBFP_OK;
    device->address = address, device->found = found, device->wanted = wanted;
    return otherwise;
}

int hbfp_open(struct hbfp_device *device, const struct hbfp_io *io)
{
    int error;
    if (!device || !io || !io->read || !io->write || io->address % HBFP_PAGE) return HBFP_E_ARGUMENT;
    if (!io->memory && (!io->put || !io->get)) return HBFP_E_ARGUMENT;
    device->io = io;
    device->interrupts = device->taken = 0;
    device->address = device->found = device->wanted = 0;
    if ((error = expect(device, HBFP_REG_ID, HBFP_IDENTITY, HBFP_E_DEVICE)) ||
        (error = expect(device, HBFP_REG_VERSION, HBFP_VERSION, HBFP_E_VERSION)) ||
        (error = expect(device, HBFP_REG_CONTEXTS, HBFP_CONTEXTS, HBFP_E_MACHINE)))
        return error;
#ifdef HBFP_REG_REQUEST_TAG
    if ((error = hbfp_detach(device))) return error;
#endif
    for (uint32_t context = 0; context < HBFP_CONTEXTS; ++context) {
        device->shares[context][0] = 0;
        device->shares[context][1] = HBFP_SIXTEENTHS * 0x01010101u;
        if ((error = hbfp_put(device, context, HBFP_REG_INTERRUPT_ENABLE, 0)) || (error = hbfp_halt(device, context)))
            return error;
    }
#ifdef HBFP_REG_REQUEST_TAG
    for (uint32_t tries = 0; tries < STILL; ++tries) {    /* answers to who asked before, those of a batch that was
                                                             stopped among them */
        struct hbfp_completion old;
        if ((error = hbfp_completion(device, &old))) return error == HBFP_E_EMPTY ? HBFP_OK : error;
    }
    return HBFP_E_TIMEOUT;
#else
    return HBFP_OK;
#endif
}

int hbfp_interrupts(struct hbfp_device *device, int on)
{
    if (!device) return HBFP_E_ARGUMENT;
    device->interrupts = on ? ALL : 0;
    return HBFP_OK;
}

int hbfp_interrupt(struct hbfp_device *device)
{
    int ours = 0;
    if (!device || !device->io) return 0;    /* it came before hbfp_open */
    for (uint32_t context = 0; context < HBFP_CONTEXTS; ++context) {
        uint32_t raised = 0;
        if (!hbfp_get(device, context, HBFP_REG_INTERRUPT_STATUS, &raised) && raised) {
            ours = 1;
            (void)hbfp_put(device, context, HBFP_REG_INTERRUPT_STATUS, raised);
        }
    }
#ifdef HBFP_REG_REQUEST_TAG
    uint32_t enabled = 0, state = 0;    /* it lasts until completions are taken: hbfp_completion lets it come again */
    if (!hbfp_get(device, 0, HBFP_REG_DISPATCH_ENABLE, &enabled) &&
        !hbfp_get(device, 0, HBFP_REG_DISPATCH_STATUS, &state) && (enabled & state)) {
        ours = 1;
        (void)hbfp_put(device, 0, HBFP_REG_DISPATCH_ENABLE, 0);
    }
#endif
    device->taken += (uint32_t)ours;
    return ours;
}

int hbfp_share(struct hbfp_device *device, uint32_t context, const uint8_t first[4], const uint8_t size[4])
{
    uint32_t words[2] = {0, 0};
    if (!device || context >= HBFP_CONTEXTS || !first || !size) return HBFP_E_ARGUMENT;
    for (uint32_t memory = 0; memory < 4u; ++memory) {
        if (!size[memory] || (uint32_t)first[memory] + size[memory] > HBFP_SIXTEENTHS) return HBFP_E_ARGUMENT;
        words[0] |= (uint32_t)first[memory] << 8u * memory;
        words[1] |= (uint32_t)size[memory] << 8u * memory;
    }
#ifndef HBFP_REG_SHARE_FIRST
    if (words[0] || words[1] != HBFP_SIXTEENTHS * 0x01010101u) return HBFP_E_ARGUMENT;
#endif
    device->shares[context][0] = words[0];
    device->shares[context][1] = words[1];
    return HBFP_OK;
}
