// A memory at AXI4 that does whatever the standard lets a slave do, and holds its master to it.
//
// Written from the standard (ARM IHI 0022, chapters A2 to A5) alone. It stands in the place of cosim/accelerator/dram.h,
// with the names by which driver.cpp calls that, and shares nothing else with it: addresses may wait for data and data
// for addresses, data may come before their address, a read may have what was there when its address was taken or when
// its beat is given, a write may be there at its last beat or only with its answer, and any answer may be an error.

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include "ports.h"  // BEAT, bytes of a beat

namespace dram {

enum Channels { AR, R, AW, W, B, HOST };
enum Order { ANY, DATA_FIRST, ADDRESS_FIRST };
constexpr uint64_t PAGE = 4096, AHEAD = 64;  // beats that are taken before their address
constexpr uint8_t OKAY = 0, SLVERR = 2, DECERR = 3;

// As tests/cosim/accelerator/slave.py has it.
struct Settings {
    uint32_t pauses[6];         // chances in 256 that a channel stands still in a cycle
    uint32_t lag;               // cycles by which an answer may be later
    uint32_t depth;             // bursts of reads, and of writes, that are under way at most
    uint32_t order;             // what waits for what
    uint32_t sampled, delayed;  // reads have what was there at first; writes are there at last
    uint32_t errors[2];         // chances in 65536 of a beat that is read, and of a burst that is written
    uint32_t reads;             // bursts of each kind that the master may have under way
    uint64_t seed;
    uint64_t windows[2][2];     // begin and end of what may be read, the second of what may be written, too
};

// The first rule that was broken, and the cycle.
struct Complaint {
    char text[160] = "";
    uint64_t cycle = 0;
    void tell(uint64_t now, const char* format, ...) {
        if (text[0]) return;
        va_list given;
        va_start(given, format);
        std::vsnprintf(text, sizeof text, format, given);
        va_end(given);
        cycle = now;
    }
};

// A2.2.1: what is offered stays as it is until it is taken.
template <class Payload>
struct Channel {
    const char* name;
    bool waits = false;
    Payload kept = {};
    bool moves(Complaint& complaint, uint64_t now, bool valid, bool ready, const Payload& payload) {
        if (waits && !(valid && payload == kept))
            complaint.tell(now, "what %s offers must stay until it is taken", name);
        kept = payload;
        return (waits = valid && !ready, valid && ready);
    }
};

struct Address {
    uint64_t address;
    uint32_t beats, size, burst, rest;  // the rest: id, lock, cache, prot and qos, all bits of them
    bool operator==(const Address& other) const {
        return address == other.address && beats == other.beats && size == other.size && burst == other.burst &&
               rest == other.rest;
    }
};

struct Beat {
    uint8_t data[BEAT], strobes[BEAT / 8];
    bool last;
    bool operator==(const Beat& other) const {
        return !std::memcmp(data, other.data, BEAT) && !std::memcmp(strobes, other.strobes, BEAT / 8) &&
               last == other.last;
    }
};

struct Memory {
    uint8_t* bytes = nullptr;
    uint64_t first = 0, size = 0, latency = 0, bandwidth = 0, beats_read = 0, beats_written = 0, last_write = 0;
    uint32_t burst = 256, noise = 0, pauses = 0;
    struct Range { uint64_t begin, end; };
    std::vector<Range> poisoned, silent;  // which the driver may fill; this memory has errors of its own
    Complaint complaint;
    Settings how{};
    uint64_t failed = 0;  // errors that the master has taken

    void set(const Settings& settings) { how = settings, random = settings.seed, failed = 0; }

    // Chapter A3.1.2: a reset ends everything.
    void reset() {
        reads.clear(), writes.clear(), answers.clear(), data.clear();
        rvalid = bvalid = arready = awready = wready = false;
        begun = ended = addressed = 0;
        ar.waits = aw.waits = w.waits = offered = false;
    }

    uint64_t under_way() const { return reads.size() + writes.size() + answers.size() + data.size() + rvalid + bvalid; }

