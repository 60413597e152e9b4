#include "view/values/activations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "json/writer.h"
#include "tensor/kernels/finfo.h"
#include "view/values/layer_finder.h"

namespace msprobe::view {
namespace {

constexpr double kHuge = InfoOf(DType::kFloat16).largest;
constexpr double kLowest = -1e38;  // of float32 and bfloat16, about
constexpr int kCollection = 9;     // type of a node that only collects others
constexpr std::array<std::string_view, kActivationKinds> kKindNames{"not_finite", "huge", "dead", "constant", "mask"};

std::string_view ValueOf(const ViewRow& row, std::string_view key) {
  for (const auto& [name, value] : row.values) {
    if (name == key) return value;
  }
  return {};
}

std::optional<double> NumberOf(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The numbers of a text, as "[2, 3]" or "torch.float16" have them.
std::vector<uint64_t> NumbersIn(std::string_view text) {
  std::vector<uint64_t> out;
  for (size_t at = 0; at < text.size();) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc()) {
      ++at;
      continue;
    }
    out.push_back(value);
    at = static_cast<size_t>(end - text.data());
  }
  return out;
}

uint64_t BytesOf(std::string_view shape, std::string_view dtype) {
  if (shape.empty()) return 0;
  const std::vector<uint64_t> bits = NumbersIn(dtype);
  uint64_t bytes = std::max<uint64_t>(bits.empty() ? 1 : bits[0] / 8, 1);
  for (const uint64_t n : NumbersIn(shape)) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) return 0;
  }
  return bytes;
}

bool IsFloat(std::string_view dtype) { return Contains(dtype, "float") || Contains(dtype, "Float"); }

/// Of the figures of an output, unless there are none.
struct Figures {
  std::string_view max_text, min_text;
  std::optional<double> max, min, norm;
  // The norm of finite values may be infinite.
  bool finite() const {
    if (!max && !min) return !norm || std::isfinite(*norm);
    return std::isfinite(max.value_or(0)) && std::isfinite(min.value_or(0));
  }
  bool mask() const { return min && *min < kLowest && (!max || (std::isfinite(*max) && *max > kLowest)); }
  double size() const { return std::max(std::abs(max.value_or(0)), mask() ? 0 : std::abs(min.value_or(0))); }
};

std::optional<std::pair<ActivationKind, std::string_view>> KindOf(const Figures& f, uint64_t elements) {
  if (f.mask()) return std::pair(ActivationKind::kMask, f.min_text);
  if (!f.finite()) {
    const bool by_max = f.max && !std::isfinite(*f.max);
    return std::pair(ActivationKind::kNotFinite, by_max ? f.max_text : f.min_text);
  }
  if (!f.max || !f.min) return std::nullopt;
  if (f.size() > kHuge) {
    return std::pair(ActivationKind::kHuge, std::abs(*f.max) >= std::abs(*f.min) ? f.max_text : f.min_text);
  }
  if (*f.max != *f.min || elements < 2) return std::nullopt;
  return std::pair(*f.max == 0 ? ActivationKind::kDead : ActivationKind::kConstant, f.max_text);
}

void Grow(std::optional<double> value, std::optional<double>* largest) {
  if (value && (!*largest || *value > **largest)) *largest = value;
}

class ActivationFinder {
 public:
  ActivationFinder(const VisFile& file, const Tree& tree) : file_(file), tree_(tree), layers_(tree) {}

