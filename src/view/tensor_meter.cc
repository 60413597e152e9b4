#include "view/tensor_meter.h"

#include <fmt/core.h>

#include "base/file.h"
#include "base/text.h"
#include "graph/tensor_rows.h"
#include "view/served_tree.h"

namespace msprobe::view {
namespace {

constexpr size_t kMaxKnown = 200'000;
constexpr std::string_view kFolder = "dump_tensor_data";
constexpr std::string_view kUnread = "Dump file not found or read failed: ";

std::string KeyOf(const std::string& path, const FileStamp& s, const ItemView& item) {
  return fmt::format("{}\n{} {} {} {} {}\n{} {} {}\n", path, s.device, s.inode, s.size, s.mtime_s, s.mtime_ns,
                     item.dtype, item.shape, static_cast<int>(item.state));
}

}  // namespace

// The dump.json beside the tensors; "" for what lies elsewhere.
std::string TensorMeter::DumpAt(const std::string& place) const {
  if (!enabled()) return "";
  const auto inside = ServedTree(root_).Inside(place);
  if (!inside.ok() || BaseName(*inside) != kFolder) return "";
  return JoinPath(DirName(*inside), "dump.json");
}

void TensorMeter::Measure(const TensorPlaces& places, std::vector<Row>* rows, std::deque<TensorDiff>* diffs) {
  const std::string target = DumpAt(places.target), golden = DumpAt(places.golden);
  if (target.empty() || golden.empty()) {
    const std::string& where = target.empty() ? places.target : places.golden;
    const std::string note = std::string(kUnread) + OneLine(where.empty() ? "the graph names no directory" : where) +
                             " is not there, or not below the served directory";
    const auto unread = [&](const ItemView& mine, const ItemView* theirs, TensorDiff* out) {
      *out = TensorDiff();
      if (!mine.HasData() || !theirs || !theirs->HasData()) return;  // there was nothing to read
      out->outcome = TensorOutcome::kUnreadable;
      out->note = note;
    };
    return MeasureTensors(unread, rows, diffs, nullptr);
  }
  const TensorPairs pairs(target, golden, nullptr);
  const auto measure = [&](const ItemView& mine, const ItemView* theirs, TensorDiff* out) {
    Diff(pairs, mine, theirs, out);
  };
  MeasureTensors(measure, rows, diffs, nullptr);
}

void TensorMeter::Diff(const TensorPairs& pairs, const ItemView& target, const ItemView* golden, TensorDiff* out) {
  if (!golden || !target.HasData() || !golden->HasData()) return pairs.Diff(target, golden, out);
  const auto mine = pairs.target().Find(target.data_name), theirs = pairs.golden().Find(golden->data_name);
  FileStamp my_stamp, their_stamp;
  const bool there = mine.ok() && theirs.ok() && ReadStamp(*mine, &my_stamp) && ReadStamp(*theirs, &their_stamp);
  if (!there) return pairs.Diff(target, golden, out);
  const std::string key = KeyOf(*mine, my_stamp, target) + KeyOf(*theirs, their_stamp, *golden);
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
