"""The demonstration behind scripts/demo: every stage prints one line, the last line says PASS or what failed."""
import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from server import ACCESS_KEY, SECRET_KEY, Server  # noqa: E402

BUCKET = "demo"
COPIES = 2
KILLS = 5
FULL_FILES, FULL_BYTES = 2, 1 << 30
TAPES = "drives=2,cartridges=8"


class Failed(Exception):
    """A stage did not do what it should; the text is for a person."""


def say(stage, text):
    print(f"{stage:<9} {text}", flush=True)


def progress(stage, done, total):
    if sys.stdout.isatty() and total:
        width = 40 * done // total
        print(f"\r{stage:<9} [{'#' * width}{'.' * (40 - width)}] {done}/{total}", end="\r" if done < total else "\r\033[K", flush=True)


def size_text(count):
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000


def digests_of(folder):
    """SHA-256 and size of each regular file, by its path in the folder (bytes as the file system has them)."""
    found = {}
    for directory, folders, names in os.walk(os.fsencode(folder)):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(directory, name)
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            digest = hashlib.sha256()
            try:
                with open(path, "rb") as file:
                    while piece := file.read(1 << 20):
                        digest.update(piece)
            except PermissionError:
                continue
            found[os.fsdecode(os.path.relpath(path, os.fsencode(folder)))] = (digest.hexdigest(), os.path.getsize(path))
    return found


