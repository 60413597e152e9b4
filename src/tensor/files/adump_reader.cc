#include "tensor/files/adump_reader.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/tensor_reader.h"
#include "tensor/files/wire.h"

namespace msprobe {
namespace {

constexpr size_t kLength = 8, kMostHeader = size_t{16} << 20, kMostTensors = 100'000;
constexpr uint64_t kMostPadding = 64;  // the device rounds sizes up

struct NumberedType {
  uint64_t number;
  DType dtype;
};
constexpr NumberedType kTypes[] = {
    {1, DType::kFloat32},     {2, DType::kFloat16},       {3, DType::kInt8},           {4, DType::kUInt8},
    {5, DType::kInt16},       {6, DType::kUInt16},        {7, DType::kInt32},          {8, DType::kInt64},
    {9, DType::kUInt32},      {10, DType::kUInt64},       {11, DType::kBool},          {12, DType::kFloat64},
    {16, DType::kComplex64},  {17, DType::kComplex128},   {18, DType::kInt8},          {19, DType::kInt16},
    {20, DType::kInt32},      {21, DType::kUInt8},        {22, DType::kUInt16},        {27, DType::kBFloat16},
    {35, DType::kFloat8E5M2}, {36, DType::kFloat8E4M3FN}, {37, DType::kFloat8E8M0FNU},
};

struct FormatName {
  AscendFormat format;
  std::string_view name;
};
constexpr FormatName kFormats[] = {
    {AscendFormat::kNchw, "NCHW"},
    {AscendFormat::kNhwc, "NHWC"},
    {AscendFormat::kNd, "ND"},
    {AscendFormat::kNc1hwc0, "NC1HWC0"},
    {AscendFormat::kFractalZ, "FRACTAL_Z"},
    {AscendFormat::kC1hwnc0, "C1HWNC0"},
    {AscendFormat::kNc1hwc0C04, "NC1HWC0_C04"},
    {AscendFormat::kHwcn, "HWCN"},
    {AscendFormat::kNdhwc, "NDHWC"},
    {AscendFormat::kFractalNz, "FRACTAL_NZ"},
    {AscendFormat::kNcdhw, "NCDHW"},
    {AscendFormat::kNdc1hwc0, "NDC1HWC0"},
    {AscendFormat::kFractalZ3d, "FRACTAL_Z_3D"},
};

/// Message Shape: its numbers one by one, or packed.
bool ReadShape(std::string_view bytes, std::vector<int64_t>* out) {
  out->clear();
  Wire wire(bytes);
  const auto add = [out](uint64_t n) {
    if (out->size() == kMaxDims || n > static_cast<uint64_t>(INT64_MAX)) return false;
    out->push_back(static_cast<int64_t>(n));
    return true;
  };
  for (Wire::Member m; wire.Next(&m);) {
    if (m.number != 1) continue;
    if (!m.text) {
      if (!add(m.value)) return false;
      continue;
    }
    Wire packed(m.bytes);
    while (!packed.empty() && packed.good()) {
      if (!add(packed.Number())) return false;
    }
    if (!packed.good()) return false;
  }
  return wire.good();
}

struct Described {
  AdumpTensor tensor;
  uint64_t type = 0, format = 0, size = 0;
  std::string_view data;  // values inside the header, as older runtimes have them
};

/// Messages OpInput and OpOutput, of which the second has one member more in the middle.
bool ReadTensor(std::string_view bytes, bool output, Described* out) {
  out->tensor.output = output;
  Wire wire(bytes);
  for (Wire::Member m; wire.Next(&m);) {
    uint32_t number = m.number;
    if (!output && number > 3) ++number;
    enum Number : uint8_t { kType = 1, kFormat = 2, kShape = 3, kData = 5, kSize = 6, kOriginalShape = 7 };
    if (number == kType) out->type = m.value;
    if (number == kFormat) out->format = m.value;
    if (number == kSize) out->size = m.value;
    if (number == kData && m.text) out->data = m.bytes;
    if (number == kShape && m.text && !ReadShape(m.bytes, &out->tensor.tensor.shape)) return false;
    if (number == kOriginalShape && m.text && !ReadShape(m.bytes, &out->tensor.original_shape)) return false;
  }
  return wire.good();
}

bool ReadBuffer(std::string_view bytes, AdumpBuffer* out, uint64_t* size) {
  Wire wire(bytes);
  for (Wire::Member m; wire.Next(&m);) {
    if (m.number == 1) out->type = m.value;
    if (m.number == 3) *size = m.value;
  }
  return wire.good();
}

/// What a tensor's numbers mean, once its bytes are known.
void Finish(Described* described) {
  AdumpTensor& t = described->tensor;
  t.format = AscendFormat::kOther;
  for (const FormatName& f : kFormats) {
    if (static_cast<uint64_t>(f.format) == described->format) t.format = f.format;
  }
  for (const NumberedType& n : kTypes) {
    if (n.number == described->type) t.tensor.dtype = n.dtype;
  }
  t.tensor.name = (t.output ? "output." : "input.") + std::to_string(t.index);
  t.tensor.data = t.bytes.data();
  uint64_t size = 0;
  if (t.tensor.dtype == DType::kUnknown) {
    t.why = Msg("its type, number {} of Ascend, is not read", described->type);
  } else if (!SetContiguous(&t.tensor, t.bytes.size(), &size)) {
    t.why = Msg("its shape needs more bytes than it has");
  } else if (t.bytes.size() - size > kMostPadding) {
    t.why = Msg("it has {} bytes, its shape gives {}", t.bytes.size(), size);
  }
}

}  // namespace

std::string_view AscendFormatName(AscendFormat format) {
  for (const FormatName& f : kFormats) {
    if (f.format == format) return f.name;
  }
  return {};
}

bool LooksLikeAdump(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < kLength + 2) return false;
  std::memcpy(&length, bytes.data(), kLength);
  if (length < 2 || length > bytes.size() - kLength || length > kMostHeader) return false;
  const auto key = static_cast<unsigned char>(bytes[kLength]);
  return key >> 3 >= 1 && key >> 3 <= 8 && ((key & 7) == 0 || (key & 7) == 2);
}

