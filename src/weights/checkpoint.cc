#include "weights/checkpoint.h"

#include <algorithm>

namespace msprobe {

StatusOr<int> Checkpoint::AddFile(const std::string& file_path) {
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].path == file_path) return static_cast<int>(i);
  }
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(file_path));
  files.push_back({file_path, std::make_unique<MappedFile>(std::move(map))});
  return static_cast<int>(files.size()) - 1;
}

namespace {

/// Where bytes lie in a file; false where they do not.
bool StretchOf(std::string_view whole, const void* begin, size_t bytes, size_t* first, size_t* last) {
  const auto* at = static_cast<const char*>(begin);
  if (at < whole.data() || at > whole.data() + whole.size()) return false;
  *first = static_cast<size_t>(at - whole.data());
  *last = *first + std::min(bytes, whole.size() - *first);
  return true;
}

}  // namespace

void Checkpoint::Release(int file, const void* begin, size_t bytes) const {
  size_t first = 0, last = 0;
  if (StretchOf(text(file), begin, bytes, &first, &last)) files[static_cast<size_t>(file)].map->Release(first, last);
}

void Checkpoint::Release(const WeightBlock& block) const {
  int64_t count = 1;
  for (size_t d = block.size.size(); d-- > 0; count *= block.size[d]) {
    if (block.size[d] != 1 && block.strides[d] != count) return;
  }
  Release(block.file, block.data, static_cast<size_t>(count) * ElementSize(block.dtype));
}

void Checkpoint::WillNeed(int file, const void* begin, size_t bytes) const {
  size_t first = 0, last = 0;
  if (StretchOf(text(file), begin, bytes, &first, &last)) files[static_cast<size_t>(file)].map->WillNeed(first, last);
}

}  // namespace msprobe
