"""Buckets: create, head, list, location, delete, and configurations that nobody made."""
import pytest
from botocore.exceptions import ClientError


def test_life_of_a_bucket(s3, raw):
    s3.create_bucket(Bucket="life-of-a-bucket")
    assert "life-of-a-bucket" in [item["Name"] for item in s3.list_buckets()["Buckets"]]
    assert s3.head_bucket(Bucket="life-of-a-bucket")["ResponseMetadata"]["HTTPHeaders"]["x-amz-bucket-region"] == "us-east-1"
    assert s3.get_bucket_location(Bucket="life-of-a-bucket")["LocationConstraint"] is None
    with pytest.raises(ClientError) as error:
        s3.create_bucket(Bucket="life-of-a-bucket")
    assert error.value.response["Error"]["Code"] == "BucketAlreadyOwnedByYou"
    s3.put_object(Bucket="life-of-a-bucket", Key="a/b", Body=b"")
    answer = raw.request("DELETE", "/life-of-a-bucket")
    assert (answer.status, answer.code, answer.document.findtext("BucketName")) == (409, "BucketNotEmpty", "life-of-a-bucket")
    s3.delete_object(Bucket="life-of-a-bucket", Key="a/b")
    s3.delete_bucket(Bucket="life-of-a-bucket")
    assert raw.request("HEAD", "/life-of-a-bucket").status == 404
    assert raw.request("DELETE", "/life-of-a-bucket").code == "NoSuchBucket"


@pytest.mark.parametrize("name", ["ab", "UpperCase", "under_score", "-dash", "dash-", "1.2.3.4", "a" * 64, "xn--abc", "abc-s3alias", "a..b"])
def test_bad_names(raw, name):
    answer = raw.request("PUT", f"/{name}")
    assert (answer.status, answer.code) == (400, "InvalidBucketName")


def test_location_constraint(raw):
    body = b'<CreateBucketConfiguration><LocationConstraint>%s</LocationConstraint></CreateBucketConfiguration>'
    answer = raw.request("PUT", "/constrained-bucket", body=body % b"mars-north-1")
    assert (answer.status, answer.code) == (400, "InvalidLocationConstraint")
    assert raw.request("PUT", "/constrained-bucket", body=b"<Create").code == "MalformedXML"
    assert raw.request("HEAD", "/constrained-bucket").status == 404


def test_listing_pages(s3):
    names = [f"paged-{number}" for number in range(5)]
    for name in names:
        s3.create_bucket(Bucket=name)
    found, token = [], {}
    while True:
        page = s3.list_buckets(Prefix="paged-", MaxBuckets=2, **token)
        found += [item["Name"] for item in page["Buckets"]]
        if "ContinuationToken" not in page:
            break
        token = {"ContinuationToken": page["ContinuationToken"]}
    assert found == names
    for name in names:
        s3.delete_bucket(Bucket=name)


def test_configurations_that_nobody_made(s3, raw, bucket):
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    assert s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"]
    for query, expected in (("policy", "NoSuchBucketPolicy"), ("cors", "NoSuchCORSConfiguration"), ("lifecycle", "NoSuchLifecycleConfiguration"), ("tagging", "NoSuchTagSet"),
                            ("website", "NoSuchWebsiteConfiguration"), ("object-lock", "ObjectLockConfigurationNotFoundError")):
        answer = raw.request("GET", f"/{bucket}", query=[(query, "")])
        assert (answer.status, answer.code) == (404, expected)
    assert raw.request("PUT", f"/{bucket}", query=[("lifecycle", "")], body=b"<x/>").status == 501


def test_expected_owner(s3, bucket):
    owner = s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"]
    s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=owner)
    with pytest.raises(ClientError) as error:
        s3.list_objects_v2(Bucket=bucket, ExpectedBucketOwner="111122223333")
    assert error.value.response["Error"]["Code"] == "AccessDenied"
