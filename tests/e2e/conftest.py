"""Fixtures: one server for most tests, clients for it, and a bucket of each test's own."""
import uuid

import pytest
from botocore.config import Config

import rawclient
from server import ACCESS_KEY, REGION, SECRET_KEY, Server

NO_RETRY = Config(retries={"max_attempts": 1})


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: only with scripts/test --all")


def raw_client(server, **overrides):
    host, port = server.endpoint.rpartition("/")[2].split(":")
    settings = {"host": host, "port": int(port), "access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": REGION,
                "tls": server.endpoint.startswith("https")}
    return rawclient.Client(**{**settings, **overrides})


def admin_client(server):
    host, port = server.admin.rpartition("/")[2].split(":")
    return rawclient.Client(host, int(port), ACCESS_KEY, SECRET_KEY, REGION)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), ["--durability", "none"]) as running:
        yield running


@pytest.fixture(scope="session")
def tape_server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("tapes"), ["--durability", "none"], vtl="drives=2,cartridges=4") as running:
        yield running


@pytest.fixture(scope="session")
def s3(server):
    return server.client(config=NO_RETRY)


@pytest.fixture
def raw(server):
    return raw_client(server)


@pytest.fixture
def bucket(s3):
    """A bucket of the test's own, emptied and removed afterwards."""
    yield from make_bucket(s3)


def make_bucket(client):
    name = f"t-{uuid.uuid4().hex[:20]}"
    client.create_bucket(Bucket=name)
    yield name
    empty_bucket(client, name)
    client.delete_bucket(Bucket=name)


def empty_bucket(client, name):
    for upload in client.list_multipart_uploads(Bucket=name).get("Uploads", []):
        client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
        for item in page.get("Contents", []):
            client.delete_object(Bucket=name, Key=item["Key"])
