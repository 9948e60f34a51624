"""What S3's clients are known to stumble over, one check each, by the bytes that they send."""
import base64
import hashlib
import zlib

import pytest
from rawclient import STREAMING, STREAMING_TRAILER, UNSIGNED, UNSIGNED_TRAILER, md5_base64

BODY = bytes(range(256)) * 800  # 204 800 bytes
PART = b"p" * (5 * 1024 * 1024)


def crc32(body):
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def crc_trailer(body=BODY):
    return "x-amz-checksum-crc32", crc32(body)


def etag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def put(raw, bucket, key="key", body=BODY, **options):
    return raw.request("PUT", f"/{bucket}/{key}", body=body, **options)


def get(raw, bucket, key="key", **options):
    return raw.request("GET", f"/{bucket}/{key}", **options)


def assert_stored(raw, bucket, answer, body=BODY, key="key"):
    assert answer.status == 200, answer.body
    got = get(raw, bucket, key)
    assert (got.status, got.body == body) == (200, True)
    return got


def assert_refused(raw, bucket, answer, status, code):
    assert (answer.status, answer.code) == (status, code)
    assert raw.request("HEAD", f"/{bucket}/key").status == 404


def keys_of(answer):
    return [node.findtext("Key") for node in answer.document.iter("Contents")]


def start(raw, bucket, key="key", headers=None):
    return raw.request("POST", f"/{bucket}/{key}", query=[("uploads", "")], headers=headers).document.findtext("UploadId")


def put_part(raw, bucket, upload, number, body, key="key", **options):
    return raw.request("PUT", f"/{bucket}/{key}", query=[("partNumber", str(number)), ("uploadId", upload)], body=body, **options)


def complete(raw, bucket, upload, parts, key="key", **options):
    listed = "".join(f"<Part><PartNumber>{number}</PartNumber>{inner}</Part>" for number, inner in parts)
    return raw.request("POST", f"/{bucket}/{key}", query=[("uploadId", upload)], body=f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode(), **options)


# ---- checksums, trailers, integrity defaults ----

def case_sdk_default_put(raw, bucket):
    answer = put(raw, bucket, headers={"x-amz-sdk-checksum-algorithm": "CRC32"}, payload=UNSIGNED_TRAILER, trailer=crc_trailer(), send_length=False)
    assert_stored(raw, bucket, answer)
    assert answer.headers["x-amz-checksum-crc32"] == crc32(BODY)


def case_trailer_bytes_stay_out(raw, bucket):
    got = assert_stored(raw, bucket, put(raw, bucket, payload=UNSIGNED_TRAILER, trailer=crc_trailer()))
    assert len(got.body) == len(BODY) and b"x-amz-checksum" not in got.body


def case_chunked_without_content_length(raw, bucket):
    for payload in (STREAMING, STREAMING_TRAILER, UNSIGNED_TRAILER):
        trailer = crc_trailer() if payload.endswith("TRAILER") else None
        assert_stored(raw, bucket, put(raw, bucket, payload=payload, trailer=trailer, send_length=False))


def case_signed_trailer_over_http(raw, bucket):
    assert_stored(raw, bucket, put(raw, bucket, payload=STREAMING_TRAILER, trailer=crc_trailer()))


def case_delete_objects_by_md5_or_checksum(raw, bucket):
    body = b"<Delete><Object><Key>key</Key></Object></Delete>"
    for headers in ({"Content-MD5": md5_base64(body)}, {"x-amz-checksum-crc32": crc32(body)}):
        put(raw, bucket)
        answer = raw.request("POST", f"/{bucket}", query=[("delete", "")], headers=headers, body=body)
        assert answer.status == 200 and answer.document.find("Deleted").findtext("Key") == "key"
        assert raw.request("HEAD", f"/{bucket}/key").status == 404


def case_parts_with_checksum_headers(raw, bucket):
    upload = start(raw, bucket)
    answer = put_part(raw, bucket, upload, 1, b"part", headers={"x-amz-checksum-crc32": crc32(b"part"), "x-amz-sdk-checksum-algorithm": "CRC32"})
    assert answer.status == 200 and answer.headers["x-amz-checksum-crc32"] == crc32(b"part")
    assert complete(raw, bucket, upload, [(1, f"<ETag>{answer.headers['ETag']}</ETag>")]).status == 200


def case_every_content_sha256(raw, bucket):
    for payload in (None, UNSIGNED, STREAMING, STREAMING_TRAILER, UNSIGNED_TRAILER):
        assert_stored(raw, bucket, put(raw, bucket, payload=payload, trailer=crc_trailer() if payload and payload.endswith("TRAILER") else None))


def case_trailer_mode_without_a_trailer(raw, bucket):
    answer = put(raw, bucket, payload=UNSIGNED_TRAILER)
    assert_stored(raw, bucket, answer)
    assert answer.headers["x-amz-checksum-crc64nvme"]


