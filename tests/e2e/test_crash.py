"""kill -9 at random moments of PUT, archive, evict and recall: nothing acknowledged is lost, nothing half-done is visible."""
import hashlib
import os
import random
import threading
import time

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from server import Server

SEED = int(os.environ.get("REELWAY_TEST_SEED", random.SystemRandom().randrange(1 << 30)))
KILLS, WRITERS = 12, 4
NO_RETRY = Config(retries={"max_attempts": 1}, connect_timeout=5, read_timeout=30)


class Writers:
    """Threads that put, overwrite and delete; remembers for each key what may be there now."""

    def __init__(self, server, rng, allowed, count=WRITERS):
        self.stopping = False
        self.allowed = allowed  # key -> set of digests that may be there (None: absent)
        self.threads = [threading.Thread(target=self.run, args=(number, random.Random(rng.random()))) for number in range(count)]
        self.client = server.client(config=NO_RETRY)
        for thread in self.threads:
            thread.start()

    def run(self, number, rng):
        while not self.stopping:
            key = f"w{number}/{rng.randrange(30)}"
            if rng.random() < 0.15:
                self.attempt(key, None, lambda key=key: self.client.delete_object(Bucket="crash", Key=key))
            else:
                body = rng.randbytes(rng.choice([0, 10, 4096, 70_000, 900_000]))
                digest = hashlib.sha256(body).hexdigest()
                self.attempt(key, digest, lambda key=key, body=body: self.client.put_object(Bucket="crash", Key=key, Body=body))

    def attempt(self, key, after, call):
        before = self.allowed.get(key, {None})
        self.allowed[key] = before | {after}
        try:
            call()
            self.allowed[key] = {after}
        except (BotoCoreError, ClientError, OSError):
            if not self.stopping:
                time.sleep(0.01)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def digest_of(client, key):
    try:
        return hashlib.sha256(client.get_object(Bucket="crash", Key=key)["Body"].read()).hexdigest()
    except ClientError as error:
        assert error.response["Error"]["Code"] == "NoSuchKey", error
        return None


def check_all(client, allowed):
    listed = set()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="crash"):
        listed |= {entry["Key"] for entry in page.get("Contents", [])}
    for key, digests in allowed.items():
        found = digest_of(client, key)
        assert found in digests, f"{key}: holds {found}, allowed {digests} (seed {SEED})"
        assert (key in listed) == (found is not None), f"{key}: list and get disagree (seed {SEED})"


def test_killed_while_putting(tmp_path):
    rng = random.Random(SEED)
    with Server(tmp_path) as server:
        server.client().create_bucket(Bucket="crash")
        allowed = {}
        for _ in range(KILLS):
            writers = Writers(server, rng, allowed)
            time.sleep(rng.uniform(0.05, 0.6))
            server.kill()
            writers.stop()
            server.start()
            check_all(server.client(), allowed)
            # What was seen after the crash is what stays.
            client = server.client()
            allowed = {key: {digest_of(client, key)} for key in allowed}
        leftovers = [path for path in (server.root / ".reelway/tmp").rglob("*") if path.is_file()]
        # Another gateway may still be writing one, so they are only swept a day later; a kill leaves at most one a writer.
        assert len(leftovers) <= KILLS * WRITERS, f"too many temporaries (seed {SEED}): {leftovers[:5]}"


def evict_all(server):
    """Files that recovery has put back are left alone for two seconds."""
    for _ in range(30):
        evicted = server.cli("archive", "evict", "--bucket", "crash", check=False)
        if evicted.returncode == 0:
            return
        assert "changed a moment ago" in evicted.stdout + evicted.stderr
        time.sleep(1)
    pytest.fail(evicted.stdout + evicted.stderr)


@pytest.mark.parametrize("command, options", [("now", []), ("evict", []), ("recall", ["--days", "0"])])
def test_killed_while_moving_to_and_from_tape(tmp_path, command, options):
    rng = random.Random(SEED)
    with Server(tmp_path, vtl="drives=2,cartridges=4") as server:
        client = server.client()
        client.create_bucket(Bucket="crash")
        expected = {}
        for number in range(120):
            body = rng.randbytes(rng.choice([0, 100, 5000, 200_000]))
            expected[f"k/{number:03}"] = hashlib.sha256(body).hexdigest()
            client.put_object(Bucket="crash", Key=f"k/{number:03}", Body=body)
        server.cli("archive", "policy", "set", "--bucket", "crash", "--pool", "a", "--pool", "b")
        if command != "now":
            server.cli("archive", "now", "--bucket", "crash")
        if command == "recall":
            server.cli("archive", "evict", "--bucket", "crash")
        for _ in range(4):
            running = threading.Thread(target=lambda: server.cli("archive", command, "--bucket", "crash", *options, check=False))
            running.start()
            time.sleep(rng.uniform(0.0, 0.5))
            server.kill()
            running.join()
            server.start()
        server.cli("archive", "now", "--bucket", "crash")
        evict_all(server)
        server.cli("archive", "recall", "--bucket", "crash", "--wait")
        client = server.client()
        for key, digest in expected.items():
            assert digest_of(client, key) == digest, f"{key} after kills during {command} (seed {SEED})"
