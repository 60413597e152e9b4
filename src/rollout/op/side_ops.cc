#include "rollout/op/side_ops.h"

#include <algorithm>

#include "base/text.h"
#include "ops/module_prefix.h"
#include "ops/op_name.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

/// Where the numbers of a token lie in a tensor.
struct RowPlace {
  int64_t begin = 0, pieces = 1, step = 0, length = 0;  // in elements; `step` from piece to piece
};

/// Of a tensor whose first dimensions count the tokens of the forward, or the requests of which the last token counts.
std::optional<RowPlace> PlaceOfRow(const std::vector<int64_t>& shape, const TokenRow& token, bool heads) {
  const int64_t batch = token.batch, length = token.rows / std::max<int64_t>(batch, 1);
  const auto rest = [&](size_t from) {
    int64_t n = 1;
    for (size_t d = from; d < shape.size(); ++d) n *= shape[d];
    return n;
  };
  if (heads) {  // [batch, heads, length, size]
    if (shape.size() != 4 || shape[0] != batch || shape[2] != length) return std::nullopt;
    const int64_t b = token.row / length, at = token.row % length;
    return RowPlace{(b * shape[1] * length + at) * shape[3], shape[1], length * shape[3], shape[3]};
  }
  if (shape.size() < 2) return std::nullopt;
  if (shape.size() >= 3 && shape[0] == batch && shape[1] == length) {
    return RowPlace{token.row * rest(2), 1, 0, rest(2)};
  }
  if (shape.size() >= 3 && shape[0] == length && shape[1] == batch) {  // the sequence comes first
    return RowPlace{(token.row % length * batch + token.row / length) * rest(2), 1, 0, rest(2)};
  }
  if (shape[0] == token.rows) return RowPlace{token.row * rest(1), 1, 0, rest(1)};
  if (shape[0] == token.requests && token.last >= 0) return RowPlace{token.last * rest(1), 1, 0, rest(1)};
  // Engines fill batches up, behind the last token, so that all ranks have as many.
  if (token.requests > 0 && shape[0] > token.rows && shape.size() == 2)
    return RowPlace{token.row * rest(1), 1, 0, rest(1)};
  return std::nullopt;
}

std::vector<OpTensor> TensorsOf(const std::vector<Item>& items) {
  std::vector<OpTensor> out;
  for (const Item& item : items) {
    if (item.leaf == nullptr || item.leaf->Find("shape") == nullptr) continue;
    OpTensor tensor{item.state, item.suffix, ParseDType((*item.leaf)["dtype"].Text()), {}, {}};
    for (const JsonValue& n : (*item.leaf)["shape"].Items()) tensor.shape.push_back(n.Int());
    tensor.data_name = (*item.leaf)["data_name"].Text();
    if (tensor.dtype != DType::kUnknown) out.push_back(std::move(tensor));
  }
  return out;
}

}  // namespace

int64_t OpTensor::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

StatusOr<SideOps> SideOps::Open(const std::vector<SideDump>& dumps, int rank) {
  SideOps side;
  std::unordered_map<std::string_view, ModuleRole> roles;
  for (const SideDump& dump : dumps) {
    if (dump.rank != rank) continue;
    MSP_ASSIGN_OR_RETURN(DumpFile file, DumpFile::Open(dump.path));
    side.files_.push_back(std::move(file));
    side.folders_.emplace_back(dump.path);
  }
  for (uint32_t d = 0; d < side.files_.size(); ++d) {
    const OpList& ops = side.files_[d].ops();
    const std::string_view prefix = ModulePrefix(ops.size(), [&](size_t i) { return ops.NameAt(i); });
    side.ops_ += ops.size();
    for (uint32_t i = 0; i < ops.size(); ++i) {
      const std::string_view name = ops.NameAt(i);
      if (!IsModuleName(name) || !name.starts_with(prefix)) continue;
      const NameParts parts = ParseOpName(name);
      if (parts.direction != OpDirection::kForward) continue;
      std::string_view path = parts.base.substr(std::min(prefix.size(), parts.base.size()));
      const size_t dot = path.rfind('.');
      path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      const auto [known, added] = roles.try_emplace(path);
      if (added) known->second = path.empty() ? ModuleRole{-1, ModulePart::kModel} : RoleOfModule(path);
      const ModuleRole role = known->second;
      if (role.part == ModulePart::kOther) continue;
      ModuleCalls& calls = side.calls_[{role.layer, static_cast<int>(role.part)}];
      if (calls.calls.empty()) calls.path = path;
      if (calls.path != path) continue;
      while (calls.first.size() <= d) calls.first.push_back(static_cast<uint32_t>(calls.calls.size()));
      calls.calls.push_back({d, i});
      side.layers_ = std::max(side.layers_, role.layer + 1);
    }
  }
  return side;
}

const std::vector<SideOp>* SideOps::Calls(const ModuleRole& role) const {
  const auto found = calls_.find({role.layer, static_cast<int>(role.part)});
  return found == calls_.end() ? nullptr : &found->second.calls;
}

std::pair<size_t, size_t> SideOps::CallsIn(const ModuleRole& role, uint32_t dump) const {
  const auto found = calls_.find({role.layer, static_cast<int>(role.part)});
  if (found == calls_.end() || dump >= found->second.first.size()) return {0, 0};
  const std::vector<uint32_t>& first = found->second.first;
  const size_t end = dump + 1 < first.size() ? first[dump + 1] : found->second.calls.size();
  return {first[dump], end};
}

