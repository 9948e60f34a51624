"""Every way in which the bytes of a PUT may come, right and wrong. What is wrong must store nothing."""
import base64
import hashlib
import random
import socket
import zlib

import pytest
from rawclient import STREAMING, STREAMING_TRAILER, UNSIGNED, UNSIGNED_TRAILER, md5_base64

SIZES = [0, 1, 8191, 8192, 65536, 65537, 171_164, 1_000_003, 5 * 1024 * 1024 + 17]
STREAMS = [STREAMING, STREAMING_TRAILER, UNSIGNED_TRAILER]


def crc32(body):
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def body_of(size):
    return random.Random(size).randbytes(size)


def put(raw, bucket, body, key="key", **options):
    return raw.request("PUT", f"/{bucket}/{key}", body=body, **options)


def assert_nothing_stored(raw, bucket, key="key"):
    assert raw.request("HEAD", f"/{bucket}/{key}").status == 404


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("payload", [None, UNSIGNED, *STREAMS])
def test_every_form_and_size(raw, bucket, payload, size):
    body = body_of(size)
    trailer = ("x-amz-checksum-crc32", crc32(body)) if payload and payload.endswith("TRAILER") else None
    answer = put(raw, bucket, body, payload=payload, trailer=trailer)
    assert answer.status == 200, answer.body
    assert answer.headers["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    got = raw.request("GET", f"/{bucket}/key")
    assert (got.status, got.body == body) == (200, True)
    assert got.headers.get("Content-Encoding") is None, "aws-chunked is no encoding of the object"


@pytest.mark.parametrize("payload", STREAMS)
def test_transfer_encoding_chunked_with_decoded_length_only(raw, bucket, payload):
    body = body_of(100_000)
    trailer = ("x-amz-checksum-crc32", crc32(body)) if payload.endswith("TRAILER") else None
    assert put(raw, bucket, body, payload=payload, trailer=trailer, send_length=False).status == 200
    assert raw.request("GET", f"/{bucket}/key").body == body


@pytest.mark.parametrize("payload, spoil", [(STREAMING, 0), (STREAMING, 2), (STREAMING, "final"), (STREAMING_TRAILER, 1), (STREAMING_TRAILER, "trailer")])
def test_a_wrong_chunk_signature_stores_nothing(raw, bucket, payload, spoil):
    body = body_of(200_000)
    trailer = ("x-amz-checksum-crc32", crc32(body)) if payload.endswith("TRAILER") else None
    answer = put(raw, bucket, body, payload=payload, trailer=trailer, spoil=spoil)
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    assert_nothing_stored(raw, bucket)


def test_content_encoding_beside_aws_chunked_stays(raw, bucket):
    assert put(raw, bucket, b"z" * 100, payload=STREAMING, headers={"content-encoding": "aws-chunked,gzip"}).status == 200
    assert raw.request("HEAD", f"/{bucket}/key").headers["Content-Encoding"] == "gzip"


def test_signed_hash_of_another_body(raw, bucket):
    answer = put(raw, bucket, b"what was sent", payload=hashlib.sha256(b"what was meant").hexdigest())
    assert (answer.status, answer.code) == (400, "XAmzContentSHA256Mismatch")
    assert answer.document.findtext("S3ComputedContentSHA256") == hashlib.sha256(b"what was sent").hexdigest()
    assert_nothing_stored(raw, bucket)


@pytest.mark.parametrize("size", [10, 300_000])
def test_content_md5(raw, bucket, size):
    body = body_of(size)
    assert put(raw, bucket, body, headers={"content-md5": md5_base64(body)}).status == 200
    answer = put(raw, bucket, body, key="wrong", headers={"content-md5": md5_base64(b"other")})
    assert (answer.status, answer.code) == (400, "BadDigest")
    assert_nothing_stored(raw, bucket, "wrong")


@pytest.mark.parametrize("value", ["", "short", "AAAA"])
def test_malformed_content_md5(raw, bucket, value):
    answer = put(raw, bucket, b"x", headers={"content-md5": value})
    assert (answer.status, answer.code) == (400, "InvalidDigest")


def test_trailer_with_a_wrong_value(raw, bucket):
    for payload in (UNSIGNED_TRAILER, STREAMING_TRAILER):
        answer = put(raw, bucket, b"x" * 10_000, payload=payload, trailer=("x-amz-checksum-crc32", crc32(b"y")))
        assert (answer.status, answer.code) == (400, "BadDigest")
        assert_nothing_stored(raw, bucket)


def test_announced_trailer_that_does_not_come(raw, bucket):
    answer = put(raw, bucket, b"x" * 10_000, payload=UNSIGNED_TRAILER, headers={"x-amz-trailer": "x-amz-checksum-crc32"})
    assert (answer.status, answer.code) == (400, "MalformedTrailerError")
    assert_nothing_stored(raw, bucket)


def test_no_trailer_announced_succeeds_with_crc64nvme(raw, bucket):
    answer = put(raw, bucket, b"123456789", payload=UNSIGNED_TRAILER)
    assert (answer.status, answer.headers["x-amz-checksum-crc64nvme"]) == (200, "rosUhgp5mIg=")


def test_algorithm_and_trailer_must_agree(raw, bucket):
    answer = put(raw, bucket, b"x" * 10_000, payload=UNSIGNED_TRAILER, trailer=("x-amz-checksum-crc32", crc32(b"x" * 10_000)),
                 headers={"x-amz-sdk-checksum-algorithm": "SHA256"})
    assert (answer.status, answer.code) == (400, "InvalidRequest")


@pytest.mark.parametrize("decoded", [99_999, 100_001])
def test_decoded_length_that_is_not_the_body(raw, bucket, decoded):
    answer = put(raw, bucket, b"x" * 100_000, payload=STREAMING, decoded_length=decoded)
    assert answer.status == 400 and answer.code in ("IncompleteBody", "InvalidRequest"), answer.body
    assert_nothing_stored(raw, bucket)


def test_small_chunks_are_refused(raw, bucket):
    answer = put(raw, bucket, b"x" * 20_000, payload=STREAMING, chunk_size=1000)
    assert (answer.status, answer.code) == (400, "InvalidChunkSizeError")
    assert_nothing_stored(raw, bucket)


def test_ecdsa_is_not_implemented(raw, bucket):
    answer = put(raw, bucket, b"x", payload="STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", headers={"x-amz-decoded-content-length": "1"})
    assert (answer.status, answer.code) == (501, "NotImplemented")


def test_streaming_is_for_uploads_only(raw, bucket):
    body = b'<Delete><Object><Key>a</Key></Object></Delete>'
    answer = raw.request("POST", f"/{bucket}", query=[("delete", "")], body=body, payload=STREAMING, headers={"content-md5": md5_base64(body)})
    assert (answer.status, answer.code) == (400, "InvalidRequest")


def test_missing_length(raw, bucket):
    answer = put(raw, bucket, b"abc", payload=UNSIGNED, send_length=False)
    assert (answer.status, answer.code) == (411, "MissingContentLength")


@pytest.mark.parametrize("value", ["zz", "A" * 64, ""])
def test_invalid_content_sha256(raw, bucket, value):
    answer = put(raw, bucket, b"x", change=lambda headers: headers.update({"x-amz-content-sha256": value}))
    assert answer.status in (400, 403), answer.body
    assert_nothing_stored(raw, bucket)


def head_of_put(raw, bucket, length, expect):
    signature = raw.sign("PUT", f"/{bucket}/key", [], {"expect": "100-continue"} if expect else {}, UNSIGNED)
    lines = [f"PUT /{bucket}/key HTTP/1.1", f"Content-Length: {length}"] + [f"{name}: {value}" for name, value in signature.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_client_that_stops_in_the_middle(server, raw, bucket):
    with socket.create_connection((raw.host, raw.port), timeout=10) as connection:
        connection.sendall(head_of_put(raw, bucket, 1000, False) + b"x" * 500)
    assert_nothing_stored(raw, bucket)
    assert not [path for path in (server.root / ".reelway/tmp").rglob("*") if path.is_file()]


def test_continue_comes_only_after_authorization(raw, bucket):
    with socket.create_connection((raw.host, raw.port), timeout=10) as connection:
        connection.sendall(head_of_put(raw, bucket, 5, True))
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"hello")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    raw.secret_key = "wrong-secret"
    with socket.create_connection((raw.host, raw.port), timeout=10) as connection:
        connection.sendall(head_of_put(raw, bucket, 5, True))
        assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")


def test_continue_comes_only_when_conditions_hold(raw, bucket):
    assert put(raw, bucket, b"first").status == 200
    signature = raw.sign("PUT", f"/{bucket}/key", [], {"expect": "100-continue", "if-none-match": "*"}, UNSIGNED)
    lines = [f"PUT /{bucket}/key HTTP/1.1", "Content-Length: 5"] + [f"{name}: {value}" for name, value in signature.headers.items()]
    with socket.create_connection((raw.host, raw.port), timeout=10) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 412 ")
