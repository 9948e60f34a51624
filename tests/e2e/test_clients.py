"""aws-cli, s3cmd and rclone at their default settings: put, large multipart, list, odd keys, copy, delete."""
import json
import os
import random
import shutil
import subprocess
import sys

import pytest
from server import ACCESS_KEY, REGION, SECRET_KEY

BIN = os.path.dirname(sys.executable)
MIB = 1024 * 1024


def run(*command, environment=None, check=True):
    done = subprocess.run(command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def tool(name):
    path = os.path.join(BIN, name)
    if not os.path.exists(path):
        pytest.fail(f"{name} is missing in the Python environment: run scripts/setup")
    return path


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    rng = random.Random(11)
    for name, size in (("small", 10), ("empty", 0), ("with space+plus", 5000), ("ü/ä=b&c.txt", 70_000), ("deep/er/est", 1), ("large", 40 * MIB + 7)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(rng.randbytes(size))
    return folder


def same(left, right):
    names = sorted(path.relative_to(left) for path in left.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(right) for path in right.rglob("*") if path.is_file())
    for name in names:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


def test_aws_cli(server, bucket, tree, tmp_path):
    environment = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_DEFAULT_REGION": REGION, "AWS_CONFIG_FILE": str(tmp_path / "none")}
    aws = lambda *arguments, **options: run(tool("aws"), "--endpoint-url", server.endpoint, *arguments, environment=environment, **options)  # noqa: E731
    aws("s3", "cp", "--recursive", "--quiet", str(tree), f"s3://{bucket}/up/")
    assert "with space+plus" in aws("s3", "ls", "--recursive", f"s3://{bucket}/up/").stdout
    aws("s3", "cp", "--recursive", "--quiet", f"s3://{bucket}/up/", str(tmp_path / "down"))
    same(tree, tmp_path / "down")
    aws("s3", "cp", "--quiet", f"s3://{bucket}/up/large", f"s3://{bucket}/copied")
    aws("s3", "sync", "--quiet", str(tree), f"s3://{bucket}/up/")
    size = json.loads(aws("s3api", "head-object", "--bucket", bucket, "--key", "copied").stdout)["ContentLength"]
    assert size == 40 * MIB + 7
    aws("s3", "rm", "--recursive", "--quiet", f"s3://{bucket}/")
    assert aws("s3", "ls", "--recursive", f"s3://{bucket}/", check=False).stdout == ""


def test_s3cmd(server, bucket, tree, tmp_path):
    host = server.endpoint.rpartition("/")[2]
    options = ["--no-ssl", f"--host={host}", f"--host-bucket={host}", f"--access_key={ACCESS_KEY}", f"--secret_key={SECRET_KEY}", f"--region={REGION}", "--quiet",
               f"--config={tmp_path}/none"]
    (tmp_path / "none").write_text("[default]\n")
    s3cmd = lambda *arguments: run(tool("s3cmd"), *options, *arguments)  # noqa: E731
    s3cmd("put", "--recursive", f"{tree}/", f"s3://{bucket}/up/")
    assert "ü/ä=b&c.txt" in run(tool("s3cmd"), *options[:-2], options[-1], "ls", "--recursive", f"s3://{bucket}").stdout
    (tmp_path / "down").mkdir()
    s3cmd("get", "--recursive", f"s3://{bucket}/up/", f"{tmp_path}/down/")
    same(tree, tmp_path / "down")
    s3cmd("cp", f"s3://{bucket}/up/with space+plus", f"s3://{bucket}/copied")
    s3cmd("del", "--recursive", "--force", f"s3://{bucket}/")


def test_rclone(server, bucket, tree, tmp_path):
    rclone_binary = shutil.which("rclone", path=f"{BIN}:{os.environ['PATH']}") or pytest.fail("rclone is missing: run scripts/setup")
    remote = f":s3,provider=Other,access_key_id={ACCESS_KEY},secret_access_key='{SECRET_KEY}',region={REGION},endpoint='{server.endpoint}':{bucket}"
    rclone = lambda *arguments: run(rclone_binary, "--config", str(tmp_path / "none"), *arguments)  # noqa: E731
    rclone("copy", "--s3-chunk-size", "5Mi", "--s3-upload-cutoff", "10Mi", str(tree), f"{remote}/up")
    rclone("check", str(tree), f"{remote}/up")
    rclone("copy", f"{remote}/up", str(tmp_path / "down"))
    same(tree, tmp_path / "down")
    rclone("copyto", f"{remote}/up/large", f"{remote}/copied")
    assert "copied" in rclone("lsf", remote).stdout
    rclone("purge", f"{remote}/up")
