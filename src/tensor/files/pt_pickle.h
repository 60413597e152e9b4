// The pickle inside a file of torch.save(): an allow-list of opcodes and names, run without making any object.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/files/pt_value.h"

namespace msprobe {

/// `path` is for error texts. Texts of the result are views of `pickle`.
StatusOr<PtValue> ReadPtPickle(std::string_view pickle, const PtStorages& storages, const std::string& path,
                               PtObjects objects = PtObjects::kRefused);

}  // namespace msprobe
