#include "rollout/op/model_line.h"

#include <algorithm>

namespace msprobe {
namespace {

using Part = ModulePart;

/// The module whose call makes the values of a point.
ModuleRole MakerOf(PointPlace place) {
  switch (place.point) {
    case LinePoint::kEmbed: return {-1, Part::kEmbed};
    case LinePoint::kInputResidual: return {place.layer - 1, Part::kLayer};
    case LinePoint::kInputNorm: return {place.layer, Part::kInputNorm};
    case LinePoint::kQ: return {place.layer, Part::kQ};
    case LinePoint::kK: return {place.layer, Part::kK};
    case LinePoint::kV: return {place.layer, Part::kV};
    case LinePoint::kQNorm: return {place.layer, Part::kQNorm};
    case LinePoint::kKNorm: return {place.layer, Part::kKNorm};
    case LinePoint::kQRotary:
    case LinePoint::kKRotary: return {place.layer, Part::kRotary};
    case LinePoint::kCore: return {place.layer, Part::kCore};
    case LinePoint::kO: return {place.layer, Part::kO};
    case LinePoint::kMlpResidual:
    case LinePoint::kMlpNorm: return {place.layer, Part::kMlpNorm};
    case LinePoint::kRouter: return {place.layer, Part::kRouter};
    case LinePoint::kGate: return {place.layer, Part::kGate};
    case LinePoint::kUp: return {place.layer, Part::kUp};
    case LinePoint::kActivation:
    case LinePoint::kMlp: return {place.layer, Part::kDown};
    case LinePoint::kFinalResidual:
    case LinePoint::kFinalNorm: return {-1, Part::kFinalNorm};
    case LinePoint::kLogits: return {-1, Part::kHead};
  }
  return {};
}

ModuleRole FusedOf(PointPlace place) {
  switch (place.point) {
    case LinePoint::kQ:
    case LinePoint::kK:
    case LinePoint::kV: return {place.layer, Part::kQkv};
    case LinePoint::kGate:
    case LinePoint::kUp: return {place.layer, Part::kGateUp};
    case LinePoint::kCore: return {place.layer, Part::kAttention};
    case LinePoint::kMlp: return {place.layer, Part::kMlp};
    default: return {};
  }
}

/// Where tensor parallelism keeps a part on each rank.
bool IsSplit(LinePoint point) {
  switch (point) {
    case LinePoint::kQ:
    case LinePoint::kK:
    case LinePoint::kV:
    case LinePoint::kQNorm:
    case LinePoint::kKNorm:
    case LinePoint::kQRotary:
    case LinePoint::kKRotary:
    case LinePoint::kCore:
    case LinePoint::kGate:
    case LinePoint::kUp:
    case LinePoint::kActivation: return true;
    default: return false;
  }
}

RowMatrix Columns(const RowMatrix& from, int64_t begin, int64_t width) {
  RowMatrix out;
  if (width <= 0 || begin < 0 || begin + width > static_cast<int64_t>(from.width)) return out;
  out.rows = from.rows, out.width = static_cast<size_t>(width), out.dtype = from.dtype;
  for (size_t i = 0; i < from.rows; ++i) {
    out.values.insert(out.values.end(), from.row(i) + begin, from.row(i) + begin + width);
  }
  return out;
}

/// Tokens of one call behind each other, so that each file is opened once.
template <typename Read>
RowMatrix ByCalls(const std::vector<TokenRow>& tokens, const Read& read) {
  RowMatrix out;
  for (size_t begin = 0; begin < tokens.size();) {
    size_t end = begin + 1;
    while (end < tokens.size() && tokens[end].dump == tokens[begin].dump && tokens[end].call == tokens[begin].call)
      ++end;
    if (!read(std::span(tokens).subspan(begin, end - begin), &out)) return {};
    begin = end;
  }
  return out;
}

}  // namespace

std::vector<PointPlace> PointsOf(int64_t layers) {
  std::vector<PointPlace> out{{-1, LinePoint::kEmbed}};
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (auto p = static_cast<size_t>(LinePoint::kInputResidual); p <= static_cast<size_t>(LinePoint::kMlp); ++p) {
      out.push_back({layer, static_cast<LinePoint>(p)});
    }
  }
  for (const LinePoint point : {LinePoint::kFinalResidual, LinePoint::kFinalNorm, LinePoint::kLogits}) {
    out.push_back({-1, point});
  }
  return out;
}

