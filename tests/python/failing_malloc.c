// Preloaded: from arm(every) on, each so manieth allocation of our extension gets no memory, and nobody else's.
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

void* __libc_malloc(size_t size);

static uintptr_t begin, end;
static long interval, asked, refused;

static int find(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size, (void)data;
  if (strstr(info->dlpi_name, "/msprobe/_core.") == NULL) return 0;
  begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (at < begin) begin = at;
    if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

int arm(long every) {
  interval = every;
  return dl_iterate_phdr(find, NULL);
}

long refusals(void) { return refused; }

void* malloc(size_t size) {
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  if (interval > 0 && caller >= begin && caller < end && __sync_add_and_fetch(&asked, 1) % interval == 0) {
    __sync_add_and_fetch(&refused, 1);
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(size);
}
