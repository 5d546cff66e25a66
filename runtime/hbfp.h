/* Drives an HBFP accelerator from C99: no allocation, no library, and no call that waits for ever.

   hbfp_accelerator.h, which `python -m gen --top accelerator` writes beside the Verilog, has the registers. The CPU
   must have the lowest byte first, as DRAM has. docs/board.md explains all of it. */
#ifndef HBFP_H
#define HBFP_H

#include <stddef.h>
#include <stdint.h>

#include "hbfp_accelerator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What every call returns: HBFP_OK, or why it has done nothing more. */
#define HBFP_ERRORS(X) \
    X(OK, "no error") \
    X(ARGUMENT, "an argument is none that this call takes") \
    X(DEVICE, "no accelerator answers at this address") \
    X(BUS, "a register or the memory could not be read or written") \
    X(VERSION, "made for another version of registers, instructions or program files") \
    X(FORMAT, "no program file, or one without index.bin: write it anew") \
    X(DAMAGED, "the program file is damaged: its check sum differs") \
    X(MACHINE, "the program was made for another machine") \
    X(MEMORY, "the memory is too small for the program") \
    X(NAME, "the program has no tensor of this name") \
    X(SIZE, "the tensor has another number of values") \
    X(LAYOUT, "the tensor is of weights as the array takes them, not of numbers") \
    X(BUSY, "the context is busy") \
    X(IDLE, "nothing was started, or it was stopped") \
    X(TIMEOUT, "the program did not end in time; it goes on until it is stopped") \
    X(PROGRAM, "the program has stopped with an error, of which hbfp_result tells the cause") \
    X(FULL, "the dispatcher's queue is full") \
    X(EMPTY, "no request is done yet")

#define HBFP_AS_ENUM(name, text) HBFP_##name,
#define HBFP_AS_ERROR(name, text) HBFP_E_##name,
enum hbfp_error { HBFP_ERRORS(HBFP_AS_ERROR) HBFP_ERROR_COUNT };
#define HBFP_OK HBFP_E_OK

/* What an error is in words; and the cause of a program's error. */
const char *hbfp_error_text(int error);
const char *hbfp_cause_text(uint32_t cause);

/* How the CPU reaches the accelerator and its DRAM. */
struct hbfp_io {
    void *self;                                                     /* what the functions are given */
    int (*read)(void *self, uint32_t address, uint32_t *value);     /* of a register; 0 if it went well */
    int (*write)(void *self, uint32_t address, uint32_t value);
    void (*sleep)(void *self);              /* until an interrupt, or for a while: it must come back; NULL: poll */
    void (*sync)(void *self, int starts);   /* write caches back (1), or forget what they have (0); NULL: none */
    uint8_t *memory;                        /* where the CPU sees the DRAM that programs may have, */
    uint64_t address;                       /* and where the accelerator does: a multiple of 4096 */
    size_t bytes;
    int (*put)(void *self, size_t place, const void *from, size_t bytes);    /* where memory is NULL: bytes into it, */
    int (*get)(void *self, size_t place, void *to, size_t bytes);            /* and out of it; 0 if it went well */
};

/* An accelerator. What is here is for the library; address, found and wanted say more of the last error: of MACHINE,
   DEVICE and VERSION a register, what it says and what it should; of MEMORY the bytes that are there, and needed. */
struct hbfp_device {
    const struct hbfp_io *io;
    uint32_t interrupts;
    volatile uint32_t taken;                /* interrupts that were this device's */
    uint32_t shares[HBFP_CONTEXTS][2];      /* registers share_first and share_size */
    uint64_t address, found, wanted;
};

/* Registers as hbfp_accelerator.h has them; stops whatever ran before, and forgets completions. Requests that wait for
   a dispatcher stay, until it is attached again: only a reset takes them back. */
int hbfp_open(struct hbfp_device *device, const struct hbfp_io *io);
/* Whether programs that are started from now on raise the interrupt. */
int hbfp_interrupts(struct hbfp_device *device, int on);
/* For the interrupt's handler: takes the interrupt back; whether there was one. One that is lost or comes without a
   reason does no harm, as every wait looks at what is, not at what was told. */
int hbfp_interrupt(struct hbfp_device *device);
/* Sixteenths of V, X, W and P that a context has, and the first of them; all at first. */
int hbfp_share(struct hbfp_device *device, uint32_t context, const uint8_t first[4], const uint8_t size[4]);

/* The entries of a program file, and of its index: hbfp/index.py. */
struct hbfp_file {
    const uint8_t *index, *instructions, *memory;
    uint32_t index_bytes, instruction_bytes, memory_bytes;
};

int hbfp_file(struct hbfp_file *file, const void *data, size_t bytes);

/* A program in a context. Arguments, seed and watchdog may be set between runs. */
struct hbfp_program {
    struct hbfp_device *device;
    struct hbfp_file file;
    uint32_t context;
    uint32_t told;                          /* bit n: argument n + 1 has a value */
    uint32_t arguments[HBFP_ARGUMENTS];
    uint32_t seed;                          /* of numbers that are drawn */
    uint32_t watchdog;                      /* cycles without progress after which it stops; 0: never */
    size_t place, base, end;                /* where it lies in the memory, its data begin, and it ends */
};

