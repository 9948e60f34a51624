"""The whole multipart family."""
import base64
import hashlib
import random
import zlib

import boto3.s3.transfer
import pytest
from botocore.exceptions import ClientError

MIB = 1024 * 1024
PART = 5 * MIB


def code(error):
    return error.value.response["Error"]["Code"]


def body_of(size, seed=3):
    return random.Random(seed).randbytes(size)


def create(s3, bucket, key="key", **options):
    return s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]


def upload(s3, bucket, upload_id, number, body, key="key", **options):
    answer = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=body, **options)
    return {"PartNumber": number, "ETag": answer["ETag"]}


def complete(s3, bucket, upload_id, parts, key="key", **options):
    return s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts}, **options)


def multipart_etag(bodies):
    return f'"{hashlib.md5(b"".join(hashlib.md5(body).digest() for body in bodies)).hexdigest()}-{len(bodies)}"'


def test_three_parts(s3, bucket):
    bodies = [body_of(PART, 1), body_of(PART + 1, 2), body_of(77, 3)]
    upload_id = create(s3, bucket, Metadata={"a": "b"}, ContentType="text/x")
    parts = [upload(s3, bucket, upload_id, number, body) for number, body in enumerate(bodies, 1)]
    with pytest.raises(ClientError):
        s3.head_object(Bucket=bucket, Key="key")
    answer = complete(s3, bucket, upload_id, parts)
    assert answer["ETag"] == multipart_etag(bodies)
    got = s3.get_object(Bucket=bucket, Key="key")
    assert got["Body"].read() == b"".join(bodies)
    assert (got["Metadata"], got["ContentType"], got["ETag"]) == ({"a": "b"}, "text/x", multipart_etag(bodies))
    for number, body in enumerate(bodies, 1):
        part = s3.get_object(Bucket=bucket, Key="key", PartNumber=number)
        assert part["Body"].read() == body and part["PartsCount"] == 3
        assert part["ResponseMetadata"]["HTTPStatusCode"] == 206
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="key", PartNumber=4)
    assert code(error) == "InvalidPartNumber"


def test_parts_may_be_sent_again_and_left_out(s3, bucket):
    upload_id = create(s3, bucket)
    upload(s3, bucket, upload_id, 1, b"old" * MIB)
    first = upload(s3, bucket, upload_id, 1, body_of(PART, 1))
    upload(s3, bucket, upload_id, 3, b"left out")
    last = upload(s3, bucket, upload_id, 10_000, b"last")
    complete(s3, bucket, upload_id, [first, last])
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == body_of(PART, 1) + b"last"


def test_completing_again_says_the_same(s3, bucket):
    upload_id = create(s3, bucket)
    parts = [upload(s3, bucket, upload_id, 1, b"x")]
    first = complete(s3, bucket, upload_id, parts)
    assert complete(s3, bucket, upload_id, parts)["ETag"] == first["ETag"]


def test_refusals(s3, bucket):
    upload_id = create(s3, bucket)
    small, second = upload(s3, bucket, upload_id, 1, b"small"), upload(s3, bucket, upload_id, 2, b"last")
    for parts, expected in (([small, second], "EntityTooSmall"), ([second, small], "InvalidPartOrder"), ([small, small], "InvalidPartOrder"),
                            ([{"PartNumber": 1, "ETag": '"' + "0" * 32 + '"'}], "InvalidPart"), ([{"PartNumber": 7, "ETag": small["ETag"]}], "InvalidPart"),
                            ([], "MalformedXML")):
        with pytest.raises(ClientError) as error:
            complete(s3, bucket, upload_id, parts)
        assert code(error) == expected, parts
    with pytest.raises(ClientError) as error:
        complete(s3, bucket, upload_id, [small], MpuObjectSize=6)
    assert code(error) == "InvalidRequest"
    assert complete(s3, bucket, upload_id, [small], MpuObjectSize=5)["ETag"]