int64_t ModelLine::WidthOf(const ModuleRole& role, ItemState state, size_t nth) const {
  const std::vector<SideOp>* calls = side_.Calls(role);
  if (calls == nullptr || calls->empty()) return 0;
  const OpTensor* tensor = side_.Tensor(calls->front(), state, nth);
  if (tensor == nullptr || tensor->shape.empty()) return 0;
  const size_t dims = tensor->shape.size();
  const bool heads = role.part == Part::kCore && dims == 3;  // [tokens, heads, size]
  return heads ? tensor->shape[1] * tensor->shape[2] : tensor->shape.back();
}

PartWidths ModelLine::WidthsOf(int64_t layer) const {
  PartWidths out;
  out.q = WidthOf({layer, Part::kQ}, ItemState::kOutput, 0);
  out.k = WidthOf({layer, Part::kK}, ItemState::kOutput, 0);
  out.v = WidthOf({layer, Part::kV}, ItemState::kOutput, 0);
  out.gate = WidthOf({layer, Part::kGate}, ItemState::kOutput, 0);
  if (out.q == 0) {
    out.q = WidthOf({layer, Part::kCore}, ItemState::kInput, 0);
    out.k = WidthOf({layer, Part::kCore}, ItemState::kInput, 1);
    out.v = WidthOf({layer, Part::kCore}, ItemState::kInput, 2);
  }
  if (out.gate == 0) out.gate = WidthOf({layer, Part::kGateUp}, ItemState::kOutput, 0) / 2;
  return out;
}

RowMatrix ModelLine::ReadItem(const ModuleRole& role, ItemState state, size_t nth,
                              const std::vector<TokenRow>& tokens) const {
  return ByCalls(tokens, [&](std::span<const TokenRow> some, RowMatrix* out) {
    const std::optional<SideOp> place = side_.Call(role, some[0].dump, some[0].call);
    if (!place) return false;
    const OpTensor* tensor = side_.Tensor(*place, state, nth);
    if (tensor == nullptr && state == ItemState::kInput) tensor = side_.Tensor(*place, ItemState::kKwarg, nth);
    return tensor != nullptr && IsFloating(tensor->dtype) && side_.AppendRows(*place, *tensor, some, false, out);
  });
}

// [batch, heads, length, size]; with as many heads as tokens nothing says which of them comes first.
RowMatrix ModelLine::ReadHeads(const ModuleRole& role, const std::vector<TokenRow>& tokens) const {
  return ByCalls(tokens, [&](std::span<const TokenRow> some, RowMatrix* out) {
    const std::optional<SideOp> place = side_.Call(role, some[0].dump, some[0].call);
    const OpTensor* tensor = place ? side_.Tensor(*place, ItemState::kOutput, 0) : nullptr;
    return tensor != nullptr && IsFloating(tensor->dtype) && side_.AppendRows(*place, *tensor, some, true, out);
  });
}

// A norm that is given two tensors adds them first, and returns the sum as well.
RowMatrix ModelLine::ReadSum(const ModuleRole& role, const std::vector<TokenRow>& tokens) const {
  RowMatrix one = ReadItem(role, ItemState::kInput, 0, tokens);
  const std::vector<SideOp>* calls = side_.Calls(role);
  if (one.empty() || calls == nullptr) return one;
  const OpTensor* second = side_.Tensor(calls->back(), ItemState::kInput, 1);
  if (second == nullptr || !IsFloating(second->dtype)) return one;
  const RowMatrix sum = ReadItem(role, ItemState::kOutput, 1, tokens);
  if (sum.rows == one.rows && sum.width == one.width) return sum;
  const RowMatrix other = ReadItem(role, ItemState::kInput, 1, tokens);
  if (other.rows != one.rows || other.width != one.width) return {};
  for (size_t i = 0; i < one.values.size(); ++i) one.values[i] += other.values[i];
  return one;
}

