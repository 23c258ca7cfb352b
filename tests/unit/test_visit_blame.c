/* test_visit_blame.c - the same hostile members through dial and through libcurl: both give the same reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/tls.h"
#include "dial_stage.h"
#include "tls_stage.h"
#include "visit_stage.h"

#define TEN "\0\1\0\0\0\0\0\0"
#define SCENE_MS 200
#define HEAD SIZE_MAX

enum end { STAYS, CLOSES, RESETS };

/* What a member does: hears so many bytes (HEAD: up to an empty line), says something, ... and the end. */
struct line {
	size_t hears;
	const char *says;
	size_t len;
};

#define SAYS(hears, text)                                                                          \
	{                                                                                          \
		hears, text, sizeof(text) - 1                                                      \
	}

struct scene {
	const char *name;
	enum scheme scheme;
	char *secret;
	struct line lines[3];
	enum end end;
	int reason;
	int of_curl; /* where libcurl cannot tell, as docs/decisions.md says; 0: the same */
};

/* --- scenes ------------------------------------------------------------------------------------------------------- */

#define HTTP(name, text, end, reason, of_curl)                                                     \
	{                                                                                          \
		name, SCHEME_HTTP, NULL, {SAYS(HEAD, text)}, end, reason, of_curl                  \
	}
