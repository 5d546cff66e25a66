// Transitions, delays and energies of every gate in its place, and when each net is settled at the latest.
#pragma once
#include "netlist.h"

struct Timing {
    const Netlist& net;
    std::vector<float> slew[2], arrival[2];   // of each net, falling and rising
    std::vector<float> source;                // when a net changes that no gate drives, in ns
    std::vector<uint32_t> delay_at, energy_at;  // where those of each cell begin
    std::vector<float> delay, energy;         // [arc][falling, rising]
    float longest = 0, clock_slew = 0;

    // access: ns until a memory's word is read; inputs of the top change with the flip-flops behind them.
    Timing(const Netlist& n, float access) : net(n) {
        for (int edge : {0, 1}) slew[edge].assign(net.nets, 0.f), arrival[edge].assign(net.nets, 0.f);
        source.assign(net.nets, 0.f);
        uint32_t delays = 0, energies = 0;
        for (const Cell& cell : net.cells) {
            delay_at.push_back(delays), energy_at.push_back(energies);
            delays += 2 * net.type(cell).delay.size(), energies += 2 * net.type(cell).energy.size();
        }
        delay.assign(delays, 0.f), energy.assign(energies, 0.f);
        float outside = 1e30f;
        for (uint32_t n : net.flipflops) {
            cell(n);
            for (int o = 0; o < net.type(net.cells[n]).outputs; ++o)
                outside = std::min(outside, arrival[1][net.out(net.cells[n])[o]]);
        }
        if (net.flipflops.empty()) outside = 0;
        for (int n : net.top)
            if (net.driver[n] < 0 && n != net.clk) source[n] = arrival[0][n] = arrival[1][n] = outside;
        for (const Memory& m : net.memories)
            for (int n : m.out) source[n] = arrival[0][n] = arrival[1][n] = access;
        for (uint32_t n : net.order) cell(n);
        for (int edge : {0, 1})
            for (int n = 0; n < net.nets; ++n)
                if (!net.clocked[n]) longest = std::max(longest, arrival[edge][n]);
        for (uint32_t f : net.flipflops)
            if (net.falling(net.cells[f])) half(net.cells[f]);
        for (uint32_t g : net.gates) half(net.cells[g]);
    }

    float delay_of(uint32_t cell, int output, int pin, int state, int edge) const {
        const CellType& t = net.type(net.cells[cell]);
        int arc = t.delay_of[t.place(output, pin, state)];
        return arc < 0 ? 0.f : delay[delay_at[cell] + 2 * arc + edge];
    }

    float energy_of(uint32_t cell, int output, int pin, int state, int edge) const {
        const CellType& t = net.type(net.cells[cell]);
        int arc = t.energy_of[t.place(output, pin, state)];
        return arc < 0 ? 0.f : energy[energy_at[cell] + 2 * arc + edge];
    }

    float hidden_of(uint32_t cell, int pin, int state, int edge) const {
        const CellType& t = net.type(net.cells[cell]);
        int arc = t.hidden_of[t.hidden_place(pin, state)];
        if (arc < 0 || t.hidden[arc].table[edge] < 0) return 0.f;
        float in = pin == t.clock ? clock_slew : slew[edge][net.in(net.cells[cell])[pin]];
        return net.library.tables[t.hidden[arc].table[edge]].at(in, 0.f, false);
    }

  private:
    // What a flip-flop of the falling edge takes over, and what opens a gate, has half a cycle to come.
    void half(const Cell& c) {
        for (int p = 0; p < net.type(c).inputs; ++p)
            for (int edge : {0, 1})
                if (!net.clocked[net.in(c)[p]]) longest = std::max(longest, 2 * arrival[edge][net.in(c)[p]]);
    }

    float look(int table, float in, float load, bool on) const {
        return table < 0 ? 0.f : net.library.tables[table].at(in, load, on);
    }

    // Everything of one cell, when its inputs are done.
    void cell(uint32_t n) {
        const Cell& c = net.cells[n];
        const CellType& t = net.type(c);
        for (int o = 0; o < t.outputs; ++o)
            for (int p = 0; p < t.inputs; ++p)
                for (int state = 0; state < t.states(); ++state) {
                    int from = net.in(c)[p], to = net.out(c)[o], edge = t.value(o, state);
                    bool clocked = t.clock >= 0;
                    if (clocked ? p != t.clock : edge == t.value(o, state ^ (1 << p))) continue;
                    int rises = state >> p & 1;    // what the input did to come here
                    float in = clocked ? clock_slew : slew[rises][from], begin = clocked ? 0.f : arrival[rises][from];
                    for (int e : {edge, 1 - edge}) {
                        if (e != edge && !clocked) continue;
                        int arc = t.delay_of[t.place(o, p, state)];
                        if (arc >= 0) {
                            float d = look(t.delay[arc].table[e], in, net.load[to], true);
                            float& kept = delay[delay_at[n] + 2 * arc + e];
                            kept = std::max(kept, std::max(d, 0.f));
                            arrival[e][to] = std::max(arrival[e][to], begin + d);
                            float s = look(t.delay[arc].table[2 + e], in, net.load[to], true);
                            slew[e][to] = std::max(slew[e][to], s);
                        }
                        arc = t.energy_of[t.place(o, p, state)];
                        if (arc >= 0)
                            energy[energy_at[n] + 2 * arc + e] =
                                look(t.energy[arc].table[e], in, net.load[to], false);
                    }
                }
    }
};
