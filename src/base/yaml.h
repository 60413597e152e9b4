// YAML files that users write: mappings, thresholds. A tree of texts, lists and maps; everything else is refused.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct YamlMember;

struct YamlNode {
  enum class Kind : uint8_t { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                     // where it starts, from 1
  int replaced = 0;                 // line of an earlier value of the same key; 0: there was none
  std::string text;                 // of kText; numbers and booleans as they are written
  std::vector<YamlNode> items;      // of kList
  std::vector<YamlMember> members;  // of kMap, in the order of the file, keys once

  bool IsNull() const { return kind == Kind::kNull; }
  bool IsText() const { return kind == Kind::kText; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsMap() const { return kind == Kind::kMap; }
  /// Member of a map; null when there is none.
  const YamlNode* Find(std::string_view key) const;
};

/// Not a pair: not every compiler takes one of a type that is not whole yet.
struct YamlMember {
  std::string first;
  YamlNode second;
};

inline constexpr size_t kMaxYamlBytes = 16 << 20;
inline constexpr size_t kMaxYamlNodes = 1 << 20;
inline constexpr int kMaxYamlDepth = 64;

struct YamlOptions {
  /// *name stands for a copy of what &name marks, and counts as that many values; << takes the members of a map that
  /// are not there yet.
  bool aliases = false;
  /// Values with types of a program (!new:torch.optim.Adam) are read as they stand: a map has its type as "_target_",
  /// and
  /// "!ref <a>" is "${a}". Refused without.
  bool types = false;
};

/// One document. Of a key that stands twice the last value counts, as for Python's reader. kBadInput with path and line
/// for what is not YAML, and for aliases unless they are asked for (a file of a few lines can stand for billions of
/// nodes), tags of other types, keys that are not plain text, and files beyond the limits above.
StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& path, YamlOptions options = {});
StatusOr<YamlNode> ReadYamlFile(const std::string& path, YamlOptions options = {});

}  // namespace msprobe
