"""Random operations on a queue, foreign clients among them, against a small model.

After each step every task that was ever pushed is in exactly one of: its list, its retry list, later, claimed, dead,
done. The model knows the order of each list; what the scripts answer must be what it says."""

import random

import pytest
from queue_scripts import LEVELS, Queue, key, list_key, pairs_of, retry_key

STEPS = 250
LOST_MAX, FAILURES_MAX, DEAD_MAX, LEASE_MS = 3, 3, 6, 500
DONE, STALE, DIED = 0, 1, 2


class Task:
    def __init__(self, payload, level):
        self.payload, self.level = payload, level
        self.failures = self.lost = self.released = 0
        self.id = self.claim_name = None


class Wait:
    """Of a task: until when it waits, or is claimed; set aside by somebody who did not name its level."""

    def __init__(self, at, task, came_back=True):
        self.at, self.task, self.came_back, self.is_aside = at, task, came_back, False


def take_due(waits, now, levels, limit):
    """Those that were set aside for these levels, then those whose time has come; at most `limit` are looked at."""
    aside = sorted((w for w in waits if w.is_aside and w.task.level in levels),
                   key=lambda w: (levels.index(w.task.level), int(w.task.id)))
    due = sorted((w for w in waits if not w.is_aside and w.at <= now),
                 key=lambda w: (w.at, int(w.task.id)))
    taken = []
    for wait in (aside + due)[:limit]:
        if wait.task.level in levels:
            waits.remove(wait)
            taken.append(wait)
        else:
            wait.is_aside = True
    return taken


class Model:
    """Lists are kept in the order in which they are consumed."""

    def __init__(self):
        self.lists = {level: [] for level in LEVELS}
        self.retry = {level: [] for level in LEVELS}
        self.later, self.claims = [], []
        self.dead, self.done, self.popped, self.dropped = [], [], [], []
        self.paused, self.settled = set(), set()

    def bury(self, task):
        self.dead.append(task)
        self.dropped += self.dead[:-DEAD_MAX]
        self.dead = self.dead[-DEAD_MAX:]

    def housekeep(self, now, levels, limit):
        due = take_due(self.later, now, levels, limit)
        for wait in due:
            if wait.came_back:
                self.retry[wait.task.level].append(wait.task)
            else:
                wait.task.id = None
                self.lists[wait.task.level].append(wait.task)
        ended = take_due(self.claims, now, levels, limit)
        for task in (wait.task for wait in ended):
            task.lost += 1
            if task.lost >= LOST_MAX:
                self.bury(task)
            else:
                self.retry[task.level].append(task)
        return len(due), len(ended)

    def take(self, count, levels):
        taken = []
        for level in levels:
            for place in (self.retry[level], self.lists[level]):
                while level not in self.paused and place and len(taken) < count:
                    taken.append(place.pop(0))
        return taken

    def places(self):
        return [*self.lists.values(), *self.retry.values(), [w.task for w in self.later],
                [w.task for w in self.claims], self.dead, self.done, self.popped, self.dropped]


