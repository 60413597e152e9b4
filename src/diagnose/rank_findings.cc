#include <algorithm>
#include <map>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/pair/module_tree.h"
#include "diagnose/communication_sides.h"
#include "diagnose/divergence.h"
#include "ops/collective.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr float kCoarsestTravels = 1.6e-2f;  // as for the first difference of one rank

BigArray<uint8_t> Marks(const OpDistances& distances) {
  BigArray<uint8_t> marks(distances.size());
  float coarsest = 0;
  for (size_t i = 0; i < distances.size(); ++i) {
    OpDistance d = distances[i];
    if (d.tolerance > 0) {
      coarsest = std::max(coarsest, std::min(d.tolerance, kCoarsestTravels));
      const float scale = d.tolerance / std::max(coarsest, d.tolerance);
      d.input *= scale;
      d.output *= scale;
    }
    marks[i] = static_cast<uint8_t>((d.input > 1 ? RankFindings::kStartsApart : 0) |
                                    (d.output > 1 ? RankFindings::kEndsApart : 0) |
                                    (d.unwritten ? RankFindings::kReadsUnwritten : 0));
  }
  return marks;
}

/// What is computed another way inside a module that agrees neither starts nor ends apart.
void ForgetRewritten(const OpList& ops, const Differences& found, BigArray<uint8_t>* marks) {
  if (found.ruler.rewritten == 0) return;
  for (size_t i = 0; i < marks->size(); ++i) {
    const bool told = (found.verdicts[i] != RulerVerdict::kNone && found.verdicts[i] != RulerVerdict::kRewritten) ||
                      i == found.Answer().op;
    if (!told && !IsCommunication(ops.NameAt(i))) (*marks)[i] = 0;
  }
}

/// Counts the ops that inherit a difference, and those that begin one, by module and direction.
class Infection {
 public:
  explicit Infection(const ModuleTree& tree) : tree_(tree) {}

  /// `answer`: the op at which the rank's difference begins.
  void Count(const DumpFile& dump, const BigArray<RulerVerdict>& verdicts, size_t answer, RankFindings* out) {
    std::vector<InfectedGroup>& groups = out->infected;
    std::map<std::pair<std::string, bool>, uint32_t> known;
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      if (verdicts[i] != RulerVerdict::kInherited && !Begins(verdicts[i])) continue;
      const std::string_view name = dump.ops().NameAt(i);
      const bool backward = ParseOpName(name).direction == OpDirection::kBackward ||
                            ParseOpName(name).direction == OpDirection::kParameterGrad;
      const auto [it, fresh] =
          known.emplace(std::pair(std::string(ModuleOf(name)), backward), static_cast<uint32_t>(groups.size()));
      if (fresh) {
        InfectedGroup& g = groups.emplace_back();
        g.rank = out->rank;
        g.module = SharedName(it->first.first);
        g.backward = backward;
      }
      InfectedGroup& g = groups[it->second];
      // Small differences that add up before the answer are not what follows from it.
      if (g.ops++ == 0 || (g.first_op < answer && i >= answer)) {
        g.first_op = i;
        g.first = SharedName(name);
      }
      if (Begins(verdicts[i])) out->begun.push_back({i, 0, verdicts[i], it->second});
    }
  }

 private:
  std::string_view ModuleOf(std::string_view name) const {
    if (!IsModuleName(name)) {
      name = tree_.ParentOf(name);
      if (!IsModuleName(name)) return {};
    }
    return ModulePath(name);
  }

  const ModuleTree& tree_;
};

}  // namespace

std::string_view ModulePath(std::string_view name) {
  const NameParts op = ParseOpName(name);
  std::string_view path = op.base.substr(std::min(op.base.size(), op.base.find('.') + 1));
  const size_t dot = path.rfind('.');  // the class
  return dot == std::string_view::npos ? path : path.substr(0, dot);
}

StatusOr<RankFindings> FindOnRank(const DumpPair& pair, const FilePair& files, OpDistances distances,
                                  const BigArray<float>* calibrated, Differences* per_op) {
  RankFindings out;
  out.rank = files.rank;
  out.files = files;
  for (size_t i = 0; i < pair.plan.golden_of.size(); ++i)
    out.target_only += pair.plan.golden_of[i] == kNoOp && !pair.plan.NotSeen(i);
  out.gaps = pair.gaps;
  out.unseen = pair.plan.target_unseen + pair.plan.golden_unseen;
  out.golden_only = pair.plan.golden_only.size();
  MSP_ASSIGN_OR_RETURN(out.calls, ReadCalls(files.rank, *pair.target));
  MSP_RETURN_IF_ERROR(JudgeCalls(pair, out.calls, &distances));
  out.marks = Marks(distances);
  MSP_ASSIGN_OR_RETURN(out.differences, FindDifferences(pair, std::move(distances), calibrated));
  ForgetRewritten(pair.target->ops(), out.differences, &out.marks);
  MSP_ASSIGN_OR_RETURN(out.evidence, EvidenceOf(pair, files, out.differences));
  Infection(*out.differences.tree).Count(*pair.target, out.differences.verdicts, out.differences.Answer().op, &out);
  out.infected.shrink_to_fit();
  out.begun.shrink_to_fit();
  if (per_op) {
    per_op->verdicts = std::move(out.differences.verdicts);
    per_op->contexts = std::move(out.differences.contexts);
  }
  out.differences.tree = nullptr;
  out.differences.verdicts = {};
  out.differences.contexts = {};
  return out;
}

void ShareNames(SharedNames* names, RankFindings* found) {
  for (InfectedGroup& group : found->infected) {
    names->Share(&group.module);
    names->Share(&group.first);
  }
}

RankFindings SameFindingsOf(const RankFindings& found, const FilePair& files) {
  RankFindings out = found;
  out.rank = files.rank;
  out.files = files;
  out.calls = SameCallsOf(found.calls, files.rank);
  for (InfectedGroup& group : out.infected) group.rank = files.rank;
  return out;
}

}  // namespace msprobe
