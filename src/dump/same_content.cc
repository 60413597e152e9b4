#include "dump/same_content.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/parallel.h"
#include "tensor/kernels/content_hash.h"

namespace msprobe {
namespace {

using Inode = std::pair<dev_t, ino_t>;

/// A file by its bytes: the inode stands for them where no other file has its size.
struct File {
  Inode inode;
  uint64_t size = 0;
  ContentHash hash;
};

Status HashFile(const std::string& path, File* out) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text = file.text();
  const int64_t size = static_cast<int64_t>(text.size());
  out->hash = HashContent({text.data(), DType::kUInt8, 1, &size, nullptr});
  file.Release(0, text.size());
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<uint32_t>> ContentNumbers(const std::vector<std::string>& paths) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> file_of(paths.size(), kNone);
  std::vector<File> files;
  std::vector<const std::string*> path_of;
  std::map<Inode, size_t> known;
  std::map<uint64_t, size_t> of_size;
  for (size_t i = 0; i < paths.size(); ++i) {
    struct stat s {};
    if (stat(paths[i].c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
    const Inode inode{s.st_dev, s.st_ino};
    const auto [at, fresh] = known.emplace(inode, files.size());
    file_of[i] = at->second;
    if (!fresh) continue;
    files.push_back({inode, static_cast<uint64_t>(s.st_size), {}});
    path_of.push_back(&paths[i]);
    ++of_size[files.back().size];
  }
  MSP_RETURN_IF_ERROR(ParallelFor(files.size(), [&](size_t i) -> Status {
    return of_size.at(files[i].size) == 1 ? OkStatus() : HashFile(*path_of[i], &files[i]);
  }));
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint32_t> numbers;
  std::vector<uint32_t> out;
  for (const size_t file : file_of) {
    if (file == kNone) {
      out.push_back(0);
      continue;
    }
    const File& f = files[file];
    const auto next = static_cast<uint32_t>(numbers.size() + 1);
    out.push_back(numbers.emplace(std::tuple(f.size, f.hash.low, f.hash.high), next).first->second);
  }
  return out;
}

}  // namespace msprobe
