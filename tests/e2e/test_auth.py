"""SigV4 in headers and in URLs, and what is answered to requests that are not signed as they should be."""
import datetime

import pytest
import requests_lite as web
from botocore.config import Config
from conftest import raw_client


def now(**delta):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**delta)


def test_signed_request_is_served(raw, bucket):
    assert raw.request("HEAD", f"/{bucket}").status == 200


def test_anonymous_is_denied_everything(raw, bucket):
    for method, path in (("GET", "/"), ("GET", f"/{bucket}"), ("PUT", f"/{bucket}/key"), ("GET", f"/{bucket}/key"), ("DELETE", f"/{bucket}/key")):
        answer = raw.request(method, path, sign=False)
        assert (answer.status, answer.code) == (403, "AccessDenied"), (method, path)


def test_wrong_secret(server, bucket):
    answer = raw_client(server, secret_key="another-secret").request("GET", f"/{bucket}")
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    assert answer.document.findtext("StringToSign").startswith("AWS4-HMAC-SHA256\n")
    assert answer.document.findtext("CanonicalRequest").startswith("GET\n")


def test_unknown_access_key(server, bucket):
    answer = raw_client(server, access_key="AKIANOBODY").request("GET", f"/{bucket}")
    assert (answer.status, answer.code) == (403, "InvalidAccessKeyId")
    assert answer.document.findtext("AWSAccessKeyId") == "AKIANOBODY"


def test_wrong_region_names_the_right_one(server, bucket):
    answer = raw_client(server, region="eu-west-1").request("GET", f"/{bucket}")
    assert (answer.status, answer.code) == (400, "AuthorizationHeaderMalformed")
    assert answer.document.findtext("Region") == "us-east-1"


@pytest.mark.parametrize("minutes", [-16, 16])
def test_clock_skew(raw, bucket, minutes):
    answer = raw.request("GET", f"/{bucket}", now=now(minutes=minutes))
    assert (answer.status, answer.code) == (403, "RequestTimeTooSkewed")


def test_unsigned_amz_header(raw, bucket):
    answer = raw.request("PUT", f"/{bucket}/key", headers={"x-amz-meta-a": "1"}, body=b"x", unsigned=("x-amz-meta-a",))
    assert (answer.status, answer.code) == (403, "AccessDenied")
    assert answer.document.findtext("HeadersNotSigned") == "x-amz-meta-a"


def test_header_changed_after_signing(raw, bucket):
    answer = raw.request("PUT", f"/{bucket}/key", headers={"x-amz-meta-a": "1"}, body=b"x", change=lambda headers: headers.update({"x-amz-meta-a": "2"}))
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    assert raw.request("HEAD", f"/{bucket}/key").status == 404


@pytest.mark.parametrize("value", ["AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=x", "Basic abc", "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=zz"])
def test_malformed_authorization(raw, bucket, value):
    answer = raw.request("GET", f"/{bucket}", change=lambda headers: headers.update({"Authorization": value}))
    assert answer.status == 400 and answer.code in ("AuthorizationHeaderMalformed", "InvalidArgument", "InvalidRequest"), answer.body


def test_presigned_get_and_put(raw, bucket):
    answer = web.request(raw, "PUT", raw.presign("PUT", f"/{bucket}/pre%20signed"), b"by url")
    assert answer.status == 200, answer.body
    answer = web.request(raw, "GET", raw.presign("GET", f"/{bucket}/pre%20signed", [("response-content-type", "text/x-test")]))
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, b"by url", "text/x-test")


def test_presigned_expired(raw, bucket):
    answer = web.request(raw, "GET", raw.presign("GET", f"/{bucket}/key", expires=60, now=now(minutes=-5)))
    assert (answer.status, answer.code) == (403, "AccessDenied")
    assert answer.document.findtext("X-Amz-Expires") == "60"


@pytest.mark.parametrize("expires", ["0", "604801", "-1", "x"])
def test_presigned_with_bad_expiry(raw, bucket, expires):
    answer = web.request(raw, "GET", raw.presign("GET", f"/{bucket}/key", expires=expires))
    assert (answer.status, answer.code) == (400, "AuthorizationQueryParametersError")


def test_presigned_for_another_method(raw, bucket):
    answer = web.request(raw, "DELETE", raw.presign("GET", f"/{bucket}/key"))
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")


def test_boto3_presigned_url(server, raw, bucket):
    s3 = server.client(config=Config(signature_version="s3v4"))
    s3.put_object(Bucket=bucket, Key="a+b c=d", Body=b"x" * 1000)
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a+b c=d"}, ExpiresIn=60)
    answer = web.request(raw, "GET", "/" + url.split("/", 3)[3])
    assert (answer.status, answer.body) == (200, b"x" * 1000)
