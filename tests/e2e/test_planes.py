"""Object bytes out of band, through the real binary: the command line client over shm and tcp, and signed requests with tokens made by hand."""
import json
import random
import signal
import socket
import struct
import subprocess
import threading

import pytest
from botocore.exceptions import ClientError
from conftest import NO_RETRY, make_bucket, raw_client
from planememory import Window, crc64nvme, token
from server import BINARY, Server

MIB = 1024 * 1024
FOREIGN = "192.0.2.1"
UNSIGNED = "UNSIGNED-PAYLOAD"


def body_of(size, seed=1):
    return random.Random(seed).randbytes(size)


def start(folder, provider, *options, vtl=None):
    trust = ["--rdma-shm-trust-local"] if provider == "shm" else ["--rdma-address", "127.0.0.1"]
    return Server(folder, ["--durability", "none", "--rdma", provider, *trust, *options], vtl=vtl)


@pytest.fixture(scope="module", params=["shm", "tcp"])
def plane(request, tmp_path_factory):
    with start(tmp_path_factory.mktemp(request.param), request.param) as server:
        server.provider = request.param
        yield server


@pytest.fixture(scope="module")
def shm(tmp_path_factory):
    with start(tmp_path_factory.mktemp("shm"), "shm") as server:
        yield server


@pytest.fixture(scope="module")
def tcp(tmp_path_factory):
    with start(tmp_path_factory.mktemp("tcp"), "tcp") as server:
        yield server


@pytest.fixture
def client(shm):
    return shm.client(config=NO_RETRY)


@pytest.fixture
def folder(client):
    yield from make_bucket(client)


@pytest.fixture
def raw(shm):
    return raw_client(shm)


def offer(raw, method, path, token, **options):
    """A signed request without a body that offers a window."""
    headers = {"x-amz-rdma-token": token, **options.pop("headers", {})}
    return raw.request(method, path, headers=headers, payload=UNSIGNED, **options)


def make_plane_bucket(plane):
    yield from make_bucket(plane.client(config=NO_RETRY))


@pytest.fixture
def plane_bucket(plane):
    yield from make_plane_bucket(plane)


# ---- reelway get and put ----

def test_get(plane, plane_bucket, tmp_path):
    client = plane.client()
    bodies = {"one": b"x", "small": body_of(60_000), "middle": body_of(MIB + 1), "big": body_of(40_000_001), "empty": b""}
    for name, body in bodies.items():
        client.put_object(Bucket=plane_bucket, Key=name, Body=body)
    report = json.loads(plane.cli("get", "--recursive", "--rdma", "require", "--json", f"s3://{plane_bucket}/", tmp_path).stdout)
    assert (report["objects"], report["plane"], report["failed"]) == (len(bodies), f"ofi1/{plane.provider}", [])
    for name, body in bodies.items():
        assert (tmp_path / name).read_bytes() == body, name


def test_put(plane, plane_bucket, tmp_path):
    bodies = {"one": b"x", "small": body_of(60_000), "middle": body_of(4 * MIB), "big": body_of(40_000_001), "empty": b""}
    for name, body in bodies.items():
        (tmp_path / name).write_bytes(body)
    report = json.loads(plane.cli("put", "--recursive", "--rdma", "require", "--json", tmp_path, f"s3://{plane_bucket}/").stdout)
    assert (report["objects"], report["plane"], report["failed"]) == (len(bodies), f"ofi1/{plane.provider}", [])
    client = plane.client()
    for name, body in bodies.items():
        assert client.get_object(Bucket=plane_bucket, Key=name)["Body"].read() == body, name
    assert "Uploads" not in client.list_multipart_uploads(Bucket=plane_bucket)


