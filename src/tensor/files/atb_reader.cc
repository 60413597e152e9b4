#include "tensor/files/atb_reader.h"

#include <charconv>
#include <utility>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMostHeader = 64 << 10, kMostDims = 32;

/// The numbers that ATB gives to dtypes.
constexpr std::pair<int64_t, DType> kTypes[] = {
    {0, DType::kFloat32}, {1, DType::kFloat16}, {2, DType::kInt8},      {3, DType::kInt32},
    {9, DType::kInt64},   {12, DType::kBool},   {27, DType::kBFloat16},
};

bool ReadNumber(std::string_view text, int64_t* out) {
  while (StartsWith(text, " ")) text.remove_prefix(1);
  while (EndsWith(text, " ")) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool ReadDims(std::string_view text, std::vector<int64_t>* out) {
  out->clear();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int64_t n = 0;
    if (out->size() == kMostDims || !ReadNumber(text.substr(at, end - at), &n) || n < 0) return false;
    out->push_back(n);
    at = end + 1;
  }
  return true;
}

}  // namespace

StatusOr<FileTensor> ReadAtb(std::string_view bytes, const std::string& path) {
  const auto bad = [&](const Message& why) {
    return BadInput(Msg("{} is not a tensor file of ATB: {}", OneLine(path), why));
  };
  FileTensor out;
  int64_t type = -1;
  for (size_t at = 0; at < bytes.size() && at < kMostHeader;) {
    const size_t end = bytes.substr(0, at + kMostHeader).find('\n', at);
    if (end == std::string_view::npos) break;
    const std::string_view line = bytes.substr(at, end - at);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.find('=', equals + 1) != std::string_view::npos) {
      return bad(Msg("its header has a line without \"key=value\""));
    }
    const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
    at = end + 1;
    if (key == "dtype") {
      if (!ReadNumber(value, &type)) return bad(Msg("its dtype is not a number"));
    } else if (key == "dims") {
      if (!ReadDims(value, &out.shape)) return bad(Msg("its dims are not a list of lengths"));
    } else if (key == "data") {
      return bad(Msg("its values are in a different file"));
    } else if (key == "$End") {
      for (const auto& [number, dtype] : kTypes) {
        if (number == type) out.dtype = dtype;
      }
      if (out.dtype == DType::kUnknown) return bad(Msg("dtype {} is not known", type));
      uint64_t size = 0;
      if (!SetContiguous(&out, bytes.size() - at, &size) || size != bytes.size() - at) {
        return bad(Msg("it holds {} bytes, its dims give a different number", bytes.size() - at));
      }
      out.data = bytes.data() + at;
      return out;
    }
  }
  return bad(Msg("its header has no end"));
}

}  // namespace msprobe
