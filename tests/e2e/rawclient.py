"""A small S3 client that signs what it is told to, right or wrong, and shows the answer as it came. For what SDKs cannot be made to send."""
import base64
import dataclasses
import datetime
import hashlib
import hmac
import http.client
import socket
import ssl
import urllib.parse
import xml.etree.ElementTree as xml

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
STREAMING = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
STREAMING_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclasses.dataclass
class Response:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def document(self):
        root = xml.fromstring(self.body)
        for node in root.iter():
            node.tag = node.tag.rpartition("}")[2]
        return root

    @property
    def code(self):
        return self.document.findtext("Code") if self.body else None


def quote(text, safe="-_.~"):
    return urllib.parse.quote(text, safe=safe)


def hmac_sha256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


@dataclasses.dataclass
class Signature:
    headers: dict
    scope: str
    date: str
    key: bytes
    value: str


class Client:
    def __init__(self, host, port, access_key, secret_key, region="us-east-1", tls=False):
        self.host, self.port, self.access_key, self.secret_key, self.region, self.tls = host, port, access_key, secret_key, region, tls

    # ---- signing ----
    def signing_key(self, day):
        key = hmac_sha256(("AWS4" + self.secret_key).encode(), day)
        for part in (self.region, "s3", "aws4_request"):
            key = hmac_sha256(key, part)
        return key

    def sign(self, method, path, query, headers, payload_hash, now=None, unsigned=()):
        now = now or datetime.datetime.now(datetime.timezone.utc)
        date, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        headers = {"host": f"{self.host}:{self.port}", "x-amz-date": date, "x-amz-content-sha256": payload_hash, **headers}
        signed = sorted((name.lower(), " ".join(str(value).split())) for name, value in headers.items()
                        if name.lower() in ("host", "content-type", "content-md5") or (name.lower().startswith("x-amz-") and name.lower() not in unsigned))
        names = ";".join(name for name, _ in signed)
        canonical_query = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted(query))
        canonical = "\n".join([method, path, canonical_query, "".join(f"{n}:{v}\n" for n, v in signed), names, payload_hash])
        scope = f"{day}/{self.region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = self.signing_key(day)
        value = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={value}"
        return Signature(headers, scope, date, key, value)

    def presign(self, method, path, query=(), expires=300, now=None):
        now = now or datetime.datetime.now(datetime.timezone.utc)
        date, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        scope = f"{day}/{self.region}/s3/aws4_request"
        query = list(query) + [("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", f"{self.access_key}/{scope}"), ("X-Amz-Date", date),
                               ("X-Amz-Expires", str(expires)), ("X-Amz-SignedHeaders", "host")]
        canonical_query = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted(query))
        canonical = "\n".join([method, path, canonical_query, f"host:{self.host}:{self.port}\n", "host", UNSIGNED])
        to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        value = hmac.new(self.signing_key(day), to_sign.encode(), hashlib.sha256).hexdigest()
        return f"{path}?{canonical_query}&X-Amz-Signature={value}"

    # ---- aws-chunked ----
    def chunked(self, body, signature, chunk_size, payload_hash, trailer, spoil):
        """The encoded body. `spoil` names what to get wrong: a chunk's index, "trailer" or "final"."""
        out, previous = [], signature.value
        pieces = [body[at:at + chunk_size] for at in range(0, len(body), chunk_size)] + [b""]
        is_signed = payload_hash != UNSIGNED_TRAILER
        for index, piece in enumerate(pieces):
            head = f"{len(piece):x}"
            if is_signed:
                to_sign = "\n".join(["AWS4-HMAC-SHA256-PAYLOAD", signature.date, signature.scope, previous, EMPTY_SHA256, hashlib.sha256(piece).hexdigest()])
                previous = hmac.new(signature.key, to_sign.encode(), hashlib.sha256).hexdigest()
                wrong = index == spoil or (spoil == "final" and not piece)
                head += f";chunk-signature={'0' * 64 if wrong else previous}"
            out.append(head.encode() + b"\r\n" + piece + (b"\r\n" if piece or not payload_hash.endswith("TRAILER") else b""))
        if payload_hash.endswith("TRAILER"):
            line = f"{trailer[0]}:{trailer[1]}" if trailer else ""
            if line:
                out.append(line.encode() + b"\r\n")
            if is_signed:
                to_sign = "\n".join(["AWS4-HMAC-SHA256-TRAILER", signature.date, signature.scope, previous, hashlib.sha256((line + "\n").encode()).hexdigest()])
                value = hmac.new(signature.key, to_sign.encode(), hashlib.sha256).hexdigest()
                out.append(f"x-amz-trailer-signature:{'0' * 64 if spoil == 'trailer' else value}\r\n".encode())
            out.append(b"\r\n")
        return b"".join(out)

    # ---- requests ----
    def request(self, method, path, query=(), headers=None, body=b"", payload=None, now=None, chunk_size=64 * 1024, trailer=None, spoil=None,
                unsigned=(), decoded_length=None, send_length=True, change=None, sign=True):
        """`path` is sent as given (percent-encode it yourself). `payload`: None for the hash of the body, or one of the forms above, or any text.
        `change(headers)` may alter the headers after signing."""
        headers, query = dict(headers or {}), list(query)
        payload = payload or hashlib.sha256(body).hexdigest()
        streaming = payload.startswith("STREAMING-")
        if streaming:
            headers.setdefault("content-encoding", "aws-chunked")
            headers["x-amz-decoded-content-length"] = str(len(body) if decoded_length is None else decoded_length)
            if trailer and "x-amz-trailer" not in headers:
                headers["x-amz-trailer"] = trailer[0]
        signature = self.sign(method, path, query, headers, payload, now, unsigned) if sign else Signature(
            {"host": f"{self.host}:{self.port}", **headers}, "", "", b"", "")
        if streaming:
            body = self.chunked(body, signature, chunk_size, payload, trailer, spoil)
        headers = signature.headers
        if change:
            change(headers)
        target = path + ("?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in query) if query else "")
        return self.send(method, target, headers, body, send_length)

    def send(self, method, target, headers, body=b"", send_length=True):
        connection = self.connect()
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if not send_length:
                connection.putheader("Transfer-Encoding", "chunked")
            elif body or method in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            if send_length:
                connection.endheaders(body)
            else:
                connection.endheaders((body[at:at + 1000] for at in range(0, len(body), 1000)) if body else iter(()), encode_chunked=True)
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=60, context=ssl._create_unverified_context())
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def exchange_bytes(self, data, timeout=10):
        """Sends raw bytes and returns everything until the server closes or falls silent."""
        received = b""
        with socket.create_connection((self.host, self.port), timeout=timeout) as connection:
            connection.sendall(data)
            connection.settimeout(timeout)
            try:
                while piece := connection.recv(65536):
                    received += piece
            except TimeoutError:
                pass
        return received


def md5_base64(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()
