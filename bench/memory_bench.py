"""`scripts/bench memory`: 192 readers of four 1 GiB objects and 64 writers of 256 MiB objects (deleted when done) at once. The server's peak resident
size without mapped files is compared with its buffer pool + 128 MiB."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
sys.path.insert(0, str(ROOT / "bench"))
from http_bench import signed_headers  # noqa: E402
from server import Server  # noqa: E402

POOL_MIB = 256
READERS, FILES, READ_BYTES = 192, 4, 1 << 30
WRITERS, WRITE_BYTES = 64, 256 << 20
PIECE = 1 << 20


def request(endpoint, method, key, length=None):
    url = f"{endpoint}/bench/{key}"
    host = endpoint.removeprefix("http://")
    fields = {"Host": host, **signed_headers(method, url)}
    if length is not None:
        fields["Content-Length"] = str(length)
    text = f"{method} /bench/{key} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    name, port = host.split(":")
    connection = socket.create_connection((name, int(port)), 60)
    connection.settimeout(400)
    connection.sendall(text.encode())
    return connection


def read_head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            raise OSError("the server closed the connection")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise OSError(head[:200].decode(errors="replace"))
    return len(rest)


def reader(endpoint, number, failures):
    try:
        with request(endpoint, "GET", f"big-{number % FILES}") as connection:
            done, buffer = read_head(connection), bytearray(PIECE)
            while done < READ_BYTES:
                count = connection.recv_into(buffer)
                if count == 0:
                    raise OSError(f"short body: {done}")
                done += count
    except OSError as error:
        failures.append(f"reader {number}: {error}")


def writer(endpoint, number, failures, piece):
    try:
        with request(endpoint, "PUT", f"written-{number}", WRITE_BYTES) as connection:
            for _ in range(WRITE_BYTES // PIECE):
                connection.sendall(piece)
            read_head(connection)
        with request(endpoint, "DELETE", f"written-{number}") as connection:
            read_head(connection)
    except OSError as error:
        failures.append(f"writer {number}: {error}")


def resident_mib(pid):
    """Resident memory without mapped files: what the process itself keeps."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


def main():
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name, Server(name, ["--durability", "none", "--etag", "crc64", "--pool-bytes", f"{POOL_MIB}MiB"]) as server:
        server.client().create_bucket(Bucket="bench")
        (server.root / "bench").mkdir(exist_ok=True)
        for number in range(FILES):   # objects born by POSIX
            subprocess.run(["truncate", "-s", str(READ_BYTES), str(server.root / "bench" / f"big-{number}")], check=True)
        piece, failures, peak = os.urandom(PIECE), [], 0.0
        threads = [threading.Thread(target=reader, args=(server.endpoint, number, failures)) for number in range(READERS)]
        threads += [threading.Thread(target=writer, args=(server.endpoint, number, failures, piece)) for number in range(WRITERS)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, resident_mib(server.process.pid))
            time.sleep(0.2)
        print(f"# {READERS} readers, {WRITERS} writers: {time.monotonic() - started:.0f} s, peak {peak:.0f} MiB, pool {POOL_MIB} MiB, {len(failures)} failed")
        for failure in failures[:5]:
            print(f"# {failure}")
        print(f"bench memory_peak {peak / (POOL_MIB + 128):.3f} <=1" if not failures else "bench memory_peak inf <=1")


if __name__ == "__main__":
    main()
