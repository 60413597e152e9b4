#include "ops/framework_names.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

struct NameRow {
  std::string_view common, names;
};
constexpr NameRow kFunctions[] = {
#define FUNCTION(common, names) {#common, names},
#include "ops/framework_names.def"
};
constexpr NameRow kMoving[] = {
#define MOVES(common, names) {#common, names},
#include "ops/framework_names.def"
};
constexpr std::string_view kComposites[] = {
#define COMPOSITE(names) names,
#include "ops/framework_names.def"
};
constexpr NameRow kLayers[] = {
#define LAYER(common, endings) {#common, endings},
#include "ops/framework_names.def"
};
constexpr NameRow kModelParts[] = {
#define PART(common, endings) {#common, endings},
#include "ops/framework_names.def"
};
constexpr NameRow kParameters[] = {
#define PARAMETER(common, names) {#common, names},
#include "ops/framework_names.def"
};
struct ArgumentRow {
  std::string_view common, names, otherwise;
};
constexpr ArgumentRow kArguments[] = {
#define ARGUMENT(common, names, otherwise) {#common, names, otherwise},
#include "ops/framework_names.def"
};
constexpr std::string_view kHow[] = {
#define HOW(names) names,
#include "ops/framework_names.def"
};

std::string PlainName(std::string_view name) {
  while (StartsWith(name, "_")) name.remove_prefix(1);
  while (EndsWith(name, "_")) name.remove_suffix(1);
  std::string out(name);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

struct KnownName {
  std::string_view common;
  bool flag = false;
};
using NameTable = std::unordered_map<std::string_view, KnownName>;

template <size_t n>
void Add(const NameRow (&rows)[n], bool flag, NameTable* out) {
  for (const NameRow& row : rows) {
    for (const std::string_view name : Split(row.names, ' ')) out->emplace(name, KnownName{row.common, flag});
  }
}

const NameTable& Functions() {
  static const NameTable table = [] {
    NameTable out;
    Add(kFunctions, false, &out);
    Add(kMoving, true, &out);
    for (const OpTwin& twin : OpTwins()) {
      const auto torch = out.find(twin.torch);
      out.emplace(twin.mindspore, torch == out.end() ? KnownName{twin.torch} : torch->second);
    }
    return out;
  }();
  return table;
}

const NameTable& Classes() {
  static const NameTable table = [] {
    NameTable out;
    Add(kLayers, true, &out);
    Add(kModelParts, false, &out);
    return out;
  }();
  return table;
}

}  // namespace

CommonFunction CommonFunctionOf(std::string_view api) {
  std::string core = PlainName(WithoutRankSuffix(api));
  const auto it = Functions().find(core);
  if (it == Functions().end()) return {std::move(core), false};
  return {std::string(it->second.common), it->second.flag};
}

bool IsComposite(std::string_view common) {
  for (const std::string_view row : kComposites) {
    const std::vector<std::string_view> names = Split(row, ' ');
    if (std::find(names.begin(), names.end(), common) != names.end()) return true;
  }
  return false;
}

CommonClass CommonClassOf(std::string_view class_name) {
  std::string core = PlainName(class_name);
  std::string plain = core;
  std::erase(plain, '_');
  for (size_t from = 0; from + 2 <= plain.size(); ++from) {  // the longest ending first
    const auto it = Classes().find(std::string_view(plain).substr(from));
    if (it != Classes().end()) return {std::string(it->second.common), it->second.flag};
  }
  return {std::move(core), false};
}

std::string_view CommonParameter(std::string_view name) {
  for (const NameRow& row : kParameters) {
    for (const std::string_view other : Split(row.names, ' ')) {
      if (other == name) return row.common;
    }
  }
  return name;
}

CommonArgument CommonArgumentOf(std::string_view name) {
  for (const ArgumentRow& row : kArguments) {
    for (const std::string_view other : Split(row.names, ' ')) {
      if (other == name) return {row.common, row.otherwise};
    }
  }
  return {};
}

bool SaysHow(std::string_view argument) {
  for (const std::string_view names : kHow) {
    for (const std::string_view name : Split(names, ' ')) {
      if (name == argument) return true;
    }
  }
  return false;
}

}  // namespace msprobe
