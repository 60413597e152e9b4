#include "match/module_items.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/text.h"
#include "dump/dump_items.h"
#include "match/modules/left_bias.h"
#include "match/structure.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kOpsPerTask = 256;
constexpr std::array<const char*, 4> kStats{"Max", "Min", "Mean", "Norm"};
constexpr double kClose = 0.02;  // of two tensors that are taken for one because of what they hold

struct ModuleItem {
  ItemState state = ItemState::kInput;
  std::string suffix;
  int64_t count = 0, last = 0;  // elements, and size of the last dimension
  bool floats = false;
  std::array<double, kStats.size()> stats{};  // NaN: not known
  int partner = -1;

  bool given() const { return state == ItemState::kInput || state == ItemState::kKwarg; }
  bool Fits(const ModuleItem& o) const {
    return given() == o.given() && (given() || state == o.state) && count == o.count && floats == o.floats;
  }
  /// Relative to the largest element.
  double Apart(const ModuleItem& o) const {
    const double scale = std::max({std::fabs(stats[0]), std::fabs(stats[1]), std::fabs(o.stats[0]), 1e-30});
    double out = 0;
    for (size_t k = 0; k < kStats.size(); ++k) {
      const double against = k == 3 ? std::max(std::fabs(stats[k]), 1e-30) : scale;
      const double own = std::fabs(stats[k] - o.stats[k]) / against;
      if (!(own <= out)) out = own;  // NaN is far
    }
    return out;
  }
};

bool IsFloat(std::string_view dtype) { return Contains(dtype, "loat") || Contains(dtype, "omplex"); }

class ItemReader {
 public:
  explicit ItemReader(const DumpFile& dump) : items_(dump) {}

  StatusOr<std::vector<ModuleItem>> Read(uint32_t op) {
    MSP_ASSIGN_OR_RETURN(std::vector<Item>* const items, items_.Read(op));
    std::vector<ModuleItem> out;
    for (Item& item : *items) {
      const JsonValue* dtype = item.leaf && item.leaf->IsObject() ? item.leaf->Find("dtype") : nullptr;
      if (!dtype || !dtype->IsString()) continue;
      ModuleItem found;
      found.state = item.state;
      found.count = ElementsOf(*item.leaf);
      if (const JsonValue* shape = item.leaf->Find("shape"); shape && shape->IsArray() && shape->size() > 0) {
        const JsonValue& last = shape->Items().back();
        if (last.IsInt()) found.last = last.Int();
      }
      found.floats = IsFloat(dtype->Text());
      for (size_t k = 0; k < kStats.size(); ++k) {
        const JsonValue* v = item.leaf->Find(kStats[k]);
        found.stats[k] = v && v->IsNumber() ? v->Number() : std::nan("");
      }
      found.suffix = std::move(item.suffix);
      out.push_back(std::move(found));
    }
    return out;
  }

 private:
  DumpItems items_;
};

using Items = std::vector<ModuleItem>;

size_t CountOf(const Items& items, ItemState state) {
  return static_cast<size_t>(std::ranges::count(items, state, &ModuleItem::state));
}

std::vector<GivenTensor> GivenBy(const Items& items) {
  std::vector<GivenTensor> out;
  for (const ModuleItem& item : items) {
    if (item.state == ItemState::kOutput && item.floats) out.push_back({item.count, item.last});
  }
  return out;
}

std::string_view LastName(std::string_view suffix) { return suffix.substr(suffix.rfind('.') + 1); }

class Linker {
 public:
  Linker(Items* target, Items* golden) : a_(*target), b_(*golden), taken_(golden->size(), false) {}

  void Run(bool results) {
    for (ModuleItem& x : a_) {
      if (x.state == ItemState::kParameter || x.state == ItemState::kParameterGrad) ByParameter(&x);
    }
    First();
    for (ModuleItem& x : a_) {
      if (x.partner < 0 && x.given() && !IsDigits(LastName(x.suffix))) Nearest(&x, true);
    }
    for (ModuleItem& x : a_) {
      if (x.partner >= 0 || (!x.given() && (x.state != ItemState::kOutput || !results))) continue;
      if (x.floats && InOrder(&x)) continue;
      Nearest(&x, false);
    }
  }

 private:
  void Join(ModuleItem* x, size_t j) {
    x->partner = static_cast<int>(j);
    taken_[j] = true;
  }

  void ByParameter(ModuleItem* x) {
    const std::string_view own = CommonParameter(LastName(x->suffix));
    for (size_t j = 0; j < b_.size(); ++j) {
      const bool same = b_[j].state == x->state && CommonParameter(LastName(b_[j].suffix)) == own;
      if (same && !taken_[j] && x->partner < 0) Join(x, j);
    }
  }

