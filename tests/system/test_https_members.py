"""Members behind TLS: whom a pin lets pass, and what an end without a goodbye means. What all kinds share is in
test_matrix.py and test_hostile_upstream.py."""

import base64
import hashlib
import subprocess

import pytest

import peers
import scripted
import wire
import world

HOST = "127.0.0.22"


@pytest.fixture(scope="module")
def place(session_folder):
    with world.Arena(session_folder / "https") as it:
        it.authority = peers.Authority(it.folder / "ca")
        it.certificate = it.authority.issue("upstream", f"IP:{HOST}")
        yield it


def pin_of(key, where):
    """What --upstream-pin takes, by the openssl command."""
    public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True,
                            stdout=subprocess.PIPE).stdout
    return f"{where}=sha256//{base64.b64encode(hashlib.sha256(public).digest()).decode()}"


def test_a_pin_demands_its_key_besides_the_certificate(place):
    """Behind stunnel, a real TLS server."""
    origin = place.start(peers.Nginx(place.folder / "origin"))
    stunnel = place.start(peers.Stunnel(place.folder / "stunnel", place.start(
        peers.Tinyproxy(place.folder / "tiny", "127.0.0.21")), place.authority))
    where = f"{stunnel.host}:{stunnel.port}"
    right = pin_of(place.authority.folder / f"{stunnel.host}-{stunnel.port}.key", where)
    wrong = f"{where}=sha256//{base64.b64encode(bytes(32)).decode()}"
    place.set_members(stunnel)
    for pins, reason in (([right], "ok"), ([wrong], "proxy-certificate"), ([wrong, right], "ok")):
        gateway = place.gateway("--upstream-ca", place.authority.certificate,
                                *(word for pin in pins for word in ("--upstream-pin", pin)))
        with gateway.connect() as client:
            client.get(f"http://{origin.host}:{origin.port}/who")
        assert gateway.request()["reason"] == reason


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_body_that_lasts_until_the_end_is_whole_only_with_close_notify(place, says_goodbye):
    """RFC 9112 8, RFC 8446 6.1: a FIN can be anybody's."""

    def script(connection):
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        if says_goodbye:
            connection.sock.unwrap()

    proxy = scripted.Raw("https", script, certificate=place.certificate, host=HOST)
    place.set_members(proxy)
    gateway = place.gateway("--upstream-ca", place.authority.certificate)
    try:
        with gateway.connect() as client:
            client.send(wire.request("GET", "http://origin.test/x"))
            if says_goodbye:
                assert client.read_to_end().endswith(b"\r\n\r\nhello")
            else:
                with pytest.raises(ConnectionResetError):
                    client.read_to_end()
        assert gateway.request()["reason"] == ("ok" if says_goodbye else "response-incomplete")
    finally:
        proxy.close()


def test_a_tunnel_ends_without_close_notify_like_with_a_fin(place):
    def script(connection):
        scripted.take("https", connection)
        connection.send(scripted.GRANT["http"] + b"all of it")

    proxy = scripted.Raw("https", script, certificate=place.certificate, host=HOST)
    place.set_members(proxy)
    gateway = place.gateway("--upstream-ca", place.authority.certificate)
    try:
        with gateway.connect() as client:
            assert client.tunnel().status == 200
            assert client.read_to_end() == b"all of it"
    finally:
        proxy.close()


@pytest.mark.parametrize("pin", ["proxy.test:443", "proxy.test:443=sha256//short"])
def test_what_is_no_pin_is_refused_at_start(run, pin):
    done = run("gateway", "--upstream-pin", pin, check=2)
    assert "pin" in done.stderr and pin in done.stderr


def test_a_file_without_certificates_is_refused_at_start(run):
    done = run("gateway", "--upstream-ca", "/nonexistent/ca.pem", check=2)
    assert "/nonexistent/ca.pem" in done.stderr
