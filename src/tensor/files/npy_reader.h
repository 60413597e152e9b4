// The files of numpy.save(): one array behind a header.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

/// Versions 1 to 3, in C or Fortran order. Refuses what is not an array of little-endian numbers: objects (which are
/// pickled), texts, records. Types that numpy does not name are stored as so many bytes: those of one byte are what
/// `dtype` says, those of two are bfloat16 where `dtype` does not say otherwise.
StatusOr<FileTensor> ReadNpy(std::string_view bytes, const std::string& path, DType dtype);

}  // namespace msprobe
