// Directories of Hugging Face: one file, or many that an index names.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

/// Files by the index, and for each the tensors that it must hold.
using WeightMap = std::map<std::string, std::set<std::string>>;

StatusOr<WeightMap> ReadIndex(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  const JsonValue* map = doc.IsObject() ? doc.Find("weight_map") : nullptr;
  if (!map || !map->IsObject()) return BadInput(Msg("{} has no weight_map: it is not an index of weights", path));
  WeightMap out;
  for (const JsonMember& m : map->Members()) {
    if (!m.value.IsString()) return BadInput(Msg("{} has a weight_map that does not name files: write it again", path));
    const std::string name(m.value.Text());
    if (name.find('/') != std::string::npos || name.empty() || name == "..") {
      return BadInput(Msg("{} names {}, which is not a file beside it: write it again", path, OneLine(name)));
    }
    out[name].insert(std::string(m.name));
  }
  return out;
}

/// The first kind of weights that is there; others are the same weights again.
std::vector<std::string> WeightFiles(const std::vector<std::string>& names) {
  const auto pick = [&](std::string_view start, std::string_view ending) {
    std::vector<std::string> out;
    for (const std::string& name : names) {
      if (name.starts_with(start) && name.ends_with(ending)) out.push_back(name);
    }
    return out;
  };
  for (const auto& [start, ending] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"model", ".safetensors"}, {"pytorch_model", ".bin"}, {"", ".safetensors"}, {"", ".bin"}}) {
    if (auto out = pick(start, ending); !out.empty()) return out;
  }
  return {};
}

Status CheckIndex(const std::string& index, const std::string& name, const std::set<std::string>& wanted,
                  const Checkpoint& part) {
  std::set<std::string> held;
  for (const WeightTensor& t : part.tensors) held.insert(t.name);
  for (const std::string& tensor : wanted) {
    if (held.contains(tensor)) continue;
    return BadInput(Msg("{} says that {} is in {}, which does not hold it: copy the files again", index,
                        OneLine(tensor), OneLine(name)));
  }
  return OkStatus();
}

/// What transformers' Trainer saves beside the weights.
void ReadTrainer(const std::string& directory, Checkpoint* out) {
  for (const std::string_view name : {"optimizer.pt", "optimizer.bin", "scheduler.pt", "scheduler.bin"}) {
    const std::string path = JoinPath(directory, name);
    if (!PathExists(path)) continue;
    const StatusOr<int> file = out->AddFile(path);
    const StatusOr<const PtValue*> value = file.ok() ? OpenTorch(*file, out) : file.status();
    if (!value.ok()) {
      out->notes.push_back(Msg("{} is not read: {}", OneLine(path), value.status().text()));
    } else if (name.starts_with("optimizer")) {
      ListStates(**value, "", *file, out);
    } else {
      ListSettings(**value, "scheduler", *file, out);
    }
  }
  const std::string path = JoinPath(directory, "trainer_state.json");
  if (out->optimizer.empty() || !PathExists(path)) return;
  const StatusOr<int> file = out->AddFile(path);
  JsonDoc doc;
  if (!file.ok() || !ParseJson(out->text(*file), path, &doc).ok() || !doc.IsObject()) return;
  const JsonValue* step = doc.Find("global_step");
  if (step && step->IsInt()) AddSetting("trainer_state.global_step", static_cast<double>(step->Int()), *file, out);
}

}  // namespace

Status ReadHuggingFace(const std::string& directory, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  WeightMap map;
  std::string index;
  for (const std::string_view ending : {".safetensors.index.json", ".bin.index.json", ".index.json"}) {
    for (const std::string& name : names) {
      if (index.empty() && name.ends_with(ending)) index = JoinPath(directory, name);
    }
  }
  if (!index.empty()) {
    MSP_ASSIGN_OR_RETURN(map, ReadIndex(index));
  } else {
    for (const std::string& name : WeightFiles(names)) map[name] = {};
  }
  ReadConfig(directory, &out->facts);
  std::string kind = "safetensors";
  for (const auto& [name, wanted] : map) {
    const std::string path = JoinPath(directory, name);
    if (!PathExists(path)) {
      return BadInput(Msg("{} names {}, which is missing: copy all files of the checkpoint", index, OneLine(name)));
    }
    const size_t before = out->tensors.size();
    MSP_RETURN_IF_ERROR(ReadTensorFile(path, out));
    if (out->format != "safetensors") kind = "torch";
    if (wanted.empty()) continue;
    Checkpoint part;
    part.tensors.assign(out->tensors.begin() + static_cast<int64_t>(before), out->tensors.end());
    MSP_RETURN_IF_ERROR(CheckIndex(index, name, wanted, part));
  }
  ReadTrainer(directory, out);
  out->format = map.size() > 1 ? fmt::format("{}, {} files", kind, map.size()) : kind;
  return OkStatus();
}

}  // namespace msprobe
