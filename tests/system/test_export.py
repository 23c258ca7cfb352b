"""`fairlead pool export`: a list that `pool import` reads back identically."""

import json

import pytest

import look
from supplies import eligible, members, parked, text_of

HARD = ["a:b", "p@ss/w?rd#x", "100%", "%41", "[x]:1", "'quoted'", '"double"', "comma,semi;pipe|",
        "- dash", "пароль", "-._~", "+ &=", "\\back\\slash", "x" * 255]


@pytest.fixture
def export(run):
    return lambda *words, **options: run("pool", "export", *words, **options)


@pytest.fixture
def into(run, export, folder):
    """into(pool) exports `proxies` and imports it there; returns the exported text."""

    def copy(pool, *words):
        text = export().stdout
        (folder / "export.txt").write_text(text)
        run("pool", "import", "--eligible", "--on-reject", "fail", "--pool", pool, folder / "export.txt", *words)
        return text

    return copy


def quote(text):
    """RFC 3986: all but unreserved characters percent-encoded, of UTF-8 each byte."""
    keep = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    return "".join(chr(byte) if byte in keep else f"%{byte:02X}" for byte in text.encode())


@pytest.mark.core
def test_what_was_exported_is_imported_identically(run, store, into, export):
    names = ["http://192.0.2.1:8080", "https://192.0.2.1:8080", "socks4://192.0.2.2:4145",
             "socks4a://192.0.2.2:4145", "socks5://proxy.example:1080", "socks5h://[2001:db8::1]:1080",
             "http://xn--bcher-kva.example:3128"]
    run("pool", "add", "--eligible", *names)
    text = into("other")
    assert sorted(text.split()) == sorted(names)
    assert eligible(store, "other") == eligible(store) and eligible(store).keys() == set(names)
    assert export("--pool", "other").stdout == text


@pytest.mark.core
@pytest.mark.parametrize("hard", HARD)
def test_hard_credentials_come_back_to_the_byte(run, store, into, export, hard):
    secret = f"user:{quote(hard)}"
    url = f"http://{secret}@proxy.example:8080"
    run("pool", "add", "--eligible", "-", input=url + "\n")
    assert into("other") == url + "\n"
    assert store.client.hvals("{other}:pool:secrets") == [secret]
    assert store.client.hvals("{other}:pool:secrets") == store.client.hvals("{proxies}:pool:secrets")
    assert export("--pool", "other").stdout == url + "\n"


def test_users_that_are_hard_and_passwords_that_are_empty_come_back(run, store, into):
    urls = [f"http://{quote('us@r/#?%')}:@proxy.example:1", "http://user:@proxy.example:1",
            "socks4://only:@192.0.2.1:1"]
    run("pool", "add", "--eligible", "-", input="\n".join(urls))
    assert sorted(into("other").split()) == sorted(urls)
    assert sorted(store.client.hvals("{other}:pool:secrets")) == sorted(store.client.hvals("{proxies}:pool:secrets"))


def test_each_account_on_one_address_is_a_line(run, into):
    urls = ["http://192.0.2.1:80", "http://a:1@192.0.2.1:80", "http://b:2@192.0.2.1:80"]
    run("pool", "add", "--eligible", *urls)
    assert sorted(into("other").split()) == urls


def test_parked_members_and_candidates_are_exported_too(run, store, into):
    run("pool", "add", "--eligible", *members(1, 2))
    run("pool", "add", "--parked", *members(3))
    run("pool", "park", *members(2))
    assert set(into("other").split()) == members(1, 2, 3)
    assert parked(store).keys() == members(2, 3)


def test_the_order_is_that_of_the_bytes_whatever_the_counts(run, export):
    run("pool", "add", "--eligible", *members(3, 1, 2))
    before = export().stdout
    run("pool", "allocate", "--count", 2)
    assert export().stdout == before == text_of(1, 2, 3)


def test_direct_members_are_comments_that_import_passes_over(run, store, into):
    run("pool", "add", "--eligible", "--allow-private", "direct://", "direct://127.0.0.5", *members(1))
    lines = into("other").splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["http://192.0.2.1:8080"]
    assert sum(line.startswith("#") and "direct://" in line for line in lines) == 2
    assert eligible(store, "other").keys() == members(1)


def test_foreign_members_that_are_no_proxies_are_comments(store, run, into):
    run("pool", "add", "--eligible", *members(1))
    store.client.zadd("proxies", {"whatever this is": 3, "192.0.2.7:3128": 1})
    lines = into("other").splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# no proxy: whatever this is"]
    # A bare host:port is http.
    assert eligible(store, "other").keys() == members(1) | {"http://192.0.2.7:3128"}


@pytest.mark.parametrize("name", ["two\nhttp://192.0.2.66:1", "a\rhttp://192.0.2.66:1", "x\x1b[31m", "\ttab"])
def test_a_foreign_member_cannot_break_out_of_its_comment(store, run, into, name):
    run("pool", "add", "--eligible", *members(1))
    store.client.zadd("proxies", {name: 3})
    text = into("other")
    assert eligible(store, "other").keys() == members(1)
    assert len(text.splitlines()) == 2 and "\x1b" not in text


def test_a_member_whose_credentials_are_lost_is_a_comment(store, run, into):
    run("pool", "add", "--eligible", "http://u:p@192.0.2.1:80", *members(2))
    store.client.delete("{proxies}:pool:secrets")
    lines = into("other").splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["http://192.0.2.2:8080"]
    assert eligible(store, "other").keys() == members(2)


def test_what_was_in_the_pool_of_a_thousand_is_in_the_other(run, store, into):
    text = "".join(f"http://u{i}:p{i}@192.0.2.{i % 250}:{1 + i}\n" for i in range(1000))
    run("pool", "add", "--eligible", "-", input=text)
    assert sorted(into("other").splitlines()) == sorted(text.splitlines())
    assert store.client.zcard("other") == 1000 == store.client.hlen("{other}:pool:secrets")


def test_an_export_changes_nothing(run, store, export):
    run("pool", "add", "--eligible", "http://u:p@192.0.2.1:80", *members(2))
    before = look.dumps(store)
    export()
    assert look.dumps(store) == before


def test_a_pool_that_is_not_there_is_an_empty_list(export, store):
    done = export("--pool", "nobody")
    assert done.stdout == "" and "0 members of pool 'nobody'" in done.stderr
    assert look.dumps(store) == {}


def test_messages_show_no_credentials(run, export):
    run("pool", "add", "--eligible", "http://user:sesame@192.0.2.1:80")
    assert "sesame" not in export("--verbose").stderr


def test_json_is_one_proxy_a_line_and_reads_back(run, store):
    run("pool", "add", "--eligible", "http://u:p%40ss@192.0.2.1:80", "socks5h://192.0.2.2:1080", "direct://127.0.0.5", "--allow-private")
    lines = [json.loads(line) for line in run("pool", "export", "--json").stdout.splitlines()]
    assert lines == [{"proxy": "http://u:p%40ss@192.0.2.1:80"}, {"proxy": "socks5h://192.0.2.2:1080"}]
    run("pool", "import", "--pool", "copy", "--eligible", "-", input=run("pool", "export", "--json").stdout)
    assert store.client.zcard("copy") == 2
