#include "base/temp_names.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/process_gone.h"

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

std::atomic<bool> g_tidies{false};
constexpr size_t kMostPidDigits = 10;

/// Which numbers of processes are meant: those of this host, and of this container on it.
const std::string& Place() {
  static const std::string place = [] {
    std::array<char, 256> host{}, space{};
    (void)gethostname(host.data(), host.size() - 1);
    (void)!readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
    uint32_t hash = 2166136261u;
    for (const std::string_view part : {std::string_view(host.data()), std::string_view(space.data())}) {
      for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    }
    return std::to_string(hash);
  }();
  return place;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= kMostPidDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

struct TempParts {
  std::string_view process, counter, place;
};

/// Of a name of ours.
std::optional<TempParts> PartsOf(std::string_view name) {
  for (const std::string_view more : {"-journal", "-wal", "-shm"}) {
    if (name.ends_with(more)) name.remove_suffix(more.size());
  }
  const size_t at = name.rfind(".tmp");
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  std::string_view rest = name.substr(at + 4);
  TempParts out;
  out.process = rest.substr(0, rest.find('.'));
  if (out.process.size() == rest.size()) return std::nullopt;
  rest.remove_prefix(out.process.size() + 1);
  out.counter = rest.substr(0, rest.find('.'));
  const bool placed = out.counter.size() < rest.size();
  if (placed) out.place = rest.substr(out.counter.size() + 1);
  if (!IsNumber(out.process) || !IsNumber(out.counter) || (placed && !IsNumber(out.place))) return std::nullopt;
  return out;
}

}  // namespace

std::string TempName(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return path + ".tmp" + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1)) + "." + Place();
}

bool IsTempName(std::string_view name) { return PartsOf(name).has_value(); }

void TidyOutputDirectories() { g_tidies.store(true); }

void RemoveDeadTemps(const std::string& directory) {
  if (!g_tidies.load()) return;
  DIR* dir = opendir(directory.c_str());
  if (!dir) return;
  while (const dirent* entry = readdir(dir)) {
    const std::optional<TempParts> parts = PartsOf(entry->d_name);
    if (!parts || parts->place != Place()) continue;
    const long pid = std::atol(std::string(parts->process).c_str());
    if (pid <= 0 || !ProcessGone(pid)) continue;
    struct stat st {};
    const std::string path = directory + "/" + entry->d_name;
    if (lstat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode)) unlink(path.c_str());
  }
  closedir(dir);
}

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
