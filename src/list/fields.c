/* fields.c - entries whose parts have names: CSV columns and JSON members. */
#include "list/fields.h"

#include <stdio.h>
#include <string.h>

#include "list/item.h"
#include "list/lines.h"
#include "list/text.h"

/* A canonical form has room for credentials from a line of 4,096 bytes. */
#define CREDENTIALS_MAX ((size_t)4000)
#define NAME_MAX_LEN ((size_t)15)

/* In the order of preference (docs/lists.md). A country's code comes before its name. */
static const struct {
	const char *name;
	enum field field;
} names[] = {
    {"ip", FIELD_HOST},
    {"host", FIELD_HOST},
    {"server", FIELD_HOST},
    {"address", FIELD_HOST},
    {"addr", FIELD_HOST},
    {"ip_address", FIELD_HOST},
    {"port", FIELD_PORT},
    {"protocols", FIELD_SCHEME},
    {"protocol", FIELD_SCHEME},
    {"type", FIELD_SCHEME},
    {"scheme", FIELD_SCHEME},
    {"username", FIELD_USER},
    {"user", FIELD_USER},
    {"password", FIELD_PASSWORD},
    {"pass", FIELD_PASSWORD},
    {"proxy", FIELD_PROXY},
    {"country_code", FIELD_COUNTRY},
    {"countrycode", FIELD_COUNTRY},
    {"cc", FIELD_COUNTRY},
    {"country", FIELD_COUNTRY},
    {"geo", FIELD_COUNTRY},
    {"anonymity", FIELD_ANONYMITY},
    {"anonymitylevel", FIELD_ANONYMITY},
    {"anonymity_level", FIELD_ANONYMITY},
    {"anon", FIELD_ANONYMITY},
    {"level", FIELD_ANONYMITY},
};

void fields_init(struct fields *f)
{
	memset(f, 0, sizeof(*f));
}

int field_name_find(struct span name)
{
	if (name.len == 0 || name.len > NAME_MAX_LEN)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if ((name.at[0] | 0x20) == names[i].name[0] && span_is(name, names[i].name))
			return (int)i;
	return -1;
}

enum field field_name_field(int name)
{
	return names[name].field;
}

bool field_name_is_plural(int name)
{
	return strcmp(names[name].name, "protocols") == 0;
}

/* Whether a new value is worth more than the one that is there. */
static bool is_better(const struct fields *f, int name, bool is_good, bool was_good)
{
	enum field field = names[name].field;

	if (!f->values[field].at)
		return true;
	return is_good == was_good ? name < f->names[field] : is_good;
}

void fields_set(struct fields *f, int name, struct span value)
{
	enum field field = names[name].field;

	if (!is_better(f, name, value.len > 0, f->values[field].len > 0))
		return;
	f->values[field] = value.at ? value : (struct span){"", 0};
	f->names[field] = name;
}

static bool has_known_scheme(const struct span *schemes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (scheme_from_text(schemes[i].at, schemes[i].len) >= 0)
			return true;
	return false;
}

/* "type" may be the kind of its address or anything else: a supported scheme under a later name
 * is the better one. */
void fields_set_schemes(struct fields *f, int name, const struct span *schemes, size_t count)
{
	if (count > FIELD_SCHEMES_MAX) {
		f->is_misshapen = true;
		return;
	}
	if (count == 0 || !is_better(f, name, has_known_scheme(schemes, count),
				     has_known_scheme(f->schemes, f->scheme_count)))
		return;
	f->values[FIELD_SCHEME] = schemes[0];
	f->names[FIELD_SCHEME] = name;
	memcpy(f->schemes, schemes, count * sizeof(*schemes));
	f->scheme_count = count;
}

static bool has_control(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] < 0x20 || s.at[i] == 0x7f)
			return true;
	return false;
}

/* Trimmed; nothing at all if it is no short printable text. */
static void tag_copy(char tag[LIST_TAG_MAX], struct span s)
{
	s = span_trim(s);
	if (s.len >= LIST_TAG_MAX || has_control(s))
		s.len = 0;
	if (s.len > 0)
		memcpy(tag, s.at, s.len);
	tag[s.len] = '\0';
}

static int scheme_read(struct span text, int *ret)
{
	int scheme = scheme_from_text(text.at, text.len);

	if (span_is(text, "socks"))
		return VERDICT_AMBIGUOUS_SCHEME;
	if (scheme == SCHEME_DIRECT)
		return VERDICT_DIRECT;
	if (scheme < 0)
		return VERDICT_UNSUPPORTED_SCHEME;
	*ret = scheme;
	return 0;
}

