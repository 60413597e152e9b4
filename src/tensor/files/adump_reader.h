// What Ascend's runtime dumps of one run of a kernel: the length of a header, the header (a protobuf message DumpData),
// the values of all inputs, outputs and buffers. Read without the vendor's library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

/// How the axes of a tensor lie in the memory of the device, by the numbers that Ascend gives them.
enum class AscendFormat : uint8_t {
  kNchw = 0,
  kNhwc = 1,
  kNd = 2,
  kNc1hwc0 = 3,
  kFractalZ = 4,
  kC1hwnc0 = 9,
  kNc1hwc0C04 = 12,
  kHwcn = 16,
  kNdhwc = 27,
  kFractalNz = 29,
  kNcdhw = 30,
  kNdc1hwc0 = 32,
  kFractalZ3d = 33,
  kOther = 255,
};
/// "ND", "FRACTAL_NZ"; "" for kOther.
std::string_view AscendFormatName(AscendFormat format);

struct AdumpTensor {
  bool output = false;
  uint32_t index = 0;
  AscendFormat format = AscendFormat::kNchw;
  std::vector<int64_t> original_shape;  // what the framework calls its shape; may be empty
  FileTensor tensor;                    // as the device has it
  std::string_view bytes;               // all of it in the file; longer than `tensor` where the device pads
  Message why;                          // the tensor cannot be read: why; "" otherwise
};

struct AdumpBuffer {
  uint64_t type = 0;
  std::string_view bytes;
};

struct AdumpFile {
  std::string_view op_name;
  std::vector<AdumpTensor> tensors;  // inputs, then outputs
  std::vector<AdumpBuffer> buffers;
};

/// Views into `bytes`. kBadInput, in one line, for what is no such file or ends before its values do.
StatusOr<AdumpFile> ReadAdump(std::string_view bytes, const std::string& path);

/// By the first bytes: a header that lies within the file and begins with a member of the message.
bool LooksLikeAdump(std::string_view bytes);

}  // namespace msprobe
