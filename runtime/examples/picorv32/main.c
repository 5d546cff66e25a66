/* PicoRV32 beside an accelerator, as cosim/system/top.py has it: where things are, its start, its sleep. */
#include "../board.h"

#define CONSOLE ((volatile uint32_t *)0xA0000000u)    /* a character; the word behind it ends the simulation */
#define BOARD ((const struct board *)0x00100000u)

void *const board_registers = (void *)0x90000000u;
void (*const board_sync)(void *self, int starts) = NULL;

/* No stack before this; the sections of sections.ld, and bss is 0 as memory is at the start. */
__asm__(".section .start, \"ax\"\n"
        ".globl _start\n"
        "_start: lui sp, %hi(stack)\n"
        "addi sp, sp, %lo(stack)\n"
        "call board_main\n"
        "lui a1, 0xA0000\n"
        "sw a0, 4(a1)\n"
        "1: j 1b\n"
        ".text\n");

const struct board *board_begin(void)
{
    return BOARD;
}

uint32_t board_cycles(void)
{
    uint32_t value;
    __asm__ volatile(".insn i 0x73, 2, %0, x0, -1024" : "=r"(value));    /* rdcycle */
    return value;
}

/* Until the interrupt, 10000 cycles at most: PicoRV32's own `timer` and `waitirq`. All interrupts are masked, so that
   what comes is a reason to go on, and not a call: a wait that begins behind it ends at once. */
void board_sleep(void *self)
{
    uint32_t pending;
    (void)self;
    __asm__ volatile(".insn r 0x0B, 6, 5, x0, %0, x0" : : "r"(10000u));
    __asm__ volatile(".insn r 0x0B, 4, 4, %0, x0, x0" : "=r"(pending) : : "memory");
    if (pending & ~1u) (void)hbfp_interrupt(&board_device);
}

void board_put(char character)
{
    *CONSOLE = (uint8_t)character;
}
