#include "weights/match_values.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tensor/kernels/stats.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

constexpr int64_t kSample = 16384;   // elements of a tensor that are looked at
constexpr double kNear = 1e-2;       // relative difference of statistics that are taken for the same
constexpr double kClear = 4;         // the next candidate must be so many times farther away
constexpr double kAsNear = 1e-3;     // steps of distance in which names and places decide
constexpr size_t kMostAlike = 4096;  // tensors of one shape that are compared each with each

struct Profile {
  Stats stats;
  WeightName name;
};

Profile ProfileOf(const WeightTensor& t) {
  Profile out;
  out.name = ParseWeightName(t.name);
  const int64_t count = std::min(t.elements(), kSample);
  std::vector<char> bytes(static_cast<size_t>(count) * ElementSize(t.dtype));
  if (count > 0) GatherElements(t, 0, count, bytes.data());
  const int64_t shape[] = {count};
  (void)ComputeStats({bytes.data(), t.dtype, 1, shape, nullptr}, &out.stats);
  return out;
}

double Apart(double x, double y, double scale) {
  const double most = std::max({std::fabs(x), std::fabs(y), scale});
  return most > 0 ? std::fabs(x - y) / most : 0;
}

double Distance(const Profile& a, const Profile& b) {
  const double scale = 1e-3 * std::max(std::fabs(a.stats.norm), std::fabs(b.stats.norm)) /
                       std::sqrt(static_cast<double>(std::max<int64_t>(a.stats.count, 1)));
  double distance = 0;
  for (const auto& [x, y] :
       {std::pair{a.stats.norm, b.stats.norm}, {a.stats.max, b.stats.max}, {a.stats.min, b.stats.min}}) {
    distance = std::max(distance, Apart(x, y, scale));
  }
  // The mean of many elements that cancel out says little, so it counts against the spread.
  const double spread = std::max(std::fabs(a.stats.max), std::fabs(a.stats.min));
  return std::max(distance, spread > 0 ? std::fabs(a.stats.mean - b.stats.mean) / spread : 0);
}

/// Of tensors with the same values (all ones, all zeros), those of the same layer and word belong together.
double NamePenalty(const Profile& a, const Profile& b) {
  double penalty = a.name.layer == b.name.layer ? 0 : 1;
  if (a.name.param != b.name.param) penalty += 1;
  if (a.name.leaf != b.name.leaf) penalty += 0.5;
  return penalty;
}

/// How far down its list something stands.
double Share(size_t i, size_t count) { return static_cast<double>(i) / static_cast<double>(count); }
constexpr double kPlaceCounts = 0.1;

using Indices = std::vector<size_t>;
struct Shaped {
  Indices a, b;
};

class ValueMatcher {
 public:
  ValueMatcher(const std::vector<RoleTensor>& a, const std::vector<RoleTensor>& b) : a_(a), b_(b) {}

  std::vector<ValueMatch> Run(bool by_place) {
    std::map<std::vector<int64_t>, Shaped> shapes;
    for (size_t i = 0; i < a_.size(); ++i) shapes[Squeezed(a_[i].tensor).shape].a.push_back(i);
    for (size_t i = 0; i < b_.size(); ++i) shapes[Squeezed(b_[i].tensor).shape].b.push_back(i);
    for (auto& [shape, alike] : shapes) {
      if (alike.a.empty() || alike.b.empty() || alike.a.size() > kMostAlike || alike.b.size() > kMostAlike) continue;
      ByStatistics(&alike);
      if (by_place) ByPlace(alike);
    }
    std::sort(out_.begin(), out_.end(), [](auto& x, auto& y) { return x.a < y.a; });
    return out_;
  }

 private:
  struct Candidate {
    double distance, penalty;
    size_t a, b;
  };

  void ByStatistics(Shaped* alike) {
    std::map<size_t, Profile> of_a, of_b;
    for (const size_t i : alike->a) of_a[i] = ProfileOf(a_[i].tensor);
    for (const size_t i : alike->b) of_b[i] = ProfileOf(b_[i].tensor);
    std::vector<Candidate> near;
    std::map<size_t, double> nearest_a;
    for (const auto& [i, p] : of_a) {
      nearest_a[i] = INFINITY;
      for (const auto& [k, q] : of_b) {
        const double d = Distance(p, q);
        nearest_a[i] = std::min(nearest_a[i], d);
        const double place = std::fabs(Share(i, a_.size()) - Share(k, b_.size()));
        if (d < kNear) near.push_back({d, NamePenalty(p, q) + kPlaceCounts * place, i, k});
      }
    }
    // Clearly nearer than others first; what is as near is told apart by the names.
    std::erase_if(near, [&](const Candidate& c) { return c.distance > kClear * nearest_a[c.a] + kAsNear; });
    std::stable_sort(near.begin(), near.end(), [](const Candidate& x, const Candidate& y) {
      const auto steps = [](const Candidate& c) { return std::floor(c.distance / kAsNear); };
      return std::pair(steps(x), x.penalty) < std::pair(steps(y), y.penalty);
    });
    Indices used_a, used_b;
    for (const Candidate& c : near) {
      const auto has = [](const Indices& v, size_t i) { return std::find(v.begin(), v.end(), i) != v.end(); };
      if (has(used_a, c.a) || has(used_b, c.b)) continue;
      used_a.push_back(c.a);
      used_b.push_back(c.b);
      out_.push_back({c.a, c.b, MatchedBy::kStatistics});
    }
    const auto drop = [](Indices* v, const Indices& used) {
      std::erase_if(*v, [&](size_t i) { return std::find(used.begin(), used.end(), i) != used.end(); });
    };
    drop(&alike->a, used_a);
    drop(&alike->b, used_b);
  }

  /// As many on both sides, so each is where its partner is.
  void ByPlace(const Shaped& alike) {
    if (alike.a.size() != alike.b.size()) return;
    for (size_t i = 0; i < alike.a.size(); ++i) out_.push_back({alike.a[i], alike.b[i], MatchedBy::kStructure});
  }

  const std::vector<RoleTensor>&a_, &b_;
  std::vector<ValueMatch> out_;
};

}  // namespace

std::vector<ValueMatch> MatchByValues(const std::vector<RoleTensor>& a, const std::vector<RoleTensor>& b,
                                      bool by_place) {
  return ValueMatcher(a, b).Run(by_place);
}

}  // namespace msprobe
