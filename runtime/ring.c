/* The dispatcher's ring of descriptors: requests lie in DRAM, and the host tells how many there are. */
#include "words.h"

#ifdef HBFP_REG_RING_TAIL

#define NUMBERS 0xFFFFu    /* numbers of descriptors count modulo 2^16 */
#define LEAST 4u           /* logarithms of the places that a ring may have */
#define MOST 15u
#define SEED 0x4842u

/* Half a word, turned to the left. */
static uint32_t turned(uint32_t half, uint32_t bits)
{
    return (half << bits | half >> (16u - bits)) & 0xFFFFu;
}

/* The check of the descriptor of a number: half k of its words as it is, turned by one bit, and by 3 + k. */
static uint32_t check(const uint32_t words[3], uint32_t number)
{
    uint32_t found = SEED ^ (number & NUMBERS);
    for (uint32_t k = 0; k < 6u; ++k) {
        uint32_t half = words[k / 2u] >> (k & 1u) * 16u & 0xFFFFu;
        found ^= half ^ turned(half, 1) ^ turned(half, 3u + k);
    }
    return found;
}

int hbfp_ring(struct hbfp_ring *ring, struct hbfp_device *device, size_t place, uint32_t log, uint32_t first,
              uint32_t last)
{
    uint32_t sides = 0, head = 0;
    int error;
    if (!ring || !device || log < LEAST || log > MOST) return HBFP_E_ARGUMENT;
    if ((error = hbfp_get(device, 0, HBFP_REG_ROWS, &sides)) ||
        (error = hbfp_get(device, 0, HBFP_REG_RING_HEAD, &head)))
        return error;
    uint32_t columns = (sides & HBFP_REG_ROWS_COLUMNS_MASK) >> HBFP_REG_ROWS_COLUMNS_SHIFT;
    uint32_t beat = 4u * (columns ? columns : sides & HBFP_REG_ROWS_ROWS_MASK), bytes = beat << log;
    uint64_t address = device->io->address + place;
    if (address & (bytes - 1u) || first % beat || last % beat) return HBFP_E_ARGUMENT;
    if (place > device->io->bytes || bytes > device->io->bytes - place) {
        device->found = device->io->bytes, device->wanted = (uint64_t)place + bytes;
        return HBFP_E_MEMORY;
    }
    ring->device = device;
    ring->place = place;
    ring->log = log;
    ring->beat = beat;
    ring->head = ring->tail = head;
    const uint32_t values[][2] = {
        {HBFP_REG_RING_LOW, (uint32_t)address}, {HBFP_REG_RING_HIGH, (uint32_t)(address >> 32)},
        {HBFP_REG_RING_FIRST, first}, {HBFP_REG_RING_LAST, last}, {HBFP_REG_RING_TAIL, head}, {HBFP_REG_RING_SIZE, log}};
    for (uint32_t i = 0; !error && i < sizeof values / sizeof *values; ++i)
        error = hbfp_put(device, 0, values[i][0], values[i][1]);
    return error;
}

int hbfp_lay(struct hbfp_ring *ring, uint32_t input, uint32_t output, uint32_t tag)
{
    if (!ring || !ring->device) return HBFP_E_ARGUMENT;
    if (((ring->tail - ring->head) & NUMBERS) == 1u << ring->log) {
        int error = hbfp_get(ring->device, 0, HBFP_REG_RING_HEAD, &ring->head);
        if (error) return error;
        if (((ring->tail - ring->head) & NUMBERS) == 1u << ring->log) return HBFP_E_FULL;
    }
    uint32_t words[4] = {input, output, tag};
    words[3] = check(words, ring->tail);
    size_t at = ring->place + (size_t)(ring->tail & ((1u << ring->log) - 1u)) * ring->beat;
    int error = hbfp_store(ring->device->io, at, words, sizeof words);
    if (!error) ring->tail = (ring->tail + 1u) & NUMBERS;
    return error;
}

int hbfp_tell(struct hbfp_ring *ring)
{
    if (!ring || !ring->device) return HBFP_E_ARGUMENT;
    if (ring->device->io->sync) ring->device->io->sync(ring->device->io->self, 1);
    return hbfp_put(ring->device, 0, HBFP_REG_RING_TAIL, ring->tail);
}

#else
typedef int hbfp_no_ring;    /* C wants something in every file */
#endif
