#include "weights/open_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "base/text.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

/// A directory of msprobe's own recordings, of any depth: stepN/rankN/dump.json.
bool IsDump(const std::string& directory, const std::vector<std::string>& names, int depth = 2) {
  if (std::find(names.begin(), names.end(), "dump.json") != names.end()) return true;
  if (depth == 0) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (!name.starts_with("step") && !name.starts_with("rank")) return false;
    const auto below = ListDirectory(JoinPath(directory, name));
    return below.ok() && IsDump(JoinPath(directory, name), *below, depth - 1);
  });
}

StatusOr<std::string> OnlyFile(const std::string& directory, const std::vector<std::string>& names) {
  std::string found;
  for (const std::string_view ending : {".ckpt", ".pt", ".pth", ".npz"}) {
    for (const std::string& name : names) {
      if (!name.ends_with(ending)) continue;
      if (!found.empty()) {
        return BadInput(Msg("{} holds {} and {}, and nothing says which is meant: name the file", directory,
                            OneLine(BaseName(found)), OneLine(name)));
      }
      found = JoinPath(directory, name);
    }
    if (!found.empty()) return found;
  }
  if (IsDump(directory, names)) {
    return BadInput(Msg("{} is a dump and no checkpoint: 'msprobe compare' compares dumps", directory));
  }
  return BadInput(
      Msg("{} holds no checkpoint: give a directory or file of safetensors or torch files, a checkpoint of "
          "torch.distributed, Megatron, DeepSpeed or MindSpore, or .npz",
          directory));
}

bool HasFiles(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".safetensors") || name.ends_with(".index.json") ||
           (name.starts_with("pytorch_model") && name.ends_with(".bin"));
  });
}

Status ReadAnyDirectory(const std::string& given, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const std::string directory, LatestIteration(given));
  if (PathExists(JoinPath(directory, ".metadata"))) return ReadDistributed(directory, out);
  if (IsMegatron(directory)) return ReadMegatron(directory, out);
  if (IsZero(directory)) return ReadZero(directory, out);
  if (HasSteps(directory)) return ReadSteps(directory, out);
  if (IsStep(directory)) return ReadStep(directory, out);
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  if (HasFiles(names)) return ReadHuggingFace(directory, out);
  MSP_ASSIGN_OR_RETURN(const std::string file, OnlyFile(directory, names));
  ReadConfig(directory, &out->facts);
  return ReadTensorFile(file, out);
}

}  // namespace

StatusOr<Checkpoint> OpenCheckpoint(const std::string& path) {
  Checkpoint out;
  out.path = path;
  if (!PathExists(path)) return Missing(path, "check the path");
  const bool directory = IsDirectory(path);
  if (!directory) ReadConfig(std::string(DirName(path)), &out.facts);  // what its arguments say comes after it
  MSP_RETURN_IF_ERROR(directory ? ReadAnyDirectory(path, &out) : ReadTensorFile(path, &out));
  if (out.tensors.empty() && out.optimizer.empty()) {
    return BadInput(Msg("{} holds no tensors: give the checkpoint of a model", path));
  }
  NoteUnread(&out);
  return out;
}

}  // namespace msprobe
