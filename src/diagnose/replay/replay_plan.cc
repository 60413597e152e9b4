// Which ops are replayed: the first divergence, what the ruler calls a bug or suspicious, and those that add most.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.h"
#include "diagnose/replay/op_call.h"
#include "diagnose/replay/replay.h"

namespace msprobe {
namespace {

// Errors of inputs below this say little about where those of the results come from.
constexpr float kFloor = 1e-6f;

bool Before(const ReplayPlan::Entry& a, const ReplayPlan::Entry& b) {
  return std::tuple(a.grade, -a.score, a.files, a.op) < std::tuple(b.grade, -b.score, b.files, b.op);
}

bool CanBeCalled(const DumpPair& pair, size_t op) {
  OpSide side;
  return LoadOpSide(*pair.target, op, &side).ok() && !side.outputs.empty();
}

}  // namespace

void ReplayPlan::Add(const DumpPair& pair, const FilePair& files, const Differences& differences,
                     const OpDistances& distances) {
  const size_t index = files_.size();
  files_.push_back(files);
  if (!pair.tensors) return;
  std::vector<Entry> found;
  for (size_t i = 0; i < distances.size(); ++i) {
    const OpDistance& d = distances[i];
    if (!d.matched || !d.has_output || !(d.output_error > 0)) continue;
    const RulerVerdict verdict = i < differences.verdicts.size() ? differences.verdicts[i] : RulerVerdict::kNone;
    const bool module = StartsWith(pair.target->ops()[i].name, "Module.");
    const int grade = verdict == RulerVerdict::kBug ? 1 : verdict == RulerVerdict::kSuspicious ? 2 : module ? 4 : 3;
    const float score =
        std::isinf(d.output_error) && std::isinf(d.input_error) ? 0 : d.output_error / std::max(d.input_error, kFloor);
    found.push_back({index, i, grade, score});
  }
  std::sort(found.begin(), found.end(), Before);
  size_t kept = 0;
  for (const Entry& entry : found) {
    if (kept == most_) break;
    // Suspects are named even if nothing can be said about them.
    if (entry.grade >= 3 && !CanBeCalled(pair, entry.op)) continue;
    entries_.push_back(entry);
    ++kept;
  }
  Shorten();
}

void ReplayPlan::Merge(const ReplayPlan& other) {
  for (Entry entry : other.entries_) {
    entry.files += files_.size();
    entries_.push_back(entry);
  }
  files_.insert(files_.end(), other.files_.begin(), other.files_.end());
  Shorten();
}

void ReplayPlan::Shorten() {
  std::sort(entries_.begin(), entries_.end(), Before);
  if (entries_.size() > most_) entries_.resize(most_);
}

void ReplayPlan::AddFirst(const Divergence& divergence) {
  using Kind = FirstDifference::Kind;
  const Origin& creator = divergence.creator;
  if (!divergence.found || creator.difference.kind == Kind::kMissingOp || creator.difference.kind == Kind::kExtraOp)
    return;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].target != creator.target_dump || files_[i].golden != creator.golden_dump) continue;
    std::erase_if(entries_, [&](const Entry& e) { return e.files == i && e.op == creator.difference.op; });
    entries_.insert(entries_.begin(), Entry{i, creator.difference.op, 0, 0});
    Shorten();
    return;
  }
}

std::vector<ReplayPlan::Entry> ReplayPlan::Entries() const {
  std::vector<Entry> out = entries_;
  std::sort(out.begin(), out.end(),
            [](const Entry& a, const Entry& b) { return std::tuple(a.files, a.op) < std::tuple(b.files, b.op); });
  return out;
}

}  // namespace msprobe
