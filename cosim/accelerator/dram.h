// A DRAM behind AXI4: latency, a bandwidth that reads and writes share, errors on request; checks its master, always.
//
// Times, in cycles of the bus; nothing is random:
//   - A burst of reads whose address is taken in cycle t gives its first beat in cycle t + latency or later, a beat a
//     cycle at most; bursts are answered in order. READS addresses wait at most, then arready is low.
//   - Beats of writes go into a buffer of WRITE_BEATS, and from there, with their address, into the memory, a beat a
//     cycle at most. The response of a burst comes `latency` cycles after its last beat got there.
//   - Each beat to or from the memory takes BEAT bytes of a credit to which each cycle adds `bandwidth`; what is not
//     used is kept up to a beat less one byte beyond a cycle's share. If a read and a write want the same credit,
//     they take turns; the read is first after a cycle without a write.

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include "ports.h"  // BEAT, bytes of a beat

namespace dram {

constexpr size_t READS = 16, WRITES = 16, WRITE_BEATS = 32;
enum Response : uint8_t { OKAY = 0, SLVERR = 2, DECERR = 3 };

struct Range {
    uint64_t begin, end;
    bool holds(uint64_t address, uint64_t length) const { return begin < address + length && address < end; }
};

// An address as its channel offers it.
struct Address {
    uint64_t address;
    uint32_t beats, size, burst;
    bool operator==(const Address& other) const {
        return address == other.address && beats == other.beats && size == other.size && burst == other.burst;
    }
};

// The first rule of AXI that was broken, and the cycle.
struct Complaint {
    char text[160] = "";
    uint64_t cycle = 0;
    void tell(uint64_t now, const char* format, ...) {
        if (*text) return;
        cycle = now;
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
    }
};

// A channel on which the accelerator offers: a payload that waits must stay and stay the same, all bits of it.
template <class Payload>
struct Channel {
    const char* name;
    bool waits = false;
    Payload kept = {};

    // Whether the payload is taken in this cycle.
    bool moves(Complaint& complaint, uint64_t now, bool valid, bool ready, const Payload& payload) {
        if (waits && !valid) complaint.tell(now, "%svalid fell before %sready was high", name, name);
        if (waits && valid && !(payload == kept))
            complaint.tell(now, "the payload of %s changed before %sready was high", name, name);
        waits = valid && !ready;
        if (valid) kept = payload;
        return valid && ready;
    }
};

struct Memory {
    // Settings.
    uint8_t* bytes = nullptr;
    uint64_t first = 0;  // the address of bytes[0]; all that is kept of an address counts from there
    uint64_t size = 0, latency = 1, bandwidth = BEAT;
    uint32_t burst = 256;
    uint32_t noise = 1, pauses = 0;  // a chance in 2^32
    std::vector<Range> poisoned, silent;
    // Counts.
    uint64_t beats_read = 0, beats_written = 0, last_write = 0;
    Complaint complaint;

    // What the channels show in this cycle.
    bool arready = false, awready = false, wready = false, rvalid = false, rlast = false, bvalid = false;
    uint8_t rresp = 0, bresp = 0, rdata[BEAT] = {};

    void reset() {
        reads.clear(), writes.clear(), buffer.clear(), responses.clear();
        arready = awready = wready = rvalid = bvalid = false;
        credit = 0, turn = false, worst = OKAY;
        ar_channel.waits = aw_channel.waits = w_channel.waits = false;
    }

    // The begin of a cycle: moves at most one beat each way and sets what the channels show.
    void begin(uint64_t now) {
        uint64_t most = bandwidth + BEAT - 1;
        credit = credit + bandwidth < most ? credit + bandwidth : most;
        bool read = !rvalid && !reads.empty() && reads.front().ready <= now && !reads.front().silent;
        bool write = !writes.empty() && !buffer.empty();
        if (!write) turn = false;
        if (read && write && credit < 2 * BEAT) {
            (turn ? read : write) = false;
            if (credit >= BEAT) turn = !turn;
        }
        if (read && credit >= BEAT && !pause()) credit -= BEAT, give();
        if (write && credit >= BEAT) credit -= BEAT, keep(now);
        if (!bvalid && !responses.empty() && responses.front().ready <= now && !pause()) {
            bvalid = true;
            bresp = responses.front().code;
            responses.pop_front();
        }
        arready = reads.size() < READS && !pause();
        awready = writes.size() < WRITES && !pause();
        wready = buffer.size() < WRITE_BEATS && !pause();
    }

    // The memory's side of this cycle, at the ports of a model.
    template <class Top>
    void show(Top& top) const {
        top.m_axi_arready = arready;
        top.m_axi_awready = awready;
        top.m_axi_wready = wready;
        top.m_axi_rvalid = rvalid;
        top.m_axi_rresp = rresp;
        top.m_axi_rlast = rlast;
        top.m_axi_bvalid = bvalid;
        top.m_axi_bresp = bresp;
        std::memcpy(&top.m_axi_rdata, rdata, BEAT);
    }

