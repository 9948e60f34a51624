"""Volumes that Reelway wrote, judged by a checker that shares no code with it; and the checker judged by volumes that were damaged."""
import pathlib
import random
import re
import shutil
import subprocess
import sys

import google_crc32c
import ltfs_check
import pytest
from conftest import NO_RETRY
from ltfs_check import HEADER, MAGIC, RECORD, Volume, is_blank
from server import Server

CHECKER = pathlib.Path(__file__).with_name("ltfs_check.py")
MIB = 1 << 20
BUNDLE_BELOW = 100_000
ODD_KEYS = ["plain", "with space+plus", "ü/ä=b&c.txt", "colon:percent%41", "e\u0301 decomposed", "x//y", "./dot", "trailing/", "both", "both/below", "tab\there",
            "\x01control", "😀<&>\"'", "n" * 255, "m" * 300, "/".join(["deep"] * 60), "k" * 1000, ".reelway/bundles/00000001.tar", "-rf", "back\\slash"]


def written_objects():
    """Two objects of each odd key, one for a bundle and one for a file of its own, besides sizes around block borders."""
    rng = random.Random(7)
    objects = {f"small/{key}": rng.randbytes(rng.randrange(1, 3000)) for key in ODD_KEYS}
    objects |= {f"large/{key}": rng.randbytes(BUNDLE_BELOW + rng.randrange(3000)) for key in ODD_KEYS}
    for size in (0, 1, 511, 512, 513, BUNDLE_BELOW - 1, BUNDLE_BELOW, 512 * 1024, 512 * 1024 + 1, 4 * MIB, 64 * MIB + 13):
        objects[f"sizes/{size}"] = rng.randbytes(size)
    return objects


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """(cartridge folders, objects there must be, generations' bytes that were replaced, deleted keys) after an orderly end."""
    with Server(tmp_path_factory.mktemp("ltfs"), ["--durability", "none"], vtl="drives=2,cartridges=4") as server:
        client = server.client(config=NO_RETRY)
        client.create_bucket(Bucket="data")
        server.cli("archive", "policy", "set", "--bucket", "data", "--pool", "a", "--pool", "b", "--bundle-below", BUNDLE_BELOW)
        live = written_objects()
        put_all(client, live)
        server.cli("archive", "now", "--bucket", "data")
        replaced = {key: live[key] for key in ("small/plain", "large/plain", "small/m" + "m" * 299, "large/colon:percent%41")}
        newer = {key: b"newer " + body for key, body in replaced.items()}
        put_all(client, newer)
        deleted = ["small/tab\there", "large/with space+plus", "sizes/4194304"]
        for key in deleted:
            client.delete_object(Bucket="data", Key=key)
        server.cli("archive", "now", "--bucket", "data")
        live = {key: body for key, body in (live | newer).items() if key not in deleted}
    return sorted(server.vtl.glob("RW*")), live, replaced, deleted


def put_all(client, objects):
    for key, body in objects.items():
        client.put_object(Bucket="data", Key=key, Body=body, Metadata={"length": str(len(body))})


@pytest.fixture(scope="module")
def volumes(library):
    return [Volume(folder) for folder in library[0] if not is_blank(folder)]


def newest(volume):
    found = {}
    for each in volume.objects():
        if each.key not in found or each.generation > found[each.key].generation:
            found[each.key] = each
    return found