#define STATUS(code, reason)                                                                       \
	HTTP(#code, "HTTP/1.1 " #code " X\r\nContent-Length: 0\r\n\r\n", STAYS, reason, 0)

static char login[] = "user:pass";

static const struct scene http_scenes[] = {
    {"silent from the start", SCHEME_HTTP, NULL, {{0}}, STAYS, REASON_PROXY_SILENT, 0},
    {"ends at once", SCHEME_HTTP, NULL, {{0}}, CLOSES, REASON_PROXY_RESET, 0},
    {"resets at once", SCHEME_HTTP, NULL, {{0}}, RESETS, REASON_PROXY_RESET, 0},
    {"another protocol",
     SCHEME_HTTP,
     NULL,
     {SAYS(0, "SSH-2.0-x\r\n\r\n")},
     STAYS,
     REASON_PROXY_GARBAGE,
     0},
    HTTP("silent behind the request", "", STAYS, REASON_PROXY_SILENT, 0),
    HTTP("drips", "HTTP/1.1 200 OK\r\nX: a", STAYS, REASON_PROXY_SILENT, 0),
    HTTP("ends behind the request", "", CLOSES, REASON_PROXY_RESET, 0),
    HTTP("resets behind the request", "", RESETS, REASON_PROXY_RESET, 0),
    HTTP("ends in the reply", "HTTP/1.1 200 OK\r\n", CLOSES, REASON_PROXY_RESET, 0),
    HTTP("resets in the reply", "HTTP/1.1 200 OK\r\n", RESETS, REASON_PROXY_RESET, 0),
    HTTP("another version", "HTTP/2.0 200 OK\r\n\r\n", STAYS, REASON_PROXY_GARBAGE, 0),
    HTTP("no such code", "HTTP/1.1 99 OK\r\n\r\n", STAYS, REASON_PROXY_GARBAGE, 0),
    HTTP("bare line feeds", "HTTP/1.1 200 OK\n\n", STAYS, REASON_PROXY_GARBAGE, 0),
    HTTP("switches protocols", "HTTP/1.1 101 X\r\n\r\n", STAYS, REASON_PROXY_GARBAGE, 0),
    HTTP("no field", "HTTP/1.1 200 OK\r\nhello\r\n\r\n", STAYS, REASON_PROXY_GARBAGE, 0),
    STATUS(301, REASON_PROXY_CANNOT),
    STATUS(400, REASON_PROXY_CANNOT),
    STATUS(401, REASON_PROXY_AUTH),
    STATUS(403, REASON_TARGET_DENIED),
    STATUS(404, REASON_TARGET_UNKNOWN),
    STATUS(405, REASON_PROXY_CANNOT),
    STATUS(407, REASON_PROXY_AUTH),
    STATUS(429, REASON_PROXY_CANNOT),
    STATUS(500, REASON_TARGET_FAILED),
    STATUS(502, REASON_TARGET_FAILED),
    STATUS(503, REASON_TARGET_FAILED),
    STATUS(504, REASON_TARGET_TIMEOUT),
    HTTP("wants a password, without end",
	 "HTTP/1.1 407 X\r\nProxy-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n"
	 "Content-Length: 9\r\n\r\n",
	 STAYS, REASON_PROXY_AUTH, 0),
    {"does not like the password",
     SCHEME_HTTP,
     login,
     {SAYS(HEAD, "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n")},
     STAYS,
     REASON_PROXY_AUTH,
     0},
    HTTP("an interim answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", STAYS, 0,
	 REASON_PROXY_CANNOT),
};

#define SOCKS5(name, text, end, reason, of_curl)                                                   \
	{                                                                                          \
		name, SCHEME_SOCKS5, NULL, {SAYS(3, "\5\0"), SAYS(18, text)}, end, reason, of_curl \
	}

static const struct scene socks5_scenes[] = {
    {"silent from the start", SCHEME_SOCKS5, NULL, {{0}}, STAYS, REASON_PROXY_SILENT, 0},
    {"ends at once", SCHEME_SOCKS5, NULL, {{0}}, CLOSES, REASON_PROXY_RESET, 0},
    {"resets at once", SCHEME_SOCKS5, NULL, {{0}}, RESETS, REASON_PROXY_RESET, 0},
    {"another protocol",
     SCHEME_SOCKS5,
     NULL,
     {SAYS(0, "SSH-2.0-x\r\n")},
     STAYS,
     REASON_PROXY_GARBAGE,
     0},
    {"no method", SCHEME_SOCKS5, NULL, {SAYS(3, "\5\xff")}, STAYS, REASON_PROXY_AUTH, 0},
    {"not offered", SCHEME_SOCKS5, NULL, {SAYS(3, "\5\1")}, STAYS, REASON_PROXY_GARBAGE, 0},
    {"no such method", SCHEME_SOCKS5, NULL, {SAYS(3, "\5\x9")}, STAYS, REASON_PROXY_GARBAGE, 0},
    {"wants a password",
     SCHEME_SOCKS5,
     NULL,
     {SAYS(3, "\5\2")},
     STAYS,
     REASON_PROXY_GARBAGE,
     REASON_PROXY_SILENT},
    {"not this password",
     SCHEME_SOCKS5,
     login,
     {SAYS(4, "\5\2"), SAYS(11, "\1\1")},
     STAYS,
     REASON_PROXY_AUTH,
     0},
    {"ends at the password",
     SCHEME_SOCKS5,
     login,
     {SAYS(4, "\5\2"), SAYS(11, "")},
     CLOSES,
     REASON_PROXY_RESET,
     0},
    {"silent at the password",
     SCHEME_SOCKS5,
     login,
     {SAYS(4, "\5\2"), SAYS(11, "")},
     STAYS,
     REASON_PROXY_SILENT,
     0},
    SOCKS5("silent behind the request", "", STAYS, REASON_PROXY_SILENT, 0),
    SOCKS5("ends behind the request", "", CLOSES, REASON_PROXY_RESET, 0),
    SOCKS5("resets behind the request", "", RESETS, REASON_PROXY_RESET, 0),
    SOCKS5("drips",
	   "\5\0\0\3\xff"
	   "aaaa",
	   STAYS, REASON_PROXY_SILENT, 0),
    SOCKS5("ends in the reply", "\5\0\0\1\0\0\0\0\0", CLOSES, REASON_PROXY_RESET, 0),
    SOCKS5("another version", "\4\0" TEN, STAYS, REASON_PROXY_GARBAGE, 0),
    SOCKS5("no such type", "\5\0\0\2\0\0\0\0\0\0", STAYS, REASON_PROXY_GARBAGE, 0),
    SOCKS5("1", "\5\1" TEN, STAYS, REASON_TARGET_FAILED, 0),
    SOCKS5("2", "\5\2" TEN, STAYS, REASON_TARGET_DENIED, 0),
    SOCKS5("3", "\5\3" TEN, STAYS, REASON_TARGET_UNREACHABLE, 0),
    SOCKS5("4", "\5\4" TEN, STAYS, REASON_TARGET_FAILED, 0),
    SOCKS5("5", "\5\5" TEN, STAYS, REASON_TARGET_REFUSED, 0),
    SOCKS5("6", "\5\6" TEN, STAYS, REASON_TARGET_TIMEOUT, 0),
    SOCKS5("7", "\5\7" TEN, STAYS, REASON_PROXY_CANNOT, 0),
    SOCKS5("8", "\5\x8" TEN, STAYS, REASON_PROXY_CANNOT, 0),
    SOCKS5("9", "\5\x9" TEN, STAYS, REASON_PROXY_GARBAGE, 0),
    SOCKS5("a short refusal", "\5\5", CLOSES, REASON_TARGET_REFUSED, REASON_PROXY_RESET),
};

#define SOCKS4(name, text, end, reason, of_curl)                                                   \
	{                                                                                          \
		name, SCHEME_SOCKS4, NULL, {SAYS(21, text)}, end, reason, of_curl                  \
	}

static const struct scene socks4_scenes[] = {
    {"silent from the start", SCHEME_SOCKS4, NULL, {{0}}, STAYS, REASON_PROXY_SILENT, 0},
    {"ends at once", SCHEME_SOCKS4, NULL, {{0}}, CLOSES, REASON_PROXY_RESET, 0},
    {"resets at once", SCHEME_SOCKS4, NULL, {{0}}, RESETS, REASON_PROXY_RESET, 0},
    {"another protocol",
     SCHEME_SOCKS4,
     NULL,
     {SAYS(0, "SSH-2.0-x\r\n")},
     STAYS,
     REASON_PROXY_GARBAGE,
     0},
    SOCKS4("silent behind the request", "", STAYS, REASON_PROXY_SILENT, 0),
    SOCKS4("ends in the reply", "\0\x5a\0\0\0\0\0", CLOSES, REASON_PROXY_RESET, 0),
    SOCKS4("drips", "\0\x5a\0\0", STAYS, REASON_PROXY_SILENT, 0),
    SOCKS4("another version", "\4\x5a\0\0\0\0\0\0", STAYS, REASON_PROXY_GARBAGE, 0),
    SOCKS4("91", "\0\x5b\0\0\0\0\0\0", STAYS, REASON_TARGET_FAILED, 0),
    SOCKS4("92", "\0\x5c\0\0\0\0\0\0", STAYS, REASON_PROXY_AUTH, 0),
    SOCKS4("93", "\0\x5d\0\0\0\0\0\0", STAYS, REASON_PROXY_AUTH, 0),
    SOCKS4("89", "\0\x59\0\0\0\0\0\0", STAYS, REASON_PROXY_GARBAGE, 0),
    SOCKS4("a short refusal", "\0\x5b", CLOSES, REASON_TARGET_FAILED, REASON_PROXY_RESET),
};

/* --- played ------------------------------------------------------------------------------------------------------- */

static bool has_heard(struct peer *peer, size_t bytes)
{
	peer_listen_up(peer);
	if (bytes == HEAD)
		return strstr(peer->heard, "\r\n\r\n");
	return peer->heard_len >= bytes;
}

static void play(struct peer *peer, const struct scene *scene, const int *ends)
{
	peer_accept(peer);
	for (size_t i = 0; i < 3 && !*ends; i++) {
		const struct line *line = &scene->lines[i];

		STAGE_UNTIL(peer->stage, has_heard(peer, line->hears) || *ends);
		peer_forget(peer);
		if (line->len)
			peer_say_bytes(peer, line->says, line->len);
	}
	if (scene->end == CLOSES)
		peer_close(peer);
	else if (scene->end == RESETS)
		peer_reset(peer);
}

static int by_dial(const struct scene *scene)
{
	struct dial_stage f;
	int result;

	dial_stage_begin(&f);
	f.proxy.scheme = scene->scheme;
	f.proxy.secret = scene->secret;
	f.request.connect_ms = f.request.total_ms = SCENE_MS;
	dial_stage_start(&f);
	play(&f.peer, scene, &f.ends);
	STAGE_UNTIL(&f.stage, f.ends);
	result = f.result;
	dial_stage_end(&f);
	return result;
}

static int by_visit(const struct scene *scene)
{
	struct visit_stage f;
	int reason;

	visit_stage_begin(&f);
	f.proxy.scheme = scene->scheme;
	f.proxy.secret = scene->secret;
	f.request.connect_ms = SCENE_MS;
	visit_stage_url(&f, scene->scheme == SCHEME_HTTP ? "https://example.com/"
							 : "http://example.com:443/");
	visit_stage_start(&f);
	play(&f.peer, scene, &f.ends);
	STAGE_UNTIL(&f.stage, f.ends);
	reason = f.reason;
	assert_int_equal(f.answer.status, 0);
	assert_int_equal(f.asked, 1);
	assert_int_equal(f.asked_for_targets, 0);
	visit_stage_end(&f);
	return reason;
}

static void check_scenes(const struct scene *scenes, size_t count)
{
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct scene *scene = &scenes[i];
		int dialled = by_dial(scene), visited = by_visit(scene);
		int wanted = scene->of_curl ? scene->of_curl : scene->reason;

		if (dialled == scene->reason && visited == wanted)
			continue;
		print_error("%s: dial says %s, not %s; visit says %s, not %s\n", scene->name,
			    result_word(dialled), result_word(scene->reason), result_word(visited),
			    result_word(wanted));
		failed++;
	}
	assert_int_equal(failed, 0);
}

