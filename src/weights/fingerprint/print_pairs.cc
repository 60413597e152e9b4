#include "weights/fingerprint/print_pairs.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "weights/role_words.h"

namespace msprobe {
namespace {

constexpr size_t kNone = SIZE_MAX;

using Places = std::unordered_map<std::string, size_t>;

/// By `key`; what two weights have in common leads to none.
template <typename Key>
Places PlacesBy(const WholeModel& model, const std::vector<bool>& taken, const Key& key) {
  Places out;
  for (size_t i = 0; i < model.weights.size(); ++i) {
    if (taken[i]) continue;
    const auto [found, fresh] = out.emplace(key(model.weights[i].head), i);
    if (!fresh) found->second = kNone;
  }
  return out;
}

const WholePrint* OfRole(const WholeModel& model, const std::string& role) {
  const WholePrint* found = nullptr;
  for (const WholePrint& w : model.weights) {
    if (w.head.role != role) continue;
    if (found) return nullptr;
    found = &w;
  }
  return found;
}

/// Cuts what `model` holds as one and `other` in parts, where the parts lie one behind the other.
void CutAs(const WholeModel& other, WholeModel* model) {
  struct Fusion {
    std::string_view whole;
    std::vector<std::string_view> parts;
  };
  static const std::array<Fusion, 3> kFusions{{{"attention.qkv", {"attention.q", "attention.k", "attention.v"}},
                                               {"attention.kv", {"attention.k", "attention.v"}},
                                               {"mlp.gate_up", {"mlp.gate", "mlp.up"}}}};
  std::vector<WholePrint> out;
  for (WholePrint& w : model->weights) {
    const std::string& leaf = ParseWeightName(w.head.name).leaf;
    const bool interleaved = leaf == "linear_qkv" || leaf == "query_key_value" || leaf == "linear_kv";
    std::vector<WholePrint> cut;
    for (const Fusion& fusion : kFusions) {
      const size_t at = w.head.role.find(std::string(fusion.whole) + " ");
      if (at == std::string::npos || interleaved || w.head.shape.empty()) continue;
      int64_t row = 0;
      for (const std::string_view part : fusion.parts) {
        std::string role = w.head.role;
        role.replace(at, fusion.whole.size(), part);
        const WholePrint* like = OfRole(other, role);
        if (!like || row + like->size.rows > w.size.rows) break;
        cut.push_back(RowsOfWhole(w, row, row + like->size.rows, std::string(part.substr(part.find('.') + 1)), role));
        row += like->size.rows;
      }
      if (cut.size() != fusion.parts.size() || row != w.size.rows) cut.clear();
    }
    if (cut.empty()) {
      out.push_back(std::move(w));
    } else {
      std::move(cut.begin(), cut.end(), std::back_inserter(out));
    }
  }
  model->weights = std::move(out);
}

class PrintMatcher {
 public:
  PrintMatcher(const WholeModel& a, const WholeModel& b)
      : a_(a), b_(b), partner_(a.weights.size(), kNone), taken_a_(a.weights.size()), taken_b_(b.weights.size()) {}

  std::vector<PrintPair> Run() {
    By([](const WeightPrint& w) { return w.role + '\n' + w.label(); });
    By([](const WeightPrint& w) { return w.role; });
    By([](const WeightPrint& w) { return ParseWeightName(w.name).rest + '\n' + w.part; });
    std::vector<PrintPair> out;
    for (size_t i = 0; i < partner_.size(); ++i) {
      out.push_back({&a_.weights[i], partner_[i] == kNone ? nullptr : &b_.weights[partner_[i]], false});
    }
    for (size_t i = 0; i < taken_b_.size(); ++i) {
      if (!taken_b_[i]) out.push_back({nullptr, &b_.weights[i], false});
    }
    for (PrintPair& pair : out) Tie(&pair);
    return out;
  }

 private:
  template <typename Key>
  void By(const Key& key) {
    const Places in_a = PlacesBy(a_, taken_a_, key), in_b = PlacesBy(b_, taken_b_, key);
    for (size_t i = 0; i < partner_.size(); ++i) {
      if (taken_a_[i] || in_a.at(key(a_.weights[i].head)) != i) continue;
      const auto found = in_b.find(key(a_.weights[i].head));
      if (found == in_b.end() || found->second == kNone) continue;
      partner_[i] = found->second;
      taken_a_[i] = taken_b_[found->second] = true;
    }
  }

  /// A head that one side does not store is its table of words, unless the model says that it has its own.
  void Tie(PrintPair* pair) const {
    const WholePrint* own = pair->a ? pair->a : pair->b;
    if ((pair->a && pair->b) || own->head.role != "head weight") return;
    const WholeModel& other = pair->a ? b_ : a_;
    const WholePrint* table = OfRole(other, "embed weight");
    if (!table || other.facts.tied == false) return;
    (pair->a ? pair->b : pair->a) = table;
    pair->tied = true;
  }

  const WholeModel &a_, &b_;
  std::vector<size_t> partner_;
  std::vector<bool> taken_a_, taken_b_;
};

}  // namespace

std::vector<PrintPair> PairPrints(WholeModel* a, WholeModel* b) {
  CutAs(*a, b);
  CutAs(*b, a);
  return PrintMatcher(*a, *b).Run();
}

}  // namespace msprobe
