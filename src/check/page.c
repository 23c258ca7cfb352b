/* page.c - what a check target answers, from its bytes. */
#include "check/page.h"

#include <errno.h>
#include <string.h>

void page_init(struct page *page, const char *text)
{
	*page = (struct page){.text = text, .has_text = !*text};
	/* A head that lacks its last byte, and one read. */
	buffer_init(&page->in, 2 * HTTP_HEAD_MAX);
	buffer_init(&page->kept, 2 * PAGE_KEPT_MAX);
}

void page_fini(struct page *page)
{
	buffer_fini(&page->in);
	buffer_fini(&page->kept);
}

/* --- body --------------------------------------------------------------------------------------------------------- */

/* Looks for the text in what came, and in what the end of it makes whole. */
static void look(struct page *page)
{
	size_t len = strlen(page->text), spare;

	if (!page->has_text)
		page->has_text =
		    memmem(buffer_at(&page->kept), buffer_len(&page->kept), page->text, len);
	if (page->is_judge)
		return;
	spare = page->has_text ? 0 : len - 1;
	if (buffer_len(&page->kept) > spare)
		buffer_consume(&page->kept, buffer_len(&page->kept) - spare);
}

static int take_content(struct page *page, const char *bytes, size_t len)
{
	size_t room = PAGE_BODY_MAX - page->body_len;
	int r = 0;

	if (len > room)
		len = room;
	page->body_len += len;
	if (!page->is_judge && page->has_text)
		return 0;
	for (size_t at = 0, n; at < len && !r; at += n) {
		n = len - at < PAGE_KEPT_MAX ? len - at : PAGE_KEPT_MAX;
		if (page->is_judge && buffer_len(&page->kept) + n > PAGE_KEPT_MAX)
			break;
		r = buffer_add(&page->kept, bytes + at, n);
		if (!r)
			look(page);
	}
	return r;
}

static int take_chunks(struct page *page, const char *bytes, size_t len)
{
	const char *data;
	size_t used, data_len;
	int r;

	do {
		r = http_chunks_read(&page->chunks, bytes, len, &used, &data, &data_len);
		if (r < 0)
			return REASON_RESPONSE_INCOMPLETE;
		if (take_content(page, data, data_len))
			return REASON_INTERNAL;
		bytes += used;
		len -= used;
	} while (!r && used && len);
	return r ? 0 : -EAGAIN;
}

static int take_body(struct page *page, const char *bytes, size_t len)
{
	int r = -EAGAIN;

	switch (page->framing) {
	case HTTP_NO_BODY:
		return 0;
	case HTTP_CHUNKED:
		r = take_chunks(page, bytes, len);
		break;
	case HTTP_LENGTH:
		if (len > page->left)
			len = (size_t)page->left;
		page->left -= len;
		/* fall through */
	case HTTP_UNTIL_CLOSE:
		if (take_content(page, bytes, len))
			return REASON_INTERNAL;
		if (page->framing == HTTP_LENGTH && !page->left)
			r = 0;
		break;
	}
	return r == -EAGAIN && page->body_len == PAGE_BODY_MAX ? 0 : r;
}

/* --- head --------------------------------------------------------------------------------------------------------- */

static void take_final(struct page *page, const struct http_response *response)
{
	page->has_head = true;
	page->status = response->status;
	page->framing = response->framing;
	page->left = response->length;
	page->is_judge = http_find(response->fields, response->field_count, "fairlead-judge");
}

/* Takes one head out of page->in: 0, -EAGAIN or a reason. */
static int take_head(struct page *page)
{
	const struct text get = {"GET", 3};
	struct http_response response NOT_ZEROED;
	long head = http_scan_head(&page->scan, buffer_at(&page->in), buffer_len(&page->in));
	int r;

	if (!head)
		return buffer_room(&page->in) ? -EAGAIN : REASON_RESPONSE_HEAD_SIZE;
	if (head < 0)
		return head == -REASON_REQUEST_SYNTAX ? REASON_RESPONSE_SYNTAX
						      : REASON_RESPONSE_HEAD_SIZE;
	r = http_parse_response(&response, buffer_at(&page->in), (size_t)head, get);
	/* RFC 9110 15.2.2: only in answer to an Upgrade. */
	if (!r && response.status == 101)
		r = REASON_RESPONSE_SYNTAX;
	if (!r && response.status >= 200)
		take_final(page, &response);
	page->scan = (struct http_scan){0};
	buffer_consume(&page->in, (size_t)head);
	return r;
}

int page_feed(struct page *page, const char *bytes, size_t len)
{
	int r = 0;

	if (page->has_head)
		return take_body(page, bytes, len);
	if (buffer_add(&page->in, bytes, len))
		return REASON_INTERNAL;
	/* Any number of 1xx may come first (RFC 9110 15.2). */
	while (!page->has_head && !r)
		r = take_head(page);
	if (!r)
		r = take_body(page, buffer_at(&page->in), buffer_len(&page->in));
	if (page->has_head)
		buffer_fini(&page->in);
	return r;
}

int page_end(struct page *page)
{
	if (!page->has_head)
		return REASON_PROXY_RESET;
	return page->framing == HTTP_UNTIL_CLOSE ? 0 : REASON_RESPONSE_INCOMPLETE;
}