static void test_an_http_member_is_blamed_alike(void **state)
{
	(void)state;
	check_scenes(http_scenes, sizeof(http_scenes) / sizeof(http_scenes[0]));
}

static void test_a_socks5_member_is_blamed_alike(void **state)
{
	(void)state;
	check_scenes(socks5_scenes, sizeof(socks5_scenes) / sizeof(socks5_scenes[0]));
}

static void test_a_socks4_member_is_blamed_alike(void **state)
{
	(void)state;
	check_scenes(socks4_scenes, sizeof(socks4_scenes) / sizeof(socks4_scenes[0]));
}

/* Nothing takes connections off a queue that is full: connect(2) stays under way. */
static void test_a_member_that_cannot_be_connected_to_is_blamed_alike(void **state)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);
	struct visit_stage f;
	int listener, fillers[3];

	(void)state;
	visit_stage_begin(&f);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	f.proxy.port = ntohs(sa.sin_port);
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_REFUSED);
	assert_int_equal(listen(listener, 0), 0);
	for (int i = 0; i < 3; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fillers[i], (struct sockaddr *)&sa, len);
	}
	f.request.connect_ms = 60;
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_TIMEOUT);
	for (int i = 0; i < 3; i++)
		close(fillers[i]);
	close(listener);
	visit_stage_end(&f);
}

