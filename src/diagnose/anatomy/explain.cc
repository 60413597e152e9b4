#include "diagnose/anatomy/explain.h"

#include <algorithm>

#include "compare/round_off/ruler.h"
#include "diagnose/anatomy/by_others.h"
#include "diagnose/anatomy/by_place.h"
#include "diagnose/anatomy/by_statistics.h"
#include "diagnose/anatomy/by_value.h"
#include "diagnose/anatomy/op_items.h"

namespace msprobe {
namespace {

constexpr size_t kMostItems = 4;  // of the op

class Explainer {
 public:
  Explainer(const OriginEvidence& evidence, const AnatomyContext& context)
      : evidence_(evidence),
        context_(context),
        target_(OpItems::Read(evidence.target)),
        golden_(OpItems::Read(evidence.golden)) {}

  Anatomy Explain() {
    if (!target_ || !golden_) return {};
    factors_.ranks = static_cast<int>(context_.ranks.size());
    for (const OpItems* op : {target_.get(), golden_.get()}) {
      for (const ItemView& item : op->items()) AddDimensions(item);
    }
    for (const auto& [target, golden] : Candidates()) {
      Anatomy out = ExplainItem(*target, *golden);
      if (!out.found()) continue;
      // Where an op is missing, or there is one more, the item is that of another op.
      out.item = evidence_.both ? evidence_.target.name + target->suffix
                                : target->suffix.substr(target->suffix.starts_with('.') ? 1 : 0);
      return out;
    }
    return {};
  }

 private:
  using Candidate = std::pair<const ItemView*, const ItemView*>;

  void AddDimensions(const ItemView& item) {
    if (!item.tensor || !item.dims || !item.dims->IsArray()) return;
    for (const JsonValue& n : item.dims->Items()) {
      if (n.IsNumber()) factors_.dimensions.push_back(static_cast<int64_t>(n.Number()));
    }
  }

  /// The item that is named, then others that differ: of the kind at which the difference begins.
  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> out;
    const auto add = [&](const ItemView& item) {
      const ItemView* golden = golden_->Find(item.suffix);
      if (out.size() < kMostItems && item.tensor && golden && golden->tensor) out.emplace_back(&item, golden);
    };
    if (const ItemView* named = target_->Find(evidence_.item); named && !evidence_.item.empty()) add(*named);
    for (const bool results : {evidence_.results, !evidence_.results}) {
      if (results != evidence_.results && !evidence_.both) break;
      for (const ItemView& item : target_->items()) {
        const ItemView* golden = golden_->Find(item.suffix);
        if (IsResult(item.state) != results || item.suffix == evidence_.item || !golden) continue;
        if (!SameStatistics(item, *golden)) add(item);
      }
    }
    return out;
  }

  Anatomy ExplainItem(const ItemView& target, const ItemView& golden) const {
    // What has another shape may belong to another op: values that are equal elsewhere are no fault.
    if (evidence_.shapes && target.shape == golden.shape) return {};
    if (!evidence_.tensors || !target.HasData() || !golden.HasData()) return OfStatistics(target, golden);
    const ItemValues a = ValuesOf(TensorFolder(evidence_.files.target), target.data_name, target.dtype);
    const ItemValues b = ValuesOf(TensorFolder(evidence_.files.golden), golden.data_name, golden.dtype);
    if (!a.elements || !b.elements) return OfStatistics(target, golden);
    if (a.elements->shape() != b.elements->shape())
      return Counted(ExplainShapes(*a.elements, *b.elements), *a.elements);
    const ValuePair pair(*a.elements, *b.elements);
    if (pair.differing().empty()) return {};
    const ItemAtHand at{evidence_, context_, target, golden, &pair};
    Anatomy out = ExplainPadding(at);
    if (!out.found()) out = ExplainStale(at);
    if (!out.found()) out = ExplainByValue(pair, factors_);
    if (!out.found()) out = ExplainAccumulated(at);
    if (!out.found()) out = ExplainPartial(at, *target_, *golden_);
    if (!out.found()) out = ExplainByPlace(pair);
    if (!out.found()) out = ExplainByEntries(pair);
    out = Counted(std::move(out), *a.elements);
    out.compared = pair.looked();
    return out;
  }

  static Anatomy Counted(Anatomy out, const ElementsOf& elements) {
    out.compared = std::min(elements.size(), ElementsOf::kMostHeld);
    out.elements = elements.size();
    return out;
  }

  Anatomy OfStatistics(const ItemView& target, const ItemView& golden) const {
    if (evidence_.shapes) return {};
    const ItemAtHand at{evidence_, context_, target, golden, nullptr};
    Anatomy out = ExplainStale(at);
    if (!out.found()) out = ExplainByStatistics(target, golden, factors_);
    if (!out.found()) out = ExplainAccumulated(at);
    out.elements = ElementCount(target);
    return out;
  }

  const OriginEvidence& evidence_;
  const AnatomyContext& context_;
  const std::unique_ptr<OpItems> target_, golden_;
  FactorContext factors_;
};

}  // namespace

Anatomy ExplainOrigin(const OriginEvidence& evidence, const AnatomyContext& context) {
  return Explainer(evidence, context).Explain();
}

}  // namespace msprobe
