// The names that the pickle of a torch.save() file may hold, as "module name"; all others are refused.
#pragma once

#include <string_view>

#include "tensor/kernels/dtype.h"

namespace msprobe {

struct PtStorage {
  std::string_view name;
  DType dtype;
};

/// Null for what is not a class of storages.
const PtStorage* FindPtStorage(std::string_view name);
/// Of "torch float32"; kUnknown for what is not a dtype.
DType PtDType(std::string_view name);
/// The same text in static memory; empty for a name that is neither known nor a dtype.
std::string_view KnownPtName(std::string_view name);
/// Functions of the interpreter and of the operating system that run, write or load something: no checkpoint needs to
/// call them. Their enums, results and pure functions are none.
bool IsHostilePtCall(std::string_view module, std::string_view name);
/// Functions whose results are shown as what they are made of.
bool IsOpaquePtFunction(std::string_view name);

}  // namespace msprobe
