"""Run a command as on a processor without some instruction sets, at full speed: qemu emulates one too, a hundred times slower.

    python benchmarks/hidden.py vnni -- python benchmarks/generate.py --work /tmp/generate
    python benchmarks/hidden.py avx512,vnni -- python -m pytest tests/verify

onnxruntime and torch ask the processor what it has by the instruction `cpuid`. Copies of them are made in which that
instruction is an invalid one of the same length, and a small library answers for it, with the named bits left out. The copies
lie in a directory of their own (--at); nothing that is installed is touched. CTranslate2 is told by its own variables. It needs
x86-64 Linux, gcc and objdump.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("onnxruntime", "torch")
ANSWERS = r"""
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static int vnni, avx512;
int sigaction(int number, const struct sigaction *wanted, struct sigaction *before) {  /* faulthandler would take ours away */
  static int (*real)(int, const struct sigaction *, struct sigaction *);
  if (!real) real = dlsym(RTLD_NEXT, "sigaction");
  return real(number, number == SIGILL && vnni + avx512 ? NULL : wanted, before);
}
static void answer(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  unsigned char *at = (unsigned char *)r[REG_RIP];
  if (at[0] != 0x0f || at[1] != 0x0b) { signal(SIGILL, SIG_DFL); return; }
  unsigned leaf = r[REG_RAX], part = r[REG_RCX], a, b, c, d;
  __cpuid_count(leaf, part, a, b, c, d);
  if (leaf == 7 && part == 0) {
    if (vnni) { c &= ~(1u << 11); d &= ~(1u << 22 | 1u << 24 | 1u << 25); }  /* AVX512_VNNI; AMX */
    if (avx512) {
      b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
      c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
      d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 23);
    }
  }
  if (leaf == 7 && part == 1) {
    if (vnni) { a &= ~(1u << 4); d &= ~(1u << 4 | 1u << 10); }  /* AVX_VNNI and its kin */
    if (avx512) a &= ~(1u << 5);
  }
  r[REG_RAX] = a; r[REG_RBX] = b; r[REG_RCX] = c; r[REG_RDX] = d; r[REG_RIP] += 2;
}
__attribute__((constructor)) static void begin(void) {
  const char *hidden = getenv("HIDDEN") ? getenv("HIDDEN") : "";
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = answer; action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGILL, &action, 0);
  vnni = strstr(hidden, "vnni") != 0; avx512 = strstr(hidden, "avx512") != 0;
}
"""


def main() -> int:
    """Make the copies unless they are there, run the command on them, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hidden", help="what the processor shall not have: vnni, or avx512,vnni")
    parser.add_argument("--at", type=Path, default=Path(tempfile.gettempdir()) / "torchferry-hidden")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    command = [word for word in asked.command if word != "--"]
    command[0] = sys.executable if command[0] == "python" else command[0]
    place = asked.at / "site-packages"  # a name by which tools tell foreign code from the user's
    for package in PACKAGES:
        if not (place / package).exists():
            copied(package, place)
    library = asked.at / "answers.so"
    if not library.exists():
        build = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(build, input=ANSWERS, text=True, check=True)
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    widest = "AVX2" if "avx512" in asked.hidden else "AVX512"
    onednn = "AVX2" if widest == "AVX2" else "AVX512_CORE"
    others = {"ONEDNN_MAX_CPU_ISA": onednn, "CT2_FORCE_CPU_ISA": widest, "MKL_ENABLE_INSTRUCTIONS": widest}
    environment = {**os.environ, **others, "LD_PRELOAD": str(library), "HIDDEN": asked.hidden, "PYTHONPATH": path}
    return subprocess.run(command, env=environment, check=False).returncode


def copied(package: str, place: Path) -> None:
    """Copy an installed package, its libraries with another instruction wherever they ask for the processor's."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    shutil.copytree(found.submodule_search_locations[0], place / package)
    for library in (place / package).rglob("*.so*"):
        asked = changed(library)
        print(f"{library.relative_to(place)}: {asked} instructions", file=sys.stderr)


def changed(library: Path) -> int:
    """Put an invalid instruction in the place of every `cpuid` of a library; return how many there were."""
    listed = subprocess.run(["objdump", "-h", str(library)], capture_output=True, text=True, check=False).stdout
    sections = [line.split() for line in listed.splitlines() if re.match(r"\s+\d+ \.", line)]
    spans = [(int(s[3], 16), int(s[2], 16), int(s[5], 16)) for s in sections]  # address, length, place in the file
    code = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", str(library)], stdout=subprocess.PIPE, text=True)
    assert code.stdout is not None
    asks = [int(line.split(":")[0], 16) for line in code.stdout if line.rstrip().endswith("cpuid")]
    data, count = bytearray(library.read_bytes()), 0
    for address in asks:
        for start, length, offset in spans:
            at = offset + address - start
            if start <= address < start + length and data[at : at + 2] == b"\x0f\xa2":
                data[at + 1], count = 0x0B, count + 1
    library.write_bytes(data)
    return count


if __name__ == "__main__":
    sys.exit(main())
