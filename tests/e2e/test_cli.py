"""The command line: exit statuses, options from flags, environment and file, signals."""
import json
import os
import signal
import subprocess

import pytest
from server import BINARY, Server

SUBCOMMANDS = [["serve"], ["archive"], ["archive", "policy", "set"], ["archive", "recall"], ["tape"], ["tape", "import"], ["get"], ["put"], ["bench"], ["vtl", "flip-bit"], ["version"]]


def run(*arguments, **environment):
    base = {name: value for name, value in os.environ.items() if not name.startswith("REELWAY_")}
    return subprocess.run([BINARY, *arguments], env={**base, **environment}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=" ".join)
def test_help(command):
    done = run(*command, "--help")
    assert done.returncode == 0 and "Usage:" in done.stdout


def test_version():
    assert run("version").stdout.startswith("reelway ") and run("version").returncode == 0


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["serve", "--no-such-option"], ["archive"], ["get", "s3://b/k"], ["put", "/no/such/file", "not-a-url"],
                                       ["serve", "--durability", "some"], ["serve"]])
def test_wrong_use_is_two(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and (done.stderr or done.stdout)


@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key"])
def test_half_of_tls_is_no_tls(tmp_path, option):
    done = run("serve", "--root", str(tmp_path / "root"), "--state", str(tmp_path / "state"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
               option, str(tmp_path / "some.pem"), REELWAY_ACCESS_KEY="AKIATEST", REELWAY_SECRET_KEY="some-secret-key")
    assert done.returncode == 2 and "tls-cert" in done.stderr


def test_hangup_and_broken_pipes_do_not_end_it(tmp_path):
    with Server(tmp_path, ["--durability", "none"]) as server:
        for number in (signal.SIGHUP, signal.SIGPIPE):
            server.process.send_signal(number)
        s3 = server.client()
        s3.create_bucket(Bucket="still-there")
        assert server.process.poll() is None and server.stop() == 0


def test_keys_are_needed(tmp_path):
    done = run("serve", "--root", str(tmp_path / "root"), "--state", str(tmp_path / "state"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    assert done.returncode == 2 and "REELWAY_ACCESS_KEY" in done.stderr


def test_unknown_key_in_the_file_is_named(tmp_path):
    (tmp_path / "reelway.toml").write_text('root = "/tmp"\nroots = "/tmp"\n')
    done = run("serve", "--config", str(tmp_path / "reelway.toml"))
    assert done.returncode == 2 and "roots" in done.stderr


def test_flags_win_over_environment_over_file(tmp_path):
    (tmp_path / "reelway.toml").write_text('region = "from-file"\nlog-format = "json"\n')
    def region_of(options, environment):
        with Server(tmp_path / str(len(options) + 10 * len(environment)), ["--config", str(tmp_path / "reelway.toml"), *options], environment=environment) as server:
            return json.loads(subprocess.run(["curl", "-s", f"{server.admin}/status.json"], capture_output=True, text=True).stdout)["region"]
    # Server passes --region itself, which must win over both.
    assert region_of([], {"REELWAY_REGION": "from-environment"}) == "us-east-1"


def test_port_in_use_says_so(tmp_path):
    with Server(tmp_path / "first") as first:
        port = first.endpoint.rpartition(":")[2]
        done = run("serve", "--root", str(tmp_path / "root"), "--state", str(tmp_path / "state"), "--listen", f"127.0.0.1:{port}", "--admin-listen", "127.0.0.1:0",
                   REELWAY_ACCESS_KEY="AKIATEST", REELWAY_SECRET_KEY="some-secret-key")
        assert done.returncode == 1 and port in done.stderr


def test_commands_without_a_server():
    done = run("archive", "status", "--admin", "127.0.0.1:9", REELWAY_ACCESS_KEY="AKIATEST", REELWAY_SECRET_KEY="some-secret-key")
    assert done.returncode == 1 and done.stderr


def test_tls(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-days", "2", "-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")], check=True, capture_output=True)
    with Server(tmp_path, ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"), "--durability", "none"]) as server:
        assert server.endpoint.startswith("https://")
        client = server.client(verify=str(tmp_path / "cert.pem"))
        client.create_bucket(Bucket="secure")
        client.put_object(Bucket="secure", Key="k", Body=b"x" * 300_000)
        assert client.get_object(Bucket="secure", Key="k")["Body"].read() == b"x" * 300_000
        assert client.get_object(Bucket="secure", Key="k", Range="bytes=5-9")["Body"].read() == b"x" * 5


def test_put_and_get_trees(server, bucket, tmp_path):
    tree = tmp_path / "tree"
    for name, size in (("a", 0), ("b/c", 100), ("b/with space", 3_000_000), ("ü", 5)):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(os.urandom(size))
    server.cli("put", "--recursive", tree, f"s3://{bucket}/up/")
    server.cli("get", "--recursive", "--rdma", "off", f"s3://{bucket}/up/", tmp_path / "down")
    for path in tree.rglob("*"):
        if path.is_file():
            assert (tmp_path / "down" / path.relative_to(tree)).read_bytes() == path.read_bytes()
    report = json.loads(server.cli("get", "--recursive", "--digest", "--rdma", "off", "--json", f"s3://{bucket}/up/").stdout)
    assert set(report["sha256"]) == {"a", "b/c", "b/with space", "ü"} and report["objects"] == 4 and report["plane"] == "http"


def test_get_out_of_band(server, s3, bucket, tmp_path):
    body = os.urandom(20_000_001)
    s3.put_object(Bucket=bucket, Key="big", Body=body)
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    report = json.loads(server.cli("get", "--recursive", "--digest", "--rdma", "require", "--json", f"s3://{bucket}/").stdout)
    assert report["objects"] == 2 and report["plane"].startswith("ofi1/")
    server.cli("get", "--rdma", "require", f"s3://{bucket}/big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == body


def test_put_out_of_band(server, s3, bucket, tmp_path):
    bodies = {"big": os.urandom(40_000_001), "small": os.urandom(100), "empty": b""}
    for name, body in bodies.items():
        (tmp_path / name).write_bytes(body)
    report = json.loads(server.cli("put", "--recursive", "--rdma", "require", "--json", tmp_path, f"s3://{bucket}/").stdout)
    assert report["objects"] == 3 and report["plane"].startswith("ofi1/")
    for name, body in bodies.items():
        assert s3.get_object(Bucket=bucket, Key=name)["Body"].read() == body
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_get_never_leaves_its_folder(server, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="../escaped", Body=b"x")
    s3.put_object(Bucket=bucket, Key="fine", Body=b"x")
    done = server.cli("get", "--recursive", "--rdma", "off", f"s3://{bucket}/", tmp_path / "down", check=False)
    assert done.returncode == 3
    assert not (tmp_path / "escaped").exists() and (tmp_path / "down/fine").exists()
