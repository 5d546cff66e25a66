/* Firmware for PicoRV32 beside an accelerator: recognises digits, says how many and in how many cycles, and ends.

   What it is to do stands in a block at BOARD, which whoever starts the CPU has written: docs/board.md. */
#include "../digits.h"

#define REGISTERS 0x90000000u
#define CONSOLE ((volatile uint32_t *)0xA0000000u)    /* a character; the word behind it ends the simulation */
#define BOARD ((const struct board *)0x00100000u)

struct board {
    uint32_t file, bytes, images, classes, scores, memory, size, interrupts;
};

static struct hbfp_device device;

/* No stack before this; the sections of sections.ld, and bss is 0 as memory is at the start. */
__asm__(".section .start, \"ax\"\n"
        ".globl _start\n"
        "_start: lui sp, %hi(stack)\n"
        "addi sp, sp, %lo(stack)\n"
        "call main\n"
        "lui a1, 0xA0000\n"
        "sw a0, 4(a1)\n"
        "1: j 1b\n"
        ".text\n");

static uint32_t cycles(void)
{
    uint32_t value;
    __asm__ volatile(".insn i 0x73, 2, %0, x0, -1024" : "=r"(value));    /* rdcycle */
    return value;
}

/* Until the interrupt, 10000 cycles at most: PicoRV32's own `timer` and `waitirq`. All interrupts are masked, so that
   what comes is a reason to go on, and not a call: a wait that begins behind it ends at once. */
static void sleep(void *self)
{
    uint32_t pending;
    (void)self;
    __asm__ volatile(".insn r 0x0B, 6, 5, x0, %0, x0" : : "r"(10000u));
    __asm__ volatile(".insn r 0x0B, 4, 4, %0, x0, x0" : "=r"(pending) : : "memory");
    if (pending & ~1u) (void)hbfp_interrupt(&device);
}

static void print(const char *text)
{
    while (*text) *CONSOLE = (uint8_t)*text++;
}

static void print_number(uint32_t value)
{
    char digits[11], *at = digits + 10;
    *at = 0;
    do *--at = (char)('0' + value % 10u);
    while (value /= 10u);
    print(at);
}

int main(void);

int main(void)
{
    const struct board *board = BOARD;
    const struct hbfp_io io = {(void *)REGISTERS, hbfp_mapped_read, hbfp_mapped_write, board->interrupts ? sleep : NULL,
                               NULL, (uint8_t *)board->memory, board->memory, board->size};
    struct digits found;
    uint32_t begun = cycles();
    int error = digits(&found, &device, &io, (const void *)board->file, board->bytes, (const void *)board->images,
                       (const uint8_t *)board->classes, (uint32_t *)board->scores, (int)board->interrupts);
    if (error) {
        print(hbfp_error_text(error));
        print("\n");
        return error;
    }
    print_number(found.right);
    print(" of ");
    print_number(found.images);
    print(" digits recognised; ");
    print_number(found.cycles);
    print(" cycles of the accelerator, ");
    print_number(cycles() - begun);
    print(" in all\n");
    return 0;
}
