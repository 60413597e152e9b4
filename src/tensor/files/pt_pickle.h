// The pickle inside a file of torch.save(): an allow-list of opcodes and names, run without making any object.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/files/pt_value.h"

namespace msprobe {

/// Bytes of the storage of this key; null when there is none.
using PtStorages = std::function<const std::string_view*(std::string_view key)>;

/// `path` is for error texts. Texts of the result are views of `pickle`.
StatusOr<PtValue> ReadPtPickle(std::string_view pickle, const PtStorages& storages, const std::string& path,
                               PtObjects objects = PtObjects::kRefused);

}  // namespace msprobe
