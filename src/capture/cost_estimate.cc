#include "capture/cost_estimate.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "capture/tensor_files.h"
#include "dump/reader.h"
#include "json/writer.h"
#include "ops/op_name.h"
#include "tensor/files/pt_writer.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

constexpr size_t kTasks = kCostTasks.size(), kLevels = kCostLevels.size();
constexpr size_t At(CostTask t) { return static_cast<size_t>(t); }
constexpr size_t At(CostLevel l) { return static_cast<size_t>(l); }

bool Holds(CostLevel level, std::string_view op) {
  return level == CostLevel::kMix || (level == CostLevel::kL0) == IsModuleName(op);
}

uint64_t Quoted(std::string_view s) {
  std::string text;
  AppendJsonString(text, s);
  return text.size();
}

/// Bytes of the lines `"key": ...` in an op's text, and of their indentation; lines end before the next newline.
struct Lines {
  uint64_t count = 0, bytes = 0, indent = 0;
};
Lines CountLines(std::string_view text, std::string_view key) {
  Lines found;
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const size_t begin = text.rfind('\n', at), end = text.find('\n', at);
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    if (text.substr(begin + 1, at - begin - 1).find_first_not_of(' ') != std::string_view::npos) continue;
    ++found.count;
    found.bytes += end - begin;  // with the newline and a comma; the last line has none, but the one before gains one
    if (text[end - 1] != ',') ++found.bytes;
    found.indent += at - begin;
  }
  return found;
}

class CostEstimator {
 public:
  explicit CostEstimator(std::string dir) : dir_(std::move(dir)) {}

