#include "tensor/files/pt_reader.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/pt_pickle.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

/// Only what torch.save() writes before and behind the objects, which it could not write.
bool IsBegun(const std::vector<ZipMember>& members) {
  const auto frames = [](const ZipMember& m) {
    const std::string_view name = m.name.substr(m.name.find('/') + 1);
    return name == "version" || name == "byteorder" || name.starts_with('.');
  };
  return !members.empty() && std::all_of(members.begin(), members.end(), frames);
}

}  // namespace

StatusOr<PtFile> PtFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  MSP_ASSIGN_OR_RETURN(PtFile file, Parse(map.text(), path));
  file.map_ = std::move(map);
  return file;
}

StatusOr<PtFile> PtFile::Parse(std::string_view bytes, const std::string& path, PtObjects objects) {
  if (bytes.size() > 1 && bytes[0] == '\x80') {
    return BadInput(Msg("{} has the legacy format of torch.save(): load it with torch and save it again", path));
  }
  PtFile file;
  file.path_ = path;
  MSP_ASSIGN_OR_RETURN(file.members_, ReadZip(bytes, path));
  constexpr std::string_view kPickle = "/data.pkl";
  std::string_view prefix, pickle;
  for (const ZipMember& m : file.members_) {
    if (!m.name.ends_with(kPickle) || m.name.find('/') != m.name.size() - kPickle.size()) continue;
    prefix = m.name.substr(0, m.name.size() - kPickle.size() + 1);
    pickle = m.bytes;
    break;
  }
  if (prefix.empty() && IsBegun(file.members_)) {
    return BadInput(
        Msg("{} was begun by torch.save(), which failed before its objects were written (no data.pkl): look for its "
            "error, and save plain tensors, such as torch.save(model.state_dict(), FILE)",
            path));
  }
  if (prefix.empty()) return BadInput(Msg("{} has no data.pkl: it was not written by torch.save()", path));
  std::unordered_map<std::string_view, std::string_view> storages;
  for (const ZipMember& m : file.members_) {
    if (!m.name.starts_with(prefix)) continue;
    const std::string_view name = m.name.substr(prefix.size());
    if (name == "byteorder" && m.bytes != "little") {
      return BadInput(Msg("{} was written on a big-endian machine: load it with torch and save it again", path));
    }
    if (name.starts_with("data/") && !storages.emplace(name.substr(5), m.bytes).second) {
      return BadInput(
          Msg("{} has two members {}: it was not written by torch.save()", path, OneLine(m.name.substr(0, 200))));
    }
  }
  const auto find = [&](std::string_view key) -> const std::string_view* {
    const auto found = storages.find(key);
    return found == storages.end() ? nullptr : &found->second;
  };
  MSP_ASSIGN_OR_RETURN(file.value_, ReadPtPickle(pickle, find, path, objects));
  return file;
}

Status PtFile::VerifyChecksums() const {
  for (const ZipMember& m : members_) {
    if (Crc32(m.bytes.data(), m.bytes.size()) == m.crc) continue;
    return BadInput(Msg("{}: the checksum of {} is wrong: the file was damaged; write it again", path_,
                        OneLine(m.name.substr(0, 200))));
  }
  return OkStatus();
}

}  // namespace msprobe
