"""The archive from its command line: policies, now, evict, why, verify, import, ls."""
import json
import time

import pytest
from conftest import NO_RETRY
from server import Server

TAPES = "drives=2,cartridges=4,scale=0.001"


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path, ["--durability", "none"], vtl=TAPES) as running:
        yield running


def call(server, *arguments, check=True):
    return json.loads(server.cli(*arguments, "--json", check=check).stdout)


def fill(server, bucket, count, size=1000, prefix="k"):
    client = server.client(config=NO_RETRY)
    if bucket not in {item["Name"] for item in client.list_buckets()["Buckets"]}:
        client.create_bucket(Bucket=bucket)
    for number in range(count):
        client.put_object(Bucket=bucket, Key=f"{prefix}{number:04}", Body=bytes([number % 251]) * size)
    return client


def archive(server, bucket):
    server.cli("archive", "policy", "set", "--bucket", bucket, "--pool", "a", "--pool", "b")
    return call(server, "archive", "now", "--bucket", bucket)


def test_ls_shows_what_lies_on_a_volume(server):
    client = fill(server, "data", 5)
    client.put_object(Bucket="data", Key="odd\nname", Body=b"x")
    archive(server, "data")
    copy = call(server, "archive", "why", "s3://data/k0003")["copies"][0]
    listing = call(server, "tape", "ls", copy["barcode"])
    assert (listing["barcode"], listing["pool"]) == (copy["barcode"], copy["pool"])
    assert {entry["key"] for entry in listing["entries"]} == {*(f"k{number:04}" for number in range(5)), "odd\nname"}
    entry = next(entry for entry in listing["entries"] if entry["key"] == "k0003")
    assert (entry["bucket"], entry["bytes"], entry["state"], entry["partition"], entry["block"]) == ("data", 1000, "verified", 1, copy["block"])
    assert f"{entry['path']}!{entry['member']}" == copy["path"]
    lines = server.cli("tape", "ls", listing["uuid"], "data/").stdout.splitlines()
    assert len(lines) == 6 and sum("data/odd?name" in line for line in lines) == 1
    assert len(server.cli("tape", "ls", listing["uuid"], "data/k0003").stdout.splitlines()) == 1
    assert call(server, "tape", "ls", listing["uuid"], "other")["entries"] == []
    unknown = server.cli("tape", "ls", "XX0001L9", check=False)
    assert unknown.returncode == 1 and "tape volumes" in unknown.stderr


def wait_until(condition, seconds=180):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s")


def policies(server):
    return call(server, "archive", "policy", "get")["policies"]


def forget_catalog(server):
    server.stop()
    for path in server.state.glob("catalog*"):
        path.unlink()
    server.start()


def why(server, bucket, key):
    return call(server, "archive", "why", f"s3://{bucket}/{key}")


def test_catalog_and_policies_come_back_from_the_tapes(server):
    fill(server, "data", 10)
    server.cli("archive", "policy", "set", "--bucket", "data", "--prefix", "scratch/", "--pool", "a")
    archive(server, "data")
    server.cli("archive", "evict", "--bucket", "data")
    server.cli("archive", "policy", "remove", "--bucket", "data", "--prefix", "scratch/")
    before = policies(server)
    assert [policy["prefix"] for policy in before] == [""]
    forget_catalog(server)
    assert policies(server) == []
    report = call(server, "tape", "import")
    assert (report["objects"], report["copies"], report["policies"], report["problems"]) == (10, 20, 1, [])
    assert policies(server) == before, "as it was set, and the removed one is not raised"
    assert not any(copy["verified"] for copy in why(server, "data", "k0003")["copies"])
    server.cli("tape", "verify", "--bucket", "data")
    assert all(copy["verified"] for copy in why(server, "data", "k0003")["copies"])
    server.cli("archive", "recall", "--bucket", "data", "--days", "0", "--wait")
    assert server.client().get_object(Bucket="data", Key="k0003")["Body"].read() == bytes([3]) * 1000
    assert call(server, "archive", "evict", "--bucket", "data")["evicted"] == 10


def test_archive_now_reads_imported_copies_back(server):
    fill(server, "data", 5)
    archive(server, "data")
    forget_catalog(server)
    call(server, "tape", "import")
    assert call(server, "archive", "evict", "--bucket", "data", check=False)["evicted"] == 0
    server.cli("archive", "now", "--bucket", "data")
    assert call(server, "archive", "evict", "--bucket", "data")["evicted"] == 5


def test_verify_repairs_what_is_evicted(server):
    fill(server, "data", 3, size=200_000)
    server.cli("archive", "policy", "set", "--bucket", "data", "--pool", "a", "--pool", "b", "--bundle-below", "0")
    server.cli("archive", "now", "--bucket", "data")
    server.cli("archive", "evict", "--bucket", "data")
    copy = why(server, "data", "k0001")["copies"][0]
    server.stop()
    server.start()   # the cartridge is in its slot
    server.stop()
    server.cli("vtl", "flip-bit", server.vtl, copy["barcode"], "--partition", "1", "--block", str(copy["block"]))
    server.start()
    server.cli("tape", "verify", "--bucket", "data")
    after = why(server, "data", "k0001")
    assert after["state"] == "evicted"
    assert [(each["damaged"], each["verified"]) for each in after["copies"]] == [(True, False), (False, True), (False, True)]
    listing = call(server, "tape", "ls", copy["barcode"], "data/k0001")["entries"]
    assert sorted(entry["state"] for entry in listing) == ["damaged", "verified"]


