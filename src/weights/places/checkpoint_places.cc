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

namespace {

constexpr std::string_view kStepWords[] = {"step", "iter", "checkpoint", "ckpt", "epoch"};

/// "global_step_7", "checkpoint-10": a number right behind one of the words, and nothing behind it. -1 for all others:
/// what is above may be called by anything, such as "steps_v1".
int StepAtEnd(std::string_view name) {
  if (name == "init") return 0;
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size()) return -1;
  const std::string_view front = name.substr(0, name.find_last_not_of("_-=.", digits - 1) + 1);
  for (const std::string_view word : kStepWords) {
    if (EndsWith(front, word) || (word == "iter" && EndsWith(front, "iteration"))) return LastNumber(name);
  }
  return -1;
}

}  // namespace

int StepOfCheckpoint(std::string_view path, std::string_view given) {
  constexpr int kMostAbove = 3;
  while (given.size() > 1 && given.back() == '/') given.remove_suffix(1);
  std::string_view inner = path;
  if (StartsWith(path, given) && path.size() > given.size()) inner.remove_prefix(given.size() + 1);
  std::string_view name = BaseName(inner);
  if (const size_t dot = name.find_last_of('.'); dot != std::string_view::npos && dot > 0) name = name.substr(0, dot);
  const bool below = inner.size() < path.size();
  for (const std::string_view part : {name, below ? BaseName(DirName(inner)) : std::string_view()}) {
    if (Contains(part, "init")) return 0;
    for (const std::string_view word : kStepWords) {
      if (Contains(part, word) && LastNumber(part) >= 0) return LastNumber(part);
    }
  }
  // The step may stand above what was given, or above the part of a step that holds the weights.
  std::string_view above = path;
  const size_t highest = path.size() > given.size() ? DirName(given).size() : 0;
  for (int i = 0; i < kMostAbove && above.size() > highest; ++i) {
    above = DirName(above);
    if (const int step = StepAtEnd(BaseName(above)); step >= 0) return step;
  }
  return -1;
}

}  // namespace msprobe
