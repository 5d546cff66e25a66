/* Registers where the CPU sees them: for firmware that maps them, and for programs that have mapped /dev/mem. */
#include "hbfp.h"

int hbfp_mapped_read(void *self, uint32_t address, uint32_t *value)
{
    *value = ((volatile uint32_t *)self)[address / 4u];
    return 0;
}

int hbfp_mapped_write(void *self, uint32_t address, uint32_t value)
{
#ifdef __GNUC__
    __sync_synchronize();    /* what was written to DRAM comes before it: on RISC-V a fence */
#endif
    ((volatile uint32_t *)self)[address / 4u] = value;
    return 0;
}
