#include "config/toml_settings.h"

#include <cctype>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr int kMostLevels = 32;
constexpr size_t kMostSettings = 1 << 16;

class TomlReader {
 public:
  TomlReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  StatusOr<std::vector<Setting>> Read() {
    std::string table;
    for (Skip(true); at_ < text_.size(); Skip(true)) {
      if (Take('[')) {
        const bool listed = Take('[');
        MSP_RETURN_IF_ERROR(Key(&table));
        if (!Take(']') || (listed && !Take(']'))) return Bad();
        if (listed) table += "." + std::to_string(tables_++);
      } else {
        MSP_RETURN_IF_ERROR(Member(table, 0));
      }
      Skip(false);
      if (at_ < text_.size() && text_[at_] != '\n') return Bad();
      if (out_.size() > kMostSettings) return Bad();
    }
    return std::move(out_);
  }

 private:
  Status Bad() const { return BadInput(Msg("{}, line {}: this is not TOML", path_, line_)); }

  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// Blanks and comments, and ends of lines if they mean nothing here.
  void Skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        if (c == '\n') ++line_;
        ++at_;
      } else {
        return;
      }
    }
  }

  Status Key(std::string* out) {
    out->clear();
    for (;;) {
      Skip(false);
      std::string part;
      if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
        MSP_RETURN_IF_ERROR(Quoted(&part));
      } else {
        while (at_ < text_.size() &&
               (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '-')) {
          part += text_[at_++];
        }
      }
      if (part.empty()) return Bad();
      *out += (out->empty() ? "" : ".") + part;
      Skip(false);
      if (!Take('.')) return OkStatus();
    }
  }

  Status Member(const std::string& table, int level) {  // NOLINT(misc-no-recursion): kMostLevels
    std::string key;
    MSP_RETURN_IF_ERROR(Key(&key));
    if (!Take('=')) return Bad();
    Skip(false);
    const std::string name = table.empty() ? key : table + "." + key;
    const int line = line_;
    if (at_ < text_.size() && text_[at_] == '{') return Inline(name, level + 1);
    Setting setting{name, {}, path_, line};
    MSP_RETURN_IF_ERROR(Value(&setting.value, level + 1));
    out_.push_back(std::move(setting));
    return OkStatus();
  }

  Status Inline(const std::string& table, int level) {  // NOLINT(misc-no-recursion): kMostLevels
    if (level > kMostLevels) return Bad();
    ++at_;
    for (Skip(true); !Take('}'); Skip(true)) {
      MSP_RETURN_IF_ERROR(Member(table, level));
      Skip(true);
      if (!Take(',') && (at_ >= text_.size() || text_[at_] != '}')) return Bad();
    }
    return OkStatus();
  }

  Status Quoted(std::string* out) {
    const char quote = text_[at_];
    const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
    const bool block = StartsWith(text_.substr(at_), three);
    const std::string_view end = block ? three : three.substr(0, 1);
    at_ += end.size();
    while (at_ < text_.size() && !StartsWith(text_.substr(at_), end)) {
      if (text_[at_] == '\n') {
        if (!block) return Bad();
        ++line_;
      }
      if (quote == '"') {
        TakeEscaped(text_, &at_, out);
      } else {
        *out += text_[at_++];
      }
    }
    if (at_ >= text_.size()) return Bad();
    at_ += end.size();
    return OkStatus();
  }

  Status Value(ConfigValue* out, int level) {  // NOLINT(misc-no-recursion): kMostLevels
    if (level > kMostLevels || at_ >= text_.size()) return Bad();
    if (text_[at_] == '"' || text_[at_] == '\'') {
      std::string text;
      MSP_RETURN_IF_ERROR(Quoted(&text));
      *out = ConfigValue::Of(text);
      return OkStatus();
    }
    if (Take('[')) {
      out->kind = ConfigValue::Kind::kList;
      for (Skip(true); !Take(']'); Skip(true)) {
        ConfigValue item;
        if (at_ < text_.size() && text_[at_] == '{') {
          MSP_RETURN_IF_ERROR(Inline("list." + std::to_string(tables_++), level + 1));
        } else {
          MSP_RETURN_IF_ERROR(Value(&item, level + 1));
          out->items.push_back(std::move(item));
        }
        Skip(true);
        if (!Take(',') && (at_ >= text_.size() || text_[at_] != ']')) return Bad();
      }
      return OkStatus();
    }
    std::string word;
    while (at_ < text_.size() && !Contains(" \t\r\n,]}#", text_.substr(at_, 1))) word += text_[at_++];
    if (word.empty()) return Bad();
    std::erase(word, '_');
    *out = word == "true" || word == "false" ? ConfigValue::Of(word == "true") : PythonScalar(word);
    return OkStatus();
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  int line_ = 1, tables_ = 0;
  std::vector<Setting> out_;
};

}  // namespace

StatusOr<std::vector<Setting>> ReadTomlSettings(std::string_view text, const std::string& path) {
  if (!IsUtf8(text)) return BadInput(Msg("{} is not UTF-8 text: save it as UTF-8", path));
  return TomlReader(text, path).Read();
}

}  // namespace msprobe