  StatusOr<CostEstimate> Run() {
    MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(JoinPath(dir_, "dump.json")));
    if (dump.ops().empty()) {
      return BadInput(dump.path() + " holds no shapes" + (dump.task() == "structure" ? " (task structure)" : "") +
                      ": give a step of task statistics, or a command to run");
    }
    MSP_ASSIGN_OR_RETURN(const Checksums checksums, dump.FindChecksums());
    list_.exact_links = checksums == Checksums::kPresent;
    for (size_t l = 0; l < kLevels; ++l) list_.known[l] = dump.level() == "mix" || dump.level() == kCostLevels[l];
    const std::string& path = dump.path();
    for (size_t i = 0; i < dump.ops().size(); ++i) MSP_RETURN_IF_ERROR(AddOp(dump, i));
    const uint64_t frame = FrameBytes(dump);
    MSP_RETURN_IF_ERROR(AddStacks());
    MSP_RETURN_IF_ERROR(AddConstruct());
    for (size_t t = 0; t < kTasks; ++t) {
      for (StepCost& cost : list_.costs[t]) cost.bytes += frame, cost.files += 1 + cost.tensors;
    }
    for (size_t l = 0; l < kLevels; ++l) {
      StepCost& tensor = list_.costs[At(CostTask::kTensor)][l];
      tensor.bytes += tensor.tensor_bytes + path.size();  // dump_data_dir
    }
    return list_;
  }

 private:
  template <typename F>
  void Each(std::string_view op, F&& add) {
    for (size_t t = 0; t < kTasks; ++t) {
      for (size_t l = 0; l < kLevels; ++l) {
        if (Holds(static_cast<CostLevel>(l), op)) add(static_cast<CostTask>(t), static_cast<CostLevel>(l));
      }
    }
  }

  /// What stands around the ops.
  static uint64_t FrameBytes(const DumpFile& dump) {
    const uint64_t first = dump.ops().front().offset;
    const uint64_t last = dump.ops().back().offset + dump.ops().back().length;
    return dump.file().text().size() - last + first - Quoted(dump.ops().front().name);
  }

  Status AddOp(const DumpFile& dump, size_t index) {
    const OpSpan& op = dump.ops()[index];
    const std::string_view text = dump.file().text().substr(op.offset, op.length);
    const uint64_t whole = 3 + Quoted(op.name) + 2 + 1 + op.length;  // newline, two spaces, ": ", comma
    const Lines checksums = CountLines(text, "\"md5\": "), files = CountLines(text, "\"data_name\": ");
    const uint64_t plain = whole - checksums.bytes - files.bytes;
    MSP_RETURN_IF_ERROR(dump.ParseOp(index, &doc_));
    names_bytes_ = tensors_ = 0;
    const Lines types = CountLines(text, "\"requires_grad\": ");
    const uint64_t lines = types.count == 0 ? 0 : types.indent / types.count;  // the usual indentation
    new_bytes_ = {};
    Walk(doc_, std::string(op.name), IsModuleName(op.name));
    Each(op.name, [&](CostTask task, CostLevel level) {
      StepCost& cost = list_.costs[At(task)][At(level)];
      ++cost.ops;
      if (task == CostTask::kStatistics) cost.bytes += plain;
      if (task == CostTask::kMd5) cost.bytes += plain + tensors_ * (lines + 17 + 2);  // "md5": "01234567",
      if (task != CostTask::kTensor) return;
      cost.bytes += plain + names_bytes_ + tensors_ * (lines + 13 + 3);  // "data_name": "...",
      cost.tensors += tensors_;
      cost.tensor_bytes += new_bytes_[At(level)];
    });
    return OkStatus();
  }

  void Walk(const JsonValue& value, const std::string& path, bool module) {
    if (value.IsArray()) {
      for (size_t i = 0; i < value.size(); ++i) Walk(value[i], path + "." + std::to_string(i), module);
    } else if (value.IsObject()) {
      const JsonValue* type = value.Find("type");
      const JsonValue* dtype = value.Find("dtype");
      const JsonValue* shape = value.Find("shape");
      if (type && type->IsString() && dtype && dtype->IsString() && shape && shape->IsArray()) {
        AddTensor(value, *dtype, *shape, path, module);
        return;
      }
      for (const auto& member : value.Members()) {
        std::string_view key = member.name;
        if (key == "input_args") key = "input";
        if (key == "input_kwargs") key = "kwargs";
        Walk(member.value, path + "." + std::string(key), module);
      }
    }
  }

  void AddTensor(const JsonValue& value, const JsonValue& dtype_name, const JsonValue& shape, const std::string& path,
                 bool module) {
    std::string_view name = dtype_name.Text();
    if (StartsWith(name, "torch.")) name.remove_prefix(6);
    const DType dtype = ParseDType(name);
    std::vector<int64_t> sizes;
    uint64_t elements = 1;
    for (const JsonValue& n : shape.Items()) {
      if (!n.IsInt() || n.Int() < 0) return;
      sizes.push_back(n.Int());
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(n.Int()), &elements)) return;
    }
    const JsonValue* max = value.Find("Max");
    if (elements > 0 && (max == nullptr || max->IsNull()) && value.Find("md5") == nullptr) return;  // no data to save
    const std::string stem = TensorFileName(path, "");
    PtFrame frame;
    if (!MakePtFrame(dtype, sizes, stem, 0, &frame)) return;
    ++tensors_;
    names_bytes_ += stem.size() + 3;  // ".pt"
    const uint64_t bytes = frame.head.size() + frame.tail.size() + elements * ElementSize(dtype);
    const std::string content = Content(value, name, sizes);
    for (size_t l = 0; l < kLevels; ++l) {
      const auto level = static_cast<CostLevel>(l);
      if (level != CostLevel::kMix && (level == CostLevel::kL0) != module) continue;
      if (contents_[l].insert(content).second) new_bytes_[l] += bytes;
    }
  }

  /// What two equal tensors have in common.
  static std::string Content(const JsonValue& value, std::string_view dtype, const std::vector<int64_t>& sizes) {
    std::string content(dtype);
    for (const int64_t n : sizes) content += ',' + std::to_string(n);
    for (const char* key : {"md5", "Max", "Min", "Mean", "Norm"}) {
      const JsonValue* v = value.Find(key);
      content += '|';
      if (v == nullptr) continue;
      if (v->IsString()) content += v->Text();
      if (v->IsNumber()) AppendPyRepr(content, v->Number());
      if (v->IsBool()) content += v->Bool() ? 't' : 'f';
    }
    return content;
  }

  Status AddStacks() {
    const std::string path = JoinPath(dir_, "stack.json");
    if (!IsRegularFile(path)) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const StackFile stacks, StackFile::Open(path));
    MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(JoinPath(dir_, "dump.json")));
    for (size_t l = 0; l < kLevels; ++l) {
      std::vector<std::vector<std::string_view>> ops(stacks.size());
      for (const OpSpan& op : dump.ops()) {
        const auto id = Holds(static_cast<CostLevel>(l), op.name) ? stacks.StackOf(op.name) : std::nullopt;
        if (id) ops[*id].push_back(op.name);
      }
      std::string text;
      JsonWriter json(&text, kJsonIndented);
      json.BeginObject();
      size_t number = 0;
      for (uint32_t id = 0; id < ops.size(); ++id) {
        if (ops[id].empty()) continue;
        json.Key(std::to_string(number++));
        json.BeginArray();
        json.BeginArray();
        for (const std::string_view op : ops[id]) json.String(op);
        json.EndArray();
        json.BeginArray();
        for (const std::string& frame : stacks.Frames(id)) json.String(frame);
        json.EndArray();
        json.EndArray();
      }
      json.EndObject();
      AddFile(l, text.size());
    }
    return OkStatus();
  }

  Status AddConstruct() {
    const std::string path = JoinPath(dir_, "construct.json");
    if (!IsRegularFile(path)) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const ConstructFile construct, ConstructFile::Open(path));
    for (size_t l = 0; l < kLevels; ++l) {
      std::string text;
      JsonWriter json(&text, kJsonIndented);
      json.BeginObject();
      for (const ConstructEntry& entry : construct.entries) {
        // Level L1 knows no modules and has no tree.
        if (l == At(CostLevel::kL1) || !Holds(static_cast<CostLevel>(l), entry.name)) continue;
        json.Key(entry.name);
        entry.parent.empty() ? json.Null() : json.String(entry.parent);
      }
      json.EndObject();
      AddFile(l, text.size());
    }
    return OkStatus();
  }

  void AddFile(size_t level, uint64_t bytes) {
    for (size_t t = 0; t < kTasks; ++t) {
      list_.costs[t][level].bytes += bytes;
      ++list_.costs[t][level].files;
    }
  }

  const std::string dir_;
  CostEstimate list_;
  JsonDoc doc_;
  uint64_t names_bytes_ = 0, tensors_ = 0;
  std::array<uint64_t, kLevels> new_bytes_{};
  std::array<std::unordered_set<std::string>, kLevels> contents_;
};

}  // namespace

StatusOr<CostEstimate> EstimateCost(const std::string& rank_dir) { return CostEstimator(rank_dir).Run(); }

}  // namespace msprobe
