#!/usr/bin/env python3
"""Runs the test steps that scripts/test names and closes with one line: N passed, N failed."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = ("lint", "unit", "tsan", "fuzz", "e2e", "demo")
# Rooms with threads of their own or with work that crosses threads.
TSAN_TESTS = ("async_test", "rdma_test", "rdma_ofi_test", "archive_test")
FUZZ_SECONDS = 60
UNIT_TIMEOUT_S = 600


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def add(self, name, ok, note=""):
        self.passed += ok
        self.failed += not ok
        if not ok:
            print(f"FAILED {name} {note}", flush=True)


def run(command, timeout=None, env=None, quiet=True):
    """The exit status and the output; 124 after the timeout."""
    merged = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(command, cwd=ROOT, env=merged, timeout=timeout, stdout=subprocess.PIPE if quiet else None,
                              stderr=subprocess.STDOUT if quiet else None, text=True, errors="replace")
        return done.returncode, done.stdout or ""
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or b""
        return 124, output.decode(errors="replace") if isinstance(output, bytes) else output


def build(preset, *targets):
    status, output = run(["scripts/build", preset, *targets])
    if status:
        print(output[-6000:], flush=True)
        raise SystemExit(f"the {preset} build failed\n0 passed, 1 failed")


def lint(tally, options):
    for check in ("tools/check_layers.py", "tools/tidy.py"):
        status, output = run([check])
        tally.add(check, status == 0, "\n" + output)
    files = subprocess.run(["git", "ls-files", "src/*.h", "src/*.cc", "src/*.ipp", "bench/*.cc", "tools/*.cc"], cwd=ROOT, capture_output=True, text=True)
    status, output = run(["clang-format-19", "--dry-run", "--Werror", *files.stdout.split()])
    tally.add("clang-format", status == 0, "\n" + output[:4000])
    if options.all:
        for header in [name for name in files.stdout.split() if name.endswith(".h")]:
            status, output = run(["clang++-19", "-std=c++23", "-Isrc", "-fsyntax-only", "-x", "c++", "-include", header, "/dev/null"])
            tally.add(f"self-contained {header}", status == 0, "\n" + output[:2000])
        run(["scripts/build", "tidy"], quiet=False)


def last_words(output):
    """What a program said that ended badly, without the tests that passed; the one it was in stays."""
    lines = output.splitlines()
    passed = re.compile(r"\[ +OK \] (\S+)")
    names = {match.group(1) for line in lines if (match := passed.match(line))}
    return "\n".join(line for line in lines if line.split("] ")[-1].split(" (")[0] not in names)[-2500:]


def skip_reason(output, name):
    """GoogleTest 1.12 does not put it into its report."""
    told = re.search(re.escape(f"] {name}") + r"\n.*Skipped\n(.*)\n", output)
    return told.group(1) if told else "no reason"


def run_gtest(tally, binary, env=None):
    """One GoogleTest program; each of its tests counts."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        status, output = run([str(binary), f"--gtest_output=json:{report.name}"], timeout=UNIT_TIMEOUT_S, env=env)
        try:
            suites = json.loads(pathlib.Path(report.name).read_text())["testsuites"]
        except (json.JSONDecodeError, KeyError):
            suites = []
    count = 0
    for suite in suites:
        for test in suite["testsuite"]:
            ok = not test.get("failures")
            if test.get("result") == "SKIPPED":
                print(f"skipped {suite['name']}.{test['name']}: {skip_reason(output, suite['name'] + '.' + test['name'])}")
                continue
            tally.add(f"{binary.name}: {suite['name']}.{test['name']}", ok)
            count += ok
    if status:
        tally.add(binary.name, False, f"exit status {status}\n{last_words(output)}")
    print(f"  {binary.name}: {count} passed", flush=True)


def gtest_binaries(preset):
    status, output = run(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"])
    tests = json.loads(output)["tests"]
    return [pathlib.Path(test["command"][0]) for test in tests if "command" in test]


def unit(tally, options):
    build("dev")
    for binary in gtest_binaries("dev"):
        run_gtest(tally, binary)


def tsan(tally, options):
    build("tsan", *TSAN_TESTS)
    env = {"TSAN_OPTIONS": f"halt_on_error=1:suppressions={ROOT}/tools/tsan.supp"}
    for name in TSAN_TESTS:
        binary = next((ROOT / "build/tsan/src").rglob(name), None)
        if binary is None:
            tally.add(f"tsan {name}", False, "was not built")
        else:
            run_gtest(tally, binary, env)


def fuzz(tally, options):
    """Every day each fuzzer replays its saved inputs; --all lets it look for new ones."""
    preset = "fuzz" if options.all else "dev"
    build(preset, "fuzzers")
    for binary in sorted((ROOT / "build" / preset / "src").rglob("*_fuzz")):
        room = binary.parent.relative_to(ROOT / "build" / preset)
        name = binary.name[len(str(room.relative_to("src")).replace("/", "_")) + 1:]
        seeds = ROOT / room / "corpus" / name
        if options.all:
            with tempfile.TemporaryDirectory() as found:
                status, output = run([str(binary), f"-max_total_time={FUZZ_SECONDS}", "-rss_limit_mb=3072", f"-artifact_prefix={ROOT}/build/fuzz/{binary.name}-",
                                      found, *([str(seeds)] if seeds.is_dir() else [])], timeout=FUZZ_SECONDS + 120)
        else:
            status, output = run([str(binary), *sorted(map(str, seeds.glob("*")))], timeout=120)
        tally.add(f"fuzz {binary.name}", status == 0, "\n" + output[-4000:])


def e2e(tally, options):
    build("dev", "reelway")
    report = ROOT / "build/e2e.xml"
    arguments = ["-q", "--maxfail=10", f"--junitxml={report}", "tests/e2e"] + ([] if options.all else ["-m", "not slow"])
    run([sys.executable, "-m", "pytest", *arguments], quiet=False, env={"REELWAY_BINARY": str(ROOT / "build/dev/src/app/reelway")})
    for case in xml.parse(report).iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped")
        if skipped is not None:
            print(f"skipped {case.get('name')}: {skipped.get('message')}")
            continue
        tally.add(f"e2e {case.get('classname')}.{case.get('name')}", not bad)


def demo(tally, options):
    env = {"REELWAY_BINARY": str(ROOT / "build/dev/src/app/reelway")}
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        status, output = run(["tests/e2e/make_odd_tree", folder])
        tally.add("demo's odd tree", status == 0, output)
        status, output = run(["scripts/demo", folder], timeout=900, env=env)
    print(output[-2500:])
    tally.add("demo", status == 0 and "demo: PASS" in output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], default=[])
    options = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    tally = Tally()
    for step in options.steps or STEPS:
        started = time.monotonic()
        print(f"== {step}", flush=True)
        globals()[step](tally, options)
        print(f"== {step}: {time.monotonic() - started:.0f} s, so far {tally.passed} passed, {tally.failed} failed", flush=True)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
