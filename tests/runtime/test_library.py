"""The C files: freestanding, with the numbers and types that Python has; and no file makes them read or write amiss.

Covers: hbfp/index.py.
"""

import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hbfp import index
from hbfp.isa.rdl import header
from hbfp.isa.registers import Cause, parameters
from hbfp.program import LAYOUTS, ROLES
from runtime import library

from .machines import MACHINE, PROGRAM

RUNTIME = Path(library.__file__).parent
CODES = library.errors()


def words_h():
    """Name -> number of what words.h defines."""
    return {name: int(value, 0) for name, value in re.findall(
        r"^#define HBFP_(\w+) (\w+?)u\b", (RUNTIME / "words.h").read_text(), re.MULTILINE)}


def test_the_index_is_as_c_reads_it():
    found = words_h()
    assert (found["INDEX_MAGIC"], found["INDEX_VERSION"], found["PARAMETERS"]) == (
        index.MAGIC, index.VERSION, len(parameters(MACHINE)))
    names = re.search(r"enum \{([^}]*INDEX_FIXED[^}]*)\}", (RUNTIME / "words.h").read_text())[1]
    assert re.findall(r"HBFP_INDEX_(\w+)", names) == [*(name.upper() for name in index.FIXED[2:]), "FIXED"]
    text = (RUNTIME / "hbfp.h").read_text()
    roles = re.search(r"enum hbfp_role \{([^}]*)\}", text)[1]
    assert [name.lower() for name in re.findall(r"HBFP_(\w+)", roles)] == list(ROLES)
    layouts = re.search(r"enum \{([^}]*RECORDS[^}]*)\}", (RUNTIME / "words.h").read_text())[1]
    assert [name.lower() for name in re.findall(r"HBFP_(\w+)", layouts)] == list(LAYOUTS)


def test_registers_are_compared_in_the_order_of_the_index():
    known = re.search(r"known\[HBFP_PARAMETERS\] = \{([^}]*)\}", (RUNTIME / "program.c").read_text())[1]
    assert [name.lower() for name in re.findall(r"HBFP_REG_(\w+)", known)] == list(parameters(MACHINE))


def test_structures_are_as_c_has_them(tmp_path):
    machine = replace(MACHINE, contexts=2, x_words=256, w_words=256, v_words=512, dispatch=4, dispatch_batch=2,
                      dispatch_ring=True)
    types = {"io": library.Io, "device": library.device_type(2), "file": library.File, "program": library.Program,
             "result": library.Result, "training": library.Training, "policy": library.Policy,
             "completion": library.Completion, "ring": library.Ring}
    rows = [(f"sizeof(struct hbfp_{name})", ctypes.sizeof(kind)) for name, kind in types.items()]
    rows += [(f"offsetof(struct hbfp_{name}, {field})", getattr(kind, field).offset)
             for name, kind in types.items() for field, _ in kind._fields_]
    file = tmp_path / "sizes.c"
    file.write_text('#include "hbfp.h"\nextern const size_t sizes[];\n'
                    f"const size_t sizes[] = {{{', '.join(text for text, _ in rows)}}};\n")
    sizes = (ctypes.c_size_t * len(rows)).in_dll(ctypes.CDLL(str(library.build(machine, file))), "sizes")
    assert [(text, size) for (text, _), size in zip(rows, sizes, strict=True)] == rows


def test_errors_and_causes_have_texts():
    found = library.load(library.build(MACHINE))
    texts = [found.hbfp_error_text(code) for code in range(-1, len(CODES) + 1)]
    assert len(set(texts)) == len(CODES) + 1 and texts[0] == texts[-1] == b"no error of this library"
    causes = [found.hbfp_cause_text(cause) for cause in [0, *Cause, 99]]
    assert len(set(causes)) == len(Cause) + 2 and causes[0] == b"none"


def test_an_interrupt_before_there_is_a_device():
    """Firmware's handler may be called while its device is zeros."""
    found, device = library.load(library.build(MACHINE)), library.device_type(1)()
    assert found.hbfp_interrupt(ctypes.byref(device)) == found.hbfp_interrupt(None) == 0 == device.taken


