// A checkpoint of any format as named tensors: what they are is known when it is open, their bytes stay in the files.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "tensor/files/pt_reader.h"
#include "weights/weight_tensor.h"

namespace msprobe {

/// What a checkpoint, or the configuration beside it, says of its model; 0 and empty where it says nothing.
struct ModelFacts {
  std::string model_type;  // of config.json
  int64_t heads = 0, groups = 0, head_dim = 0, hidden = 0, ffn = 0, vocab = 0, experts = 0;
  std::optional<bool> gated, zero_centred, tied;
  int64_t tensor_parallel = 1, pipeline_parallel = 1, expert_parallel = 1, virtual_stages = 1;
};

struct CheckpointFile {
  std::string path;  // as it was given, with the directory
  std::unique_ptr<MappedFile> map;
};

struct Checkpoint {
  std::string path, format;  // "safetensors", "Megatron", ...
  ModelFacts facts;
  std::vector<CheckpointFile> files;
  std::vector<WeightTensor> tensors;    // weights and buffers, in the order of the files
  std::vector<WeightTensor> optimizer;  // states of the optimizer, under names of their own
  std::vector<WeightTensor> settings;   // numbers beside them: learning rates, counts of steps; they lie in `numbers`
  std::deque<double> numbers;
  /// Copies of whole tensors that other ranks hold; they should be equal to the tensor of the same name.
  std::vector<WeightTensor> copies;
  std::map<std::string, std::set<std::string>> unread;  // classes of objects among the tensors, and where they are
  std::set<std::string> left_out;                       // what files hold beside tensors, by key
  std::vector<Message> notes;  // what a person should know: tensors left out, a layout that was guessed
  std::deque<PtFile> torch_files;
  /// What the training was started with, if a file holds it: an object, or a dict, of one of `torch_files`.
  const PtValue* arguments = nullptr;
  int arguments_file = 0;

  /// Maps a file; its number.
  StatusOr<int> AddFile(const std::string& path);
  std::string_view text(int file) const { return files[static_cast<size_t>(file)].map->text(); }
  /// Gives back the memory of these bytes of a file.
  void Release(int file, const void* begin, size_t bytes) const;
  /// The same for a block that has no gaps; nothing for others, whose neighbours may be still wanted.
  void Release(const WeightBlock& block) const;
  /// They will be read soon.
  void WillNeed(int file, const void* begin, size_t bytes) const;
};

}  // namespace msprobe
