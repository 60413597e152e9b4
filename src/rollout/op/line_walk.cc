#include "rollout/op/line_walk.h"

#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "rollout/op/attention_case.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

using Point = LinePoint;

constexpr size_t kMostSteps = 16, kMostTokens = 96, kMostRouted = 4096;
// What comes out may differ by so many times what went in: products and norms keep relative errors, gates and attention
// enlarge them.
constexpr double kKept = 3, kEnlarged = 8;
// What has grown slowly is computed once more as long as that takes no longer than a second or two.
constexpr double kMostReplayed = 1e9;

/// `most` of them, evenly spread.
template <typename T>
std::vector<T> Spread(const std::vector<T>& all, size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> out;
  for (size_t i = 0; i < most; ++i) out.push_back(all[i * (all.size() - 1) / std::max<size_t>(most - 1, 1)]);
  return out;
}

/// Tokens of some steps: half of them the last ones of their requests, which have logits.
std::vector<PairedToken> ChooseTokens(const TokenPairs& pairs) {
  std::vector<std::pair<uint32_t, uint32_t>> steps;
  for (const PairedToken& token : pairs.tokens) {
    const std::pair step{token.rollout.dump, token.rollout.call};
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  }
  steps = Spread(steps, kMostSteps);
  std::vector<size_t> last, other;
  for (size_t i = 0; i < pairs.tokens.size(); ++i) {
    const TokenRow& row = pairs.tokens[i].rollout;
    if (!std::binary_search(steps.begin(), steps.end(), std::pair{row.dump, row.call})) continue;
    (row.last >= 0 ? last : other).push_back(i);
  }
  last = Spread(last, std::max(kMostTokens / 2, kMostTokens - std::min(kMostTokens, other.size())));
  other = Spread(other, kMostTokens - std::min(kMostTokens, last.size()));
  last.insert(last.end(), other.begin(), other.end());
  std::sort(last.begin(), last.end());
  std::vector<PairedToken> out;
  for (const size_t i : last) out.push_back(pairs.tokens[i]);
  return out;
}

SideRows RowsOf(const ModelLine& line, const std::vector<PairedToken>& tokens, TokenRow PairedToken::*side) {
  SideRows out{&line, {}};
  for (const PairedToken& token : tokens) out.rows.push_back(token.*side);
  return out;
}

/// Logarithms of probabilities, for the distance of two heads.
double ProbabilityGap(const RowMatrix& a, const RowMatrix& b) {
  double sum = 0;
  for (size_t i = 0; i < a.rows; ++i) {
    const auto log_sum = [&](const float* row) {
      const double top = *std::max_element(row, row + a.width);
      double all = 0;
      for (size_t j = 0; j < a.width; ++j) all += std::exp(row[j] - top);
      return top + std::log(all);
    };
    const double la = log_sum(a.row(i)), lb = log_sum(b.row(i));
    for (size_t j = 0; j < a.width; ++j)
      sum += std::exp(a.row(i)[j] - la) * std::fabs(a.row(i)[j] - la - b.row(i)[j] + lb);
  }
  return sum;
}

class Walk {
 public:
  Walk(const SideOps& train, const SideOps& rollout, const TokenPairs& pairs, const std::vector<const SideOps*>& shards)
      : train_(train), rollout_(rollout, shards), pairs_(pairs), tokens_(ChooseTokens(pairs)) {
    out_.layers = std::max(train.layers(), rollout.layers());
    out_.tokens = tokens_.size();
    PartWidths widths = train_.WidthsOf(0);
    PartWidths other = rollout_.WidthsOf(0);
    const auto ranks = static_cast<int64_t>(shards.size() + 1);
    for (int64_t* width : {&other.q, &other.k, &other.v, &other.gate}) *width *= ranks;
    if (widths.q == 0) widths.q = other.q, widths.k = other.k, widths.v = other.v;
    if (widths.gate == 0) widths.gate = other.gate;
    train_.set_widths(widths);
    rollout_.set_widths(widths);
    for (const PairedToken& token : tokens_) {
      if (token.rollout.last >= 0) with_logits_.push_back(token);
    }
  }

