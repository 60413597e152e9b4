// Files as torch.save() writes them for one tensor: a zip archive of stored members, the elements aligned to 64 bytes,
// and a pickle that names nothing but torch's own tensor and storage types.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/kernels/stats.h"

namespace msprobe {

/// What stands before and after the elements in the file.
struct PtFrame {
  std::string head, tail;
};

/// `stem` is the archive's directory, as torch.save() takes it from the file name; `crc` is that of the elements, which
/// lie in C order. False for dtypes and shapes that no tensor has.
bool MakePtFrame(DType dtype, std::span<const int64_t> shape, std::string_view stem, uint32_t crc, PtFrame* out);

/// Writes `path` (mode 0640) with the elements of `t`, which are read where they lie: a strided tensor is not copied as
/// a whole. The file appears complete or not at all; an existing one is replaced. Adds the size of the file to `bytes`.
Status WritePtFile(const std::string& path, const TensorView& t, uint64_t* bytes);

}  // namespace msprobe
