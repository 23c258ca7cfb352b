"""What `fairlead work fetch` writes down: lines, bodies, a list, an archive; and what it makes of tests/data/tasks."""

import base64
import gzip
import json

import pytest

import wire
from conftest import ROOT

TASKS = ROOT / "tests/data/tasks"
PAGE = "<p>café</p>".encode()


def one_task(worker, push, upstream, add, answer, *words, payload="http://target.test/x"):
    """(the result, the member's connection) of a task through a member that gives `answer`."""
    member = upstream(answer)
    add(member.url)
    push(payload)
    one = worker("--drain", *words)
    one.ends()
    (result,) = one.results()
    return result, member.connections[0]


@pytest.mark.core
def test_a_result_says_what_came_and_how(worker, push, upstream, add):
    payload = {"url": "http://u:hunter2@target.test/a b#c", "id": "mine", "meta": {"job": 1}, "method": "POST",
               "headers": {"X-Tag": ["a", ""]}, "body": "q=1"}
    answer = wire.answers(wire.response(PAGE, X_Price="5"))
    result, connection = one_task(worker, push, upstream, add, answer, "--tasks-are", "json",
                                  payload=json.dumps(payload))
    assert {key: result[key] for key in ("id", "meta", "level", "outcome", "attempts", "url", "tries", "status",
                                         "bytes", "body")} == {
        "id": "mine", "meta": {"job": 1}, "level": "normal", "outcome": "done", "attempts": 1,
        "url": "http://***@target.test/a%20b", "tries": 1, "status": 200, "bytes": len(PAGE), "body": PAGE.decode()}
    assert ["X-Price", "5"] in result["headers"]
    assert "hunter2" not in json.dumps(result)
    head = connection.head
    assert (head.method, head.target) == ("POST", "http://target.test/a%20b")
    assert head.fields["authorization"] == "Basic " + base64.b64encode(b"u:hunter2").decode()
    assert head.fields["x-tag"] == "a, "


def test_a_compressed_body_is_decoded_and_bytes_are_base_64(worker, push, upstream, add):
    body = b"\xff\x00" * 50
    answer = wire.answers(wire.response(gzip.compress(body), Content_Encoding="gzip"))
    result, _ = one_task(worker, push, upstream, add, answer)
    assert base64.b64decode(result["body_base64"]) == body
    assert "body" not in result


def test_bodies_may_go_to_a_folder(worker, push, upstream, add, folder):
    bodies = folder / "bodies"
    bodies.mkdir()
    result, _ = one_task(worker, push, upstream, add, wire.serves(PAGE), "--body-dir", bodies)
    assert [file.name for file in bodies.iterdir()] == [result["body_file"]]
    assert (bodies / result["body_file"]).read_bytes() == PAGE


def test_a_list_gets_the_same_lines(worker, push, upstream, add, store):
    result, _ = one_task(worker, push, upstream, add, wire.serves(PAGE), "--results", "out")
    assert [json.loads(line) for line in store.client.lrange("out", 0, -1)] == [result]


def test_an_archive_is_read_by_another_program(worker, push, upstream, add, folder):
    archiveiterator = pytest.importorskip("warcio.archiveiterator", reason="needs warcio (pip install warcio)")
    path = folder / "pages.warc"
    one_task(worker, push, upstream, add, wire.serves(PAGE), "--warc", path)
    with path.open("rb") as stream:
        records = []
        for record in archiveiterator.ArchiveIterator(stream, check_digests="raise"):
            records.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI"),
                            record.content_stream().read()))
    assert [kind for kind, _, _ in records] == ["warcinfo", "response", "request"]
    assert {uri for _, uri, _ in records[1:]} == {"http://target.test/x"}
    assert records[1][2] == PAGE


def test_the_tasks_of_the_cases_are_sent_or_dead_with_their_reason(worker, push, upstream, add):
    member = upstream(wire.serves())
    add(member.url)
    push(*[line for name in ("t02-nonascii-path.txt", "t03-latin1-bytes.txt", "t04-idn.txt", "t05-fragment.txt",
                             "t15-missing-scheme.txt", "t16-other-schemes.txt", "t18-comma-apostrophe.txt")
           for line in (TASKS / name).read_bytes().splitlines()])
    one = worker("--drain")
    one.ends()
    results = one.results()
    assert sorted(result["url"] for result in results if result["outcome"] == "done") == [
        "http://www.example.com/", "http://www.example.com/a,b?c='x'*y", "http://www.example.com/caf%C3%A9/%D8%A8",
        "http://www.example.com/p", "http://www.example.com/p", "http://www.example.com/price/%A3",
        "http://xn--bcher-kva.example/"]
    dead = {result["payload"]: result["error"] for result in results if result["outcome"] == "dead"}
    assert {error["reason"] for error in dead.values()} == {"task-invalid"}
    assert "punycode" in dead["http://bücher.example/"]["detail"]
    assert "no scheme" in dead["www.example.com/a"]["detail"]
    assert '"javascript"' in dead["javascript:void(0)"]["detail"]
    assert len(dead) == 7