std::optional<SideOp> SideOps::Call(const ModuleRole& role, uint32_t dump, uint32_t call) const {
  const auto [begin, end] = CallsIn(role, dump);
  if (begin == end) return std::nullopt;
  // A layer that is computed again for the backward pass runs more often than the model.
  const auto [from, to] = CallsIn({-1, ModulePart::kEmbed}, dump);
  const size_t forwards = to - from,
               times = forwards > 0 && (end - begin) % forwards == 0 ? (end - begin) / forwards : 1;
  const size_t at = begin + call * times;
  const std::vector<SideOp>& calls = calls_.find({role.layer, static_cast<int>(role.part)})->second.calls;
  if (at >= end || calls[at].dump != dump) return std::nullopt;
  return calls[at];
}

const std::string& SideOps::PathOf(const ModuleRole& role) const {
  static const std::string kNone;
  const auto found = calls_.find({role.layer, static_cast<int>(role.part)});
  return found == calls_.end() ? kNone : found->second.path;
}

std::vector<SideOp> SideOps::Functions(uint32_t dump, std::string_view function) const {
  std::vector<SideOp> out;
  const OpList& ops = files_[dump].ops();
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (!IsModuleName(name) && ApiOf(name) == function && ParseOpName(name).direction == OpDirection::kForward) {
      out.push_back({dump, i});
    }
  }
  return out;
}

const std::vector<OpTensor>& SideOps::Tensors(SideOp place) const {
  const auto [known, added] = tensors_.try_emplace(uint64_t{place.dump} << 32 | place.op);
  if (!added) return known->second;
  const DumpFile& file = files_[place.dump];
  if (!file.ParseOp(place.op, &doc_).ok()) return known->second;
  std::vector<Item> items;
  FlattenOp(file.ops().NameAt(place.op), doc_, &items);
  known->second = TensorsOf(items);
  return known->second;
}

const OpTensor* SideOps::Tensor(SideOp place, ItemState state, size_t nth) const {
  for (const OpTensor& tensor : Tensors(place)) {
    if (tensor.state == state && nth-- == 0) return &tensor;
  }
  return nullptr;
}

const OpTensor* SideOps::Named(SideOp place, std::string_view name) const {
  for (const OpTensor& tensor : Tensors(place)) {
    const std::string_view all = tensor.name;
    if (all.size() > name.size() && all.ends_with(name) && all[all.size() - name.size() - 1] == '.') return &tensor;
  }
  return nullptr;
}

std::optional<TensorFile> SideOps::Read(SideOp place, const OpTensor& tensor) const {
  if (tensor.data_name.empty()) return std::nullopt;
  const StatusOr<std::string> path = folders_[place.dump].Find(tensor.data_name);
  if (!path.ok()) return std::nullopt;
  StatusOr<TensorFile> file = TensorFile::Open(*path, tensor.dtype);
  if (!file.ok() || file->tensor() == nullptr) return std::nullopt;
  const FileTensor& found = *file->tensor();
  // The recorder saves what it records, contiguous; what somebody else put there is not read.
  int64_t stride = 1;
  if (found.shape != tensor.shape) return std::nullopt;
  for (size_t d = found.shape.size(); d-- > 0;) {
    if (found.shape[d] != 1 && found.strides[d] != stride) return std::nullopt;
    stride *= found.shape[d];
  }
  return std::move(*file);
}

std::vector<double> SideOps::Values(SideOp place, const OpTensor& tensor, int64_t most) const {
  if (tensor.elements() > most) return {};
  const std::optional<TensorFile> file = Read(place, tensor);
  if (!file) return {};
  std::vector<double> out(static_cast<size_t>(tensor.elements()));
  if (!metrics::ToDoubles(file->tensor()->dtype, file->tensor()->data, out.size(), out.data())) return {};
  return out;
}

bool SideOps::AppendRows(SideOp place, const OpTensor& tensor, std::span<const TokenRow> tokens, bool heads,
                         RowMatrix* out) const {
  const std::optional<TensorFile> file = Read(place, tensor);
  if (!file) return false;
  const FileTensor& from = *file->tensor();
  const size_t before = out->values.size(), element = ElementSize(from.dtype);
  std::vector<double> wide;
  for (const TokenRow& token : tokens) {
    const std::optional<RowPlace> at = PlaceOfRow(tensor.shape, token, heads);
    const size_t width = at ? static_cast<size_t>(at->pieces * at->length) : 0;
    if (width == 0 || (out->rows > 0 && width != out->width)) {
      out->values.resize(before);
      return false;
    }
    out->width = width;
    wide.resize(static_cast<size_t>(at->length));
    for (int64_t piece = 0; piece < at->pieces; ++piece) {
      const auto* begin =
          static_cast<const char*>(from.data) + static_cast<size_t>(at->begin + piece * at->step) * element;
      metrics::ToDoubles(from.dtype, begin, wide.size(), wide.data());
      out->values.insert(out->values.end(), wide.begin(), wide.end());
    }
  }
  if (tokens.empty()) return true;
  out->rows = out->values.size() / out->width;
  out->dtype = from.dtype;
  return true;
}

}  // namespace msprobe
