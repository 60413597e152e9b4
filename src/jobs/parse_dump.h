// `msprobe parse`: dumps of Ascend's kernels and of ATB as files of numpy or PyTorch.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct ParseSettings {
  std::string path;  // a file, or a directory whose files are converted; those below it are not
  std::string output;
  bool numpy = false;  // else .pt
  bool host = false;   // formats of the device as the framework knows the tensor: NC1HWC0 as NCHW
};

struct ParseReport {
  std::vector<std::string> written;  // names below `output`
  std::vector<Message> warnings;
  std::vector<std::pair<std::string, Status>> failures;  // files that could not be converted, with their whole paths
  std::string failed_list;                               // the file that names them; "" without
};

/// Each tensor of FILE becomes FILE.input.N.npy, FILE.output.N.npy; a buffer FILE.l1buffer.N.bin; records of overflows
/// FILE.output.N.json; a tensor of ATB takes the place of ".bin". Files of other kinds are passed over. A file that
/// cannot be read does not keep the others from being converted. kBadInput when there is nothing to convert.
StatusOr<ParseReport> ParseDump(const ParseSettings& settings);

}  // namespace msprobe
