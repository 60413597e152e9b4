#include "match/structure.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dump/flatten.h"
#include "match/dump_ops.h"
#include "match/modules/hash_mix.h"
#include "match/name_mapping.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr uint32_t kMostDepth = 400;
constexpr size_t kModulesPerTask = 256;

/// "[8, 8]"
std::string ShapeText(const JsonValue& shape) {
  std::string out = "[";
  for (const JsonValue& n : shape.Items()) {
    if (out.size() > 1) out += ", ";
    if (n.IsInt()) AppendInt(out, n.Int());
  }
  return out + "]";
}

/// Of a tensor that tells itself from others; 0: all its elements are one number, or that is not known.
double NormOf(const JsonValue& leaf) {
  const JsonValue *norm = leaf.Find("Norm"), *most = leaf.Find("Max"), *least = leaf.Find("Min");
  if (!norm || !norm->IsNumber() || !most || !most->IsNumber() || !least || !least->IsNumber()) return 0;
  return most->Number() == least->Number() ? 0 : norm->Number();
}

/// Its parameters and its first output.
void ReadItems(std::string_view name, const JsonValue& op, bool common, std::vector<Item>* scratch, ModuleNode* node) {
  scratch->clear();
  FlattenOp(name, op, scratch);
  std::string& out = node->parameters;
  for (const Item& item : *scratch) {
    if (!item.leaf || !item.leaf->IsObject()) continue;
    if (item.state == ItemState::kOutput && node->elements == 0) node->elements = ElementsOf(*item.leaf);
    node->results += item.state == ItemState::kOutput && item.leaf->Find("dtype");
    if (item.state != ItemState::kParameter) continue;
    node->norm = std::hypot(node->norm, NormOf(*item.leaf));
    const JsonValue* shape = item.leaf->Find("shape");
    if (!shape || !shape->IsArray()) continue;
    if (!out.empty()) out += ", ";
    const std::string own = item.suffix.substr(item.suffix.rfind('.') + 1);
    out += (common ? std::string(CommonParameter(own)) : own) + " " + ShapeText(*shape);
  }
}

}  // namespace

int64_t ElementsOf(const JsonValue& leaf) {
  const JsonValue* shape = leaf.Find("shape");
  if (!shape || !shape->IsArray()) return 0;
  int64_t out = 1;
  for (const JsonValue& n : shape->Items()) {
    if (!n.IsInt() || n.Int() < 0 || __builtin_mul_overflow(out, n.Int(), &out)) return 0;
  }
  return out;
}

StatusOr<Structure> Structure::Read(const DumpFile& dump, Vocabulary vocabulary) {
  Structure out;
  out.vocabulary_ = vocabulary;
  MSP_ASSIGN_OR_RETURN(out.parents_, dump.Parents());
  const size_t listed = out.parents_ ? out.parents_->size() : 0;
  out.calls_.reserve(std::max(listed, dump.ops().size()));
  if (out.parents_) {
    for (size_t i = 0; i < out.parents_->size(); ++i) {
      const std::string_view name = out.parents_->NameAt(i);
      const std::optional<size_t> op = dump.FindOp(name);
      out.AddCall(name, op ? static_cast<uint32_t>(*op) : UINT32_MAX);
    }
  }
  for (uint32_t op = 0; op < dump.ops().size(); ++op) {
    const std::string_view name = dump.ops().NameAt(op);
    if (!out.parents_ || !out.parents_->Has(name)) out.AddCall(name, op);
  }
  if (out.calls_.empty()) {
    return BadInput(
        Msg("{} has no construct.json that lists modules or calls: dump with level L0 or mix", dump.path()));
  }
  if (out.too_deep_) {
    return BadInput(Msg("{} nests modules more than {} deep: its names are damaged", dump.path(), kMostDepth));
  }
  MSP_RETURN_IF_ERROR(out.ReadParameters(dump));
  out.NameModules();
  out.Summarize();
  return out;
}

uint32_t Structure::Child(uint32_t parent, std::string_view name) {
  const auto [it, fresh] = child_of_.try_emplace(ChildKey{parent, name}, static_cast<uint32_t>(modules_.size()));
  if (!fresh) return it->second;
  ModuleNode node;
  node.name = name;
  node.parent = parent;
  node.depth = modules_[parent].depth + 1;
  too_deep_ = too_deep_ || node.depth > kMostDepth;
  modules_[parent].children.push_back(it->second);
  modules_.push_back(std::move(node));
  return it->second;
}

