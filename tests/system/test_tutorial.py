"""The tutorial of the README, word by word: its commands go to a shell as a reader types them, in what looks like a clone of the
repository. Only its folder, its ports and, in the ordinary run, the number of its pages are others."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

import conftest
import peers

HEADING = "## From nothing to 2,000 pages through three proxies\n"
PAGES = 2000
PORTS = {"8910": "127.0.0.20", "8911": "127.0.0.21", "8912": "127.0.0.22", "8913": "127.0.0.23"}
LEVELS = ("high", "normal", "low")


def tutorial(language):
    """Its blocks in that language."""
    section = (conftest.ROOT / "README.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


class Reader:
    """A clone, a shell in it, and somebody who types."""

    def __init__(self, folder, environment, pages):
        self.pages, self.clone, self.work = pages, folder / "clone", folder / "work"
        self.ports = {port: str(peers.free_port(host)) for port, host in PORTS.items()}
        self._make_clone()
        self.said = folder / "said"
        self.typed = 0
        with open(self.said, "wb") as output:
            self.shell = subprocess.Popen(
                ["bash"], cwd=self.clone, env=environment | {"FAIRLEAD_LISTEN": "127.0.0.1:0"}, stdin=subprocess.PIPE,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, encoding="utf-8")

    def _make_clone(self):
        (self.clone / "build").mkdir(parents=True)
        (self.clone / "build/fairlead").symlink_to(conftest.BINARY)
        # What the tests need is there already.
        (self.clone / "Makefile").write_text("deps-test:\n")
        data = self.clone / "tests/data"
        shutil.copytree(conftest.ROOT / "tests/data/tutorial", data / "tutorial")
        for file in (data / "tutorial").iterdir():
            file.write_text(self._with_our_ports(file.read_text()))
        domains = (conftest.ROOT / "tests/data/raw-urls/domains.txt").read_text().splitlines(True)
        (data / "raw-urls").mkdir()
        (data / "raw-urls/domains.txt").write_text("".join(domains[:self.pages]))

    def _with_our_ports(self, text):
        return re.sub("|".join(PORTS), lambda found: self.ports[found[0]], text)

    def _range(self, found):
        first, last = int(found[1]), int(found[2])
        return f"'{(first - 1) * self.pages // PAGES + 1},{last * self.pages // PAGES}p'"

    def types(self, block):
        """Types a block, and waits until its commands have ended; returns what they said."""
        block = self._with_our_ports(block).replace("/tmp/fairlead-tutorial", str(self.work))
        block = re.sub(r"'(\d+),(\d+)p'", self._range, block)
        self.typed += 1
        before, end = len(self.text), f"end of block {self.typed}\n"
        self.shell.stdin.write(f"{block}\necho {end}")
        self.shell.stdin.flush()
        peers.wait_for(lambda: end in self.text, f"{block} in\n{self.text}", seconds=120)
        return self.text[before:].replace(end, "")

    @property
    def text(self):
        return self.said.read_text(errors="replace")

    def waits_for_the_servers(self):
        for port, host in PORTS.items():
            peers.wait_for(lambda: peers.is_serving(host, int(self.ports[port])), f"{host} serves: {self.text}")  # noqa: B023
        peers.wait_for(lambda: "  stop " in (self.work / "node.log").read_text(), "the node greets")

    def results(self):
        return [json.loads(line) for line in (self.work / "results").read_text().splitlines()]

    def visits(self):
        """(address, page) of each request that nginx has seen; its lines are written behind its answers."""
        log = self.work / "access.log"
        peers.wait_for(lambda: log.read_text().count("\n") >= self.pages, "nginx has logged")
        return [tuple(line.split(" ")) for line in log.read_text().splitlines()]

    def leaves(self):
        try:
            if self.shell.poll() is None:
                self.types("kill $(jobs -p); wait")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.shell.pid, signal.SIGKILL)
            self.shell.communicate()


@pytest.fixture
def reader(folder, environment, binary):
    """reader(pages) -> one who has a clone and a shell."""
    with contextlib.ExitStack() as stack:

        def start(pages):
            one = Reader(folder, environment, pages)
            stack.callback(one.leaves)
            return one

        yield start


def levels_of(domains):
    """domain -> level, as the tutorial has it: a tenth, then up to the half, then the rest."""
    tenth, half = len(domains) // 10, len(domains) // 2
    return {name: "high" if i < tenth else "normal" if i < half else "low" for i, name in enumerate(domains)}


@pytest.mark.parametrize("pages", [150, pytest.param(PAGES, marks=pytest.mark.nightly)])
def test_the_tutorial_does_what_it_says(reader, pages):
    one = reader(pages)
    servers, push, work, look = tutorial("sh")
    one.types(servers)
    one.waits_for_the_servers()
    told = one.types(push)
    level_of = levels_of((one.clone / "tests/data/raw-urls/domains.txt").read_text().split())
    ready = collections.Counter(level_of.values())
    assert [re.search(rf"^{level} +(\d+) ", told, re.M)[1] for level in LEVELS] == [str(ready[level]) for level in LEVELS]

    one.types(work)
    results = one.results()
    assert {(result["outcome"], result["status"]) for result in results} == {("done", 200)}
    assert len({result["task"] for result in results}) == len(results) == pages
    assert {result["url"].rpartition("/")[2]: result["level"] for result in results} == level_of
    # A task gets its number when it is claimed.
    claimed = [result["level"] for result in sorted(results, key=lambda result: int(result["task"]))]
    assert claimed == [level for level in LEVELS for _ in range(ready[level])]

    visits = one.visits()
    assert sorted(page for _, page in visits) == sorted(f"/{name}" for name in level_of)
    shares = collections.Counter(address for address, _ in visits)
    assert shares.keys() == {"127.0.0.21", "127.0.0.22", "127.0.0.23"} and max(shares.values()) - min(shares.values()) <= 1

    told = one.types(look)
    assert told.startswith(f"{pages}\n{pages}\n")
    assert sorted(map(int, re.findall(r"^eligible +\S+ +\S+ +\d+ +(\d+) ", told, re.M))) == sorted(shares.values())
    if pages == PAGES:
        assert tutorial("") == ["".join(re.findall(r"^ +\d+ 127\.0\.0\.2\d\n", told, re.M))]
    ends = [(one.work / f"worker{n}.log").read_text() for n in (1, 2, 3)]
    done = [re.search(r"^(\d+) done, 0 failed, 0 retried, 0 given back", text, re.M) for text in ends]
    assert sum(int(found[1]) for found in done) == pages
