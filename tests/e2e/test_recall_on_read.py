"""GET of evicted objects with --recall-on-read: by boto3 at its defaults, in ranges, by many at once, out of band, and while the object changes."""
import concurrent.futures
import io
import os
import re
import time

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from conftest import admin_client
from server import Server

BIG = 9_000_001
ONCE = Config(retries={"total_max_attempts": 1})
LTO9 = "drives=2,cartridges=2,scale=0.001,clock=lto9,speed=20"


def fill_and_evict(server, bucket, bodies):
    client = server.client()
    client.create_bucket(Bucket=bucket)
    for key, body in bodies.items():
        client.put_object(Bucket=bucket, Key=key, Body=body)
    server.cli("archive", "policy", "set", "--bucket", bucket, "--pool", "a", "--pool", "b", "--bundle-below", "1MiB")
    server.cli("archive", "now", "--bucket", bucket)
    server.cli("archive", "evict", "--bucket", bucket)
    assert {item["StorageClass"] for item in client.list_objects_v2(Bucket=bucket)["Contents"]} == {"GLACIER"}


def recalls(server):
    text = admin_client(server).request("GET", "/metrics", sign=False).body.decode()
    found = re.search(r"^reelway_recalls_total(?:\{[^}]*\})? ([0-9.e+]+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A bucket `readers` of evicted objects; each test has keys of its own."""
    options = ["--durability", "none", "--recall-on-read", "--patience", "120s"]
    with Server(tmp_path_factory.mktemp("readers"), options, vtl="drives=2,cartridges=4") as running:
        running.bodies = {key: os.urandom(BIG) for key in ("shown", "ranges", "many", "left", "plane")}
        running.bodies.update({"shown-small": b"small", "shown-empty": b"", "plane-small": b"small", "copied": b"k" * 100_000})
        fill_and_evict(running, "readers", running.bodies)
        yield running


@pytest.fixture
def client(server):
    return server.client(config=ONCE)


def evict(server, key):
    """As soon as the catalog knows that it is back and nobody has it open."""
    end = time.monotonic() + 120
    while not (server.root / "readers" / key).is_symlink():
        assert time.monotonic() < end, f"{key} is not evicted"
        server.cli("archive", "evict", "--bucket", "readers", "--prefix", key, check=False)


def test_get_and_what_is_shown_of_it(server, client):
    for key in ("shown", "shown-small", "shown-empty"):
        got = client.get_object(Bucket="readers", Key=key)
        assert got["Body"].read() == server.bodies[key] and "Restore" not in got
        head = client.head_object(Bucket="readers", Key=key)
        assert "Restore" not in head and head["ContentLength"] == len(server.bodies[key]), "a reader pins nothing"
        assert not (server.root / "readers" / key).is_symlink()
    evict(server, "shown-small")
    client.restore_object(Bucket="readers", Key="shown-small", RestoreRequest={"Days": 1, "GlacierJobParameters": {"Tier": "Expedited"}})
    assert client.get_object(Bucket="readers", Key="shown-small")["Body"].read() == b"small"
    wait_for_restore(client, "shown-small")  # its bytes are there a moment before the catalog says so
    got, head = client.get_object(Bucket="readers", Key="shown-small"), client.head_object(Bucket="readers", Key="shown-small")
    listed = client.list_objects_v2(Bucket="readers", Prefix="shown-small", OptionalObjectAttributes=["RestoreStatus"])["Contents"][0]
    assert got["Restore"] == head["Restore"] and 'ongoing-request="false"' in head["Restore"]
    assert got["StorageClass"] == head["StorageClass"] == listed["StorageClass"] == "GLACIER"
    assert listed["RestoreStatus"]["IsRestoreInProgress"] is False


def test_ranges(server, client):
    body = server.bodies["ranges"]
    for text, part in (("bytes=100-199", body[100:200]), ("bytes=-70000", body[-70000:]), (f"bytes={BIG - 5}-", body[-5:])):
        got = client.get_object(Bucket="readers", Key="ranges", Range=text)
        assert got["ResponseMetadata"]["HTTPStatusCode"] == 206 and got["Body"].read() == part
        wait_for_landing(server, "ranges")
        evict(server, "ranges")
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket="readers", Key="ranges", Range=f"bytes={BIG}-")
    assert error.value.response["Error"]["Code"] == "InvalidRange"
    whole = io.BytesIO()  # in parts, several at once
    server.client().download_fileobj("readers", "ranges", whole)
    assert whole.getvalue() == body


def wait_for_landing(server, key):
    end = time.monotonic() + 120
    while (server.root / "readers" / key).is_symlink():
        assert time.monotonic() < end, f"{key} does not come back"
        time.sleep(0.05)


def wait_for_restore(client, key):
    end = time.monotonic() + 120
    while 'ongoing-request="true"' in client.head_object(Bucket="readers", Key=key)["Restore"]:
        assert time.monotonic() < end, f"{key} is not restored"
        time.sleep(0.05)


def test_many_readers_are_one_recall(server):
    before = recalls(server)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        read = lambda _: server.client(config=ONCE).get_object(Bucket="readers", Key="many")["Body"].read()  # noqa: E731
        assert all(got == server.bodies["many"] for got in pool.map(read, range(12)))
    assert recalls(server) - before == 1


