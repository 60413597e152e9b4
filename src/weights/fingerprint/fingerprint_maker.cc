#include "weights/fingerprint/fingerprint_maker.h"

#include <algorithm>

#include "base/message.h"
#include "tensor/kernels/metrics_sources.h"
#include "weights/convert/out_weight.h"
#include "weights/fingerprint/row_hash.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

/// How the ranks of tensor parallelism share a part, by what it is.
ShardCut CutByRole(const std::string& what) {
  const std::string_view word = std::string_view(what).substr(what.find('.') + 1);
  const bool attention = what.starts_with("attention."), mlp = what.starts_with("mlp.");
  if (what == "embed" || what == "head") return ShardCut::kRows;
  if ((attention && (word == "q" || word == "k" || word == "v" || word == "qkv" || word == "kv" || word == "q_up" ||
                     word == "kv_up")) ||
      (mlp && (word == "gate" || word == "up" || word == "gate_up"))) {
    return ShardCut::kRows;
  }
  return (attention && word == "o") || (mlp && word == "down") ? ShardCut::kColumns : ShardCut::kNone;
}

bool IsKeyOrValue(const RoleTensor& part, const WeightName& name) {
  return part.tensor.part == "k" || part.tensor.part == "v" || name.what == "attention.k" || name.what == "attention.v";
}

/// Puts a part that one of several ranks holds where it lies in the whole part.
void PlacePart(const WeightShard& shard, const WeightName& name, RoleTensor* part) {
  const ShardCut cut = shard.cut == ShardCut::kByName ? CutByRole(name.what) : shard.cut;
  const size_t dims = part->tensor.shape.size();
  if (cut == ShardCut::kNone || dims == 0 || (cut == ShardCut::kColumns && dims < 2)) return;
  const bool kv = IsKeyOrValue(*part, name);
  const int64_t index = kv ? shard.kv_shard : shard.shard, count = kv ? shard.kv_shards : shard.shards;
  const size_t dim = cut == ShardCut::kRows ? 0 : 1;
  const int64_t own = part->tensor.shape[dim];
  part->tensor.shape[dim] = own * count;
  for (WeightBlock& block : part->tensor.blocks) block.begin[dim] += own * index;
}

/// Rows of q, k and v take turns in the shards of a fused weight, so they must be told apart.
bool MixesHeads(const WeightShard& shard, const WeightName& name, const RoleTensor& part) {
  const bool fused = name.what.ends_with(".qkv") || name.what.ends_with(".kv");
  return fused && part.tensor.part.empty() && shard.cut != ShardCut::kNone && shard.shards > 1;
}

WeightPrint PrintOf(const RoleTensor& part, const WeightShard& shard) {
  WeightPrint out;
  out.role = part.role;
  out.name = part.tensor.name;
  out.part = part.tensor.part;
  out.dtype = shard.dtype;
  out.stored = shard.stored;
  out.shape = part.tensor.shape;
  out.buffer = shard.buffer;
  out.table = part.table;
  if (IsAbsent(part.tensor)) out.none = NoPrint::kNoValues;
  return out;
}

/// A shard as a tensor of which `memory` is there.
bool TensorOf(const WeightShard& shard, const ShardMemory& memory, WeightTensor* out) {
  out->name = shard.name;
  out->dtype = shard.dtype;
  out->shape = shard.whole.empty() ? shard.shape : shard.whole;
  int64_t count = 0;
  if (!CountElements(out->shape, &count) || ElementSize(shard.dtype) == 0) return false;
  if (shard.flat_begin >= 0) {
    return memory.shape.size() == 1 && AddFlat(shard.flat_begin + memory.first, memory.shape[0], memory.data, 0, out);
  }
  const size_t dims = out->shape.size();
  if (memory.shape.size() != dims || memory.strides.size() != dims) return false;
  WeightBlock block;
  block.begin = shard.begin.empty() ? std::vector<int64_t>(dims, 0) : shard.begin;
  if (block.begin.size() != dims) return false;
  if (dims > 0) block.begin[0] += memory.first;
  for (size_t d = 0; d < dims; ++d) {
    const bool inside =
        block.begin[d] >= 0 && memory.shape[d] >= 0 && block.begin[d] <= out->shape[d] - memory.shape[d];
    if (!inside) return false;
  }
  block.size = memory.shape;
  block.origin = block.begin;
  block.data = memory.data;
  block.strides = memory.strides;
  block.dtype = shard.dtype;
  out->blocks.push_back(std::move(block));
  return true;
}

}  // namespace

size_t FingerprintMaker::Add(WeightShard shard) {
  WeightTensor t;
  t.name = shard.name;
  t.dtype = shard.dtype;
  t.shape = shard.whole.empty() ? shard.shape : shard.whole;
  names_.tensors.push_back(std::move(t));
  shards_.push_back(std::move(shard));
  prints_.emplace_back();
  return shards_.size() - 1;
}

void FingerprintMaker::Plan() {
  if (plan_) return;
  names_.facts = out_.facts;
  plan_.emplace(names_, false);
  for (size_t i = 0; i < shards_.size(); ++i) plan_->RenumberExperts(i, shards_[i].first_expert);
}

