// One clock cycle after the other: every net's settled value; in some cycles each change on the way there, with energy.
#pragma once
#include <cmath>

#include "timing.h"

// fJ by where they go; `toggles` of nets, `clock` of clock pins and what is behind them.
struct Energy {
    double switching = 0, internal = 0, clock = 0;
    uint64_t toggles = 0;
};

class Simulation {
  public:
    std::vector<uint8_t> value, settled;      // of each net: now, and at the end of the cycle
    std::vector<Energy> full, still;          // of each component: all changes, and settled ones alone
    uint64_t wrong = 0, events = 0;
    float last_change = 0;                    // ns

    Simulation(Netlist& n, const Timing& t, int components, float period, float tick)
        : net(n), timing(t), period_(period), tick_(tick) {
        settled.assign(net.nets, 0);
        settled[1] = 1;
        for (uint32_t f : net.flipflops)
            for (int o = 0; o < net.type(net.cells[f]).outputs; ++o)
                settled[net.out(net.cells[f])[o]] = net.type(net.cells[f]).inverted[o];
        value = settled;
        full.resize(components), still.resize(components);
        for (uint32_t each : net.order) {
            const Cell& c = net.cells[each];
            const CellType& type = net.type(c);
            for (int o = 0; o < type.outputs; ++o) {
                steps.push_back(uint32_t(net.out(c)[o])), steps.push_back(uint32_t(type.inputs));
                steps.insert(steps.end(), net.in(c), net.in(c) + type.inputs);
                size_t truth = steps.size();
                steps.resize(truth + std::max(1, type.states() / 32));
                for (int state = 0; state < type.states(); ++state)
                    steps[truth + state / 32] |= uint32_t(type.value(o, state)) << state % 32;
            }
        }
        due.assign(net.nets, -1), cause.assign(net.nets, 0.f);
        next.resize(net.flipflops.size());
        high.assign(net.nets, 0);
        if (net.clk >= 0) high[net.clk] = 1;
    }

    void set(int n, bool to) { settled[n] = to; }

    // Until nothing changes any more, without delays.
    void settle() {
        for (const uint32_t* at = steps.data(); at != steps.data() + steps.size();) {
            uint32_t inputs = at[1], words = inputs > 5 ? 1u << (inputs - 5) : 1, state = 0;
            const uint32_t *in = at + 2, *truth = in + inputs;
            for (uint32_t p = 0; p < inputs; ++p) state |= uint32_t(settled[in[p]]) << p;
            settled[at[0]] = truth[state >> 5] >> (state & 31) & 1;
            at = truth + words;
        }
    }

    // What a rising clock does to registers and memories; `counted`: whether accesses are.
    void clock(bool counted) {
        for (uint32_t g : net.gates) {
            const Cell& c = net.cells[g];
            int state = state_at(c, high, settled);
            for (int o = 0; o < net.type(c).outputs; ++o) high[net.out(c)[o]] = net.type(c).value(o, state);
        }
        for (size_t n = 0; n < net.flipflops.size(); ++n) {
            const Cell& c = net.cells[net.flipflops[n]];
            next[n] = uint8_t(state_of(c, net.type(c), settled));
        }
        for (Memory& m : net.memories) access(m, counted);
        for (size_t n = 0; n < net.flipflops.size(); ++n) {
            const Cell& c = net.cells[net.flipflops[n]];
            const CellType& t = net.type(c);
            if (net.falling(c) || !moves(net.clock(c))) continue;
            for (int o = 0; o < t.outputs; ++o) settled[net.out(c)[o]] = t.value(o, next[n]);
        }
    }

    // From `value`, where the last cycle ended, to `settled`: once with and once without delays.
    void measure() {
        clock_energy();
        settled_energy();
        for (uint32_t f : net.flipflops) {
            const Cell& c = net.cells[f];
            const CellType& t = net.type(c);
            bool late = net.falling(c);
            int begin = late ? int(std::lround(period_ / 2 / tick_)) : 0;
            for (int o = 0; o < t.outputs; ++o) {
                int n = net.out(c)[o];
                if (value[n] == settled[n]) continue;
                int state = state_of(c, t, late ? settled : value) | !t.falling << t.clock;
                plan(n, begin, timing.delay_of(f, o, t.clock, state, settled[n]),
                     timing.energy_of(f, o, t.clock, state, settled[n]));
            }
        }
        for (int n = 2; n < net.nets; ++n)
            if (net.driver[n] < 0 && value[n] != settled[n]) plan(n, 0, timing.source[n], 0);
        for (size_t at = 0; at < wheel.size(); ++at) {
            for (size_t k = 0; k < wheel[at].size(); ++k) {
                int n = wheel[at][k];
                if (due[n] == int(at)) fire(n, int(at));
            }
            wheel[at].clear();
        }
        for (int n = 0; n < net.nets; ++n) wrong += value[n] != settled[n];
        for (int n = 0; n < net.nets; ++n) value[n] = settled[n];
    }