def test_volumes_are_consistent(library, volumes):
    assert len(volumes) == 2, "one volume of each pool"
    assert [finding for volume in volumes for finding in volume.findings] == []
    done = subprocess.run([sys.executable, CHECKER, *library[0]], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("consistent\n"), done.stdout


def test_every_object_is_on_both_copies(library, volumes):
    _, live, replaced, deleted = library
    for volume in volumes:
        copies = newest(volume)
        assert {key.encode() for key in [*live, *deleted]} == set(copies)
        for key, body in live.items():
            assert copies[key.encode()].read() == body, (volume.barcode, key)
        by_key = {key: [each.read() for each in volume.objects() if each.key == key.encode()] for key in replaced}
        assert all(replaced[key] in bodies and len(bodies) == 2 for key, bodies in by_key.items())


def test_small_objects_are_bundled_and_large_ones_files(volumes):
    for volume in volumes:
        for each in volume.objects():
            is_bundled = each.path.startswith("/.reelway/bundles/")
            assert is_bundled == (len(each.read()) < BUNDLE_BELOW), each.key


def test_deaths_are_journalled(library, volumes):
    for volume in volumes:
        dead = {each.key.decode() for each in volume.objects() if each.generation in volume.dead()}
        assert dead == {*library[2], *library[3]}


# ---- damage ----

@pytest.fixture(scope="module")
def small_cartridge(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("small"), ["--durability", "none"], vtl="drives=1,cartridges=1") as server:
        client = server.client(config=NO_RETRY)
        client.create_bucket(Bucket="data")
        server.cli("archive", "policy", "set", "--bucket", "data", "--pool", "a", "--bundle-below", BUNDLE_BELOW)
        put_all(client, {f"{place}/{key}": size * b"x" for place, size in (("small", 1000), ("large", BUNDLE_BELOW + 5)) for key in ("plain", "colon:", "ü")})
        server.cli("archive", "now", "--bucket", "data")
    return server.vtl / "RW0001L9"


@pytest.fixture
def cartridge(small_cartridge, tmp_path):
    """A copy, to be damaged."""
    return pathlib.Path(shutil.copytree(small_cartridge, tmp_path / small_cartridge.name))


def store_record(folder, partition, number, **changed):
    """Replaces members of a block's record; its own checksum stays right."""
    with open(folder / f"p{partition}.index", "r+b") as file:
        file.seek(HEADER.size + number * RECORD.size)
        members = list(RECORD.unpack(file.read(RECORD.size)))
        for name, value in changed.items():
            members[["kind", "length", "crc", "epoch", "offset", "position", "filemarks"].index(name)] = value
        raw = RECORD.pack(*members)[:-4]
        file.seek(HEADER.size + number * RECORD.size)
        file.write(raw + google_crc32c.value(raw).to_bytes(4, "little"))


def replace_bytes(folder, partition, number, old, new):
    """In one block; the drive notices nothing. The first occurrence counts."""
    assert len(old) == len(new)
    reader = ltfs_check.Partition(folder, partition)
    block, where = reader.block(number), reader.records[number][3]
    assert old in block, (partition, number, old)
    block = block.replace(old, new, 1)
    with open(folder / f"p{partition}.data", "r+b") as file:
        file.seek(where)
        file.write(block)
    store_record(folder, partition, number, crc=google_crc32c.value(block))


def flip(folder, partition, number, at=None):
    block = ltfs_check.Partition(folder, partition).block(number)
    at = len(block) // 2 if at is None else at
    replace_bytes(folder, partition, number, block, block[:at] + bytes([block[at] ^ 0x10]) + block[at + 1:])


def cut_records(folder, partition, count):
    """As if the last `count` records had never been written."""
    path = folder / f"p{partition}.index"
    raw = path.read_bytes()
    _, synced, epoch, _ = HEADER.unpack_from(raw)
    head = MAGIC + (synced - count).to_bytes(8, "little") + epoch.to_bytes(4, "little")
    path.write_bytes((head + google_crc32c.value(head).to_bytes(4, "little")).ljust(HEADER.size, b"\0") + raw[HEADER.size:len(raw) - count * RECORD.size])


def first_block(volume, prefix, extent=0):
    return next(file.extents[extent].start_block for path, file in sorted(volume.index.files.items()) if path.startswith(prefix) and file.extents)


DATA_FLIPS = {
    "file": (lambda volume: first_block(volume, "/data/large/"), "SHA-256"),
    "bundled object": (lambda volume: first_block(volume, "/.reelway/bundles/"), "bundles/"),
    "manifest": (lambda volume: first_block(volume, "/.reelway/batches/"), "batches/"),
    "trailer": (lambda volume: first_block(volume, "/.reelway/batches/", 1), "batches/"),
    "label": (lambda _: 2, "label"),
    "VOL1": (lambda _: 0, "VOL1"),
}


@pytest.mark.parametrize("what", DATA_FLIPS)
def test_a_flipped_bit_that_the_drive_does_not_notice(cartridge, what):
    choose, told = DATA_FLIPS[what]
    flip(cartridge, 1, choose(Volume(cartridge)))
    assert any(told in finding for finding in Volume(cartridge).findings), Volume(cartridge).findings


def test_a_flipped_bit_that_the_drive_notices(cartridge):
    number = first_block(Volume(cartridge), "/data/large/")
    with open(cartridge / "p1.data", "r+b") as file:
        file.seek(ltfs_check.Partition(cartridge, 1).records[number][3] + 5)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    findings = Volume(cartridge).findings
    assert any("fails its checksum" in finding for finding in findings), findings
    done = subprocess.run([sys.executable, CHECKER, cartridge], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "fails its checksum" in done.stdout


# In the index on the index partition, which stands at block 5. The first occurrence is changed.
INDEX_DAMAGE = {
    "not well-formed": (b"</creator>", b"</creatot>", "mismatched tag"),
    "another volume": (b"<volumeuuid>", b"<volumeuiud>", "volumeuiud|mismatched"),
    "self pointer": (b"<startblock>5<", b"<startblock>6<", "says it stands at"),
    "back pointer": (b"<partition>b<", b"<partition>a<", "points back"),
    "root's fileuid": (b"<fileuid>1<", b"<fileuid>9<", "fileuid"),
    "time": (b"<updatetime>2", b"<updatetime>x", "updatetime"),
    "lock": (b">unlocked<", b">unlucked<", "volumelockstate"),
    "order": (b"<readonly>false</readonly>", b"<comments>false</comments>", "has \\["),
    "attribute": (b"<key>reelway.bucket<", b"<key>user.ay.bucket<", "attribute user"),
    "base64": (b"type=\"base64\">", b"type=\"base46\">", "of type base46"),
    "name said to be plain": (b"percentencoded=\"true\"", b"percentencoded=\"fals\"", "is not where"),
    "plain colon": (b"percentencoded=\"true\">colon%3A", b"percentencoded=\"fals\">colon:::", "needs encoding"),
    "file's length": (b"<length>1000", b"<length>1001", "bytes|length"),
    "byte offset": (b"<byteoffset>0<", b"<byteoffset>1<", "SHA-256|block|bytes"),
    "extent's partition": (b"<extent>\n<fileoffset>0</fileoffset>\n<partition>b", b"<extent>\n<fileoffset>0</fileoffset>\n<partition>c", "partition 'c'"),
}


@pytest.mark.parametrize("what", INDEX_DAMAGE)
def test_a_damaged_index(cartridge, what):
    old, new, told = INDEX_DAMAGE[what]
    replace_bytes(cartridge, 0, 5, old, new)
    findings = Volume(cartridge).findings
    assert any(re.search(told, finding) for finding in findings), findings


def test_cut_volumes(cartridge):
    kept = cartridge / "p1.data"
    size = kept.stat().st_size
    with open(kept, "r+b") as file:
        file.truncate(size - 1)
    assert Volume(cartridge).findings, "a byte is missing"
    with open(kept, "r+b") as file:
        file.truncate(size)
    cut_records(cartridge, 1, 1)
    assert "not complete" in Volume(cartridge).findings[0], "without the filemark behind the last index"


def test_an_index_less(cartridge):
    """Both partitions are complete, but the data partition lost its last index with what stood before it."""
    records = ltfs_check.Partition(cartridge, 1).records
    marks = [number for number, record in enumerate(records) if record[0] == ltfs_check.FILEMARK]
    cut_records(cartridge, 1, len(records) - 1 - marks[3])
    findings = Volume(cartridge).findings
    assert any("points back" in finding for finding in findings), findings


@pytest.mark.parametrize("attribute", ["1 2060", "0 2060", "0 2059"])
def test_cartridge_memory(cartridge, attribute):
    memory = cartridge / "memory"
    lines = memory.read_text().splitlines()
    changed = [line[:-1] + ("0" if line[-1] != "0" else "1") if line.startswith(f"attribute {attribute} ") else line for line in lines]
    assert changed != lines
    memory.write_text("\n".join(changed) + "\n")
    assert any("cartridge memory" in finding for finding in Volume(cartridge).findings)
