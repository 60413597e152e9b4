// What libxlsxwriter keeps rows in until the end: a file in a folder that goes away with its last handle.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

FILE* tmpfileplus(const char* folder, const char* prefix, char** path, int keep) {
  (void)prefix, (void)path, (void)keep;  // its one caller passes none
  if (!folder) return tmpfile();
  char* name = NULL;
  if (asprintf(&name, "%s/.rowsXXXXXX", folder) < 0) return NULL;
  const int handle = mkostemp(name, O_CLOEXEC);
  if (handle >= 0) unlink(name);
  free(name);
  FILE* file = handle < 0 ? NULL : fdopen(handle, "w+b");
  if (!file && handle >= 0) close(handle);
  return file;
}
