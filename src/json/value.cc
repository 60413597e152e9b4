#include "json/value.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace msprobe {
namespace {

// Holds the values of nearly every op.
constexpr size_t kBlockBytes = size_t{64} << 10;
// What stays with a document from one parse to the next.
constexpr size_t kKeptBytes = size_t{1} << 20;

}  // namespace

const JsonValue JsonValue::kNone;

// The parser bounds the nesting, and with it this recursion.
bool JsonValue::operator==(const JsonValue& o) const {
  if (IsNumber() && o.IsNumber())
    return IsDouble() || o.IsDouble() ? Number() == o.Number() : int_ == o.int_ && kind_ == o.kind_;
  if (kind_ != o.kind_) return false;
  if (IsString()) return Text() == o.Text();
  if (IsArray()) return std::ranges::equal(Items(), o.Items());
  if (IsObject()) {
    return size_ == o.size_ && std::ranges::all_of(Members(), [&](const JsonMember& m) {
             const JsonValue* other = o.Find(m.name);
             return other && *Find(m.name) == *other;
           });
  }
  return int_ == o.int_;
}

JsonArena::JsonArena(JsonArena&& o) noexcept
    : blocks_(std::move(o.blocks_)),
      used_(std::exchange(o.used_, 0)),
      at_(std::exchange(o.at_, nullptr)),
      end_(std::exchange(o.end_, nullptr)) {
  o.blocks_.clear();
}

JsonArena& JsonArena::operator=(JsonArena&& o) noexcept {
  blocks_ = std::exchange(o.blocks_, {});
  used_ = std::exchange(o.used_, 0);
  at_ = std::exchange(o.at_, nullptr);
  end_ = std::exchange(o.end_, nullptr);
  return *this;
}

char* JsonArena::TakeFromNewBlock(size_t bytes) {
  // A kept block that is too small for this stays empty until the next Clear().
  while (used_ < blocks_.size() && blocks_[used_].bytes < bytes) ++used_;
  if (used_ == blocks_.size()) {
    const size_t size = std::max(bytes, blocks_.empty() ? kBlockBytes : std::min(blocks_.back().bytes * 2, kKeptBytes));
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
  }
  const Block& block = blocks_[used_++];
  at_ = block.memory.get() + bytes;
  end_ = block.memory.get() + block.bytes;
  return block.memory.get();
}

std::string_view JsonArena::Keep(std::string_view text) {
  if (text.empty()) return {};
  char* out = Take(text.size());
  std::memcpy(out, text.data(), text.size());
  return {out, text.size()};
}

void JsonArena::Clear() {
  size_t kept = 0, n = 0;
  for (; n < blocks_.size() && kept + blocks_[n].bytes <= kKeptBytes; ++n) kept += blocks_[n].bytes;
  blocks_.resize(n);
  used_ = 0;
  at_ = end_ = nullptr;
}

JsonDoc& JsonDoc::operator=(JsonDoc&& o) noexcept {
  arena_ = std::move(o.arena_);
  stack_ = std::move(o.stack_);
  static_cast<JsonValue&>(*this) = o;
  o.SetNull();
  return *this;
}

void JsonDoc::Clear() {
  SetNull();
  arena_.Clear();
  if (stack_.size() * sizeof(JsonValue) > kKeptBytes) stack_ = {};
}

void JsonDoc::Replace(std::string_view key, const JsonValue* value) {
  std::vector<JsonMember> members(Members().begin(), Members().end());
  const auto old = std::find_if(members.begin(), members.end(), [&](const JsonMember& m) { return m.name == key; });
  if (old != members.end()) {
    *old = members.back();
    members.pop_back();
  }
  if (value) members.push_back({arena_.Keep(key), Copy(*value)});
  const auto kept = arena_.Take<JsonMember>(members.size());
  std::copy(members.begin(), members.end(), kept.begin());
  static_cast<JsonValue&>(*this) = Of(kept);
}

JsonValue JsonDoc::Copy(const JsonValue& value) {
  if (value.IsString()) return Of(arena_.Keep(value.Text()));
  if (value.IsArray()) {
    const auto out = arena_.Take<JsonValue>(value.size());
    std::transform(value.Items().begin(), value.Items().end(), out.begin(),
                   [this](const JsonValue& item) { return Copy(item); });
    return Of(out);
  }
  if (value.IsObject()) {
    const auto out = arena_.Take<JsonMember>(value.size());
    std::transform(value.Members().begin(), value.Members().end(), out.begin(), [this](const JsonMember& m) {
      return JsonMember{arena_.Keep(m.name), Copy(m.value)};
    });
    return Of(out);
  }
  return value;
}

}  // namespace msprobe