def test_readers_that_leave(server, client):
    for _ in range(3):
        got = client.get_object(Bucket="readers", Key="left")
        assert got["Body"].read(1000) == server.bodies["left"][:1000]
        got["Body"].close()
    assert client.get_object(Bucket="readers", Key="left")["Body"].read() == server.bodies["left"]


def test_out_of_band(server, tmp_path):
    for key in ("plane", "plane-small"):
        server.cli("get", "--rdma", "require", f"s3://readers/{key}", tmp_path / key)
        assert (tmp_path / key).read_bytes() == server.bodies[key]


def test_a_copy_of_an_evicted_object_is_refused(client):
    with pytest.raises(ClientError) as error:
        client.copy_object(Bucket="readers", Key="copy", CopySource="readers/copied")
    assert error.value.response["Error"]["Code"] == "InvalidObjectState"


# ---- on the LTO-9 clock, 20 times as fast: a load takes its time ----

@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    """Evicted objects, and no cartridge in a drive."""
    running = Server(tmp_path_factory.mktemp("slow"), ["--durability", "none", "--recall-on-read", "--patience", "3s"], vtl=LTO9)
    with running:
        running.bodies = {f"k{number}": os.urandom(3_000_000) for number in range(8)}
        fill_and_evict(running, "tapes", running.bodies)
        yield running


@pytest.fixture
def unloaded(slow_server):
    """A server that stops puts its cartridges back."""
    assert slow_server.stop() == 0
    slow_server.start()
    return slow_server


def until_recalling(server, key, reader):
    while not reader.done() and "its recall" not in server.cli("archive", "why", f"s3://tapes/{key}").stdout:
        pass


def test_boto3_succeeds_by_its_own_retries(unloaded):
    assert unloaded.client().get_object(Bucket="tapes", Key="k0")["Body"].read() == unloaded.bodies["k0"]


def test_past_the_patience_it_is_503_and_the_recall_goes_on(unloaded):
    unloaded.options[-1] = "1ms"
    assert unloaded.stop() == 0
    unloaded.start()
    before = recalls(unloaded)
    with pytest.raises(ClientError) as error:
        unloaded.client(config=ONCE).get_object(Bucket="tapes", Key="k1")
    unloaded.options[-1] = "3s"
    answer = error.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("SlowDown", 503)
    assert int(answer["ResponseMetadata"]["HTTPHeaders"]["retry-after"]) > 0
    end = time.monotonic() + 120
    while (unloaded.root / "tapes/k1").is_symlink():
        assert time.monotonic() < end, "the recall did not go on"
        time.sleep(0.1)
    assert unloaded.client(config=ONCE).get_object(Bucket="tapes", Key="k1")["Body"].read() == unloaded.bodies["k1"]
    assert recalls(unloaded) - before == 1


def test_an_overwrite_while_readers_wait(unloaded):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: unloaded.client().get_object(Bucket="tapes", Key="k2")["Body"].read())
        until_recalling(unloaded, "k2", waiting)
        unloaded.client().put_object(Bucket="tapes", Key="k2", Body=b"new bytes")
        assert waiting.result() in (b"new bytes", unloaded.bodies["k2"])
    assert unloaded.client().get_object(Bucket="tapes", Key="k2")["Body"].read() == b"new bytes"
    assert "conflict" not in unloaded.cli("archive", "status").stdout


def test_a_delete_while_readers_wait(unloaded):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: unloaded.client().get_object(Bucket="tapes", Key="k3")["Body"].read())
        until_recalling(unloaded, "k3", waiting)
        unloaded.client().delete_object(Bucket="tapes", Key="k3")
        try:
            assert waiting.result() == unloaded.bodies["k3"]
        except (ClientError, BotoCoreError) as error:
            assert not isinstance(error, ClientError) or error.response["Error"]["Code"] in ("NoSuchKey", "SlowDown"), error
    with pytest.raises(ClientError) as error:
        unloaded.client().get_object(Bucket="tapes", Key="k3")
    assert error.value.response["Error"]["Code"] == "NoSuchKey"


def test_the_servers_end_answers_who_waits(unloaded):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: unloaded.client(config=ONCE).get_object(Bucket="tapes", Key="k4")["Body"].read())
        until_recalling(unloaded, "k4", waiting)
        assert unloaded.stop() == 0
        try:
            assert waiting.result() == unloaded.bodies["k4"]
        except ClientError as error:
            assert error.response["Error"]["Code"] == "SlowDown"
    unloaded.start()
    assert unloaded.client().get_object(Bucket="tapes", Key="k4")["Body"].read() == unloaded.bodies["k4"]


def test_a_killed_server_goes_on_with_the_recall(unloaded):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: unloaded.client(config=ONCE).get_object(Bucket="tapes", Key="k5")["Body"].read())
        until_recalling(unloaded, "k5", waiting)
        unloaded.kill()
        assert waiting.exception() is not None or waiting.result() == unloaded.bodies["k5"]
    unloaded.start()
    assert unloaded.client().get_object(Bucket="tapes", Key="k5")["Body"].read() == unloaded.bodies["k5"]
