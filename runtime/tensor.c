/* Tensors by their names: FP32 numbers to and from DRAM. */
#include "words.h"

uint32_t hbfp_tensors(const struct hbfp_program *program)
{
    return program && program->device ? hbfp_word(program->file.index, HBFP_INDEX_TENSORS) : 0;
}

int hbfp_tensor_at(const struct hbfp_program *program, uint32_t number, struct hbfp_tensor *tensor)
{
    if (!tensor || number >= hbfp_tensors(program)) return HBFP_E_ARGUMENT;
    const uint8_t *index = program->file.index;
    const uint8_t *at = index + 4u * (size_t)(HBFP_INDEX_FIXED + HBFP_PARAMETERS + hbfp_word(index, HBFP_INDEX_ARGUMENTS)
                                              + 2u * hbfp_word(index, HBFP_INDEX_REGIONS));
    for (; number; --number) at += 4u * (size_t)hbfp_word(at, 0);
    tensor->address = hbfp_word(at, 1);
    tensor->row = hbfp_word(at, 2);
    tensor->elements = hbfp_word(at, 3);
    tensor->rows = hbfp_word(at, 4);
    tensor->layout = hbfp_word(at, 5);
    tensor->role = hbfp_word(at, 6);
    tensor->sides = hbfp_word(at, 7);
    tensor->shape = at + 4u * HBFP_TENSOR_HEAD;
    tensor->name = (const char *)(tensor->shape + 4u * (size_t)tensor->sides);
    return HBFP_OK;
}

static int same(const char *one, const char *other)
{
    while (*one && *one == *other) ++one, ++other;
    return *one == *other;
}

int hbfp_tensor(const struct hbfp_program *program, const char *name, struct hbfp_tensor *tensor)
{
    if (!name || !tensor) return HBFP_E_ARGUMENT;
    for (uint32_t number = 0; !hbfp_tensor_at(program, number, tensor); ++number)
        if (same(tensor->name, name)) return HBFP_OK;
    return HBFP_E_NAME;
}

uint32_t hbfp_side(const struct hbfp_tensor *tensor, uint32_t number)
{
    return tensor && number < tensor->sides ? hbfp_word(tensor->shape, number) : 0;
}

/* Rows of a tensor between DRAM and an array; `out` goes to the array. */
static int move(struct hbfp_program *program, const char *name, uint32_t further, uint8_t *array, size_t count, int out)
{
    struct hbfp_tensor tensor;
    if (!program || !program->device || !array) return HBFP_E_ARGUMENT;
    int error = hbfp_tensor(program, name, &tensor);
    if (error) return error;
    if (tensor.layout == HBFP_RECORDS) return HBFP_E_LAYOUT;
    if (count / tensor.elements != tensor.rows || count % tensor.elements) return HBFP_E_SIZE;
    uint32_t limit = hbfp_word(program->file.index, HBFP_INDEX_LIMIT), address = tensor.address + further;
    uint32_t last = tensor.row * (tensor.rows - 1u) + 4u * tensor.elements;
    if (address > limit || last > limit - address) return HBFP_E_ARGUMENT;
    const struct hbfp_io *io = program->device->io;
    size_t at = program->base + address, bytes = 4u * (size_t)tensor.elements;
    if (out && io->sync) io->sync(io->self, 0);
    for (uint32_t row = 0; !error && row < tensor.rows; ++row, at += tensor.row, array += bytes)
        error = out ? hbfp_fetch(io, at, array, bytes) : hbfp_store(io, at, array, bytes);
    return error;
}

int hbfp_write(struct hbfp_program *program, const char *name, uint32_t further, const void *values, size_t count)
{
    return move(program, name, further, (uint8_t *)(uintptr_t)values, count, 0);
}

int hbfp_read(struct hbfp_program *program, const char *name, uint32_t further, void *values, size_t count)
{
    return move(program, name, further, values, count, 1);
}
