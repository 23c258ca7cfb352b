"""The kill harness: processes of the real program end by SIGKILL at named points while others work on, the server does so
too, and at the end what is in the store must fit what the oracle saw.

Points    the kill points of the sources: KILL_POINT("name"), compiled in by -Dkill_points=true
Deck      draws points, each as often as any other
Harness   one run: a private Redis, the oracle, threads that drive actors until enough have been killed

An actor is a process of fairlead, started as an operator or a supervisor would, with FAIRLEAD_KILL_POINT=NAME:N or with a
SIGKILL from outside after a random time (ANY_MOMENT). Everything that is drawn comes from one seed, which is printed;
FAIRLEAD_KILL_SEED repeats the draws, not the interleaving. KILLS says how many processes must have been killed (50), a
hundredth of them at each point at least."""

import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
import traceback

import peers
import redis

from oracle import Oracle

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FAIRLEAD_BUILD") or ROOT / "build-kill")
BINARY = os.path.abspath(os.environ.get("FAIRLEAD_BINARY") or BUILD / "fairlead")
KILLS = int(os.environ.get("KILLS") or 50)
KILLS_EACH = max(1, KILLS // 100)
MEMORY = "/dev/shm"

ANY_MOMENT, SERVER = "(any moment)", "(redis-server)"
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: \w+Sanitizer|runtime error:")
COMMAND_LIMIT_S = 120
NOTHING_THERE = 3
# How long a run may take without enough kills, and the world to come to rest after it.
RUN_LIMIT_S = 60 + 3 * KILLS
REST_LIMIT_S = 60


class Points:
    """The kill points that stand in the sources."""

    PATTERN = re.compile(r'KILL_POINT\("([^"]*)"\)')

    @classmethod
    def names(cls):
        """In the order of the sources; one that stands in two places is there twice."""
        return [name for path in sorted((ROOT / "src").rglob("*.c"))
                for name in cls.PATTERN.findall(path.read_text(encoding="utf-8"))]

    @staticmethod
    def are_compiled_in():
        return b"FAIRLEAD_KILL_POINT" in pathlib.Path(BINARY).read_bytes()


class Deck:
    """Draws `things` in random order, each once before any comes again."""

    def __init__(self, things, draw):
        self.things, self.draw, self.left = list(things), draw, []

    def next(self):
        if not self.left:
            self.left = self.draw.sample(self.things, len(self.things))
        return self.left.pop()


class Ended(collections.namedtuple("Ended", "status output error point at")):
    """A process that has ended. `point`: where it was killed, or None; `at`: when that was seen."""

    @property
    def verdict(self):
        """What its caller knows. Whoever was killed, or failed in another way than by there being nothing, may have
        done it or not."""
        return {0: "ok", NOTHING_THERE: "failed"}.get(self.status, "unknown")


class Harness:
    """One run. `draw_for(name)` gives each thread random numbers of its own. What is wrong goes to fault()."""

    def __init__(self, name):
        self.name = name
        self.seed = os.environ.get("FAIRLEAD_KILL_SEED") or str(random.SystemRandom().randrange(10**9))
        self.lock, self.lock_of_looks = threading.Lock(), threading.Lock()
        self.faults, self.kills = [], collections.Counter()
        self.outages = []  # (from, until) of a server that was killed
        self.is_over = threading.Event()
        self.deadline = time.monotonic() + RUN_LIMIT_S
        self.ends = contextlib.ExitStack()

    def __enter__(self):
        assert Points.are_compiled_in(), f"{BINARY} has no kill points: run 'make kill', after 'make clean'"
        place = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.folder = pathlib.Path(self.ends.enter_context(tempfile.TemporaryDirectory(prefix="fl-", dir=place)))
        self.oracle = Oracle(self.folder / "oracle")
        self.ends.callback(self.oracle.close)
        self.redis = peers.RedisServer(self.folder / "redis", tcp=True, appendonly="yes", appendfsync="always")
        self.ends.callback(self.redis.stop)
        self.redis.start()
        # redis-py 4.3 cannot tell of a loss on a unix socket without falling over itself.
        self.client = redis.Redis(self.redis.host, self.redis.port, decode_responses=True)
        self.ends.callback(self.client.close)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("FAIRLEAD_") and not k.lower().endswith("_proxy")}
        for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            self.environment[name] = str(self.folder)
        print(f"{self.name}: seed {self.seed}, {KILLS} kills")
        return self

    def __exit__(self, *_):
        self.ends.close()

    def draw_for(self, name):
        return random.Random(f"{self.seed}/{name}")

    # --- the run ---

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def assert_faultless(self):
        """Tells the first ones, with the seed."""
        assert not self.faults, f"{len(self.faults)} faults, seed {self.seed}; the first:\n" + "\n".join(self.faults[:5])

    def goes_on(self):
        return not self.is_over.is_set()

    def run(self, drivers, points):
        """Runs `drivers`, functions by name, each called again and again in a thread of its own with its random numbers,
        until KILLS processes have been killed, and at each of `points` KILLS_EACH."""
        threads = [threading.Thread(target=self._drive, args=pair, name=pair[0]) for pair in drivers.items()]
        for thread in threads:
            thread.start()
        while not self._is_enough(points) and not self.faults:
            if time.monotonic() > self.deadline:
                self.fault(f"not enough kills after {RUN_LIMIT_S} s: {dict(self.kills)}, of points {points}")
            time.sleep(0.01)
        self.is_over.set()
        for thread in threads:
            thread.join()
        self.assert_faultless()

    def _is_enough(self, points):
        with self.lock:
            return sum(self.kills.values()) >= KILLS and all(self.kills[point] >= KILLS_EACH for point in points)

    def _drive(self, name, step):
        draw = self.draw_for(name)
        try:
            while self.goes_on():
                step(draw)
        except Exception:
            self.fault(f"the driver {name} fell over:\n{traceback.format_exc()}")

    # --- the server ---

    def kill_server(self):
        """SIGKILL, and at once a new one on the same directory."""
        began = time.monotonic()
        with self.lock:
            self.outages.append([began, float("inf")])
        self.redis.kill()
        self.note_kill(SERVER, began)
        self.redis.start()
        self.outages[-1][1] = time.monotonic()

    def kill_server_at_times(self, draw):
        """A driver: every so many kills of others."""
        after = sum(self.kills.values()) + draw.randint(10, 40)
        if self.wait_until(lambda: sum(self.kills.values()) >= after):
            self.kill_server()

    def ask(self, question):
        """What `question(client)` returns, asked again while the server is away."""
        deadline = time.monotonic() + REST_LIMIT_S
        while True:
            try:
                return question(self.client)
            except (redis.ConnectionError, redis.BusyLoadingError):
                assert time.monotonic() < deadline, "the server stays away"
                time.sleep(0.002)

    def wait_until(self, condition, pause_s=0.01):
        """True when it is so, False when the run is over first."""
        while self.goes_on():
            if condition():
                return True
            time.sleep(pause_s)
        return False

    # --- processes ---

    def note_kill(self, point, at, left=(), verdict="unknown", **more):
        """`left`: what the dead process had left behind when it was looked for, after the death; `verdict`: what had
        become of what it was doing."""
        with self.lock:
            self.kills[point] += 1
        self.oracle.write(killed=point, t=at, left=list(left), verdict=verdict, **more)

    def start(self, words, point=None, **options):
        kill = {"FAIRLEAD_KILL_POINT": point} if point and point != ANY_MOMENT else {}
        # Behind "--" stands somebody else's command.
        own = words.index("--") if "--" in words else len(words)
        words = [*words[:own], "--redis", self.redis.unix_url, *words[own:]]
        return subprocess.Popen([BINARY, *map(str, words)], env=self.environment | kill, encoding="utf-8",
                                errors="surrogateescape", **options)

    def command(self, *words, point=None, after_s=0, input=""):
        """Runs a command to its end. `point`: NAME:N at which it kills itself, or ANY_MOMENT, `after_s` from now."""
        with tempfile.TemporaryFile("w+", dir=self.folder, errors="replace") as error:
            process = self.start(words, point, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error)
            timer = threading.Timer(after_s, process.kill)
            if point == ANY_MOMENT:
                timer.start()
            try:
                output, _ = process.communicate(input, timeout=COMMAND_LIMIT_S)
            finally:
                process.kill()
                timer.cancel()
            error.seek(0)
            return self.judge(words, process.returncode, output, error.read(), point)

    def judge(self, words, status, output, error, point, allowed=(-signal.SIGKILL,)):
        """Nobody may end by another signal than ours, or with a finding of a sanitizer."""
        if SANITIZER.search(error) or (status < 0 and not (point and status in allowed)):
            self.fault(f"{words} at {point} ended with status {status}:\n{error[-4000:]}")
        killed_at = point.partition(":")[0] if status == -signal.SIGKILL else None
        return Ended(status, output, error, killed_at, time.monotonic())


    def keep_until(self, words, condition, what):
        """Runs a daemon, whom nobody kills, until `condition()`."""
        with tempfile.TemporaryFile("w+", dir=self.folder, errors="replace") as error:
            process = self.start(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error)
            try:
                peers.wait_for(condition, what, REST_LIMIT_S)
            finally:
                process.terminate()
                process.wait(COMMAND_LIMIT_S)
            self.judge_end(words, process.returncode, error)

    def judge_end(self, words, status, error, point=ANY_MOMENT):
        """Of a daemon. One that is told to end before it listens to that dies of it."""
        error.seek(0)
        return self.judge(words, status, "", error.read(), point, (-signal.SIGKILL, -signal.SIGTERM))


