"""The admin address: what is open, what is signed, what is refused."""
import http.client
import json

import pytest
from conftest import admin_client
from server import ACCESS_KEY, SECRET_KEY


def test_open_pages_show_no_secret(tape_server):
    client = admin_client(tape_server)
    for path, kind in (("/", "text/html"), ("/status.json", "application/json"), ("/health", "text/plain"), ("/metrics", "text/plain")):
        answer = client.request("GET", path, sign=False)
        assert answer.status == 200 and answer.headers["Content-Type"].startswith(kind)
        assert SECRET_KEY.encode() not in answer.body and ACCESS_KEY.encode() not in answer.body


def test_status_json(tape_server):
    status = json.loads(admin_client(tape_server).request("GET", "/status.json", sign=False).body)
    assert len(status["library"]["drives"]) == 2 and len(status["library"]["cartridges"]) == 4
    assert status["disk"]["bytes_total"] > 0 and status["archive"]["recalls_queued"] == 0


def test_events_are_live(tape_server):
    host = tape_server.admin.rpartition("/")[2]
    connection = http.client.HTTPConnection(host, timeout=20)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.readline() == b"event: status\n"
    assert json.loads(answer.readline().removeprefix(b"data: "))["library"]
    connection.close()


def test_metrics_count_requests(tape_server):
    client = tape_server.client()
    client.list_buckets()
    client.list_buckets()  # on the same connection: the first was counted before it was read
    text = admin_client(tape_server).request("GET", "/metrics", sign=False).body.decode()
    assert 'reelway_requests_total{operation="ListBuckets",status="200"}' in text


def test_commands_are_signed(tape_server):
    client = admin_client(tape_server)
    assert client.request("POST", "/v1/archive/status", sign=False, body=b"{}").status == 403
    client.secret_key = "wrong-secret"
    assert client.request("POST", "/v1/archive/status", body=b"{}").status == 403


@pytest.mark.parametrize("path, body, status", [("archive/status", b"{}", 200), ("archive/status", b"", 200), ("archive/status", b"[]", 400), ("archive/status", b"{", 400),
                                                 ("archive/status", b'{"x": 1}', 400), ("archive/why", b'{"bucket": "b"}', 400), ("archive/why", b'{"bucket": 5, "key": "k"}', 400),
                                                 ("nothing", b"{}", 404), ("archive/policy/set", b'{"bucket": "b", "pools": []}', 400)])
def test_commands(tape_server, path, body, status):
    answer = admin_client(tape_server).request("POST", f"/v1/{path}", body=body)
    assert answer.status == status, answer.body
    if status != 200:
        assert json.loads(answer.body)["error"]["message"]


def test_unknown_page(tape_server):
    assert admin_client(tape_server).request("GET", "/other", sign=False).status == 404


def test_without_a_library(server):
    status = json.loads(admin_client(server).request("GET", "/status.json", sign=False).body)
    assert status["library"] is None and status["archive_missing"]
    assert admin_client(server).request("POST", "/v1/archive/status", body=b"{}").status == 501
