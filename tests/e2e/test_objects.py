"""Put, get, head, delete: metadata, ranges, conditions, checksums, error documents."""
import base64
import concurrent.futures
import datetime
import hashlib
import random

import pytest
from botocore.exceptions import ClientError

ODD_KEYS = ["plain", "with space", "plus+and=eq&amp", "percent%20literal", "question?mark", "hash#mark", "semi;colon:,", "a//b", "./dot", "../up", "trailing/",
            "ü/日本語/📼", "quote\"'`<>", "tab\tkey", "back\\slash", "*[glob]{}", "-dash", "n" * 255, "long/" * 200, "k" * 1024, "a" * 300 + "/b", "..", ".",
            "%2F", "&lt;", "key|pipe^caret~", "\u0001control\u007f"]


def code(error):
    return error.value.response["Error"]["Code"], error.value.response["ResponseMetadata"]["HTTPStatusCode"]


@pytest.mark.parametrize("key", ODD_KEYS, ids=range(len(ODD_KEYS)))
def test_odd_keys(s3, bucket, key):
    body = key.encode() * 3
    s3.put_object(Bucket=bucket, Key=key, Body=body)
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    listed = s3.list_objects_v2(Bucket=bucket)
    assert [item["Key"] for item in listed["Contents"]] == [key]
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key})
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body
    s3.delete_object(Bucket=bucket, Key=key)
    with pytest.raises(ClientError) as error:
        s3.head_object(Bucket=bucket, Key=key)
    assert code(error)[1] == 404


def test_a_name_that_is_file_and_folder(s3, bucket):
    for key in ("a", "a/b", "a/b/c", "a/"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    for key in ("a", "a/b", "a/b/c", "a/"):
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["a", "a/", "a/b", "a/b/c"]


def test_key_too_long(s3, bucket):
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k" * 1025, Body=b"")
    assert code(error) == ("KeyTooLongError", 400)


def test_metadata_and_system_headers_come_back(s3, bucket):
    headers = {"ContentType": "text/x-test", "CacheControl": "max-age=5", "ContentDisposition": "attachment; filename=\"a b\"", "ContentEncoding": "gzip",
               "ContentLanguage": "de", "Expires": datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)}
    s3.put_object(Bucket=bucket, Key="key", Body=b"x", Metadata={"Upper-Case": "Value", "b": "two words"}, **headers)
    for answer in (s3.head_object(Bucket=bucket, Key="key"), s3.get_object(Bucket=bucket, Key="key")):
        assert answer["Metadata"] == {"upper-case": "Value", "b": "two words"}
        for name, value in headers.items():
            assert answer[name] == value, name


def test_default_content_type(s3, bucket):
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    assert s3.head_object(Bucket=bucket, Key="key")["ContentType"] == "binary/octet-stream"


def test_too_much_metadata(s3, bucket):
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="key", Body=b"x", Metadata={"m": "x" * 2048})
    assert code(error) == ("MetadataTooLarge", 400)


def test_metadata_that_overflows_the_attribute_lies_beside(s3, bucket):
    metadata = {f"key-{number}": "v" * 50 for number in range(30)}
    s3.put_object(Bucket=bucket, Key="key", Body=b"x", Metadata=metadata, CacheControl="c" * 3000)
    answer = s3.head_object(Bucket=bucket, Key="key")
    assert (answer["Metadata"], answer["CacheControl"]) == (metadata, "c" * 3000)


RANGES = [("bytes=0-0", 0, 1), ("bytes=0-", 0, 100_000), ("bytes=10-19", 10, 20), ("bytes=-1", 99_999, 100_000), ("bytes=-200000", 0, 100_000),
          ("bytes=99999-99999", 99_999, 100_000), ("bytes=50000-9999999", 50_000, 100_000), ("bytes=1-70000", 1, 70_001)]


