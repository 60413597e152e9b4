// Makes fingerprints of weights in memory.
#pragma once

#include <deque>
#include <optional>

#include "weights/fingerprint/fingerprint.h"
#include "weights/roles.h"

namespace msprobe {

/// How tensor parallelism cuts the parts of a tensor.
enum class ShardCut : uint8_t { kNone, kRows, kColumns, kByName };

/// What a rank holds of a weight.
struct WeightShard {
  std::string name;
  DType dtype = DType::kUnknown;
  DType stored = DType::kUnknown;
  std::vector<int64_t> shape;         // of what is here
  std::vector<int64_t> whole, begin;  // of the tensor of that name, where it is cut as a whole; else empty
  int64_t flat_begin = -1;            // the shard is elements of the whole in C order, from this one on
  ShardCut cut = ShardCut::kNone;     // of each part: q, k and v apart
  int64_t shard = 0, shards = 1;
  int64_t kv_shard = 0, kv_shards = 1;  // of k and v, of which several ranks may hold a copy
  int64_t first_expert = 0;             // number of its first expert in the model
  bool buffer = false;
};

/// A stretch of a shard in memory: rows [first, first + shape[0]) of it, or elements where the shard is flat.
struct ShardMemory {
  const void* data = nullptr;
  int64_t first = 0;
  std::vector<int64_t> shape, strides;  // in elements
};

class FingerprintMaker {
 public:
  explicit FingerprintMaker(Fingerprint head) : out_(std::move(head)) {}
  FingerprintMaker(const FingerprintMaker&) = delete;
  FingerprintMaker& operator=(const FingerprintMaker&) = delete;

  /// All shards before the first hash: names say together what each is. Its number.
  size_t Add(WeightShard shard);
  /// Reads a stretch of shard `index`. False where it does not lie in the shard.
  bool Hash(size_t index, const ShardMemory& memory);
  /// Shard `index` is the same memory as `other`, which has been read.
  void Same(size_t index, size_t other);
  /// Its values cannot be read.
  void Without(size_t index, NoPrint why);
  Fingerprint Take();

 private:
  void Plan();
  void Begin(size_t index);
  std::vector<RoleTensor> PartsOf(size_t index, const WeightTensor& t);

  Fingerprint out_;
  std::vector<WeightShard> shards_;
  Checkpoint names_;
  std::optional<RolePlan> plan_;
  std::vector<std::vector<WeightPrint>> prints_;  // of each shard
};

/// Of a whole checkpoint. `dtype`: floating weights are rounded to it first; kUnknown for none.
StatusOr<Fingerprint> FingerprintOf(const Checkpoint& checkpoint, DType dtype);

/// Adds the hashes of a block of a part to its fingerprint.
void AddBlock(const WeightBlock& block, WeightPrint* out);
/// Pieces that lie side by side or one below the other become one.
void JoinPieces(WeightPrint* print);

}  // namespace msprobe
