#include "curves/event_curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/message.h"
#include "base/text.h"
#include "curves/known_names.h"
#include "tensor/files/wire.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr size_t kMaxTags = 10'000;
constexpr size_t kMaxRecord = 64 << 20;  // bytes; a record may hold pictures
constexpr uint32_t kCastagnoli = 0x82F63B78U;

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kCastagnoli : 0);
    out[i] = crc;
  }
  return out;
}();

/// CRC-32C as TFRecord stores it: rotated, with a number added.
uint32_t MaskedCrc(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <typename T>
T LittleEndian(std::string_view bytes) {
  T out = 0;
  for (size_t i = 0; i < sizeof(T) && i < bytes.size(); ++i) {
    out |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return out;
}

float FloatOf(std::string_view bytes) {
  const auto bits = LittleEndian<uint32_t>(bytes);
  float out = 0;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

double DoubleOf(std::string_view bytes) {
  const auto bits = LittleEndian<uint64_t>(bytes);
  double out = 0;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

/// The value of a TensorProto of one float or double.
std::optional<double> ScalarOfTensor(std::string_view message) {
  enum Field : uint8_t { kType = 1, kContent = 4, kFloats = 5, kDoubles = 6 };
  uint64_t type = 0;
  std::string_view content, floats, doubles;
  Wire wire(message);
  for (Wire::Member m; wire.Next(&m);) {
    if (m.number == kType) type = m.value;
    if (m.number == kContent && m.text) content = m.bytes;
    if (m.number == kFloats) floats = m.bytes;
    if (m.number == kDoubles) doubles = m.bytes;
  }
  if (!wire.good()) return std::nullopt;
  if (floats.size() == 4) return FloatOf(floats);
  if (doubles.size() == 8) return DoubleOf(doubles);
  if (type == 1 && content.size() == 4) return FloatOf(content);
  if (type == 2 && content.size() == 8) return DoubleOf(content);
  return std::nullopt;
}

struct TagPoint {
  int64_t step;
  double value;
};

class EventReader {
 public:
  Status Read(std::string_view file, const std::string& path) {
    size_t at = 0;
    while (at < file.size()) {
      // u64 length, u32 CRC of it, the bytes, u32 CRC of them
      const std::string_view rest = file.substr(at);
      if (rest.size() < 12) return Cut(path);
      const auto length = LittleEndian<uint64_t>(rest.substr(0, 8));
      if (LittleEndian<uint32_t>(rest.substr(8, 4)) != MaskedCrc(rest.substr(0, 8))) return Damaged(path, at);
      if (length > kMaxRecord) return Damaged(path, at);
      if (rest.size() < 16 + length) return Cut(path);
      const std::string_view record = rest.substr(12, length);
      if (LittleEndian<uint32_t>(rest.substr(12 + length, 4)) != MaskedCrc(record)) return Damaged(path, at);
      MSP_RETURN_IF_ERROR(ReadEvent(record, path, at));
      at += 16 + length;
    }
    return OkStatus();
  }

  StatusOr<RunCurves> Take(const std::string& path, const CurveNames& names) {
    std::vector<std::string> tags;
    for (const auto& [tag, points] : points_) tags.push_back(tag);
    RunCurves out{path, "TensorBoard", {}, {}, std::move(notes_)};
    CurveCollector collector;
    out.others = tags;
    for (const CurveKind kind : kCurveKinds) {
      const int found = FindCurveName(tags, kind, names);
      if (found < 0) continue;
      std::erase(out.others, tags[static_cast<size_t>(found)]);
      const double scale = tags[static_cast<size_t>(found)].ends_with("(1e-3)") ? 1e-3 : 1;
      for (const TagPoint& p : points_[tags[static_cast<size_t>(found)]]) {
        MSP_RETURN_IF_ERROR(
            collector.Add(kind, p.step, p.value * scale, std::fabs(p.value * scale) * InfoOf(DType::kFloat32).eps()));
      }
    }
    if (collector.count(CurveKind::kLoss) == 0) {
      if (tags.size() > 12) tags.resize(12);
      return BadInput(Msg("{} has no tag that is known as a loss: name it with --loss ({})", OneLine(path),
                          OneLine(fmt::format("{}", fmt::join(tags, ", ")))));
    }
    std::erase_if(out.others, [](const std::string& tag) { return IsOfMachines(tag); });
    collector.Finish(&out);
    return out;
  }

 private:
  static Status Damaged(const std::string& path, size_t at) {
    return BadInput(Msg("{} is damaged at byte {}: copy it again from where the training wrote it", OneLine(path), at));
  }
  Status Cut(const std::string& path) {
    notes_.push_back(Msg("{} breaks off within a record: what is before is used", OneLine(path)));
    return OkStatus();
  }

  Status ReadEvent(std::string_view record, const std::string& path, size_t at) {
    enum Field : uint8_t { kStep = 2, kSummary = 5 };
    int64_t step = 0;
    std::vector<std::string_view> summaries;
    Wire wire(record);
    for (Wire::Member m; wire.Next(&m);) {
      if (m.number == kStep) step = static_cast<int64_t>(m.value);
      if (m.number == kSummary && m.text) summaries.push_back(m.bytes);
    }
    if (!wire.good()) return Damaged(path, at);
    for (const std::string_view summary : summaries) {
      Wire values(summary);
      for (Wire::Member m; values.Next(&m);) {
        if (m.number == 1 && m.text) MSP_RETURN_IF_ERROR(ReadValue(m.bytes, step, path, at));
      }
      if (!values.good()) return Damaged(path, at);
    }
    return OkStatus();
  }

  Status ReadValue(std::string_view message, int64_t step, const std::string& path, size_t at) {
    enum Field : uint8_t { kTag = 1, kSimple = 2, kTensor = 8 };
    std::string_view tag;
    std::optional<double> value;
    Wire wire(message);
    for (Wire::Member m; wire.Next(&m);) {
      if (m.number == kTag && m.text) tag = m.bytes;
      if (m.number == kSimple && m.bytes.size() == 4) value = FloatOf(m.bytes);
      if (m.number == kTensor && m.text) value = ScalarOfTensor(m.bytes);
    }
    if (!wire.good()) return Damaged(path, at);
    if (!value || tag.size() > 1000) return OkStatus();
    auto found = points_.find(std::string(tag));
    if (found == points_.end()) {
      if (points_.size() >= kMaxTags) return OkStatus();
      found = points_.emplace(tag, std::vector<TagPoint>()).first;
    }
    if (++count_ > 4 * kMaxCurvePoints) {
      return BadInput(Msg("{} holds too many values: give the event file of one training", OneLine(path)));
    }
    found->second.push_back({step, *value});
    return OkStatus();
  }

  std::map<std::string, std::vector<TagPoint>> points_;
  std::vector<Message> notes_;
  size_t count_ = 0;
};

}  // namespace

bool IsEventFile(std::string_view name) { return name.find("tfevents") != std::string_view::npos; }

StatusOr<RunCurves> ReadEventCurves(const std::vector<std::string_view>& files, const std::string& path,
                                    const CurveNames& names) {
  EventReader reader;
  for (const std::string_view file : files) MSP_RETURN_IF_ERROR(reader.Read(file, path));
  return reader.Take(path, names);
}

}  // namespace msprobe