@pytest.mark.parametrize("operation", ["upload", "complete", "abort", "list"])
def test_unknown_upload(s3, bucket, operation):
    calls = {"upload": lambda: upload(s3, bucket, "unknown-id", 1, b"x"), "complete": lambda: complete(s3, bucket, "unknown-id", [{"PartNumber": 1, "ETag": '"0"'}]),
             "abort": lambda: s3.abort_multipart_upload(Bucket=bucket, Key="key", UploadId="unknown-id"),
             "list": lambda: s3.list_parts(Bucket=bucket, Key="key", UploadId="unknown-id")}
    with pytest.raises(ClientError) as error:
        calls[operation]()
    assert code(error) == "NoSuchUpload" and error.value.response["Error"]["UploadId"] == "unknown-id"


@pytest.mark.parametrize("number", ["0", "10001", "x", "-1"])
def test_part_numbers_out_of_range(raw, s3, bucket, number):
    upload_id = create(s3, bucket)
    answer = raw.request("PUT", f"/{bucket}/key", query=[("partNumber", number), ("uploadId", upload_id)], body=b"x")
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_abort(s3, bucket):
    upload_id = create(s3, bucket)
    upload(s3, bucket, upload_id, 1, b"x")
    s3.abort_multipart_upload(Bucket=bucket, Key="key", UploadId=upload_id)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    with pytest.raises(ClientError) as error:
        upload(s3, bucket, upload_id, 1, b"x")
    assert code(error) == "NoSuchUpload"


def test_list_parts_in_pages(s3, bucket):
    upload_id = create(s3, bucket)
    for number in (1, 2, 5, 9):
        upload(s3, bucket, upload_id, number, b"x" * number)
    page = s3.list_parts(Bucket=bucket, Key="key", UploadId=upload_id, MaxParts=3)
    assert [part["PartNumber"] for part in page["Parts"]] == [1, 2, 5] and page["IsTruncated"] and page["NextPartNumberMarker"] == 5
    page = s3.list_parts(Bucket=bucket, Key="key", UploadId=upload_id, PartNumberMarker=5)
    assert [(part["PartNumber"], part["Size"]) for part in page["Parts"]] == [(9, 9)] and not page["IsTruncated"]


def test_list_uploads(s3, bucket):
    ids = [create(s3, bucket, key) for key in ("a", "a", "b/x", "b/y", "c")]
    entries = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [entry["Key"] for entry in entries] == ["a", "a", "b/x", "b/y", "c"] and {entry["UploadId"] for entry in entries} == set(ids)
    page = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [entry["Key"] for entry in page["Uploads"]] == ["a", "a", "c"] and page["CommonPrefixes"] == [{"Prefix": "b/"}]
    found, options = [], {}
    while True:
        page = s3.list_multipart_uploads(Bucket=bucket, MaxUploads=1, **options)
        found += [entry["UploadId"] for entry in page.get("Uploads", [])]
        if not page["IsTruncated"]:
            break
        options = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert found == [entry["UploadId"] for entry in entries]


