// Weights as they are to be written: under new names, in another type or layout, their elements still in the files that
// they come from.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint.h"

namespace msprobe {

struct OutWeight {
  std::string name;
  std::vector<int64_t> shape;  // of as many elements as the tensor, in the same order
  DType dtype = DType::kUnknown;
  WeightTensor tensor;  // its `plus` is added to every element
};

/// The elements in C order, in `dtype`, piece by piece; the memory of what was read is given back.
Status StreamElements(const Checkpoint& from, const OutWeight& weight,
                      const std::function<Status(std::string_view)>& take);

/// Rounded to the nearest, ties to even; false for types that are no floating-point numbers of 16 bits or more.
bool FromDoubles(DType dtype, const double* from, size_t n, char* to);

/// Each writes a whole file or none. kBadInput for types and names that the format does not know.
Status WriteTorchFile(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights);
Status WriteSafetensorsFile(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights);
Status WriteMindSporeFile(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights);

}  // namespace msprobe
