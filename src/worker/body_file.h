/* body_file.h - bodies as files of a folder, named by their SHA-256: equal ones are one file. */
#ifndef FAIRLEAD_WORKER_BODY_FILE_H
#define FAIRLEAD_WORKER_BODY_FILE_H

#include <stddef.h>

#include "base/digest.h"

#define BODY_NAME_SIZE (2 * DIGEST_BYTES + 1)

/* Whole under its name, or not there. 0 or -errno. */
MUST_USE int body_file_write(int folder, const void *bytes, size_t len,
			     char ret_name[static BODY_NAME_SIZE]);

#endif
