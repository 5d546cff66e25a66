/* What firmware calls, and what a program on Linux does; docs/board.md. */
#ifndef DIGITS_H
#define DIGITS_H

#include "hbfp.h"

#define DIGITS_PATIENCE 1000000u    /* reads of the status, with a sleep between */

struct digits {
    uint32_t images, right, cycles;
};

/* Run the program in `file` on images, FP32 numbers, whose classes are known; `scores` has room for its output. It waits
   for the interrupt, or polls. It runs `runs` times, as a server would, on the same images. */
int digits(struct digits *found, struct hbfp_device *device, const struct hbfp_io *io, const void *file, size_t bytes,
           const void *images, const uint8_t *classes, uint32_t *scores, int interrupts, uint32_t runs);

#endif
