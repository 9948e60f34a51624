"""Headless Chromium by its debugging pipe: open a page, ask it things, look at it."""
import base64
import json
import os
import subprocess
import time


class Browser:
    def __init__(self, binary, folder):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        high_read, high_write = os.dup(to_browser), os.dup(from_browser)

        def place_pipes():
            spare_read, spare_write = os.dup(high_read), os.dup(high_write)
            os.dup2(spare_read, 3)
            os.dup2(spare_write, 4)

        self.process = subprocess.Popen([binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}",
                                         "--window-size=1280,1100", "--remote-debugging-pipe", "about:blank"], preexec_fn=place_pipes, pass_fds=(3, 4),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for descriptor in {to_browser, from_browser, high_read, high_write} - {3, 4}:
            os.close(descriptor)
        self.buffer, self.next_id, self.session = b"", 1, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **params):
        message = {"id": self.next_id, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        self.next_id += 1
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                piece = os.read(self.read_end, 1 << 16)
                if not piece:
                    raise RuntimeError("the browser went away")
                self.buffer += piece
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url):
        self.call("Page.enable")
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, wanted, seconds=20):
        """Until the page's answer is the wanted one; returns the last answer."""
        end = time.monotonic() + seconds
        while (value := self.evaluate(expression)) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        return value

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        os.close(self.write_end)
        os.close(self.read_end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
