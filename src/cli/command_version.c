/* command_version.c - fairlead version. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/output.h"

/* The build passes the project's version. */
#ifndef FAIRLEAD_VERSION
#error "FAIRLEAD_VERSION is not defined"
#endif

/* The wire contract of docs/wire.md that this program reads and writes. */
#define WIRE_VERSION 1

int command_version(struct cli *cli)
{
	static const struct column columns[] = {{"version"}, {"wire"}};
	struct output output;

	if (!conf_bool(&cli->conf, CONF_JSON)) {
		printf("fairlead %s, wire contract %d\n", FAIRLEAD_VERSION, WIRE_VERSION);
		return EXIT_FINE;
	}
	output_begin(&output, stdout, OUTPUT_JSON, columns, 2);
	output_row(&output,
		   (struct cell[]){CELL_TEXT(FAIRLEAD_VERSION), CELL_NUMBER(WIRE_VERSION)});
	output_finish(&output);
	return EXIT_FINE;
}
