/* page.h - what a check target answers, from its bytes. Pure.
 *
 * Nothing of the body is kept but what the text that is looked for may begin with; of a judge's answer, which its
 * head tells, the first PAGE_KEPT_MAX bytes are. */
#ifndef FAIRLEAD_CHECK_PAGE_H
#define FAIRLEAD_CHECK_PAGE_H

#include "base/buffer.h"
#include "base/http.h"

/* So much of a body is read; what is longer ends there, and is as good as complete. */
#define PAGE_BODY_MAX ((size_t)65536)
#define PAGE_KEPT_MAX ((size_t)16384)

struct page {
	struct buffer in; /* the head, as long as it is not whole */
	struct http_scan scan;
	bool has_head;
	int status; /* 0: no head yet */
	enum http_framing framing;
	uint64_t left; /* HTTP_LENGTH */
	struct http_chunks chunks;
	size_t body_len;
	bool is_judge;
	const char *text; /* looked for; "" */
	bool has_text;    /* found */
	struct buffer kept;
};

/* `text` (under 512 bytes) outlives the page. */
void page_init(struct page *page, const char *text);
void page_fini(struct page *page);

/* Takes bytes. However they are split, the result is the same:
 *   -EAGAIN   more are needed; page->has_head tells whether the head of a final response is there
 *   0         the page is whole
 *   REASON_RESPONSE_SYNTAX, REASON_RESPONSE_HEAD_SIZE, REASON_RESPONSE_INCOMPLETE (broken chunks), REASON_INTERNAL
 * Nothing is taken after another result than -EAGAIN. */
MUST_USE int page_feed(struct page *page, const char *bytes, size_t len);

/* No more come: 0, or REASON_PROXY_RESET (no head) or REASON_RESPONSE_INCOMPLETE. */
MUST_USE int page_end(struct page *page);

#endif
