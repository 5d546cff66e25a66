/* A program: into the memory, to its end, and what came of it. */
#include "words.h"

#define RAISED (HBFP_REG_INTERRUPT_STATUS_DONE_MASK | HBFP_REG_INTERRUPT_STATUS_ERROR_MASK)

/* Registers that say what the machine is, in the order of the index. */
static const uint16_t known[HBFP_PARAMETERS] = {
    HBFP_REG_ID, HBFP_REG_VERSION, HBFP_REG_ROWS, HBFP_REG_MANTISSA, HBFP_REG_EXPONENT, HBFP_REG_BLOCK,
    HBFP_REG_BLOCK_ROWS, HBFP_REG_X_WORDS, HBFP_REG_W_WORDS, HBFP_REG_V_WORDS, HBFP_REG_P_WORDS, HBFP_REG_ROW_WORDS,
    HBFP_REG_VECTOR_ROWS, HBFP_REG_CONTEXTS, HBFP_REG_VECTOR_LANES};

/* The byte of a share's registers that is of a memory, or -1. */
static int shared(uint32_t address)
{
    return address == HBFP_REG_V_WORDS ? 0 : address == HBFP_REG_X_WORDS ? 1 : address == HBFP_REG_W_WORDS ? 2 :
           address == HBFP_REG_P_WORDS ? 3 : -1;
}

/* HBFP_OK if the program was made for this machine, or for one with memories as small as its share. */
static int fits(struct hbfp_device *device, uint32_t context, const uint8_t *index)
{
    uint32_t hash = hbfp_word(index, HBFP_INDEX_MACHINE);
    for (uint32_t i = 0; i < HBFP_PARAMETERS; ++i) {
        uint32_t found = 0, wanted = hbfp_word(index, HBFP_INDEX_FIXED + i);
        int memory = shared(known[i]), error = hbfp_get(device, 0, known[i], &found);
        if (error) return error;
        if (memory >= 0) found = found / HBFP_SIXTEENTHS * (device->shares[context][1] >> 8 * memory & 0xFFu);
        if (known[i] == HBFP_REG_CONTEXTS || (memory >= 0 ? wanted <= found : wanted == found)) continue;
        device->address = known[i], device->found = found, device->wanted = wanted;
        return known[i] == HBFP_REG_VERSION ? HBFP_E_VERSION : HBFP_E_MACHINE;
    }
    if (!HBFP_MACHINE || hash == HBFP_MACHINE) return HBFP_OK;
    device->address = UINT32_MAX, device->found = HBFP_MACHINE, device->wanted = hash;
    return HBFP_E_MACHINE;
}

int hbfp_load(struct hbfp_program *program, struct hbfp_device *device, uint32_t context, const void *data,
              size_t bytes, size_t place)
{
    if (!program || !device || context >= HBFP_CONTEXTS || place % HBFP_PAGE) return HBFP_E_ARGUMENT;
    int error = hbfp_file(&program->file, data, bytes);
    if (error || (error = fits(device, context, program->file.index))) return error;
    const uint8_t *index = program->file.index, *from = program->file.memory;
    const struct hbfp_io *io = device->io;
    uint32_t limit = hbfp_word(index, HBFP_INDEX_LIMIT), regions = hbfp_word(index, HBFP_INDEX_REGIONS);
    uint64_t base = (uint64_t)place + ((uint64_t)program->file.instruction_bytes + HBFP_PAGE - 1u) / HBFP_PAGE * HBFP_PAGE;
    if (base + limit > io->bytes) {
        device->found = io->bytes, device->wanted = base + limit;
        return HBFP_E_MEMORY;
    }
    program->device = device;
    program->context = context;
    program->place = place;
    program->base = (size_t)base;
    program->end = program->base + ((size_t)limit + HBFP_PAGE - 1u) / HBFP_PAGE * HBFP_PAGE;
    program->seed = hbfp_word(index, HBFP_INDEX_SEED);
    program->watchdog = 100000u;
    uint32_t at = HBFP_INDEX_FIXED + HBFP_PARAMETERS, arguments = hbfp_word(index, HBFP_INDEX_ARGUMENTS);
    program->told = (1u << arguments) - 1u;
    for (uint32_t i = 0; i < HBFP_ARGUMENTS; ++i)
        program->arguments[i] = i < arguments ? hbfp_word(index, at + i) : 0;
    at += arguments;
    error = hbfp_store(io, place, program->file.instructions, program->file.instruction_bytes);
    for (uint32_t i = 0; !error && i < regions; ++i) {
        uint32_t address = hbfp_word(index, at + 2u * i), size = hbfp_word(index, at + 2u * i + 1u);
        error = hbfp_store(io, program->base + address, from, size);
        from += size;
    }
    return error;
}

