/* A program file: a ZIP archive whose entries are stored as they are. Nothing in it is believed unchecked. */
#include "words.h"

#define LOCAL 0x04034B50u    /* "PK", 3, 4: the head of an entry */
#define HEAD 30u

/* CRC-32, four bits at a time. */
static uint32_t check_sum(const uint8_t *data, size_t bytes)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};
    uint32_t sum = 0xFFFFFFFFu;
    for (size_t i = 0; i < bytes; ++i) {
        sum ^= data[i];
        sum = sum >> 4 ^ table[sum & 15u];
        sum = sum >> 4 ^ table[sum & 15u];
    }
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
    if (!file || !data) return HBFP_E_ARGUMENT;
    file->index = file->instructions = file->memory = NULL;
    while (bytes >= HEAD && hbfp_word(at, 0) == LOCAL) {
        uint32_t flags = at[6], method = at[8] | (uint32_t)at[9] << 8;
        uint32_t sum = hbfp_half(at + 14), size = hbfp_half(at + 22), stored = hbfp_half(at + 18);
        uint32_t name = at[26] | (uint32_t)at[27] << 8, before = HEAD + name + (at[28] | (uint32_t)at[29] << 8);
        if (flags & 8u || method || stored != size || before > bytes || size > bytes - before) return HBFP_E_FORMAT;
        const uint8_t *entry = at + before;
        if (check_sum(entry, size) != sum) return HBFP_E_DAMAGED;
        if (named(at + HEAD, name, "index.bin")) file->index = entry, file->index_bytes = size;
        if (named(at + HEAD, name, "instructions.bin")) file->instructions = entry, file->instruction_bytes = size;
        if (named(at + HEAD, name, "memory.bin")) file->memory = entry, file->memory_bytes = size;
        at = entry + size;
        bytes -= before + size;
    }
    if (!file->index || !file->instructions || !file->memory || file->index_bytes < 4u * HBFP_INDEX_FIXED ||
        hbfp_word(file->index, 0) != HBFP_INDEX_MAGIC)
        return HBFP_E_FORMAT;
    if (hbfp_word(file->index, 1) != HBFP_INDEX_VERSION) return HBFP_E_VERSION;
    return index_holds(file) ? HBFP_OK : HBFP_E_FORMAT;
}
