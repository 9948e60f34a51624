"""`sdk_programs.py CLIENT ENDPOINT BUCKET`: one S3 library at its default settings: put, get, ranged read, multipart, list, copy where it has that, delete. Runs
in the environment of scripts/python-requirements-all.txt; keys and region come from AWS_* variables, as each library reads them."""
import io
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20
SMALL = bytes(range(256)) * 10
LARGE = os.urandom(MIB) * 25 + b"the end"   # over the multipart thresholds of all
KEYS = {"plain": SMALL, "with space+plus": SMALL[:11], "ü/ä=b&c.txt": SMALL[1:], "empty": b"", "large": LARGE}
REGION, ACCESS_KEY, SECRET_KEY = (os.environ[name] for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
FROM, TO = 5 * MIB - 3, 5 * MIB + 1000   # a range over a border


def same(found, wanted, what):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r:.300} where this was wanted: {wanted!r:.300}")


def minio(endpoint, bucket):
    from minio import Minio
    from minio.commonconfig import CopySource
    from minio.deleteobjects import DeleteObject
    client = Minio(endpoint=endpoint.rpartition("/")[2], access_key=ACCESS_KEY, secret_key=SECRET_KEY, secure=False)
    for key, body in KEYS.items():
        client.put_object(bucket_name=bucket, object_name=key, data=io.BytesIO(body), length=len(body), metadata={"n": "1"})
        same(client.get_object(bucket_name=bucket, object_name=key).data, body, key)
    client.put_object(bucket_name=bucket, object_name="unknown length", data=io.BytesIO(LARGE), length=-1, part_size=5 * MIB)
    same(client.get_object(bucket_name=bucket, object_name="unknown length", offset=FROM, length=TO - FROM).data, LARGE[FROM:TO], "range")
    client.copy_object(bucket_name=bucket, object_name="copied", source=CopySource(bucket_name=bucket, object_name="large"))
    listed = {item.object_name: item.size for item in client.list_objects(bucket_name=bucket, recursive=True)}
    same(listed, {**{key: len(body) for key, body in KEYS.items()}, "unknown length": len(LARGE), "copied": len(LARGE)}, "list")
    same(list(client.remove_objects(bucket_name=bucket, delete_object_list=[DeleteObject(name=key) for key in listed])), [], "errors of a bulk delete")


def s3fs(endpoint, bucket):
    import s3fs as module
    files = module.S3FileSystem(endpoint_url=endpoint)
    for key, body in KEYS.items():
        files.pipe(f"{bucket}/{key}", body)
        same(files.cat(f"{bucket}/{key}"), body, key)
    with files.open(f"{bucket}/written", "wb", block_size=5 * MIB) as stream:   # parts as they fill
        for at in range(0, len(LARGE), 700_000):
            stream.write(LARGE[at:at + 700_000])
    same(files.cat_file(f"{bucket}/written", start=FROM, end=TO), LARGE[FROM:TO], "range")
    with files.open(f"{bucket}/large", "rb") as stream:
        stream.seek(-7, os.SEEK_END)
        same(stream.read(), b"the end", "seek")
    files.copy(f"{bucket}/large", f"{bucket}/copied")
    same(sorted(files.find(bucket)), sorted(f"{bucket}/{key}" for key in [*KEYS, "written", "copied"]), "find")
    same(files.ls(f"{bucket}/ü", detail=False), [f"{bucket}/ü/ä=b&c.txt"], "ls")
    files.rm(f"{bucket}/ü", recursive=True)
    files.rm([f"{bucket}/{key}" for key in [*KEYS, "written", "copied"] if "/" not in key])
    same(files.find(bucket, refresh=True), [], "left")


def pyarrow(endpoint, bucket):
    from pyarrow import fs
    files = fs.S3FileSystem(endpoint_override=endpoint.rpartition("/")[2], scheme="http")
    for key, body in KEYS.items():
        with files.open_output_stream(f"{bucket}/{key}") as stream:
            stream.write(body)
        with files.open_input_stream(f"{bucket}/{key}") as stream:
            same(stream.read(), body, key)
    with files.open_input_file(f"{bucket}/large") as stream:
        same(stream.read_at(TO - FROM, FROM), LARGE[FROM:TO], "range")
    files.create_dir(f"{bucket}/folder/inner")
    files.copy_file(f"{bucket}/large", f"{bucket}/folder/copied")
    files.move(f"{bucket}/plain", f"{bucket}/folder/moved")
    found = {info.path: info.size for info in files.get_file_info(fs.FileSelector(bucket, recursive=True)) if info.is_file}
    wanted = {key: len(body) for key, body in KEYS.items() if key != "plain"} | {"folder/copied": len(LARGE), "folder/moved": len(SMALL)}
    same(found, {f"{bucket}/{key}": size for key, size in wanted.items()}, "list")
    files.delete_dir(f"{bucket}/folder")
    files.delete_dir_contents(bucket)
    same(files.get_file_info(fs.FileSelector(bucket, recursive=True)), [], "left")