@pytest.mark.parametrize("text, start, end", RANGES)
def test_ranges(s3, bucket, text, start, end):
    body = random.Random(1).randbytes(100_000)
    s3.put_object(Bucket=bucket, Key="key", Body=body)
    answer = s3.get_object(Bucket=bucket, Key="key", Range=text)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert answer["ContentRange"] == f"bytes {start}-{end - 1}/100000"
    assert answer["Body"].read() == body[start:end]
    head = s3.head_object(Bucket=bucket, Key="key", Range=text)
    assert (head["ContentLength"], head["ContentRange"]) == (end - start, f"bytes {start}-{end - 1}/100000")


@pytest.mark.parametrize("text", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_range_beyond_the_end(raw, s3, bucket, text):
    s3.put_object(Bucket=bucket, Key="key", Body=b"x" * 100)
    answer = raw.request("GET", f"/{bucket}/key", headers={"range": text})
    assert (answer.status, answer.code) == (416, "InvalidRange")
    assert answer.document.findtext("ActualObjectSize") == "100"
    assert answer.document.findtext("RangeRequested") == text


@pytest.mark.parametrize("text", ["bytes=0-1,3-4", "lines=1-2", "bytes=x-y", "bytes=5-2", "bytes="])
def test_ranges_that_s3_ignores(raw, s3, bucket, text):
    s3.put_object(Bucket=bucket, Key="key", Body=b"x" * 100)
    answer = raw.request("GET", f"/{bucket}/key", headers={"range": text})
    assert (answer.status, answer.body) == (200, b"x" * 100)


def test_range_of_an_empty_object(raw, s3, bucket):
    s3.put_object(Bucket=bucket, Key="key", Body=b"")
    assert raw.request("GET", f"/{bucket}/key", headers={"range": "bytes=0-"}).status == 416
    assert raw.request("GET", f"/{bucket}/key").status == 200


def test_conditions_of_reads(s3, raw, bucket):
    etag = s3.put_object(Bucket=bucket, Key="key", Body=b"x")["ETag"]
    modified = s3.head_object(Bucket=bucket, Key="key")["LastModified"]
    past, future = modified - datetime.timedelta(hours=1), modified + datetime.timedelta(seconds=1)
    get = lambda **options: s3.get_object(Bucket=bucket, Key="key", **options)  # noqa: E731
    for options in ({"IfMatch": etag}, {"IfMatch": etag.strip('"')}, {"IfMatch": "*"}, {"IfNoneMatch": '"other"'}, {"IfModifiedSince": past}, {"IfUnmodifiedSince": future},
                    {"IfMatch": etag, "IfUnmodifiedSince": past}):
        assert get(**options)["Body"].read() == b"x", options
    for options in ({"IfMatch": '"other"'}, {"IfUnmodifiedSince": past}):
        with pytest.raises(ClientError) as error:
            get(**options)
        assert code(error) == ("PreconditionFailed", 412), options
        assert error.value.response["Error"]["Condition"] in ("If-Match", "If-Unmodified-Since")
    for options in ({"IfNoneMatch": etag}, {"IfNoneMatch": "*"}, {"IfNoneMatch": etag, "IfModifiedSince": past}):
        with pytest.raises(ClientError) as error:
            get(**options)
        assert code(error)[1] == 304, options
    answer = raw.request("GET", f"/{bucket}/key", headers={"if-none-match": etag})
    assert (answer.status, answer.body, answer.headers["ETag"]) == (304, b"", etag)


def test_conditions_of_writes(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="key", Body=b"1", IfNoneMatch="*")["ETag"]
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="key", Body=b"2", IfNoneMatch="*")
    assert code(error) == ("PreconditionFailed", 412) and error.value.response["Error"]["Condition"] == "If-None-Match"
    s3.put_object(Bucket=bucket, Key="key", Body=b"2", IfMatch=etag)
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="key", Body=b"3", IfMatch=etag)
    assert code(error) == ("PreconditionFailed", 412)
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="missing", Body=b"3", IfMatch=etag)
    assert code(error) == ("NoSuchKey", 404)
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"2"


