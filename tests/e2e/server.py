"""Starts the real `reelway serve` on free loopback ports, for tests, benchmarks and the demo."""
import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("REELWAY_BINARY", str(ROOT / "build/release/src/app/reelway"))
ACCESS_KEY = "RWTESTACCESSKEY00001"
SECRET_KEY = "test-secret-key/0123456789+abcdefghijkl"
REGION = "us-east-1"
START_TIMEOUT_S = 60


class Server:
    """`with Server(folder) as server:` keeps the tree in folder/root, the state in folder/state and the virtual library in folder/vtl."""

    def __init__(self, folder, options=(), vtl=None, affinity=None, environment=None):
        self.folder = pathlib.Path(folder)
        self.root, self.state, self.vtl = self.folder / "root", self.folder / "state", self.folder / "vtl"
        self.options, self.library, self.affinity = list(options), vtl, affinity
        self.environment = {**os.environ, "REELWAY_ACCESS_KEY": ACCESS_KEY, "REELWAY_SECRET_KEY": SECRET_KEY, **(environment or {})}
        self.process = None
        self.endpoint = self.admin = None

    def command(self):
        command = ["taskset", "-c", self.affinity] if self.affinity else []
        command += [BINARY, "serve", "--root", str(self.root), "--state", str(self.state), "--listen", "127.0.0.1:0",
                    "--admin-listen", "127.0.0.1:0", "--region", REGION, "--ready-file", str(self.folder / "ready.json")]
        if self.library:
            command += ["--vtl", f"{self.vtl}:{self.library}"]
        return command + self.options

    def start(self):
        for folder in (self.root, self.state):
            folder.mkdir(parents=True, exist_ok=True)
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        self.log = open(self.folder / "server.log", "ab")
        self.process = subprocess.Popen(self.command(), env=self.environment, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"reelway serve ended with {self.process.returncode}:\n{self.log_text()[-4000:]}")
            try:
                addresses = json.loads(ready.read_text())
                self.endpoint, self.admin = addresses["s3"], addresses["admin"]
                return self
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.02)
        raise RuntimeError(f"reelway serve was not ready in {START_TIMEOUT_S} s:\n{self.log_text()[-4000:]}")

    def stop(self):
        """The orderly way; returns the exit status."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"reelway serve did not end within 60 s of SIGTERM:\n{self.log_text()[-4000:]}") from None
        finally:
            self.process = None

    def kill(self):
        """kill -9, as a power cut of the process."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def log_text(self):
        return (self.folder / "server.log").read_text(errors="replace")

    def cli(self, *arguments, check=True, **options):
        """Runs a reelway command against this server; returns the finished process."""
        environment = {**self.environment, "REELWAY_ADMIN": self.admin or "", "REELWAY_ENDPOINT": self.endpoint or "",
                       "REELWAY_REGION": REGION}
        done = subprocess.run([BINARY, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=600, **options)
        if check and done.returncode != 0:
            raise RuntimeError(f"reelway {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def client(self, **options):
        import boto3
        from botocore.config import Config
        config = options.pop("config", Config())
        return boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION, aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY,
                            config=config.merge(Config(s3={"addressing_style": "path"})), **options)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        status = self.stop() if self.process is not None else 0
        if status not in (0, None) and kind is None:
            raise RuntimeError(f"reelway serve ended with {status}:\n{self.log_text()[-4000:]}")
