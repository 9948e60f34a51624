"""Requests that offer a window when no plane is open, or that offer it wrongly: declined as the protocol says, never stored as empty."""
import pytest
from conftest import raw_client
from server import Server

DC_TOKEN = "00007f0000000000:00001000:00000001:0000:000001:1:00000000000000000000ffff7f000001"


@pytest.fixture(scope="module")
def off(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("off"), ["--durability", "none", "--rdma", "off"]) as server:
        server.client().create_bucket(Bucket="plain")
        yield raw_client(server)


def test_put_is_declined_and_nothing_stored(off):
    answer = off.request("PUT", "/plain/key", headers={"x-amz-rdma-token": DC_TOKEN}, payload="UNSIGNED-PAYLOAD")
    assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["ETag"]) == (501, "501", None)
    assert off.request("HEAD", "/plain/key").status == 404


def test_get_is_declined_and_served_in_band(off):
    off.request("PUT", "/plain/key", body=b"hello")
    answer = off.request("GET", "/plain/key", headers={"x-amz-rdma-token": DC_TOKEN})
    assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.body) == (200, "501", b"hello")
    answer = off.request("GET", "/plain/key", headers={"x-amz-rdma-token": DC_TOKEN, "range": "bytes=1-2"})
    assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.body) == (206, "501", b"el")
    answer = off.request("GET", "/plain/key", headers={"x-amz-rdma-token": DC_TOKEN, "x-amz-rdma-mode": "require"})
    assert (answer.status, answer.headers["x-amz-rdma-reply"]) == (501, "501")


def test_head_ignores_the_token(off):
    off.request("PUT", "/plain/key", body=b"hello")
    answer = off.request("HEAD", "/plain/key", headers={"x-amz-rdma-token": DC_TOKEN})
    assert (answer.status, answer.headers["Content-Length"], answer.headers["x-amz-rdma-reply"]) == (200, "5", None)


def test_token_with_a_body(off):
    answer = off.request("PUT", "/plain/both", headers={"x-amz-rdma-token": DC_TOKEN}, body=b"hello")
    assert answer.status == 400
    assert off.request("HEAD", "/plain/both").status == 404


@pytest.mark.parametrize("token", ["", "x", DC_TOKEN + "0", DC_TOKEN.replace("00001000", "00000000"), DC_TOKEN[:-1] + "g"])
def test_malformed_token(off, token):
    answer = off.request("PUT", "/plain/malformed", headers={"x-amz-rdma-token": token}, payload="UNSIGNED-PAYLOAD")
    assert answer.status in (400, 501)
    assert off.request("HEAD", "/plain/malformed").status == 404


def test_unsigned_token(off):
    answer = off.request("PUT", "/plain/unsigned", change=lambda headers: headers.update({"x-amz-rdma-token": DC_TOKEN}))
    assert (answer.status, answer.code) == (403, "AccessDenied")
    assert off.request("HEAD", "/plain/unsigned").status == 404


def test_authorization_comes_before_the_token(off):
    off.secret_key, right = "wrong-secret", off.secret_key
    try:
        answer = off.request("PUT", "/plain/key2", headers={"x-amz-rdma-token": "not a token"}, payload="UNSIGNED-PAYLOAD")
    finally:
        off.secret_key = right
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")


def test_well_known(off):
    import json
    answer = off.request("GET", "/.well-known/reelway")
    document = json.loads(answer.body)
    assert (document["planes"], document["checksums"]) == ([], ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]) and document["small_object_bytes"] > 0
    assert off.request("GET", "/.well-known/reelway", sign=False).status == 403
