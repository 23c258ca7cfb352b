/* test_tls.c - trust anchors and pins, and whom they let pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stream.h"
#include "base/tls.h"
#include "tls_stage.h"

/* A stream of ours and a server, joined by a socket pair. */
struct fixture {
	struct stage stage;
	struct tls_world world;
	struct tls_server server;
	struct tls *tls;
	struct stream stream;
	int far, result;
	char trouble[100];
};

static void set_up(struct fixture *f)
{
	char error[200];

	memset(f, 0, sizeof *f);
	stage_init(&f->stage);
	tls_world_init(&f->world);
	tls_server_init(&f->server, &f->stage, &f->world.server);
	assert_int_equal(tls_new(&f->tls, f->world.ca_file, error, sizeof error), 0);
}

static void tear_down(struct fixture *f)
{
	tls_free(f->tls);
	tls_server_fini(&f->server);
	tls_world_fini(&f->world);
	stage_fini(&f->stage);
}

static void on_stream(struct stream *stream, int ready, void *arg)
{
	struct fixture *f = arg;

	assert_int_equal(ready, STREAM_READ);
	f->result = stream_handshake(stream);
	if (f->result != -EAGAIN)
		stream_want(stream, 0);
}

/* Runs one handshake with `host`:443; returns what it came to. */
static int shake_hands(struct fixture *f, const char *host)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	stream_open(&f->stream, f->stage.loop, ends[0], on_stream, f);
	assert_int_equal(stream_start_tls(&f->stream, f->tls, host, 443), 0);
	f->result = stream_handshake(&f->stream);
	stream_want(&f->stream, STREAM_READ);
	SSL_free(f->server.ssl);
	f->server.ssl = NULL;
	STAGE_UNTIL(&f->stage, (tls_server_accept(&f->server, ends[1]), f->result != -EAGAIN));
	snprintf(f->trouble, sizeof f->trouble, "%s", stream_trouble(&f->stream));
	stream_close(&f->stream);
	close(ends[1]);
	return f->result;
}

static void use_server(struct fixture *f, const struct identity *identity)
{
	tls_server_fini(&f->server);
	tls_server_init(&f->server, &f->stage, identity);
}

/* --- certificates ------------------------------------------------------------------------------------------------- */

static void test_a_name_and_an_address_that_the_certificate_has_are_let_pass(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	assert_int_equal(shake_hands(&f, "proxy.test"), 0);
	assert_string_equal(SSL_get_servername(f.server.ssl, TLSEXT_NAMETYPE_host_name),
			    "proxy.test");
	/* RFC 6066 3: no literal addresses. */
	assert_int_equal(shake_hands(&f, "127.0.0.1"), 0);
	assert_null(SSL_get_servername(f.server.ssl, TLSEXT_NAMETYPE_host_name));
	tear_down(&f);
}

static void test_another_name_or_address_is_refused(void **state)
{
	static const char *const hosts[] = {"other.test", "127.0.0.2", "a.proxy.test", "::1",
					    "proxy.test.example"};
	struct fixture f;

	(void)state;
	set_up(&f);
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		assert_int_equal(shake_hands(&f, hosts[i]), REASON_PROXY_CERTIFICATE);
		assert_non_null(strstr(f.trouble, "mismatch"));
	}
	tear_down(&f);
}

/* RFC 9525 6.3: one whole label, the leftmost. 2: the common name does not count. */
static void check_names(const char *names, const char *host, int result)
{
	struct identity identity;
	struct fixture f;

	set_up(&f);
	identity_make(&identity, &f.world.authority, names, 10);
	use_server(&f, &identity);
	assert_int_equal(shake_hands(&f, host), result);
	identity_free(&identity);
	tear_down(&f);
}

static void test_names_are_compared_as_rfc_9525_says(void **state)
{
	(void)state;
	check_names(NULL, "proxy.test", REASON_PROXY_CERTIFICATE);
	check_names("DNS:other.test", "proxy.test", REASON_PROXY_CERTIFICATE);
	check_names("DNS:*.proxy.test", "a.proxy.test", 0);
	check_names("DNS:*.proxy.test", "a.b.proxy.test", REASON_PROXY_CERTIFICATE);
	check_names("DNS:a*.proxy.test", "ab.proxy.test", REASON_PROXY_CERTIFICATE);
	check_names("DNS:127.0.0.1", "127.0.0.1", REASON_PROXY_CERTIFICATE);
	check_names("IP:2001:db8::1", "2001:db8::1", 0);
}

