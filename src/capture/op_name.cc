#include "capture/op_name.h"

#include "base/text.h"

namespace msprobe {
namespace {

struct Interned {
  std::mutex mutex;
  std::deque<std::string> texts;  // a deque keeps addresses
  std::unordered_map<std::string_view, const std::string*> index;
};

Interned& Table() {
  static auto* table = new Interned;  // never freed: names are used until the process ends
  return *table;
}

const char* Suffix(NameForm form) {
  switch (form) {
    case NameForm::kApiForward:
    case NameForm::kModuleForward: return "forward";
    case NameForm::kApiBackward:
    case NameForm::kModuleBackward: return "backward";
    case NameForm::kParamGrad: return "parameters_grad";
    default: return "";
  }
}

}  // namespace

void OpName::AppendTo(std::string* out) const {
  if (empty()) return;
  out->append(*base);
  if (form == NameForm::kPlain) return;
  const bool number_first = form == NameForm::kApiForward || form == NameForm::kApiBackward;
  out->push_back('.');
  if (number_first) {
    AppendInt(*out, index);
    out->push_back('.');
  }
  out->append(Suffix(form));
  if (!number_first) {
    out->push_back('.');
    AppendInt(*out, index);
  }
}

std::string OpName::str() const {
  std::string out;
  AppendTo(&out);
  return out;
}

const std::string* InternName(std::string_view text) {
  Interned& table = Table();
  std::lock_guard<std::mutex> lock(table.mutex);
  if (auto it = table.index.find(text); it != table.index.end()) return it->second;
  const std::string& kept = table.texts.emplace_back(text);
  table.index.emplace(kept, &kept);
  return &kept;
}

}  // namespace msprobe
