// Clocks a system of CPU and accelerator with one memory for both: the accelerator's by AXI, the CPU's in a cycle.
//
// CPU: bytes of the memory at their addresses; a word written at CONSOLE is a character, one behind it ends the run. Its
// answers come one cycle after what it asks.

#include <string>

#include "Vdut.h"
#include "dram.h"
#include "verilated.h"

namespace {

constexpr uint32_t CONSOLE = 0xA0000000u;
enum Status : int { ENDED = 0, LIMIT = 1, BROKEN = 2, TRAPPED = 3, OUTSIDE = 4 };

struct System {
    VerilatedContext context;
    Vdut top{&context};
    dram::Memory memory;
    uint64_t cycle = 0;
    std::string said;
    uint32_t code = 0, address = 0;
    bool ended = false, outside = false, ready = false;

    void step() {
        memory.begin(cycle);
        memory.show(top);
        top.cpu_ready = ready;
        top.aclk = 0;
        top.eval();
        if (top.aresetn) {
            memory.take(cycle, top);
            bool asks = top.cpu_valid && !ready;
            if (asks) access();
            ready = asks;
        }
        top.aclk = 1;
        top.eval();
        ++cycle;
    }

    // What the CPU asks for; its answer is shown from the next cycle on.
    void access() {
        uint32_t at = top.cpu_address & ~3u, data = top.cpu_wdata, strobes = top.cpu_wstrb;
        if (uint64_t(at) + 4 <= memory.size) {
            for (int i = 0; i < 4; ++i)
                if (strobes >> i & 1) memory.bytes[at + i] = data >> 8 * i;
            if (!strobes) {
                uint32_t word;
                std::memcpy(&word, memory.bytes + at, 4);
                top.cpu_rdata = word;
            }
        } else if (at == CONSOLE && strobes) {
            said += char(data);
        } else if (at == CONSOLE + 4 && strobes) {
            ended = true, code = data;
        } else {
            outside = true, address = at;
        }
    }

    int run(uint64_t limit) {
        for (; limit; --limit) {
            step();
            if (*memory.complaint.text) return BROKEN;
            if (outside) return OUTSIDE;
            if (ended) return ENDED;
            if (top.trap) return TRAPPED;
        }
        return LIMIT;
    }
};

}  // namespace

#define API __attribute__((visibility("default")))

extern "C" {

API void* sim_open(uint8_t* bytes, uint64_t size, uint32_t burst, uint64_t latency, uint64_t bandwidth) {
    System* system = new System;
    dram::Memory& memory = system->memory;
    memory.bytes = bytes, memory.size = size, memory.burst = burst, memory.latency = latency;
    memory.bandwidth = bandwidth;
    system->top.aresetn = 0;
    for (int i = 0; i < 8; ++i) system->step();
    memory.reset();
    system->top.aresetn = 1;
    return system;
}

API void sim_close(System* system) {
    system->top.final();
    delete system;
}

API int sim_run(System* system, uint64_t limit) { return system->run(limit); }

API uint64_t sim_cycle(const System* system) { return system->cycle; }

API uint32_t sim_code(const System* system) { return system->code; }

API uint32_t sim_address(const System* system) { return system->address; }

API const char* sim_said(const System* system) { return system->said.c_str(); }

API const char* sim_complaint(const System* system) { return system->memory.complaint.text; }
}
