#include "sheet/check_names.h"

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::string_view kSuffix = ".csv";

}  // namespace

bool IsCheckFloat64Name(std::string_view path) {
  const std::string_view name = BaseName(path);
  return name.size() > kCheckFloat64Prefix.size() + kSuffix.size() &&
         name.substr(0, kCheckFloat64Prefix.size()) == kCheckFloat64Prefix && EndsWith(name, kSuffix);
}

std::string_view CheckTimeOf(std::string_view path) {
  if (!IsCheckFloat64Name(path)) return {};
  std::string_view name = BaseName(path);
  name.remove_prefix(kCheckFloat64Prefix.size());
  name.remove_suffix(kSuffix.size());
  return name;
}

}  // namespace msprobe