def case_declared_trailer_absent(raw, bucket):
    answer = put(raw, bucket, payload=UNSIGNED_TRAILER, headers={"x-amz-trailer": "x-amz-checksum-crc32"})
    assert_refused(raw, bucket, answer, 400, "MalformedTrailerError")


def case_wrong_trailer_value(raw, bucket):
    for payload in (UNSIGNED_TRAILER, STREAMING_TRAILER):
        assert_refused(raw, bucket, put(raw, bucket, payload=payload, trailer=("x-amz-checksum-crc32", crc32(b"other"))), 400, "BadDigest")


def case_algorithm_is_not_the_trailer(raw, bucket):
    answer = put(raw, bucket, payload=UNSIGNED_TRAILER, trailer=crc_trailer(), headers={"x-amz-sdk-checksum-algorithm": "SHA256"})
    assert_refused(raw, bucket, answer, 400, "InvalidRequest")


def case_signed_trailer_of_another_name(raw, bucket):
    answer = put(raw, bucket, payload=STREAMING_TRAILER, trailer=("x-amz-checksum-sha1", crc32(BODY)), headers={"x-amz-trailer": "x-amz-checksum-crc32"})
    assert_refused(raw, bucket, answer, 400, "MalformedTrailerError")


def case_signed_trailer_with_a_wrong_signature(raw, bucket):
    answer = put(raw, bucket, payload=STREAMING_TRAILER, trailer=crc_trailer(), spoil="trailer")
    assert_refused(raw, bucket, answer, 403, "SignatureDoesNotMatch")


def case_decoded_length_differs(raw, bucket):
    for length in (len(BODY) - 1, len(BODY) + 1):
        answer = put(raw, bucket, payload=UNSIGNED_TRAILER, trailer=crc_trailer(), decoded_length=length)
        assert_refused(raw, bucket, answer, 400, "IncompleteBody")


def case_chunks_under_8_kib(raw, bucket):
    answer = put(raw, bucket, payload=STREAMING, chunk_size=8191)
    assert_refused(raw, bucket, answer, 400, "InvalidChunkSizeError")


def case_streaming_elsewhere(raw, bucket):
    body = b"<Delete><Object><Key>key</Key></Object></Delete>"
    answer = raw.request("POST", f"/{bucket}", query=[("delete", "")], payload=UNSIGNED_TRAILER, trailer=crc_trailer(body), body=body)
    assert (answer.status, answer.code) == (400, "InvalidRequest")


def case_checksum_mode(raw, bucket):
    put(raw, bucket)
    assert get(raw, bucket, headers={"x-amz-checksum-mode": "ENABLED"}).headers["x-amz-checksum-crc64nvme"]
    assert get(raw, bucket, headers={"x-amz-checksum-mode": "ENABLED", "Range": "bytes=0-9"}).headers.get("x-amz-checksum-crc64nvme") is None
    put(raw, bucket, headers={"x-amz-checksum-crc32": crc32(BODY)})
    assert get(raw, bucket, headers={"x-amz-checksum-mode": "ENABLED"}).headers["x-amz-checksum-crc32"] == crc32(BODY)


def case_composite_checksums(raw, bucket):
    upload = start(raw, bucket, headers={"x-amz-checksum-algorithm": "CRC32"})
    tag = put_part(raw, bucket, upload, 1, b"part", headers={"x-amz-checksum-crc32": crc32(b"part")}).headers["ETag"]
    whole = base64.b64encode(zlib.crc32(zlib.crc32(b"part").to_bytes(4, "big")).to_bytes(4, "big")).decode()
    parts = [(1, f"<ETag>{tag}</ETag><ChecksumCRC32>{crc32(b'part')}</ChecksumCRC32>")]
    wrong = complete(raw, bucket, upload, [(1, f"<ETag>{tag}</ETag><ChecksumCRC32>{crc32(b'other')}</ChecksumCRC32>")])
    assert (wrong.status, wrong.code) == (400, "InvalidPart")
    full = complete(raw, bucket, upload, parts, headers={"x-amz-checksum-type": "FULL_OBJECT"})
    assert (full.status, full.code) == (400, "InvalidRequest")
    done = complete(raw, bucket, upload, parts, headers={"x-amz-checksum-crc32": whole})
    assert done.status == 200 and done.document.findtext("ChecksumCRC32") == whole + "-1"


def case_chunk_boundaries(raw, bucket):
    for size, chunk in ((171_164, 65_536), (8192, 8192), (8193, 8192), (65_535, 65_536), (131_072, 65_536)):
        body = BODY[:size]
        assert_stored(raw, bucket, put(raw, bucket, body=body, payload=STREAMING, chunk_size=chunk), body)


# ---- headers, encoding, listing ----

