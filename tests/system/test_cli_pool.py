"""The life cycle of members by `fairlead pool`: add, park, restore, remove, list, show, stats."""

import json

import pytest

import look

A, B, C = (f"http://{name}.example:3128" for name in "abc")
PREFIX = "{proxies}:pool:"


@pytest.fixture
def listed(run):
    """member -> (state, score, allocations), as `pool list` tells."""

    def read(*words):
        lines = run("pool", "list", "--json", *words).stdout.splitlines()
        return {x["member"]: (x["state"], x["score"], x["allocations"]) for x in map(json.loads, lines)}

    return read


@pytest.mark.core
def test_members_join_at_the_agreed_start(store, run, listed):
    run("pool", "rules", "start=7")
    run("pool", "add", "--eligible", A, B)
    assert store.client.zrange("proxies", 0, -1, withscores=True) == [(A, 7), (B, 7)]
    assert listed() == {A: ("eligible", 7, 0), B: ("eligible", 7, 0)}


@pytest.mark.core
def test_adding_again_changes_nothing(store, run):
    members = [A, B, "http://user:sesame@c.example:3128"]
    run("pool", "add", "--eligible", *members)
    run("pool", "allocate", "--count", 10)
    before = look.dumps(store)
    assert "0 joined" in run("pool", "add", "--eligible", *members).stderr
    assert look.dumps(store) == before


def test_equal_spellings_are_one_member(store, run):
    run("pool", "add", "--eligible", A, "HTTP://A.EXAMPLE:3128", "a.example:3128", "http://a.example.:3128")
    assert store.client.zrange("proxies", 0, -1) == [A]


@pytest.mark.core
def test_candidates_are_parked_until_they_are_restored(run, listed):
    run("pool", "add", "--parked", A)
    assert listed() == {A: ("parked", 0, 0)}
    run("pool", "allocate", check=3)
    run("pool", "restore", A)
    assert run("pool", "allocate").stdout == A + "\n"


def test_a_member_that_is_added_as_a_candidate_later_stays_eligible(run, listed):
    run("pool", "add", "--eligible", A)
    run("pool", "add", "--parked", A)
    assert listed()[A][0] == "eligible"


@pytest.mark.core
def test_a_parked_member_keeps_its_count_and_gets_no_turn(run, listed):
    run("pool", "add", "--eligible", A, B)
    run("pool", "allocate", "--count", 10)
    run("pool", "park", A)
    assert run("pool", "allocate", "--count", 3).stdout == (B + "\n") * 3
    assert listed() == {A: ("parked", 5, 5), B: ("eligible", 8, 8)}


def test_parking_twice_changes_nothing(store, run):
    run("pool", "add", "--eligible", A, B)
    run("pool", "park", A)
    before = look.dumps(store)
    run("pool", "park", A)
    assert look.dumps(store) == before


def test_adding_a_parked_member_does_not_bring_it_back(run, listed):
    run("pool", "add", "--eligible", A)
    run("pool", "park", A)
    run("pool", "add", "--eligible", A)
    assert listed()[A][0] == "parked"


@pytest.mark.core
def test_a_removed_member_is_forgotten_with_secret_and_count(store, run, listed):
    url = "http://user:sesame@a.example:3128"
    run("pool", "add", "--eligible", url)
    run("pool", "allocate", "--count", 9)
    run("pool", "remove", url)
    assert look.contents(store).keys() == {PREFIX + "rules"}
    run("pool", "add", "--eligible", url)
    assert list(listed().values()) == [("eligible", 0, 0)]


def test_the_last_member_gone_the_pool_is_empty(run):
    run("pool", "add", "--eligible", A, B)
    run("pool", "remove", A, B)
    assert run("pool", "list").stdout == ""
    run("pool", "allocate", check=3)


@pytest.mark.core
@pytest.mark.parametrize("command", ["park", "restore", "remove", "show"])
@pytest.mark.parametrize("others", [[], [B]], ids=["alone", "among others"])
def test_an_unknown_member_is_named(store, run, command, others):
    run("pool", "add", "--eligible", B)
    words = [A] if command == "show" else [A, *others]
    stderr = run("pool", command, *words, check=1).stderr
    assert f"fairlead pool {command}: pool 'proxies' has no member {A}\n" in stderr
    assert A not in str(look.contents(store))


