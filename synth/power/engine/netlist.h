// A flat netlist, made from modules that contain each other.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "library.h"

struct Module {
    int component, words, width, granules;  // component -1: that of its user; words 0: no memory
    int nets;
    std::vector<int> ports;
    std::vector<std::vector<int>> cells;  // type, then nets of inputs and outputs (-1: not connected)
    std::vector<std::vector<int>> parts;  // module, then nets of its ports
    std::vector<std::pair<int, int>> same;
};

struct Memory {
    int component, module, words, width, granules;
    std::vector<int> write, write_address, data, read, read_address, out;  // nets
    std::vector<uint8_t> bits;
    uint64_t read_out = 0, written = 0;    // bits; of a word that is read again as it was, none
    size_t held = ~size_t(0);          // the word that is read, until it is written
};

struct Cell {
    uint16_t type;
    uint16_t component;
    uint32_t pins;  // where its nets begin in Netlist::pin
};

struct Sink {
    uint32_t cell;
    uint32_t pin;
};

struct Netlist {
    const Library& library;
    std::vector<Module> modules;
    std::vector<Cell> cells;
    std::vector<int> pin;
    std::vector<Memory> memories;
    std::vector<uint32_t> order, flipflops;         // cells: gates by level, and registers
    std::vector<uint32_t> first_sink;               // of each net, in `sinks`
    std::vector<Sink> sinks;
    std::vector<float> load;                        // fF of each net
    std::vector<int> driver, driver_output;         // cell and its output that drive a net, or -1
    std::vector<int> component;                     // of a net: that of its driver
    std::vector<int> top;                           // nets of the top's ports
    std::vector<uint32_t> gates;                    // cells through which the clock goes, each behind its driver
    std::vector<uint8_t> clocked;                   // of each net: whether it is the clock, or what gates make of it
    std::vector<uint8_t> rests;                     // of such a net: its value while the clock is low
    int nets = 0, clk = -1;

    explicit Netlist(const Library& cells_) : library(cells_) {}

    const CellType& type(const Cell& cell) const { return library.cells[cell.type]; }
    const int* in(const Cell& cell) const { return &pin[cell.pins]; }
    const int* out(const Cell& cell) const { return &pin[cell.pins + type(cell).inputs]; }
    int clock(const Cell& cell) const { return in(cell)[type(cell).clock]; }    // net at a flip-flop's clock
    // Whether it is a flip-flop that takes its input over when the clock falls.
    bool falling(const Cell& cell) const {
        return type(cell).clock >= 0 && type(cell).falling != bool(rests[clock(cell)]);
    }
    // The pin of a gate in the clock's way at which it comes.
    int enters(const Cell& cell) const {
        return int(std::find_if(in(cell), out(cell), [&](int net) { return clocked[net]; }) - in(cell));
    }

    void read(std::istream& in) {
        int count;
        in >> count;
        modules.resize(count);
        for (Module& m : modules) {
            int ports, cells_, parts, same;
            in >> m.component >> m.words >> m.width >> m.granules >> m.nets >> ports >> cells_ >> parts >> same;
            m.ports = read_ints(in, ports);
            for (auto [list, size] : {std::pair{&m.cells, cells_}, {&m.parts, parts}}) {
                list->resize(size);
                for (auto& each : *list) {
                    in >> count;
                    each = read_ints(in, count);
                }
            }
            m.same.resize(same);
            for (auto& each : m.same) in >> each.first >> each.second;
        }
    }

    // Flatten the last module; nets 0 and 1 are the constants, `clock` is the number of a port.
    void flatten(float wire, int outside, int clock) {
        parent = {0, 1};
        const Module& last = modules.back();
        std::vector<int> ports(last.ports.size());
        for (int& each : ports) each = fresh();
        place(int(modules.size()) - 1, ports, outside);
        std::vector<int> name(parent.size(), -1);
        name[find(0)] = 0, name[find(1)] = 1, nets = 2;
        auto rename = [&](int& net) {
            int& found = name[find(net)];
            if (found < 0) found = nets++;
            net = found;
        };
        for (int& net : pin) rename(net);
        for (int& net : ports) rename(net);
        for (Memory& m : memories)
            for (auto* list : {&m.write, &m.write_address, &m.data, &m.read, &m.read_address, &m.out})
                for (int& net : *list) rename(net);
        top = ports;
        if (clock >= 0) clk = top[clock];
        parent.clear();
        connect(wire, outside);
        lead();
        sort();
    }

