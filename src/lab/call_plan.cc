#include "lab/call_plan.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/message.h"
#include "base/text.h"
#include "diagnose/replay/op_call.h"
#include "lab/standards/api_name.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

// They copy, or return memory that nobody wrote.
constexpr auto kNotChecked = std::to_array<std::string_view>(
    {"empty", "empty_like", "empty_strided", "empty_with_format", "new_empty", "new_empty_strided", "to"});

void AppendShape(const JsonValue& value, std::string* out);

void AppendLeaf(const JsonValue& leaf, std::string* out) {
  if (IsTensorLeaf(leaf)) {
    out->append(leaf.Find("dtype")->Text());
    for (const char* key : {"shape", "requires_grad"}) {
      if (const JsonValue* v = leaf.Find(key)) AppendShape(*v, out);
    }
    return;
  }
  for (const auto& m : leaf.Members()) {
    out->append(m.name).append(":");
    AppendShape(m.value, out);
  }
}

/// A text that two calls share when they differ in values only.
void AppendShape(const JsonValue& value, std::string* out) {
  *out += '(';
  if (value.IsArray()) {
    for (const JsonValue& v : value.Items()) AppendShape(v, out);
  } else if (value.IsObject()) {
    AppendLeaf(value, out);
  } else if (value.IsString()) {
    out->append(value.Text());
  } else if (value.IsNumber()) {
    *out += PyRepr(value.Number());
  } else if (value.IsBool()) {
    *out += value.Bool() ? 'T' : 'F';
  }
  *out += ')';
}

class Planner {
 public:
  Planner(const DumpFile& dump, const CallFilter& filter) : dump_(dump), filter_(filter) {}

  Status Add(size_t op, const NameParts& name, std::vector<PlannedCall>* out) {
    PlannedCall call;
    call.full = std::string(name.base) + "." + std::string(name.number);
    call.forward = op;
    if (filter_.done.contains(call.full)) return OkStatus();
    if (filter_.once) {
      MSP_ASSIGN_OR_RETURN(const bool first, IsFirst(op, name));
      if (!first) return OkStatus();
    }
    call.api = ApiOfFullName(call.full);
    call.backward = dump_.FindOp(call.full + ".backward");
    const std::string_view kind = std::string_view(call.full).substr(0, call.full.find('.'));
    // Names of files are made of it.
    const bool plain = call.full.find('/') == std::string::npos;
    call.collective = kind == "Distributed" && !call.api.empty() && plain && !IsFiltered(call.api);
    if (kind == "Distributed" || kind == "MindSpeed" || call.api.empty() || !plain) {
      call.skip = "API " + call.full + " not support for acc_check. SKIP.";
    } else if (IsFiltered(call.api)) {
      call.skip = "API " + call.api + " in black list or not in white list. SKIP.";
    }
    out->push_back(std::move(call));
    return OkStatus();
  }

 private:
  bool IsFiltered(std::string_view api) const {
    if (filter_.black.contains(api) || (!filter_.white.empty() && !filter_.white.contains(api))) return true;
    return std::find(kNotChecked.begin(), kNotChecked.end(), api) != kNotChecked.end();
  }

  StatusOr<bool> IsFirst(size_t op, const NameParts& name) {
    MSP_RETURN_IF_ERROR(dump_.ParseOp(op, &doc_));
    std::string shape(name.base);
    for (const char* key : {"input_args", "input_kwargs"}) {
      if (const JsonValue* v = doc_.Find(key)) AppendShape(*v, &shape);
    }
    return seen_.insert(std::move(shape)).second;
  }

  const DumpFile& dump_;
  const CallFilter& filter_;
  JsonDoc doc_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

StatusOr<std::vector<PlannedCall>> PlanCalls(const DumpFile& dump, const CallFilter& filter) {
  std::vector<PlannedCall> out;
  Planner planner(dump, filter);
  bool any = false;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const NameParts name = ParseOpName(dump.ops()[i].name);
    if (name.direction != OpDirection::kForward || IsModuleName(dump.ops()[i].name)) continue;
    any = true;
    MSP_RETURN_IF_ERROR(planner.Add(i, name, &out));
  }
  if (!any) return BadInput(Msg("{} holds no calls of functions: dump at level L1 or mix", dump.path()));
  return out;
}

}  // namespace msprobe
