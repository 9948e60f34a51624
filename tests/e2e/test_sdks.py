"""The long list of S3 libraries, each at its default settings, in an environment of their own: their requirements differ from the tests'."""
import os
import pathlib
import subprocess

import pytest
from server import ACCESS_KEY, REGION, ROOT, SECRET_KEY

PYTHON = ROOT / "build/venv-all/bin/python"
PROGRAM = pathlib.Path(__file__).with_name("sdk_programs.py")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["minio", "s3fs", "pyarrow", "obstore", "crt", "smart_open", "s5cmd"])
def test_sdk(client, server, bucket, tmp_path):
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON} is missing: run scripts/setup --all")
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION,
                   "AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_EC2_METADATA_DISABLED": "true"}
    done = subprocess.run([PYTHON, PROGRAM, client, server.endpoint, bucket], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