def test_composite_checksum(s3, bucket):
    bodies = [body_of(PART, 1), b"tail"]
    upload_id = create(s3, bucket, ChecksumAlgorithm="SHA256")
    parts = []
    for number, body in enumerate(bodies, 1):
        answer = s3.upload_part(Bucket=bucket, Key="key", UploadId=upload_id, PartNumber=number, Body=body, ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": answer["ChecksumSHA256"]})
    wrong = [{**parts[0], "ChecksumSHA256": parts[1]["ChecksumSHA256"]}, parts[1]]
    with pytest.raises(ClientError) as error:
        complete(s3, bucket, upload_id, wrong)
    assert code(error) == "InvalidPart"
    answer = complete(s3, bucket, upload_id, parts)
    digest = hashlib.sha256(b"".join(hashlib.sha256(body).digest() for body in bodies)).digest()
    assert answer["ChecksumSHA256"] == base64.b64encode(digest).decode() + "-2"
    head = s3.head_object(Bucket=bucket, Key="key", ChecksumMode="ENABLED")
    assert (head["ChecksumSHA256"], head["ChecksumType"]) == (answer["ChecksumSHA256"], "COMPOSITE")


def test_full_object_checksum(s3, bucket):
    bodies = [body_of(PART, 1), b"tail"]
    value = base64.b64encode(zlib.crc32(b"".join(bodies)).to_bytes(4, "big")).decode()
    for claimed, expected in (("AAAAAA==", "BadDigest"), (value, None)):
        upload_id = create(s3, bucket, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")
        parts = [upload(s3, bucket, upload_id, number, body, ChecksumAlgorithm="CRC32") for number, body in enumerate(bodies, 1)]
        if expected:
            with pytest.raises(ClientError) as error:
                complete(s3, bucket, upload_id, parts, ChecksumCRC32=claimed)
            assert code(error) == expected
            s3.abort_multipart_upload(Bucket=bucket, Key="key", UploadId=upload_id)
        else:
            assert complete(s3, bucket, upload_id, parts, ChecksumCRC32=claimed)["ChecksumCRC32"] == value
    head = s3.head_object(Bucket=bucket, Key="key", ChecksumMode="ENABLED")
    assert (head["ChecksumCRC32"], head["ChecksumType"]) == (value, "FULL_OBJECT")


def test_parts_without_the_declared_checksum_get_it(raw, s3, bucket):
    upload_id = create(s3, bucket, ChecksumAlgorithm="SHA1")
    answer = raw.request("PUT", f"/{bucket}/key", query=[("partNumber", "1"), ("uploadId", upload_id)], body=b"part")
    assert answer.headers["x-amz-checksum-sha1"] == base64.b64encode(hashlib.sha1(b"part").digest()).decode()


def test_conditional_complete(s3, bucket):
    upload_id = create(s3, bucket)
    parts = [upload(s3, bucket, upload_id, 1, b"x")]
    s3.put_object(Bucket=bucket, Key="key", Body=b"was faster")
    with pytest.raises(ClientError) as error:
        complete(s3, bucket, upload_id, parts, IfNoneMatch="*")
    assert code(error) == "PreconditionFailed"
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"was faster"


def test_part_copies(s3, bucket):
    source = body_of(2 * PART + 100, 9)
    s3.put_object(Bucket=bucket, Key="source", Body=source)
    upload_id = create(s3, bucket)
    parts = []
    for number, text in enumerate((f"bytes=0-{PART - 1}", f"bytes={PART}-{2 * PART + 99}"), 1):
        answer = s3.upload_part_copy(Bucket=bucket, Key="key", UploadId=upload_id, PartNumber=number, CopySource={"Bucket": bucket, "Key": "source"}, CopySourceRange=text)
        parts.append({"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]})
    complete(s3, bucket, upload_id, parts)
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == source
    for text in ("bytes=0-999999999", "bytes=5-", "bytes=9-2", "0-5"):
        upload_id = create(s3, bucket, "other")
        with pytest.raises(ClientError) as error:
            s3.upload_part_copy(Bucket=bucket, Key="other", UploadId=upload_id, PartNumber=1, CopySource={"Bucket": bucket, "Key": "source"}, CopySourceRange=text)
        assert code(error) in ("InvalidArgument", "InvalidRange"), text


def test_transfer_manager(s3, bucket, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(body_of(40 * MIB + 12345, 4))
    config = boto3.s3.transfer.TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB)
    s3.upload_file(str(source), bucket, "big", Config=config)
    s3.download_file(bucket, "big", str(target), Config=config)
    assert target.read_bytes() == source.read_bytes()
    assert s3.head_object(Bucket=bucket, Key="big")["ETag"].endswith('-6"')