@pytest.mark.parametrize("command", ["get", "put"])
def test_a_killed_client_fails_its_own_transfers_alone(plane, plane_bucket, tmp_path, command):
    client = plane.client()
    source = tmp_path / "source"
    source.mkdir()
    for number in range(8):
        (source / str(number)).write_bytes(body_of(8 * MIB, number))
        client.put_object(Bucket=plane_bucket, Key=f"there/{number}", Body=(source / str(number)).read_bytes())
    arguments = {"get": ["get", "--recursive", "--digest", f"s3://{plane_bucket}/there/"],
                 "put": ["put", "--recursive", str(source), f"s3://{plane_bucket}/new/"]}[command]
    environment = {**plane.environment, "REELWAY_ENDPOINT": plane.endpoint}
    for delay in (0.05, 0.1, 0.2, 0.3):
        killed = subprocess.Popen([BINARY, *arguments, "--rdma", "require"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            killed.wait(delay)
        except subprocess.TimeoutExpired:
            killed.send_signal(signal.SIGKILL)
        killed.wait()
    for item in client.list_objects_v2(Bucket=plane_bucket, Prefix="new/").get("Contents", []):
        stored = client.get_object(Bucket=plane_bucket, Key=item["Key"])["Body"].read()
        assert stored == (source / item["Key"].removeprefix("new/")).read_bytes()
    report = json.loads(plane.cli("get", "--recursive", "--rdma", "require", "--json", f"s3://{plane_bucket}/there/", tmp_path / "back").stdout)
    assert (report["objects"], report["failed"]) == (8, [])
    for number in range(8):
        assert (tmp_path / "back" / str(number)).read_bytes() == (source / str(number)).read_bytes()


# ---- GET with a token ----

@pytest.mark.parametrize("size", [1, 60_000, 65_536, 65_537, 300_001])
def test_get_moves_the_object_and_says_so(raw, client, folder, size):
    body = body_of(size)
    client.put_object(Bucket=folder, Key="key", Body=body, Metadata={"colour": "blue"}, ContentType="text/x")
    in_band = raw.request("GET", f"/{folder}/key")
    with Window(size + 10) as window:
        answer = offer(raw, "GET", f"/{folder}/key", window.token())
        assert window.content == body + b"\xee" * 10
    headers = answer.headers
    assert (answer.status, answer.body, headers["Content-Length"], headers["x-amz-rdma-reply"]) == (200, b"", "0", "200")
    assert headers["x-amz-rdma-bytes-transferred"] == str(size)
    assert headers["x-amz-rdma-checksum"] == f"CRC64NVME {crc64nvme(body)}"
    assert headers["x-amz-rdma-checksum-crc64nvme"] == crc64nvme(body)
    for name in ("ETag", "Last-Modified", "Content-Type", "x-amz-meta-colour", "Accept-Ranges"):
        assert headers[name] == in_band.headers[name], name


def test_ranged_get_and_part_get(raw, client, folder):
    body = body_of(300_000)
    client.put_object(Bucket=folder, Key="key", Body=body)
    with Window(200_000) as window:
        answer = offer(raw, "GET", f"/{folder}/key", window.token(), headers={"range": "bytes=70001-200000"})
        assert window.content[:130_000] == body[70_001:200_001] and set(window.content[130_000:]) == {0xEE}
    headers = answer.headers
    assert (answer.status, answer.body, headers["x-amz-rdma-reply"], headers["Content-Length"]) == (206, b"", "206", "0")
    assert (headers["Content-Range"], headers["x-amz-rdma-bytes-transferred"]) == ("bytes 70001-200000/300000", "130000")
    assert headers["x-amz-rdma-checksum"] == f"CRC64NVME {crc64nvme(body[70_001:200_001])}"
    with Window(300_000) as window:
        answer = offer(raw, "GET", f"/{folder}/key", window.token(), query=[("partNumber", "1")])
        assert window.content == body
    assert (answer.status, answer.headers["x-amz-rdma-reply"]) == (206, "206")
    with Window(10) as window:
        answer = offer(raw, "GET", f"/{folder}/key", window.token(), headers={"range": "bytes=300000-"})
        assert (answer.status, answer.code, window.untouched) == (416, "InvalidRange", True)


def test_head_ignores_the_token_and_empty_objects_move_nothing(raw, client, folder):
    client.put_object(Bucket=folder, Key="key", Body=b"hello")
    client.put_object(Bucket=folder, Key="empty", Body=b"")
    with Window(5) as window:
        answer = offer(raw, "HEAD", f"/{folder}/key", window.token())
        assert (answer.status, answer.headers["Content-Length"], answer.headers["x-amz-rdma-reply"]) == (200, "5", None)
        answer = offer(raw, "GET", f"/{folder}/empty", window.token())
        assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-bytes-transferred"]) == (200, "200", "0")
        assert window.untouched


def test_a_window_too_small_is_declined(raw, client, folder):
    body = body_of(1000)
    client.put_object(Bucket=folder, Key="key", Body=body)
    with Window(1000) as window:
        answer = offer(raw, "GET", f"/{folder}/key", window.token(size=999))
        assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-decline"], answer.body) == (200, "501", "size", body)
        answer = offer(raw, "GET", f"/{folder}/key", window.token(size=999), headers={"x-amz-rdma-mode": "require"})
        assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.code) == (501, "501", "NotImplemented")
        answer = offer(raw, "GET", f"/{folder}/key", window.token(size=999), headers={"range": "bytes=0-998"})
        assert (answer.status, answer.headers["x-amz-rdma-reply"]) == (206, "206")
        assert window.content == body[:999] + b"\xee"


def test_failed_conditions_come_before_the_window(raw, client, folder):
    etag = client.put_object(Bucket=folder, Key="key", Body=b"hello")["ETag"]
    with Window(5) as window:
        assert offer(raw, "GET", f"/{folder}/key", window.token(), headers={"if-match": '"other"'}).status == 412
        assert offer(raw, "GET", f"/{folder}/key", window.token(), headers={"if-none-match": etag}).status == 304
        assert offer(raw, "GET", f"/{folder}/none", window.token()).status == 404
        assert window.untouched


def test_windows_that_are_not_there(raw, client, folder):
    """The process has ended: declined. The process lives, but has no memory at the address: the transfer fails. The next one is fine."""
    body = body_of(100_000)
    client.put_object(Bucket=folder, Key="key", Body=body)
    with Window(100_000) as window:
        gone = window.token()
        unmapped = token(4096, 100_000, window.endpoint)
        answer = offer(raw, "GET", f"/{folder}/key", unmapped)
        assert (answer.status, answer.code, answer.headers["x-amz-rdma-reply"]) == (500, "RDMATransferFailed", None)
        answer = offer(raw, "PUT", f"/{folder}/new", unmapped)
        assert (answer.status, answer.code, answer.headers["ETag"]) == (500, "RDMATransferFailed", None)
        assert raw.request("HEAD", f"/{folder}/new").status == 404
        assert offer(raw, "GET", f"/{folder}/key", window.token()).status == 200
        assert window.content == body
    answer = offer(raw, "GET", f"/{folder}/key", gone)
    assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-decline"], answer.body) == (200, "501", "fabric", body)
    answer = offer(raw, "PUT", f"/{folder}/new", gone)
    assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["ETag"]) == (501, "501", None)
    assert raw.request("HEAD", f"/{folder}/new").status == 404