@pytest.mark.parametrize("kind", [(1, False, False, False), (2, True, True, True)])
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os", "-O3"])
def test_nothing_is_needed(tmp_path, kind, level):
    """The Makefile's library with any registers: no warning, and no name that it has not itself, memcpy neither."""
    (tmp_path / "hbfp_accelerator.h").write_text(header(*kind))
    done = subprocess.run(["make", "-s", "-C", RUNTIME, f"HEADER={tmp_path}", f"OUT={tmp_path}", f"CFLAGS={level}"],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    names = subprocess.run(["nm", tmp_path / "libhbfp.a"], capture_output=True, text=True, check=True).stdout
    has, needs = (set(re.findall(rf"^[0-9a-f ]{{16}} {kinds} (\w+)$", names, re.MULTILINE))
                  for kinds in ("[A-TV-Z]", "U"))
    assert needs <= has and "hbfp_run" in has and ("hbfp_request" in has) == kind[2]
    assert all(name.startswith("hbfp_") for name in has)


def test_a_compiler_that_is_none(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(library.CompilerError, match="^no-such-compiler is missing: apt-get install gcc, or CC=NAME$"):
        library.build(MACHINE)


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    fails = tmp_path / "cc"
    fails.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'a.c:1: error: no' >&2; exit 1\n")
    fails.chmod(0o755)
    monkeypatch.setenv("CC", str(fails))
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    line = f"{fails} cannot build the runtime: a.c:1: error: no"
    with pytest.raises(library.CompilerError, match=f"^{re.escape(line)}$"):
        library.build(MACHINE)


def test_cpp_may_include_it(tmp_path):
    (tmp_path / "hbfp_accelerator.h").write_text(header(2, True, True, True))
    (tmp_path / "a.cpp").write_text('#include "hbfp.h"\n'
                                    "int main() { return hbfp_open(nullptr, nullptr) - HBFP_E_ARGUMENT; }\n")
    built = library.build(MACHINE)
    done = subprocess.run(["g++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{tmp_path}", f"-I{RUNTIME}",
                           tmp_path / "a.cpp", built, f"-Wl,-rpath,{built.parent}", "-o", tmp_path / "a"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "a"]).returncode == 0


#: Loads files of which each differs in a byte, or ends early, and touches all that the library then believes.
FUZZ = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

static uint32_t state = 1;
static uint32_t values[HBFP_PARAMETERS] = {@VALUES@};
static uint32_t draw(void) { return state ^= state << 13, state ^= state >> 17, state ^= state << 5; }
static int get(void *self, uint32_t address, uint32_t *value)
{
    (void)self;
    *value = address < 0x38 ? values[address / 4] : address == 0x3C ? values[14] : address == 0x44 ? 2 : 0;
    return 0;
}
static int put(void *self, uint32_t address, uint32_t value) { return (void)self, (void)address, (void)value, 0; }
static uint32_t sum(const uint8_t *data, size_t bytes)
{
    uint32_t crc = ~0u;
    for (; bytes--; ++data) {
        crc ^= *data;
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

int main(int count, char **words)
{
    static uint8_t file[1 << 16];
    FILE *from = fopen(words[1], "rb");
    size_t size = fread(file, 1, sizeof file, from);
    unsigned loaded = 0, seen[HBFP_ERROR_COUNT] = {0};
    (void)count;
    for (int turn = 0; turn < 200000; ++turn) {
        uint8_t *copy = malloc(size), *memory = malloc(12288);
        size_t bytes = turn % 4 ? size : draw() % (size + 1);
        memcpy(copy, file, size);
        uint32_t check, length = hbfp_half(copy + 22);
        uint8_t *entry = copy + 30 + copy[26];
        if (turn % 4 == 1) copy[draw() % size] ^= 1u << draw() % 8;
        else if (turn % 4) {    /* the index with a right check sum: what is in it is looked at */
            for (uint32_t n = draw() % 3; n < 3; ++n) {
                const uint32_t odd[] = {0, 1, 8188, 8192, 0x40000000u, 0x80000000u, ~0u, draw(), 8192 - draw() % 300};
                uint32_t value = draw() % 2 ? draw() % 300 : odd[draw() % 9], at = 4 * (draw() % (length / 4));
                memcpy(entry + at, &value, 4);
            }
            check = sum(entry, length);
            memcpy(copy + 14, &check, 4);
        }
        uint8_t *shown = malloc(bytes ? bytes : 1);    /* what lies behind it is out of bounds */
        memcpy(shown, copy, bytes);
        struct hbfp_io io = {.read = get, .write = put, .memory = memory, .bytes = 12288};
        struct hbfp_device device;
        struct hbfp_program program;
        struct hbfp_tensor tensor;
        if (hbfp_open(&device, &io)) return 1;
        int error = hbfp_load(&program, &device, 0, shown, bytes, 0);
        ++seen[error];
        if (!error) {
            ++loaded;
            for (uint32_t n = 0; !hbfp_tensor_at(&program, n, &tensor); ++n) {
                size_t numbers = (size_t)tensor.rows * tensor.elements;
                const uint8_t *end = (const uint8_t *)tensor.name + strlen(tensor.name);
                if (end >= program.file.index + program.file.index_bytes) return 3;
                for (uint32_t side = 0; side < tensor.sides; ++side) (void)hbfp_side(&tensor, side);
                if (numbers > 100000) continue;
                float *values = malloc(4 * numbers + 4);
                memset(values, 1, 4 * numbers);
                (void)hbfp_write(&program, tensor.name, 0, values, numbers);
                (void)hbfp_read(&program, tensor.name, draw(), values, numbers);
                free(values);
            }
            if (hbfp_run(&program, 3)) return 2;
        }
        free(shown), free(copy), free(memory);
    }
    printf("%u %u %u\n", loaded > 1000, seen[HBFP_E_FORMAT] > 1000, seen[HBFP_E_DAMAGED] > 1000);
    return 0;
}
"""


def fuzzed(folder, wrong=("", "")):
    """Status and output of the files, with a text of file.c in place of another."""
    values = list(parameters(MACHINE).values())
    (folder / "fuzz.c").write_text(FUZZ.replace("@VALUES@", ", ".join(f"{value}u" for value in values)))
    (folder / "hbfp_accelerator.h").write_text(header())
    text = (RUNTIME / "file.c").read_text()
    assert wrong[0] in text
    (folder / "file.c").write_text(text.replace(*wrong, 1))
    replace(PROGRAM, instructions=PROGRAM.instructions[:2]).save(folder / "a.hbfp")
    sources = [folder / "fuzz.c", folder / "file.c", *(path for path in library.SOURCES if path.name != "file.c")]
    done = subprocess.run(["gcc", "-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                           f"-I{folder}", f"-I{RUNTIME}", *map(str, sources), "-o", folder / "fuzz"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([folder / "fuzz", folder / "a.hbfp"], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
    return done.returncode, done.stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_no_file_makes_it_read_or_write_amiss(tmp_path):
    """200000 files, each broken otherwise, under the sanitizers of addresses and undefined behaviour."""
    assert fuzzed(tmp_path) == (0, "1 1 1\n")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("wrong", [("size > limit - address || ", ""), (" || at[4u * words - 1u]", ""),
                                   ("size > bytes - before", "0"), ("regions > left / 2u", "0")])
def test_a_bound_that_is_left_out_is_seen(tmp_path, wrong):
    assert fuzzed(tmp_path, wrong)[0]


#: What the page's program has elsewhere.
ELSEWHERE = """
static void wait_for_interrupt(void *self) { (void)self; }
static void flush_caches(void *self, int starts) { (void)self, (void)starts; }
static void print(const char *text) { (void)text; }
static const uint8_t network_hbfp[4];
static const size_t network_hbfp_size = 4;
static uint32_t images[360 * 64], scores[360 * 10];

int main"""


def test_the_pages_program_compiles(tmp_path):
    text, = re.findall(r"```c\n(.*?)```", (RUNTIME.parent / "docs/board.md").read_text(), re.DOTALL)
    (tmp_path / "page.c").write_text(text.replace("\nint main", ELSEWHERE))
    (tmp_path / "hbfp_accelerator.h").write_text(header())
    done = subprocess.run(["cc", *(flag for flag in library.FLAGS if flag != "-ffreestanding"), f"-I{tmp_path}",
                           f"-I{RUNTIME}", tmp_path / "page.c", *map(str, library.SOURCES), "-o", tmp_path / "page"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