class Daemon:
    """A long-running fairlead that a supervisor keeps up: each life with another point, until the run is over. It may end
    by itself when it loses the server at its start."""

    def __init__(self, harness, words, points, look, passes_max=8, life_s=3):
        """`look()`: what it leaves behind in the store, asked when it has been killed and has no successor yet.
        `life_s`: whoever has not come by its point by then is killed from outside."""
        self.harness, self.words, self.points, self.look = harness, words, points, look
        self.passes_max, self.life_s = passes_max, life_s
        self.deck = None

    def live(self, draw):
        self.deck = self.deck or Deck([*self.points, ANY_MOMENT], draw)
        name = self.deck.next()
        point = name if name == ANY_MOMENT else f"{name}:{draw.randint(1, self.passes_max)}"
        deadline = time.monotonic() + (draw.uniform(0, self.life_s) if name == ANY_MOMENT else self.life_s)
        with tempfile.TemporaryFile("w+", dir=self.harness.folder, errors="replace") as error:
            process = self.harness.start(self.words, point, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=error)
            died = self._outlive(process, deadline)
            if not died:
                process.send_signal(signal.SIGKILL if self.harness.goes_on() else signal.SIGTERM)
            process.wait(COMMAND_LIMIT_S)
            ended = self.harness.judge_end(self.words, process.returncode, error, name if died else ANY_MOMENT)
        if ended.point:
            self.harness.note_kill(ended.point, ended.at, self.look())
        elif ended.status not in (0, -signal.SIGTERM) and "store away" not in ended.error:
            self.harness.fault(f"{self.words} ended with status {ended.status}:\n{ended.error[-2000:]}")

    def _outlive(self, process, deadline):
        """Whether it has ended before the run was over, or its time."""
        while process.poll() is None:
            if not self.harness.goes_on() or time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True