static void test_an_expired_certificate_is_refused(void **state)
{
	struct identity old;
	struct fixture f;

	(void)state;
	set_up(&f);
	identity_make(&old, &f.world.authority, "DNS:proxy.test", -1);
	use_server(&f, &old);
	assert_int_equal(shake_hands(&f, "proxy.test"), REASON_PROXY_CERTIFICATE);
	assert_non_null(strstr(f.trouble, "expired"));
	identity_free(&old);
	tear_down(&f);
}

static void test_a_certificate_of_another_authority_is_refused(void **state)
{
	struct identity stranger, server;
	struct fixture f;

	(void)state;
	set_up(&f);
	identity_make(&stranger, NULL, NULL, 10);
	identity_make(&server, &stranger, "DNS:proxy.test", 10);
	use_server(&f, &server);
	assert_int_equal(shake_hands(&f, "proxy.test"), REASON_PROXY_CERTIFICATE);
	use_server(&f, &stranger);
	assert_int_equal(shake_hands(&f, "authority"), REASON_PROXY_CERTIFICATE);
	identity_free(&server);
	identity_free(&stranger);
	tear_down(&f);
}

static void test_without_a_file_the_system_is_trusted_and_not_the_test(void **state)
{
	struct fixture f;
	char error[200];

	(void)state;
	set_up(&f);
	tls_free(f.tls);
	assert_int_equal(tls_new(&f.tls, "", error, sizeof error), 0);
	assert_int_equal(shake_hands(&f, "proxy.test"), REASON_PROXY_CERTIFICATE);
	tear_down(&f);
}

/* Whoever names a file means what is in it: also the proxy's own certificate, without its authority. */
static void test_the_server_s_own_certificate_can_be_the_anchor(void **state)
{
	struct fixture f;
	char path[32], error[200];

	(void)state;
	set_up(&f);
	identity_write(&f.world.server, path);
	tls_free(f.tls);
	assert_int_equal(tls_new(&f.tls, path, error, sizeof error), 0);
	assert_int_equal(shake_hands(&f, "proxy.test"), 0);
	assert_int_equal(shake_hands(&f, "other.test"), REASON_PROXY_CERTIFICATE);
	unlink(path);
	tear_down(&f);
}

static void test_a_file_without_certificates_is_named(void **state)
{
	static const char *const files[] = {"/nonexistent/ca.pem", "/dev/null", "/etc/passwd"};
	struct tls *tls;

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char error[200] = "";

		assert_int_equal(tls_new(&tls, files[i], error, sizeof error), -EINVAL);
		assert_non_null(strstr(error, files[i]));
	}
}

static void test_an_endless_chain_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (int i = 0; i < 300; i++) {
		X509_up_ref(f.world.authority.certificate);
		SSL_CTX_add_extra_chain_cert(f.server.context, f.world.authority.certificate);
	}
	assert_int_equal(shake_hands(&f, "proxy.test"), REASON_PROXY_TLS);
	tear_down(&f);
}

/* --- versions ----------------------------------------------------------------------------------------------------- */

