#include "capture/trigger.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "base/text.h"

namespace msprobe {
namespace {

bool Overflows(const TensorRecord& t) {
  if (!t.has_stats || IsInteger(t.dtype) || t.dtype == DType::kBool) return false;
  return !std::isfinite(t.stats.max) || !std::isfinite(t.stats.min);
}

// JSON of a tensor that Python has described. Quotes inside of texts are escaped, so they cannot be taken for these.
bool JsonOverflows(std::string_view json) {
  for (const std::string_view key : {"\"Max\": ", "\"Min\": "}) {
    for (size_t at = json.find(key); at != std::string_view::npos; at = json.find(key, at + 1)) {
      std::string_view value = json.substr(at + key.size());
      if (StartsWith(value, "-")) value.remove_prefix(1);
      if (StartsWith(value, "NaN") || StartsWith(value, "Infinity")) return true;
    }
  }
  return false;
}

void DropMembers(Record* op, std::initializer_list<std::string_view> keys) {
  size_t end = 0;
  size_t held = 0, held_end = 0;  // values whose saving is undecided, in the order of their nodes
  int depth = 0;
  bool drop = false;
  for (size_t i = 0; i < op->nodes.size(); ++i) {
    const RecordNode n = op->nodes[i];
    if (depth == 0 && n.type == RecordNodeType::kKeyLiteral) {
      drop = std::find(keys.begin(), keys.end(), std::string_view(n.literal)) != keys.end();
    }
    depth += n.type == RecordNodeType::kListBegin || n.type == RecordNodeType::kDictBegin ? 1 : 0;
    depth -= n.type == RecordNodeType::kListEnd || n.type == RecordNodeType::kDictEnd ? 1 : 0;
    for (; held < op->held.size() && op->held[held].node == i; ++held) {
      if (drop) continue;
      op->held[held].node = static_cast<uint32_t>(end);
      if (held_end != held) op->held[held_end] = std::move(op->held[held]);
      ++held_end;
    }
    if (!drop) op->nodes[end++] = n;
  }
  op->held.resize(held_end);
  op->nodes.resize(end);
}

}  // namespace

void DropInputs(Record* op) { DropMembers(op, {"input_args", "input_kwargs", "input"}); }
void DropOutputs(Record* op) { DropMembers(op, {"output", "parameters"}); }

bool OutputOverflows(const Record& op) {
  const bool all = op.name.form == NameForm::kParamGrad;
  bool output = all;
  int depth = 0;
  for (const RecordNode& n : op.nodes) {
    switch (n.type) {
      case RecordNodeType::kListBegin:
      case RecordNodeType::kDictBegin: ++depth; break;
      case RecordNodeType::kListEnd:
      case RecordNodeType::kDictEnd: --depth; break;
      case RecordNodeType::kKeyLiteral:
        if (depth == 0) output = all || std::string_view(n.literal) == "output";
        break;
      case RecordNodeType::kTensor:
        if (output && Overflows(op.tensors[static_cast<size_t>(n.i)])) return true;
        break;
      case RecordNodeType::kJson:
        if (output && JsonOverflows(std::string_view(op.text).substr(n.offset, n.length))) return true;
        break;
      default: break;
    }
  }
  return false;
}

void Trigger::Configure(TriggerConfig config) {
  std::lock_guard<std::mutex> lock(mutex_);
  config_ = std::move(config);
  golden_.reset();
  kept_ = not_in_golden_ = 0;
  exhausted_ = false;
}

Status Trigger::BeginStep(int step, int rank) {
  if (kind() != TriggerKind::kDifference) return OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  not_in_golden_ = 0;
  golden_.reset();
  MSP_ASSIGN_OR_RETURN(const std::string path, FindGoldenDump(config_.bench_path, step, rank));
  MSP_ASSIGN_OR_RETURN(GoldenIndex index, GoldenIndex::Read(path));
  golden_ = std::move(index);
  return OkStatus();
}

bool Trigger::Differs(const Record& op) {
  if (!golden_) return false;
  const std::string name = op.name.str();
  if (!golden_->Contains(name)) {
    ++not_in_golden_;
    return false;
  }
  SumsOf(op, &sums_);
  return golden_->OnlyOutputsDiffer(name, sums_);
}

bool Trigger::Keep(const Record& op) {
  if (exhausted_) return false;
  bool keep = true;
  if (kind() == TriggerKind::kOverflow) keep = OutputOverflows(op);  // without the lock: nothing is shared
  if (!keep) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (exhausted_) return false;
  if (kind() == TriggerKind::kDifference && !Differs(op)) return false;
  ++kept_;
  const bool limited = kind() == TriggerKind::kOverflow || kind() == TriggerKind::kDifference;
  if (limited && config_.limit >= 0 && kept_ >= static_cast<uint64_t>(config_.limit)) exhausted_ = true;
  return true;
}

}  // namespace msprobe
