/* place.c - a proxy list that was named on the command line. */
#include "cli/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli/intake.h"
#include "fetch/fetch.h"
#include "source/source.h"

#define FETCH_MS 60000
#define CONNECT_MS 10000

struct download {
	struct loop *loop;
	struct load *load;
	bool is_done;
	int result; /* of the download, then of the reading */
	char error[256];
};

/* The whole list is here, in a temporary file, before anything of it is read. */
static void on_fetched(int result, const char *error, const struct fetch_answer *answer, void *arg)
{
	struct download *download = arg;

	if (!result) {
		result = load_read_answer(download->load, answer, INTAKE_BYTES_MAX);
		error = load_error(result);
	}
	download->is_done = true;
	download->result = result;
	snprintf(download->error, sizeof download->error, "%s", error);
	if (answer->fd >= 0)
		close(answer->fd);
}

static int read_url(struct load *load, const char *url, char *error, size_t size)
{
	struct fetch_request request = {.url = url,
					.max_bytes = (size_t)INTAKE_BYTES_MAX,
					.timeout_ms = FETCH_MS,
					.connect_ms = CONNECT_MS};
	struct download download = {.load = load};
	struct fetch *fetch;
	int r = loop_new(&download.loop);

	if (!r)
		r = fetch_start(&fetch, download.loop, &request, on_fetched, &download);
	while (!r && !download.is_done)
		loop_turn(download.loop);
	loop_free(download.loop);
	snprintf(error, size, "%s", r ? strerror(-r) : download.error);
	return r ? r : download.result;
}

int place_read(struct load *load, const char *text, char *error, size_t size)
{
	int r;

	if (source_is_url(text))
		return read_url(load, text, error, size);
	r = strcmp(text, "-") ? load_read_file(load, text, INTAKE_BYTES_MAX)
			      : load_read(load, STDIN_FILENO, INTAKE_BYTES_MAX);
	snprintf(error, size, "%s%s", load_error(r),
		 r == -EINVAL ? "; a pipe can be given as standard input, '-'" : "");
	return r;
}

/* The last part is taken from the place itself: what is shown of it may be cut. */
void place_name(struct place *ret, const char *text)
{
	const char *slash = strrchr(text, '/');

	secret_print(text, ret->shown, sizeof ret->shown);
	secret_print(slash && slash[1] ? slash + 1 : text, ret->base, sizeof ret->base);
	ret->name = strcmp(text, "-") ? ret->shown : "standard input";
}
