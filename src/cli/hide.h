/* hide.h - credentials that stand on the command line, where every user of the machine can read
 * them. */
#ifndef FAIRLEAD_CLI_HIDE_H
#define FAIRLEAD_CLI_HIDE_H

enum hidden { HIDDEN_IN_OPTION = 1, HIDDEN_IN_ARGUMENT = 2 };

/* Overwrites credentials in argv with '*'; whoever needs them has copied them before. Returns
 * bits of enum hidden. */
unsigned hide_secrets(int argc, char **argv);

#endif
