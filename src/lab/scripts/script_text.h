// Text of scripts that call one function of a dump.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compare/values/tensor_folder.h"
#include "json/value.h"

namespace msprobe {

/// A literal of Python.
std::string Quoted(std::string_view s);

/// Replaces every `from` in `text`.
void Put(std::string* text, std::string_view from, const std::string& to);

/// A finite end of the recorded range of a tensor, `key` "Min" or "Max", as Python writes it; `guess` where the dump
/// has none.
std::string EndOf(const JsonValue& leaf, const char* key, double guess);

/// The whole path of a tensor's file. kBadInput when the dump holds no values of it, or its file is none of its dtype.
StatusOr<std::string> FileOf(const TensorFolder& folder, const std::string& key, const JsonValue& leaf);

}  // namespace msprobe