def test_a_swapped_cartridge_is_refused(tmp_path):
    with Server(tmp_path, ["--durability", "none"], vtl="drives=2,cartridges=8,scale=0.001") as server:
        fill(server, "data", 5)
        archive(server, "data")
        server.cli("archive", "evict", "--bucket", "data")
        known = next(copy["barcode"] for copy in why(server, "data", "k0001")["copies"] if copy["pool"] == "a")
        blank = next(cartridge["barcode"] for cartridge in call(server, "tape", "volumes")["volumes"]
                     if cartridge["barcode"] != known and cartridge["pool"] == "a")
        server.stop()

        def swap():
            for source, target in ((known, "aside"), (blank, known), ("aside", blank)):
                (server.vtl / source).rename(server.vtl / target)

        def content():
            return {path.name: path.read_bytes() for path in sorted((server.vtl / blank).glob("p?.data"))}

        swap()
        before = content()
        server.start()
        fill(server, "data", 3, prefix="later")
        status = call(server, "archive", "now", "--bucket", "data")
        text = "\n".join(status["last_errors"])
        assert f"cartridge {known} is not trusted: it is blank" in text
        assert f"cartridge {blank} is not trusted: its label (VOL1) is" in text and "tape import" in text, text
        states = {cartridge["barcode"]: cartridge["state"] for cartridge in call(server, "tape", "volumes")["volumes"]}
        assert (states[known], states[blank]) == ("foreign", "foreign")
        server.cli("archive", "recall", "--bucket", "data", "--wait")
        assert server.client().get_object(Bucket="data", Key="k0003")["Body"].read() == bytes([3]) * 1000, "from the other pool"
        server.stop()
        assert content() == before, "nothing was written to it"
        swap()
        server.start()
        assert call(server, "tape", "import")["problems"] == []
        states = {cartridge["barcode"]: cartridge["state"] for cartridge in call(server, "tape", "volumes")["volumes"]}
        assert states[known] == "active"


def test_a_moved_folder_is_followed(server):
    client = fill(server, "data", 250, prefix="old/k")
    fill(server, "data", 20, prefix="stay/k")
    archive(server, "data")
    assert call(server, "archive", "evict", "--bucket", "data", "--prefix", "old/k01")["evicted"] == 100
    (server.root / "data" / "old").rename(server.root / "data" / "new")
    status = call(server, "archive", "now", "--bucket", "data")
    assert not any("missing on disk" in error or "conflict" in error for error in status["last_errors"]), status["last_errors"]
    assert why(server, "data", "old/k0007")["state"] == why(server, "data", "old/k0107")["state"] == "absent"
    stub, file = why(server, "data", "new/k0107"), why(server, "data", "new/k0007")
    assert (stub["state"], len(stub["copies"])) == ("evicted", 2)
    assert (file["state"], len(file["copies"])) == ("dual", 2)
    assert call(server, "archive", "status")["objects_archived"] == 270
    server.cli("archive", "recall", "--bucket", "data", "--days", "0", "--wait")
    for number in (7, 107, 199):
        assert client.get_object(Bucket="data", Key=f"new/k{number:04}")["Body"].read() == bytes([number % 251]) * 1000
    assert call(server, "archive", "evict", "--bucket", "data")["evicted"] == 270


def test_moved_stubs_are_found_by_an_import(server):
    fill(server, "data", 5, prefix="old/k")
    archive(server, "data")
    server.cli("archive", "evict", "--bucket", "data")
    (server.root / "data" / "old").rename(server.root / "data" / "new")
    forget_catalog(server)
    report = call(server, "tape", "import")
    assert (report["objects"], report["stubs"], report["problems"]) == (5, 0, [])
    assert why(server, "data", "new/k0002")["state"] == "evicted"
    server.cli("archive", "recall", "--bucket", "data", "--days", "0", "--wait")
    assert server.client().get_object(Bucket="data", Key="new/k0002")["Body"].read() == bytes([2]) * 1000


def test_a_read_back_that_a_kill_cut_is_made_up_for(tmp_path):
    with Server(tmp_path, ["--durability", "none"], vtl="drives=1,cartridges=2,scale=0.001") as server:
        fill(server, "data", 20, size=1_000_000)
        server.cli("archive", "policy", "set", "--bucket", "data", "--pool", "a", "--verify", "none")
        server.cli("archive", "now", "--bucket", "data")   # as a kill between commit and read-back leaves it
        server.cli("archive", "policy", "set", "--bucket", "data", "--pool", "a")
        server.kill()
        server.start()
        wait_until(lambda: all(copy["verified"] for copy in why(server, "data", "k0007")["copies"]))
