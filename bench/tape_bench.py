"""`scripts/bench tape`: bundles against a commit for each object, archiving and recalling against tar with fsync, and the LTO-9 clock against its modelled
rate. Prints `bench NAME RATIO TARGET` lines. The server works through its own commands, with durable stores; a span goes from sending a command to its end.
Every sample needs new objects, so that as many interleaved pairs are made as fit into the time, seven at most."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import rawclient  # noqa: E402
from server import ACCESS_KEY, REGION, SECRET_KEY, Server  # noqa: E402

PAIRS = 7
BUNDLED_S, TREE_S = 90, 210   # for all pairs; the LTO-9 clock takes about two minutes besides
CONNECTIONS = 16
BUNDLED_COUNT, BUNDLED_BYTES, SINGLE_COUNT = 10_000, 4096, 40
TREE_COUNT, TREE_BYTES = 20_000, 65536
CLOCK_COUNT, CLOCK_BYTES = 16, 256 << 20
PATTERN_BYTES = 64       # the virtual library's `payload=pattern` keeps blocks that repeat these
MODELLED_RATE = 400e6    # bytes a second onto LTO-9: docs/tape.md
POLL_S = 0.005


class Uploader:
    """PUTs over one keep-alive connection a thread."""

    def __init__(self, server):
        self.address = server.endpoint.removeprefix("http://")
        host, port = self.address.split(":")
        self.place, self.signer, self.local = (host, int(port)), rawclient.Client(host, int(port), ACCESS_KEY, SECRET_KEY, REGION), threading.local()

    def put(self, path, body):
        if not hasattr(self.local, "connection"):
            self.local.connection = socket.create_connection(self.place)
            self.local.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = self.signer.sign("PUT", path, [], {}, rawclient.UNSIGNED).headers
        lines = [f"PUT {path} HTTP/1.1", f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in headers.items())]
        self.local.connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        self.local.connection.sendall(body)
        answer = self.local.connection.recv(65536)
        while b"\r\n\r\n" not in answer:
            answer += self.local.connection.recv(65536)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"bench: PUT answered {answer[:300]!r}")

    def put_all(self, bucket, prefix, count, bodies):
        """`bodies(n)` is the content of object n."""
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda n: self.put(f"/{bucket}/{prefix}{n // 1000:03}/{n:06}", bodies(n)), range(count)))


def note(text):
    print(f"# {text}", flush=True)


def report(name, ratios, target):
    note(f"{name}: {len(ratios)} pairs: {' '.join(f'{ratio:.3f}' for ratio in ratios)}")
    print(f"bench {name} {statistics.median(ratios):.3f} >={target}", flush=True)


def timed(work, *arguments):
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def pairs_within(limit_s):
    """Numbers of pairs, as long as the next will probably end in time."""
    started = time.monotonic()
    for pair in range(PAIRS):
        if pair > 0 and (time.monotonic() - started) * (pair + 1) / pair > limit_s:
            return
        yield pair


def make_bucket(server, bucket, *policy):
    """With a policy: one copy, nothing read back (neither does tar), no batch before it is asked for; and its volume formatted, loaded and mounted."""
    server.client().create_bucket(Bucket=bucket)
    server.cli("archive", "policy", "set", "--bucket", bucket, "--pool", "a", "--verify", "none", "--minimum-age", "3600", *policy)
    server.client().put_object(Bucket=bucket, Key="first", Body=b"x")
    server.cli("archive", "now", "--bucket", bucket)


def archive(server, bucket, count):
    before = archived(server)
    span = timed(server.cli, "archive", "now", "--bucket", bucket)
    if archived(server) - before != count:
        raise SystemExit(f"bench: {archived(server) - before} of {count} objects were archived\n{server.log_text()[-2000:]}")
    return span


def archived(server):
    return json.loads(server.cli("archive", "status", "--json").stdout)["objects_archived"]


def settle():
    """What others wrote shall not be written out during a sample; and an object younger than 2 s is not archived."""
    os.sync()
    time.sleep(2.5)


def bench_bundled(folder):
    with Server(folder / "bundled", vtl="drives=1,cartridges=2") as server:
        uploader, ratios = Uploader(server), []
        make_bucket(server, "bundled")
        make_bucket(server, "single", "--batch-count", "1")
        for pair in pairs_within(BUNDLED_S):
            uploader.put_all("single", f"{pair}/", SINGLE_COUNT, lambda n: n.to_bytes(8, "big") * (BUNDLED_BYTES // 8))
            settle()
            slow = SINGLE_COUNT / archive(server, "single", SINGLE_COUNT)
            uploader.put_all("bundled", f"{pair}/", BUNDLED_COUNT, lambda n: n.to_bytes(8, "big") * (BUNDLED_BYTES // 8))
            settle()
            fast = BUNDLED_COUNT / archive(server, "bundled", BUNDLED_COUNT)
            note(f"bundled {fast:.0f} objects/s, a commit for each {slow:.1f} objects/s (of {SINGLE_COUNT})")
            ratios.append(fast / slow)
    report("tape_bundled", ratios, 3)


def tar_up(tree, target):
    subprocess.run(["tar", "-C", tree.parent, "-cf", target, tree.name], check=True)
    subprocess.run(["sync", target], check=True)


def tar_down(source, folder):
    subprocess.run(["tar", "-C", folder, "-xf", source], check=True)
    subprocess.run(["sync", "-f", folder], check=True)


def bench_tree(folder):
    content = os.urandom(TREE_BYTES - 8)
    megabytes = TREE_COUNT * TREE_BYTES / 1e6
    archived_ratios, recalled_ratios = [], []
    with Server(folder / "tree", vtl="drives=1,cartridges=2") as server:
        uploader = Uploader(server)
        make_bucket(server, "tree")
        for pair in pairs_within(TREE_S):
            took = timed(uploader.put_all, "tree", f"{pair}/", TREE_COUNT, lambda n: n.to_bytes(8, "big") + content)
            note(f"uploaded {TREE_COUNT / took:.0f} objects/s")
            tree, tar, copy = server.root / "tree" / str(pair), folder / "tree.tar", folder / "copy"
            settle()
            ours = archive(server, "tree", TREE_COUNT)
            settle()
            theirs = timed(tar_up, tree, tar)
            note(f"archived {megabytes / ours:.0f} MB/s, tar {megabytes / theirs:.0f} MB/s")
            archived_ratios.append(theirs / ours)

            took = timed(server.cli, "archive", "evict", "--bucket", "tree", "--prefix", f"{pair}/")
            note(f"evicted {TREE_COUNT / took:.0f} objects/s")
            settle()
            ours = timed(server.cli, "archive", "recall", "--bucket", "tree", "--prefix", f"{pair}/", "--wait")
            if any(path.is_symlink() for path in tree.rglob("*")):
                raise SystemExit("bench: not everything was recalled")
            copy.mkdir()
            settle()
            theirs = timed(tar_down, tar, copy)
            note(f"recalled {megabytes / ours:.0f} MB/s, tar {megabytes / theirs:.0f} MB/s")
            recalled_ratios.append(theirs / ours)
            shutil.rmtree(copy)
            tar.unlink()
    report("tape_archive", archived_ratios, 0.5)
    report("tape_recall", recalled_ratios, 0.5)


def first_growth(path, since):
    """The moment a file becomes larger than `since` bytes."""
    while path.stat().st_size <= since:
        time.sleep(POLL_S)
    return time.perf_counter()


def bench_clock(folder):
    """One run: the clock is the model's. The drive takes the first GiB into its buffer at once; the synchronising flush ends when all is on tape, and the
    command a moment later."""
    library = "drives=1,cartridges=1,payload=pattern"
    with Server(folder / "clock", ["--durability", "none"], vtl=library) as server:   # formatting takes minutes on the LTO-9 clock
        make_bucket(server, "clock")
    server = Server(folder / "clock", ["--durability", "none"], vtl=f"{library},clock=lto9").start()
    try:
        Uploader(server).put_all("clock", "", CLOCK_COUNT, lambda n: n.to_bytes(PATTERN_BYTES, "big") * (CLOCK_BYTES // PATTERN_BYTES))
        settle()
        data = next(server.vtl.glob("RW*")) / "p1.data"
        with concurrent.futures.ThreadPoolExecutor(1) as watcher:
            begun = watcher.submit(first_growth, data, data.stat().st_size)
            archive(server, "clock", CLOCK_COUNT)
            ended = time.perf_counter()
        rate = CLOCK_COUNT * CLOCK_BYTES / (ended - begun.result())
    finally:
        server.kill()   # an orderly end waits for the rewind and the unload
    note(f"LTO-9 clock: {CLOCK_COUNT * CLOCK_BYTES / 1e9:.1f} GB at {rate / 1e6:.0f} MB/s, modelled {MODELLED_RATE / 1e6:.0f} MB/s")
    print(f"bench tape_lto9 {rate / MODELLED_RATE:.3f} >=0.9", flush=True)


def main():
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        folder = pathlib.Path(name)
        bench_bundled(folder)
        bench_tree(folder)
        bench_clock(folder)


if __name__ == "__main__":
    main()