class Demo:
    def __init__(self, folder, work, keep):
        self.source, self.work, self.keep = folder, work, keep
        self.server = Server(work, ["--rdma-shm-trust-local"], vtl=TAPES)
        self.rng = random.Random(20_26)
        self.plane = "none"
        self.mismatches = 0

    def json(self, *arguments):
        return json.loads(self.server.cli(*arguments, "--json").stdout)

    def stage_store(self):
        self.server.start()
        self.server.client().create_bucket(Bucket=BUCKET)
        self.files = digests_of(self.source)
        self.bytes = sum(size for _, size in self.files.values())
        if not self.files:
            raise Failed(f"{self.source} holds no regular file")
        listing = self.work / "files.list"   # one path a NUL: names may hold anything else
        listing.write_bytes(b"".join(os.fsencode(name) + b"\0" for name in self.files))
        self.server.cli("put", "--recursive", "--parallel", "8", "--files-from", listing, self.source, f"s3://{BUCKET}/")
        self.server.cli("archive", "policy", "set", "--bucket", BUCKET, "--pool", "a", "--pool", "b")
        self.server.cli("archive", "now", "--bucket", BUCKET)
        status = self.json("archive", "status")
        if status["objects_archived"] != len(self.files):
            raise Failed(f"{status['objects_archived']} of {len(self.files)} objects are on tape twice; `reelway archive status` said: {status}")
        say("stored", f"{len(self.files)} files, {size_text(self.bytes)}, {COPIES} copies on tape each")

    def stage_recall(self):
        outcome = self.json("archive", "evict", "--bucket", BUCKET)
        if outcome["evicted"] != len(self.files):
            raise Failed(f"evicted {outcome['evicted']} of {len(self.files)}: {outcome['skipped'][:3]}")
        on_disk = sum(1 for path in (self.server.root / BUCKET).rglob("*") if path.is_file() and not path.is_symlink())
        if on_disk:
            raise Failed(f"{on_disk} files are still on disk after the evict")
        keys = list(self.files)
        self.rng.shuffle(keys)
        asked = self.work / "keys.json"
        asked.write_text(json.dumps(keys))
        estimate = self.json("archive", "estimate", "--bucket", BUCKET, "--keys", asked)
        self.server.cli("archive", "recall", "--bucket", BUCKET, "--keys", asked, "--days", "0", "--wait")
        hours = [f"{name} {estimate[key] / 3600:.2f}" for name, key in
                 (("in the order asked", "as_asked_s"), ("by position on tape", "by_position_s"), ("Reelway", "planned_s"), ("lower bound", "lower_bound_s"))]
        say("recalled", f"{len(keys)} objects; hours of LTO-9 drive time on the modelled clock: " + " | ".join(hours))

    def why(self, key):
        return self.json("archive", "why", f"s3://{BUCKET}/{key}")

    def stage_flip(self):
        key = max(self.files, key=lambda name: self.files[name][1])
        copy = self.why(key)["copies"][0]
        self.server.cli("archive", "evict", "--bucket", BUCKET, "--prefix", key)
        self.server.stop()   # the cartridge lies on a table while its bit is flipped
        self.server.cli("vtl", "flip-bit", self.server.vtl, copy["barcode"], "--partition", "1", "--block", str(copy["block"]))
        self.server.start()
        self.server.cli("archive", "recall", "--bucket", BUCKET, "--prefix", key, "--days", "0", "--wait")
        self.check_one(key)
        self.server.cli("archive", "now", "--bucket", BUCKET)
        copies = self.why(key)["copies"]
        sound = [copy for copy in copies if not copy["damaged"]]
        if len(sound) < COPIES:
            raise Failed(f"{key}: {len(sound)} sound copies after the repair: {copies}")
        say("flipped", f"one bit of {copy['barcode']}: caught, read from the other copy, repaired ({len(sound)} sound copies)")

    def check_one(self, key):
        body = self.server.client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        if hashlib.sha256(body).hexdigest() != self.files[key][0]:
            raise Failed(f"{key}: its bytes are not those of the source")

    def stage_delete_catalog(self):
        self.server.cli("archive", "evict", "--bucket", BUCKET)
        self.server.stop()
        for path in self.server.state.glob("catalog*"):
            path.unlink()
        self.server.start()
        report = self.json("tape", "import")
        known = report["objects"]
        if known != len(self.files):
            raise Failed(f"{known} of {len(self.files)} objects came back from the tapes: {report}")
        if report["policies"] != 1:
            raise Failed(f"the archive policy did not come back from the tapes: {report}")
        self.server.cli("archive", "recall", "--bucket", BUCKET, "--days", "0", "--wait")
        say("deleted", f"the catalog: rebuilt from the tapes, {known} of {len(self.files)} objects")

    def stage_kill(self):
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
        acknowledged, running = {}, threading.Event()

        def put_forever(number, client):
            rng, count = random.Random(number), 0
            while running.is_set():
                key, body = f"killed/{number}/{count}", rng.randbytes(rng.randrange(1, 60_000))
                try:
                    client.put_object(Bucket="killed", Key=key, Body=body)
                    acknowledged[key] = hashlib.sha256(body).hexdigest()
                    count += 1
                except (BotoCoreError, ClientError, OSError):
                    time.sleep(0.01)

        self.server.client().create_bucket(Bucket="killed")
        for _ in range(KILLS):
            running.set()
            client = self.server.client(config=Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=10))
            threads = [threading.Thread(target=put_forever, args=(number + len(acknowledged), client)) for number in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(self.rng.uniform(0.3, 0.9))
            self.server.kill()
            running.clear()
            for thread in threads:
                thread.join()
            self.server.start()
        client, lost = self.server.client(), []
        for key, digest in acknowledged.items():
            try:
                if hashlib.sha256(client.get_object(Bucket="killed", Key=key)["Body"].read()).hexdigest() != digest:
                    lost.append(key)
            except ClientError:
                lost.append(key)
        if lost:
            raise Failed(f"{len(lost)} of {len(acknowledged)} acknowledged objects are lost after {KILLS} kills, {lost[0]} among them")
        say("killed", f"the server {KILLS} times under load: {len(acknowledged)} acknowledged objects, none lost")

    def load(self, *options):
        """Every object into a client's memory; returns what the client says and the CPU seconds of client and server."""
        before = self.server_cpu_seconds()
        report = self.json("get", "--recursive", "--digest", "--parallel", "4", *options, f"s3://{BUCKET}/")
        cpu = report["cpu_seconds"] + self.server_cpu_seconds() - before
        wrong = [name for name, (digest, _) in self.files.items() if report["sha256"].get(name) != digest]
        self.mismatches += len(wrong) + abs(len(report["sha256"]) - len(self.files))
        if wrong:
            raise Failed(f"{len(wrong)} objects differ from their source, {wrong[0]!r} among them")
        return report, cpu

    def server_cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stage_load(self):
        plain, plain_cpu = self.load("--rdma", "off")
        out, out_cpu = self.load("--rdma", "require")
        self.plane = out["plane"]
        per_gb = 1e9 / max(1, self.bytes)
        in_band = sum(1 for _, size in self.files.values() if size == 0)
        say("loaded", f"{len(self.files)} objects into memory through {self.plane} ({in_band} empty ones in band): "
                      f"{self.bytes / 1e6 / out['seconds']:.0f} MB/s, {out_cpu * per_gb:.2f} CPU s/GB; "
                      f"over HTTP {self.bytes / 1e6 / plain['seconds']:.0f} MB/s, {plain_cpu * per_gb:.2f} CPU s/GB")

    def run(self):
        print("demo: the server trusts local processes with the shm plane here (--rdma-shm-trust-local)", flush=True)
        for stage in (self.stage_store, self.stage_recall, self.stage_flip, self.stage_delete_catalog, self.stage_kill, self.stage_load):
            stage()
        print(f"demo: PASS objects={len(self.files)} bytes={self.bytes} copies={COPIES} mismatches={self.mismatches} plane={self.plane}", flush=True)


def check_space(folder, work, full):
    needed = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
    needed = (needed + (FULL_FILES * FULL_BYTES if full else 0)) * (COPIES + 2) + (1 << 30)
    free = shutil.disk_usage(work).free
    if free < needed:
        raise Failed(f"{work} has {size_text(free)} free, the demo needs about {size_text(needed)}; set TMPDIR to a larger file system")


def add_full_files(folder, work):
    """A folder that holds DIR's files and some of 1 GiB, made of the source's own bytes over and over."""
    target = work / "source"
    shutil.copytree(folder, target, symlinks=True)
    pieces = [path.read_bytes() for path in sorted(target.rglob("*"))[:2000] if path.is_file() and not path.is_symlink()]
    material = b"".join(pieces) or b"reelway"
    for number in range(FULL_FILES):
        with open(target / f"large-{number}.bin", "wb") as file:
            while file.tell() < FULL_BYTES:
                file.write(material[: FULL_BYTES - file.tell()])
    return target


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="/usr/share/doc", help="what to store (default: /usr/share/doc)")
    parser.add_argument("--full", action="store_true", help="add files of 1 GiB")
    parser.add_argument("--keep", action="store_true", help="leave the server up and say how to use it")
    options = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="demo-", dir=os.environ.get("TMPDIR", ROOT / "build")))
    demo = None
    try:
        if not os.path.isdir(options.folder):
            raise Failed(f"{options.folder} is not a folder")
        check_space(options.folder, work, options.full)
        source = add_full_files(options.folder, work) if options.full else options.folder
        demo = Demo(source, work, options.keep)
        demo.run()
        if options.keep:
            keep_up(demo)
        return 0
    except (Failed, RuntimeError, OSError) as failure:
        print(f"demo: FAILED {failure}", flush=True)
        print(f"demo: the server's log is {work}/server.log", flush=True)
        options.keep = True
        return 1
    finally:
        if demo and demo.server.process:
            demo.server.stop()
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


def keep_up(demo):
    print(f"""
The server stays up until you press Ctrl-C. Its files are in {demo.work}.
  export AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY='{SECRET_KEY}' AWS_DEFAULT_REGION=us-east-1
  aws --endpoint-url {demo.server.endpoint} s3 ls s3://{BUCKET}/
  status page: {demo.server.admin}/""", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("\ndemo: stopped")


if __name__ == "__main__":
    sys.exit(main())
