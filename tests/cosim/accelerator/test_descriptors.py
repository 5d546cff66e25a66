"""Requests as descriptors in DRAM, on the Verilog: each to the cycle, corrupt ones refused by tag, none lost or mixed.

Covers: cosim/accelerator/descriptors.py, rtl/accelerator/reader.py.
"""

import struct
from random import Random

import numpy as np
import pytest

from cosim.accelerator.descriptors import Ring
from cosim.accelerator.dispatched import answered, ask, attach
from cosim.accelerator.host import halves, read, room, write
from golden.perf.accelerator.colocate.descriptors import Reads
from golden.perf.accelerator.colocate.descriptors import Ring as Model
from golden.perf.dispatch.twin import Completion
from golden.spec.descriptors import Window, judge, pack
from golden.spec.dispatch import Policy
from hbfp.isa.descriptors import BYTES, Refusal
from tests.cases import sweep

from .built import opened, renewed
from .test_dispatched import MEMORY, OFF, OUTPUTS, SIZE, SYSTEM, begin, copied, copies, place, times_of, trains

pytestmark = pytest.mark.cosim
#: Where the ring lies, and the logarithm of its places.
ADDRESS, LOG = 0x20000, 4
WINDOW = Window(0, 2 * OUTPUTS - SIZE, SYSTEM.beat)


@pytest.fixture(scope="module")
def built():
    manifest, device = opened(SYSTEM)
    with device:
        yield manifest, device


@pytest.fixture
def device(built):
    return renewed(built[1], *MEMORY)


def ringed(device, serving, *given, spoil=lambda number, data: data, log=LOG):
    """As ``begin``, with a ring that is on; it, and the cycles in which the policy counts, and the bell was rung."""
    counts = begin(device, serving, *given)
    ring, rung = Ring(device, ADDRESS, log, WINDOW, spoil), device.cycle - 2
    ring.open()
    return ring, counts, rung


def spoil(pick, data):
    """Turn a bit round, or some."""
    value = int.from_bytes(data, "little")
    for _ in range(pick.choice((1, 1, 2, 9))):
        value ^= 1 << pick.randrange(8 * BYTES)
    return value.to_bytes(BYTES, "little")


def asked(device, ring, requests):
    """Lay descriptors, as many as find a place, and tell of them; how many."""
    count = 0
    while count < len(requests) and ring.lay(requests[count]):
        count += 1
    if count:
        ring.tell()
    return count


def modelled(machine, policies, told, taken, rung, last):
    """Completions and refusals of the model, whose ring is told of so many descriptors in a cycle."""
    found, given, ring = [], 0, machine.descriptors
    for cycle in range(last):
        ring.tail = max((number for when, number in told if when < cycle), default=0)
        while given < len(taken) and taken[given] < cycle:
            ring.owed -= 1
            given += 1
        if ring.given is not None and ring.given[1] is not None:
            found.append((ring.given[0].tag, cycle, ring.given[1]))
        refuses = bool(found) and found[-1][1] == cycle
        out = machine.step(policies(cycle))
        if cycle == rung:
            machine.ring()
        if out.completion and not refuses:
            found.append(out.completion)
    return found


@pytest.mark.parametrize("seed", sweep(4, (3, 0, 1, 2, *range(4, 12))))
def test_descriptors_at_random_times_beside_training(built, device, seed):
    """Completions and refusals to the cycle and in their order, as the model has them."""
    pick = Random(seed)
    batch, every = pick.randint(1, 4), []
    serving = copies(batch)
    training = trains([pick.randint(1, 9) for _ in range(12)]) if seed % 4 else None
    policy = Policy(batch=batch, timeout=pick.choice((0, 300, 1000)), priority=pick.random() < 0.7,
                    closes=pick.random() < 0.5)

    def spoiled(number, data):
        every.append(spoil(pick, data) if pick.random() < 0.25 else data)
        return every[-1]
    start = device.cycle
    ring, counts, rung = ringed(device, serving, training, policy, spoil=spoiled)
    told, found, number = [], [], 0
    while number < 40:
        device.idle(pick.choice((0, 0, 10, 200, 900)))
        count = asked(device, ring, [place(n) for n in range(number, min(number + pick.randint(1, 5), 40))])
        if count:
            told.append((device.cycle - 2 - start, ring.tail))
        number += count
        found += answered(device) if pick.random() < 0.7 else []
    while len(found) < 40:
        device.idle(50)
        found += answered(device)
    kinds = []
    for number, data in enumerate(every):
        words = struct.unpack("<3I", data[:12])
        kinds.append((place(0)._replace(input=words[0], output=words[1], tag=words[2]), judge(data, number, WINDOW)))
    seen = [(each.completion.tag, each.completion.finished, each.refusal) if each.refusal else each.completion
            for each in found]
    assert [each.tag for each in seen if isinstance(each, Completion)] == [
        given.tag for given, why in kinds if why is None]
    # Two bits that are turned may leave the check as it was: such a request goes where it says.
    assert all(copied(device, serving, n) for n, kind in enumerate(kinds) if kind == (place(n), None))
    assert {(tag, why) for tag, _, why in (each for each in seen if not isinstance(each, Completion))} == {
        (given.tag, why) for given, why in kinds if why is not None}
    machine = times_of(built, serving, training)
    machine.descriptors = Model(Reads.of(SYSTEM, *MEMORY), SYSTEM.dispatch, kinds)
    taken = [each.taken - 2 - start for each in found]
    wanted = modelled(machine, lambda cycle: policy if cycle >= counts - start else OFF, told, taken,
                      rung - start if training else -1, device.cycle - start)
    assert seen == wanted