  LineFindings Run() {
    for (const PointPlace place : PointsOf(out_.layers)) Visit(place);
    return std::move(out_);
  }

 private:
  const std::vector<PairedToken>& TokensOf(PointPlace place) const {
    return place.point == Point::kLogits ? with_logits_ : tokens_;
  }
  OpReplay ReplayOf(PointPlace place) const {
    const std::vector<PairedToken>& tokens = TokensOf(place);
    return {RowsOf(train_, tokens, &PairedToken::train), RowsOf(rollout_, tokens, &PairedToken::rollout), out_.layers};
  }
  const PointDifference* Known(PointPlace place) const {
    for (size_t i = out_.points.size(); i-- > 0;) {
      if (out_.points[i].place == place) return &out_.points[i];
    }
    return nullptr;
  }

  void Visit(const PointPlace place) {
    const std::vector<PairedToken>& tokens = TokensOf(place);
    RowMatrix seen = RowsOf(rollout_, tokens, &PairedToken::rollout).Read(place);
    RowMatrix own = seen.empty() ? RowMatrix() : RowsOf(train_, tokens, &PairedToken::train).Read(place);
    if (place.point == Point::kRouter) AsProbabilities(&seen, &own);
    if (place.point == Point::kLogits) CutToCommon(&seen, &own);
    if (seen.empty() || seen.rows != own.rows || seen.width != own.width) {
      if (!seen.empty() || train_.ModuleOf(place) != "") out_.unseen.push_back(place);
      return;
    }
    const RowErrors errors = ErrorsOf(seen, own);
    PointDifference difference{place,     errors.largest, errors.mean, 0, RoundingFloor(seen.dtype, own.dtype),
                               own.dtype, seen.dtype};
    bool known = false;
    for (const PointPlace& input : InputsOf(place, out_.layers)) {
      const PointDifference* before = Known(input);
      if (before == nullptr || before->other_cut) continue;
      known = true;
      difference.before = std::max(difference.before, before->error);
      difference.floor = std::max(difference.floor, RoundingFloor(before->train, before->rollout));
    }
    if (!known && !out_.points.empty() && !out_.points.back().other_cut) {
      difference.before = out_.points.back().error;
      difference.floor =
          std::max(difference.floor, RoundingFloor(out_.points.back().train, out_.points.back().rollout));
    }
    if (place.point == Point::kLogits) NotePrecision(seen, own);
    const bool parts = errors.largest > difference.floor && !out_.fault;
    out_.points.push_back(difference);
    if (parts) Judge(difference, seen, own, errors);
    if (!out_.fault && !out_.points.back().other_cut) JudgeNorm(difference, std::move(seen), own, errors);
  }

  void JudgeNorm(const PointDifference difference, RowMatrix seen, const RowMatrix& own, const RowErrors& errors) {
    const PointPlace place = difference.place;
    if (place.point != Point::kInputNorm && place.point != Point::kMlpNorm && place.point != Point::kFinalNorm) return;
    if (errors.largest == 0) return;
    const OpReplay replay = ReplayOf(place);
    const OpCase one{place, &replay, std::move(seen), own, difference.error, difference.floor};
    OpHow how = ExplainSmallEps(one, InfoOf(CoarserOf(difference.train, difference.rollout)).unit());
    if (!how.found() || WeightsDiffer(place)) return;
    const PairedToken& worst = TokensOf(place)[errors.worst];
    LineFault fault{difference, std::move(how), difference.error, true, false, rollout_.ModuleOf(place), 0, 0, {}};
    fault.sequence = worst.sequence, fault.position = worst.position;
    fault.own = std::max(difference.error, fault.how.left);
    out_.fault = std::move(fault);
  }

