// Names that the ranks of a run have in common: one text for all of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace msprobe {

class SharedName {
 public:
  SharedName() = default;
  explicit SharedName(std::string_view text) : text_(std::make_shared<const std::string>(text)) {}
  const std::string& text() const {
    static const std::string* const none = new std::string;
    return text_ ? *text_ : *none;
  }
  bool empty() const { return text().empty(); }

 private:
  std::shared_ptr<const std::string> text_;
};

/// Gives equal names one text.
class SharedNames {
 public:
  void Share(SharedName* name) { *name = known_.emplace(name->text(), *name).first->second; }

 private:
  std::unordered_map<std::string, SharedName> known_;
};

}  // namespace msprobe