WRONG = {
    Refusal.CHECK: lambda number, request: pack((request.input, request.output, request.tag), number + 1),
    Refusal.RESERVED: lambda number, request: bytes([*pack(tuple(request), number)[:15], 0x80]),
    Refusal.MISALIGNED: lambda number, request: pack((request.input, request.output + 4, request.tag), number),
    Refusal.OUTSIDE: lambda number, request: pack((request.input, WINDOW.last + 32, request.tag), number),
    Refusal.BUS: lambda number, request: pack(tuple(request), number),
}


@pytest.mark.parametrize("first", [0, 0xAAAA_AAAA_AAAA_A000, 0x5555_5555_5555_5000])
def test_a_corrupt_descriptor_is_refused_by_its_tag(device, first):
    """With its reason; those before and behind it are served, wherever the memory lies that has all of it."""
    serving = copies(1)
    device.place(first)
    ring, *_ = ringed(device, serving)
    for number, (why, wrong) in enumerate(WRONG.items()):
        requests = [place(3 * number + n) for n in range(3)]
        ring.spoil = lambda at, data, number=number, wrong=wrong: wrong(at, place(at)) if at == 3 * number + 1 else data
        if why is Refusal.BUS:
            device.poison(ring.place(3 * number + 1), ring.place(3 * number + 1) + 32)
        assert asked(device, ring, requests) == 3
        device.idle(2000)
        found = answered(device)
        assert {each.completion.tag: each.refusal for each in found} == {
            3 * number + 1 if why is Refusal.BUS and n == 1 else request.tag: why if n == 1 else None
            for n, request in enumerate(requests)}
        for each in found:
            times = each.completion[1:]
            assert not each.failed and (len(set(times)) == 1) == (each.refusal is not None)
        assert [copied(device, serving, 3 * number + n) for n in range(3)] == [True, False, True]
        assert read(device, "ring_head") == 3 * number + 3 and read(device, "status") & 4 == 0


def test_a_ring_of_many_places(device):
    """As many as the DRAM has room for: none is read at the place of a smaller ring."""
    serving = copies(4)
    ring, *_ = ringed(device, serving, None, Policy(batch=4, timeout=50), log=12)
    assert asked(device, ring, [place(number) for number in range(40)]) == 40
    device.idle(1000)
    found = answered(device)
    while len(found) < 40:
        device.idle(500)
        found += answered(device)
    assert [each.completion.tag for each in found] == [place(number).tag for number in range(40)]
    assert read(device, "ring_head") == 40 and all(copied(device, serving, number) for number in range(40))


@pytest.mark.parametrize("log", [13, 14, 15])
def test_a_ring_that_is_larger_than_the_dram(device, log):
    """It lies where it is whole, and only its first places, which the DRAM has, are asked for."""
    serving = copies(1)
    device.place((1 << 40) + (1 << log) * SYSTEM.beat - ADDRESS)
    ring, *_ = ringed(device, serving, log=log)
    for number in range(4):
        assert asked(device, ring, [place(number)]) == 1
        device.idle(500)
        assert [each.completion.tag for each in answered(device)] == [place(number).tag]
        assert copied(device, serving, number)


@pytest.mark.parametrize("far", [0x5555_5000, 0xAAAA_A000, 0x7FFF_F000, 0xFFF0_0000])
@pytest.mark.parametrize("laid", [False, True], ids=["asked", "laid"])
def test_places_and_tags_may_have_any_bits(device, far, laid):
    """Of requests in all places of a batch, which begin far behind the base, with data up to the limit."""
    serving = copies(4)
    ring, *_ = ringed(device, serving, None, Policy(batch=4, timeout=50))
    ring.window = Window(0, 0xFFFF_FFE0, SYSTEM.beat)
    for name, value in {**halves(base=(room(serving)[1] - far) % (1 << 64)), "limit": far + serving.limit}.items():
        write(device, name, value)
    requests = [place(n)._replace(input=far + n * SIZE, output=far + OUTPUTS + n * SIZE, tag=far ^ 77 * n)
                for n in range(4)]
    if laid:
        ring.open()
        assert asked(device, ring, requests) == 4
    else:
        write(device, "ring_size", 0)
        assert all(ask(device, each) for each in requests)
    device.idle(2000)
    assert [(each.completion.tag, each.failed, each.refusal) for each in answered(device)] == [
        (each.tag, False, None) for each in requests]
    assert all(copied(device, serving, n) for n in range(4))


