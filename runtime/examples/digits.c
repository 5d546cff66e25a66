/* Recognises digits: images go in, the largest of ten numbers is the digit. Nothing is allocated; results lie in DRAM
   until they are read, a call for all. */
#include "digits.h"

/* A number that grows as an FP32 number does whose bits are `bits`: it takes no arithmetic of floats to compare them. */
static uint32_t order(uint32_t bits)
{
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The first tensor of a role. */
static int tensor_of(const struct hbfp_program *program, uint32_t role, struct hbfp_tensor *tensor)
{
    for (uint32_t number = 0; !hbfp_tensor_at(program, number, tensor); ++number)
        if (tensor->role == role) return HBFP_OK;
    return HBFP_E_NAME;
}

static int several(struct hbfp_program *program, uint32_t runs)
{
    int error = HBFP_OK;
    while (!error && runs--) error = hbfp_run(program, DIGITS_PATIENCE);
    return error;
}

int digits(struct digits *found, struct hbfp_device *device, const struct hbfp_io *io, const void *file, size_t bytes,
           const void *images, const uint8_t *classes, uint32_t *scores, int interrupts, uint32_t runs)
{
    struct hbfp_program program;
    struct hbfp_tensor input, output;
    struct hbfp_result result;
    int error;
    if ((error = hbfp_open(device, io)) || (error = hbfp_interrupts(device, interrupts)) ||
        (error = hbfp_load(&program, device, 0, file, bytes, 0)) ||
        (error = tensor_of(&program, HBFP_INPUT, &input)) || (error = tensor_of(&program, HBFP_OUTPUT, &output)) ||
        (error = hbfp_write(&program, input.name, 0, images, (size_t)input.rows * input.elements)) ||
        (error = several(&program, runs)) || (error = hbfp_result(&program, &result)) ||
        (error = hbfp_read(&program, output.name, 0, scores, (size_t)output.rows * output.elements)))
        return error;
    found->images = output.rows;
    found->cycles = result.cycles;
    found->right = 0;
    for (uint32_t image = 0; image < output.rows; ++image, scores += output.elements) {
        uint32_t best = 0;
        for (uint32_t digit = 1; digit < output.elements; ++digit)
            if (order(scores[digit]) > order(scores[best])) best = digit;
        found->right += best == classes[image];
    }
    return HBFP_OK;
}