  // One side may give what it makes of the logits of a router.
  static void AsProbabilities(RowMatrix* a, RowMatrix* b) {
    const auto sums_to_one = [](const RowMatrix& m) {
      for (size_t i = 0; i < m.rows; ++i) {
        const double sum = std::accumulate(m.row(i), m.row(i) + m.width, 0.0);
        if (std::fabs(sum - 1) > 0.02 || *std::min_element(m.row(i), m.row(i) + m.width) < 0) return false;
      }
      return !m.empty();
    };
    if (sums_to_one(*a) == sums_to_one(*b)) return;
    RowMatrix* logits = sums_to_one(*a) ? b : a;
    for (size_t i = 0; i < logits->rows; ++i) {
      float* row = logits->row(i);
      const float top = *std::max_element(row, row + logits->width);
      double sum = 0;
      for (size_t j = 0; j < logits->width; ++j) sum += std::exp(row[j] - top);
      for (size_t j = 0; j < logits->width; ++j) row[j] = static_cast<float>(std::exp(row[j] - top) / sum);
    }
  }

  void NotePrecision(const RowMatrix& seen, const RowMatrix& own) {
    const auto precision = [](const RowMatrix& m) {
      const DType grid = GridOf(m);
      return grid == DType::kUnknown ? m.dtype : grid;
    };
    const DType a = precision(own), b = precision(seen);
    if (a != b) out_.head = std::pair{a, b};
  }

  /// How many experts a token goes to, where the trainer's router says it; else what is usual.
  std::vector<size_t> ExpertsOf(int64_t layer) const {
    if (const std::vector<SideOp>* calls = train_.side().Calls({layer, ModulePart::kRouter})) {
      for (const OpTensor& tensor : train_.side().Tensors(calls->front())) {
        const bool chosen = tensor.state == ItemState::kOutput && IsInteger(tensor.dtype) && tensor.shape.size() >= 2;
        if (chosen) return {static_cast<size_t>(tensor.shape.back())};
      }
    }
    return {1, 2, 4, 6, 8};
  }