/* "192.0.2.1:8080" in the host's place, without a port of its own. */
static bool host_has_port(struct span host, struct span port)
{
	struct address a;

	return port.len == 0 && host.len > 0 && memchr(host.at, ':', host.len) &&
	       address_parse(&a, host.at, host.len) != 0;
}

static int text_split(struct endpoint_parts *ret, struct span text,
		      const struct endpoint_rules *rules)
{
	text = span_trim(text);
	if (text.len > LIST_LINE_MAX)
		return VERDICT_LINE_TOO_LONG;
	return list_item_split(ret, text.at, text.len, rules);
}

static int parts_fill(struct endpoint_parts *ret, const struct fields *f,
		      const struct endpoint_rules *rules)
{
	struct span host = f->values[FIELD_HOST], port = f->values[FIELD_PORT];

	if (!host.at)
		return text_split(ret, f->values[FIELD_PROXY], rules);
	if (host_has_port(host, port))
		return text_split(ret, host, rules);
	if (has_control(host) || has_control(port))
		return VERDICT_CONTROL_CHAR;
	parts_init(ret);
	ret->host = host;
	ret->port = port;
	ret->is_bare_host = true;
	return 0;
}

static int credentials_fill(struct endpoint_parts *p, const struct fields *f)
{
	struct span user = f->values[FIELD_USER], password = f->values[FIELD_PASSWORD];

	if (p->has_credentials || user.len + password.len == 0)
		return 0;
	if (user.len + password.len > CREDENTIALS_MAX)
		return VERDICT_CREDENTIAL_TOO_LONG;
	p->user = user.at ? user : (struct span){"", 0};
	p->password = password.at ? password : (struct span){"", 0};
	p->has_credentials = true;
	p->is_encoded = false;
	return 0;
}

/* The message is made of anything but the credentials' fields, and masked besides. */
static int verdict_report(const struct fields *f, struct list_output *o, uint64_t line,
			  const struct span *scheme, int verdict)
{
	struct span host = f->values[FIELD_HOST], port = f->values[FIELD_PORT];
	struct span proxy = f->values[FIELD_PROXY];
	char text[2 * ENDPOINT_HOST_MAX];
	struct address a;
	bool is_ipv6;
	size_t len;

	if (!host.at)
		return list_output_verdict(o, line, (enum verdict)verdict, proxy.at, proxy.len);
	is_ipv6 = address_parse(&a, host.at, host.len) == 0 && a.family == AF_INET6;
	snprintf(text, sizeof(text), "%.*s%s%s%.*s%s%s%.*s", scheme ? (int)scheme->len : 0,
		 scheme ? scheme->at : "", scheme ? "://" : "", is_ipv6 ? "[" : "", (int)host.len,
		 host.at, is_ipv6 ? "]" : "", port.len ? ":" : "", (int)port.len,
		 port.at ? port.at : "");
	len = strlen(text);
	return list_output_verdict(o, line, (enum verdict)verdict, text, len);
}

/* The endpoint under one of its schemes, NULL = none is named. Returns 0, an `enum verdict` or
 * -ENOMEM. */
static int endpoint_read(struct endpoint *ret, const struct fields *f,
			 const struct endpoint_rules *rules, const struct span *scheme)
{
	struct endpoint_parts parts;
	int named = -1, r = scheme ? scheme_read(*scheme, &named) : 0;

	if (!r)
		r = parts_fill(&parts, f, rules);
	if (!r)
		r = credentials_fill(&parts, f);
	if (r)
		return r;
	if (parts.scheme < 0)
		parts.scheme = named;
	return parts_build(ret, &parts, rules);
}

static int entry_report(const struct fields *f, struct list_output *o, uint64_t line,
			const struct span *scheme)
{
	struct endpoint e;
	struct list_tags tags;
	int r = endpoint_read(&e, f, &o->rules, scheme);

	if (r < 0)
		return r;
	if (r > 0)
		return verdict_report(f, o, line, scheme, r);
	tag_copy(tags.country, f->values[FIELD_COUNTRY]);
	tag_copy(tags.anonymity, f->values[FIELD_ANONYMITY]);
	r = list_output_endpoint(o, line, &e, &tags);
	endpoint_fini(&e);
	return r;
}

bool fields_have_endpoint(const struct fields *f)
{
	return f->values[FIELD_HOST].at || f->values[FIELD_PROXY].at;
}

int fields_report(const struct fields *f, struct list_output *o, uint64_t line)
{
	int r = 0;

	if (f->is_misshapen || !fields_have_endpoint(f))
		return list_output_verdict(o, line, VERDICT_JSON_SHAPE, "", 0);
	if (f->scheme_count == 0)
		return entry_report(f, o, line, NULL);
	for (size_t i = 0; i < f->scheme_count && !r; i++)
		r = entry_report(f, o, line, &f->schemes[i]);
	return r;
}