def test_a_host_that_takes_nothing(device):
    """As many are read as completions have a place; then the ring waits, and nothing is lost."""
    serving = copies(4)
    ring, *_ = ringed(device, serving, None, Policy(batch=4))
    ring.spoil = lambda number, data: data if number % 3 else bytes(16)
    assert asked(device, ring, [place(number) for number in range(40)]) == 16
    device.idle(4000)
    assert read(device, "ring_head") == 16 and not ask(device, place(0)) and read(device, "refused") == 1
    assert asked(device, ring, [place(number) for number in range(16, 40)]) == 16
    device.idle(4000)
    assert read(device, "ring_head") == 16 and read(device, "dispatch_status") & 0b11101 == 1
    found = answered(device)
    assert len(found) >= 16 and asked(device, ring, [place(number) for number in range(32, 40)]) == 8
    for _ in range(20):
        device.idle(500)
        found += answered(device)
    assert [each.completion.tag for each in found if not each.refusal] == [
        place(number).tag for number in range(40) if number % 3]
    assert sum(each.refusal is Refusal.CHECK for each in found) == 14
    write(device, "ring_size", 0)
    assert ask(device, place(41)) and read(device, "refused") == 1


def clients(device, requests, seed):
    """Two clients lay descriptors as fast as there are places, each with its own places, tags and new data."""
    pick, serving, numbers = Random(seed), copies(4), np.random.default_rng(seed)
    bad = set()

    def spoiled(number, data):
        if pick.random() < 0.05:
            bad.add(struct.unpack("<3I", data[:12])[2])
            return (int.from_bytes(data, "little") ^ 1 << pick.randrange(64)).to_bytes(BYTES, "little")
        return data
    ring, *_ = ringed(device, serving, trains([1, 2, 3]), Policy(batch=4, timeout=pick.choice((0, 200))), spoil=spoiled)
    data = device.memory[room(serving)[1]:]
    laid, got, given, refused = ([], []), ([], []), {}, set()
    while sum(map(len, got)) + len(refused) < requests:
        client = int(pick.random() < 0.5)
        number = len(laid[client]) % 32 + 32 * client
        tag = client << 31 | len(laid[client]) << 8 | number
        if sum(map(len, laid)) < requests and not any(each & 0xFF == number for each in given):
            wanted = numbers.integers(0, 256, SIZE, np.uint8)
            data[number * SIZE:][:SIZE] = wanted
            if ring.lay(place(number)._replace(tag=tag)):
                laid[client].append(tag)
                given[tag] = wanted
        if pick.random() < 0.5:
            ring.tell()
        for each in answered(device) if pick.random() < 0.4 else ():
            tag = each.completion.tag
            wanted = given.pop(tag)
            if each.refusal:
                refused.add(tag)
                continue
            assert not each.failed and np.array_equal(data[OUTPUTS + (tag & 0xFF) * SIZE:][:SIZE], wanted)
            got[tag >> 31].append(tag)
    assert refused == bad and [[tag for tag in each if tag not in bad] for each in laid] == list(got) and not given


def test_tags_of_two_clients_are_never_mixed(device):
    clients(device, 200, 1)


@pytest.mark.slow
def test_ten_thousand_tags_of_two_clients(device):
    clients(device, 10_000, 2)


def test_reset_in_mid_ring(device):
    """What was read before is forgotten; the next ring begins at number 0."""
    serving = copies(4)
    for cycles in range(3, 300, 37):
        ring, *_ = ringed(device, serving, None, Policy(batch=4, timeout=50))
        assert asked(device, ring, [place(number) for number in range(10)]) == 10
        device.idle(cycles)
        device.reset()
        names = "ring_head", "ring_tail", "ring_size", "ring_last", "completion", "dispatch_status"
        assert [read(device, name) for name in names] == [0, 0, 0, 0xFFFFFFFF, 0, 0]
    ring, *_ = ringed(device, serving, None, Policy(batch=4, timeout=50))
    assert asked(device, ring, [place(number) for number in range(10)]) == 10
    device.idle(3000)
    assert len(answered(device)) == 10 and all(copied(device, serving, number) for number in range(10))


def test_a_ring_of_nobody_is_not_read(device):
    """While nothing is attached; then it is."""
    ring, *_ = ringed(device, copies(1))
    write(device, "policy", 1 << 8)
    assert asked(device, ring, [place(0)]) == 1
    device.idle(500)
    assert read(device, "ring_head") == 0
    attach(device, Policy(batch=1))
    device.idle(500)
    assert read(device, "ring_head") == 1 and len(answered(device)) == 1
