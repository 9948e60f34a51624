"""CopyObject, DeleteObject, DeleteObjects."""
import pytest
from botocore.exceptions import ClientError
from rawclient import md5_base64


def code(error):
    return error.value.response["Error"]["Code"]


def test_copy_keeps_or_replaces_metadata(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"data", Metadata={"k": "v"}, ContentType="text/a")["ETag"]
    answer = s3.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/a")
    assert answer["CopyObjectResult"]["ETag"] == etag
    head = s3.head_object(Bucket=bucket, Key="b")
    assert (head["Metadata"], head["ContentType"], head["ETag"]) == ({"k": "v"}, "text/a", etag)
    s3.copy_object(Bucket=bucket, Key="c", CopySource=f"{bucket}/a", MetadataDirective="REPLACE", Metadata={"n": "w"}, ContentType="text/c")
    head = s3.head_object(Bucket=bucket, Key="c")
    assert (head["Metadata"], head["ContentType"]) == ({"n": "w"}, "text/c")
    s3.put_object(Bucket=bucket, Key="a", Body=b"changed")
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"data"


def test_copy_onto_itself(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"data", Metadata={"k": "v"})
    with pytest.raises(ClientError) as error:
        s3.copy_object(Bucket=bucket, Key="a", CopySource=f"{bucket}/a")
    assert code(error) == "InvalidRequest"
    s3.copy_object(Bucket=bucket, Key="a", CopySource=f"{bucket}/a", MetadataDirective="REPLACE", Metadata={"k": "w"})
    answer = s3.get_object(Bucket=bucket, Key="a")
    assert (answer["Body"].read(), answer["Metadata"]) == (b"data", {"k": "w"})


def test_copy_conditions(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"data")["ETag"]
    s3.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/a", CopySourceIfMatch=etag)
    for options in ({"CopySourceIfMatch": '"other"'}, {"CopySourceIfNoneMatch": etag}):
        with pytest.raises(ClientError) as error:
            s3.copy_object(Bucket=bucket, Key="c", CopySource=f"{bucket}/a", **options)
        assert code(error) == "PreconditionFailed"
    with pytest.raises(ClientError):
        s3.head_object(Bucket=bucket, Key="c")


def test_copy_from_nothing(s3, bucket):
    with pytest.raises(ClientError) as error:
        s3.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/missing")
    assert code(error) == "NoSuchKey"
    with pytest.raises(ClientError) as error:
        s3.copy_object(Bucket=bucket, Key="b", CopySource="missing-source-bucket/a")
    assert code(error) == "NoSuchBucket"


@pytest.mark.parametrize("source", ["", "nobucket", "%zz/a", "/"])
def test_bad_copy_source(raw, bucket, source):
    answer = raw.request("PUT", f"/{bucket}/key", headers={"x-amz-copy-source": source})
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_copy_with_a_checksum_that_the_source_lacks(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x" * 200_000)
    answer = s3.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/a", ChecksumAlgorithm="SHA256")
    assert answer["CopyObjectResult"]["ChecksumSHA256"]
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"x" * 200_000


def test_delete(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x")
    assert s3.delete_object(Bucket=bucket, Key="a")["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert s3.delete_object(Bucket=bucket, Key="a")["ResponseMetadata"]["HTTPStatusCode"] == 204


def test_delete_if_match(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"x")["ETag"]
    with pytest.raises(ClientError) as error:
        s3.delete_object(Bucket=bucket, Key="a", IfMatch='"other"')
    assert code(error) == "PreconditionFailed"
    s3.delete_object(Bucket=bucket, Key="a", IfMatch=etag)


def test_deep_folders_go_with_their_last_object(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a/b/c/d", Body=b"x")
    s3.delete_object(Bucket=bucket, Key="a/b/c/d")
    assert not list((server.root / bucket).iterdir())


def test_delete_many(s3, bucket):
    keys = [f"k/{number}" for number in range(1000)]
    for key in keys[::10]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    assert [item["Key"] for item in answer["Deleted"]] == keys and "Errors" not in answer
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_delete_many_quietly_and_with_conditions(s3, bucket):
    for key in ("a", "b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    answer = s3.delete_objects(Bucket=bucket, Delete={"Quiet": True, "Objects": [{"Key": "a"}, {"Key": "b", "ETag": '"other"'}]})
    assert "Deleted" not in answer and [(item["Key"], item["Code"]) for item in answer["Errors"]] == [("b", "PreconditionFailed")]
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["b"]


def test_delete_many_needs_integrity(raw, bucket):
    body = b"<Delete><Object><Key>a</Key></Object></Delete>"
    assert raw.request("POST", f"/{bucket}", query=[("delete", "")], body=body).code in ("InvalidRequest", "MissingSecurityHeader")
    assert raw.request("POST", f"/{bucket}", query=[("delete", "")], body=body, headers={"content-md5": md5_base64(b"other")}).code == "BadDigest"
    assert raw.request("POST", f"/{bucket}", query=[("delete", "")], body=body, headers={"content-md5": md5_base64(body)}).status == 200


@pytest.mark.parametrize("body", [b"", b"<Delete>", b"<Delete></Delete>", b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><Delete><Object><Key>&e;</Key></Object></Delete>",
                                  b"<Delete>" + b"<Object><Key>a</Key></Object>" * 1001 + b"</Delete>"])
def test_malformed_delete(raw, bucket, body):
    answer = raw.request("POST", f"/{bucket}", query=[("delete", "")], body=body, headers={"content-md5": md5_base64(body)})
    assert (answer.status, answer.code) in ((400, "MalformedXML"), (400, "MissingRequestBodyError"))