  private:
    Netlist& net;
    const Timing& timing;
    float period_, tick_;
    std::vector<std::vector<int>> wheel;    // nets that may change, by time in ticks
    std::vector<int> due;                   // of a net: when it will change, or -1
    std::vector<float> cause;               // energy inside the gate that changes it
    std::vector<uint8_t> next;
    std::vector<uint8_t> high;      // of the nets that are clocks: while the clock is high; they rest else
    std::vector<uint32_t> steps;    // of each gate's output, by level: its net, inputs, their nets, the truth table

    int state_of(const Cell& c, const CellType& t, const std::vector<uint8_t>& values) const {
        const int* in = net.in(c);
        int state = 0;
        for (int p = 0; p < t.inputs; ++p)
            if (p != t.clock) state |= values[in[p]] << p;
        return state;
    }

    // The same of a gate in the clock's way, with one value of clocks and another of all else.
    int state_at(const Cell& c, const std::vector<uint8_t>& clocks, const std::vector<uint8_t>& values) const {
        int state = 0;
        for (int p = 0; p < net.type(c).inputs; ++p) {
            int n = net.in(c)[p];
            state |= (net.clocked[n] ? clocks : values)[n] << p;
        }
        return state;
    }

    // Whether a net that is a clock has its edges in this cycle.
    bool moves(int n) const { return high[n] != net.rests[n]; }

    float swing(int n) const { return 0.5f * net.load[n] * net.library.volts * net.library.volts; }

    void access(Memory& m, bool counted) {
        auto number = [&](const std::vector<int>& nets) {
            size_t found = 0;
            for (size_t k = 0; k < nets.size(); ++k) found |= size_t(settled[nets[k]]) << k;
            return found;
        };
        std::vector<uint8_t> word;
        if (settled[m.read[0]]) {
            size_t from = number(m.read_address) % m.words * m.width;
            word.assign(m.bits.begin() + from, m.bits.begin() + from + m.width);
            m.read_out += counted && from != m.held ? m.width : 0;
            m.held = from;
        }
        size_t to = number(m.write_address) % m.words * m.width;
        bool wrote = false;
        for (int k = 0; k < m.width; ++k)
            if (settled[m.write[k / (m.width / m.granules)]])
                m.bits[to + k] = settled[m.data[k]], wrote = true, m.written += counted;
        if (wrote && to == m.held) m.held = ~size_t(0);
        for (size_t k = 0; k < word.size(); ++k) settled[m.out[k]] = word[k];
    }

    // Both edges at every flip-flop whose clock moves, and in every gate on the clock's way: pins, and what happens
    // behind them whatever the data. Pins behind a gate are the load of the gate.
    void clock_energy() {
        float square = net.library.volts * net.library.volts;
        for (uint32_t f : net.flipflops) {
            const Cell& c = net.cells[f];
            const CellType& t = net.type(c);
            int from = net.clock(c);
            if (!moves(from)) continue;
            double& sum = full[c.component].clock;
            if (from == net.clk) sum += t.capacitance[t.clock] * square;
            int before = state_of(c, t, value), after = state_of(c, t, settled);
            int held = own_bit(c, t, value), taken = net.falling(c) ? held : own_bit(c, t, settled);
            sum += timing.hidden_of(f, t.clock, before | held << t.inputs, high[from]);
            sum += timing.hidden_of(f, t.clock, after | taken << t.inputs, net.rests[from]);
        }
        for (uint32_t g : net.gates) {
            const Cell& c = net.cells[g];
            const CellType& t = net.type(c);
            int p = net.enters(c), from = net.in(c)[p];
            if (!moves(from)) continue;
            double& sum = full[c.component].clock;
            if (from == net.clk) sum += t.capacitance[p] * square;
            int up = state_at(c, high, value), down = state_at(c, net.rests, value);
            bool shut = true;
            for (int o = 0; o < t.outputs; ++o) {
                int to = net.out(c)[o];
                if (!moves(to)) continue;
                shut = false, sum += 2 * swing(to);
                sum += timing.energy_of(g, o, p, up, high[to]) + timing.energy_of(g, o, p, down, net.rests[to]);
            }
            if (shut) sum += hidden(g, c, t, p, up, high[from], true, value) +
                             hidden(g, c, t, p, down, net.rests[from], true, value);
        }
    }

