/* Firmware beside an accelerator: recognises digits, and says how many, in how many cycles. */
#include "board.h"

struct hbfp_device board_device;

static void print(const char *text)
{
    while (*text) board_put(*text++);
}

static void print_number(uint32_t value)
{
    char digits[11], *at = digits + 10;
    *at = 0;
    do *--at = (char)('0' + value % 10u);
    while (value /= 10u);
    print(at);
}

int board_main(void)
{
    const struct board *board = board_begin();
    const struct hbfp_io io = {
        .self = board_registers, .read = hbfp_mapped_read, .write = hbfp_mapped_write,
        .sleep = board->interrupts ? board_sleep : NULL, .sync = board_sync,
        .memory = (uint8_t *)board->memory, .address = board->memory, .bytes = board->size};
    struct digits found;
    uint32_t begun = board_cycles();
    int error = digits(&found, &board_device, &io, (const void *)board->file, board->bytes, (const void *)board->images,
                       (const uint8_t *)board->classes, (uint32_t *)board->scores, (int)board->interrupts, board->runs);
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
    print_number(board_cycles() - begun);
    print(" in all\n");
    return 0;
}