    // What of the model's side is transferred in this cycle.
    template <class Top>
    void take(uint64_t now, Top& top) {
        end(now, top.m_axi_arvalid,
            {top.m_axi_araddr, uint32_t(top.m_axi_arlen) + 1, top.m_axi_arsize, top.m_axi_arburst}, top.m_axi_awvalid,
            {top.m_axi_awaddr, uint32_t(top.m_axi_awlen) + 1, top.m_axi_awsize, top.m_axi_awburst}, top.m_axi_wvalid,
            reinterpret_cast<uint8_t*>(&top.m_axi_wdata), reinterpret_cast<uint8_t*>(&top.m_axi_wstrb),
            top.m_axi_wlast, top.m_axi_rready, top.m_axi_bready);
    }

    // The end of a cycle: what the master offered and took.
    void end(uint64_t now, bool arvalid, Address ar, bool awvalid, Address aw, bool wvalid, const uint8_t* data,
             const uint8_t* strobes, bool last, bool rready, bool bready) {
        if (ar_channel.moves(complaint, now, arvalid, arready, ar)) {
            check("ar", now, ar);
            ar.address -= first;
            bool mute = false;
            for (const Range& range : silent) mute |= range.holds(ar.address, uint64_t(ar.beats) * BEAT);
            reads.push_back({ar, now + latency, mute, 0});
        }
        if (aw_channel.moves(complaint, now, awvalid, awready, aw)) {
            check("aw", now, aw);
            aw.address -= first;
            writes.push_back({aw, 0, false, 0});
        }
        Beat beat;
        std::memcpy(beat.data, data, BEAT);
        std::memcpy(beat.strobes, strobes, BEAT / 8);
        beat.last = last;
        if (w_channel.moves(complaint, now, wvalid, wready, beat)) buffer.push_back(beat);
        if (rvalid && rready) rvalid = false;
        if (bvalid && bready) bvalid = false;
    }

    // Whether a channel stands still in this cycle.
    bool pause() {
        if (!pauses) return false;
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        return noise < pauses;
    }

    bool idle() const { return reads.empty() && writes.empty() && buffer.empty() && responses.empty() && !rvalid; }

private:
    struct Burst {
        Address at;
        uint64_t ready;
        bool silent;
        uint32_t done;
    };
    struct Beat {
        uint8_t data[BEAT], strobes[BEAT / 8];
        bool last;
        bool operator==(const Beat& other) const {
            return !std::memcmp(data, other.data, BEAT) && !std::memcmp(strobes, other.strobes, BEAT / 8) &&
                   last == other.last;
        }
    };
    struct Answer {
        uint64_t ready;
        Response code;
    };

    std::deque<Burst> reads, writes;
    std::deque<Beat> buffer;
    std::deque<Answer> responses;
    uint64_t credit = 0;
    bool turn = false;
    Response worst = OKAY;
    Channel<Address> ar_channel{"ar"}, aw_channel{"aw"};
    Channel<Beat> w_channel{"w"};

    Response answer(uint64_t address) const {
        if (address > size - BEAT) return DECERR;
        for (const Range& range : poisoned)
            if (range.holds(address, BEAT)) return SLVERR;
        return OKAY;
    }

    void give() {
        Burst& front = reads.front();
        uint64_t address = front.at.address + uint64_t(front.done++) * BEAT;
        rresp = answer(address);
        rvalid = true;
        rlast = front.done == front.at.beats;
        std::memset(rdata, 0, BEAT);
        if (rresp == OKAY) std::memcpy(rdata, bytes + address, BEAT);
        if (rlast) reads.pop_front();
        ++beats_read;
    }

    void keep(uint64_t now) {
        Burst& front = writes.front();
        const Beat& beat = buffer.front();
        uint64_t address = front.at.address + uint64_t(front.done++) * BEAT;
        Response code = answer(address);
        if (code > worst) worst = code;
        bool any = false;
        for (int i = 0; i < BEAT; ++i)
            if (beat.strobes[i / 8] >> i % 8 & 1) {
                any = true;
                if (code == OKAY) bytes[address + i] = beat.data[i];
            }
        if (any) last_write = now;
        bool last = front.done == front.at.beats;
        if (last != beat.last)
            complaint.tell(now, "wlast must be %d in beat %u of a burst of %u, not %d", last, front.done,
                           front.at.beats, beat.last);
        if (last) {
            responses.push_back({now + latency, worst});
            worst = OKAY;
            writes.pop_front();
        }
        buffer.pop_front();
        ++beats_written;
    }

    void check(const char* name, uint64_t now, const Address& at) {
        if (1u << at.size != BEAT) complaint.tell(now, "%ssize must be that of %d bytes, not %u", name, BEAT, at.size);
        if (at.burst != 1) complaint.tell(now, "%sburst must be 1 (INCR), not %u", name, at.burst);
        if (at.address % BEAT) complaint.tell(now, "%saddr must be a multiple of %d, not 0x%lx", name, BEAT, at.address);
        if (at.beats > burst) complaint.tell(now, "%slen must be below %u, not %u", name, burst, at.beats - 1);
        if (at.address / 4096 != (at.address + uint64_t(at.beats) * BEAT - 1) / 4096)
            complaint.tell(now, "%s burst of %u beats at 0x%lx crosses 4 KiB", name, at.beats, at.address);
    }
};

}  // namespace dram
