"""`fairlead doctor`: what is wrong, what to do, and an exit status that tells whether something is."""

import json

import pytest

MEMBER = "http://member.example:3128"


@pytest.fixture
def doctor(run):
    """check -> (finding, detail), by a doctor that ends with `status`."""

    def ask(server, status):
        lines = run("doctor", "--json", redis=server, check=status).stdout.splitlines()
        return {row["check"]: (row["finding"], row["detail"]) for row in map(json.loads, lines)}

    return ask


@pytest.mark.core
def test_a_well_kept_redis_has_no_finding(redis_server, run, doctor):
    server = redis_server(appendonly="yes")
    run("pool", "add", "--eligible", MEMBER, redis=server)
    findings = doctor(server, 0)
    assert {"version", "eviction", "persistence", "clock", "keys", "members"} <= findings.keys()
    assert {finding for finding, _ in findings.values()} == {"ok"}


def test_the_private_server_has_no_finding(run, doctor):
    run("pool", "add", "--eligible", MEMBER, redis=None)
    assert {finding for finding, _ in doctor(None, 0).values()} == {"ok"}


@pytest.mark.core
@pytest.mark.parametrize("policy, finding, status", [
    ("allkeys-lru", "error", 1), ("allkeys-random", "error", 1), ("volatile-ttl", "warning", 0),
    ("noeviction", "ok", 0)])
def test_a_redis_that_drops_keys_is_told(redis_server, doctor, policy, finding, status):
    found, detail = doctor(redis_server(appendonly="yes", maxmemory_policy=policy), status)["eviction"]
    assert found == finding and (policy in detail)
    assert finding == "ok" or "noeviction" in detail


@pytest.mark.core
def test_counts_that_a_restart_would_lose_are_warned_about(store, doctor):
    finding, detail = doctor(store, 0)["persistence"]
    assert finding == "warning" and "appendonly yes" in detail


@pytest.mark.core
@pytest.mark.parametrize("key, belongs", [("proxies", "zset"), ("{proxies}:pool:rules", "hash"),
                                          ("{proxies}:pool:parked", "zset"), ("{proxies}:pool:leases", "zset")])
def test_a_key_of_another_type_is_an_error(store, doctor, key, belongs):
    store.client.set(key, "no such thing")
    finding, detail = doctor(store, 1)["keys"]
    assert finding == "error" and key in detail and belongs in detail and "--pool" in detail


def test_foreign_members_are_told_and_stay(store, run, doctor):
    run("pool", "add", "--eligible", MEMBER)
    store.client.zadd("proxies", {"what is this": 5, "bare.example:80": 1})
    finding, detail = doctor(store, 0)["members"]
    assert finding == "warning" and "what is this" in detail and "bare.example" not in detail
    assert store.client.zcard("proxies") == 3


def test_many_foreign_members_are_summed_up(store, run):
    store.client.zadd("proxies", {f"not a proxy {i}": i for i in range(50)})
    rows = list(map(json.loads, run("doctor", "--json").stdout.splitlines()))
    members = [row["detail"] for row in rows if row["check"] == "members"]
    assert len(members) == 6 and "45 more" in members[-1]


@pytest.mark.core
def test_leases_that_members_count_otherwise_are_warned_about(store, run, doctor):
    run("pool", "add", "--eligible", MEMBER)
    for _ in range(2):
        run("pool", "acquire")
    assert doctor(store, 0)["leases"] == ("ok", "2 live, and members count as many")
    for wrong in (3, 0):
        store.client.hset("{proxies}:pool:live", MEMBER, wrong)
        finding, detail = doctor(store, 0)["leases"]
        assert finding == "warning" and MEMBER in detail
        assert f"counts {wrong} live leases, but has 2" in detail and "HSET {proxies}:pool:live" in detail


def test_leases_of_a_removed_member_are_no_fault(store, run):
    run("pool", "add", "--eligible", MEMBER)
    run("pool", "acquire")
    run("pool", "remove", MEMBER)
    rows = map(json.loads, run("doctor", "--json").stdout.splitlines())
    told = [row for row in rows if row["check"] == "leases"]
    assert {row["finding"] for row in told} == {"ok"} and told[0]["detail"].startswith("1 of members that were removed")


def test_more_leases_than_are_compared_are_told_as_such(store, run, doctor):
    store.client.zadd("{proxies}:pool:leases", {f"{i:x}": 1 for i in range(10_001)})
    assert doctor(store, 0)["leases"] == ("ok", "too many to be compared with what members count")


def test_a_newer_wire_contract_is_an_error(store, doctor):
    store.client.hset("{proxies}:pool:rules", "wire", 2)
    finding, detail = doctor(store, 1)["rules"]
    assert finding == "error" and "newer" in detail


@pytest.mark.core
def test_a_replica_is_told_and_that_the_master_is_wanted(redis_server, run):
    replica = redis_server()
    replica.client.replicaof("127.0.0.1", "1")
    done = run("doctor", "--store-wait", "100ms", redis=replica, check=1)
    assert "replica" in done.stdout + done.stderr and "master" in done.stdout + done.stderr


def test_a_redis_that_is_away_fails_in_one_line(run, folder):
    done = run("doctor", "--store-wait", "100ms", redis=f"unix://{folder}/nobody", check=1)
    assert done.stdout == "" and done.stderr.count("\n") == 1


def test_a_redis_user_without_permissions_is_told_what_is_missing(redis_server, run):
    server = redis_server()
    server.client.acl_setuser("weak", enabled=True, passwords=["+weak"], keys=["*"], commands=["+ping", "+role"])
    done = run("doctor", redis=f"unix://weak:weak@{server.socket}", check=1)
    assert "INFO" in done.stdout and "NOPERM" in done.stdout


def test_configuration_of_redis_is_not_asked_for(redis_server, run):
    server = redis_server(appendonly="yes")
    server.client.acl_setuser("most", enabled=True, passwords=["+most"], keys=["*"],
                              commands=["+@all", "-config"])
    run("doctor", redis=f"unix://most:most@{server.socket}")
