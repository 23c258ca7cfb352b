/* check_curl.c - what a check of proxies costs with libcurl's multi interface: the baseline of `run check`.
 *
 * usage: check_curl TARGET TEXT CONCURRENCY TIMEOUT_MS < LIST
 *
 * Asks for TARGET once through each proxy of the list, a URL a line. Prints those whose answer has status 200 and TEXT in its body.
 * curl says no more of the others than one of its error codes. */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 4096

struct probe {
	char proxy[256];
	char body[BODY_MAX];
	size_t len;
};

static const char *target, *wanted;
static long timeout_ms;

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct probe *probe = arg;
	size_t len = size * count, room = BODY_MAX - 1 - probe->len;

	memcpy(probe->body + probe->len, bytes, len < room ? len : room);
	probe->len += len < room ? len : room;
	return len;
}

/* False: the list is over. */
static bool probe_start(CURLM *multi)
{
	struct probe *probe = calloc(1, sizeof *probe);
	CURL *easy = curl_easy_init();

	if (!probe || !easy)
		exit(1);
	if (!fgets(probe->proxy, sizeof probe->proxy, stdin)) {
		curl_easy_cleanup(easy);
		free(probe);
		return false;
	}
	probe->proxy[strcspn(probe->proxy, "\n")] = '\0';
	curl_easy_setopt(easy, CURLOPT_URL, target);
	curl_easy_setopt(easy, CURLOPT_PROXY, probe->proxy);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, probe);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, probe);
	if (curl_multi_add_handle(multi, easy))
		exit(1);
	return true;
}

static void probe_end(CURLM *multi, CURL *easy, CURLcode result)
{
	struct probe *probe;
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &probe);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (!result && status == 200 && strstr(probe->body, wanted))
		puts(probe->proxy);
	curl_multi_remove_handle(multi, easy);
	curl_easy_cleanup(easy);
	free(probe);
}

int main(int argc, char **argv)
{
	CURLM *multi;
	CURLMsg *message;
	int running = 0, left, concurrency;
	bool has_more = true;

	if (argc != 5 || curl_global_init(CURL_GLOBAL_DEFAULT) || !(multi = curl_multi_init()))
		return 2;
	target = argv[1];
	wanted = argv[2];
	concurrency = atoi(argv[3]);
	timeout_ms = atol(argv[4]);
	for (int count = 0; has_more || count;) {
		while (has_more && count < concurrency) {
			has_more = probe_start(multi);
			count += has_more;
		}
		if (curl_multi_perform(multi, &running))
			return 1;
		while ((message = curl_multi_info_read(multi, &left)))
			if (message->msg == CURLMSG_DONE) {
				probe_end(multi, message->easy_handle, message->data.result);
				count--;
			}
		if (count && curl_multi_poll(multi, NULL, 0, 100, NULL))
			return 1;
	}
	curl_multi_cleanup(multi);
	return 0;
}
