#include "view/file/node_names.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>

#include "base/message.h"
#include "base/name_hash.h"
#include "base/parallel.h"

namespace msprobe::view {
namespace {

constexpr size_t kMaxHashedNameBytes = UINT16_MAX;
constexpr size_t kMaxChunks = 4096;
constexpr size_t kBlock = 64;
constexpr uint32_t kAhead = 16;  // slots that are on their way into the cache

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool StandsAt(const char* text, std::string_view needle) {
  for (size_t i = 0; i < needle.size(); ++i) {
    if (Lower(text[i]) != needle[i]) return false;
  }
  return true;
}

}  // namespace

void NodeNames::Reserve(size_t names) {
  places_.reserve(names);
  sizes_.reserve(names);
}

Status NodeNames::Append(std::string_view name) {
  if (name.size() > kMaxHashedNameBytes)
    return BadInput(Msg("holds a node name longer than 64 KiB: it was not written by a graph tool"));
  if (chunks_.empty() || (1u << kChunkBits) - chunks_.back().used < name.size()) {
    if (chunks_.size() == kMaxChunks)
      return BadInput(Msg("holds more than 4 GiB of node names: it was not written by a graph tool"));
    chunks_.push_back({std::make_unique_for_overwrite<char[]>(1u << kChunkBits), 0});
  }
  Chunk& chunk = chunks_.back();
  // An empty name behind a full chunk would get a place in the next one, which need not be there.
  const uint32_t at = std::min(chunk.used, kChunkMask);
  places_.push_back(static_cast<uint32_t>(chunks_.size() - 1) << kChunkBits | at);
  sizes_.push_back(static_cast<uint16_t>(name.size()));
  if (!name.empty()) std::memcpy(chunk.text.get() + chunk.used, name.data(), name.size());
  chunk.used += static_cast<uint32_t>(name.size());
  return OkStatus();
}

// The slot of the name, or the one where it belongs.
size_t NodeNames::SlotOf(std::string_view name) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashName64(name) & mask;
  while (slots_[slot] != kNone && (*this)[slots_[slot]] != name) slot = (slot + 1) & mask;
  return slot;
}

void NodeNames::Grow() {
  slots_.assign(std::bit_ceil(sizes_.size() * 3 / 2 + 16), kNone);
  const size_t mask = slots_.size() - 1;
  // Names in a slot are told from others by their hashes first: a look at each would be a miss of the cache.
  std::vector<uint64_t> hashes(size());
  for (uint32_t i = 0; i < size(); ++i) hashes[i] = HashName64((*this)[i]);
  for (uint32_t i = 0; i < size(); ++i) {
    if (i + kAhead < size()) __builtin_prefetch(&slots_[hashes[i + kAhead] & mask], 1);
    size_t slot = hashes[i] & mask;
    while (slots_[slot] != kNone && (hashes[slots_[slot]] != hashes[i] || (*this)[slots_[slot]] != (*this)[i])) {
      slot = (slot + 1) & mask;
    }
    if (slots_[slot] == kNone) slots_[slot] = i;
  }
}

void NodeNames::Index() { Grow(); }

StatusOr<uint32_t> NodeNames::Intern(std::string_view name) {
  if (slots_.size() < sizes_.size() * 4 / 3 + 8) {
    slots_.assign(std::bit_ceil(sizes_.size() * 2 + 64), kNone);
    for (uint32_t i = 0; i < size(); ++i) slots_[SlotOf((*this)[i])] = i;
  }
  const size_t slot = SlotOf(name);
  if (slots_[slot] != kNone) return slots_[slot];
  MSP_RETURN_IF_ERROR(Append(name));
  return slots_[slot] = size() - 1;
}

uint32_t NodeNames::Find(std::string_view name) const { return slots_.empty() ? kNone : slots_[SlotOf(name)]; }

// Every name stands in one chunk, so that chunks mark names of their own.
void NodeNames::MarkContaining(size_t chunk, std::string_view needle, std::vector<uint8_t>* found) const {
  const std::string_view text(chunks_[chunk].text.get(), chunks_[chunk].used);
  const auto first = std::lower_bound(places_.begin(), places_.end(), chunk << kChunkBits);
  auto name = static_cast<uint32_t>(first - places_.begin());  // which stands where the search is, or before it
  for (size_t at = FindNoCase(text, needle, 0); at != std::string_view::npos;) {
    const size_t place = chunk << kChunkBits | at;
    while (name + 1 < size() && places_[name + 1] <= place) ++name;
    const size_t end = (places_[name] & kChunkMask) + sizes_[name];
    if (at + needle.size() <= end) (*found)[name] = 1;  // else it reaches into the next name
    at = FindNoCase(text, needle, std::max(end, at + 1));
  }
}

std::vector<uint8_t> NodeNames::Containing(std::string_view needle) const {
  std::vector<uint8_t> found(size(), needle.empty());
  if (needle.empty()) return found;
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t chunk = next++; chunk < chunks_.size(); chunk = next++) MarkContaining(chunk, needle, &found);
  };
  const size_t threads = std::min<size_t>(static_cast<size_t>(ThreadCount()), chunks_.size());
  std::vector<std::thread> others = StartThreads(threads > 1 ? threads - 1 : 0, work);
  work();
  for (std::thread& thread : others) thread.join();
  return found;
}

size_t NodeNames::bytes() const {
  return (chunks_.size() << kChunkBits) + places_.capacity() * sizeof(uint32_t) + sizes_.capacity() * sizeof(uint16_t) +
         slots_.capacity() * sizeof(uint32_t);
}

size_t FindNoCase(std::string_view text, std::string_view needle, size_t from) {
  if (needle.size() > text.size()) return std::string_view::npos;
  const size_t places = text.size() - needle.size() + 1;
  // Three letters at once for a block of places, in a loop that compilers turn into vector instructions. Bit 5 is the
  // case of letters; that it makes other characters alike as well costs a look, no more.
  const auto fold = [](char c) { return static_cast<uint8_t>(static_cast<uint8_t>(c) | 0x20); };
  const uint8_t a = fold(needle.front()), b = fold(needle[needle.size() / 2]), c = fold(needle.back());
  size_t at = from;
  for (; at + kBlock <= places; at += kBlock) {
    const char* first = text.data() + at;
    const char* middle = first + needle.size() / 2;
    const char* last = first + needle.size() - 1;
    uint8_t any = 0;
    for (size_t i = 0; i < kBlock; ++i)
      any |= uint8_t{fold(first[i]) == a} & uint8_t{fold(middle[i]) == b} & uint8_t{fold(last[i]) == c};
    if (any == 0) continue;
    for (size_t i = 0; i < kBlock; ++i) {
      if (StandsAt(first + i, needle)) return at + i;
    }
  }
  for (; at < places; ++at) {
    if (StandsAt(text.data() + at, needle)) return at;
  }
  return std::string_view::npos;
}

}  // namespace msprobe::view
