// Preloaded: writes to files below the directory FAIL_BELOW end with the error FAIL_WITH once FAIL_AFTER bytes are written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long written;

static int fails(int fd, size_t size) {
  const char* below = getenv("FAIL_BELOW");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (below == NULL || n <= 0) return 0;
  path[n] = 0;
  if (strncmp(path, below, strlen(below)) != 0) return 0;
  if (__sync_add_and_fetch(&written, (long)size) <= atol(getenv("FAIL_AFTER"))) return 0;
  errno = atoi(getenv("FAIL_WITH"));
  return 1;
}

ssize_t write(int fd, const void* data, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "write");
  return fails(fd, size) ? -1 : real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  static ssize_t (*real)(int, const struct iovec*, int);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "writev");
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return fails(fd, size) ? -1 : real(fd, parts, count);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) {
  static ssize_t (*real)(int, const void*, size_t, off_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pwrite64");
  return fails(fd, size) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }
