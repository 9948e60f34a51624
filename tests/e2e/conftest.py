"""Starts the built server on free loopback ports with its own folders, and hands out clients for it."""
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import time
import uuid

import boto3
import botocore.config
import pytest

import rawclient

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("REELWAY_BINARY", ROOT / "build/dev/src/app/reelway"))
ACCESS_KEY = "AKIAREELWAYTEST"
SECRET_KEY = "test-secret-key-for-loopback"
REGION = "us-east-1"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclasses.dataclass
class Server:
    process: subprocess.Popen
    folder: pathlib.Path
    port: int
    admin_port: int
    scheme: str = "http"

    @property
    def endpoint(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def root(self):
        return self.folder / "root"

    def boto3(self, **config):
        settings = {"s3": {"addressing_style": "path"}, "retries": {"max_attempts": 1}, **config}
        return boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION, aws_access_key_id=ACCESS_KEY,
                            aws_secret_access_key=SECRET_KEY, config=botocore.config.Config(**settings))

    def raw(self, **overrides):
        settings = {"host": "127.0.0.1", "port": self.port, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": REGION}
        return rawclient.Client(**{**settings, **overrides})

    def admin(self):
        return self.raw(port=self.admin_port)

    def log_text(self):
        return (self.folder / "log").read_text(errors="replace")

    def command(self, *arguments, check=True, timeout=120):
        """Runs another subcommand of the binary against this server's admin address."""
        done = subprocess.run([str(BINARY), *arguments], env=self.environment(), capture_output=True, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def environment(self):
        return {**os.environ, "REELWAY_ACCESS_KEY": ACCESS_KEY, "REELWAY_SECRET_KEY": SECRET_KEY,
                "REELWAY_ADMIN": f"127.0.0.1:{self.admin_port}", "REELWAY_ENDPOINT": self.endpoint}

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)

    def kill(self):
        self.process.kill()
        self.process.wait()


def start_server(folder, *extra, port=None, admin_port=None, environment=None):
    """`serve` in `folder` (which may hold an earlier server's data); returns once the ready file is there."""
    folder.mkdir(parents=True, exist_ok=True)
    port, admin_port = port or free_port(), admin_port or free_port()
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    arguments = [str(BINARY), "serve", "--root", str(folder / "root"), "--state", str(folder / "state"), "--listen", f"127.0.0.1:{port}",
                 "--admin-listen", f"127.0.0.1:{admin_port}", "--region", REGION, "--ready-file", str(ready), *extra]
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log,
                                   env={**os.environ, "REELWAY_ACCESS_KEY": ACCESS_KEY, "REELWAY_SECRET_KEY": SECRET_KEY, **(environment or {})})
    server = Server(process, folder, port, admin_port, "https" if "--tls-cert" in extra else "http")
    end = time.monotonic() + START_TIMEOUT_S
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise RuntimeError(f"the server did not start: {' '.join(arguments)}\n{server.log_text()[-4000:]}")
        time.sleep(0.02)
    return server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    running = start_server(tmp_path_factory.mktemp("server"), "--durability", "none")
    yield running
    assert running.stop() == 0, running.log_text()[-4000:]


@pytest.fixture(scope="session")
def s3(server):
    return server.boto3()


@pytest.fixture
def raw(server):
    return server.raw()


@pytest.fixture
def bucket(s3):
    """A bucket of the test's own, emptied and removed afterwards."""
    name = f"t-{uuid.uuid4().hex[:20]}"
    s3.create_bucket(Bucket=name)
    yield name
    empty_bucket(s3, name)
    s3.delete_bucket(Bucket=name)


def empty_bucket(client, name):
    for upload in client.list_multipart_uploads(Bucket=name).get("Uploads", []):
        client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
        for item in page.get("Contents", []):
            client.delete_object(Bucket=name, Key=item["Key"])
