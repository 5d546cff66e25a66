/* What the firmware that recognises digits needs of the system that it runs on; docs/board.md. */
#ifndef BOARD_H
#define BOARD_H

#include "digits.h"

/* What it is to do: addresses and sizes, written by whoever starts the CPU. */
struct board {
    uint32_t file, bytes, images, classes, scores, memory, size, interrupts, runs;
};

extern struct hbfp_device board_device;

/* That block, once it is there; the system is ready then. */
const struct board *board_begin(void);
/* Registers of the accelerator. */
extern void *const board_registers;
/* Until an interrupt, or for a while. */
void board_sleep(void *self);
/* As of struct hbfp_io, or NULL where there are no caches. */
extern void (*const board_sync)(void *self, int starts);
uint32_t board_cycles(void);
void board_put(char character);

/* Recognise digits, say how many and in how many cycles; 0, or an error. The system's own code calls it. */
int board_main(void);

#endif
