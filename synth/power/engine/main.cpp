// Runs streams of payloads through a mapped netlist, and counts energy in some of the cycles.
//
// Arguments: library, netlist, stimulus, output file. The formats are those that tables.py, netlist.py and run.py write.
#include <cstring>
#include <fstream>
#include <iostream>

#include "simulation.h"

namespace {

struct Stream {
    std::string name;
    bool in;
    int valid, ready, stride;
    std::vector<int> payload;    // nets
    uint64_t beats, begin, every;    // offered when so many beats of the paced stream are through, and so many more
    uint64_t done = 0;
    std::vector<uint8_t> data;
    bool held = false;
};

struct Settings {
    int components, outside, clock, reset, from, until, stride;    // beats of the paced stream; every how many cycles
    float period, wire, access, tick;
    uint64_t limit;
    std::string pace;
};

std::vector<Stream> read_streams(std::istream& in, const Netlist& net, const char* data) {
    int count, bits;
    in >> count;
    std::vector<Stream> streams(count);
    std::ifstream bytes(data, std::ios::binary);
    for (Stream& s : streams) {
        in >> s.name >> s.in >> s.beats >> s.begin >> s.every >> s.stride >> s.valid >> s.ready >> bits;
        s.payload = read_ints(in, bits);
        s.valid = net.top[s.valid], s.ready = net.top[s.ready];
        for (int& each : s.payload) each = net.top[each];
        s.data.resize(s.beats * s.stride);
        if (s.in) bytes.read(reinterpret_cast<char*>(s.data.data()), std::streamsize(s.data.size()));
    }
    return streams;
}

void offer(Simulation& sim, Stream& s, uint64_t paced) {
    if (!s.in) return sim.set(s.ready, s.done < s.beats);
    if (!s.held && s.done < s.beats && paced >= s.begin + s.done * s.every) {
        for (size_t k = 0; k < s.payload.size(); ++k)
            sim.set(s.payload[k], s.data[s.done * s.stride + k / 8] >> k % 8 & 1);
        s.held = true;
    }
    sim.set(s.valid, s.held);
}

void transfer(const Simulation& sim, Stream& s) {
    if (!sim.settled[s.valid] || !sim.settled[s.ready]) return;
    if (!s.in) {
        for (size_t k = 0; k < s.payload.size(); ++k)
            s.data[s.done * s.stride + k / 8] |= uint8_t(sim.settled[s.payload[k]] << k % 8);
    }
    ++s.done, s.held = false;
}

}  // namespace

int main(int, char** argv) {
    std::ifstream cells(argv[1]), text(argv[2]);
    Library library = read_library(cells);
    Netlist net(library);
    Settings set;
    text >> set.components >> set.outside >> set.clock >> set.reset >> set.from >> set.until >> set.stride >> set.period >>
        set.wire >> set.access >> set.tick >> set.limit >> set.pace;
    net.read(text);
    net.flatten(set.wire, set.outside, set.clock);
    Timing timing(net, set.access);
    if (set.period == 0) set.period = timing.longest;
    int rst;
    text >> rst;
    std::vector<Stream> streams = read_streams(text, net, argv[3]);
    Simulation sim(net, timing, set.components, set.period, set.tick);
    uint64_t window = 0, sampled = 0, cycle = 0, last = 0;
    const Stream& paced = *std::find_if(streams.begin(), streams.end(),
                                        [&](const Stream& s) { return s.name == set.pace; });
    bool complete = timing.longest > set.period;    // nothing to run: it would not work
    for (uint64_t after = 0; !complete && cycle < set.limit; ++cycle) {
        bool resets = cycle < uint64_t(set.reset);
        bool inside = !resets && paced.done >= uint64_t(set.from) && paced.done < uint64_t(set.until);
        if (rst >= 0) sim.set(net.top[rst], resets);
        if (!resets)
            for (Stream& s : streams) offer(sim, s, paced.done);
        sim.settle();
        if (inside && window % set.stride == 0) {
            sim.measure(), ++sampled;
        } else {
            sim.value = sim.settled;
        }
        window += inside;
        if (!resets)
            for (Stream& s : streams) transfer(sim, s);
        sim.clock(inside);
        bool done = std::all_of(streams.begin(), streams.end(), [](const Stream& s) { return s.done == s.beats; });
        complete = done && ++after > 8;
        uint64_t percent = paced.beats ? 100 * paced.done / paced.beats : 100;
        if (percent != last) std::cerr << "progress " << (last = percent) << std::endl;
    }
    std::ofstream out(argv[4], std::ios::binary);
    std::cout << "run " << complete << ' ' << cycle << ' ' << window << ' ' << sampled << ' ' << sim.wrong << ' '
              << sim.events << ' ' << timing.longest << ' ' << sim.last_change << ' ' << net.nets << '\n';
    for (const Stream& s : streams) {
        std::cout << "stream " << s.name << ' ' << s.done << '\n';
        if (!s.in) out.write(reinterpret_cast<const char*>(s.data.data()), std::streamsize(s.data.size()));
    }
    std::vector<uint64_t> gates(set.components), registers(set.components);
    std::vector<double> leakage(set.components);
    for (const Cell& c : net.cells) {
        ++gates[c.component], registers[c.component] += net.type(c).clock >= 0;
        leakage[c.component] += net.type(c).leakage;
    }
    std::cout.precision(12);
    for (int n = 0; n < set.components; ++n) {
        const Energy &f = sim.full[n], &s = sim.still[n];
        std::cout << "component " << n << ' ' << gates[n] << ' ' << registers[n] << ' ' << leakage[n] << ' '
                  << f.switching << ' ' << f.internal << ' ' << f.clock << ' ' << f.toggles << ' ' << s.switching
                  << ' ' << s.internal << ' ' << s.toggles << '\n';
    }
    for (const Memory& m : net.memories)
        std::cout << "memory " << m.module << ' ' << m.component << ' ' << m.words << ' ' << m.width << ' ' << m.read_out
                  << ' ' << m.written << '\n';
}
