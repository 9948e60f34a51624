"""The archive from its command line: policies, now, evict, why, verify, import, ls."""
import json

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