    void begin(uint64_t now) {
        arready = reads.size() < how.depth && !still(AR);
        uint64_t there = begun + (offered && begun == ended);  // bursts whose data have come, or are offered
        awready = writes.size() + answers.size() < how.depth && (how.order != DATA_FIRST || there > addressed) &&
                  !still(AW);
        wready = data.size() < AHEAD && (how.order != ADDRESS_FIRST || ended < addressed) && !still(W);
        if (!rvalid && !reads.empty() && reads.front().due <= now && !still(R)) give();
        if (!bvalid && !answers.empty() && answers.front().due <= now && !still(B)) {
            bvalid = true, bresp = answers.front().code;
            if (how.delayed) keep(now, answers.front());
        }
    }

    template <class Top>
    void show(Top& top) const {
        top.m_axi_arready = arready, top.m_axi_awready = awready, top.m_axi_wready = wready;
        top.m_axi_rvalid = rvalid, top.m_axi_rresp = rresp, top.m_axi_rlast = rlast, top.m_axi_rid = 0;
        top.m_axi_bvalid = bvalid, top.m_axi_bresp = bresp, top.m_axi_bid = 0;
        std::memcpy(&top.m_axi_rdata, rdata, BEAT);
    }

    template <class Top>
    void take(uint64_t now, Top& top) {
        Address asked{top.m_axi_araddr, top.m_axi_arlen + 1u, top.m_axi_arsize, top.m_axi_arburst,
                      rest(top.m_axi_arid, top.m_axi_arlock, top.m_axi_arcache, top.m_axi_arprot, top.m_axi_arqos)};
        Address written{top.m_axi_awaddr, top.m_axi_awlen + 1u, top.m_axi_awsize, top.m_axi_awburst,
                        rest(top.m_axi_awid, top.m_axi_awlock, top.m_axi_awcache, top.m_axi_awprot, top.m_axi_awqos)};
        Beat beat;
        std::memcpy(beat.data, &top.m_axi_wdata, BEAT);
        std::memcpy(beat.strobes, &top.m_axi_wstrb, BEAT / 8);
        beat.last = top.m_axi_wlast;
        if (rvalid && top.m_axi_rready) rvalid = false, ++beats_read, failed += rresp != OKAY;
        if (bvalid && top.m_axi_bready) {
            bvalid = false, failed += bresp != OKAY;
            answers.pop_front();
        }
        if (ar.moves(complaint, now, top.m_axi_arvalid, arready, asked)) {
            check(now, "ar", asked, 2, reads.size());
            reads.push_back({asked.address - first, asked.beats, 0, now + 1 + drawn() % (how.lag + 1), {}});
            if (how.sampled && inside(reads.back().address, asked.beats))
                reads.back().there.assign(bytes + reads.back().address, bytes + reads.back().address + asked.beats * BEAT);
        }
        if (aw.moves(complaint, now, top.m_axi_awvalid, awready, written)) {
            check(now, "aw", written, 1, writes.size() + answers.size());
            writes.push_back(written), ++addressed;
        }
        offered = top.m_axi_wvalid && !wready;
        if (w.moves(complaint, now, top.m_axi_wvalid, wready, beat)) {
            begun += begun == ended, ended += beat.last, ++beats_written;
            data.push_back(beat);
        }
        while (!writes.empty() && !data.empty()) {  // A5.3.3: data in the order of their addresses
            uint32_t beats = 1, most = writes.front().beats;
            while (beats < most && beats < data.size() && !data[beats - 1].last) ++beats;
            bool last = data[beats - 1].last;
            if (!last && beats < most) break;
            if (last != (beats == most))
                complaint.tell(now, "wlast must be in the last beat of a burst of %u, and in no other", most);
            uint8_t code = !inside(writes.front().address - first, most) ? DECERR : fails(true);
            answers.push_back({writes.front().address - first, {data.begin(), data.begin() + beats}, code,
                               now + 1 + drawn() % (how.lag + 1)});
            data.erase(data.begin(), data.begin() + beats), writes.pop_front();
            if (!how.delayed) keep(now, answers.back());
        }
    }

    // Whether the host stands still in this cycle.
    bool pause() { return still(HOST); }

