"""`scripts/bench http`: signed keep-alive GETs against nginx, PUTs against a plain receive loop. Prints `bench NAME RATIO TARGET` lines; each ratio is
the median of seven interleaved pairs. Server on core 0, load generator on core 1."""
import hashlib
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import boto3

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import rawclient  # noqa: E402
from server import ACCESS_KEY, REGION, SECRET_KEY, Server  # noqa: E402

PAIRS = 7
GET_SIZES = {"4KiB": (4096, 0.7), "1MiB": (1 << 20, 0.9), "64MiB": (64 << 20, 0.9)}
GET_SECONDS = 3
PUT_BYTES = 64 << 20
PUTS_PER_SAMPLE = 6


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def signed_headers(method, url):
    """Headers that sign a request whose body is not signed (botocore signs bodies over plain HTTP whatever one asks for)."""
    address, _, path = url.removeprefix("http://").partition("/")
    host, port = address.split(":")
    signature = rawclient.Client(host, int(port), ACCESS_KEY, SECRET_KEY, REGION).sign(method, f"/{path}", [], {}, rawclient.UNSIGNED)
    return {name: value for name, value in signature.headers.items() if name != "host"}


def start_nginx(folder, root):
    port = free_port()
    text = (ROOT / "bench/nginx.conf").read_text().replace("@DIR@", str(folder)).replace("@ROOT@", str(root)).replace("@PORT@", str(port))
    (folder / "nginx.conf").write_text(text)
    os.chmod(folder, 0o755)
    process = subprocess.Popen(["taskset", "-c", "0", "nginx", "-c", str(folder / "nginx.conf"), "-g", "user root;"])
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process, port
        except OSError:
            time.sleep(0.05)
    raise SystemExit("bench: nginx did not start")


def rate(url, headers, connections):
    """Requests a second that wrk gets from one URL."""
    arguments = [argument for name, value in headers.items() for argument in ("-H", f"{name}: {value}")]
    out = subprocess.run(["taskset", "-c", "1", "wrk", "-t", "1", "-c", str(connections), "-d", f"{GET_SECONDS}s", *arguments, url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        raise SystemExit("bench: errors in answers\n" + out)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))


def bench_get(server, folder):
    client = server.client()
    nginx, port = start_nginx(folder / "nginx", server.root)
    try:
        for name, (size, target) in GET_SIZES.items():
            client.put_object(Bucket="bench", Key=name, Body=os.urandom(size))
            ours, theirs = f"{server.endpoint}/bench/{name}", f"http://127.0.0.1:{port}/bench/{name}"
            connections = 16 if size < (1 << 24) else 4
            pairs = [(rate(ours, signed_headers("GET", ours), connections), rate(theirs, {}, connections)) for _ in range(PAIRS)]
            report(f"http_get_{name}", pairs, target, "requests/s")
    finally:
        nginx.terminate()
        nginx.wait()


def report(name, pairs, target, unit):
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"# {name}: ours {statistics.median(a for a, _ in pairs):.1f}, reference {statistics.median(b for _, b in pairs):.1f} {unit}")
    print(f"bench {name} {ratio:.3f} >={target}", flush=True)


def put_rate_ours(server, body):
    url = f"{server.endpoint}/bench/put"
    host, port = server.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        started = time.perf_counter()
        for _ in range(PUTS_PER_SAMPLE):
            headers = signed_headers("PUT", url)
            head = "PUT /bench/put HTTP/1.1\r\nHost: " + f"{host}:{port}\r\n" + f"Content-Length: {len(body)}\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
            connection.sendall(head.encode())
            connection.sendall(body)
            answer = connection.recv(65536)
            if not answer.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"bench: PUT answered {answer[:300]!r}")
        return PUTS_PER_SAMPLE * len(body) / (time.perf_counter() - started) / 1e6


def put_rate_reference(folder, body, *mode):
    port = free_port()
    process = subprocess.Popen(["taskset", "-c", "0", str(ROOT / "build/release/bench/receive_loop"), str(port), str(len(body)), str(folder), *mode])
    try:
        for _ in range(100):
            try:
                connection = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.05)
        started = time.perf_counter()
        for _ in range(PUTS_PER_SAMPLE):
            connection.sendall(body)
            assert connection.recv(1) == b"+"
        elapsed = time.perf_counter() - started
        connection.close()
        return PUTS_PER_SAMPLE * len(body) / elapsed / 1e6
    finally:
        process.kill()
        process.wait()


def md5_rate(body):
    """The speed of MD5 alone on one core."""
    started = time.perf_counter()
    hashlib.md5(body).digest()
    return len(body) / (time.perf_counter() - started) / 1e6


def bench_put(folder):
    body = os.urandom(PUT_BYTES)
    os.sched_setaffinity(0, {1})
    with Server(folder / "crc", ["--durability", "none", "--etag", "crc64"], affinity="0") as server:
        server.client().create_bucket(Bucket="bench")
        pairs = [(put_rate_ours(server, body), put_rate_reference(folder, body)) for _ in range(PAIRS)]
        report("http_put_64MiB_crc64", pairs, 0.8, "MB/s")
    # MD5 runs on a thread of its own beside receiving and writing, so the server may use both cores here.
    with Server(folder / "md5", ["--durability", "none"], affinity="0,1") as server:
        server.client().create_bucket(Bucket="bench")
        pairs = [(put_rate_ours(server, body), md5_rate(body)) for _ in range(PAIRS)]
        report("http_put_64MiB_md5", pairs, 0.9, "MB/s")


def main():
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o755)
        (folder / "nginx").mkdir()
        with Server(folder / "get", ["--durability", "none"], affinity="0") as server:
            server.client().create_bucket(Bucket="bench")
            bench_get(server, folder)
        bench_put(folder)


if __name__ == "__main__":
    main()
