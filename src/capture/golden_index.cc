#include "capture/golden_index.h"

#include <algorithm>
#include <limits>

#include "base/file.h"
#include "dump/reader.h"

namespace msprobe {
namespace {

constexpr size_t kMostSums = std::numeric_limits<uint32_t>::max();

const StepDir* FindStep(const DumpPath& dump, int step) {
  for (const StepDir& s : dump.steps) {
    if (s.step == step) return &s;
  }
  // A step or rank directory was named itself: it stands for every step.
  return dump.kind == PathKind::kDump || dump.steps.size() != 1 ? nullptr : &dump.steps[0];
}

const RankDir* FindRank(const StepDir& step, int rank) {
  for (const RankDir& r : step.ranks) {
    if (r.rank == std::max(rank, 0)) return &r;
  }
  return step.ranks.size() == 1 ? &step.ranks[0] : nullptr;
}

}  // namespace

StatusOr<GoldenIndex> GoldenIndex::Read(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(path));
  MSP_ASSIGN_OR_RETURN(const Checksums checksums, dump.FindChecksums());
  if (checksums != Checksums::kPresent) {
    return BadInput(path + " holds no checksums: bench_path needs a dump made with \"summary_mode\": \"md5\"");
  }
  GoldenIndex index;
  index.ops_.reserve(dump.ops().size());
  JsonDoc doc;
  OpChecksums sums;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    // An op that cannot be read (a file cut off in the middle) is one that the golden dump does not have.
    if (!dump.ParseOp(i, &doc).ok()) continue;
    const std::string_view name = dump.ops()[i].name;
    SumsOf(name, doc, &sums);
    const size_t first = index.sums_.size();
    if (first + sums.inputs.size() + sums.outputs.size() > kMostSums) {
      return BadInput(path + " holds more than " + std::to_string(kMostSums) +
                      " tensors: choose fewer by list or scope");
    }
    index.ops_.push_back({HashText(name), static_cast<uint32_t>(first), static_cast<uint32_t>(sums.inputs.size()),
                          static_cast<uint32_t>(sums.outputs.size())});
    index.sums_.insert(index.sums_.end(), sums.inputs.begin(), sums.inputs.end());
    index.sums_.insert(index.sums_.end(), sums.outputs.begin(), sums.outputs.end());
  }
  index.sums_.shrink_to_fit();
  std::sort(index.ops_.begin(), index.ops_.end(), [](const Op& a, const Op& b) { return a.name < b.name; });
  return index;
}

const GoldenIndex::Op* GoldenIndex::Find(std::string_view op_name) const {
  const uint64_t hash = HashText(op_name);
  const auto it =
      std::lower_bound(ops_.begin(), ops_.end(), hash, [](const Op& op, uint64_t h) { return op.name < h; });
  return it != ops_.end() && it->name == hash ? &*it : nullptr;
}

bool GoldenIndex::OnlyOutputsDiffer(std::string_view op_name, const OpChecksums& here) const {
  const Op* op = Find(op_name);
  if (op == nullptr) return false;
  const std::span<const TensorSum> all(sums_);
  return msprobe::OnlyOutputsDiffer(here, all.subspan(op->first, op->inputs),
                                    all.subspan(op->first + op->inputs, op->outputs));
}

StatusOr<std::string> FindGoldenDump(const std::string& path, int step, int rank) {
  MSP_ASSIGN_OR_RETURN(const DumpPath dump, ResolveDumpPath(path));
  if (dump.kind == PathKind::kFile) return dump.path;
  const StepDir* step_dir = FindStep(dump, step);
  if (step_dir == nullptr) {
    return BadInput("bench_path " + path + " has no step" + std::to_string(step) +
                    ": capture the same steps in both runs");
  }
  const RankDir* rank_dir = FindRank(*step_dir, rank);
  if (rank_dir == nullptr) {
    return BadInput("bench_path " + step_dir->path + " has no directory of rank " + std::to_string(std::max(rank, 0)) +
                    ": capture the same ranks in both runs");
  }
  return JoinPath(rank_dir->path, "dump.json");
}

}  // namespace msprobe
