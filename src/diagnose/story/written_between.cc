#include "diagnose/story/written_between.h"

#include <algorithm>
#include <cmath>

#include "compare/first_difference/optimizer_step.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kFewest = 2;        // weights that began at zero and agree on a ratio
constexpr double kSameRatio = 1e-3;  // the update of each is rounded

bool HasGradients(const DumpFile& dump) {
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    if (ParseOpName(dump.ops().NameAt(i)).direction == OpDirection::kParameterGrad) return true;
  }
  return false;
}

bool WasZero(const ItemView& item) { return item.stats[kNorm].IsNumber() && item.stats[kNorm].AsDouble() == 0; }

/// The parameters of modules in the two steps.
class Weights {
 public:
  Weights(const DumpFile& before, const DumpFile& target, const DumpFile& golden)
      : before_(before), target_(target), golden_(golden) {}

  Status Look(WrittenBetween* out) {
    ItemViews now(target_, CompareMode::kStatistics), other(golden_, CompareMode::kStatistics);
    for (size_t i = 0; i < target_.ops().size(); ++i) {
      const std::string_view name = target_.ops().NameAt(i);
      const NameParts parts = ParseOpName(name);
      if (!IsModuleName(name) || parts.direction != OpDirection::kForward || parts.number != "0") continue;
      const auto partner = golden_.FindOp(name);
      if (!partner) continue;
      MSP_RETURN_IF_ERROR(now.Read(i));
      MSP_RETURN_IF_ERROR(other.Read(*partner));
      for (const ItemView& item : now.items()) {
        const auto at = std::ranges::find(other.items(), item.suffix, &ItemView::suffix);
        if (item.state != ItemState::kParameter || at == other.items().end() || PrintOf(item) == PrintOf(*at)) continue;
        ++out->weights;
        MSP_RETURN_IF_ERROR(AddRatio(name, item, *at));
      }
    }
    out->update_ratio = Ratio();
    return OkStatus();
  }

 private:
  /// Of a weight that was zero the value is the update.
  Status AddRatio(std::string_view name, const ItemView& item, const ItemView& golden) {
    const auto at = before_.FindOp(name);
    const bool numbers = item.stats[kNorm].IsNumber() && golden.stats[kNorm].IsNumber();
    if (!at || !numbers || golden.stats[kNorm].AsDouble() == 0) return OkStatus();
    ItemViews read(before_, CompareMode::kStatistics);
    MSP_RETURN_IF_ERROR(read.Read(*at));
    const auto own = std::ranges::find(read.items(), item.suffix, &ItemView::suffix);
    if (own == read.items().end() || !WasZero(*own)) return OkStatus();
    const double ratio = item.stats[kNorm].AsDouble() / golden.stats[kNorm].AsDouble();
    const auto mean = [](const ItemView& one) { return one.stats[kMean].IsNumber() ? one.stats[kMean].AsDouble() : 0; };
    ratios_.push_back(std::signbit(mean(item)) == std::signbit(mean(golden)) ? ratio : -ratio);
    return OkStatus();
  }

  double Ratio() const {
    if (ratios_.size() < kFewest || ratios_.front() == 0) return 0;
    const double first = ratios_.front();
    const auto same = [&](double r) { return std::fabs(r - first) <= kSameRatio * std::fabs(first); };
    return std::ranges::all_of(ratios_, same) && std::fabs(first - 1) > kSameRatio ? first : 0;
  }

  const DumpFile &before_, &target_, &golden_;
  std::vector<double> ratios_;
};

}  // namespace

StatusOr<WrittenBetween> LookBetween(const FilePair& before, const FilePair& now) {
  WrittenBetween out;
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(before.target));
  MSP_ASSIGN_OR_RETURN(const std::vector<OptimizerSetting> update, OptimizerSettingsOf(dump));
  if (update.empty() && !HasGradients(dump)) return out;
  out.step = before.step;
  out.update_unseen = update.empty();
  MSP_ASSIGN_OR_RETURN(const DumpFile target, DumpFile::Open(now.target));
  MSP_ASSIGN_OR_RETURN(const DumpFile golden, DumpFile::Open(now.golden));
  MSP_RETURN_IF_ERROR(Weights(dump, target, golden).Look(&out));
  if (!out.update_unseen) out.update_ratio = 0;
  return out;
}

void TellBetween(const WrittenBetween& between, std::vector<StoryOrigin>* origins) {
  if (between.step < 0 || origins->empty() || origins->front().cause != Cause::kWeight) return;
  StoryOrigin& first = origins->front();
  first.written_behind = between.step;
  first.update_unseen = between.update_unseen;
  first.update_ratio = between.update_ratio;
  first.weights = between.weights;
  const int step = first.step;
  const std::vector<int> ranks = first.ranks;
  const auto likewise = [&](const StoryOrigin& o) {
    return o.cause == Cause::kWeight && !o.buffer && o.step == step && o.ranks == ranks;
  };
  origins->erase(std::remove_if(origins->begin() + 1, origins->end(), likewise), origins->end());
}

}  // namespace msprobe
