#include "compare/op_diff.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "compare/rules.h"
#include "tensor/dtype.h"

namespace msprobe {
namespace {

// Up to this many items a partner is looked for one by one.
constexpr size_t kScanLimit = 16;

/// Finds for each target item the first free golden item at the same position. Mostly both sides list the same items.
class Partners {
 public:
  explicit Partners(OpDiff* op) : op_(op) { op->golden_taken.assign(op->golden_used, false); }

  int Take(size_t row) {
    const std::string& suffix = op_->target[row].suffix;
    size_t at = row;
    if (!Fits(at, suffix)) at = op_->golden_used <= kScanLimit ? Scan(suffix) : LookUp(suffix);
    if (at >= op_->golden_used) return kNoItem;
    op_->golden_taken[at] = true;
    return static_cast<int>(at);
  }

 private:
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

  OpDiff* op_;
  std::unordered_multimap<std::string_view, size_t> index_;
};

bool IsFloatName(std::string_view s) { return s == "float16" || s == "float32" || s == "float64" || s == "bfloat16"; }

/// The dtype of a number given as `src` or `dst` is the bare name of its class.
bool IsPythonClass(std::string_view s) { return s == "int" || s == "float" || s == "bool" || s == "complex"; }

bool GradUnknown(const ItemView& a, const ItemView& b) {
  return a.requires_grad == ItemView::Grad::kNA || b.requires_grad == ItemView::Grad::kNA;
}

bool IsMindSporeFloat(std::string_view s) {
  return s == "Float16" || s == "Float32" || s == "Float64" || s == "BFloat16";
}

}  // namespace

std::string_view VerdictText(Verdict v) {
  return v == Verdict::kError ? "error" : v == Verdict::kWarning ? "warning" : "pass";
}

bool SameDType(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const DType known = ParseDType(a);
  return known != DType::kUnknown && known == ParseDType(b);
}

bool DTypesMatch(std::string_view a, std::string_view b) {
  if (a == b) return true;
  constexpr std::string_view kTorch = "torch.";
  if (StartsWith(a, kTorch) && StartsWith(b, kTorch)) {
    return IsFloatName(a.substr(kTorch.size())) && IsFloatName(b.substr(kTorch.size()));
  }
  if (IsMindSporeFloat(a) && IsMindSporeFloat(b)) return true;
  // Two frameworks have their own names, and their own default integers.
  if (StartsWith(a, kTorch) == StartsWith(b, kTorch) || IsPythonClass(a) || IsPythonClass(b)) return false;
  const DType x = ParseDType(a), y = ParseDType(b);
  if (x == DType::kUnknown || y == DType::kUnknown) return false;
  return x == y || (IsFloating(x) && IsFloating(y)) || (IsInteger(x) && IsInteger(y)) || (IsComplex(x) && IsComplex(y));
}

void DiffOps(std::string_view target_name, const JsonValue& target, std::string_view golden_name,
             const JsonValue* golden, const DiffOptions& options, OpDiff* out) {
  out->op = target_name;
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
  if (const TensorPairs* tensors = options.tensors) {
    out->valid.target = tensors->ValidLengthOf(target_name, out->target, out->rows_used, tensors->target());
    out->valid.golden = tensors->ValidLengthOf(golden_name, out->golden, out->golden_used, tensors->golden());
  }
  DiffItems(options, out);
}

void DiffItems(const DiffOptions& options, OpDiff* out) {
  const ValidLengths valid = std::exchange(out->valid, ValidLengths());  // of this op only
  out->thresholds = options.thresholds;
  out->ruler.clear();
  if (out->rows.size() < out->rows_used) out->rows.resize(out->rows_used);
  if (options.tensors && out->tensors.size() < out->rows_used) out->tensors.resize(out->rows_used);
  Partners partners(out);
  for (size_t i = 0; i < out->rows_used; ++i) {
    DiffRow& row = out->rows[i];
    row = DiffRow();
    row.golden = partners.Take(i);
    const ItemView& mine = out->target[i];
    if (row.golden != kNoItem && options.check_dtype &&
        !DTypesMatch(mine.dtype, out->golden[static_cast<size_t>(row.golden)].dtype)) {
      row.golden = kNoItem;
    }
    const ItemView* theirs = row.golden == kNoItem ? nullptr : &out->golden[static_cast<size_t>(row.golden)];
    row.grad_consistent = mine.requires_grad == (theirs ? theirs->requires_grad : ItemView::Grad::kNA) ||
                          (theirs && options.cross && GradUnknown(mine, *theirs));
    if (options.tensors) options.tensors->Diff(mine, theirs, &out->tensors[i], valid);
    if (!theirs || options.mode == CompareMode::kChecksum) continue;
    for (size_t k = 0; k < kStatCount; ++k) row.diff[k] = DiffStats(mine.stats[k], theirs->stats[k]);
  }
  ApplyRules(options, out);
}

}  // namespace msprobe
