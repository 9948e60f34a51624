#!/usr/bin/env python3
"""Checks every #include "room/..." under src/ against tools/layers.txt. Tests may also include testing/."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def read_table():
    table = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            room, _, allowed = line.partition(":")
            table[room] = allowed.split()
    return table


def room_of(path, table):
    """The longest room that is a prefix of the path's folder."""
    parts = path.split("/")[:-1]
    while parts:
        room = "/".join(parts)
        if room in table:
            return room
        parts.pop()
    return None


def allowed(room, target, table, is_test):
    rules = table[room]
    target_room = room_of(target, table)
    if target_room is None or target_room == room or "*" in rules:
        return True
    if is_test and target_room in ("testing", "base", "async"):
        return True
    return target_room in rules or target in rules


def main():
    table = read_table()
    errors = []
    for file in sorted((ROOT / "src").rglob("*")):
        if file.suffix not in (".h", ".cc", ".ipp"):
            continue
        path = file.relative_to(ROOT / "src").as_posix()
        room = room_of(path, table)
        if room is None:
            errors.append(f"{path}: its folder is no room of tools/layers.txt")
            continue
        is_test = path.endswith(("_test.cc", "_fuzz.cc"))
        for include in INCLUDE.findall(file.read_text()):
            if not allowed(room, include, table, is_test):
                errors.append(f"{path}: {room} may not include {include}")
    print("\n".join(errors) or "layers: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