def test_a_file_cut_short_while_it_is_served_fails_its_get_alone(shm, raw, client, folder):
    """Metadata says one size and the file has another only for a moment: whatever a GET meets then, the server goes on."""
    body = body_of(4 * MIB)
    client.put_object(Bucket=folder, Key="key", Body=body)
    client.put_object(Bucket=folder, Key="other", Body=body)
    path = shm.root / folder / "key"
    ended = threading.Event()

    def cut():
        while not ended.is_set():
            with open(path, "r+b") as file:
                file.truncate(100)
                file.truncate(len(body))

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        with Window(len(body)) as window:
            for _ in range(50):
                assert offer(raw, "GET", f"/{folder}/key", window.token()).status in (200, 500)
    finally:
        ended.set()
        cutter.join()
    with Window(len(body)) as window:
        assert offer(raw, "GET", f"/{folder}/other", window.token()).status == 200
        assert window.content == body


# ---- PUT with a token ----

@pytest.mark.parametrize("size", [1, 65_536, 300_001, 4 * MIB, 9 * MIB + 5])
def test_put_stores_the_window(raw, client, folder, size):
    body = body_of(size)
    with Window(size, body) as window:
        answer = offer(raw, "PUT", f"/{folder}/key", window.token(), headers={"x-amz-meta-colour": "blue", "content-type": "text/x"})
    headers = answer.headers
    assert (answer.status, answer.body, headers["Content-Length"], headers["x-amz-rdma-reply"]) == (200, b"", "0", "200")
    assert headers["x-amz-rdma-bytes-transferred"] == str(size)
    stored = client.get_object(Bucket=folder, Key="key")
    assert (stored["ETag"], stored["Metadata"], stored["ContentType"]) == (headers["ETag"], {"colour": "blue"}, "text/x")
    assert stored["Body"].read() == body
    if size < MIB:
        assert headers["x-amz-rdma-checksum"] == f"CRC64NVME {crc64nvme(body)}"