StatusOr<AdumpFile> ReadAdump(std::string_view bytes, const std::string& path) {
  const auto bad = [&](const Message& why) {
    return BadInput(Msg("{} is no dump of a kernel: {}", OneLine(path), why));
  };
  uint64_t length = 0;
  if (bytes.size() < kLength) return bad(Msg("it is shorter than the length of its header"));
  std::memcpy(&length, bytes.data(), kLength);
  if (length > bytes.size() - kLength) return bad(Msg("its header goes on behind the end of the file"));
  if (length == 0 || length > kMostHeader) return bad(Msg("its header has an impossible length"));

  AdumpFile out;
  std::vector<Described> inputs, outputs;
  std::vector<uint64_t> buffer_sizes;
  Wire wire(bytes.substr(kLength, length));
  for (Wire::Member m; wire.Next(&m);) {
    enum Number : uint8_t { kOutput = 3, kInput = 4, kBuffer = 5, kOpName = 6 };
    if (inputs.size() + outputs.size() + out.buffers.size() > kMostTensors)
      return bad(Msg("it lists more than any kernel"));
    if (!m.text) continue;
    if (m.number == kOutput || m.number == kInput) {
      std::vector<Described>& list = m.number == kOutput ? outputs : inputs;
      Described& t = list.emplace_back();
      t.tensor.index = static_cast<uint32_t>(list.size() - 1);
      if (!ReadTensor(m.bytes, m.number == kOutput, &t)) return bad(Msg("its header is damaged"));
    } else if (m.number == kBuffer) {
      buffer_sizes.push_back(0);
      if (!ReadBuffer(m.bytes, &out.buffers.emplace_back(), &buffer_sizes.back()))
        return bad(Msg("its header is damaged"));
    } else if (m.number == kOpName) {
      out.op_name = m.bytes;
    }
  }
  if (!wire.good()) return bad(Msg("its header is damaged"));
  std::string_view rest = bytes.substr(kLength + length);
  const auto take = [&rest](uint64_t size, std::string_view* to) {
    if (size > rest.size()) return false;
    *to = rest.substr(0, size);
    rest.remove_prefix(size);
    return true;
  };
  for (std::vector<Described>* list : {&inputs, &outputs}) {
    for (Described& t : *list) {
      if (!t.data.empty()) {
        t.tensor.bytes = t.data;
      } else if (!take(t.size, &t.tensor.bytes)) {
        return bad(Msg("it ends before its values do: copy it again, or dump again"));
      }
      Finish(&t);
      out.tensors.push_back(std::move(t.tensor));
    }
  }
  for (size_t i = 0; i < out.buffers.size(); ++i) {
    if (!take(buffer_sizes[i], &out.buffers[i].bytes)) return bad(Msg("it ends before its values do: dump again"));
  }
  return out;
}

constinit const TensorReader kAdumpReader{
    LooksLikeAdump, [](std::string_view bytes, const std::string& path, DType) -> StatusOr<std::vector<FileTensor>> {
      MSP_ASSIGN_OR_RETURN(AdumpFile file, ReadAdump(bytes, path));
      std::vector<FileTensor> tensors;
      for (AdumpTensor& t : file.tensors) {
        if (!t.why.empty()) return BadInput(Msg("{}, {}: {}", OneLine(path), t.tensor.name, t.why));
        tensors.push_back(std::move(t.tensor));
      }
      return tensors;
    }};

}  // namespace msprobe
