"""Archive, evict and RestoreObject as an S3 client sees them."""
import time

import pytest
from botocore.exceptions import ClientError
from conftest import NO_RETRY, make_bucket

WAIT_S = 60


@pytest.fixture
def client(tape_server):
    return tape_server.client(config=NO_RETRY)


@pytest.fixture
def taped(tape_server, client):
    """A bucket with a policy; its objects are on two tapes and no longer on disk."""
    for name in make_bucket(client):
        for number in range(5):
            client.put_object(Bucket=name, Key=f"k{number}", Body=bytes([number]) * 100_000, Metadata={"n": str(number)})
        tape_server.cli("archive", "policy", "set", "--bucket", name, "--pool", "a", "--pool", "b")
        tape_server.cli("archive", "now", "--bucket", name)
        tape_server.cli("archive", "evict", "--bucket", name)
        yield name


def wait_for_restore(client, bucket, key):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        text = client.head_object(Bucket=bucket, Key=key).get("Restore", "")
        if 'ongoing-request="false"' in text:
            return text
        time.sleep(0.05)
    raise AssertionError(f"{key} was not restored in {WAIT_S} s: {text!r}")


def code(error):
    return error.value.response["Error"]["Code"], error.value.response["ResponseMetadata"]["HTTPStatusCode"]


def test_evicted_object(tape_server, client, taped):
    head = client.head_object(Bucket=taped, Key="k3")
    assert (head["ContentLength"], head["Metadata"], head["StorageClass"], "Restore" in head) == (100_000, {"n": "3"}, "GLACIER", False)
    assert (tape_server.root / taped / "k3").is_symlink()
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=taped, Key="k3")
    assert code(error) == ("InvalidObjectState", 403) and error.value.response["Error"]["StorageClass"] == "GLACIER"
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=taped, Key="k3", Range="bytes=0-5")
    assert code(error)[0] == "InvalidObjectState"
    with pytest.raises(ClientError) as error:
        client.copy_object(Bucket=taped, Key="copy", CopySource=f"{taped}/k3")
    assert code(error)[0] == "InvalidObjectState"
    assert {item["StorageClass"] for item in client.list_objects_v2(Bucket=taped)["Contents"]} == {"GLACIER"}


def test_restore(client, taped):
    restore = lambda days: client.restore_object(Bucket=taped, Key="k1", RestoreRequest={"Days": days})["ResponseMetadata"]["HTTPStatusCode"]  # noqa: E731
    assert restore(2) == 202
    text = wait_for_restore(client, taped, "k1")
    assert "expiry-date=" in text
    assert client.get_object(Bucket=taped, Key="k1")["Body"].read() == b"\x01" * 100_000
    assert client.head_object(Bucket=taped, Key="k1")["StorageClass"] == "GLACIER"
    assert restore(5) == 200
    assert client.head_object(Bucket=taped, Key="k1")["Restore"] != text, "the expiry moved"
    listed = client.list_objects_v2(Bucket=taped, Prefix="k1", OptionalObjectAttributes=["RestoreStatus"])["Contents"][0]
    assert listed["RestoreStatus"]["IsRestoreInProgress"] is False and listed["RestoreStatus"]["RestoreExpiryDate"]


def test_restore_of_what_is_not_archived(client, taped):
    client.put_object(Bucket=taped, Key="fresh", Body=b"x")
    with pytest.raises(ClientError) as error:
        client.restore_object(Bucket=taped, Key="fresh", RestoreRequest={"Days": 1})
    assert code(error) == ("InvalidObjectState", 403)
    with pytest.raises(ClientError) as error:
        client.restore_object(Bucket=taped, Key="missing", RestoreRequest={"Days": 1})
    assert code(error) == ("NoSuchKey", 404)


def test_overwrite_and_delete_of_an_evicted_object(client, taped):
    client.put_object(Bucket=taped, Key="k2", Body=b"new")
    assert client.get_object(Bucket=taped, Key="k2")["Body"].read() == b"new"
    client.delete_object(Bucket=taped, Key="k0")
    with pytest.raises(ClientError) as error:
        client.head_object(Bucket=taped, Key="k0")
    assert code(error)[1] == 404


def test_why_says_it_in_a_sentence(tape_server, taped):
    text = tape_server.cli("archive", "why", f"s3://{taped}/k4").stdout
    assert "explanation: " in text and "evicted" in text