def test_parts_may_come_by_either_road(raw, client, folder):
    bodies = [body_of(5 * MIB, 1), body_of(5 * MIB, 2), body_of(1000, 3)]
    upload = client.create_multipart_upload(Bucket=folder, Key="key")["UploadId"]
    parts = []
    for number, body in enumerate(bodies, 1):
        query = [("partNumber", str(number)), ("uploadId", upload)]
        if number == 2:
            answer = raw.request("PUT", f"/{folder}/key", query=query, body=body)
        else:
            with Window(len(body), body) as window:
                answer = offer(raw, "PUT", f"/{folder}/key", window.token(), query=query)
            assert (answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-bytes-transferred"]) == ("200", str(len(body)))
        assert (answer.status, answer.headers["Content-Length"]) == (200, "0")
        parts.append({"PartNumber": number, "ETag": answer.headers["ETag"]})
    client.complete_multipart_upload(Bucket=folder, Key="key", UploadId=upload, MultipartUpload={"Parts": parts})
    assert client.get_object(Bucket=folder, Key="key")["Body"].read() == b"".join(bodies)


def test_a_checksum_that_does_not_match_stores_nothing(raw, client, folder):
    body, other = body_of(200_000), body_of(200_000, 2)
    client.put_object(Bucket=folder, Key="key", Body=b"before")
    upload = client.create_multipart_upload(Bucket=folder, Key="part")["UploadId"]
    wrong = {"x-amz-checksum-crc64nvme": crc64nvme(other)}
    with Window(len(body), body) as window:
        answer = offer(raw, "PUT", f"/{folder}/key", window.token(), headers=wrong)
        assert (answer.status, answer.code, answer.headers["x-amz-rdma-reply"], answer.headers["ETag"]) == (400, "BadDigest", None, None)
        answer = offer(raw, "PUT", f"/{folder}/part", window.token(), headers=wrong, query=[("partNumber", "1"), ("uploadId", upload)])
        assert (answer.status, answer.code) == (400, "BadDigest")
        assert "Parts" not in client.list_parts(Bucket=folder, Key="part", UploadId=upload)
        assert client.get_object(Bucket=folder, Key="key")["Body"].read() == b"before"
        answer = offer(raw, "PUT", f"/{folder}/key", window.token(), headers={"x-amz-checksum-crc64nvme": crc64nvme(body)})
        assert (answer.status, answer.headers["x-amz-checksum-crc64nvme"]) == (200, crc64nvme(body))


def test_put_if_none_match(raw, client, folder):
    with Window(5, b"hello") as window:
        only_new = {"if-none-match": "*"}
        assert offer(raw, "PUT", f"/{folder}/key", window.token(), headers=only_new).status == 200
        answer = offer(raw, "PUT", f"/{folder}/key", window.token(), headers=only_new)
        assert (answer.status, answer.code, answer.headers["x-amz-rdma-reply"]) == (412, "PreconditionFailed", None)
    assert client.get_object(Bucket=folder, Key="key")["Body"].read() == b"hello"


def test_a_window_larger_than_any_put_is_refused_before_it_is_read(raw, folder):
    with Window(5, b"hello") as window:
        answer = offer(raw, "PUT", f"/{folder}/key", window.token(size=5 * 1024 * MIB + 1))
        assert (answer.status, answer.code) == (400, "EntityTooLarge")
        assert answer.document.findtext("ProposedSize") == str(5 * 1024 * MIB + 1)
    assert raw.request("HEAD", f"/{folder}/key").status == 404


@pytest.mark.parametrize("text", ["", "garbage", "1000:0:ofi1:shm:aa:1", "1000:10:ofi1:shm::1", "ffffffffffffffff:10:ofi1:shm:aa:1", "1000:10:ofi1:shm:a:1",
                                  "1000:10:ofi1:shm:aa:1:", "x" * 5000])
def test_malformed_tokens(raw, client, folder, text):
    client.put_object(Bucket=folder, Key="there", Body=b"hello")
    if text:
        for method, key in (("PUT", "key"), ("GET", "there")):
            answer = offer(raw, method, f"/{folder}/{key}", text)
            assert (answer.status, answer.code, answer.headers["x-amz-rdma-reply"]) == (400, "InvalidRDMAToken", None)
    else:
        assert offer(raw, "PUT", f"/{folder}/key", text).status != 200
    assert raw.request("HEAD", f"/{folder}/key").status == 404


def test_names_of_other_processes_are_refused(shm, raw, client, folder):
    """A segment that is not its process's, one of another provider, one that is not there, and a name with a path in it."""
    client.put_object(Bucket=folder, Key="key", Body=b"hello")
    with Window(5) as window:
        names = [b"fi_shm://1:0:99999\0", b"fi_shm://../../etc/passwd\0", b"fi_shm://\0", b"fi_shm://0:0:0\0", bytes(16)]
        for name in names:
            answer = offer(raw, "GET", f"/{folder}/key", token(window.address, 5, name))
            assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.body) == (200, "501", b"hello"), name
            assert offer(raw, "PUT", f"/{folder}/new", token(window.address, 5, name)).status == 501
        answer = offer(raw, "GET", f"/{folder}/key", token(window.address, 5, window.endpoint, provider="tcp"))
        assert (answer.headers["x-amz-rdma-decline"], answer.body) == ("token-form", b"hello")
        assert window.untouched
    assert raw.request("HEAD", f"/{folder}/new").status == 404