  StatusOr<Activations> Find() {
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      if (!tree_.IsLeaf(i) || tree_.Type(i) == kCollection || i == tree_.root() || IsUpdate(i)) continue;
      if (++out_.ops > kMostActivationOps) continue;
      ++out_.read;
      MSP_ASSIGN_OR_RETURN(const NodeRecord record, file_.LoadRecord(tree_[i].rowid));
      for (const ViewRow& row : record.outputs) Add(i, row);
    }
    return std::move(out_);
  }

 private:
  // Of the weights: what it computes is zero or constant as often as not.
  bool IsUpdate(uint32_t node) const {
    const uint32_t up = tree_.Parent(node);
    return up != kNoNode && (tree_.Name(up) == "optimizer" || tree_.Name(up) == "clip_grad");
  }

  void Add(uint32_t node, const ViewRow& row) {
    ActivationItem item{{}, row.name, std::string(ValueOf(row, "shape")), std::string(ValueOf(row, "dtype")), {}, 0};
    if (item.shape.empty() || item.dtype.empty()) return;
    item.bytes = BytesOf(item.shape, item.dtype);
    AddLargest(node, item);
    if (!IsFloat(item.dtype)) return;
    ++out_.items;
    Figures f{ValueOf(row, "Max"), ValueOf(row, "Min"), {}, {}, NumberOf(ValueOf(row, "Norm"))};
    f.max = NumberOf(f.max_text);
    f.min = NumberOf(f.min_text);
    AddToLayer(node, f);
    uint64_t elements = 1;
    for (const uint64_t n : NumbersIn(item.shape)) elements *= std::min<uint64_t>(n, 2);
    if (const auto kind = KindOf(f, elements)) {
      ActivationGroup& group = out_.groups[static_cast<size_t>(kind->first)];
      if (++group.count > kMostActivations) return;
      item.node = tree_.Name(node);
      item.value = kind->second;
      group.first.push_back(std::move(item));
    }
  }

  void AddLargest(uint32_t node, const ActivationItem& item) {
    auto& list = out_.largest;
    const bool full = list.size() == kMostActivations;
    if (item.bytes == 0 || (full && item.bytes <= list.back().bytes)) return;
    const auto at = std::upper_bound(list.begin(), list.end(), item.bytes,
                                     [](uint64_t bytes, const ActivationItem& other) { return bytes > other.bytes; });
    list.insert(at, item)->node = tree_.Name(node);
    if (full) list.pop_back();
  }

  void AddToLayer(uint32_t node, const Figures& f) {
    const uint32_t column = layers_.ColumnOf(node);
    if (column == kNoNode) return;
    while (out_.layers.size() < layers_.labels().size()) {
      out_.layers.push_back({layers_.labels()[out_.layers.size()], {}, {}});
    }
    ActivationLayer& layer = out_.layers[column];
    ActivationCell& cell = RunsBackward(tree_, node) ? layer.backward : layer.forward;
    ++cell.items;
    if (!f.finite() && !f.mask()) {
      if (!cell.not_finite) cell.node = node;
      cell.not_finite = true;
    } else if (f.max || f.min) {
      if (!cell.not_finite && (!cell.max || f.size() > *cell.max)) cell.node = node;
      Grow(f.size(), &cell.max);
    }
    if (f.norm && std::isfinite(*f.norm) && !f.mask()) Grow(f.norm, &cell.norm);
  }

  const VisFile& file_;
  const Tree& tree_;
  LayerFinder layers_;
  Activations out_;
};

void WriteItem(JsonWriter* json, const ActivationItem& item) {
  json->BeginObject();
  json->Member("node", item.node);
  json->Member("item", item.item);
  json->Member("shape", item.shape);
  json->Member("dtype", item.dtype);
  json->Member("value", item.value);
  json->Member("bytes", item.bytes);
  json->EndObject();
}

void WriteCell(JsonWriter* json, std::string_view key, const ActivationCell& cell, const Tree& tree) {
  json->Key(key);
  if (cell.items == 0) return json->Null();
  json->BeginObject();
  json->Member("items", cell.items);
  json->Member("norm", cell.norm);
  json->Member("max", cell.max);
  json->Member("not_finite", cell.not_finite);
  json->Member("node", cell.node == kNoNode ? std::string_view() : tree.Name(cell.node));
  json->EndObject();
}

}  // namespace

StatusOr<Activations> FindActivations(const VisFile& file, const Tree& tree) {
  return ActivationFinder(file, tree).Find();
}

std::string ToJson(const Activations& found, const Tree& tree) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("ops", found.ops);
  json.Member("read", found.read);
  json.Member("items", found.items);
  for (size_t kind = 0; kind < kActivationKinds; ++kind) {
    json.ObjectMember(kKindNames[kind], [&] {
      json.Member("count", found.groups[kind].count);
      json.ArrayMember("first", found.groups[kind].first, [&](const ActivationItem& i) { WriteItem(&json, i); });
    });
  }
  json.ArrayMember("largest", found.largest, [&](const ActivationItem& i) { WriteItem(&json, i); });
  json.ArrayMember("layers", found.layers, [&](const ActivationLayer& layer) {
    json.BeginObject();
    json.Member("label", layer.label);
    WriteCell(&json, "forward", layer.forward, tree);
    WriteCell(&json, "backward", layer.backward, tree);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe::view
