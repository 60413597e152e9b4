#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <istream>
#include <streambuf>
#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

/// Ends the parser from inside an event; caught where it was started.
struct Refusal {
  int line;
  Message why;
};

/// Builds the tree and stops at the first thing that has no place in it.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(YamlOptions options) : options_(options) {}
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Add(mark, YamlNode::Kind::kNull, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!options_.aliases) throw Refusal{mark.line + 1, Msg("an alias (*name) is not read here: write the value out")};
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refusal{mark.line + 1, Msg("an alias stands within what it names")};
    CountCopy(mark, found->second, stack_.size());
    if (!stack_.empty() && stack_.back().node.IsMap() && !stack_.back().has_key) {
      throw Refusal{mark.line + 1, Msg("a key must be a text")};
    }
    Put(YamlNode(found->second));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    CheckTag(mark, tag);
    const std::string value = tag == "!ref" ? Referred(text) : text;
    // A plain "~" or "null" is a value that is not there; in quotes (tag "!") it is a text.
    const bool null = tag == "?" && (value.empty() || value == "~" || value == "null" || value == "Null");
    if (!stack_.empty() && stack_.back().node.IsMap() && !stack_.back().has_key) return SetKey(mark, value);
    if (anchor != 0 && options_.aliases) {
      YamlNode node;
      node.kind = null ? YamlNode::Kind::kNull : YamlNode::Kind::kText;
      node.line = mark.line + 1;
      if (!null) node.text = value;
      anchors_[anchor] = std::move(node);
    }
    Add(mark, null ? YamlNode::Kind::kNull : YamlNode::Kind::kText, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    int key_line = 0;
    std::unordered_map<std::string, size_t> at;  // members by key
  };

  /// "<a>/b" as "${a}/b".
  static std::string Referred(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '<')
        out += "${";
      else
        out += c == '>' ? '}' : c;
    }
    return out;
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) const {
    if (options_.types || tag.empty() || tag == "?" || tag == "!" || StartsWith(tag, "tag:yaml.org,2002:str")) return;
    throw Refusal{mark.line + 1, Msg("a value of the type {} is not read here", OneLine(tag.substr(0, 60)))};
  }

  void Count(const YAML::Mark& mark) {
    if (++nodes_ > kMaxYamlNodes) {
      throw Refusal{mark.line + 1, Msg("more than {} values", kMaxYamlNodes)};
    }
  }

  void SetKey(const YAML::Mark& mark, const std::string& key) {
    stack_.back().key = key;
    stack_.back().key_line = mark.line + 1;
    stack_.back().has_key = true;
  }

  /// What a copy adds to the document, which is bounded as if it were written out.
  void CountCopy(const YAML::Mark& mark, const YamlNode& node,
                 size_t depth) {  // NOLINT(misc-no-recursion): kMaxYamlDepth
    Count(mark);
    if (depth >= static_cast<size_t>(kMaxYamlDepth)) {
      throw Refusal{mark.line + 1, Msg("nested deeper than {} levels", kMaxYamlDepth)};
    }
    for (const YamlNode& item : node.items) CountCopy(mark, item, depth + 1);
    for (const YamlMember& member : node.members) CountCopy(mark, member.second, depth + 1);
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    CheckTag(mark, tag);
    Count(mark);
    if (!stack_.empty() && stack_.back().node.IsMap() && !stack_.back().has_key) {
      throw Refusal{mark.line + 1, Msg("a key must be a text")};
    }
    if (stack_.size() == static_cast<size_t>(kMaxYamlDepth)) {
      throw Refusal{mark.line + 1, Msg("nested deeper than {} levels", kMaxYamlDepth)};
    }
    Level level;
    level.node.kind = kind;
    level.node.line = mark.line + 1;
    level.anchor = anchor;
    const size_t type = tag.find(':');
    if (options_.types && kind == YamlNode::Kind::kMap && StartsWith(tag, "!") && type != std::string::npos) {
      YamlNode target;
      target.kind = YamlNode::Kind::kText;
      target.line = mark.line + 1;
      target.text = tag.substr(type + 1);
      level.node.members.push_back({"_target_", std::move(target)});
      level.at["_target_"] = 0;
    }
    stack_.push_back(std::move(level));
  }

  void Close() {
    YamlNode done = std::move(stack_.back().node);
    const YAML::anchor_t anchor = stack_.back().anchor;
    stack_.pop_back();
    if (anchor != 0 && options_.aliases) anchors_[anchor] = done;
    Put(std::move(done));
  }

  void Add(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& text) {
    Count(mark);
    if (!stack_.empty() && stack_.back().node.IsMap() && !stack_.back().has_key) return SetKey(mark, text);
    YamlNode node;
    node.kind = kind;
    // A value that is not there is found missing only on the next line.
    const bool absent = kind == YamlNode::Kind::kNull && !stack_.empty() && stack_.back().has_key;
    node.line = absent ? stack_.back().key_line : mark.line + 1;
    if (kind == YamlNode::Kind::kText) node.text = text;
    Put(std::move(node));
  }

  void Put(YamlNode&& node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = stack_.back();
    if (level.node.IsList()) {
      level.node.items.push_back(std::move(node));
      return;
    }
    if (options_.aliases && level.key == "<<" && node.IsMap()) {
      for (YamlMember& member : node.members) {
        if (level.at.emplace(member.first, level.node.members.size()).second) {
          level.node.members.push_back(std::move(member));
        }
      }
      level.has_key = false;
      return;
    }
    const auto [it, fresh] = level.at.emplace(level.key, level.node.members.size());
    if (fresh) {
      level.node.members.push_back({std::move(level.key), std::move(node)});
    } else {
      node.replaced = level.node.members[it->second].second.line;
      level.node.members[it->second].second = std::move(node);
    }
    level.has_key = false;
  }

  const YamlOptions options_;
  YamlNode root_;
  std::vector<Level> stack_;
  std::unordered_map<YAML::anchor_t, YamlNode> anchors_;
  size_t nodes_ = 0;
};

/// The bytes as a stream, without a copy.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& path, YamlOptions options) {
  if (text.size() > kMaxYamlBytes) {
    return BadInput(Msg("{} has {} bytes, more than the {} MiB that are read of a YAML file", path, text.size(),
                        kMaxYamlBytes >> 20));
  }
  if (!IsUtf8(text)) return BadInput(Msg("{} is not UTF-8 text: save it as UTF-8", path));
  const auto refuse = [&](int line, const Message& why) { return BadInput(Msg("{}, line {}: {}", path, line, why)); };
  try {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    Builder builder(options);
    parser.HandleNextDocument(builder);
    return builder.TakeRoot();
  } catch (const Refusal& refusal) {
    return refuse(refusal.line, refusal.why);
  } catch (const YAML::Exception& error) {
    return refuse(error.mark.line + 1, Msg("not YAML: {}", OneLine(error.msg)));
  }
}

StatusOr<YamlNode> ReadYamlFile(const std::string& path, YamlOptions options) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseYaml(file.text(), path, options);
}

}  // namespace msprobe
