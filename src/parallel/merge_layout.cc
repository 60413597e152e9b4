#include "parallel/merge_layout.h"

#include <fmt/format.h>

#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr int kMostDims = 64;

std::vector<std::string_view> Words(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find(at);
    if (end != 0) out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::string_view AxisName(Axis axis) {
  static constexpr std::array<std::string_view, 3> kNames{"tp", "cp", "ep"};
  return kNames[static_cast<size_t>(axis)];
}

std::string_view ShareName(Share share) {
  static constexpr std::array<std::string_view, 4> kNames{"auto", "replica", "split", "partial"};
  return kNames[static_cast<size_t>(share)];
}

class LayoutReader {
 public:
  explicit LayoutReader(const std::string& path) : path_(path) {}

  StatusOr<MergeLayout> Read(const YamlNode& root) {
    MergeLayout out;
    out.path_ = path_;
    if (!root.IsMap()) return Wrong(root, "", Msg("holds no map: it needs a key \"layout\""));
    for (const YamlMember& m : root.members) {
      if (m.first == "default") {
        if (m.second.text == "replica") {
          out.fallback_ = Share::kReplica;
        } else if (m.second.text != "auto") {
          return Wrong(m.second, m.first, Msg("is neither auto nor replica"));
        }
      } else if (m.first == "layout") {
        MSP_RETURN_IF_ERROR(ReadRules(m.second, &out));
      } else {
        return Wrong(m.second, m.first, Msg("is not a key of a layout: expected default or layout"));
      }
    }
    if (!root.Find("layout")) return Wrong(root, "", Msg("lacks the key \"layout\""));
    return out;
  }

 private:
  Status Wrong(const YamlNode& at, std::string_view key, const Message& what) const {
    return BadInput(key.empty() ? Msg("{} line {}: {}", path_, at.line, what)
                                : Msg("{} line {}, key \"{}\": {}", path_, at.line, OneLine(key), what));
  }

  Status ReadRules(const YamlNode& rules, MergeLayout* out) {
    if (!rules.IsMap()) return Wrong(rules, "layout", Msg("is not a map of name patterns"));
    for (const YamlMember& m : rules.members) {
      if (!m.second.IsMap())
        return Wrong(m.second, m.first, Msg("is not a map of tensors, like \"output.0: s b h[tp]\""));
      MergeLayout::Rule rule{m.first, {}};
      for (const YamlMember& t : m.second.members) {
        if (!t.second.IsText()) return Wrong(t.second, t.first, Msg("is not text like \"s b h[tp]\""));
        MergeLayout::Tensor tensor{t.first, t.second.text, {}};
        MSP_RETURN_IF_ERROR(ReadTensor(t, &tensor.layout));
        rule.tensors.push_back(std::move(tensor));
      }
      out->rules_.push_back(std::move(rule));
    }
    return OkStatus();
  }

  Status ReadTensor(const YamlMember& t, TensorLayout* out) {
    out->line = t.second.line;
    const std::vector<std::string_view> words = Words(t.second.text, ' ');
    if (words.size() == 1 && words[0] == "auto") return OkStatus();
    out->share.fill(Share::kReplica);
    if (words.size() == 1 && words[0] == "replica") return OkStatus();
    int dim = 0;
    bool open = false;
    for (std::string_view word : words) {
      if (word == "...") {  // any number of dimensions
        open = true;
        continue;
      }
      const size_t bracket = word.find('[');
      const std::string_view name = word.substr(0, bracket);
      const bool partial = name == "partial";
      if (name.empty() || Contains(name, "]")) return WrongWord(t, word);
      if (bracket != std::string_view::npos) {
        MSP_RETURN_IF_ERROR(
            ReadAxes(t, word, bracket, partial ? Share::kPartial : Share::kSplit, open ? -1 : dim, out));
      } else if (partial) {
        return WrongWord(t, word);
      }
      if (!partial && ++dim > kMostDims) return Wrong(t.second, t.first, Msg("has more dimensions than any tensor"));
    }
    if (!open && dim > 0) out->dims = dim;
    return OkStatus();
  }

  Status ReadAxes(const YamlMember& t, std::string_view word, size_t bracket, Share share, int dim, TensorLayout* out) {
    if (word.back() != ']') return WrongWord(t, word);
    const std::vector<std::string_view> axes = Words(word.substr(bracket + 1, word.size() - bracket - 2), ',');
    if (axes.empty()) return WrongWord(t, word);
    for (std::string_view name : axes) {
      bool known = false;
      for (Axis axis : kAxes) {
        if (AxisName(axis) != name) continue;
        const auto i = static_cast<size_t>(axis);
        if (out->share[i] != Share::kReplica) {
          return Wrong(t.second, t.first, Msg("\"{}\" divides the tensor twice", name));
        }
        out->share[i] = share;
        out->dim[i] = share == Share::kSplit ? dim : -1;
        known = true;
      }
      if (!known) {
        return Wrong(t.second, t.first, Msg("\"{}\" is not a group of ranks: expected tp, cp or ep", OneLine(name)));
      }
    }
    return OkStatus();
  }

  Status WrongWord(const YamlMember& t, std::string_view word) const {
    return Wrong(t.second, t.first,
                 Msg("\"{}\" is not a dimension: expected a name, name[tp], partial[tp] or ...", OneLine(word)));
  }

  const std::string& path_;
};

StatusOr<MergeLayout> MergeLayout::Parse(std::string_view text, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, path));
  return LayoutReader(path).Read(root);
}

StatusOr<MergeLayout> MergeLayout::Read(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  return LayoutReader(path).Read(root);
}

TensorLayout MergeLayout::Of(std::string_view node, std::string_view parent, std::string_view tensor) const {
  TensorLayout out;
  out.share.fill(fallback_);
  if (rules_.empty()) return out;
  const std::string path = std::string(parent) + "/" + std::string(node);
  for (const Rule& rule : rules_) {
    const bool inside = rule.pattern.find('/') != std::string::npos;
    if (!MatchesWildcard(inside ? std::string_view(path) : node, rule.pattern)) continue;
    for (const Tensor& t : rule.tensors)
      if (MatchesWildcard(tensor, t.pattern)) return t.layout;
  }
  return out;
}

void MergeLayout::Write(JsonWriter* json) const {
  json->BeginObject();
  json->Member("file", path_);
  json->Member("default", ShareName(fallback_));
  json->Key("rules");
  json->BeginArray();
  for (const Rule& rule : rules_) {
    for (const Tensor& t : rule.tensors) {
      json->BeginObject();
      json->Member("line", t.layout.line);
      json->Member("nodes", rule.pattern);
      json->Member("tensors", t.pattern);
      for (Axis axis : kAxes) {
        const auto i = static_cast<size_t>(axis);
        json->Member(AxisName(axis), ShareName(t.layout.share[i]));
        if (t.layout.dim[i] >= 0) json->Member(fmt::format("{}_dim", AxisName(axis)), t.layout.dim[i]);
      }
      json->EndObject();
    }
  }
  json->EndArray();
  json->EndObject();
}

}  // namespace msprobe
