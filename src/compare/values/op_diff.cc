#include "compare/values/op_diff.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "ops/framework_names.h"

namespace msprobe {
namespace {

// Up to this many items a partner is looked for one by one.
constexpr size_t kScanLimit = 16;

/// Finds for each target item its partner: the first free golden item of the same suffix (mostly both sides list the
/// same items), or the next of its kind.
class Partners {
 public:
  Partners(bool by_place, OpDiff* op) : by_place_(by_place), op_(op) {
    op->golden_taken.assign(op->golden_used, false);
  }

  int Take(size_t row) {
    if (by_place_) return TakeNext(KindOrder(op_->target[row].state));
    const std::string& suffix = op_->target[row].suffix;
    size_t at = row;
    if (!Fits(at, suffix)) at = op_->golden_used <= kScanLimit ? Scan(suffix) : LookUp(suffix);
    if (at >= op_->golden_used) return kNoItem;
    op_->golden_taken[at] = true;
    return static_cast<int>(at);
  }

 private:
  int TakeNext(int kind) {
    const auto kind_of = [&](size_t i) { return KindOrder(op_->golden[i].state); };
    while (next_ < op_->golden_used && kind_of(next_) < kind) ++next_;
    if (next_ == op_->golden_used || kind_of(next_) != kind) return kNoItem;
    op_->golden_taken[next_] = true;
    return static_cast<int>(next_++);
  }
  bool Fits(size_t i, const std::string& suffix) const {
    return i < op_->golden_used && !op_->golden_taken[i] && op_->golden[i].suffix == suffix;
  }
  size_t Scan(const std::string& suffix) const {
    size_t i = 0;
    while (i < op_->golden_used && !Fits(i, suffix)) ++i;
    return i;
  }
  size_t LookUp(const std::string& suffix) {
    if (index_.empty()) {
      for (size_t i = 0; i < op_->golden_used; ++i) index_.emplace(op_->golden[i].suffix, i);
    }
    size_t best = op_->golden_used;
    const auto [begin, end] = index_.equal_range(suffix);
    for (auto it = begin; it != end; ++it) {
      if (!op_->golden_taken[it->second]) best = std::min(best, it->second);
    }
    return best;
  }

  const bool by_place_;
  OpDiff* op_;
  size_t next_ = 0;
  std::unordered_multimap<std::string_view, size_t> index_;
};

bool GradConsistent(const DiffOptions& options, const ItemView& target, const ItemView* golden) {
  if (!golden) return !options.dialect.judges_alone && target.requires_grad == ItemView::Grad::kNA;
  if (target.requires_grad == golden->requires_grad) return true;
  // MindSpore does not record it.
  return options.cross && (target.requires_grad == ItemView::Grad::kNA || golden->requires_grad == ItemView::Grad::kNA);
}

/// Parameters and settings under the names that both frameworks have for them: ".parameters.gamma" is
/// ".parameters.weight", ".input.axis" is ".input.dim".
void UseCommonNames(size_t count, std::vector<ItemView>* items) {
  constexpr std::string_view kInput = ".input.";
  for (size_t i = 0; i < count; ++i) {
    ItemView& item = (*items)[i];
    if (item.state == ItemState::kKwarg && StartsWith(item.suffix, kInput)) {
      const CommonArgument common = CommonArgumentOf(std::string_view(item.suffix).substr(kInput.size()));
      if (!common.name.empty()) item.suffix = std::string(kInput) + std::string(common.name);
    }
    if (item.state != ItemState::kParameter && item.state != ItemState::kParameterGrad) continue;
    const size_t begin = item.state == ItemState::kParameter ? item.suffix.rfind('.') + 1 : 1;
    if (begin >= item.suffix.size()) continue;
    const size_t end = std::min(item.suffix.find('.', begin), item.suffix.size());
    const std::string_view own = std::string_view(item.suffix).substr(begin, end - begin);
    const std::string_view common = CommonParameter(own);
    if (common != own) item.suffix = item.suffix.substr(0, begin) + std::string(common) + item.suffix.substr(end);
  }
}

}  // namespace

void DiffOps(std::string_view target_name, const JsonValue& target, std::string_view golden_name,
             const JsonValue* golden, const DiffOptions& options, OpDiff* out) {
  out->op = target_name;
  out->golden_op = golden_name;
  out->matched = golden != nullptr;
  DescribeOp(target_name, target, options.mode, &out->scratch, &out->target, &out->rows_used);
  out->golden_used = 0;
  if (golden == &target && golden_name == target_name) {
    out->golden_used = out->rows_used;
    if (out->golden.size() < out->rows_used) out->golden.resize(out->rows_used);
    std::copy_n(out->target.begin(), out->rows_used, out->golden.begin());
  } else if (golden) {
    DescribeOp(golden_name, *golden, options.mode, &out->scratch, &out->golden, &out->golden_used);
  }
  out->valid = ValidLengths();
  if (const TensorSource* tensors = options.tensors) {
    out->valid.target = tensors->ValidLengthOf(target_name, out->target, out->rows_used, false);
    out->valid.golden = tensors->ValidLengthOf(golden_name, out->golden, out->golden_used, true);
  }
  DiffItems(options, out);
}

void DiffItems(const DiffOptions& options, OpDiff* out) {
  const ValidLengths valid = std::exchange(out->valid, ValidLengths());  // of this op only
  out->thresholds = options.thresholds;
  out->cross = options.cross;
  out->implementations = options.implementations;
  out->resplit = options.resplit;
  out->ruler.clear();
  if (options.cross) {
    UseCommonNames(out->rows_used, &out->target);
    UseCommonNames(out->golden_used, &out->golden);
  }
  if (out->rows.size() < out->rows_used) out->rows.resize(out->rows_used);
  if (options.tensors && out->tensors.size() < out->rows_used) out->tensors.resize(out->rows_used);
  Partners partners(options.dialect.by_place, out);
  for (size_t i = 0; i < out->rows_used; ++i) {
    DiffRow& row = out->rows[i];
    row = DiffRow();
    row.golden = partners.Take(i);
    const ItemView& target = out->target[i];
    // Arguments of two frameworks that are no tensors stand at one position by chance.
    const bool check_dtype = options.check_dtype || (options.cross && !target.tensor);
    if (row.golden != kNoItem && check_dtype &&
        !DTypesMatch(target.dtype, out->golden[static_cast<size_t>(row.golden)].dtype)) {
      row.golden = kNoItem;
    }
    const ItemView* golden = row.golden == kNoItem ? nullptr : &out->golden[static_cast<size_t>(row.golden)];
    const bool apart = target.other_part || (golden && golden->other_part);
    row.grad_consistent = apart || (golden && options.layouts) || GradConsistent(options, target, golden);
    if (options.tensors) options.tensors->Diff(target, golden, &out->tensors[i], valid);
    if (!golden || options.mode == CompareMode::kChecksum) continue;
    for (size_t k = 0; k < kStatCount; ++k) row.diff[k] = DiffStats(target.stats[k], golden->stats[k], options.dialect);
  }
  ApplyRules(options, out);
}

}  // namespace msprobe
