// Clocks a system of LiteX: fills its ROM and the banks of its SDRAM's model, takes its characters.
//
// In the SDRAM rows have four banks one behind the other, of 512 words of 16 bits each.

#include <algorithm>
#include <string>

#include "Vdut.h"
#include "Vdut_dut.h"
#include "verilated.h"

namespace {

constexpr uint32_t BANKS = 4, COLUMNS = 512;
constexpr char END = 4;    // the character behind it is the result
enum Status : int { ENDED = 0, LIMIT = 1 };

// The interrupt on its way to the CPU: as it is, or with a seed one of two is lost, and others have no reason.
struct Interrupts {
    uint64_t state = 0, raised = 0, lost = 0, spurious = 0, taken = 0;    // taken: looks of the handler for nothing
    uint32_t left = 0;    // cycles of one without a reason
    bool before = false, loses = false;

    uint32_t draw() { return state ^= state << 13, state ^= state >> 7, state ^= state << 17, uint32_t(state >> 16); }

    bool told(bool now) {
        if (now && !before) {
            ++raised;
            loses = state && draw() % 2;
            lost += loses;
        }
        before = now;
        if (left) --left;
        else if (state && !now && draw() % 1000 == 0) left = 1 + draw() % 100, ++spurious;
        return (now && !loses) || left;
    }
};

struct System {
    VerilatedContext context;
    Vdut top{&context};
    uint64_t cycle = 0;
    std::string said, given, answered;    // of firmware; to the bridge, and from it
    uint64_t taken = 0;                   // of what was given
    Interrupts interrupts;
    bool ended = false, last = false;
    uint32_t code = 0;

    uint16_t& word(uint64_t at) {
        uint64_t row = at / (BANKS * COLUMNS), bank = at / COLUMNS % BANKS, place = row * COLUMNS + at % COLUMNS;
        auto& dut = *top.dut;
        return bank == 0 ? dut.BANK0[place] : bank == 1 ? dut.BANK1[place] :
               bank == 2 ? dut.BANK2[place] : dut.BANK3[place];
    }

    void step() {
        top.sys_clk = 0;
        top.interrupt_told = interrupts.told(top.interrupt_raised);
        top.bridge_sink_valid = taken < given.size();
        if (top.bridge_sink_valid) top.bridge_sink_data = uint8_t(given[taken]);
        top.eval();
        if (top.bridge_sink_valid && top.bridge_sink_ready) ++taken;
        if (top.interrupt_looked && !top.interrupt_raised) ++interrupts.taken;
        if (top.bridge_source_valid) answered += char(top.bridge_source_data);
        if (top.serial_source_valid) take(char(top.serial_source_data));
        top.sys_clk = 1;
        top.eval();
        ++cycle;
    }

    void take(char character) {
        if (last) ended = true, code = uint8_t(character);
        else if (character == END) last = true;
        else said += character;
    }
};

}  // namespace

#define API __attribute__((visibility("default")))

extern "C" {

API void* sim_open(const uint32_t* rom, uint64_t words, const uint16_t* bytes, uint64_t size) {
    System* system = new System;
    system->top.sys_rst = 1;
    system->top.serial_source_ready = system->top.bridge_source_ready = 1;
    system->top.eval();
    for (uint64_t i = 0; i < words; ++i) system->top.dut->ROM[i] = rom[i];
    for (uint64_t i = 0; i < size / 2; ++i) system->word(i) = bytes[i];
    for (int i = 0; i < 8; ++i) system->step();
    system->top.sys_rst = 0;
    return system;
}

API void sim_close(System* system) {
    system->top.final();
    delete system;
}

API int sim_run(System* system, uint64_t limit) {
    for (; limit; --limit) {
        system->step();
        if (system->ended) return ENDED;
    }
    return LIMIT;
}

API uint64_t sim_cycle(const System* system) { return system->cycle; }

API uint32_t sim_code(const System* system) { return system->code; }

API const char* sim_said(const System* system) { return system->said.c_str(); }

API void sim_wild(System* system, uint64_t seed) { system->interrupts.state = seed; }

API void sim_interrupts(const System* system, uint64_t* counts) {
    const Interrupts& all = system->interrupts;
    counts[0] = all.raised, counts[1] = all.lost, counts[2] = all.spurious, counts[3] = all.taken;
}

// Bytes for the bridge; cycles until it has answered with so many, `limit` at most, and the answer: whether it has.
API void sim_give(System* system, const char* bytes, uint64_t size) {
    system->given.erase(0, system->taken).append(bytes, size);
    system->taken = 0;
}

API int sim_answer(System* system, char* bytes, uint64_t size, uint64_t limit) {
    for (; system->answered.size() < size && limit; --limit) system->step();
    if (system->answered.size() < size) return 0;
    std::copy_n(system->answered.begin(), size, bytes);
    system->answered.erase(0, size);
    return 1;
}

// What is in the SDRAM from its beginning on.
API void sim_fetch(System* system, uint16_t* bytes, uint64_t size) {
    for (uint64_t i = 0; i < size / 2; ++i) bytes[i] = system->word(i);
}
}
