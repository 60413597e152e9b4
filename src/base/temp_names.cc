#include "base/temp_names.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

namespace msprobe {
namespace {

// Names of living temporary files, where a signal handler can read them. A process with more of them at once than
// slots, or with longer names, only loses the tidying after a fatal signal.
struct TempSlot {
  std::atomic<bool> used{false};
  char name[4096];
};
std::array<TempSlot, 64> g_temps;
std::mutex g_temps_mutex;  // of all but the handler

}  // namespace

void RememberTemp(const std::string& name) {
  std::lock_guard lock(g_temps_mutex);
  for (TempSlot& slot : g_temps) {
    if (slot.used.load() || name.size() >= sizeof slot.name) continue;
    std::memcpy(slot.name, name.c_str(), name.size() + 1);
    slot.used.store(true);
    return;
  }
}

void ForgetTemp(const std::string& name) {
  std::lock_guard lock(g_temps_mutex);
  for (TempSlot& slot : g_temps) {
    if (slot.used.load() && name == slot.name) slot.used.store(false);
  }
}

void RemoveTempFiles() noexcept {
  for (TempSlot& slot : g_temps) {
    if (slot.used.exchange(false)) unlink(slot.name);
  }
}

}  // namespace msprobe
