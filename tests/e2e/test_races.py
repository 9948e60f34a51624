"""What many clients do at once: conditional writes as locks, completes that are retried, descriptors that run out, clients that stall."""
import concurrent.futures
import socket
import threading
import time

import pytest
from conftest import NO_RETRY, raw_client
from server import Server

MIB = 1024 * 1024


def at_once(count, call):
    barrier = threading.Barrier(count)

    def run(index):
        barrier.wait()
        return call(index)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.parametrize("round", range(3))
def test_one_of_many_creates_wins(raw, s3, bucket, round):
    def put(index):
        return raw.request("PUT", f"/{bucket}/lock", headers={"If-None-Match": "*"}, body=b"%d" % index)
    answers = at_once(16, put)
    winners = [index for index, answer in enumerate(answers) if answer.status == 200]
    assert len(winners) == 1
    assert {answer.status for answer in answers} == {200, 412}
    assert s3.get_object(Bucket=bucket, Key="lock")["Body"].read() == b"%d" % winners[0]


def test_compare_and_swap_loses_no_step(raw, s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="counter", Body=b"0")["ETag"]

    def step(index):
        for _ in range(200):
            current = raw.request("GET", f"/{bucket}/counter")
            done = raw.request("PUT", f"/{bucket}/counter", headers={"If-Match": current.headers["ETag"]}, body=b"%d" % (int(current.body) + 1))
            if done.status == 200:
                return True
            assert done.status in (409, 412)
        return False
    assert all(at_once(8, step)) and etag
    assert s3.get_object(Bucket=bucket, Key="counter")["Body"].read() == b"8"


def test_one_of_many_conditional_completes_wins(s3, raw, bucket):
    ids = [s3.create_multipart_upload(Bucket=bucket, Key="joined")["UploadId"] for _ in range(8)]
    etags = [s3.upload_part(Bucket=bucket, Key="joined", UploadId=upload, PartNumber=1, Body=upload.encode())["ETag"] for upload in ids]

    def complete(index):
        body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etags[index]}</ETag></Part></CompleteMultipartUpload>"
        return raw.request("POST", f"/{bucket}/joined", query=[("uploadId", ids[index])], headers={"If-None-Match": "*"}, body=body.encode())
    answers = at_once(len(ids), complete)
    winners = [index for index, answer in enumerate(answers) if answer.status == 200]
    assert len(winners) == 1 and {answer.status for answer in answers} == {200, 412}
    assert s3.get_object(Bucket=bucket, Key="joined")["Body"].read() == ids[winners[0]].encode()


def test_many_completes_of_one_upload_are_one(s3, raw, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="big")["UploadId"]
    etags = [s3.upload_part(Bucket=bucket, Key="big", UploadId=upload, PartNumber=number, Body=bytes([number]) * (5 * MIB))["ETag"] for number in range(1, 9)]
    parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>" for number, etag in enumerate(etags, 1))
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    answers = at_once(40, lambda _: raw.request("POST", f"/{bucket}/big", query=[("uploadId", upload)], body=body))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.document.findtext("ETag") for answer in answers}) == 1
    assert s3.head_object(Bucket=bucket, Key="big")["ContentLength"] == 40 * MIB


def test_stalled_uploads_give_way(tmp_path):
    """More slow uploads than the pool has room for, which send a byte now and then: none may hold its chunks for good."""
    with Server(tmp_path, ["--durability", "none", "--pool-bytes", "32MiB", "--client-patience", "2s", "--rdma", "off"]) as server:
        s3 = server.client(config=NO_RETRY)
        s3.create_bucket(Bucket="slow")
        raw = raw_client(server)
        stop = threading.Event()
        sockets = [open_stalled(raw) for _ in range(150)]
        dripper = threading.Thread(target=drip, args=(sockets, stop))
        dripper.start()
        try:
            deadline = time.monotonic() + 120
            while True:
                answer = raw.request("PUT", "/slow/key", body=b"x" * (2 * MIB))
                if answer.status == 200:
                    break
                assert (answer.status, answer.code) == (503, "SlowDown") and answer.headers["Retry-After"]
                assert time.monotonic() < deadline, "the stalled uploads hold the pool"
        finally:
            stop.set()
            dripper.join()
            for one in sockets:
                one.close()
        assert [item["Key"] for item in s3.list_objects_v2(Bucket="slow")["Contents"]] == ["key"]


def open_stalled(raw):
    signature = raw.sign("PUT", "/slow/stalled", [], {}, "UNSIGNED-PAYLOAD")
    head = "PUT /slow/stalled HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signature.headers.items())
    one = socket.create_connection((raw.host, raw.port))
    one.sendall((head + f"Content-Length: {64 * MIB}\r\n\r\n").encode() + b"x" * 100_000)
    return one


def drip(sockets, stop):
    while not stop.wait(0.5):
        for one in sockets:
            try:
                one.sendall(b"x")
            except OSError:
                pass  # given up by the server, as it should be
