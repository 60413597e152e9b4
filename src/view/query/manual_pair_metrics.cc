#include "view/query/manual_pair_metrics.h"

#include <fmt/core.h>

#include "base/file.h"
#include "base/text.h"
#include "view/file/served_tree.h"

namespace msprobe::view {
namespace {

constexpr size_t kMaxKnown = 200'000;
constexpr std::string_view kFolder = "dump_tensor_data";
constexpr std::string_view kUnread = "Dump file not found or read failed: ";

std::string KeyOf(const std::string& path, const FileStamp& s, const ItemView& item) {
  return fmt::format("{}\n{} {} {} {} {}\n{} {} {}\n", path, s.device, s.inode, s.size, s.mtime_s, s.mtime_ns,
                     item.dtype, item.shape, static_cast<int>(item.state));
}

/// The tensors of two dumps, through what the meter keeps.
class KnownTensors : public TensorSource {
 public:
  KnownTensors(ManualPairMetrics* meter, const std::string& target, const std::string& golden)
      : meter_(meter), pairs_(target, golden, nullptr) {}
  void Diff(const ItemView& target, const ItemView* golden, TensorDiff* out, const ValidLengths&) const override {
    meter_->Diff(pairs_, target, golden, out);
  }

 private:
  ManualPairMetrics* meter_;
  const TensorPairs pairs_;
};

/// Tensors that cannot be had.
class UnreadTensors : public TensorSource {
 public:
  explicit UnreadTensors(std::string why) : why_(std::move(why)) {}
  void Diff(const ItemView& target, const ItemView* golden, TensorDiff* out, const ValidLengths&) const override {
    *out = TensorDiff();
    if (!target.HasData() || !golden || !golden->HasData()) return;  // there was nothing to read
    out->outcome = TensorOutcome::kUnreadable;
    out->note = why_;
  }

 private:
  const std::string why_;
};

}  // namespace

// The dump.json beside the tensors; "" for what lies elsewhere.
std::string ManualPairMetrics::DumpAt(const std::string& place) const {
  if (!enabled()) return "";
  const auto inside = ServedTree(root_).Inside(place);
  if (!inside.ok() || BaseName(*inside) != kFolder) return "";
  return JoinPath(DirName(*inside), "dump.json");
}

std::unique_ptr<TensorSource> ManualPairMetrics::Source(const TensorPlaces& places) {
  const std::string target = DumpAt(places.target), golden = DumpAt(places.golden);
  if (!target.empty() && !golden.empty()) return std::make_unique<KnownTensors>(this, target, golden);
  const std::string& where = target.empty() ? places.target : places.golden;
  return std::make_unique<UnreadTensors>(std::string(kUnread) +
                                         OneLine(where.empty() ? "the graph names no directory" : where) +
                                         " is not there, or not below the served directory");
}

void ManualPairMetrics::Diff(const TensorPairs& pairs, const ItemView& target, const ItemView* golden,
                             TensorDiff* out) {
  if (!golden || !target.HasData() || !golden->HasData()) return pairs.Diff(target, golden, out);
  const auto target_file = pairs.target().Find(target.data_name), golden_file = pairs.golden().Find(golden->data_name);
  FileStamp target_stamp, golden_stamp;
  const bool there = target_file.ok() && golden_file.ok() && ReadStamp(*target_file, &target_stamp) &&
                     ReadStamp(*golden_file, &golden_stamp);
  if (!there) return pairs.Diff(target, golden, out);
  const std::string key = KeyOf(*target_file, target_stamp, target) + KeyOf(*golden_file, golden_stamp, *golden);
  // One pair at a time: measuring needs the whole machine.
  const std::lock_guard lock(mutex_);
  if (const auto known = index_.find(key); known != index_.end()) {
    known_.splice(known_.begin(), known_, known->second);
    *out = known->second->second;
    return;
  }
  pairs.Diff(target, golden, out);
  if (out->outcome == TensorOutcome::kUnreadable) return;
  known_.emplace_front(key, *out);
  index_[key] = known_.begin();
  if (known_.size() <= kMaxKnown) return;
  index_.erase(known_.back().first);
  known_.pop_back();
}

}  // namespace msprobe::view