  /// Tokens for which the sides chose other experts: the first one of each sequence.
  std::map<uint32_t, int64_t> Flipped(int64_t layer) {
    const PointPlace router{layer, Point::kRouter};
    const std::vector<PairedToken> tokens = Spread(pairs_.tokens, kMostRouted);
    RowMatrix a = RowsOf(train_, tokens, &PairedToken::train).Read(router);
    RowMatrix b = RowsOf(rollout_, tokens, &PairedToken::rollout).Read(router);
    std::map<uint32_t, int64_t> out;
    if (a.empty() || a.rows != b.rows || a.width != b.width) return out;
    const std::vector<size_t> counts = ExpertsOf(layer);
    const double unit = InfoOf(CoarserOf(a.dtype, b.dtype)).unit();
    const auto best = [](const float* row, size_t width) {
      std::vector<size_t> order(width);
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return row[x] > row[y]; });
      return order;
    };
    // The last that is chosen and the first that is not: as good as equal, either may be taken.
    const auto is_open = [&](const float* row, const std::vector<size_t>& order, size_t count) {
      const double size = std::max(std::fabs(row[order.front()]), std::fabs(row[order.back()]));
      return row[order[count - 1]] - row[order[count]] <= 2 * unit * size;
    };
    for (size_t i = 0; i < a.rows; ++i) {
      const std::vector<size_t> own = best(a.row(i), a.width), other = best(b.row(i), b.width);
      for (const size_t count : counts) {
        if (count == 0 || count >= a.width) continue;
        std::vector<size_t> x(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count));
        std::vector<size_t> y(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(count));
        std::sort(x.begin(), x.end()), std::sort(y.begin(), y.end());
        if (x == y && !is_open(a.row(i), own, count) && !is_open(b.row(i), other, count)) continue;
        const auto [known, added] = out.try_emplace(tokens[i].sequence, tokens[i].position);
        if (!added) known->second = std::min(known->second, tokens[i].position);
        break;
      }
    }
    return out;
  }

  /// Where routers that differ by rounding chose other experts, these tokens and what attends to them tell no more.
  bool LeaveOutRouted(const PointDifference& difference) {
    if (difference.place.point != Point::kMlp) return false;
    const std::map<uint32_t, int64_t> flipped = Flipped(difference.place.layer);
    const auto gone = [&](const PairedToken& token) {
      const auto first = flipped.find(token.sequence);
      return first != flipped.end() && token.position >= first->second;
    };
    const size_t count = std::erase_if(tokens_, gone);
    std::erase_if(with_logits_, gone);
    if (count == 0) return false;
    if (out_.flipped == 0) out_.flipped_layer = difference.place.layer;
    out_.flipped += count;
    return true;
  }

  /// Angles are the tool's own where the trainer records none; then attention has to differ, too.
  bool AttentionAgrees(PointPlace place) const {
    const PointPlace core{place.layer, Point::kCore};
    const RowMatrix a = RowsOf(train_, tokens_, &PairedToken::train).Read(core);
    const RowMatrix b = RowsOf(rollout_, tokens_, &PairedToken::rollout).Read(core);
    if (a.empty() || a.rows != b.rows || a.width != b.width) return false;
    return ErrorsOf(b, a).largest <= RoundingFloor(a.dtype, b.dtype);
  }

  /// Whether all that reads the place agrees, as far as both sides recorded it: then one side does here what the other
  /// does behind it, such as a factor of embeddings.
  bool IsOtherCut(const PointDifference& difference) const {
    bool read = false;
    for (const PointPlace& reader : PointsOf(out_.layers)) {
      const std::vector<PointPlace> inputs = InputsOf(reader, out_.layers);
      if (std::find(inputs.begin(), inputs.end(), difference.place) == inputs.end()) continue;
      const std::vector<PairedToken>& tokens = TokensOf(reader);
      const RowMatrix seen = RowsOf(rollout_, tokens, &PairedToken::rollout).Read(reader);
      const RowMatrix own = RowsOf(train_, tokens, &PairedToken::train).Read(reader);
      if (seen.empty() || seen.rows != own.rows || seen.width != own.width) continue;
      const double error = ErrorsOf(seen, own).largest;
      if (error > std::max(RoundingFloor(seen.dtype, own.dtype), difference.before)) return false;
      if (error * kEnlarged > difference.error) return false;
      read = true;
    }
    return read;
  }

  void Judge(const PointDifference difference, RowMatrix seen, const RowMatrix& own, const RowErrors& errors) {
    const PointPlace place = difference.place;
    if (LeaveOutRouted(difference)) {
      out_.points.pop_back();
      return Visit(place);
    }
    if (IsOtherCut(difference)) {
      out_.points.back().other_cut = true;
      return;
    }
    const bool rotary = place.point == Point::kQRotary || place.point == Point::kKRotary;
    if (rotary && (train_.Derives(place) || rollout_.Derives(place)) && AttentionAgrees(place)) return;
    const bool jumps = difference.error > kKept * difference.before;
    const OpReplay replay = ReplayOf(place);
    OpCase one{place, &replay, std::move(seen), own, difference.error, difference.floor};
    LineFault fault{difference, {}, difference.error, false, false, rollout_.ModuleOf(place), 0, 0, {}};
    std::optional<bool> local;
    if (place.point == Point::kCore) {
      fault.how = Attention(difference, errors, &local);
    } else if (jumps || products_ < kMostReplayed) {
      products_ += static_cast<double>(own.rows) * static_cast<double>(own.width) * static_cast<double>(own.width);
      if (std::optional<Replayed> done = replay.OfRollout(place, difference.floor)) {
        fault.own = done->error;
        local = done->error > done->tolerance;
        one.expected = std::move(done->expected);
        CutToCommon(&one.seen, &one.expected);
        one.error = done->error;
      }
    }
    fault.replayed = local.has_value();
    if (!local) local = difference.error > kEnlarged * std::max(difference.before, difference.floor / 4);
    if (!*local) return;
    if (rotary) {
      std::vector<int64_t> positions;
      for (const PairedToken& token : tokens_) positions.push_back(token.position);
      fault.how = ExplainRotaryOp(one, positions, [&](int64_t by) {
        std::vector<TokenRow> rows;
        for (const PairedToken& token : tokens_) {
          const std::vector<TokenRow>& all = pairs_.train_positions[token.sequence];
          const int64_t at = token.position + by;
          rows.push_back(at >= 0 && at < static_cast<int64_t>(all.size()) ? all[static_cast<size_t>(at)] : token.train);
        }
        return rows;
      });
    } else if (!fault.how.found()) {
      fault.how = ExplainOp(one);
    }
    if (place.point == Point::kCore && !fault.how.found()) fault.how = ExplainCache(difference, errors);
    const PairedToken& worst = TokensOf(place)[errors.worst];
    fault.sequence = worst.sequence, fault.position = worst.position;
    fault.weights = WeightsDiffer(place);
    if (place.point == Point::kLogits) fault.share = ShareOf(own, one);
    out_.fault = std::move(fault);
  }

  /// Attention that is wrong for each request that begins behind a cached prefix, and for no other one.
  OpHow ExplainCache(const PointDifference& difference, const RowErrors& errors) const {
    std::map<uint32_t, int64_t> first;  // sequence -> the first token that the engine computed for it
    for (const PairedToken& token : pairs_.tokens) {
      const auto [known, added] = first.try_emplace(token.sequence, token.position);
      if (!added) known->second = std::min(known->second, token.position);
    }
    std::map<uint32_t, bool> wrong;
    for (size_t i = 0; i < tokens_.size(); ++i)
      wrong[tokens_[i].sequence] |= errors.rows[i] > kKept * std::max(difference.floor, difference.before);
    std::vector<std::string> cached, whole;
    for (const auto& [sequence, is] : wrong) {
      if (is != (first[sequence] > 0)) return {};
      (is ? cached : whole).push_back(OneLine(pairs_.names[sequence]));
    }
    if (cached.empty() || whole.empty()) return {};
    return {"prefix_cache",
            Msg("all requests that begin behind a cached prefix are wrong ({}), those that do not are right ({}): the "
                "cached keys and values are not those of these weights",
                fmt::format("{}", fmt::join(cached, ", ")), fmt::format("{}", fmt::join(whole, ", "))),
            0, false};
  }

  OpHow Attention(const PointDifference& difference, const RowErrors& errors, std::optional<bool>* local) const {
    // Requests that are right say nothing of those that are wrong.
    std::set<uint32_t> wrong;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (errors.rows[i] > difference.floor) wrong.insert(tokens_[i].sequence);
    }
    std::vector<PairedToken> tokens = tokens_;
    std::erase_if(tokens, [&](const PairedToken& token) { return !wrong.contains(token.sequence); });
    std::optional<AttentionCase> one =
        AttentionCaseOf(train_, rollout_, pairs_, tokens, difference.place.layer, difference.floor);
    if (!one) return {};
    one->unit = InfoOf(CoarserOf(difference.train, difference.rollout)).unit();
    return ExplainAttention(*one, local);
  }

  bool WeightsDiffer(PointPlace place) const {
    for (const std::string_view name : {"weight", "bias"}) {
      const PointParameter a = train_.Parameter(place, name), b = rollout_.Parameter(place, name);
      if (a.empty() || a.values.size() != b.values.size()) continue;
      const double unit = InfoOf(CoarserOf(out_.points.back().train, out_.points.back().rollout)).unit();
      for (size_t i = 0; i < a.values.size(); ++i) {
        if (std::fabs(a.values[i] - b.values[i]) > 2 * unit * std::fabs(a.values[i])) return true;
      }
    }
    return false;
  }

  // With the trainer's head on the engine's own last values.
  static std::optional<double> ShareOf(const RowMatrix& own, const OpCase& one) {
    if (own.width != one.seen.width || one.expected.width != own.width) return std::nullopt;
    const double whole = ProbabilityGap(own, one.seen);
    if (whole <= 0) return std::nullopt;
    return std::clamp(1 - ProbabilityGap(own, one.expected) / whole, 0.0, 1.0);
  }

  ModelLine train_, rollout_;
  const TokenPairs& pairs_;
  std::vector<PairedToken> tokens_, with_logits_;
  LineFindings out_;
  double products_ = 0;  // of replays, roughly
};

}  // namespace

LineFindings WalkLine(const SideOps& train, const SideOps& rollout, const TokenPairs& pairs,
                      const std::vector<const SideOps*>& shards) {
  return Walk(train, rollout, pairs, shards).Run();
}

}  // namespace msprobe
