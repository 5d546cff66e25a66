// Clocks a Verilated accelerator with a DRAM at its AXI4 port and a host at its AXI4-Lite port; one call, many cycles.
//
// ports.h, written from the manifest, has: BEAT, bytes of the data bus; TRACE, whether the top has trace_started,
// trace_completed, trace_waiting and trace_running; CONTEXTS, with two of which it has trace_context, too. Verilator calls the port `interrupt` __SYM__interrupt, as the word is
// a common one in C++.

#include "Vdut.h"
#include "dram.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {

enum Status : int { INTERRUPT = 0, LIMIT = 1, BROKEN = 2 };

// Mirrored by cosim/accelerator/device.py; keep both in step.
struct Event {
    uint64_t cycle;
    uint32_t started, completed, waiting;  // a bit for each unit
    uint32_t running;                      // 0, or 1 and the number of the context that has the machine
    uint32_t reads, writes;                // beats of DRAM so far, modulo 2^32
};

// The host's one transfer over AXI4-Lite, and how far it is.
struct Host {
    bool aw, w, b, ar, r;  // still to come
    uint32_t data;
    uint8_t code;
    bool done() const { return !(aw || w || b || ar || r); }
};

// A response to the host; one to a write has no data.
struct Response {
    uint32_t data;
    uint8_t code;
    bool operator==(const Response& other) const { return data == other.data && code == other.code; }
};

struct Simulation {
    VerilatedContext context;
    Vdut top{&context};
    dram::Memory memory;
    uint64_t cycle = 0;
    Host host{};
    dram::Channel<Response> b{"s_axil_b"}, r{"s_axil_r"};
    std::vector<Event> events;
    bool recording = false;
#if VM_TRACE
    VerilatedVcdC* waves = nullptr;
#endif

    void dump(int half) {
#if VM_TRACE
        if (waves) waves->dump(10 * cycle + 5 * half);
#endif
        (void)half;
    }

    // One cycle: inputs settle with the clock low, what is transferred is decided, the clock rises.
    void step() {
        memory.begin(cycle);
        memory.show(top);
        top.aclk = 0;
        top.eval();
        dump(0);
        Host next = host;
        if (top.aresetn) {
            memory.take(cycle, top);
            next = answer();
            record();
        }
        top.aclk = 1;
        top.eval();
        dump(1);
        ++cycle;
        offer(next);
    }

    // What of the host's transfer happens in this cycle.
    Host answer() {
        Host next = host;
        if (top.s_axil_awvalid && top.s_axil_awready) next.aw = false;
        if (top.s_axil_wvalid && top.s_axil_wready) next.w = false;
        if (top.s_axil_arvalid && top.s_axil_arready) next.ar = false;
        if (top.s_axil_bvalid) {
            if (!host.b || host.aw || host.w) memory.complaint.tell(cycle, "s_axil_bvalid is high without a write");
        }
        if (top.s_axil_rvalid) {
            if (!host.r || host.ar) memory.complaint.tell(cycle, "s_axil_rvalid is high without a read");
        }
        Response written{0, top.s_axil_bresp}, read{top.s_axil_rdata, top.s_axil_rresp};
        if (b.moves(memory.complaint, cycle, top.s_axil_bvalid, top.s_axil_bready, written))
            next.b = false, next.code = written.code;
        if (r.moves(memory.complaint, cycle, top.s_axil_rvalid, top.s_axil_rready, read))
            next.r = false, next.code = read.code, next.data = read.data;
        return next;
    }

    // What the host has still to offer and to take; what is offered stays, and what comes may have to wait.
    void offer(const Host& now) {
        auto offers = [&](bool wanted, bool before) { return wanted && (before || !memory.pause()); };
        top.s_axil_awvalid = offers(now.aw, host.aw && top.s_axil_awvalid);
        top.s_axil_wvalid = offers(now.w, host.w && top.s_axil_wvalid);
        top.s_axil_arvalid = offers(now.ar, host.ar && top.s_axil_arvalid);
        top.s_axil_bready = offers(now.b, false);
        top.s_axil_rready = offers(now.r, false);
        host = now;
    }

    // A transfer from begin to end; the response's code, or -1 if it does not come within `limit` cycles.
    int transfer(const Host& asked, uint64_t limit) {
        for (offer(asked); limit && !host.done(); --limit) step();
        return host.done() ? host.code : -1;
    }

    int write(uint32_t address, uint32_t data, uint64_t limit) {
        top.s_axil_awaddr = address;
        top.s_axil_wdata = data;
        top.s_axil_wstrb = 15;
        return transfer({.aw = true, .w = true, .b = true}, limit);
    }

