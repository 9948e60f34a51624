"""The status page in a real browser: it shows the library, stays live, needs no other host, and says in words what it shows in colours."""
import re
import shutil

import pytest
from browser import Browser
from conftest import NO_RETRY
from server import Server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (scripts/setup installs it)")
CARTRIDGES = "new Set([...document.querySelectorAll('[data-cartridge]')].map(node => node.dataset.cartridge)).size"
FOREIGN = "performance.getEntriesByType('resource').filter(entry => new URL(entry.name).origin !== location.origin).length"
ARCHIVED = "[...document.querySelectorAll('#numbers div')].find(node => node.querySelector('dt').textContent === 'Objects archived')?.querySelector('dd').textContent"
UNNAMED_METERS = "[...document.querySelectorAll('[role=meter]')].filter(node => !node.getAttribute('aria-label')).length"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("page"), ["--durability", "none"], vtl="drives=2,cartridges=8") as server:
        yield server


@pytest.fixture
def page(library, tmp_path):
    with Browser(CHROMIUM, tmp_path / "browser") as browser:
        browser.open(f"{library.admin}/")
        assert browser.wait_for("document.getElementById('live')?.textContent", "live") == "live"
        yield browser


def test_page_shows_the_library(page):
    assert page.evaluate("document.querySelectorAll('[data-drive]').length") == 2
    assert page.evaluate(CARTRIDGES) == 8
    assert page.evaluate(FOREIGN) == 0
    assert page.evaluate(UNNAMED_METERS) == 0
    assert not re.findall(r'(?:src|href)="https?://', page.evaluate("document.documentElement.outerHTML"))


def test_page_stays_live(page, library):
    client = library.client(config=NO_RETRY)
    client.create_bucket(Bucket="live")
    for number in range(3):
        client.put_object(Bucket="live", Key=f"<img src=x onerror=alert(1)>{number}", Body=b"x" * 50_000)
    library.cli("archive", "policy", "set", "--bucket", "live", "--pool", "a", "--pool", "b")
    library.cli("archive", "now", "--bucket", "live")
    assert page.wait_for(ARCHIVED, "3") == "3"
    assert page.evaluate("document.querySelectorAll('img').length") == 0, "names are text, never markup"
    text = page.evaluate("document.getElementById('drives').textContent + document.getElementById('slots').textContent")
    assert "pool a" in text and "pool b" in text


def test_page_notices_that_the_server_is_gone(tmp_path):
    with Server(tmp_path / "server", ["--durability", "none"], vtl="drives=1,cartridges=2") as server, Browser(CHROMIUM, tmp_path / "browser") as browser:
        browser.open(f"{server.admin}/")
        assert browser.wait_for("document.getElementById('live')?.className", "on") == "on"
        server.stop()
        assert browser.wait_for("document.getElementById('live')?.className", "off") == "off"


def test_both_colour_schemes(page):
    page.prefer("light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.prefer("dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