static void test_a_member_that_may_not_be_dialled_is_not(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.admits = false;
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_PROHIBITED);
	snprintf(f.proxy.host, sizeof(f.proxy.host), "localhost");
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_PROHIBITED);
	f.request.is_admitted = NULL; /* all but special-purpose ones */
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_PROHIBITED);
	assert_false(peer_is_called(&f.peer));
	visit_stage_end(&f);
}

static void test_a_member_without_an_address_is_blamed_alike(void **state)
{
	const char *const nobody[] = {"127.0.0.1:1"};
	struct visit_stage f;
	size_t bad;

	(void)state;
	visit_stage_begin(&f);
	assert_int_equal(loop_nameservers(f.stage.loop, nobody, 1, &bad), 0);
	snprintf(f.proxy.host, sizeof(f.proxy.host), "member.invalid");
	f.request.connect_ms = 100;
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_NAME);
	visit_stage_end(&f);
}

/* --- https members ------------------------------------------------------------------------------------------------ */

struct tls_scene {
	struct visit_stage visit;
	struct tls_world world;
	struct tls_server server;
};

static void begin_tls(struct tls_scene *s)
{
	visit_stage_begin(&s->visit);
	tls_world_init(&s->world);
	tls_server_init(&s->server, &s->visit.stage, &s->world.server);
	s->visit.proxy.scheme = SCHEME_HTTPS;
	s->visit.request.ca_file = s->world.ca_file;
	visit_stage_url(&s->visit, "https://example.com/");
}