RowMatrix ModelLine::ReadPart(const ModuleRole& own, const ModuleRole& fused, int64_t begin, int64_t width,
                              const std::vector<TokenRow>& tokens) const {
  if (side_.Calls(own) != nullptr) return ReadItem(own, ItemState::kOutput, 0, tokens);
  if (side_.Calls(fused) == nullptr) return {};
  return Columns(ReadItem(fused, ItemState::kOutput, 0, tokens), begin, width);
}

RowMatrix ModelLine::ReadProjected(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const {
  const ModuleRole norm{layer, nth == 0 ? Part::kQNorm : Part::kKNorm};
  if (nth < 2 && side_.Calls(norm) != nullptr) {
    return ReadOwn({layer, nth == 0 ? LinePoint::kQNorm : LinePoint::kKNorm}, tokens);
  }
  const std::array points{LinePoint::kQ, LinePoint::kK, LinePoint::kV};
  return ReadOwn({layer, points[nth]}, tokens);
}

RowMatrix ModelLine::ReadAttentionArgument(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const {
  const ModuleRole core{layer, Part::kCore};
  if (side_.Calls(core) != nullptr) return ReadItem(core, ItemState::kInput, nth, tokens);
  const ModuleRole rotary{layer, Part::kRotary};
  if (side_.Calls(rotary) != nullptr && nth < 2) return ReadItem(rotary, ItemState::kOutput, nth, tokens);
  return ByCalls(tokens, [&](std::span<const TokenRow> some, RowMatrix* out) {
    constexpr std::string_view kFunction = "scaled_dot_product_attention";
    const std::vector<SideOp> calls = side_.Functions(some[0].dump, kFunction);
    const size_t at =
        static_cast<size_t>(some[0].call) * static_cast<size_t>(side_.layers()) + static_cast<size_t>(layer);
    if (side_.layers() == 0 || calls.size() % static_cast<size_t>(side_.layers()) != 0 || at >= calls.size())
      return false;
    const OpTensor* tensor = side_.Tensor(calls[at], ItemState::kInput, nth);
    return tensor != nullptr && side_.AppendRows(calls[at], *tensor, some, true, out);
  });
}

std::array<RowMatrix, 2> ModelLine::Angles(int64_t layer, const std::vector<TokenRow>& tokens) const {
  std::array<RowMatrix, 2> out;
  const ModuleRole rotary{-1, Part::kRotary}, attention{layer, Part::kAttention};
  if (side_.Calls(rotary) == nullptr) return out;
  for (size_t nth = 0; nth < 2; ++nth) {
    out[nth] = ByCalls(tokens, [&](std::span<const TokenRow> some, RowMatrix* to) {
      // A model may have angles for each kind of layer: what attention itself was given says which.
      std::optional<SideOp> place = side_.Call(attention, some[0].dump, some[0].call);
      const OpTensor* tensor =
          place ? side_.Named(*place, nth == 0 ? "position_embeddings.0" : "position_embeddings.1") : nullptr;
      if (tensor == nullptr) {
        place = side_.Call(rotary, some[0].dump, some[0].call);
        tensor = place ? side_.Tensor(*place, ItemState::kOutput, nth) : nullptr;
      }
      if (tensor == nullptr || tensor->shape.size() != 3) return false;
      std::vector<TokenRow> rows(some.begin(), some.end());
      if (tensor->shape[0] == 1) {  // one for all sequences
        for (TokenRow& row : rows) {
          const int64_t length = row.rows / std::max<int64_t>(row.batch, 1);
          row.row %= length, row.rows = length, row.batch = 1;
        }
      }
      return side_.AppendRows(*place, *tensor, rows, false, to);
    });
  }
  return out;
}

int64_t ModelLine::HeadSize() const {
  const std::vector<SideOp>* calls = side_.Calls({-1, Part::kRotary});
  if (calls == nullptr) return 0;
  const OpTensor* cos = side_.Tensor(calls->front(), ItemState::kOutput, 0);
  return cos != nullptr && cos->shape.size() == 3 ? cos->shape[2] : 0;
}

void TurnHalves(const float* cos, const float* sin, size_t size, float* values, size_t width) {
  const size_t half = size / 2;
  for (size_t begin = 0; begin + size <= width; begin += size) {
    for (size_t j = 0; j < half; ++j) {
      const float a = values[begin + j], b = values[begin + half + j];
      values[begin + j] = a * cos[j] - b * sin[j];
      values[begin + half + j] = b * cos[half + j] + a * sin[half + j];
    }
  }
}

RowMatrix ModelLine::Rotated(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const {
  const auto [cos, sin] = Angles(layer, tokens);
  RowMatrix out = ReadProjected(layer, nth, tokens);
  if (out.empty() || cos.rows != out.rows || sin.rows != out.rows || out.width % cos.width != 0) return {};
  for (size_t i = 0; i < out.rows; ++i) TurnHalves(cos.row(i), sin.row(i), cos.width, out.row(i), out.width);
  return out;
}

RowMatrix ModelLine::ReadRotary(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const {
  RowMatrix out = ReadAttentionArgument(layer, nth, tokens);
  const int64_t width = nth == 0 ? widths_.q : widths_.k;
  const int64_t size = HeadSize();
  if (!out.empty() && static_cast<int64_t>(out.width) == width) return out;
  // Heads that several queries share may have been repeated.
  if (!out.empty() && size > 0 && width > 0 && out.width % static_cast<size_t>(width) == 0) {
    const size_t times = out.width / static_cast<size_t>(width), head = static_cast<size_t>(size);
    RowMatrix few{out.rows, static_cast<size_t>(width), {}, out.dtype};
    for (size_t i = 0; i < out.rows; ++i) {
      for (size_t h = 0; h * head < few.width; ++h) {
        const float* from = out.row(i) + h * times * head;
        few.values.insert(few.values.end(), from, from + head);
      }
    }
    return few;
  }
  return Rotated(layer, nth, tokens);
}

bool ModelLine::Derives(PointPlace place) const {
  const bool rotary = place.point == LinePoint::kQRotary || place.point == LinePoint::kKRotary;
  return rotary && side_.Calls({place.layer, Part::kCore}) == nullptr &&
         side_.Calls({place.layer, Part::kRotary}) == nullptr;
}

void ModelLine::set_widths(const PartWidths& widths) {
  const auto ranks = static_cast<int64_t>(shards_.size() + 1);
  widths_ = {widths.q / ranks, widths.k / ranks, widths.v / ranks, widths.gate / ranks};
  for (ModelLine& shard : shards_) shard.widths_ = widths_;
}

RowMatrix ModelLine::Read(PointPlace place, const std::vector<TokenRow>& tokens) const {
  RowMatrix out = ReadOwn(place, tokens);
  if (shards_.empty() || !IsSplit(place.point)) return out;
  std::vector<RowMatrix> parts;
  for (const ModelLine& shard : shards_) parts.push_back(shard.ReadOwn(place, tokens));
  RowMatrix whole{out.rows, out.width * (parts.size() + 1), {}, out.dtype};
  for (const RowMatrix& part : parts) {
    if (part.rows != out.rows || part.width != out.width) return {};
  }
  for (size_t i = 0; i < out.rows; ++i) {
    whole.values.insert(whole.values.end(), out.row(i), out.row(i) + out.width);
    for (const RowMatrix& part : parts) whole.values.insert(whole.values.end(), part.row(i), part.row(i) + part.width);
  }
  return whole;
}

RowMatrix ModelLine::ReadOwn(PointPlace place, const std::vector<TokenRow>& tokens) const {
  const int64_t layer = place.layer;
  const ModuleRole maker = MakerOf(place), fused = FusedOf(place);
  switch (place.point) {
    case LinePoint::kEmbed:
    case LinePoint::kInputNorm:
    case LinePoint::kO:
    case LinePoint::kMlpNorm:
    case LinePoint::kRouter:
    case LinePoint::kFinalNorm: return ReadItem(maker, ItemState::kOutput, 0, tokens);
    case LinePoint::kInputResidual: return ReadSum({layer, Part::kInputNorm}, tokens);
    case LinePoint::kMlpResidual:
    case LinePoint::kFinalResidual: return ReadSum(maker, tokens);
    case LinePoint::kQ: return ReadPart(maker, fused, 0, widths_.q, tokens);
    case LinePoint::kK: return ReadPart(maker, fused, widths_.q, widths_.k, tokens);
    case LinePoint::kV: return ReadPart(maker, fused, widths_.q + widths_.k, widths_.v, tokens);
    case LinePoint::kQNorm:
    case LinePoint::kKNorm: {
      // Of all heads; where each head is a call of its own, it is not known.
      const int64_t width = place.point == LinePoint::kQNorm ? widths_.q : widths_.k;
      RowMatrix out = ReadItem(maker, ItemState::kOutput, 0, tokens);
      if (out.empty()) out = ReadHeads(maker, tokens);
      return static_cast<int64_t>(out.width) == width ? out : RowMatrix();
    }
    case LinePoint::kQRotary: return ReadRotary(layer, 0, tokens);
    case LinePoint::kKRotary: return ReadRotary(layer, 1, tokens);
    case LinePoint::kCore: return ReadItem({layer, Part::kO}, ItemState::kInput, 0, tokens);
    case LinePoint::kGate: return ReadPart(maker, fused, 0, widths_.gate, tokens);
    case LinePoint::kUp: return ReadPart(maker, fused, widths_.gate, widths_.gate, tokens);
    case LinePoint::kActivation: return ReadItem(maker, ItemState::kInput, 0, tokens);
    case LinePoint::kMlp: {
      RowMatrix out = ReadItem(fused, ItemState::kOutput, 0, tokens);
      return out.empty() ? ReadItem(maker, ItemState::kOutput, 0, tokens) : out;
    }
    case LinePoint::kLogits: {
      RowMatrix out = ReadItem({-1, Part::kLogits}, ItemState::kOutput, 0, tokens);
      return out.empty() ? ReadItem(maker, ItemState::kOutput, 0, tokens) : out;
    }
  }
  return {};
}

std::string ModelLine::ModuleOf(PointPlace place) const {
  for (const ModuleRole& role : {MakerOf(place), FusedOf(place)}) {
    if (role.part != Part::kOther && side_.Calls(role) != nullptr) return side_.PathOf(role);
  }
  return {};
}

PointParameter ModelLine::Parameter(PointPlace place, std::string_view name) const {
  PointParameter out;
  int64_t begin = 0, rows = 0;
  ModuleRole role = MakerOf(place);
  if (side_.Calls(role) == nullptr) {
    role = FusedOf(place);
    const int64_t q = widths_.q, k = widths_.k, gate = widths_.gate;
    switch (place.point) {
      case LinePoint::kQ: rows = q; break;
      case LinePoint::kK: begin = q, rows = k; break;
      case LinePoint::kV: begin = q + k, rows = widths_.v; break;
      case LinePoint::kGate: rows = gate; break;
      case LinePoint::kUp: begin = gate, rows = gate; break;
      default: return out;
    }
  }
  const std::vector<SideOp>* calls = side_.Calls(role);
  if (calls == nullptr) return out;
  for (const OpTensor& tensor : side_.Tensors(calls->front())) {
    if (tensor.state != ItemState::kParameter || tensor.shape.empty() ||
        !tensor.name.ends_with("." + std::string(name)))
      continue;
    out.values = side_.Values(calls->front(), tensor);
    out.shape = tensor.shape;
    if (out.values.empty() || rows == 0) return out;
    const int64_t width = tensor.elements() / tensor.shape[0];
    if (begin + rows > tensor.shape[0]) return {};
    out.values = std::vector<double>(out.values.begin() + begin * width, out.values.begin() + (begin + rows) * width);
    out.shape[0] = rows;
    return out;
  }
  return out;
}

}  // namespace msprobe
