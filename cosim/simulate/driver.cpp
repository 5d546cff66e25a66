// Moves whole blocks of payloads through a Verilated model, one call for many cycles.
//
// The streams and the model's class come from ports.h, written from the manifest:
//   INPUTS(F), OUTPUTS(F): F(name, stride in bytes) for each stream;  FLAGS(F): F(name) for other outputs.
// Verilator writes a double underscore of Verilog as ___05F.
// Stream arrays that cross the interface hold the inputs first, then the outputs, in that order.

#include <cstdint>
#include <cstring>

#include "ports.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {

// Mirrored by cosim/simulate/simulation.py; keep both in step.
struct Stream {
    uint8_t* data;          // inputs: payloads to offer; outputs: room for payloads to take
    uint64_t beats;         // how many of either
    uint64_t done;          // transfers so far
    uint64_t first, last;   // cycles of the first and the last transfer
    uint64_t blocked;       // cycles valid and not ready
    uint64_t starved;       // cycles ready and not valid, while beats were missing
    uint32_t enter, leave;  // chances in 2^32 that a pause starts or goes on, and that it may end, each cycle
    uint32_t* activity;     // transfers per bucket of cycles, or null
};

struct Port {
    uint8_t* payload;
    uint8_t* valid;
    uint8_t* ready;
    uint32_t stride;
};

enum Status : int { DONE = 0, STUCK = 1, LIMIT = 2, CHANGED = 3, WITHDRAWN = 4, EXTRA = 5 };

#define COUNT(name, stride) +1
constexpr int INPUT_COUNT = 0 INPUTS(COUNT), OUTPUT_COUNT = 0 OUTPUTS(COUNT);
constexpr int STREAM_COUNT = INPUT_COUNT + OUTPUT_COUNT;
#define SUM(name, stride) +stride
constexpr int OUTPUT_BYTES = 0 OUTPUTS(SUM);

struct Simulation {
    VerilatedContext context;
    MODEL top{&context};
    Port port[STREAM_COUNT];
    bool paused[STREAM_COUNT] = {};
    uint64_t cycle = 0;
    uint32_t noise = 1;
    int culprit = -1;  // the stream that broke a rule
#if VM_TRACE
    VerilatedVcdC* trace = nullptr;
#endif

    Simulation() {
        Port* next = port;
#define PORT(name, stride)                                                      \
    *next++ = {reinterpret_cast<uint8_t*>(&top.name##___05Fpayload), &top.name##___05Fvalid, \
               &top.name##___05Fready, stride##u};
        INPUTS(PORT) OUTPUTS(PORT)
    }

    void dump(int half) {
#if VM_TRACE
        if (trace) trace->dump(10 * cycle + 5 * half);
#endif
        (void)half;
    }

    // With the clock low, inputs settle and handshakes are decided; then comes the edge.
    void settle() {
        top.clk = 0;
        top.eval();
        dump(0);
    }

    void edge() {
        top.clk = 1;
        top.eval();
        dump(1);
        ++cycle;
    }

    uint32_t draw() {
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        return noise;
    }

    bool pause(int index, const Stream& stream) {
        if (!stream.enter) return false;
        bool stays = paused[index] && draw() > stream.leave;
        return paused[index] = stays || draw() < stream.enter;
    }

    int run(Stream* streams, uint64_t limit, uint64_t patience, uint64_t tail, uint32_t bucket) {
        uint64_t quiet = 0, begin = cycle;
        bool held[STREAM_COUNT] = {};
        const uint8_t* stalled[STREAM_COUNT] = {};
        uint8_t copies[OUTPUT_BYTES];
        for (uint64_t after = 0;;) {
            if (cycle - begin >= limit) return LIMIT;
            bool complete = true;
            for (int i = 0; i < STREAM_COUNT; ++i) complete &= streams[i].done == streams[i].beats;
            if (complete && ++after > tail) break;
            for (int i = 0; i < INPUT_COUNT; ++i) {
                Stream& s = streams[i];
                if (held[i]) continue;
                bool offer = s.done < s.beats && !pause(i, s);
                if (offer) std::memcpy(port[i].payload, s.data + s.done * port[i].stride, port[i].stride);
                *port[i].valid = held[i] = offer;
            }
            for (int i = INPUT_COUNT; i < STREAM_COUNT; ++i)
                *port[i].ready = streams[i].done < streams[i].beats && !pause(i, streams[i]);
            settle();
            bool moved = false;
            uint8_t* copy = copies;
            for (int i = 0; i < STREAM_COUNT; ++i) {
                Stream& s = streams[i];
                const Port& p = port[i];
                bool valid = *p.valid, ready = *p.ready, output = i >= INPUT_COUNT;
                if (output) {
                    if (stalled[i] && !valid) return culprit = i, WITHDRAWN;
                    if (stalled[i] && std::memcmp(stalled[i], p.payload, p.stride)) return culprit = i, CHANGED;
                    stalled[i] = nullptr;
                    if (valid && s.done == s.beats) return culprit = i, EXTRA;
                    if (valid && !ready) {
                        std::memcpy(copy, p.payload, p.stride);
                        stalled[i] = copy;
                    }
                    copy += p.stride;
                }
                if (valid && ready) {
                    if (output) std::memcpy(s.data + s.done * p.stride, p.payload, p.stride);
                    if (!s.done) s.first = cycle;
                    s.last = cycle;
                    if (s.activity) ++s.activity[(cycle - begin) / bucket];
                    ++s.done;
                    held[i] = false;
                    moved = true;
                } else if (s.done < s.beats) {
                    s.blocked += valid;
                    s.starved += ready;
                }
            }
            edge();
            quiet = moved || complete ? 0 : quiet + 1;
            if (quiet > patience) return STUCK;
        }
        for (int i = 0; i < INPUT_COUNT; ++i) *port[i].valid = 0;
        return DONE;
    }
};

}  // namespace

#define API __attribute__((visibility("default")))

extern "C" {

API void* sim_open() { return new Simulation; }

API void sim_close(Simulation* sim) {
#if VM_TRACE
    if (sim->trace) sim->trace->close();
    delete sim->trace;
#endif
    sim->top.final();
    delete sim;
}

API void sim_reset(Simulation* sim, uint32_t cycles) {
    for (int i = 0; i < STREAM_COUNT; ++i) {
        *(i < INPUT_COUNT ? sim->port[i].valid : sim->port[i].ready) = 0;
        sim->paused[i] = false;
    }
    sim->top.rst = 1;
    while (cycles--) sim->settle(), sim->edge();
    sim->top.rst = 0;
}

API void sim_seed(Simulation* sim, uint32_t seed) { sim->noise = seed ? seed : 1; }

API int sim_run(Simulation* sim, Stream* streams, uint64_t limit, uint64_t patience, uint64_t tail, uint32_t bucket) {
    return sim->run(streams, limit, patience, tail, bucket);
}

API uint64_t sim_cycle(const Simulation* sim) { return sim->cycle; }

API int sim_culprit(const Simulation* sim) { return sim->culprit; }

API uint64_t sim_flag(const Simulation* sim, const char* name) {
#define FLAG(port) \
    if (!std::strcmp(name, #port)) return sim->top.port;
    FLAGS(FLAG)
    return ~0ull;
}

API int sim_trace(Simulation* sim, const char* path) {
#if VM_TRACE
    sim->context.traceEverOn(true);
    sim->trace = new VerilatedVcdC;
    sim->top.trace(sim->trace, 99);
    sim->trace->open(path);
    return sim->trace->isOpen();
#else
    (void)sim, (void)path;
    return 0;
#endif
}
}
