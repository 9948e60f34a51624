#!/usr/bin/env python3
"""House rules that a program can see: lengths, banned words with their replacement, leftovers. Exits 1 and names each place."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE_MAX = 140
FUNCTION_LINES_MAX = 80
FILE_LINES_MAX = 600

# Files that are mostly one table.
LONG_FILES = {"src/s3/errors.cc", "src/s3/request.cc", "src/scsi/sense_table.cc"}

# pattern, what to use instead, folders where it is allowed
BANNED = [
    (r"\bco_spawn\s*\(", "async::spawn or async::run_on", ("src/async/", "src/testing/")),
    (r'#include <boost/beast', "http/server.h or http/client.h", ("src/http/",)),
    (r"#include <boost/asio\.hpp>", "the narrow Asio header", ()),
    (r"\bcatch \(\.\.\.\)", "a named exception, or none", ("src/async/", "src/http/")),
    (r"\bstd::thread\b", "async::BlockingPool", ("src/testing/", "src/rdma/ofi/", "bench/")),  # libfabric's progress has threads of its own
    (r"\bthis_thread::sleep_for\b", "async::Timer", ("src/testing/", "bench/", "src/store/posix/")),  # there on a pool thread, with a deadline
    (r"\b(TODO|FIXME|XXX)\b", "an issue, or the work itself", ()),
    (r"\bassert\(false\)", "an Error, or std::unreachable with a reason", ()),
]


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in out.stdout.splitlines() if (ROOT / path).is_file()]


def long_functions(lines):
    """clang-format puts a function's first line and its closing brace at column 0 (namespaces do not indent)."""
    start = None
    for number, line in enumerate(lines, 1):
        if re.match(r"^[A-Za-z_~].*\{$", line) and not re.match(r"^(namespace|struct|class|enum|union|extern)\b", line):
            if "= {" not in line:
                start = number
        elif line.startswith("}") and start:
            if number - start + 1 > FUNCTION_LINES_MAX:
                yield start, number - start + 1
            start = None


def check(path):
    text = (ROOT / path).read_text(errors="replace")
    lines = text.splitlines()
    name = pathlib.Path(path).name
    is_test = name.endswith(("_test.cc", "_fuzz.cc")) or name.startswith(("test_", "tiny_")) or path.startswith("src/testing/")
    if len(lines) > FILE_LINES_MAX and not is_test and path not in LONG_FILES:
        yield f"{path}: {len(lines)} lines (at most {FILE_LINES_MAX}): split it by what it does"
    if not is_test and path not in LONG_FILES:
        for number, count in long_functions(lines):
            yield f"{path}:{number}: a function of {count} lines (at most {FUNCTION_LINES_MAX})"
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX and "http" not in line and 'R"' not in line:
            yield f"{path}:{number}: {len(line)} columns (at most {LINE_MAX})"
        for pattern, instead, allowed in BANNED:
            if re.search(pattern, line) and not path.startswith(allowed) and not is_test:
                yield f"{path}:{number}: {pattern!r} is not for here: use {instead}"


def main():
    findings = [finding for path in tracked("src/*.h", "src/*.cc", "src/*.ipp", "bench/*.cc") for finding in check(path)]
    for room in sorted({pathlib.Path(path).parent for path in tracked("src/*.cc", "src/*.h")}):
        if len(room.parts) == 2 and not (ROOT / room / "README.md").exists():
            findings.append(f"{room}: has no README.md that says what belongs here")
    print("\n".join(findings) or "tidy: ok")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