static void end_tls(struct tls_scene *s)
{
	visit_stage_end(&s->visit);
	tls_server_fini(&s->server);
	tls_world_fini(&s->world);
}

static void shake_hands(struct tls_scene *s)
{
	visit_stage_start(&s->visit);
	peer_accept(&s->visit.peer);
	STAGE_UNTIL(&s->visit.stage,
		    tls_server_accept(&s->server, s->visit.peer.fd) == 1 || s->visit.ends);
}

static void check_words(const char *words, size_t len, enum end end, int reason)
{
	struct tls_scene s;

	begin_tls(&s);
	s.visit.request.connect_ms = SCENE_MS;
	visit_stage_start(&s.visit);
	peer_accept(&s.visit.peer);
	if (len)
		peer_say_bytes(&s.visit.peer, words, len);
	if (end == CLOSES)
		peer_close(&s.visit.peer);
	if (end == RESETS) {
		peer_expect(&s.visit.peer, "\x16\x03"); /* a ClientHello */
		peer_reset(&s.visit.peer);
	}
	visit_stage_expect(&s.visit, reason);
	end_tls(&s);
}

/* As test_dial_tls.c has them. */
static void test_what_is_no_tls_is_told_apart_alike(void **state)
{
	(void)state;
	check_words("HTTP/1.1 400 Bad Request\r\n\r\n", 28, STAYS, REASON_PROXY_TLS);
	check_words("SSH-2.0-OpenSSH_9.2\r\n", 21, STAYS, REASON_PROXY_TLS);
	check_words("", 0, CLOSES, REASON_PROXY_RESET);
	check_words("", 0, RESETS, REASON_PROXY_RESET);
	check_words("\x16\x03\x03", 3, CLOSES, REASON_PROXY_RESET);
	check_words("", 0, STAYS, REASON_PROXY_SILENT);
	check_words("\x15\x03\x03\x00\x02\x02\x28", 7, STAYS, REASON_PROXY_ALERT);
}

static void test_a_server_that_wants_a_certificate_of_ours_sends_an_alert(void **state)
{
	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct tls_scene s;

		begin_tls(&s);
		SSL_CTX_set_max_proto_version(s.server.context, version);
		SSL_CTX_set_verify(s.server.context,
				   SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		shake_hands(&s);
		visit_stage_expect(&s.visit, REASON_PROXY_ALERT);
		end_tls(&s);
	}
}

static void check_certificate(const char *names, int days, int reason)
{
	struct identity identity;
	struct tls_scene s;

	begin_tls(&s);
	identity_make(&identity, &s.world.authority, names, days);
	tls_server_fini(&s.server);
	tls_server_init(&s.server, &s.visit.stage, &identity);
	shake_hands(&s);
	if (!reason) {
		tls_server_expect(&s.server, "CONNECT example.com:443 HTTP/1.1\r\n", 34);
		visit_cancel(s.visit.visit);
	} else {
		visit_stage_expect(&s.visit, reason);
	}
	identity_free(&identity);
	end_tls(&s);
}

