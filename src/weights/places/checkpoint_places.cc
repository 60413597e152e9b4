#include "weights/places/checkpoint_places.h"

#include <charconv>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {

int LastNumber(std::string_view text) {
  size_t end = text.find_last_of("0123456789");
  if (end == std::string_view::npos) return -1;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int out = -1;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end + 1, out);
  return error == std::errc() && stop == text.data() + end + 1 ? out : -1;
}

bool IsCheckpointDirectory(const std::string& path, const FileNames& names) {
  if (names.contains(".metadata") || names.contains("latest_checkpointed_iteration.txt") || names.contains("latest"))
    return true;
  for (const std::string& name : names) {
    if (EndsWith(name, ".safetensors.index.json") || EndsWith(name, ".bin.index.json")) return true;
    if (name == "model.safetensors" || name == "pytorch_model.bin") return true;
    if (StartsWith(name, "mp_rank_") && IsDirectory(JoinPath(path, name))) return true;
  }
  return false;
}

int StepOfCheckpoint(std::string_view path, std::string_view given) {
  if (StartsWith(path, given) && path.size() > given.size()) path.remove_prefix(given.size() + 1);
  std::string_view name = BaseName(path);
  if (const size_t dot = name.find_last_of('.'); dot != std::string_view::npos && dot > 0) name = name.substr(0, dot);
  for (const std::string_view part : {name, BaseName(DirName(path))}) {
    if (Contains(part, "init")) return 0;
    for (const std::string_view word : {"step", "iter", "checkpoint", "ckpt", "epoch"}) {
      if (Contains(part, word) && LastNumber(part) >= 0) return LastNumber(part);
    }
  }
  return -1;
}

}  // namespace msprobe
