"""The status page in a real browser: it shows the library and stays live, without any other host."""
import re
import shutil
import subprocess

import pytest

from server import Server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (scripts/setup installs it)")
def test_page_shows_the_library(tmp_path):
    with Server(tmp_path, vtl="drives=2,cartridges=8") as server:
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/browser",
                               "--virtual-time-budget=4000", "--timeout=20000", "--dump-dom", f"{server.admin}/"], capture_output=True, text=True, timeout=120)
        page = done.stdout
        assert len(re.findall(r"data-drive=", page)) == 2, page[-3000:]
        assert len(set(re.findall(r'data-cartridge="([^"]+)"', page))) == 8, page[-3000:]
        assert not re.findall(r'(?:src|href)="https?://', page), "the page loads something from elsewhere"