def obstore(endpoint, bucket):
    import obstore as module
    from obstore.store import S3Store
    store = S3Store(bucket, endpoint=endpoint, client_options={"allow_http": True})
    for key, body in KEYS.items():
        module.put(store, key, body)
        same(bytes(module.get(store, key).bytes()), body, key)
    same(bytes(module.get_range(store, "large", start=FROM, end=TO)), LARGE[FROM:TO], "range")
    module.copy(store, "large", "copied")
    module.rename(store, "plain", "renamed")
    found = {item["path"]: item["size"] for page in module.list(store) for item in page}
    same(found, {**{key: len(body) for key, body in KEYS.items() if key != "plain"}, "copied": len(LARGE), "renamed": len(SMALL)}, "list")
    module.delete(store, list(found))
    same([item for page in module.list(store) for item in page], [], "left")


def crt(endpoint, bucket):
    """s3transfer over the AWS Common Runtime, put together as aws-cli does it: boto3's own way to it speaks TLS only."""
    import boto3
    from botocore.session import Session
    from s3transfer.crt import BotocoreCRTCredentialsWrapper, BotocoreCRTRequestSerializer, CRTTransferManager, create_s3_crt_client
    session = Session()
    credentials = BotocoreCRTCredentialsWrapper(session.get_credentials()).to_crt_credentials_provider()
    serializer = BotocoreCRTRequestSerializer(session, {"region_name": REGION, "endpoint_url": endpoint})
    with CRTTransferManager(create_s3_crt_client(REGION, credentials, use_ssl=False), serializer) as manager:
        for key, body in KEYS.items():
            manager.upload(io.BytesIO(body), bucket, key).result()
            with tempfile.NamedTemporaryFile() as file:
                manager.download(bucket, key, file.name).result()   # ranged reads in parallel
                same(pathlib.Path(file.name).read_bytes(), body, key)
        client = boto3.client("s3", endpoint_url=endpoint)
        same(client.get_object(Bucket=bucket, Key="large", Range=f"bytes={FROM}-{TO - 1}")["Body"].read(), LARGE[FROM:TO], "range")
        listed = [item["Key"] for item in client.list_objects_v2(Bucket=bucket)["Contents"]]
        same(sorted(listed), sorted(KEYS), "list")
        for key in listed:
            manager.delete(bucket, key).result()
    same(client.list_objects_v2(Bucket=bucket)["KeyCount"], 0, "left")


def smart_open(endpoint, bucket):
    import boto3
    from smart_open import open as open_any
    client = boto3.client("s3", endpoint_url=endpoint)
    url, parameters = f"s3://{bucket}/", {"client": client}
    for key, body in KEYS.items():
        with open_any(url + key, "wb", transport_params=parameters) as stream:
            stream.write(body)
        with open_any(url + key, "rb", transport_params=parameters) as stream:
            same(stream.read(), body, key)
    with open_any(url + "large", "rb", transport_params=parameters) as stream:
        stream.seek(FROM)
        same(stream.read(TO - FROM), LARGE[FROM:TO], "range")
    with open_any(url + "lines.gz", "w", transport_params=parameters) as stream:
        stream.write("one\ntwo\n")
    with open_any(url + "lines.gz", transport_params=parameters) as stream:
        same(list(stream), ["one\n", "two\n"], "lines")
    for key in [*KEYS, "lines.gz"]:
        client.delete_object(Bucket=bucket, Key=key)


def s5cmd(endpoint, bucket):
    program = pathlib.Path(sys.executable).with_name("s5cmd")
    run = lambda *arguments: subprocess.run([program, "--endpoint-url", endpoint, *arguments], capture_output=True, check=True).stdout  # noqa: E731
    with tempfile.TemporaryDirectory() as name:
        up, down = pathlib.Path(name, "up"), pathlib.Path(name, "down")
        for key, body in KEYS.items():
            (up / key).parent.mkdir(parents=True, exist_ok=True)
            (up / key).write_bytes(body)
        run("cp", "--part-size", "5", f"{up}/", f"s3://{bucket}/tree/")
        run("cp", "--part-size", "5", f"s3://{bucket}/tree/*", f"{down}/")   # a ranged read a part
        for key, body in KEYS.items():
            same((down / key).read_bytes(), body, key)
    same(run("cat", f"s3://{bucket}/tree/plain"), SMALL, "cat")
    run("cp", f"s3://{bucket}/tree/large", f"s3://{bucket}/copied")
    run("mv", f"s3://{bucket}/tree/plain", f"s3://{bucket}/moved")
    listed = sorted(line.split(maxsplit=3)[3] for line in run("ls", f"s3://{bucket}/*").decode().splitlines())
    same(listed, sorted([*(f"tree/{key}" for key in KEYS if key != "plain"), "copied", "moved"]), "list")
    run("rm", f"s3://{bucket}/*")


if __name__ == "__main__":
    {"minio": minio, "s3fs": s3fs, "pyarrow": pyarrow, "obstore": obstore, "crt": crt, "smart_open": smart_open, "s5cmd": s5cmd}[sys.argv[1]](*sys.argv[2:])
