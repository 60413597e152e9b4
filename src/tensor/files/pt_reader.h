// Reads the files of torch.save() without executing what is in them: tensors, and lists, tuples and dicts of tensors
// and plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "tensor/files/pt_value.h"
#include "tensor/files/zip_reader.h"

namespace msprobe {

/// Views of the file stay valid as long as this object.
class PtFile {
 public:
  /// kBadInput for what is no such file, or holds other objects than those above. The legacy format of torch.save(),
  /// before zip archives, is refused with a line that says so.
  static StatusOr<PtFile> Open(const std::string& path);
  /// `bytes` outlive the object; `path` is for error texts.
  static StatusOr<PtFile> Parse(std::string_view bytes, const std::string& path,
                                PtObjects objects = PtObjects::kRefused);

  const PtValue& value() const { return value_; }
  /// The tensor of a file that holds one and nothing else; null otherwise.
  const PtTensor* tensor() const { return value_.kind == PtValue::Kind::kTensor ? value_.tensor.get() : nullptr; }
  /// Compares the checksums of all members with their bytes.
  Status VerifyChecksums() const;

 private:
  std::string path_;
  std::optional<MappedFile> map_;
  std::vector<ZipMember> members_;
  PtValue value_;
};

}  // namespace msprobe
