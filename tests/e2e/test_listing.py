"""ListObjects and ListObjectsV2: order, pages, delimiters, encoding."""
import pytest

KEYS = sorted(["a", "a-b", "a/", "a/b", "a/b/c", "a/c", "a.b", "a0", "b/x/1", "b/x/2", "b/y/1", "c", "with space/x", "ü/é", "z+z"], key=str.encode)


@pytest.fixture
def filled(s3, bucket):
    for key in KEYS:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    return bucket


def pages(s3, version, size, **options):
    call = {1: "list_objects", 2: "list_objects_v2"}[version]
    keys, prefixes = [], []
    for page in s3.get_paginator(call).paginate(PaginationConfig={"PageSize": size}, **options):
        assert len(page.get("Contents", [])) + len(page.get("CommonPrefixes", [])) <= size
        keys += [item["Key"] for item in page.get("Contents", [])]
        prefixes += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
    return keys, prefixes


def expected(prefix, delimiter):
    keys, prefixes = [], []
    for key in KEYS:
        if not key.startswith(prefix):
            continue
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            keys.append(key)
        elif key[:cut + len(delimiter)] not in prefixes:
            prefixes.append(key[:cut + len(delimiter)])
    return keys, prefixes


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("prefix, delimiter", [("", ""), ("", "/"), ("a", "/"), ("a/", "/"), ("a/b", "/"), ("b/", "/"), ("", "-"), ("nothing", "/"), ("with", " "), ("ü/", "")])
def test_pages_have_everything_once_in_byte_order(s3, filled, version, size, prefix, delimiter):
    options = {"Prefix": prefix, **({"Delimiter": delimiter} if delimiter else {})}
    assert pages(s3, version, size, Bucket=filled, **options) == expected(prefix, delimiter)


def test_entries(s3, filled):
    entry = s3.list_objects_v2(Bucket=filled, Prefix="a/b/", FetchOwner=True)["Contents"][0]
    assert (entry["Key"], entry["Size"], entry["StorageClass"]) == ("a/b/c", 5, "STANDARD") and entry["Owner"]["ID"] and entry["ETag"].startswith('"')
    assert "Owner" not in s3.list_objects_v2(Bucket=filled)["Contents"][0]
    assert "Owner" in s3.list_objects(Bucket=filled)["Contents"][0]


def test_start_after_and_markers(s3, filled):
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=filled, StartAfter="a/b/c", MaxKeys=2)["Contents"]] == ["a/c", "a0"]
    assert [item["Key"] for item in s3.list_objects(Bucket=filled, Marker="a/b/c", MaxKeys=2)["Contents"]] == ["a/c", "a0"]
    page = s3.list_objects_v2(Bucket=filled, StartAfter="a/b", MaxKeys=2)
    assert page["KeyCount"] == 2 and page["IsTruncated"] and page["StartAfter"] == "a/b"
    following = s3.list_objects_v2(Bucket=filled, ContinuationToken=page["NextContinuationToken"], MaxKeys=2)
    assert [item["Key"] for item in following["Contents"]] == ["a0", "b/x/1"]
    assert following["ContinuationToken"] == page["NextContinuationToken"]


def test_key_count_counts_prefixes(s3, filled):
    page = s3.list_objects_v2(Bucket=filled, Delimiter="/")
    assert page["KeyCount"] == len(page["Contents"]) + len(page["CommonPrefixes"])


def test_no_keys_asked_for(s3, filled):
    page = s3.list_objects_v2(Bucket=filled, MaxKeys=0)
    assert (page["KeyCount"], page["IsTruncated"]) == (0, False)


def test_url_encoding(raw, filled):
    text = raw.request("GET", f"/{filled}", query=[("list-type", "2"), ("encoding-type", "url"), ("delimiter", "/")]).body.decode()
    assert "<EncodingType>url</EncodingType>" in text and "<Key>z%2Bz</Key>" in text and "<Prefix>with%20space/</Prefix>" in text or "<Prefix>with+space/</Prefix>" in text


@pytest.mark.parametrize("query", [[("max-keys", "-1")], [("max-keys", "x")], [("list-type", "2"), ("continuation-token", "not base64!")], [("encoding-type", "other")]])
def test_bad_arguments(raw, bucket, query):
    answer = raw.request("GET", f"/{bucket}", query=query)
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_of_a_missing_bucket(raw):
    assert raw.request("GET", "/missing-bucket-for-listing").code == "NoSuchBucket"


def test_thousands(s3, bucket):
    keys = sorted(f"{number % 7}/{number:05}" for number in range(2300))
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    assert pages(s3, 2, 1000, Bucket=bucket) == (keys, [])
    assert pages(s3, 2, 1000, Bucket=bucket, Delimiter="/")[1] == [f"{number}/" for number in range(7)]
