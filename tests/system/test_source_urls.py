"""URLs that keep a pool supplied: whatever an origin answers, the pool stays until there is a whole list."""

import re

import pytest

import look
import peers
import wire
from supplies import (LOADED, UNUSABLE, Supplied, eligible, member, members, parked, pool_dumps,
                      record, replace, text_of, use)

HUGE = 100 * 1024 * 1024
GOOD = text_of(1, 2, 3)
COUNTS = {member(1): 41, member(2): 7, member(3): 12}
# What no bad answer may bring into the pool.
TROJAN = text_of(66)
SECRET = "sesame-0451"


class Origin:
    """Answers each request with `script`, which a test may exchange at any time."""

    def __init__(self, upstream):
        self.script = self.gives(GOOD)
        self.server = upstream(lambda connection: self.script(connection))
        self.url = f"{self.server.url}/list.txt"

    @staticmethod
    def gives(body, status="200 OK", **fields):
        data = body if isinstance(body, bytes) else body.encode()
        return wire.answers(wire.response(data, status, **({"Content_Type": "text/plain"} | fields)))

    def answer(self, *words, **fields):
        self.script = self.gives(*words, **fields)

    @property
    def heads(self):
        return [connection.head for connection in self.server.connections]


@pytest.fixture
def origin(upstream):
    return Origin(upstream)


@pytest.fixture
def supplied(node, store):
    """supplied(url, words) -> a node whose URL is loaded."""

    def start(url, *words, **options):
        it = Supplied(node("--list", url, "--list-grace", "1ms", *words, role="up", **options), store)
        peers.wait_for(lambda: it.count(message=LOADED), "the list is loaded")
        return it

    return start


@pytest.fixture
def used(supplied, origin, store):
    """A node whose members were given so often as COUNTS has it."""
    it = supplied(origin.url)
    use(store, COUNTS)
    return it


# --- good answers -------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_url_supplies_the_pool(used, origin, store):
    assert eligible(store) == COUNTS
    assert record(store, member(1))["sources"] == {f"list:{origin.url}"}
    head = origin.heads[0]
    assert (head.method, head.target) == ("GET", "/list.txt")
    assert not {"if-none-match", "if-modified-since", "authorization", "cookie"} & set(head.fields)


@pytest.mark.core
def test_a_changed_list_leaves_the_counts_of_survivors_alone(used, origin, store):
    origin.answer(text_of(3, 1, 4))
    used.loses(1)
    assert eligible(store) == {member(1): 41, member(3): 12, member(4): 7} and parked(store) == {member(2): 7}


def test_an_unchanged_list_changes_nothing(used, store):
    before = pool_dumps(store)
    used.reread()
    assert pool_dumps(store) == before


@pytest.mark.parametrize("encode", [lambda data: data, wire.chunked], ids=["until-close", "chunked"])
def test_a_body_without_a_length_is_whole_at_its_end(used, origin, store, encode):
    head = b"HTTP/1.1 200 OK\r\n" + (b"Transfer-Encoding: chunked\r\n" if encode is wire.chunked else b"") + b"\r\n"
    origin.script = wire.answers(head + encode(text_of(1, 2, 3, 4).encode()))
    used.reread()
    assert eligible(store) == COUNTS | {member(4): 7}


def test_a_redirect_to_http_is_followed(used, origin, store, upstream):
    other = upstream(wire.answers(wire.response(text_of(1, 2, 3, 4).encode())))
    origin.answer("", "302 Found", Location=f"{other.url}/moved")
    used.reread()
    assert eligible(store) == COUNTS | {member(4): 7}
    assert other.connections[0].head.target == "/moved"


# --- bad answers --------------------------------------------------------------------------------------------------


def streams(connection):
    """A hundred megabytes of good lines, of which nobody said how many there would be."""
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", TROJAN.encode())
    piece = b"#" * 1023 + b"\n"
    for _ in range(HUGE // (64 * len(piece))):
        connection.send(piece * 64)


def announces(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % HUGE, TROJAN.encode())
    connection.read_to_end()


def length(more):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(TROJAN) + more)


