// Messages of protobuf, read where they lie.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

/// The wire format of protobuf: numbers and stretches of bytes, each behind a key.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : rest_(bytes) {}

  struct Member {
    uint32_t number = 0;
    bool text = false;
    uint64_t value = 0;
    std::string_view bytes;
  };
  /// False at the end, and where the message is damaged: good() tells which.
  bool Next(Member* out) {
    if (rest_.empty() || !good_) return false;
    const uint64_t key = Number();
    out->number = key >> 3 > UINT32_MAX ? 0 : static_cast<uint32_t>(key >> 3);
    out->text = false;
    out->value = 0;
    enum Kind : uint8_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };
    switch (key & 7) {
      case kVarint: out->value = Number(); break;
      case kEight: Take(8, &out->bytes); break;
      case kFour: Take(4, &out->bytes); break;
      case kBytes:
        out->text = true;
        Take(Number(), &out->bytes);
        break;
      default: good_ = false;
    }
    good_ = good_ && out->number != 0;
    return good_;
  }
  uint64_t Number() {
    uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      out |= uint64_t{byte & 127U} << shift;
      if (byte < 128) return out;
    }
    good_ = false;
    return 0;
  }
  bool empty() const { return rest_.empty(); }
  bool good() const { return good_; }

 private:
  void Take(uint64_t n, std::string_view* out) {
    good_ = good_ && n <= rest_.size();
    if (!good_) return;
    *out = rest_.substr(0, n);
    rest_.remove_prefix(n);
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace msprobe