std::vector<RoleTensor> FingerprintMaker::PartsOf(size_t index, const WeightTensor& t) {
  const WeightShard& shard = shards_[index];
  std::vector<RoleTensor> parts;
  plan_->AddParts(t, index, shard.cut == ShardCut::kNone ? 1 : shard.shards, &parts);
  for (RoleTensor& part : parts) PlacePart(shard, plan_->name(index), &part);
  if (prints_[index].empty()) {
    for (const RoleTensor& part : parts) {
      prints_[index].push_back(PrintOf(part, shard));
      if (MixesHeads(shard, plan_->name(index), part)) prints_[index].back().none = NoPrint::kNoHeads;
    }
  }
  return parts;
}

void FingerprintMaker::Begin(size_t index) {
  Plan();
  if (prints_[index].empty()) (void)PartsOf(index, names_.tensors[index]);
}

bool FingerprintMaker::Hash(size_t index, const ShardMemory& memory) {
  Plan();
  WeightTensor t;
  if (index >= shards_.size() || !TensorOf(shards_[index], memory, &t)) return false;
  const std::vector<RoleTensor> parts = PartsOf(index, t);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const WeightBlock& block : parts[i].tensor.blocks) AddBlock(block, &prints_[index][i]);
  }
  return true;
}

void FingerprintMaker::Same(size_t index, size_t other) {
  if (index >= shards_.size() || other >= shards_.size()) return;
  Begin(index);
  const std::vector<WeightPrint>& from = prints_[other];
  if (prints_[index].size() != from.size()) return Without(index, NoPrint::kNoValues);
  for (size_t i = 0; i < from.size(); ++i) {
    if (prints_[index][i].shape != from[i].shape) return Without(index, NoPrint::kNoValues);
    prints_[index][i].pieces = from[i].pieces;
    prints_[index][i].none = from[i].none;
  }
}

void FingerprintMaker::Without(size_t index, NoPrint why) {
  if (index >= shards_.size()) return;
  Begin(index);
  for (WeightPrint& print : prints_[index]) print.none = why;
}

Fingerprint FingerprintMaker::Take() {
  for (size_t i = 0; i < shards_.size(); ++i) Begin(i);
  for (std::vector<WeightPrint>& prints : prints_) {
    for (WeightPrint& print : prints) {
      JoinPieces(&print);
      out_.weights.push_back(std::move(print));
    }
  }
  return std::move(out_);
}

namespace {

/// The rows of a part in another type, some at a time.
Status AddRounded(const WeightTensor& t, WeightPrint* out) {
  constexpr int64_t kMostElements = int64_t{1} << 18;
  const RowsAndColumns whole = RowsOf(out->shape);
  const int64_t some = std::max<int64_t>(1, kMostElements / std::max<int64_t>(1, whole.columns));
  std::vector<double> values;
  std::vector<char> stored, rounded;
  for (int64_t row = 0; row < whole.rows; row += some) {
    const int64_t rows = std::min(some, whole.rows - row), count = rows * whole.columns;
    const auto n = static_cast<size_t>(count);
    stored.resize(n * ElementSize(t.dtype));
    rounded.resize(n * ElementSize(out->dtype));
    values.resize(n);
    GatherElements(t, row * whole.columns, row * whole.columns + count, stored.data());
    if (!metrics::ToDoubles(t.dtype, stored.data(), n, values.data()) ||
        !FromDoubles(out->dtype, values.data(), n, rounded.data())) {
      return BadInput(Msg("{} cannot be rounded to {}: leave its type as it is", t.label(), DTypeName(out->dtype)));
    }
    PrintPiece piece{row, 0, whole.columns, std::vector<uint64_t>(static_cast<size_t>(rows))};
    const size_t bytes = static_cast<size_t>(whole.columns) * ElementSize(out->dtype);
    AddRowHashes(rounded.data(), static_cast<size_t>(rows), static_cast<int64_t>(bytes), bytes, 0, piece.hashes.data());
    out->pieces.push_back(std::move(piece));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Fingerprint> FingerprintOf(const Checkpoint& checkpoint, DType dtype) {
  Fingerprint out;
  out.kind = "checkpoint";
  out.path = checkpoint.path;
  out.facts = checkpoint.facts;
  out.notes = checkpoint.notes;
  const RolePlan plan(checkpoint, false);
  std::vector<RoleTensor> parts;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i) plan.AddParts(checkpoint.tensors[i], i, 1, &parts);
  for (const RoleTensor& part : parts) {
    WeightShard shard;
    shard.dtype = part.tensor.dtype;
    shard.buffer = IsCacheScale(part.tensor.name);
    const bool rounds = dtype != DType::kUnknown && IsFloating(shard.dtype) && shard.dtype != dtype;
    if (rounds) {
      shard.stored = shard.dtype;
      shard.dtype = dtype;
    }
    WeightPrint& print = out.weights.emplace_back(PrintOf(part, shard));
    if (rounds) {
      MSP_RETURN_IF_ERROR(AddRounded(part.tensor, &print));
    } else {
      for (const WeightBlock& block : part.tensor.blocks) AddBlock(block, &print);
    }
    for (const WeightBlock& block : part.tensor.blocks) checkpoint.Release(block);
    JoinPieces(&print);
  }
  return out;
}

}  // namespace msprobe