  private:
    std::vector<int> parent;

    int fresh() {
        parent.push_back(int(parent.size()));
        return parent.back();
    }

    int find(int net) {
        while (parent[net] != net) net = parent[net] = parent[parent[net]];
        return net;
    }

    void place(int index, const std::vector<int>& ports, int inherited) {
        const Module& m = modules[index];
        int own = m.component < 0 ? inherited : m.component;
        std::vector<int> local(m.nets, -1);
        local[0] = 0, local[1] = 1;
        for (size_t n = 0; n < ports.size(); ++n) {
            int& net = local[m.ports[n]];
            if (net < 0) net = ports[n];
            else unite(net, ports[n]);
        }
        for (int n = 2; n < m.nets; ++n)
            if (local[n] < 0) local[n] = fresh();
        for (auto [a, b] : m.same) unite(local[a], local[b]);
        if (m.words) return memory(index, own, local);
        for (const auto& each : m.cells) {
            cells.push_back({uint16_t(each[0]), uint16_t(own), uint32_t(pin.size())});
            for (size_t n = 1; n < each.size(); ++n) pin.push_back(each[n] < 0 ? fresh() : local[each[n]]);
        }
        for (const auto& each : m.parts) {
            std::vector<int> inner;
            for (size_t n = 1; n < each.size(); ++n) inner.push_back(each[n] < 0 ? fresh() : local[each[n]]);
            place(each[0], inner, own);
        }
    }

    void unite(int a, int b) {
        a = find(a), b = find(b);
        if (a != b) parent[std::max(a, b)] = std::min(a, b);
    }

    // Ports of a memory: write enables, address, data, read enable, address, and the word that is read.
    void memory(int index, int own, const std::vector<int>& local) {
        const Module& m = modules[index];
        int bits = 0;
        while ((1 << bits) < m.words) ++bits;
        Memory made{own, index, m.words, m.width, m.granules, {}, {}, {}, {}, {}, {}, {}};
        made.bits.assign(size_t(m.words) * m.width, 0);
        size_t next = 0;
        for (auto [list, size] : {std::pair{&made.write, m.granules}, {&made.write_address, bits},
                                  {&made.data, m.width}, {&made.read, 1}, {&made.read_address, bits},
                                  {&made.out, m.width}})
            for (int n = 0; n < size; ++n) list->push_back(local[m.ports[next++]]);
        memories.push_back(made);
    }

    void connect(float wire, int outside) {
        driver.assign(nets, -1), driver_output.assign(nets, -1), load.assign(nets, 0.f);
        component.assign(nets, outside);
        std::vector<uint32_t> count(nets + 1, 0);
        for (uint32_t n = 0; n < cells.size(); ++n) {
            const CellType& t = type(cells[n]);
            for (int p = 0; p < t.inputs; ++p) {
                int net = in(cells[n])[p];
                if (p == t.clock) continue;    // changes of the clock are no events of the simulation
                ++count[net + 1], load[net] += t.capacitance[p] + wire;
            }
            for (int o = 0; o < t.outputs; ++o) {
                int net = out(cells[n])[o];
                if (driver[net] >= 0) fail("a net has two drivers");
                driver[net] = int(n), driver_output[net] = o, component[net] = cells[n].component;
            }
            if (t.clock >= 0) flipflops.push_back(n);
        }
        for (const Memory& m : memories)
            for (int net : m.out) component[net] = m.component;
        std::partial_sum(count.begin(), count.end(), count.begin());
        first_sink = count;
        sinks.resize(count.back());
        std::vector<uint32_t> next = first_sink;
        for (uint32_t n = 0; n < cells.size(); ++n) {
            const CellType& t = type(cells[n]);
            for (int p = 0; p < t.inputs; ++p)
                if (p != t.clock) sinks[next[in(cells[n])[p]]++] = {n, uint32_t(p)};
        }
    }

