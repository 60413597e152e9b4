#include "serve/convert_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "json/parser.h"
#include "match/layer_templates.h"

namespace msprobe::serve {
namespace {

constexpr size_t kMaxSides = 2;
constexpr int kMaxRanks = 1 << 20;
constexpr size_t kMaxWord = 128;

enum class Kind : uint8_t {
  kDump,     // a directory of the tree
  kOutput,   // a directory that may be made
  kNewFile,  // a file that may be made
  kYaml,     // a file of the tree
  kMapping,  // likewise, or true: without a file
  kFlag,
  kTemplate,  // a layer mapping that comes with msprobe
  kEngine,    // local or ray
  kFile,      // db or json
  kNumbers,   // one or two
  kOrders,    // such as tp-cp-ep-dp-pp
  kYamls,
};

struct Member {
  std::string_view name;
  Kind kind;
};

constexpr std::array<Member, 23> kMembers{{{"target_path", Kind::kDump},
                                           {"golden_path", Kind::kDump},
                                           {"output_path", Kind::kOutput},
                                           {"layer_mapping", Kind::kMapping},
                                           {"template", Kind::kTemplate},
                                           {"overflow_check", Kind::kFlag},
                                           {"fuzzy_match", Kind::kFlag},
                                           {"is_print_compare_log", Kind::kFlag},
                                           {"thresholds", Kind::kYaml},
                                           {"structure", Kind::kFlag},
                                           {"suggest_mapping", Kind::kNewFile},
                                           {"plain", Kind::kFlag},
                                           {"engine", Kind::kEngine},
                                           {"rank_size", Kind::kNumbers},
                                           {"tp", Kind::kNumbers},
                                           {"pp", Kind::kNumbers},
                                           {"vpp", Kind::kNumbers},
                                           {"cp", Kind::kNumbers},
                                           {"ep", Kind::kNumbers},
                                           {"order", Kind::kOrders},
                                           {"layout", Kind::kYamls},
                                           {"plan", Kind::kFlag},
                                           {"file_type", Kind::kFile}}};

/// tp-cp-ep-dp-pp
bool IsOrder(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWord && text[0] != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos;
}

class OptionWriter {
 public:
  OptionWriter(const view::ServedTree& tree, std::vector<std::string>* out) : tree_(tree), out_(out) {}

  Status Add(const Member& member, const JsonValue& value) {
    member_ = &member;
    if (value.IsNull()) return OkStatus();
    switch (member.kind) {
      case Kind::kFlag: return Flag(value);
      case Kind::kMapping: return value.IsBool() ? Flag(value) : Word(value);
      case Kind::kNumbers:
      case Kind::kOrders:
      case Kind::kYamls: return List(value);
      default: return Word(value);
    }
  }

 private:
  Status Refuse(std::string_view expected) const {
    return UsageError(fmt::format("{} must be {}: correct it, then start again", member_->name, expected));
  }
  void Name() { out_->push_back("--" + std::string(member_->name)); }

  Status Flag(const JsonValue& value) {
    if (!value.IsBool()) return Refuse("true or false");
    if (value.Bool()) Name();
    return OkStatus();
  }

  Status Word(const JsonValue& value) {
    if (!value.IsString()) return Refuse("a text");
    // An empty path would be the directory itself, but an empty field is one that was not filled in.
    if (value.Text().empty()) return OkStatus();
    MSP_ASSIGN_OR_RETURN(std::string word, Checked(value.Text()));
    Name();
    out_->push_back(std::move(word));
    return OkStatus();
  }

  Status List(const JsonValue& value) {
    if (!value.IsArray() || value.size() > kMaxSides) return Refuse("a list of one or two");
    if (value.empty()) return OkStatus();
    Name();
    for (const JsonValue& v : value.Items()) {
      if (member_->kind == Kind::kNumbers) {
        if (!v.IsInt32() || v.Int32() < 1 || v.Int32() > kMaxRanks) return Refuse("numbers from 1");
        out_->push_back(std::to_string(v.Int32()));
        continue;
      }
      if (!v.IsString()) return Refuse("a list of texts");
      MSP_ASSIGN_OR_RETURN(std::string word, Checked(v.Text()));
      out_->push_back(std::move(word));
    }
    return OkStatus();
  }

  StatusOr<std::string> Checked(std::string_view text) const {
    switch (member_->kind) {
      case Kind::kDump: return Below(tree_.Directory(text));
      case Kind::kOutput: {
        MSP_ASSIGN_OR_RETURN(std::string place, Below(tree_.Place(text)));
        if (IsRegularFile(JoinPath(tree_.real(), place))) return Refuse("a directory, and that is a file");
        return place;
      }
      case Kind::kNewFile: {
        if (!text.ends_with(".yaml") && !text.ends_with(".yml")) return Refuse("a file name that ends in .yaml");
        MSP_ASSIGN_OR_RETURN(std::string place, Below(tree_.Place(text)));
        if (PathExists(JoinPath(tree_.real(), place))) return Refuse("a file that does not exist yet");
        return place;
      }
      case Kind::kYaml:
      case Kind::kYamls:
      case Kind::kMapping:
        if (!text.ends_with(".yaml") && !text.ends_with(".yml")) return Refuse("a YAML file");
        return Below(tree_.File(text));
      case Kind::kTemplate: {
        MSP_ASSIGN_OR_RETURN(const LayerTemplate* found, FindLayerTemplate(text));
        return std::string(found->name);
      }
      case Kind::kOrders: return IsOrder(text) ? StatusOr<std::string>(std::string(text)) : Refuse("as tp-cp-ep-dp-pp");
      case Kind::kEngine: return OneOf(text, "local", "ray");
      case Kind::kFile: return OneOf(text, "db", "json");
      default: return Refuse("something else");
    }
  }

  static StatusOr<std::string> Below(StatusOr<std::string> path) {
    if (!path.ok()) return path;
    return path->empty() ? std::string(".") : "./" + *path;
  }

  StatusOr<std::string> OneOf(std::string_view text, std::string_view a, std::string_view b) const {
    if (text == a || text == b) return std::string(text);
    return Refuse(fmt::format("{} or {}", a, b));
  }

  const view::ServedTree& tree_;
  std::vector<std::string>* out_;
  const Member* member_ = nullptr;
};

}  // namespace

StatusOr<std::vector<std::string>> ConvertOptions(const view::ServedTree& tree, std::string_view body) {
  JsonDoc doc;
  if (Status parsed = ParseJson(body, "the request", &doc); !parsed.ok()) return UsageError(parsed.message());
  if (!doc.IsObject()) return UsageError("the request is not a JSON object: see docs/page_api.md");
  for (const auto& entry : doc.Members()) {
    const bool known =
        std::any_of(kMembers.begin(), kMembers.end(), [&](const Member& member) { return member.name == entry.name; });
    if (!known) {
      return UsageError(fmt::format("{} is not something that a conversion takes: see docs/page_api.md",
                                    OneLine(entry.name.substr(0, kMaxWord))));
    }
  }
  std::vector<std::string> out;
  OptionWriter writer(tree, &out);
  for (const Member& member : kMembers) {
    if (const JsonValue* value = doc.Find(member.name)) MSP_RETURN_IF_ERROR(writer.Add(member, *value));
  }
  for (const std::string_view needed : {"--target_path", "--output_path"}) {
    if (std::find(out.begin(), out.end(), needed) == out.end()) {
      return UsageError(fmt::format("{} is missing: choose one", needed.substr(2)));
    }
  }
  return out;
}

}  // namespace msprobe::serve
