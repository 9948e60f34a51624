"""`scripts/bench rdma`: GETs of 64 MiB over shm against the best of 1, 2 and 4 threads of a bare libfabric loop that also reads the file, and CPU seconds
per GB of server and client together, HTTP over plane. Prints `bench NAME RATIO TARGET` lines; each ratio is the median of interleaved pairs."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from server import Server  # noqa: E402

PROGRAM = str(ROOT / "build/release/bench/rdma_bench")
OBJECT_BYTES = 64 << 20
PAIRS = 5
SECONDS = "2"
REFERENCE_THREADS = (1, 2, 4)
RATE_TARGET = 0.7
CPU_TARGET = 1.8


def run(*arguments, environment=None):
    """GB/s and CPU seconds per GB of the program itself."""
    out = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment, timeout=120)
    if out.returncode:
        raise SystemExit(f"bench: {' '.join(arguments)}: {out.stderr}")
    rate, cpu = out.stdout.split()
    return float(rate), float(cpu)


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def get(server, mode):
    """GB/s and CPU seconds per GB of server and client together; the client's warm-up GET is left out by giving the server's share the same bytes."""
    host, port = server.endpoint.removeprefix("http://").split(":")
    before = cpu_seconds(server.process.pid)
    rate, cpu = run("get", host, port, "bench", "object", mode, SECONDS, environment=server.environment)
    server_cpu = cpu_seconds(server.process.pid) - before
    gigabytes = rate * float(SECONDS) + OBJECT_BYTES / 1e9
    return rate, cpu + server_cpu / gigabytes


def main():
    with tempfile.TemporaryDirectory() as folder, Server(folder, ["--rdma", "shm", "--rdma-shm-trust-local"]) as server:
        client = server.client()
        client.create_bucket(Bucket="bench")
        client.put_object(Bucket="bench", Key="object", Body=os.urandom(OBJECT_BYTES))
        file = str(server.root / "bench/object")
        rates, cpus = [], []
        for _ in range(PAIRS):
            best = max(run("reference", "shm", file, str(threads), SECONDS)[0] for threads in REFERENCE_THREADS)
            plane_rate, plane_cpu = get(server, "shm")
            _, http_cpu = get(server, "http")
            rates.append((plane_rate, best))
            cpus.append((http_cpu, plane_cpu))
        for name, pairs, target, unit in (("rdma_get_64MiB", rates, RATE_TARGET, "GB/s"), ("rdma_cpu_http_over_plane", cpus, CPU_TARGET, "CPU s/GB")):
            first, second = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
            print(f"# {name}: {first:.2f} against {second:.2f} {unit}")
            print(f"bench {name} {statistics.median(a / b for a, b in pairs):.3f} >={target}", flush=True)


if __name__ == "__main__":
    main()
