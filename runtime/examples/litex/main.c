/* VexRiscv in a system of LiteX (python -m gen soc): its start, SDRAM, serial line, interrupt and cache.

   The block that says what it is to do is the first of the SDRAM; it is there once READY is, which whoever starts the
   CPU writes last. Firmware that ends says END, and its result as a character. */
#include "../board.h"
#include "hbfp_soc.h"

#define WORD(address) (*(volatile uint32_t *)(address))
#define READY 0x44524148u
#define AT_READY (HBFP_SOC_MEMORY + 0xFFCu)
#define END '\4'
#define SPINS 1000u                 /* looks at what the handler says, in one sleep */
#define CKE 0xEu                    /* of the SDRAM's control register: clock on, no reset, the CPU's commands */
#define HARDWARE 0x1u               /* the controller's commands */

void *const board_registers = (void *)HBFP_SOC_REGISTERS;

/* No stack before this; the sections of sections.ld. Machine interrupts are on, of the accelerator alone. */
__asm__(".section .start, \"ax\"\n"
        ".globl _start\n"
        "_start: lui sp, %hi(stack)\n"
        "addi sp, sp, %lo(stack)\n"
        "lui t0, %hi(bss)\n"
        "addi t0, t0, %lo(bss)\n"
        "lui t1, %hi(end)\n"
        "addi t1, t1, %lo(end)\n"
        "1: bgeu t0, t1, 2f\n"
        "sw x0, 0(t0)\n"
        "addi t0, t0, 4\n"
        "j 1b\n"
        "2: call begin\n"
        "3: j 3b\n"
        ".text\n");

void begin(void);
void trap(void) __attribute__((interrupt("machine"), aligned(4)));

void board_put(char character)
{
    while (WORD(HBFP_SOC_TXFULL)) {}
    WORD(HBFP_SOC_RXTX) = (uint8_t)character;
}

static void finish(int result)
{
    board_put(END);
    board_put((char)result);
    for (;;) {}
}

void trap(void)
{
    int32_t cause;
    __asm__ volatile(".insn i 0x73, 2, %0, x0, 0x342" : "=r"(cause));    /* mcause */
    if (cause >= 0) finish(255);                                         /* what is illegal */
    (void)hbfp_interrupt(&board_device);
}

void board_sleep(void *self)
{
    uint32_t before = board_device.taken;
    (void)self;
    for (uint32_t spin = 0; spin < SPINS && board_device.taken == before; ++spin) {}
}

/* Its cache writes through; it must forget what it has. */
static void sync(void *self, int starts)
{
    (void)self;
    if (!starts) __asm__ volatile(".word 0x500F" : : : "memory");
}

void (*const board_sync)(void *self, int starts) = sync;

uint32_t board_cycles(void)
{
    WORD(HBFP_SOC_LATCH) = 1;
    return WORD(HBFP_SOC_UPTIME);
}

static void pause(uint32_t cycles)
{
    for (volatile uint32_t left = cycles; left; --left) {}
}

const struct board *board_begin(void)
{
    static const struct {
        uint16_t address;
        uint8_t bank, command;
        uint16_t wait;
    } steps[] = {HBFP_SOC_SDRAM};
    WORD(HBFP_SOC_CONTROL) = CKE;
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; ++i) {
        WORD(HBFP_SOC_ADDRESS) = steps[i].address;
        WORD(HBFP_SOC_BANK) = steps[i].bank;
        if (steps[i].command) {
            WORD(HBFP_SOC_COMMAND) = steps[i].command;
            WORD(HBFP_SOC_ISSUE) = 1;
        }
        pause(steps[i].wait);
    }
    WORD(HBFP_SOC_CONTROL) = HARDWARE;
    do sync(NULL, 0);
    while (WORD(AT_READY) != READY);
    return (const struct board *)HBFP_SOC_MEMORY;
}

void begin(void)
{
    __asm__ volatile(".insn i 0x73, 1, x0, %0, 0x305" : : "r"(trap));                             /* mtvec */
    __asm__ volatile(".insn i 0x73, 1, x0, %0, -1088" : : "r"(1u << HBFP_SOC_INTERRUPT));         /* VexRiscv's mask */
    __asm__ volatile(".insn i 0x73, 1, x0, %0, 0x304" : : "r"(0x800u));                           /* mie: external */
    __asm__ volatile(".insn i 0x73, 2, x0, %0, 0x300" : : "r"(8u));                               /* mstatus: on */
    finish(board_main());
}