def test_tokens_never_reach_the_log(shm, raw, folder):
    with Window(5, b"hello") as window:
        offered = window.token()
        offer(raw, "PUT", f"/{folder}/key", offered)
        offer(raw, "GET", f"/{folder}/key", token(4096, 5, window.endpoint))
    assert offered.split(":")[4] not in shm.log_text()


# ---- whom tcp connects to ----

def socket_name(address, port=9):
    return struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton(address))


def test_a_foreign_address_is_declined(tcp):
    raw = raw_client(tcp)
    for bucket in make_bucket(tcp.client(config=NO_RETRY)):
        tcp.client().put_object(Bucket=bucket, Key="key", Body=b"hello")
        for address in (FOREIGN, "127.0.0.2"):
            foreign = token(4096, 5, socket_name(address), provider="tcp")
            answer = offer(raw, "GET", f"/{bucket}/key", foreign)
            assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-decline"]) == (200, "501", "policy")
            assert answer.body == b"hello"
            answer = offer(raw, "PUT", f"/{bucket}/new", foreign)
            assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-decline"]) == (501, "501", "policy")
        assert raw.request("HEAD", f"/{bucket}/new").status == 404


def test_listed_addresses_are_connected_to(tmp_path):
    """Nobody answers there, so the reason differs: it was tried."""
    with start(tmp_path, "tcp", "--rdma-peers", "10.0.0.0/8", "--rdma-peers", "127.0.0.0/30") as server:
        raw = raw_client(server)
        server.client().create_bucket(Bucket="listed")
        server.client().put_object(Bucket="listed", Key="key", Body=b"hello")
        reasons = {address: offer(raw, "GET", "/listed/key", token(4096, 5, socket_name(address), provider="tcp")).headers["x-amz-rdma-decline"]
                   for address in ("127.0.0.2", "127.0.0.9")}
        assert reasons == {"127.0.0.2": "fabric", "127.0.0.9": "policy"}


def test_a_wrong_network_is_a_usage_error(tmp_path):
    with pytest.raises(RuntimeError, match="rdma-peers.*10.0.0.0/99"):
        start(tmp_path, "tcp", "--rdma-peers", "10.0.0.0/99").start()


# ---- what lies on tape ----

def put_on_tape_only(server, bucket, body):
    server.client().put_object(Bucket=bucket, Key="key", Body=body)
    server.cli("archive", "policy", "set", "--bucket", bucket, "--pool", "a", "--pool", "b")
    server.cli("archive", "now", "--bucket", bucket)
    server.cli("archive", "evict", "--bucket", bucket)


def test_an_evicted_object_answers_as_in_band(tmp_path):
    with start(tmp_path, "shm", vtl="drives=2,cartridges=4") as server:
        client, raw = server.client(config=NO_RETRY), raw_client(server)
        for bucket in make_bucket(client):
            put_on_tape_only(server, bucket, body_of(100_000))
            with pytest.raises(ClientError):
                client.get_object(Bucket=bucket, Key="key")
            with Window(100_000) as window:
                answer = offer(raw, "GET", f"/{bucket}/key", window.token())
                in_band = raw.request("GET", f"/{bucket}/key")
                assert (answer.status, answer.code) == (in_band.status, in_band.code) == (403, "InvalidObjectState")
                assert answer.headers["x-amz-rdma-reply"] is None and window.untouched


def test_an_object_on_tape_is_recalled_into_the_window(tmp_path):
    with start(tmp_path, "shm", "--recall-on-read", vtl="drives=2,cartridges=4") as server:
        client, raw = server.client(config=NO_RETRY), raw_client(server)
        for bucket in make_bucket(client):
            body = body_of(300_000)
            put_on_tape_only(server, bucket, body)
            with Window(len(body)) as window:
                answer = offer(raw, "GET", f"/{bucket}/key", window.token())
                assert (answer.status, answer.headers["x-amz-rdma-reply"], answer.headers["x-amz-rdma-bytes-transferred"]) == (200, "200", "300000")
                assert window.content == body