def test_if_none_match_with_an_etag_is_not_implemented(raw, bucket):
    answer = raw.request("PUT", f"/{bucket}/key", headers={"if-none-match": '"abc"'}, body=b"x")
    assert (answer.status, answer.code) == (501, "NotImplemented")


@pytest.mark.parametrize("size", [10, 300_000])
def test_one_of_many_writers_wins(server, s3, bucket, size):
    def attempt(number):
        try:
            server.client().put_object(Bucket=bucket, Key="lock", Body=bytes([number]) * size, IfNoneMatch="*")
            return number
        except ClientError as error:
            assert error.response["Error"]["Code"] in ("PreconditionFailed", "ConditionalRequestConflict")
            return None

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(attempt, range(16)) if number is not None]
    assert len(winners) == 1
    assert s3.get_object(Bucket=bucket, Key="lock")["Body"].read() == bytes(winners) * size


CHECKSUMS = {"CRC32": "ChecksumCRC32", "CRC32C": "ChecksumCRC32C", "CRC64NVME": "ChecksumCRC64NVME", "SHA1": "ChecksumSHA1", "SHA256": "ChecksumSHA256"}


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
@pytest.mark.parametrize("size", [0, 1000, 400_000])
def test_checksums_of_the_sdk(s3, bucket, algorithm, size):
    body = random.Random(size).randbytes(size)
    put = s3.put_object(Bucket=bucket, Key="key", Body=body, ChecksumAlgorithm=algorithm)
    head = s3.head_object(Bucket=bucket, Key="key", ChecksumMode="ENABLED")
    assert head[CHECKSUMS[algorithm]] == put[CHECKSUMS[algorithm]] and head["ChecksumType"] == "FULL_OBJECT"
    assert s3.get_object(Bucket=bucket, Key="key", ChecksumMode="ENABLED")["Body"].read() == body
    assert CHECKSUMS[algorithm] not in s3.head_object(Bucket=bucket, Key="key")


def test_crc64nvme_when_none_was_sent(raw, bucket):
    answer = raw.request("PUT", f"/{bucket}/key", body=b"123456789")
    assert answer.headers["x-amz-checksum-crc64nvme"] == "rosUhgp5mIg="
    answer = raw.request("GET", f"/{bucket}/key", headers={"x-amz-checksum-mode": "ENABLED"})
    assert answer.headers["x-amz-checksum-crc64nvme"] == "rosUhgp5mIg="
    answer = raw.request("GET", f"/{bucket}/key", headers={"x-amz-checksum-mode": "ENABLED", "range": "bytes=0-3"})
    assert answer.headers["x-amz-checksum-crc64nvme"] is None, "a part has not the whole's checksum"


@pytest.mark.parametrize("name, value", [("crc32", "AAAAAA=="), ("crc64nvme", "AAAAAAAAAAA="), ("sha256", base64.b64encode(bytes(32)).decode())])
def test_wrong_checksum_header(raw, bucket, name, value):
    answer = raw.request("PUT", f"/{bucket}/key", headers={f"x-amz-checksum-{name}": value}, body=b"x")
    assert (answer.status, answer.code) == (400, "BadDigest")
    assert raw.request("HEAD", f"/{bucket}/key").status == 404


def test_bad_or_double_checksum_headers(raw, bucket):
    for headers in ({"x-amz-checksum-crc32": "!!"}, {"x-amz-checksum-crc32": "AA=="}, {"x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-sha1": base64.b64encode(bytes(20)).decode()}):
        answer = raw.request("PUT", f"/{bucket}/key", headers=headers, body=b"x")
        assert answer.status == 400 and answer.code in ("InvalidRequest", "InvalidArgument"), answer.body


