#include "graph/flow/flow.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace msprobe {
namespace {

constexpr uint64_t Mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

uint64_t HashText(uint64_t h, std::string_view s) {
  for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return Mix(h, s.size());
}

/// -0 is 0; integers and floating-point numbers of the same value are the same.
uint64_t Bits(double d) { return std::bit_cast<uint64_t>(d == 0 ? 0.0 : d); }

/// Number of elements, and a hash of the shape; false without a shape.
bool ReadShape(const JsonValue* dims, uint64_t* elements, uint16_t* hash) {
  if (!dims || !dims->IsArray()) return false;
  uint64_t count = 1, h = 1;
  for (const JsonValue& d : dims->Items()) {
    if (!d.IsUInt()) return false;
    count *= d.UInt();
    h = Mix(h, d.UInt());
  }
  *elements = count;
  *hash = static_cast<uint16_t>(h >> 16);
  return true;
}

bool ReadItem(const ItemView& source, FlowItem* item) {
  uint64_t elements = 0;
  if (!ReadShape(source.dims, &elements, &item->shape) || elements == 0) return false;
  const StatValue &max = source.stats[kMax], &min = source.stats[kMin];
  uint64_t h = HashText(elements + 1, source.dtype);
  // A scalar has a checksum too, made up from its text; tensors are those with a shape.
  const bool numbers = max.IsNumber() && min.IsNumber();
  item->weak =
      !numbers || max.AsDouble() == min.AsDouble() || !std::isfinite(max.AsDouble()) || !std::isfinite(min.AsDouble());
  // One element: its value says much, unless it is a small integer as counters and factors are.
  if (numbers && elements == 1) item->weak = max.AsDouble() == std::floor(max.AsDouble());
  item->checksum = source.dumped_sum != nullptr;
  if (item->checksum) {
    std::string text;
    AppendPyValue(&text, *source.dumped_sum);
    h = HashText(h, text);
  } else {
    if (!numbers) return false;
    for (const StatValue& v : source.stats) {
      h = v.IsNumber() ? Mix(h, Bits(v.AsDouble())) : Mix(h, 0x5bd1e995);
    }
  }
  item->key = h == 0 ? 1 : h;
  return true;
}

FlowTrust TrustOf(const FlowItem& item, uint16_t shape, bool repeated) {
  if (item.weak) return FlowTrust::kConstant;
  if (item.shape != shape) return FlowTrust::kOtherShape;
  if (repeated) return FlowTrust::kRepeated;
  return item.checksum ? FlowTrust::kChecksum : FlowTrust::kStatistics;
}

}  // namespace

void ReadFlowItems(const std::vector<ItemView>& items, size_t count, std::vector<FlowItem>* out) {
  std::array<size_t, 2> position{};
  for (size_t i = 0; i < count; ++i) {
    const ItemState state = items[i].state;
    const bool output = state == ItemState::kOutput;
    const size_t at = position[output ? 1 : 0]++;
    if (at > UINT16_MAX || !(output || state == ItemState::kInput || state == ItemState::kKwarg)) continue;
    FlowItem item;
    if (!ReadItem(items[i], &item)) continue;
    item.position = static_cast<uint16_t>(at);
    item.output = output;
    out->push_back(item);
  }
}

int TrustPercent(FlowTrust trust) {
  static constexpr std::array<int, 5> kPercent{20, 60, 80, 95, 99};
  return kPercent[static_cast<size_t>(trust)];
}

FlowFinder::FlowFinder(size_t nodes) : givers_(std::bit_ceil(std::clamp<size_t>(nodes, 64, size_t{1} << 20))) {}

FlowFinder::Giver* FlowFinder::Place(uint64_t key) {
  const size_t mask = givers_.size() - 1;
  for (size_t i = key & mask;; i = (i + 1) & mask) {
    if (givers_[i].key == key || givers_[i].key == 0) return &givers_[i];
  }
}

void FlowFinder::Expect(const std::vector<FlowItem>& items) const {
  for (const FlowItem& item : items) __builtin_prefetch(&givers_[item.key & (givers_.size() - 1)], 1);
}

void FlowFinder::Grow() {
  std::vector<Giver> before(givers_.size() * 2);
  before.swap(givers_);
  for (const Giver& g : before)
    if (g.key != 0) *Place(g.key) = g;
}

void FlowFinder::Add(uint32_t node, const FlowItem* items, size_t count, bool container, std::vector<FlowEdge>* edges) {
  for (size_t i = 0; i < count && !container; ++i) {
    const FlowItem& item = items[i];
    if (item.output) continue;
    const Giver* giver = Place(item.key);
    if (giver->key == 0) continue;
    edges->push_back({node, giver->node, item.position, giver->output, TrustOf(item, giver->shape, giver->repeated)});
  }
  for (size_t i = 0; i < count; ++i) {
    const FlowItem& item = items[i];
    if (!item.output) continue;
    if (used_ * 2 >= givers_.size()) Grow();
    Giver* giver = Place(item.key);
    const bool known = giver->key != 0;
    if (known && (container || giver->node == node)) continue;
    used_ += known ? 0 : 1;
    *giver = {item.key, node, item.position, item.shape, known};
  }
}

void AppendVarint(std::string& out, uint64_t v) {
  for (; v >= 128; v >>= 7) out += static_cast<char>(v | 128);
  out += static_cast<char>(v);
}

bool TakeVarint(std::string_view* bytes, uint64_t* v) {
  *v = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *v |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

std::string PackEdges(uint32_t first, const std::vector<FlowEdge>& edges) {
  std::string out;
  uint32_t before = first;
  for (const FlowEdge& e : edges) {
    AppendVarint(out, e.node - before);
    AppendVarint(out, e.input);
    AppendVarint(out, e.node - e.from);
    AppendVarint(out, e.output);
    AppendVarint(out, static_cast<uint64_t>(e.trust));
    before = e.node;
  }
  return out;
}

bool UnpackEdges(uint32_t first, std::string_view bytes, std::vector<FlowEdge>* edges) {
  uint64_t node = first;
  while (!bytes.empty()) {
    std::array<uint64_t, 5> v{};
    for (uint64_t& x : v)
      if (!TakeVarint(&bytes, &x)) return false;
    if (v[0] > UINT32_MAX || node + v[0] > UINT32_MAX || v[1] > UINT16_MAX || v[3] > UINT16_MAX) return false;
    node += v[0];
    if (v[2] > node || v[4] > static_cast<uint64_t>(FlowTrust::kChecksum)) return false;
    edges->push_back({static_cast<uint32_t>(node), static_cast<uint32_t>(node - v[2]), static_cast<uint16_t>(v[1]),
                      static_cast<uint16_t>(v[3]), static_cast<FlowTrust>(v[4])});
  }
  return true;
}

}  // namespace msprobe