    bool idle() const { return !under_way(); }

private:
    struct Read {
        uint64_t address;
        uint32_t beats, done;
        uint64_t due;
        std::vector<uint8_t> there;
    };
    struct Write {
        uint64_t address;
        std::vector<Beat> beats;
        uint8_t code;
        uint64_t due;
    };
    std::deque<Read> reads;
    std::deque<Address> writes;
    std::deque<Beat> data;
    std::deque<Write> answers;
    Channel<Address> ar{"ar"}, aw{"aw"};
    Channel<Beat> w{"w"};
    bool arready = false, awready = false, wready = false, rvalid = false, rlast = false, bvalid = false;
    bool offered = false;    // a beat of data waits
    uint8_t rresp = 0, bresp = 0, rdata[BEAT] = {};
    uint64_t begun = 0, ended = 0, addressed = 0, random = 1;    // bursts of writes

    // splitmix64.
    uint64_t drawn() {
        uint64_t value = random += 0x9E3779B97F4A7C15;
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
        value = (value ^ value >> 27) * 0x94D049BB133111EB;
        return value ^ value >> 31;
    }
    bool still(Channels channel) { return drawn() % 256 < how.pauses[channel]; }
    uint8_t fails(bool write) { return drawn() % 65536 < how.errors[write] ? drawn() & 1 ? SLVERR : DECERR : OKAY; }

    bool inside(uint64_t address, uint64_t beats) const { return address < size && beats * BEAT <= size - address; }

    static uint32_t rest(uint32_t id, uint32_t lock, uint32_t cache, uint32_t prot, uint32_t qos) {
        return id << 12 | lock << 11 | cache << 7 | prot << 4 | qos;
    }

    void give() {
        Read& front = reads.front();
        uint64_t place = uint64_t(front.done++) * BEAT;
        rvalid = true, rlast = front.done == front.beats;
        rresp = inside(front.address, front.beats) ? fails(false) : DECERR;
        if (rresp == OKAY)
            std::memcpy(rdata, front.there.empty() ? bytes + front.address + place : front.there.data() + place, BEAT);
        else
            for (uint8_t& each : rdata) each = drawn();
        if (rlast) reads.pop_front();
    }

    // What a burst writes; one with an error may write, or not.
    void keep(uint64_t now, const Write& write) {
        if (write.code == DECERR || (write.code == SLVERR && drawn() & 1)) return;
        for (size_t n = 0; n < write.beats.size(); ++n)
            for (int i = 0; i < BEAT; ++i)
                if (write.beats[n].strobes[i / 8] >> i % 8 & 1) {
                    uint64_t at = write.address + n * BEAT + i;
                    if (at < how.windows[1][0] || at >= how.windows[1][1])
                        complaint.tell(now, "byte 0x%lx is written, which is not the program's", at);
                    bytes[at] = write.beats[n].data[i], last_write = now;
                }
    }

    void check(uint64_t now, const char* name, const Address& asked, int windows, size_t others) {
        uint64_t begin = asked.address - first, end = begin + uint64_t(asked.beats) * BEAT;
        if (1u << asked.size != BEAT || asked.burst != 1)
            complaint.tell(now, "%s: bursts must count up by %d bytes", name, BEAT);
        if (asked.address % BEAT) complaint.tell(now, "%saddr 0x%lx is no beat's", name, asked.address);
        if (asked.address / PAGE != (asked.address + uint64_t(asked.beats) * BEAT - 1) / PAGE)
            complaint.tell(now, "%s: %u beats from 0x%lx on are in two pages", name, asked.beats, asked.address);
        if (asked.beats > burst) complaint.tell(now, "%s: a burst of %u beats", name, asked.beats);
        if (asked.rest != rest(0, 0, 3, 0, 0)) complaint.tell(now, "%s: id, lock, cache, prot or qos: 0x%x", name, asked.rest);
        if (others >= how.reads) complaint.tell(now, "%s: more than %u bursts are under way", name, how.reads);
        for (int n = 2 - windows; n < 2; ++n)
            if (begin >= how.windows[n][0] && end <= how.windows[n][1]) return;
        complaint.tell(now, "%s: %u beats from 0x%lx on are not the program's", name, asked.beats, asked.address);
    }
};

}  // namespace dram