static int shake_hands_up_to(struct fixture *f, int version)
{
	/* OpenSSL itself would not speak the old ones. */
	SSL_CTX_set_security_level(f->server.context, 0);
	SSL_CTX_set_min_proto_version(f->server.context, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(f->server.context, version);
	return shake_hands(f, "proxy.test");
}

static void test_tls_1_2_is_the_oldest_that_is_spoken(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	assert_int_equal(shake_hands_up_to(&f, TLS1_3_VERSION), 0);
	assert_int_equal(SSL_version(f.server.ssl), TLS1_3_VERSION);
	assert_int_equal(shake_hands_up_to(&f, TLS1_2_VERSION), 0);
	assert_int_equal(SSL_version(f.server.ssl), TLS1_2_VERSION);
	/* The server finds nothing in common, and says so by an alert. */
	assert_int_equal(shake_hands_up_to(&f, TLS1_1_VERSION), REASON_PROXY_ALERT);
	tear_down(&f);
}

static void test_no_session_is_resumed(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
		for (int i = 0; i < 2; i++) {
			assert_int_equal(shake_hands_up_to(&f, version), 0);
			assert_false(SSL_session_reused(f.server.ssl));
		}
	tear_down(&f);
}

/* --- pins --------------------------------------------------------------------------------------------------------- */

static void add_pin(struct fixture *f, const struct identity *identity, const char *place)
{
	char text[400], error[400];

	identity_pin(identity, place, text, sizeof text);
	assert_int_equal(tls_pin(f->tls, text, error, sizeof error), 0);
}

static void test_a_pin_demands_its_key_besides_the_certificate(void **state)
{
	struct identity other;
	struct fixture f;

	(void)state;
	set_up(&f);
	identity_make(&other, &f.world.authority, "DNS:proxy.test", 10);
	add_pin(&f, &other, "Proxy.Test:443");
	assert_int_equal(shake_hands(&f, "proxy.test"), REASON_PROXY_CERTIFICATE);
	assert_non_null(strstr(f.trouble, "pin"));
	assert_int_equal(shake_hands(&f, "127.0.0.1"), 0); /* another place */
	add_pin(&f, &f.world.server, "proxy.test:443");    /* a second one for the same */
	assert_int_equal(shake_hands(&f, "proxy.test"), 0);
	identity_free(&other);
	tear_down(&f);
}

static void test_a_pin_does_not_make_up_for_a_bad_certificate(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	add_pin(&f, &f.world.server, "other.test:443");
	assert_int_equal(shake_hands(&f, "other.test"), REASON_PROXY_CERTIFICATE);
	tear_down(&f);
}

#define KEY "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" /* SHA-256 of nothing */

static void test_what_is_no_pin_is_refused_by_name(void **state)
{
	static const char *const bad[] = {
	    "",
	    "proxy.test:443",
	    "proxy.test=sha256//" KEY,
	    ":443=sha256//" KEY,
	    "proxy.test:0=sha256//" KEY,
	    "proxy.test:65536=sha256//" KEY,
	    "http://proxy.test:443=sha256//" KEY,
	    "user:pw@proxy.test:443=sha256//" KEY,
	    "proxy.test:443=sha1//" KEY,
	    "proxy.test:443=sha256//",
	    "proxy.test:443=sha256//" KEY "=",
	    "proxy.test:443=sha256// " KEY,
	    "proxy.test:443=sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=",
	    "proxy.test:443=sha256//47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=",
	};
	static const char *const good[] = {"proxy.test:443=sha256//" KEY, "[::1]:8443=sha256//" KEY,
					   "https://192.0.2.1:1=sha256//" KEY,
					   "proxy:1=sha256//" KEY};
	char error[400];
	struct tls *tls;

	(void)state;
	assert_int_equal(tls_new(&tls, "", error, sizeof error), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		error[0] = '\0';
		if (tls_pin(tls, bad[i], error, sizeof error) != -EINVAL)
			fail_msg("'%s' was taken for a pin", bad[i]);
		assert_non_null(strstr(error, bad[i]));
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (tls_pin(tls, good[i], error, sizeof error))
			fail_msg("%s", error);
	tls_free(tls);
	tls_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_name_and_an_address_that_the_certificate_has_are_let_pass),
	    cmocka_unit_test(test_another_name_or_address_is_refused),
	    cmocka_unit_test(test_names_are_compared_as_rfc_9525_says),
	    cmocka_unit_test(test_an_expired_certificate_is_refused),
	    cmocka_unit_test(test_a_certificate_of_another_authority_is_refused),
	    cmocka_unit_test(test_without_a_file_the_system_is_trusted_and_not_the_test),
	    cmocka_unit_test(test_the_server_s_own_certificate_can_be_the_anchor),
	    cmocka_unit_test(test_a_file_without_certificates_is_named),
	    cmocka_unit_test(test_an_endless_chain_is_refused),
	    cmocka_unit_test(test_tls_1_2_is_the_oldest_that_is_spoken),
	    cmocka_unit_test(test_no_session_is_resumed),
	    cmocka_unit_test(test_a_pin_demands_its_key_besides_the_certificate),
	    cmocka_unit_test(test_a_pin_does_not_make_up_for_a_bad_certificate),
	    cmocka_unit_test(test_what_is_no_pin_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