    int read(uint32_t address, uint32_t* data, uint64_t limit) {
        top.s_axil_araddr = address;
        int code = transfer({.ar = true, .r = true}, limit);
        *data = host.data;
        return code;
    }

    void record() {
#if TRACE
        if (!recording) return;
        uint32_t running = top.trace_running;
#if CONTEXTS > 1
        if (running) running += top.trace_context;
#endif
        Event event{cycle, top.trace_started, top.trace_completed, top.trace_waiting, running, uint32_t(memory.beats_read), uint32_t(memory.beats_written)};
        if (event.started || event.completed || events.empty() || event.waiting != events.back().waiting ||
            event.running != events.back().running)
            events.push_back(event);
#endif
    }

    void reset(uint32_t cycles) {
        top.aresetn = 0;
        offer({});
        memory.reset();
        b.waits = r.waits = false;
        for (uint32_t i = 0; i < cycles; ++i) {
            if (i && (top.m_axi_arvalid || top.m_axi_awvalid || top.m_axi_wvalid))
                memory.complaint.tell(cycle, "arvalid, awvalid and wvalid must be low in reset");
            step();
            memory.reset();
        }
        top.aresetn = 1;
    }

    int run(uint64_t limit, bool until_interrupt) {
        for (uint64_t i = 0; i < limit; ++i) {
            if (until_interrupt && top.__SYM__interrupt) return *memory.complaint.text ? BROKEN : INTERRUPT;
            step();
            if (*memory.complaint.text) return BROKEN;
        }
        return LIMIT;
    }
};

}  // namespace

#define API __attribute__((visibility("default")))

extern "C" {

API void* sim_open(uint8_t* bytes, uint64_t size, uint32_t burst) {
    Simulation* sim = new Simulation;
    sim->memory.bytes = bytes;
    sim->memory.size = size;
    sim->memory.burst = burst;
    return sim;
}

API void sim_close(Simulation* sim) {
#if VM_TRACE
    if (sim->waves) sim->waves->close();
    delete sim->waves;
#endif
    sim->top.final();
    delete sim;
}

// The address at which the memory begins, from the next cycle on.
API void sim_place(Simulation* sim, uint64_t first) { sim->memory.first = first; }

API void sim_timing(Simulation* sim, uint64_t latency, uint64_t bandwidth) {
    sim->memory.latency = latency;
    sim->memory.bandwidth = bandwidth;
}

API void sim_pauses(Simulation* sim, uint32_t pauses, uint32_t seed) {
    sim->memory.pauses = pauses;
    sim->memory.noise = seed;
}

// Reads and writes of a range answer with an error; or, if silent, its reads never answer. An empty one clears all.
API void sim_fault(Simulation* sim, uint64_t begin, uint64_t end, int silent) {
    auto& ranges = silent ? sim->memory.silent : sim->memory.poisoned;
    if (begin == end) ranges.clear();
    else ranges.push_back({begin, end});
}

API void sim_reset(Simulation* sim, uint32_t cycles) { sim->reset(cycles); }

API int sim_write(Simulation* sim, uint32_t address, uint32_t data, uint64_t limit) {
    return sim->write(address, data, limit);
}

API int sim_read(Simulation* sim, uint32_t address, uint32_t* data, uint64_t limit) {
    return sim->read(address, data, limit);
}

API int sim_run(Simulation* sim, uint64_t limit, int until_interrupt) { return sim->run(limit, until_interrupt); }

API void sim_record(Simulation* sim, int recording) {
    sim->recording = recording;
    sim->events.clear();
}

API const Event* sim_events(Simulation* sim, uint64_t* count) {
    *count = sim->events.size();
    return sim->events.data();
}

API uint64_t sim_cycle(const Simulation* sim) { return sim->cycle; }

// Beats read, beats written, cycle of the last beat that changed the memory.
API void sim_counts(const Simulation* sim, uint64_t* counts) {
    counts[0] = sim->memory.beats_read;
    counts[1] = sim->memory.beats_written;
    counts[2] = sim->memory.last_write;
}

// The first rule of AXI that was broken, or an empty text; and forget it.
API uint64_t sim_complaint(Simulation* sim, char* text) {
    std::memcpy(text, sim->memory.complaint.text, sizeof sim->memory.complaint.text);
    uint64_t cycle = sim->memory.complaint.cycle;
    sim->memory.complaint = {};
    return cycle;
}

API int sim_trace(Simulation* sim, const char* path) {
#if VM_TRACE
    sim->context.traceEverOn(true);
    sim->waves = new VerilatedVcdC;
    sim->top.trace(sim->waves, 99);
    sim->waves->open(path);
    return sim->waves->isOpen();
#else
    (void)sim, (void)path;
    return 0;
#endif
}
}