    int own_bit(const Cell& c, const CellType& t, const std::vector<uint8_t>& values) const {
        return values[net.out(c)[0]] ^ t.inverted[0];
    }

    // Each net that ends otherwise than it began changes once; the inputs that changed share its cause.
    void settled_energy() {
        for (uint32_t n = 0; n < net.cells.size(); ++n) {
            const Cell& c = net.cells[n];
            const CellType& t = net.type(c);
            Energy& sum = still[c.component];
            int state = state_of(c, t, settled), changed = state ^ state_of(c, t, value);
            bool quiet = true;
            for (int o = 0; o < t.outputs; ++o) {
                int to = net.out(c)[o];
                if (value[to] == settled[to]) continue;
                quiet = false, ++sum.toggles, sum.switching += swing(to);
                int causes = t.clock >= 0 ? 1 << t.clock : changed;
                double inside = 0;
                for (int p = 0; p < t.inputs; ++p)
                    if (causes >> p & 1) inside += timing.energy_of(n, o, p, state, settled[to]);
                sum.internal += inside / std::max(1, __builtin_popcount(unsigned(causes)));
            }
            if (quiet || t.clock >= 0)
                for (int p = 0; p < t.inputs; ++p)
                    if (changed >> p & 1)
                        sum.internal += hidden(n, c, t, p, state, state >> p & 1, clock_at(c, true), settled);
        }
        for (int n = 2; n < net.nets; ++n)
            if (net.driver[n] < 0 && value[n] != settled[n])
                ++still[net.component[n]].toggles, still[net.component[n]].switching += swing(n);
    }

    // What is at a flip-flop's clock in the first or in the second half of the cycle.
    bool clock_at(const Cell& c, bool first) const {
        return net.type(c).clock >= 0 && (first ? high : net.rests)[net.clock(c)];
    }

    float hidden(uint32_t n, const Cell& c, const CellType& t, int p, int state, int edge, bool clock,
                 const std::vector<uint8_t>& values) const {
        if (t.hidden.empty()) return 0;
        if (t.clock >= 0) state |= clock << t.clock | own_bit(c, t, values) << t.inputs;
        return timing.hidden_of(n, p, state, edge);
    }

    void plan(int n, int now, float delay, float energy) {
        int at = now + std::max(1, int(std::lround(delay / tick_)));
        if (size_t(at) >= wheel.size()) wheel.resize(at + at / 2 + 16);
        due[n] = at, cause[n] = energy;
        wheel[at].push_back(n);
    }

    void fire(int n, int now) {
        due[n] = -1;
        value[n] ^= 1;
        ++events;
        Energy& sum = full[net.component[n]];
        ++sum.toggles, sum.switching += swing(n), sum.internal += cause[n];
        last_change = std::max(last_change, now * tick_);
        for (uint32_t s = net.first_sink[n]; s < net.first_sink[n + 1]; ++s) evaluate(net.sinks[s], now, value[n]);
    }

    // A gate whose input changed: outputs that will differ are planned, pulses shorter than its delay vanish.
    void evaluate(const Sink& sink, int now, int edge) {
        const Cell& c = net.cells[sink.cell];
        const CellType& t = net.type(c);
        int state = state_of(c, t, value), p = int(sink.pin);
        if (t.clock >= 0) {
            full[c.component].internal += hidden(sink.cell, c, t, p, state, edge,
                                                  clock_at(c, now * tick_ < period_ / 2), value);
            return;
        }
        bool quiet = true;
        for (int o = 0; o < t.outputs; ++o) {
            int n = net.out(c)[o];
            bool wanted = t.value(o, state), coming = value[n] ^ (due[n] >= 0);
            if (wanted == coming) continue;
            quiet = false;
            if (due[n] >= 0) due[n] = -1;
            else
                plan(n, now, timing.delay_of(sink.cell, o, p, state, wanted),
                     timing.energy_of(sink.cell, o, p, state, wanted));
        }
        if (quiet) full[c.component].internal += hidden(sink.cell, c, t, p, state, edge, true, value);
    }
};
