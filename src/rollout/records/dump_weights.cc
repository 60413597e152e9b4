#include "rollout/records/dump_weights.h"

#include <set>

#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "dump/dump_items.h"
#include "ops/module_prefix.h"
#include "ops/op_name.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

/// "model.layers.0.mlp" of "Module.model.layers.0.mlp.Qwen2MLP.forward.0".
std::string ModulePath(std::string_view name, std::string_view prefix) {
  std::string_view path = ParseOpName(name).base;
  path.remove_prefix(std::min(prefix.size(), path.size()));
  const size_t dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? std::string_view() : path.substr(0, dot));
}

Status AddParameter(const Item& item, const std::string& name, const TensorFolder& folder, Checkpoint* out) {
  const std::string_view data_name = (*item.leaf)["data_name"].Text();
  if (data_name.empty()) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(data_name));
  MSP_ASSIGN_OR_RETURN(const int file, out->AddFile(path));
  const DType dtype = ParseDType((*item.leaf)["dtype"].Text());
  MSP_ASSIGN_OR_RETURN(const TensorFile tensors, TensorFile::Parse(out->text(file), path, dtype));
  if (!tensors.tensor()) return OkStatus();
  FileTensor tensor = *tensors.tensor();
  tensor.name = name;
  out->tensors.push_back(WholeTensor(std::move(tensor), file));
  return OkStatus();
}

}  // namespace

StatusOr<Checkpoint> OpenDumpWeights(const std::string& path) {
  Checkpoint out;
  out.path = path;
  out.format = "dump";
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(path));
  const TensorFolder folder(path);
  const OpList& ops = dump.ops();
  const std::string_view prefix = ModulePrefix(ops.size(), [&](size_t i) { return ops.NameAt(i); });
  DumpItems items(dump);
  std::set<std::string> seen;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (!IsModuleName(name) || ParseOpName(name).direction != OpDirection::kForward) continue;
    MSP_ASSIGN_OR_RETURN(const std::vector<Item>* found, items.Read(static_cast<uint32_t>(i)));
    const std::string module = ModulePath(name, prefix);
    for (const Item& item : *found) {
      if (item.state != ItemState::kParameter || !item.leaf) continue;
      std::string parameter = module + item.suffix.substr(std::string_view(".parameters").size());
      if (seen.insert(parameter).second) MSP_RETURN_IF_ERROR(AddParameter(item, parameter, folder, &out));
    }
  }
  return out;
}

std::vector<SideWeights> FindDumpWeights(const SideEvidence& side) {
  if (side.dumps.empty()) return {};
  const SideDump& last = side.dumps.back();
  // Ranks may hold parts of a weight each, and nothing in a dump says how they are joined.
  if (side.dumps.size() > 1 && side.dumps[side.dumps.size() - 2].step == last.step) return {};
  const auto opened = OpenDumpWeights(last.path);
  if (!opened.ok() || opened->tensors.empty()) return {};
  return {SideWeights{last.path, -1, false, true}};
}

}  // namespace msprobe