static void test_a_certificate_is_judged_alike(void **state)
{
	(void)state;
	check_certificate("IP:127.0.0.1", 1, 0);
	check_certificate("IP:127.0.0.1", -1, REASON_PROXY_CERTIFICATE);
	check_certificate("IP:127.0.0.2", 1, REASON_PROXY_CERTIFICATE);
	check_certificate("DNS:localhost", 1, REASON_PROXY_CERTIFICATE);
}

static void check_answer(const char *answer, bool is_polite, int reason)
{
	struct tls_scene s;

	begin_tls(&s);
	s.visit.request.connect_ms = 2 * SCENE_MS;
	shake_hands(&s);
	tls_server_expect(&s.server, "CONNECT example.com:443 HTTP/1.1\r\n", 34);
	if (*answer)
		tls_server_say(&s.server, answer, strlen(answer));
	if (is_polite)
		SSL_shutdown(s.server.ssl);
	if (reason == REASON_PROXY_RESET)
		peer_close(&s.visit.peer);
	visit_stage_expect(&s.visit, reason);
	end_tls(&s);
}

static void test_an_https_member_is_blamed_alike(void **state)
{
	(void)state;
	check_answer("", false, REASON_PROXY_SILENT);
	check_answer("", false, REASON_PROXY_RESET);
	check_answer("", true, REASON_PROXY_RESET);
	check_answer("HTTP/1.1 504 X\r\n\r\n", false, REASON_TARGET_TIMEOUT);
	check_answer("HTTP/1.1 407 X\r\n\r\n", false, REASON_PROXY_AUTH);
	check_answer("SSH-2.0-x\r\n\r\n", false, REASON_PROXY_GARBAGE);
}

/* --- heads without end -------------------------------------------------------------------------------------------- */

static void check_endless(enum scheme scheme, const char *url, const char *begin, int reason)
{
	char field[1003] = "X: ";
	struct visit_stage f;

	visit_stage_begin(&f);
	f.proxy.scheme = scheme;
	visit_stage_url(&f, "%s", url);
	memset(field + 3, 'a', 997);
	memcpy(field + 1000, "\r\n", 3);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, begin);
	for (int i = 0; i < 1000 && !f.ends; i++)
		peer_say(&f.peer, field);
	visit_stage_expect(&f, reason);
	visit_stage_end(&f);
}

static void test_a_head_without_end_is_cut_off(void **state)
{
	(void)state;
	check_endless(SCHEME_HTTP, "https://example.com/", "HTTP/1.1 200 OK\r\n",
		      REASON_PROXY_GARBAGE);
	check_endless(SCHEME_HTTP, "http://example.com/", "HTTP/1.1 200 OK\r\n",
		      REASON_RESPONSE_HEAD_SIZE);
}

/* libcurl has a cap of its own there, and does not tell it from a break. */
static void test_a_line_without_end_is_cut_off(void **state)
{
	static char line[40000];
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_url(&f, "https://example.com/");
	memset(line, 'a', sizeof(line) - 1);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nX: ");
	peer_say(&f.peer, line);
	visit_stage_expect(&f, REASON_PROXY_RESET);
	visit_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_http_member_is_blamed_alike),
	    cmocka_unit_test(test_a_socks5_member_is_blamed_alike),
	    cmocka_unit_test(test_a_socks4_member_is_blamed_alike),
	    cmocka_unit_test(test_a_member_that_cannot_be_connected_to_is_blamed_alike),
	    cmocka_unit_test(test_a_member_that_may_not_be_dialled_is_not),
	    cmocka_unit_test(test_a_member_without_an_address_is_blamed_alike),
	    cmocka_unit_test(test_what_is_no_tls_is_told_apart_alike),
	    cmocka_unit_test(test_a_server_that_wants_a_certificate_of_ours_sends_an_alert),
	    cmocka_unit_test(test_a_certificate_is_judged_alike),
	    cmocka_unit_test(test_an_https_member_is_blamed_alike),
	    cmocka_unit_test(test_a_head_without_end_is_cut_off),
	    cmocka_unit_test(test_a_line_without_end_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
