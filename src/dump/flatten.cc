#include "dump/flatten.h"

#include <charconv>

#include "base/text.h"

namespace msprobe {
namespace {

bool IsLeaf(const JsonValue& object) {
  const JsonValue* type = object.Find("type");
  if (type && type->IsString()) return true;
  const JsonValue* kind = object.Find("class_type");
  return kind && kind->IsString() && EndsWith(kind->Text(), ".distributed.P2POp");
}

/// Walks lists and objects down to their leaves; the suffix grows and shrinks with the path.
class Flattener {
 public:
  Flattener(ItemState state, std::string suffix, std::vector<Item>* items)
      : state_(state), suffix_(std::move(suffix)), items_(items) {}

  // The parser bounds the nesting to kMaxJsonDepth, and with it this recursion.
  void Visit(const JsonValue& v) {
    if (v.IsNull() || (v.IsObject() && !v.empty() && IsLeaf(v))) {
      items_->push_back({state_, suffix_, &v});
    } else if (v.IsArray()) {
      int64_t i = 0;
      for (const JsonValue& element : v.Items()) {
        const size_t length = suffix_.size();
        // A parameter's gradient stands in a list of its own, whose index is not part of its name.
        if (state_ != ItemState::kParameterGrad) {
          suffix_ += '.';
          AppendInt(suffix_, i++);
        }
        Visit(element);
        suffix_.resize(length);
      }
    } else if (v.IsObject()) {
      for (const auto& member : v.Members()) {
        const size_t length = suffix_.size();
        suffix_ += '.';
        suffix_ += member.name;
        Visit(member.value);
        suffix_.resize(length);
      }
    }
  }

 private:
  ItemState state_;
  std::string suffix_;
  std::vector<Item>* items_;
};

/// The last or the last but one part: "parameters_grad" may also be the name of a module.
bool IsParameterGrad(std::string_view name) {
  constexpr std::string_view kPart = "parameters_grad";
  const size_t dot = name.rfind('.');
  if (name.substr(dot == std::string_view::npos ? 0 : dot + 1) == kPart) return true;
  if (dot == std::string_view::npos) return false;
  name = name.substr(0, dot);
  const size_t before = name.rfind('.');
  return name.substr(before == std::string_view::npos ? 0 : before + 1) == kPart;
}

}  // namespace

void FlattenOp(std::string_view op_name, const JsonValue& op, std::vector<Item>* items) {
  if (op_name == "debug" || EndsWith(op_name, ".debug")) return Flattener(ItemState::kDebug, "", items).Visit(op);
  if (IsParameterGrad(op_name)) return Flattener(ItemState::kParameterGrad, "", items).Visit(op);
  struct Part {
    const char* key;
    ItemState state;
    const char* suffix;
  };
  static constexpr Part kParts[] = {{"input_args", ItemState::kInput, ".input"},
                                    {"input_kwargs", ItemState::kKwarg, ".input"},
                                    {"input", ItemState::kInput, ".input"},
                                    {"output", ItemState::kOutput, ".output"},
                                    {"parameters", ItemState::kParameter, ".parameters"}};
  for (const Part& part : kParts) {
    if (const JsonValue* v = op.Find(part.key)) Flattener(part.state, part.suffix, items).Visit(*v);
  }
}

}  // namespace msprobe
