"""A request exactly as given, without any signature of ours."""


def request(raw, method, target, body=b"", headers=None):
    return raw.send(method, target, {"Host": f"{raw.host}:{raw.port}", **(headers or {})}, body)