    // The clock's way through gates, each of which holds its output while the clock is low.
    void lead() {
        clocked.assign(nets, 0), rests.assign(nets, 0);
        std::vector<int> ways;
        if (clk >= 0) clocked[clk] = 1, ways.push_back(clk);
        for (size_t at = 0; at < ways.size(); ++at) {
            for (uint32_t s = first_sink[ways[at]]; s < first_sink[ways[at] + 1]; ++s) {
                const Cell& c = cells[sinks[s].cell];
                if (type(c).clock >= 0) fail("the clock is the input of a flip-flop");
                gates.push_back(sinks[s].cell);
                for (int o = 0; o < type(c).outputs; ++o) {
                    int net = out(c)[o], low = type(c).held(o, int(sinks[s].pin), rests[ways[at]]);
                    if (low < 0 || clocked[net]) fail("a gate changes what it gives while the clock is low");
                    clocked[net] = 1, rests[net] = uint8_t(low), ways.push_back(net);
                }
            }
        }
        for (uint32_t f : flipflops) {
            const Cell& c = cells[f];
            if (!clocked[clock(c)]) fail("a flip-flop's clock is not the core's");
            if (clock(c) != clk) load[clock(c)] += type(c).capacitance[type(c).clock];
            for (int net = clock(c); falling(c) && net != clk; net = in(cells[driver[net]])[0])
                if (type(cells[driver[net]]).inputs > 1) fail("a flip-flop of the falling edge has a gated clock");
        }
    }

    // Whether a cell's outputs follow from its inputs in the same cycle: a flip-flop of the falling edge is among them.
    bool follows(const Cell& c) const { return type(c).clock < 0 || falling(c); }

    // Gates in an order in which each comes after those that drive it.
    void sort() {
        std::vector<int> open(cells.size(), 0);
        std::vector<uint32_t> ready;
        size_t registers = 0;
        for (uint32_t n = 0; n < cells.size(); ++n) {
            const CellType& t = type(cells[n]);
            if (!follows(cells[n])) { ++registers; continue; }
            for (int p = 0; p < t.inputs; ++p) {
                int from = driver[in(cells[n])[p]];
                open[n] += p != t.clock && from >= 0 && follows(cells[from]);
            }
            if (!open[n]) ready.push_back(n);
        }
        for (size_t at = 0; at < ready.size(); ++at) {
            const Cell& cell = cells[ready[at]];
            for (int o = 0; o < type(cell).outputs; ++o) {
                int net = out(cell)[o];
                for (uint32_t s = first_sink[net]; s < first_sink[net + 1]; ++s) {
                    uint32_t to = sinks[s].cell;
                    if (follows(cells[to]) && !--open[to]) ready.push_back(to);
                }
            }
        }
        if (ready.size() + registers != cells.size()) fail("gates drive each other in a ring");
        order = ready;
        std::vector<uint8_t> still(nets, 0);    // nets that change while the clock is low, or not at all
        still[0] = still[1] = 1;
        for (uint32_t n : order) {
            const Cell& c = cells[n];
            bool all = falling(c) || std::all_of(in(c), out(c), [&](int net) { return still[net]; });
            for (int o = 0; o < type(c).outputs; ++o) still[out(c)[o]] = all;
        }
        for (uint32_t g : gates)
            for (int p = 0; p < type(cells[g]).inputs; ++p)
                if (int net = in(cells[g])[p]; !clocked[net] && !still[net])
                    fail("a gate of the clock opens while the clock is high");
    }

  public:
    [[noreturn]] static void fail(const char* why) {
        std::fprintf(stderr, "error: %s\n", why);
        std::exit(1);
    }
};