  /// What a module works on is its first floating tensor, whatever it is called.
  void First() {
    const auto first = [](Items& items) {
      return std::ranges::find_if(items, [](const ModuleItem& i) { return i.given() && i.floats; });
    };
    const auto x = first(a_), y = first(b_);
    if (x != a_.end() && y != b_.end() && x->Fits(*y)) Join(&*x, static_cast<size_t>(y - b_.begin()));
  }

  /// Where both sides have as many that look alike.
  bool InOrder(ModuleItem* x) {
    size_t left = 0, own = 0;
    for (const ModuleItem& other : a_) {
      if (other.partner >= 0 || !other.Fits(*x)) continue;
      ++own;
      left += &other < x;
    }
    std::vector<size_t> theirs;
    for (size_t j = 0; j < b_.size(); ++j) {
      if (!taken_[j] && b_[j].Fits(*x)) theirs.push_back(j);
    }
    if (theirs.size() != own || left >= theirs.size()) return false;
    Join(x, theirs[left]);
    return true;
  }

  /// `named`: of one name. Without that of values that are close, of integers that are equal; the only one of its kind
  /// on both sides needs no proof.
  void Nearest(ModuleItem* x, bool named) {
    size_t best = b_.size(), fitting = 0;
    double least = x->floats ? kClose : 0;
    for (size_t j = 0; j < b_.size(); ++j) {
      if (taken_[j] || !b_[j].Fits(*x)) continue;
      ++fitting;
      if (named && LastName(b_[j].suffix) == LastName(x->suffix)) return Join(x, j);
      const double apart = x->Apart(b_[j]);
      if (named || apart > least || (best < b_.size() && apart == least)) continue;
      least = apart;
      best = j;
    }
    if (named) return;
    if (best < b_.size()) return Join(x, best);
    const auto like = [&](const Items& items) {
      return std::ranges::count_if(items, [&](const ModuleItem& o) { return o.Fits(*x); });
    };
    if (fitting != 1 || like(a_) != 1 || like(b_) != 1) return;
    Join(x,
         static_cast<size_t>(std::ranges::find_if(b_, [&](const ModuleItem& o) { return o.Fits(*x); }) - b_.begin()));
  }

  Items &a_, &b_;
  std::vector<bool> taken_;
};

OpLinks LinksOf(const Items& target, const Items& golden, uint32_t op) {
  OpLinks out;
  for (const ModuleItem& item : target) {
    if (item.partner < 0) continue;
    out.links.push_back({item.suffix, golden[static_cast<size_t>(item.partner)].suffix, op});
  }
  return out;
}

}  // namespace

Status LinkModuleItems(const DumpFile& target, const DumpFile& golden, MatchPlan* plan) {
  std::mutex mutex;
  std::vector<std::pair<uint32_t, OpLinks>> found;
  const size_t ops = target.ops().size();
  MSP_RETURN_IF_ERROR(ParallelFor((ops + kOpsPerTask - 1) / kOpsPerTask, [&](size_t task) -> Status {
    ItemReader reader(target), golden_reader(golden);
    std::vector<std::pair<uint32_t, OpLinks>> mine;
    for (size_t i = task * kOpsPerTask; i < std::min(ops, (task + 1) * kOpsPerTask); ++i) {
      const auto op = static_cast<uint32_t>(i);
      const uint32_t g = plan->golden_of[i];
      if (g == kNoOp || plan->links.count(op) || !IsModuleName(target.ops().NameAt(i))) continue;
      MSP_ASSIGN_OR_RETURN(Items a, reader.Read(op));
      MSP_ASSIGN_OR_RETURN(Items b, golden_reader.Read(g));
      const bool parameters = CountOf(a, ItemState::kParameter) > 0 || CountOf(b, ItemState::kParameter) > 0;
      const bool as_many = CountOf(a, ItemState::kOutput) == CountOf(b, ItemState::kOutput);
      Linker(&a, &b).Run((parameters || as_many) && LeavesBias(GivenBy(a)) == LeavesBias(GivenBy(b)));
      mine.emplace_back(op, LinksOf(a, b, g));
    }
    const std::lock_guard lock(mutex);
    for (auto& entry : mine) found.push_back(std::move(entry));
    return OkStatus();
  }));
  for (auto& [op, links] : found) plan->links.emplace(op, std::move(links));
  return OkStatus();
}

}  // namespace msprobe