def test_a_list_comes_from_standard_input_and_its_bad_lines_are_told(store, run):
    text = ("# a comment\r\n\r\na.example:3128\r\n10.0.0.1:80\r\n  http://b.example:3128 \r\nnonsense\r\n"
            "192.168.0.1:80\r\nc.example:3128")
    stderr = run("pool", "add", "--eligible", "-", input=text).stderr
    assert store.client.zrange("proxies", 0, -1) == [A, B, C]
    assert "standard input:4: bogon (2 in all): 10.0.0.1:80" in stderr
    assert "standard input:6: not-an-endpoint (1 in all): nonsense" in stderr
    assert "3 joined" in stderr


@pytest.mark.parametrize("text", ["", "# nothing\n", "nonsense\n"], ids=["empty", "comments", "bad"])
def test_a_list_without_a_proxy_fails(store, run, text):
    assert run("pool", "add", "--eligible", "-", input=text, check=1).stderr.count("\n") >= 1
    assert store.client.zcard("proxies") == 0


def test_a_large_list_is_added_whole(store, run):
    lines = [f"http://host{i:05}.example:3128" for i in range(5000)]
    assert "5000 joined" in run("pool", "add", "--eligible", "-", input="\n".join(lines)).stderr
    assert store.client.zrange("proxies", 0, -1) == lines
    assert len(run("pool", "list").stdout.splitlines()) == 1 + 5000


@pytest.mark.core
def test_the_list_is_in_the_order_of_turns(run):
    run("pool", "add", "--eligible", A, B, C, "http://d.example:3128")
    run("pool", "allocate", "--count", 6)
    run("pool", "park", A)
    lines = run("pool", "list", "--json").stdout.splitlines()
    assert [json.loads(line)["member"][7] for line in lines] == list("cdba")


def test_the_statistics_count_members_and_allocations(run):
    run("pool", "rules", "start=100")
    run("pool", "add", "--eligible", A, B, C)
    run("pool", "allocate", "--count", 8)
    run("pool", "park", A)
    assert json.loads(run("pool", "stats", "--json").stdout) == {
        "pool": "proxies", "eligible": 2, "parked": 1, "allocations": 8,
        "lowest_score": 102, "highest_score": 103, "bytes_in": 0, "bytes_out": 0, "parking_held_ms": None}


def test_a_member_is_shown_with_all_that_is_known(run):
    run("pool", "add", "--eligible", "http://user:sesame@a.example:3128", B)
    run("pool", "allocate", "--count", 4)
    run("pool", "park", B)
    shown = [json.loads(run("pool", "show", "--json", member).stdout)
             for member in ("http://user:sesame@a.example:3128", B)]
    assert [x["state"] for x in shown] == ["eligible", "parked"]
    assert [x["credentials"] for x in shown] == ["stored", "none"]
    assert [x["allocations"] for x in shown] == [2, 2]
    assert shown[0]["proxies"] == "sources=operator"


@pytest.mark.parametrize("pool, tag", [("web", "{web}"), ("a{b}c", "a{b}c"), ("web{1", None), ("{web}x", "{web}x")])
def test_a_pools_keys_share_its_tag(store, run, pool, tag):
    run("pool", "add", "--eligible", "--pool", pool, A, check=0 if tag else 2)
    keys = set(look.contents(store))
    assert keys == ({pool} | {f"{tag}:pool:{x}" for x in ("rules", "proxies", "health", "busy", "due")} if tag
                    else set())


def test_foreign_members_take_their_turn_are_never_handed_out_and_stay(store, run, listed):
    """The five lines choose bytewise among equals: the strange one has its turns, but is no proxy."""
    strange = "\x01what is this"
    store.client.zadd("proxies", {"bare.example:80": 1, strange: 0})
    run("pool", "add", "--eligible", A)
    printed = run("pool", "allocate", "--count", 4).stdout.splitlines()
    assert printed == [A, "http://bare.example:80", A, "http://bare.example:80"]
    assert len(listed()) == 3 and store.client.zscore("proxies", strange) == 3


def test_another_client_may_run_the_five_lines_meanwhile(store, run, listed):
    lines = """local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then return nil end
redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen"""
    run("pool", "add", "--eligible", A, B)
    assert [store.client.eval(lines, 1, "proxies"), run("pool", "allocate").stdout.strip()] == [A, B]
    assert listed() == {A: ("eligible", 1, 1), B: ("eligible", 1, 1)}