def case_keys_with_signs(raw, bucket):
    for key in ("a+b", "a b", "a=b", "a:b", "a?b", "a#b", "a%2Fb", "ü/é", "a&b", "a;b", "(a)'!*"):
        path = "".join(c if c.isalnum() and c.isascii() or c in "-_.~/" else "".join(f"%{byte:02X}" for byte in c.encode()) for c in key)
        assert_stored(raw, bucket, put(raw, bucket, path, key.encode()), key.encode(), path)
        copied = raw.request("PUT", f"/{bucket}/copy", headers={"x-amz-copy-source": f"/{bucket}/{path}"})
        assert copied.status == 200, key
        assert get(raw, bucket, "copy").body == key.encode()
        assert key in keys_of(raw.request("GET", f"/{bucket}", query=[("prefix", key)]))


def case_tokens_survive(raw, bucket):
    for index in range(5):
        put(raw, bucket, f"t%2B{index}", b"x")
    found, token = [], None
    while True:
        query = [("list-type", "2"), ("encoding-type", "url"), ("prefix", ""), ("max-keys", "2")] + ([("continuation-token", token)] if token else [])
        page = raw.request("GET", f"/{bucket}", query=query)
        assert page.status == 200
        found += keys_of(page)
        token = page.document.findtext("NextContinuationToken")
        if not token:
            break
    assert found == [f"t%2B{index}" for index in range(5)]


def case_byte_order_and_delimiters(raw, bucket):
    for key in ("a/b", "a-b", "a", "a0", "a/c/d"):
        put(raw, bucket, key, b"x")
    assert keys_of(raw.request("GET", f"/{bucket}")) == ["a", "a-b", "a/b", "a/c/d", "a0"]
    page = raw.request("GET", f"/{bucket}", query=[("delimiter", "/")])
    assert keys_of(page) == ["a", "a-b", "a0"] and [node.findtext("Prefix") for node in page.document.iter("CommonPrefixes")] == ["a/"]


def case_acl_private_at_creation(raw, bucket):
    assert raw.request("PUT", f"/{bucket}-acl", headers={"x-amz-acl": "private"}).status == 200
    assert raw.request("DELETE", f"/{bucket}-acl").status == 204


def case_folder_markers(raw, bucket):
    assert put(raw, bucket, "dir/", b"", headers={"content-type": "application/x-directory", "x-amz-meta-mode": "493"}).status == 200
    marker = raw.request("HEAD", f"/{bucket}/dir/")
    assert marker.status == 200 and marker.headers["x-amz-meta-mode"] == "493" and marker.headers["Content-Type"] == "application/x-directory"
    assert raw.request("HEAD", f"/{bucket}/dir").status == 404
    put(raw, bucket, "implicit/child", b"x")
    assert raw.request("HEAD", f"/{bucket}/implicit/").status == 404 and keys_of(raw.request("GET", f"/{bucket}")) == ["dir/", "implicit/child"]
    assert raw.request("DELETE", f"/{bucket}/dir/").status == 204


def case_panels_ask_for_everything(raw, bucket):
    put(raw, bucket)
    for query in ("acl", "logging", "versioning", "requestPayment", "notification", "accelerate"):
        assert raw.request("GET", f"/{bucket}", query=[(query, "")]).status == 200, query
    assert raw.request("GET", f"/{bucket}/key", query=[("acl", "")]).status == 200
    for query in ("cors", "lifecycle", "encryption", "policy", "website", "replication", "publicAccessBlock"):
        assert raw.request("GET", f"/{bucket}", query=[(query, "")]).status == 404, query


def case_etags_are_quoted_md5(raw, bucket):
    assert put(raw, bucket).headers["ETag"] == etag(BODY)
    assert raw.request("HEAD", f"/{bucket}/key").headers["ETag"] == etag(BODY)
    upload = start(raw, bucket, "parts")
    tags = [put_part(raw, bucket, upload, number, body, "parts").headers["ETag"] for number, body in ((1, PART), (2, b"tail"))]
    assert tags == [etag(PART), etag(b"tail")]
    done = complete(raw, bucket, upload, [(number, f"<ETag>{tag.strip(chr(34))}</ETag>") for number, tag in enumerate(tags, 1)], "parts")
    joined = hashlib.md5(b"".join(hashlib.md5(body).digest() for body in (PART, b"tail"))).hexdigest()
    assert done.document.findtext("ETag") == f'"{joined}-2"'


def case_region_headers(raw, bucket):
    assert raw.request("HEAD", f"/{bucket}").headers["x-amz-bucket-region"] == "us-east-1"
    assert raw.request("GET", f"/{bucket}").headers["x-amz-bucket-region"] == "us-east-1"
    location = raw.request("GET", f"/{bucket}", query=[("location", "")])
    assert location.status == 200 and not location.document.text