/* Put a program and its data into the memory from `place` on, a multiple of 4096; the file is read where it lies,
   later too. The next program may have program->end. */
int hbfp_load(struct hbfp_program *program, struct hbfp_device *device, uint32_t context, const void *data,
              size_t bytes, size_t place);
int hbfp_argument(struct hbfp_program *program, uint32_t number, uint32_t value);
/* Write its registers, and ring its doorbell; hbfp_prepare leaves that to the dispatcher. */
int hbfp_start(struct hbfp_program *program);
int hbfp_prepare(struct hbfp_program *program);
/* Until it has ended: its status is read `patience` + 1 times at most, with a sleep between where there is one. */
int hbfp_wait(struct hbfp_program *program, uint32_t patience);
int hbfp_run(struct hbfp_program *program, uint32_t patience);
int hbfp_stop(struct hbfp_program *program);

struct hbfp_result {
    uint32_t cycles;                        /* in which it had the machine */
    uint32_t cause, error_pc;               /* of its error; 0, and the number of the instruction */
};

int hbfp_result(struct hbfp_program *program, struct hbfp_result *result);
/* A register of the program's context, such as the counter HBFP_REG_MULTIPLY_BUSY. */
int hbfp_register(struct hbfp_program *program, uint32_t address, uint32_t *value);

/* A tensor of FP32 numbers in DRAM: rows of so many of them, `row` bytes apart. */
struct hbfp_tensor {
    const char *name;
    uint32_t address, row, elements, rows, layout, role;
    uint32_t sides;                         /* and each of them, by hbfp_side */
    const uint8_t *shape;
};

enum hbfp_role { HBFP_INPUT, HBFP_OUTPUT, HBFP_WEIGHT, HBFP_INNER };

uint32_t hbfp_tensors(const struct hbfp_program *program);
int hbfp_tensor_at(const struct hbfp_program *program, uint32_t number, struct hbfp_tensor *tensor);
int hbfp_tensor(const struct hbfp_program *program, const char *name, struct hbfp_tensor *tensor);
uint32_t hbfp_side(const struct hbfp_tensor *tensor, uint32_t number);
/* All FP32 numbers of a tensor, the last dimension innermost, to or from `further` bytes behind its address, modulo
   2^32; `count` must be as many as it has. */
int hbfp_write(struct hbfp_program *program, const char *name, uint32_t further, const void *values, size_t count);
int hbfp_read(struct hbfp_program *program, const char *name, uint32_t further, void *values, size_t count);

/* Steps of training by one program, which uses two places of DRAM in turns: the first begins at `place`, and has
   `bytes`. What a step changes is the tensor "NAME after". */
struct hbfp_training {
    struct hbfp_program *program;
    uint32_t place, bytes;
    uint32_t step;                          /* the next one, counted from 0; one that fails is done again */
};

/* How far behind its address a tensor lies in the next step. */
int hbfp_further(const struct hbfp_training *training, const char *name, uint32_t *further);
/* A step: `told` are the optimiser's numbers, such as the learning rate, as bits of FP32. */
int hbfp_step(struct hbfp_training *training, const uint32_t *told, uint32_t count, uint32_t patience);

#ifdef HBFP_REG_REQUEST_TAG
/* What the dispatcher starts, and when: docs/dispatch.md. */
struct hbfp_policy {
    uint32_t inference, training, priority, closes, batch, share, timeout, patience;
};

struct hbfp_completion {
    uint32_t tag, arrived, started, finished;
    uint32_t failed;                        /* its batch has ended with an error */
    uint32_t refused;                       /* why its descriptor was refused, or 0 */
};

/* Context 0 is what hbfp_prepare has written: the dispatcher starts it for each batch, and context 1 between them. */
int hbfp_attach(struct hbfp_device *device, const struct hbfp_policy *policy);
int hbfp_detach(struct hbfp_device *device);
/* Places of input and output, bytes from the base of context 0, multiples of a beat. */
int hbfp_request(struct hbfp_device *device, uint32_t input, uint32_t output, uint32_t tag);
int hbfp_completion(struct hbfp_device *device, struct hbfp_completion *completion);
#endif

#ifdef HBFP_REG_RING_TAIL
/* Requests as descriptors in DRAM, a beat each: many for one write of a register. */
struct hbfp_ring {
    struct hbfp_device *device;
    size_t place;
    uint32_t log, beat, head, tail;
};

/* A ring of 2^log places, 4 to 15, from `place` in the memory on, whose address is a multiple of its bytes; places of
   requests must be from `first` to `last`. In place of hbfp_request. */
int hbfp_ring(struct hbfp_ring *ring, struct hbfp_device *device, size_t place, uint32_t log, uint32_t first,
              uint32_t last);
/* Lay a request into it, and tell of all that were laid. */
int hbfp_lay(struct hbfp_ring *ring, uint32_t input, uint32_t output, uint32_t tag);
int hbfp_tell(struct hbfp_ring *ring);
#endif

/* An io whose `self` is where the registers are: reads and writes of 32 bits. */
int hbfp_mapped_read(void *self, uint32_t address, uint32_t *value);
int hbfp_mapped_write(void *self, uint32_t address, uint32_t value);

#ifdef __cplusplus
}
#endif

#endif