def test_etag_is_the_md5(s3, bucket):
    body = random.Random(5).randbytes(3_000_000)
    assert s3.put_object(Bucket=bucket, Key="key", Body=body)["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'


def test_files_are_plain_and_posix_files_are_objects(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="folder/by-s3", Body=b"hello")
    assert (server.root / bucket / "folder/by-s3").read_bytes() == b"hello"
    (server.root / bucket / "folder/by-posix").write_bytes(b"world")
    answer = s3.get_object(Bucket=bucket, Key="folder/by-posix")
    assert answer["Body"].read() == b"world" and answer["ETag"]
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["folder/by-posix", "folder/by-s3"]


def test_symbolic_links_lead_nowhere(server, s3, raw, bucket):
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    (server.root / bucket / "link").symlink_to("/etc/passwd")
    (server.root / bucket / "folder").symlink_to("/etc")
    assert raw.request("GET", f"/{bucket}/link").status == 404
    assert raw.request("GET", f"/{bucket}/folder/passwd").status == 404
    assert raw.request("GET", f"/{bucket}/../../etc/passwd").status == 404
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["key"]
    # They are somebody else's: the bucket is not empty as long as they lie in it.
    s3.delete_object(Bucket=bucket, Key="key")
    assert raw.request("DELETE", f"/{bucket}").code == "BucketNotEmpty"
    (server.root / bucket / "link").unlink()
    (server.root / bucket / "folder").unlink()


def test_error_documents(raw, bucket):
    answer = raw.request("GET", f"/{bucket}/missing")
    assert (answer.status, answer.code, answer.document.findtext("Key")) == (404, "NoSuchKey", "missing")
    assert answer.headers["Content-Type"] == "application/xml"
    assert answer.document.findtext("RequestId") == answer.headers["x-amz-request-id"]
    assert answer.document.findtext("HostId") == answer.headers["x-amz-id-2"]
    answer = raw.request("GET", "/no-such-bucket-anywhere/key")
    assert (answer.status, answer.code, answer.document.findtext("BucketName")) == (404, "NoSuchBucket", "no-such-bucket-anywhere")
    answer = raw.request("HEAD", f"/{bucket}/missing")
    assert (answer.status, answer.body) == (404, b"")


def test_log_bears_the_request_id(server, raw, bucket):
    request_id = raw.request("GET", f"/{bucket}/missing").headers["x-amz-request-id"]
    assert request_id in server.log_text()
    assert "test-secret-key" not in server.log_text()


@pytest.mark.parametrize("query", [[("torrent", "")], [("renameObject", "")], [("lifecycle", "")], [("unknown-thing", "")], [("append", "")]])
def test_what_is_not_there_never_becomes_a_plain_put(raw, bucket, query):
    assert raw.request("PUT", f"/{bucket}/key", body=b"kept").status == 200
    answer = raw.request("PUT", f"/{bucket}/key", query=query, body=b"lost")
    assert answer.status in (400, 405, 501), (query, answer.status)
    assert raw.request("GET", f"/{bucket}/key").body == b"kept"


def test_append_is_not_a_put(raw, bucket):
    assert raw.request("PUT", f"/{bucket}/key", body=b"kept").status == 200
    answer = raw.request("PUT", f"/{bucket}/key", headers={"x-amz-write-offset-bytes": "4"}, body=b"more")
    assert answer.status == 501
    assert raw.request("GET", f"/{bucket}/key").body == b"kept"


def test_versions_that_do_not_exist(s3, bucket):
    s3.put_object(Bucket=bucket, Key="key", Body=b"x")
    assert s3.get_object(Bucket=bucket, Key="key", VersionId="null")["Body"].read() == b"x"
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="key", VersionId="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert code(error)[0] == "NoSuchVersion"


def test_malformed_http_is_refused(raw):
    for data in (b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n",
                 b"PUT /b/k HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"):
        assert raw.exchange_bytes(data).startswith(b"HTTP/1.1 4"), data


def test_head_that_is_too_long(raw):
    answer = raw.exchange_bytes(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n")
    assert b" 431 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0]


def test_broken_escape(raw, bucket):
    answer = raw.request("GET", f"/{bucket}/%zz")
    assert (answer.status, answer.code) == (400, "InvalidURI")
