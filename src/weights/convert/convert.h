// A checkpoint of any format written as one file for another framework.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weights/convert/convert_plan.h"

namespace msprobe {

struct ConvertOptions {
  std::optional<NamesOf> names;   // nothing: those of the framework whose file is written
  std::string like;               // a checkpoint whose names and layout are taken
  std::string map;                // a file of ReadMapFile()
  DType dtype = DType::kUnknown;  // of floating-point weights; kUnknown: as they are
};

struct ConvertReport {
  std::string format;  // of the input
  size_t tensors = 0;
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> names;  // from, to
  std::vector<std::string> left_out;
  std::vector<Message> notes;
};

/// `output` ends in .ckpt (MindSpore), .safetensors, or .pt, .pth, .bin (torch.save()) and does not exist yet.
StatusOr<ConvertReport> ConvertCheckpoint(const std::string& input, const std::string& output,
                                          const ConvertOptions& options);

}  // namespace msprobe
