"""Chromium, without a window, shows a page through the gateway: by HTTP and by SOCKS5, in the clear and by TLS."""

import base64

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

import conftest
import peers
import world

pytestmark = pytest.mark.nightly

PAGE = b"""<!doctype html>
<html><head><title>loading</title><link rel="stylesheet" href="style.css"><link rel="icon" href="dot.png"></head>
<body><p id="text">A page.</p><img id="dot" src="dot.png"><script src="script.js"></script></body></html>
"""
STYLE = b"p { color: rgb(1, 2, 3) }\n"
SCRIPT = b"""addEventListener("load", async () => {
	const data = await (await fetch("data.json", { cache: "no-store" })).json()
	const color = getComputedStyle(document.getElementById("text")).color
	document.title = `${data.word}; ${color}; ${document.getElementById("dot").naturalWidth}`
})
"""
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
FILES = {"page.html": PAGE, "style.css": STYLE, "script.js": SCRIPT, "dot.png": DOT, "data.json": b'{"word": "ready"}'}
SHOWN = "ready; rgb(1, 2, 3); 1"


@pytest.fixture(scope="module")
def place():
    with conftest.short_folder() as folder:
        folder.chmod(0o755)
        with world.World(folder / "browser") as it:
            for name, content in FILES.items():
                it.origin.put(name, content)
            yield it


@pytest.fixture
def browser(tmp_path):
    """browser(proxy) -> a Chromium that takes everything from there, loopback included, and any certificate."""
    started = []

    def start(proxy):
        options = webdriver.ChromeOptions()
        options.binary_location = peers.program("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
                     "--disable-component-update", "--no-first-run", "--ignore-certificate-errors",
                     f"--user-data-dir={tmp_path}/profile{len(started)}", f"--proxy-server={proxy}",
                     "--proxy-bypass-list=<-loopback>"):
            options.add_argument(word)
        service = Service(executable_path=peers.program("chromedriver"), log_path=str(tmp_path / "chromedriver.log"))
        started.append(webdriver.Chrome(service=service, options=options))
        return started[-1]

    yield start
    for it in started:
        it.quit()


@pytest.mark.parametrize("target", ["http", "https"])
@pytest.mark.parametrize("protocol", ["http", "socks5"])
def test_a_page_is_shown_whole(place, browser, protocol, target):
    place.origin.clear_log()
    chromium = browser(f"{protocol}://127.0.0.1:{place.node.port}")
    chromium.get(place.place(target) + "/page.html")
    WebDriverWait(chromium, 30).until(lambda it: it.title != "loading")
    assert chromium.title == SHOWN
    for name in FILES:
        place.seen(f"/{name}", 1)
    seen = place.origin.log()
    assert {line["scheme"] for line in seen} == {target}
    assert {line["addr"] for line in seen} <= set(place.twins)


@pytest.mark.parametrize("protocol", ["http", "socks5"])
def test_connections_of_a_browser_take_turns(place, browser, protocol):
    """Each page load opens a connection of its own: by SOCKS and for tunnels that is what an allocation is."""
    place.origin.clear_log()
    for _ in range(4):
        chromium = browser(f"{protocol}://127.0.0.1:{place.node.port}")
        chromium.get(place.place("https") + "/who")
        assert chromium.find_element("tag name", "body").text.split()[0] in place.twins
        chromium.quit()
    assert {address for address, _ in place.seen("/who", 4)} == set(place.twins)