PAGE = f"<!DOCTYPE html>\n<html><body><pre>\n{TROJAN}</pre></body></html>\n"
BAD = {
    "500": (Origin.gives(TROJAN, "500 Internal Server Error"), "500"),
    "404": (Origin.gives(TROJAN, "404 Not Found"), "404"),
    "204": (wire.answers(b"HTTP/1.1 204 No Content\r\n\r\n"), "204|usable"),
    "206": (Origin.gives(TROJAN, "206 Partial Content", Content_Range="bytes 0-27/99"), "206"),
    "304 unasked": (wire.answers(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "304"),
    "empty": (Origin.gives(""), "no usable entry"),
    "comments": (Origin.gives("# nothing today\n"), "no usable entry"),
    "JSON error": (Origin.gives('{"error": "quota"}', Content_Type="application/json"), "no usable entry"),
    "HTML by type": (Origin.gives(TROJAN, Content_Type="Text/HTML; charset=utf-8"), "HTML"),
    "HTML by content": (Origin.gives(PAGE), "HTML"),
    "HTML behind a mark": (Origin.gives(b"\xef\xbb\xbf\r\n " + PAGE.encode()), "HTML"),
    "HTML without a type": (wire.answers(wire.response(PAGE.encode())), "HTML"),
    "truncated": (wire.answers(length(100) + TROJAN.encode()), ""),
    "truncated by a reset": (lambda c: (c.read_request(), c.send(length(100), TROJAN.encode()), c.reset()), ""),
    "truncated chunks": (wire.answers(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      b"%x\r\n" % len(TROJAN) + TROJAN.encode() + b"\r\n"), ""),
    "JSON cut short": (Origin.gives('["192.0.2.66:8080", "192.0'), "no usable entry"),
    "100 MB": (streams, "large|big"),
    "100 MB announced": (announces, "large|big"),
    "garbage": (wire.answers(b"\x00\x01\x02garbage\r\n\r\n" + TROJAN.encode()), ""),
    "closed": (wire.closes, ""),
    "reset": (wire.resets, ""),
    "gzip cut short": (Origin.gives(b"\x1f\x8b\x08\x00", Content_Encoding="gzip"), ""),
}


@pytest.mark.core
def test_after_each_bad_answer_the_pool_is_as_before(used, origin, store):
    before, seen = pool_dumps(store), look.contents(store)
    for name, (script, error) in BAD.items():
        origin.script = script
        said = used.refused()
        assert re.search(error, said), (name, said)
        assert eligible(store) == COUNTS and parked(store) == {}, name
    assert pool_dumps(store) == before
    assert {k: v for k, v in look.contents(store).items() if k != "nodes"} == {
        k: v for k, v in seen.items() if k != "nodes"}
    assert used.count(message=UNUSABLE) == len(BAD)
    used.grows_old()
    origin.answer(text_of(1, 2, 3, 4))
    used.reread()
    assert eligible(store) == COUNTS | {member(4): 7}


@pytest.mark.core
@pytest.mark.parametrize("scheme", ["file://{}", "file:{}", "FILE://localhost{}"])
def test_a_redirect_to_a_file_is_refused(used, origin, store, folder, scheme):
    (folder / "trojan").write_text(TROJAN)
    origin.answer("", "302 Found", Location=scheme.format(folder / "trojan"))
    used.refused()
    assert eligible(store) == COUNTS


@pytest.mark.parametrize("scheme", ["gopher", "ftp", "dict", "scp"])
def test_a_redirect_to_another_scheme_is_refused(used, origin, upstream, scheme):
    trap = upstream(wire.is_silent)
    origin.answer("", "301 Moved Permanently", Location=f"{scheme}://{trap.host}:{trap.port}/x")
    used.refused()
    assert trap.connections == []


def test_a_circle_of_redirects_ends(used, origin):
    origin.answer("", "302 Found", Location=origin.url)
    used.refused()
    assert len(origin.server.connections) < 20


def test_a_server_that_is_gone_changes_nothing(used, origin, store):
    origin.server.refuse()
    used.refused()
    assert eligible(store) == COUNTS


def test_a_server_that_says_nothing_is_given_up_at_the_deadline(supplied, origin, store):
    it = supplied(origin.url, "--list-timeout", "300ms")
    origin.script = wire.is_silent
    it.refused()
    origin.script = wire.drips(b"HTTP/1.1 200 OK\r\n\r\n" + TROJAN.encode(), b"#")
    it.refused()
    assert eligible(store).keys() == members(1, 2, 3)


def test_a_node_whose_url_fails_at_the_start_serves_and_learns_later(node, origin, store):
    origin.answer("no", "503 Service Unavailable")
    it = Supplied(node("--list", origin.url, role="up"), store)
    peers.wait_for(lambda: it.count(message=UNUSABLE), "the failure is told")
    with it.node.connect() as client:
        assert client.get().status == 503
    origin.answer(GOOD)
    it.reread()
    assert eligible(store).keys() == members(1, 2, 3)


def test_a_slow_url_does_not_keep_the_node_from_serving(node, origin, store):
    origin.script = wire.is_silent
    running = node("--list", origin.url, role="up")
    origin.server.wait_for_connection()
    with running.connect() as client:
        assert client.get().status == 503
    running.stop()


# --- validators ---------------------------------------------------------------------------------------------------


DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.core
def test_only_what_has_changed_since_the_last_good_reading_is_sent_again(node, upstream, store):
    """By the clock, since SIGHUP reads in full. All in one wait: a list that has not changed, and others whose last
    answer was bad, and whose validator must be forgotten, or a 304 to it would call the bad list good."""
    good = Origin(upstream)
    others = [Origin(upstream) for _ in range(3)]
    for origin in (good, *others):
        origin.answer(GOOD, ETag='"good"', Last_Modified=DATE)
    urls = [word for origin in (good, *others) for word in ("--list", origin.url)]
    it = Supplied(node(*urls, "--list-interval", "10s", "--verbose", role="up"), store)
    peers.wait_for(lambda: it.count(message=LOADED) == 4, "all are loaded")
    use(store, COUNTS)
    before = pool_dumps(store)
    for origin, bad in zip(others, ("", "nonsense\n", PAGE)):
        origin.answer(bad, ETag='"bad"')
    it.hang_up()
    peers.wait_for(lambda: it.count(message=UNUSABLE) == 3 and it.count(message=LOADED) == 5, "all are read again")
    good.script = wire.answers(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    peers.wait_for(lambda: it.count(message="source unchanged") == 1 and it.count(message=UNUSABLE) >= 6,
                   "all are asked again by the clock")
    assert pool_dumps(store) == before
    asked = good.heads[2].fields
    assert (asked["if-none-match"], asked["if-modified-since"]) == ('"good"', DATE)
    assert [origin.heads[2].fields.get("if-none-match") for origin in others].count('"bad"') == 0
    # A 304 was a good reading: the interval, at least 8 s, does not count.
    good.answer("no", "500 No")
    it.hang_up()
    peers.wait_for(lambda: it.count(source=f"list:{good.url}", message=UNUSABLE), "it fails")
    assert it.node.log(source=f"list:{good.url}", message=UNUSABLE)[0]["age_ms"] < 7000


def test_a_store_that_has_lost_all_is_supplied_again(supplied, origin, store):
    """A 304 would leave the pool empty."""

    def script(connection):
        asked = connection.read_request()
        if asked.fields.get("if-none-match") == '"v1"':
            connection.send(b"HTTP/1.1 304 Not Modified\r\n\r\n")
        else:
            connection.send(wire.response(GOOD.encode(), ETag='"v1"'))

    origin.script = script
    supplied(origin.url)
    store.client.flushall()
    peers.wait_for(lambda: eligible(store).keys() == members(1, 2, 3), "the pool is supplied again")


# --- a real origin, secrets, sections -----------------------------------------------------------------------------


@pytest.mark.core
def test_a_real_origin_supplies_the_pool(supplied, peer, store):
    nginx = peer(peers.Nginx)
    nginx.put("list.txt", GOOD.encode())
    it = supplied(f"{nginx.url}/list.txt")
    use(store, COUNTS)
    it.reread()
    root = nginx.folder / "root"
    for content in (b"", b"<html>\n" + TROJAN.encode()):
        replace(root / "list.txt", content)
        it.refused()
    (root / "list.txt").unlink()
    assert "404" in it.refused()
    with open(root / "list.txt", "wb") as file:
        file.write(TROJAN.encode())
        file.truncate(HUGE)
    it.refused()
    assert eligible(store) == COUNTS
    replace(root / "list.txt", text_of(2, 3, 4))
    it.loses(1)
    assert eligible(store) == {member(2): 7, member(3): 12, member(4): 7} and parked(store) == {member(1): 41}


def test_credentials_of_a_url_are_sent_and_never_shown(supplied, origin, store):
    url = origin.url.replace("http://", f"http://user:{SECRET}@")
    it = supplied(url)
    assert origin.heads[0].fields["authorization"].startswith("Basic ")
    origin.answer("no", "500 No")
    it.refused()
    assert SECRET not in it.node.text
    assert [key for key, text in look.contents(store).items() if SECRET in text] == []
    for pid in (it.node.pid, *it.node.children()):
        assert SECRET.encode() not in look.command_line(pid)


def test_places_that_differ_in_credentials_are_two_sources(node, upstream, store):
    def account(connection):
        """One list for each customer."""
        who = connection.read_request().fields["authorization"]
        connection.send(wire.response(text_of(*((1, 2) if who.endswith("YTox") else (2, 3))).encode()))

    server = upstream(account)
    urls = [f"http://{who}@{server.host}:{server.port}/list" for who in ("a:1", "b:2")]
    it = Supplied(node("--list", urls[0], "--list", urls[1], "--list-grace", "1ms", role="up"), store)
    peers.wait_for(lambda: it.count(message=LOADED) == 2, "both are loaded")
    it.hang_up()
    peers.wait_for(lambda: it.count(message=LOADED) == 4, "both are loaded again")
    assert eligible(store).keys() == members(1, 2, 3) and it.left() == 0


def test_a_section_may_be_a_url_and_share_members_with_a_file(node, origin, store, folder):
    (folder / "own.txt").write_text(text_of(3, 4))
    (folder / "conf").write_text(f"[source web]\nplace = {origin.url}\ngrace = 1ms\n"
                                 f"[source own]\nplace = {folder}/own.txt\ngrace = 1ms\n")
    it = Supplied(node("--config", folder / "conf", role="up"), store)
    peers.wait_for(lambda: it.count(message=LOADED) == 2, "both are loaded")
    use(store, {member(i): 5 + i for i in (1, 2, 3, 4)})
    origin.answer(text_of(1))
    it.loses(2)
    assert eligible(store) == {member(1): 6, member(3): 8, member(4): 9} and parked(store) == {member(2): 7}
    assert record(store, member(3))["sources"] == {"own"}


def test_proxies_of_the_environment_are_used_for_lists(node, upstream, store):
    proxy = upstream(wire.answers(wire.response(GOOD.encode())))
    it = Supplied(node("--list", "http://lists.test/free.txt", role="up", env={"http_proxy": proxy.url}), store)
    peers.wait_for(lambda: it.count(message=LOADED), "the list is loaded")
    assert proxy.connections[0].head.target == "http://lists.test/free.txt"
    assert eligible(store).keys() == members(1, 2, 3)
