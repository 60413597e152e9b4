// The pickle inside a file of torch.save(): an allow-list of opcodes and names, run without making any object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/files/pt_value.h"

namespace msprobe {
namespace pt {
class Machine;
}

/// `path` is for error texts. Texts of the result are views of `pickle`.
StatusOr<PtValue> ReadPtPickle(std::string_view pickle, const PtStorages& storages, const std::string& path,
                               PtObjects objects = PtObjects::kRefused);

/// What was pickled as an object or a dict whose members are large dicts, as the metadata of a checkpoint: its values
/// take ten times the room of the file, so they are made pair by pair.
class PtPairs {
 public:
  using Take = std::function<Status(const PtValue& key, const PtValue& value)>;
  /// Objects are shown, and there are no tensors. `pickle` has to outlive the result.
  static StatusOr<PtPairs> Read(std::string_view pickle, const std::string& path);
  PtPairs(PtPairs&&) noexcept;
  ~PtPairs();

  /// Hands over all pairs of the dict that the whole has under this name; false where it has none.
  StatusOr<bool> ForEach(std::string_view name, const Take& take);

 private:
  PtPairs(std::unique_ptr<pt::Machine> machine, std::string path);

  std::unique_ptr<pt::Machine> machine_;
  std::string path_;
};

}  // namespace msprobe
