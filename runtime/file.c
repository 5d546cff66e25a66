/* A program file: a ZIP archive whose entries are stored as they are. Nothing in it is believed unchecked. */
#include "words.h"

#define LOCAL 0x04034B50u    /* "PK", 3, 4: the head of an entry */
#define HEAD 30u

/* The table of CRC-32, for a byte at a time; it is made for each file, as a constant one would take a kilobyte. */
static void make_table(uint32_t table[256])
{
    for (uint32_t byte = 0; byte < 256u; ++byte) {
        uint32_t sum = byte;
        for (uint32_t bit = 0; bit < 8u; ++bit) sum = sum >> 1 ^ ((0u - (sum & 1u)) & 0xEDB88320u);
        table[byte] = sum;
    }
}

static uint32_t check_sum(const uint32_t table[256], const uint8_t *data, size_t bytes)
{
    uint32_t sum = 0xFFFFFFFFu;
    for (const uint8_t *end = data + bytes; data != end; ++data) sum = sum >> 8 ^ table[(sum ^ *data) & 0xFFu];
    return ~sum;
}

static int named(const uint8_t *name, uint32_t length, const char *wanted)
{
    uint32_t i = 0;
    while (i < length && wanted[i] && name[i] == (uint8_t)wanted[i]) ++i;
    return i == length && !wanted[i];
}

/* Words of a tensor's record that are right, or 0: its name ends in it, and it lies within `limit`. */
static uint32_t tensor_words(const uint8_t *at, uint32_t left, uint32_t limit)
{
    if (left < HBFP_TENSOR_HEAD) return 0;
    uint32_t words = hbfp_word(at, 0), address = hbfp_word(at, 1), row = hbfp_word(at, 2);
    uint32_t elements = hbfp_word(at, 3), rows = hbfp_word(at, 4), sides = hbfp_word(at, 7);
    if (words > left || words <= HBFP_TENSOR_HEAD || sides >= words - HBFP_TENSOR_HEAD) return 0;
    if (hbfp_word(at, 5) > HBFP_RECORDS || at[4u * words - 1u]) return 0;
    if (hbfp_word(at, 5) == HBFP_RECORDS) return address <= limit ? words : 0;
    if (!rows || !elements || row < 4u || elements > row / 4u || address > limit || 4u * elements > limit - address) return 0;
    if (rows - 1u > (limit - address - 4u * elements) / row) return 0;
    return words;
}

/* Whether the index contradicts nothing: itself, or the other entries. */
static int index_holds(const struct hbfp_file *file)
{
    const uint8_t *index = file->index;
    uint32_t words = file->index_bytes / 4u, limit = hbfp_word(index, HBFP_INDEX_LIMIT);
    uint32_t parameters = hbfp_word(index, HBFP_INDEX_PARAMETERS), arguments = hbfp_word(index, HBFP_INDEX_ARGUMENTS);
    uint32_t regions = hbfp_word(index, HBFP_INDEX_REGIONS), tensors = hbfp_word(index, HBFP_INDEX_TENSORS);
    uint32_t left = words - HBFP_INDEX_FIXED, bytes = 0;
    if (hbfp_word(index, HBFP_INDEX_BYTES) != file->index_bytes || file->index_bytes % 4u) return 0;
    if (file->instruction_bytes % 64u || hbfp_word(index, HBFP_INDEX_INSTRUCTIONS) != file->instruction_bytes / 64u)
        return 0;
    if (parameters != HBFP_PARAMETERS || arguments > HBFP_ARGUMENTS || parameters + arguments > left) return 0;
    left -= parameters + arguments;
    if (regions > left / 2u) return 0;
    left -= 2u * regions;
    const uint8_t *at = index + 4u * (words - left), *region = at - 8u * regions;
    for (uint32_t i = 0; i < regions; ++i) {
        uint32_t address = hbfp_word(region, 2u * i), size = hbfp_word(region, 2u * i + 1u);
        if (address > limit || size > limit - address || size > file->memory_bytes - bytes) return 0;
        bytes += size;
    }
    if (bytes != file->memory_bytes) return 0;
    for (uint32_t i = 0; i < tensors; ++i) {
        uint32_t own = tensor_words(at, left, limit);
        if (!own) return 0;
        at += 4u * own;
        left -= own;
    }
    return !left;
}

int hbfp_file(struct hbfp_file *file, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t table[256];
    if (!file || !data) return HBFP_E_ARGUMENT;
    const struct {
        const char *name;
        const uint8_t **entry;
        uint32_t *bytes;
    } wanted[] = {{"index.bin", &file->index, &file->index_bytes},
                  {"instructions.bin", &file->instructions, &file->instruction_bytes},
                  {"memory.bin", &file->memory, &file->memory_bytes}};
    file->index = file->instructions = file->memory = NULL;
    make_table(table);
    while (bytes >= HEAD && hbfp_word(at, 0) == LOCAL) {
        uint32_t flags = at[6], method = at[8] | (uint32_t)at[9] << 8;
        uint32_t sum = hbfp_half(at + 14), size = hbfp_half(at + 22), stored = hbfp_half(at + 18);
        uint32_t name = at[26] | (uint32_t)at[27] << 8, before = HEAD + name + (at[28] | (uint32_t)at[29] << 8);
        if (flags & 8u || method || stored != size || before > bytes || size > bytes - before) return HBFP_E_FORMAT;
        const uint8_t *entry = at + before;
        for (uint32_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
            if (!named(at + HEAD, name, wanted[i].name)) continue;
            if (check_sum(table, entry, size) != sum) return HBFP_E_DAMAGED;
            *wanted[i].entry = entry;
            *wanted[i].bytes = size;
        }
        at = entry + size;
        bytes -= before + size;
    }
    if (!file->index || !file->instructions || !file->memory || file->index_bytes < 4u * HBFP_INDEX_FIXED ||
        hbfp_word(file->index, 0) != HBFP_INDEX_MAGIC)
        return HBFP_E_FORMAT;
    if (hbfp_word(file->index, 1) != HBFP_INDEX_VERSION) return HBFP_E_VERSION;
    return index_holds(file) ? HBFP_OK : HBFP_E_FORMAT;
}