/// Of "Module.a.b.Linear"; `called` says that the class is known by a call.
uint32_t Structure::ModuleOf(std::string_view base, bool called) {
  const size_t dot = base.find('.'), last = base.rfind('.');
  const std::string_view type = base.substr(last + 1);
  // A root module without a name has its class only.
  std::string_view path = last > dot ? base.substr(dot + 1, last - dot - 1) : std::string_view();
  const auto [it, fresh] = by_path_.try_emplace(path, 0);
  if (fresh) {
    uint32_t module = 0;
    for (std::string_view rest = path; !rest.empty() && !too_deep_;) {
      const size_t end = std::min(rest.find('.'), rest.size());
      module = Child(module, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    it->second = module;
  }
  if (called && it->second != 0) modules_[it->second].type = type;
  return it->second;
}

void Structure::AddCall(std::string_view name, uint32_t op) {
  const NameParts parts = ParseOpName(name);
  StructureCall call;
  call.name = name;
  call.direction = parts.direction;
  call.op = op;
  if (parents_) call.caller = parents_->ParentOf(name);
  if (IsModuleName(name) || parts.direction == OpDirection::kParameterGrad) {
    call.module = ModuleOf(parts.base, parts.direction != OpDirection::kParameterGrad);
    Link(&modules_[call.module].calls);
  } else {
    NameFunction(parts.base, &call);
    // A gradient is computed where the forward is.
    std::string_view inside = call.caller;
    if (parents_ && parts.direction == OpDirection::kBackward) {
      const std::string forward = std::string(parts.base) + "." + std::string(parts.number) + ".forward";
      if (parents_->Has(forward)) inside = parents_->ParentOf(forward);
    }
    if (IsModuleName(inside)) call.module = ModuleOf(ParseOpName(inside).base, true);
    Link(&modules_[call.module].functions);
  }
  calls_.push_back(call);
}

void Structure::NameFunction(std::string_view base, StructureCall* call) {
  const std::string_view api = ApiOfOp(base);
  call->function = WithoutRankSuffix(api.substr(std::min(api.size(), api.find('.') + 1)));
  if (vocabulary_ == Vocabulary::kOwn) return;
  // A primitive is called by the name of an attribute; its class says what it does.
  const std::string_view own = StartsWith(base, "Primitive.") ? base.substr(base.rfind('.') + 1) : call->function;
  const auto [it, fresh] = common_functions_.try_emplace(own);
  if (fresh) {
    CommonFunction common = CommonFunctionOf(own);
    it->second = {std::move(common.name), common.moves};
  }
  call->function = it->second.name;
  call->moves = it->second.flag;
}

void Structure::NameModules() {
  for (ModuleNode& node : modules_) {
    node.kind = node.type;
    if (vocabulary_ == Vocabulary::kOwn || node.type.empty()) continue;
    const auto [it, fresh] = common_classes_.try_emplace(node.type);
    if (fresh) {
      CommonClass common = CommonClassOf(node.type);
      it->second = {std::move(common.name), common.layer};
    }
    node.kind = it->second.name;
    node.layer = it->second.flag;
  }
}

void Structure::Link(CallChain* chain) {
  const auto id = static_cast<uint32_t>(calls_.size());
  if (chain->empty()) {
    chain->first = id;
  } else {
    calls_[chain->last].next = id;
  }
  chain->last = id;
  ++chain->count;
}

/// Children stand behind their parents, so one pass from the end sees what is below before what is above.
void Structure::Summarize() {
  for (uint32_t m = static_cast<uint32_t>(modules_.size()); m-- > 0;) {
    ModuleNode& node = modules_[m];
    node.size = 1;
    node.below = node.calls.size() + node.functions.size();
    uint64_t hash = 0;
    std::string_view first_call;
    if (node.layer) {
      node.contents = HashOf(node.kind);
      continue;
    }
    ForEachCall(node.functions, [&](uint32_t f) {
      const StructureCall& call = calls_[f];
      if (call.direction != OpDirection::kForward || call.moves) return true;
      if (first_call.empty()) first_call = call.caller;
      if (call.caller == first_call) hash = MixHash(hash, HashOf(call.function));
      return true;
    });
    for (const uint32_t child : node.children) {
      hash = MixHash(hash, modules_[child].contents);
      node.size += modules_[child].size;
      node.below += modules_[child].below;
    }
    node.contents = MixHash(hash, node.children.size());
  }
}

Status Structure::ReadParameters(const DumpFile& dump) {
  if (dump.ops().empty()) return OkStatus();
  const size_t tasks = (modules_.size() + kModulesPerTask - 1) / kModulesPerTask;
  return ParallelFor(tasks, [&](size_t task) -> Status {
    JsonDoc doc;
    std::vector<Item> scratch;
    const size_t end = std::min(modules_.size(), (task + 1) * kModulesPerTask);
    for (size_t m = task * kModulesPerTask; m < end; ++m) {
      uint32_t first = kNoCall;  // that shows them
      ForEachCall(modules_[m].calls, [&](uint32_t id) {
        if (calls_[id].direction == OpDirection::kForward && calls_[id].op != UINT32_MAX) first = id;
        return first == kNoCall;
      });
      if (first == kNoCall) continue;
      MSP_RETURN_IF_ERROR(dump.ParseOp(calls_[first].op, &doc));
      ReadItems(calls_[first].name, doc, vocabulary_ != Vocabulary::kOwn, &scratch, &modules_[m]);
    }
    return OkStatus();
  });
}

std::string Structure::PathBelow(uint32_t module, uint32_t above) const {
  std::vector<std::string_view> names;
  for (; module != above && module != 0 && module != kNoModule; module = modules_[module].parent) {
    names.push_back(modules_[module].name);
  }
  std::string out;
  for (size_t i = names.size(); i-- > 0;) out.append(out.empty() ? "" : ".").append(names[i]);
  return out;
}

bool Structure::IsIn(uint32_t module, uint32_t above) const {
  while (module != above && module != 0) module = modules_[module].parent;
  return module == above;
}

LayerSide Structure::Side() const {
  LayerSide out;
  out.parents = parents_;
  out.ops.reserve(calls_.size());
  for (const StructureCall& call : calls_) out.ops.push_back(call.name);
  return out;
}

}  // namespace msprobe