int hbfp_argument(struct hbfp_program *program, uint32_t number, uint32_t value)
{
    if (!program || !number || number > HBFP_ARGUMENTS) return HBFP_E_ARGUMENT;
    program->arguments[number - 1u] = value;
    program->told |= 1u << (number - 1u);
    return HBFP_OK;
}

/* Status of the program's context. */
static int status_of(struct hbfp_program *program, uint32_t *status)
{
    return hbfp_get(program->device, program->context, HBFP_REG_STATUS, status);
}

int hbfp_prepare(struct hbfp_program *program)
{
    if (!program || !program->device) return HBFP_E_ARGUMENT;
    struct hbfp_device *device = program->device;
    const struct hbfp_io *io = device->io;
    uint32_t status = 0;
    int error = status_of(program, &status);
    if (!error && (status & HBFP_REG_STATUS_BUSY_MASK)) error = HBFP_E_BUSY;
    uint64_t first = io->address + program->place, base = io->address + program->base;
    const uint32_t values[][2] = {
        {HBFP_REG_PROGRAM_LOW, (uint32_t)first}, {HBFP_REG_PROGRAM_HIGH, (uint32_t)(first >> 32)},
        {HBFP_REG_BASE_LOW, (uint32_t)base}, {HBFP_REG_BASE_HIGH, (uint32_t)(base >> 32)},
        {HBFP_REG_LIMIT, hbfp_word(program->file.index, HBFP_INDEX_LIMIT)},
        {HBFP_REG_INSTRUCTIONS, program->file.instruction_bytes / 64u},
        {HBFP_REG_WATCHDOG, program->watchdog}, {HBFP_REG_INTERRUPT_STATUS, RAISED},
#ifdef HBFP_REG_SHARE_FIRST
        {HBFP_REG_SHARE_FIRST, device->shares[program->context][0]},
        {HBFP_REG_SHARE_SIZE, device->shares[program->context][1]},
#endif
#ifdef HBFP_REG_SEED
        {HBFP_REG_SEED, program->seed},
#endif
        {HBFP_REG_INTERRUPT_ENABLE, device->interrupts}};
    for (uint32_t i = 0; !error && i < sizeof values / sizeof *values; ++i)
        error = hbfp_put(device, program->context, values[i][0], values[i][1]);
    for (uint32_t i = 0; !error && i < HBFP_ARGUMENTS; ++i)
        if (program->told >> i & 1u)
            error = hbfp_put(device, program->context, HBFP_REG_ARGUMENT1 + 4u * i, program->arguments[i]);
    if (!error && io->sync) io->sync(io->self, 1);
    return error;
}

int hbfp_start(struct hbfp_program *program)
{
    int error = hbfp_prepare(program);
    return error ? error : hbfp_put(program->device, program->context, HBFP_REG_CONTROL, HBFP_REG_CONTROL_START_MASK);
}

int hbfp_wait(struct hbfp_program *program, uint32_t patience)
{
    if (!program || !program->device) return HBFP_E_ARGUMENT;
    const struct hbfp_io *io = program->device->io;
    for (uint32_t tries = 0;; ++tries) {
        uint32_t status = 0;
        int error = status_of(program, &status);
        if (error) return error;
        if (!(status & HBFP_REG_STATUS_BUSY_MASK)) {
            if (io->sync) io->sync(io->self, 0);
            return status & HBFP_REG_STATUS_ERROR_MASK ? HBFP_E_PROGRAM :
                   status & HBFP_REG_STATUS_DONE_MASK ? HBFP_OK : HBFP_E_IDLE;
        }
        if (tries == patience) return HBFP_E_TIMEOUT;
        if (io->sleep) io->sleep(io->self);
    }
}

int hbfp_run(struct hbfp_program *program, uint32_t patience)
{
    int error = hbfp_start(program);
    return error ? error : hbfp_wait(program, patience);
}

int hbfp_stop(struct hbfp_program *program)
{
    return program && program->device ? hbfp_halt(program->device, program->context) : HBFP_E_ARGUMENT;
}

int hbfp_register(struct hbfp_program *program, uint32_t address, uint32_t *value)
{
    if (!program || !program->device || !value || address % 4u || address >= HBFP_CONTEXT_SPAN) return HBFP_E_ARGUMENT;
    return hbfp_get(program->device, program->context, address, value);
}

int hbfp_result(struct hbfp_program *program, struct hbfp_result *result)
{
    int error;
    if (!result) return HBFP_E_ARGUMENT;
    if ((error = hbfp_register(program, HBFP_REG_CYCLES, &result->cycles)) ||
        (error = hbfp_register(program, HBFP_REG_CAUSE, &result->cause)))
        return error;
    return hbfp_register(program, HBFP_REG_ERROR_PC, &result->error_pc);
}