def case_conditions_quoted_or_not(raw, bucket):
    put(raw, bucket)
    for value in (etag(BODY), etag(BODY).strip('"'), "*"):
        assert get(raw, bucket, headers={"If-Match": value}).status == 200
        assert get(raw, bucket, headers={"If-None-Match": value}).status == 304
    assert put(raw, bucket, headers={"If-None-Match": "*"}).status == 412
    assert put(raw, bucket, "missing", headers={"If-Match": etag(BODY)}).code == "NoSuchKey"
    answer = put(raw, bucket, headers={"If-None-Match": etag(BODY)})
    assert (answer.status, answer.code) == (501, "NotImplemented")


# ---- conditional writes, backup products, operations ----

def case_lock_files(raw, bucket):
    assert put(raw, bucket, "lock", headers={"If-None-Match": "*"}).status == 200
    loser = put(raw, bucket, "lock", headers={"If-None-Match": "*"})
    assert (loser.status, loser.code, loser.document.findtext("Condition")) == (412, "PreconditionFailed", "If-None-Match")
    assert raw.request("DELETE", f"/{bucket}/lock").status == 204
    assert put(raw, bucket, "lock", headers={"If-None-Match": "*"}).status == 200


def case_copy_if_not_exists(raw, bucket):
    put(raw, bucket)
    headers = {"x-amz-copy-source": f"{bucket}/key", "If-None-Match": "*"}
    assert raw.request("PUT", f"/{bucket}/copy", headers=headers).status == 200
    assert raw.request("PUT", f"/{bucket}/copy", headers=headers).status == 412


def case_harmless_headers(raw, bucket):
    put(raw, bucket)
    for headers in ({"x-amz-request-payer": "requester"}, {"x-unknown": "1"}, {"x-amz-user-agent": "x"}):
        assert get(raw, bucket, headers=headers).status == 200, headers


def case_head_of_nothing(raw, bucket):
    answer = raw.request("HEAD", f"/{bucket}/missing")
    assert (answer.status, answer.body) == (404, b"")
    assert get(raw, bucket, "missing").code == "NoSuchKey"


def case_complete_twice(raw, bucket):
    upload = start(raw, bucket)
    tag = put_part(raw, bucket, upload, 1, b"part").headers["ETag"]
    answers = [complete(raw, bucket, upload, [(1, f"<ETag>{tag}</ETag>")]) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].document.findtext("ETag") == answers[1].document.findtext("ETag")


def case_utf8_metadata(raw, bucket):
    name = "gr\u00fc\u00dfe"

    def as_bytes_on_the_wire(headers):
        headers["x-amz-meta-name"] = name.encode().decode("latin-1")
    assert put(raw, bucket, headers={"x-amz-meta-name": name}, change=as_bytes_on_the_wire).status == 200
    assert raw.request("HEAD", f"/{bucket}/key").headers["x-amz-meta-name"].encode("latin-1").decode() == name


CASES = {name: value for name, value in sorted(globals().items()) if name.startswith("case_")}


@pytest.mark.parametrize("case", CASES.values(), ids=[name.removeprefix("case_") for name in CASES])
def test_case(raw, bucket, case):
    case(raw, bucket)


# ---- numbers ----

LISTS = [("max-buckets", "", []), ("max-keys", "/{bucket}", []), ("max-keys", "/{bucket}", [("list-type", "2")]), ("max-uploads", "/{bucket}", [("uploads", "")]),
         ("max-parts", "/{bucket}/key", "upload"), ("part-number-marker", "/{bucket}/key", "upload")]
NUMBERS = ["0", "1", "1000", "1001", "10000", "2147483647", "2147483648", "4294967296", "18446744073709551616", "-1", "x", "1.5", "0x10", " 1", ""]
FINE = {"0", "1", "1000", "1001", "10000", "2147483647", ""}


@pytest.mark.parametrize("name, path, query", LISTS, ids=range(len(LISTS)))
@pytest.mark.parametrize("value", NUMBERS)
def test_numbers(raw, bucket, name, path, query, value):
    if query == "upload":
        query = [("uploadId", start(raw, bucket))]
    answer = raw.request("GET", path.format(bucket=bucket) or "/", query=[*query, (name, value)])
    if value in FINE and not (name == "max-buckets" and value == "0"):
        assert answer.status == 200
    else:
        assert (answer.status, answer.code, answer.document.findtext("ArgumentName")) == (400, "InvalidArgument", name)
    assert raw.request("GET", "/").status == 200, "the server still runs"


@pytest.mark.parametrize("query", [[("max-keys", "0")], [("max-keys", "0"), ("list-type", "2")]])
def test_no_keys_is_an_empty_page(raw, bucket, query):
    put(raw, bucket, body=b"x")
    page = raw.request("GET", f"/{bucket}", query=query).document
    assert page.findtext("IsTruncated") == "false" and page.find("Contents") is None
