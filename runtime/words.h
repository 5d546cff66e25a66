/* The index of a program file, as hbfp/index.py writes it; and what the files of the library share. */
#ifndef HBFP_WORDS_H
#define HBFP_WORDS_H

#include "hbfp.h"

#define HBFP_INDEX_MAGIC 0x58464248u    /* "HBFX" */
#define HBFP_INDEX_VERSION 1u
#define HBFP_PARAMETERS 15u             /* registers that say what the machine is */
#define HBFP_TENSOR_HEAD 8u             /* words of a tensor's record before its sides */
#define HBFP_PAGE 4096u
#define HBFP_SIXTEENTHS 16u

enum {
    HBFP_INDEX_BYTES = 2, HBFP_INDEX_MACHINE, HBFP_INDEX_LIMIT, HBFP_INDEX_SEED, HBFP_INDEX_INSTRUCTIONS,
    HBFP_INDEX_PARAMETERS, HBFP_INDEX_ARGUMENTS, HBFP_INDEX_REGIONS, HBFP_INDEX_TENSORS, HBFP_INDEX_FIXED
};

enum { HBFP_WORD, HBFP_DENSE, HBFP_RECORDS };

/* Four bytes, the lowest first, wherever they lie. */
static inline uint32_t hbfp_half(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint32_t hbfp_word(const uint8_t *at, uint32_t number)
{
    return hbfp_half(at + 4u * (size_t)number);
}

/* A word of whatever the caller keeps. */
#ifdef __GNUC__
typedef uint32_t __attribute__((may_alias)) hbfp_any;
#else
typedef uint32_t hbfp_any;
#endif

/* Bytes, four at a time where both lie so: a DRAM takes single ones slowly. */
static inline void hbfp_copy(void *to, const void *from, size_t bytes)
{
    uint8_t *target = to;
    const uint8_t *source = from;
    if (!(((uintptr_t)to | (uintptr_t)from) & 3u))
        for (; bytes >= 4u; bytes -= 4u, target += 4, source += 4)
            *(hbfp_any *)(void *)target = *(const hbfp_any *)(const void *)source;
    for (; bytes; --bytes) *target++ = *source++;
}

/* Bytes into the DRAM, from a place in it on, and out of it. */
int hbfp_store(const struct hbfp_io *io, size_t place, const void *from, size_t bytes);
int hbfp_fetch(const struct hbfp_io *io, size_t place, void *to, size_t bytes);
int hbfp_get(struct hbfp_device *device, uint32_t context, uint32_t address, uint32_t *value);
int hbfp_put(struct hbfp_device *device, uint32_t context, uint32_t address, uint32_t value);
int hbfp_halt(struct hbfp_device *device, uint32_t context);

#endif