class Run:
    def __init__(self, queue, seed):
        self.queue, self.store, self.random = queue, queue.store, random.Random(seed)
        self.model, self.pushed, self.old_claims = Model(), [], []

    def payloads(self, count):
        """Different ones, so that sets can be compared; some with bytes that a careless script would trip over."""
        tails = [b"", b"\0", b"\tpayload=\xff", b"\r\n", b"9007199254740993", b"[]"]
        return [b"%d:" % (len(self.pushed) + i) + self.random.choice(tails) for i in range(count)]

    def enter(self, payloads, level):
        tasks = [Task(payload, level) for payload in payloads]
        self.pushed += tasks
        return tasks

    def push(self):
        level, payloads = self.random.choice(LEVELS), self.payloads(self.random.randint(1, 4))
        side = self.random.choice(["tail", "head"])
        assert self.queue.push(*payloads, level=level, side=side) == [1] * len(payloads)
        for task in self.enter(payloads, level):
            place = self.model.lists[level]
            place.append(task) if side == "tail" else place.insert(0, task)

    def push_later(self):
        level, payloads = self.random.choice(LEVELS), self.payloads(self.random.randint(1, 12))
        delay = self.random.randint(1, 900)
        self.queue.push(*payloads, level=level, due=f"+{delay}")
        ids = {pairs["payload"]: id for id, pairs in self.queue.packed("held").items()}
        for task in self.enter(payloads, level):
            task.id = ids[task.payload]
            self.model.later.append(Wait(self.queue.now + delay, task, came_back=False))

    def foreign_push(self):
        level, (payload,) = self.random.choice(LEVELS), self.payloads(1)
        (task,) = self.enter([payload], level)
        if self.random.random() < 0.5:
            self.store.lpush(list_key(level), payload)
            self.model.lists[level].append(task)
        else:
            self.store.rpush(list_key(level), payload)
            self.model.lists[level].insert(0, task)

    def foreign_pop(self):
        level = self.random.choice(LEVELS)
        place = self.model.lists[level]
        task = place.pop(0) if place else None
        assert self.store.rpop(list_key(level)) == (task.payload if task else None)
        self.model.popped += [task] if task else []

    def claim(self):
        levels = self.random.choice([LEVELS, LEVELS, LEVELS[::-1], ["high"], ["low", "normal"]])
        count, limit = self.random.choice([0, 1, 1, 3, 20]), self.random.choice([1, 4, 256, 256])
        result = self.queue.claim(count, levels=levels, limit=limit, lease=LEASE_MS,
                                  lost_max=LOST_MAX, dead_max=DEAD_MAX)
        moved = self.model.housekeep(self.queue.now, levels, limit)
        assert (result.promoted, result.expired) == moved
        tasks = self.model.take(count, levels)
        assert [c.payload for c in result.claims] == [task.payload for task in tasks]
        for claim, task in zip(result.claims, tasks):
            assert claim[2:6] == (task.level, task.failures, task.lost, task.released)
            assert task.id in (None, claim.id)
            task.id, task.claim_name = claim.id, claim.name
            self.model.claims.append(Wait(claim.expires_ms, task))
            self.old_claims.append(claim)

    def settle(self):
        if not self.old_claims:
            return
        chosen = self.random.sample(self.old_claims[-30:], min(len(self.old_claims), 3))
        verbs = {"ack": "", "nack": self.random.choice([0, 300]), "dead": "", "release": "", "extend": 700}
        operations = [(verb, claim, verbs[verb])
                      for claim in chosen for verb in [self.random.choice(list(verbs))]]
        codes = self.queue.settle(*operations, dead_max=DEAD_MAX, failures_max=FAILURES_MAX)
        released = []
        assert codes == [self.expected(*operation, released) for operation in operations]
        for task in reversed(released):
            self.model.retry[task.level].insert(0, task)

    def expected(self, verb, claim, number, released):
        model, now = self.model, self.queue.now
        wait = next((w for w in model.claims if w.task.claim_name == claim.name), None)
        if not wait:
            return DONE if claim.name in model.settled else STALE
        task = wait.task
        if verb == "extend":
            wait.at = now + number if wait.is_aside else max(wait.at, now + number)
            wait.is_aside = False
            return DONE
        model.claims.remove(wait)
        model.settled.add(claim.name)
        task.failures += verb == "nack"
        if verb == "dead" or verb == "nack" and task.failures >= FAILURES_MAX:
            model.bury(task)
            return DIED
        if verb == "ack":
            model.done.append(task)
        elif verb == "release":
            task.released += 1
            released.append(task)
        elif number:
            model.later.append(Wait(now + number, task))
        else:
            model.retry[task.level].append(task)
        return DONE

    def pause(self):
        level = self.random.choice(LEVELS)
        change = self.store.srem if level in self.model.paused else self.store.sadd
        change(key("paused"), level)
        self.model.paused ^= {level}

    def dead_retry(self):
        count = self.random.randint(1, 3)
        moved, self.model.dead = self.model.dead[:count], self.model.dead[count:]
        assert self.queue.dead_retry(count) == [len(moved), len(self.model.dead)]
        for task in moved:
            task.failures = task.lost = task.released = 0
            task.id = None
            self.model.lists[task.level].append(task)

    def retry_public(self):
        level = self.random.choice(LEVELS)
        moved = self.model.retry[level]
        assert self.queue.retry_public(level) == len(moved)
        for task in moved:
            task.failures = task.lost = task.released = 0
            task.id = None
        self.model.lists[level][:0] = moved
        self.model.retry[level] = []

    def pass_time(self):
        self.queue.now += self.random.choice([1, 50, 400, 2000, -30, -1500])

    def read(self):
        """All that stands in the queue, in one trip: the test has hundreds of steps."""
        pipeline = self.store.pipeline()
        for level in LEVELS:
            pipeline.lrange(list_key(level), 0, -1).lrange(retry_key(level), 0, -1)
        pipeline.hgetall(key("held")).hgetall(key("claims")).zrange(key("later"), 0, -1)
        return pipeline.zrange(key("leases"), 0, -1).lrange(key("dead"), 0, -1).execute()

    def check(self):
        model = self.model
        *lists, held, claims, later, leases, dead = self.read()
        for i, level in enumerate(LEVELS):
            assert lists[2 * i][::-1] == [task.payload for task in model.lists[level]]
            assert lists[2 * i + 1][::-1] == [task.id.encode() for task in model.retry[level]]
        waiting = {int(w.task.id): w.task.payload for w in model.later}
        waiting |= {int(t.id): t.payload for retry in model.retry.values() for t in retry}
        assert {int(id): pairs_of(packed)["payload"] for id, packed in held.items()} == waiting
        assert {int(id) for id in later} == {int(w.task.id) for w in model.later}
        assert {name.decode(): pairs_of(packed)["payload"] for name, packed in claims.items()} == {
            w.task.claim_name: w.task.payload for w in model.claims}
        assert set(leases) == claims.keys()
        assert [pairs_of(letter)["payload"] for letter in dead] == [
            task.payload for task in reversed(model.dead)]
        everywhere = [task.payload for place in model.places() for task in place]
        assert sorted(everywhere) == sorted(task.payload for task in self.pushed)


@pytest.mark.parametrize("seed", range(8))
def test_every_task_is_in_exactly_one_place_and_in_its_order(store, script, seed):
    run = Run(Queue(store, script), seed)
    steps = [run.push, run.push_later, run.foreign_push, run.foreign_pop, run.claim, run.claim,
             run.claim, run.settle, run.settle, run.settle, run.pass_time, run.pass_time, run.pause,
             run.dead_retry, run.retry_public]
    for _ in range(STEPS):
        run.random.choice(steps)()
        run.check()
