// Reading a dump: which ops it has, and what was recorded of each. A dump of any size costs an index, not its text.
#pragma once

#include <msprobe/export.h>
#include <msprobe/status.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace msprobe {

class DumpFile;

/// A dump.json. Can be read by several threads at once. Views live as long as the Dump.
class MSPROBE_API Dump {
 public:
  /// Of a run that was killed, the ops that are complete; `truncated()` says so.
  static StatusOr<Dump> Open(const std::string& path);
  Dump(Dump&&) noexcept;
  Dump& operator=(Dump&&) noexcept;
  ~Dump();

  std::string_view task() const;       // "statistics", "structure", ...
  std::string_view level() const;      // "L0", "L1", "mix"
  std::string_view framework() const;  // "pytorch", "mindspore"; "" in old dumps
  const std::string& truncated() const;

  size_t size() const;                        // number of ops, in the order in which they were recorded
  std::string_view name(size_t index) const;  // "Functional.linear.0.forward"
  std::string_view json(size_t index) const;  // what was recorded, as it stands in the file (may hold bare NaN)
  size_t find(std::string_view name) const;   // index, or size() if there is none
 private:
  explicit Dump(std::unique_ptr<DumpFile> file);
  std::unique_ptr<DumpFile> file_;
};

}  // namespace msprobe
