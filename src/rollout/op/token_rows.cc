#include "rollout/op/token_rows.h"

#include <algorithm>
#include <map>
#include <set>

namespace msprobe {
namespace {

/// Tokens behind each other of one request, in one forward.
struct Stretch {
  std::string request;  // "" where no schedule says it
  int64_t first = 0;
  std::vector<int64_t> ids;
  TokenRow row;  // of the first one
};

struct Sequence {
  std::vector<int64_t> ids;
  std::vector<TokenRow> rows;
};

std::vector<int64_t> Whole(const std::vector<double>& values) {
  std::vector<int64_t> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), [](double v) { return static_cast<int64_t>(v); });
  return out;
}

/// Whole numbers of one of the ops around a forward, one for each token; empty without.
std::vector<int64_t> NumbersOf(const SideOps& side, uint32_t dump, uint32_t call, std::string_view name,
                               int64_t tokens) {
  for (const ModuleRole role :
       {ModuleRole{0, ModulePart::kLayer}, ModuleRole{-1, ModulePart::kModel}, ModuleRole{0, ModulePart::kAttention},
        ModuleRole{0, ModulePart::kRotary}, ModuleRole{-1, ModulePart::kRotary}}) {
    const std::optional<SideOp> place = side.Call(role, dump, call);
    if (!place) continue;
    const OpTensor* tensor = side.Named(*place, name);
    if (tensor == nullptr || tensor->dtype == DType::kBool) continue;
    if (IsInteger(tensor->dtype) && tensor->elements() == tokens) return Whole(side.Values(*place, *tensor));
    if (IsInteger(tensor->dtype) && tensor->shape.size() == 2 && tensor->shape[0] == 1 &&
        tokens % tensor->shape[1] == 0) {
      const std::vector<int64_t> one = Whole(side.Values(*place, *tensor));  // the same for all sequences
      std::vector<int64_t> out;
      while (static_cast<int64_t>(out.size()) < tokens && !one.empty()) out.insert(out.end(), one.begin(), one.end());
      return out;
    }
  }
  return {};
}

/// Ids of each forward of a dump. An embedding that tells its ids is there at level L0 and above.
std::optional<std::vector<int64_t>> IdsOf(const SideOps& side, uint32_t dump, uint32_t call,
                                          std::vector<int64_t>* shape) {
  const std::optional<SideOp> place = side.Call({-1, ModulePart::kEmbed}, dump, call);
  if (!place) return std::nullopt;
  const OpTensor* ids = side.Tensor(*place, ItemState::kInput, 0);
  if (ids == nullptr) ids = side.Tensor(*place, ItemState::kKwarg, 0);
  if (ids == nullptr || !IsInteger(ids->dtype)) return std::nullopt;
  std::vector<int64_t> values = Whole(side.Values(*place, *ids));
  if (values.empty()) return std::nullopt;
  *shape = ids->shape;
  return values;
}

std::vector<Sequence> SequencesOf(const SideOps& side) {
  std::vector<Sequence> out;
  for (uint32_t dump = 0; dump < side.dumps(); ++dump) {
    for (uint32_t call = 0;; ++call) {
      std::vector<int64_t> shape;
      const auto ids = IdsOf(side, dump, call, &shape);
      if (!ids) break;
      const int64_t tokens = static_cast<int64_t>(ids->size());
      const int64_t batch = shape.size() == 2 ? shape[0] : 1, length = tokens / std::max<int64_t>(batch, 1);
      const std::vector<int64_t> mask = NumbersOf(side, dump, call, "attention_mask", tokens);
      const std::vector<int64_t> positions = NumbersOf(side, dump, call, "position_ids", tokens);
      for (int64_t b = 0; b < batch; ++b) {
        Sequence one;
        int64_t before = -1;
        for (int64_t i = b * length; i < (b + 1) * length; ++i) {
          if (!mask.empty() && mask[i] == 0) continue;
          const bool begins = !positions.empty() && mask.empty() && positions[i] == 0 && before >= 0;
          if (begins && !one.ids.empty()) out.push_back(std::exchange(one, {}));
          before = positions.empty() ? 0 : positions[i];
          one.ids.push_back((*ids)[i]);
          one.rows.push_back({dump, call, i, tokens, batch, -1, 0});
        }
        if (!one.ids.empty()) out.push_back(std::move(one));
      }
    }
  }
  return out;
}

/// The rows of a forward as its schedule has them; empty where they cannot be those of its tokens.
std::vector<Stretch> Scheduled(const SideOps& side, uint32_t dump, uint32_t call, const std::vector<int64_t>& ids,
                               const std::vector<int64_t>& positions, std::map<std::string, int64_t>* computed) {
  JsonDoc doc;
  const std::string_view text = side.file(dump).schedule();
  if (text.empty() || !ParseJson(text, side.file(dump).path(), &doc).ok()) return {};
  std::vector<Stretch> out;
  int64_t row = 0, requests = 0;
  for (const JsonValue& entry : doc.Items()) requests += entry["call"].Int() == call;
  for (const JsonValue& entry : doc.Items()) {
    if (entry["call"].Int() != call) continue;
    const int64_t tokens = entry["tokens"].Int();
    Stretch one;
    one.request = entry["request"].Text();
    if (tokens <= 0 || row + tokens > static_cast<int64_t>(ids.size())) return {};
    const bool told = entry["first"].IsInt();
    one.first = told ? entry["first"].Int() : positions.empty() ? (*computed)[one.request] : positions[row];
    for (int64_t i = 0; i < tokens; ++i) {
      if (!positions.empty() && positions[row + i] != one.first + i) return {};
      one.ids.push_back(ids[row + i]);
    }
    one.row = {dump, call, row, static_cast<int64_t>(ids.size()), 1, static_cast<int64_t>(out.size()), requests};
    (*computed)[one.request] = one.first + tokens;
    row += tokens;
    out.push_back(std::move(one));
  }
  for (Stretch& one : out) one.row.rows = row;  // what is behind the last request fills the batch up
  return out;
}

/// Rows of a tensor of two dimensions; empty where it is none.
std::vector<std::vector<double>> RowsOf(const SideOps& side, SideOp place, const OpTensor* tensor) {
  std::vector<std::vector<double>> out;
  if (tensor == nullptr || tensor->shape.size() != 2 || !IsFloating(tensor->dtype)) return out;
  const std::vector<double> values = side.Values(place, *tensor);
  for (auto at = values.begin(); at != values.end(); at += tensor->shape[1])
    out.emplace_back(at, at + tensor->shape[1]);
  return out;
}

/// Engines may make logits of some requests only, of those whose prompt is complete: the head is given rows of the
/// final norm, which tell whose they are.
void PlaceLogits(const SideOps& side, uint32_t dump, uint32_t call, std::vector<Stretch>* requests) {
  std::optional<SideOp> head = side.Call({-1, ModulePart::kHead}, dump, call);
  if (!head) head = side.Call({-1, ModulePart::kLogits}, dump, call);
  const std::optional<SideOp> norm = side.Call({-1, ModulePart::kFinalNorm}, dump, call);
  if (!head || !norm) return;
  const OpTensor* given = side.Tensor(*head, ItemState::kInput, 0);
  const bool other = given != nullptr && given->shape.size() == 2 && IsFloating(given->dtype) &&
                     given->shape[0] < static_cast<int64_t>(requests->size());
  if (!other) return;
  const auto inputs = RowsOf(side, *head, given),
             hidden = RowsOf(side, *norm, side.Tensor(*norm, ItemState::kOutput, 0));
  size_t next = 0;
  for (Stretch& one : *requests) {
    const auto end = static_cast<size_t>(one.row.row) + one.ids.size();
    const bool is = next < inputs.size() && end <= hidden.size() && hidden[end - 1] == inputs[next];
    one.row.last = is ? static_cast<int64_t>(next++) : -1;
    one.row.requests = given->shape[0];
  }
  if (next == inputs.size()) return;
  for (Stretch& one : *requests) one.row.last = -1;
}

/// Without a schedule: where positions go on one by one, tokens are of one request, but nothing says of which.
std::vector<Stretch> ByPositions(uint32_t dump, uint32_t call, const std::vector<int64_t>& ids,
                                 const std::vector<int64_t>& positions) {
  std::vector<Stretch> out;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (out.empty() || positions[i] != positions[i - 1] + 1) {
      out.emplace_back().first = positions[i];
      const auto row = static_cast<int64_t>(i), rows = static_cast<int64_t>(ids.size());
      out.back().row = {dump, call, row, rows, 1, static_cast<int64_t>(out.size()) - 1, 0};
    }
    out.back().ids.push_back(ids[i]);
  }
  for (Stretch& one : out) one.row.requests = static_cast<int64_t>(out.size());
  return out;
}

bool Fits(const Sequence& sequence, int64_t first, const std::vector<int64_t>& ids) {
  const int64_t length = static_cast<int64_t>(sequence.ids.size());
  const auto known = static_cast<int64_t>(ids.size());
  // The last token that was drawn need not have been given to the trainer.
  if (first < 0 || first + known > length) return false;
  return std::equal(ids.begin(), ids.end(), sequence.ids.begin() + first);
}

class Pairing {
 public:
  Pairing(std::vector<Sequence> sequences, const SideOps& rollout) : sequences_(std::move(sequences)) {
    out_.seen_train = !sequences_.empty();
    for (const Sequence& sequence : sequences_) out_.train_positions.push_back(sequence.rows);
    out_.names.resize(sequences_.size());
    Collect(rollout);
  }

  TokenPairs Run() {
    std::map<std::string, std::vector<const Stretch*>> requests;
    for (const Stretch& one : stretches_) {
      if (one.request.empty()) {
        Place(Candidates({&one}), {&one});
      } else {
        requests[one.request].push_back(&one);
      }
    }
    std::set<uint32_t> taken;
    for (const auto& [name, parts] : requests) {
      std::vector<uint32_t> found = Candidates(parts);
      // Of samples with the same tokens each has one of its own.
      if (found.size() > 1 && SameTokens(found)) {
        const auto free = std::find_if(found.begin(), found.end(), [&](uint32_t s) { return !taken.contains(s); });
        found = {free == found.end() ? found[0] : *free};
      }
      if (found.size() == 1) {
        taken.insert(found[0]);
        out_.names[found[0]] = name;
      }
      Place(found, parts);
    }
    std::stable_sort(out_.tokens.begin(), out_.tokens.end(), [](const PairedToken& a, const PairedToken& b) {
      return std::tie(a.rollout.dump, a.rollout.call, a.rollout.row) <
             std::tie(b.rollout.dump, b.rollout.call, b.rollout.row);
    });
    for (size_t i = 0; i < out_.names.size(); ++i) {
      if (out_.names[i].empty()) out_.names[i] = std::to_string(i);
    }
    return std::move(out_);
  }

 private:
  void Collect(const SideOps& rollout) {
    std::map<std::string, int64_t> computed;
    for (uint32_t dump = 0; dump < rollout.dumps(); ++dump) {
      for (uint32_t call = 0;; ++call) {
        std::vector<int64_t> shape;
        const auto ids = IdsOf(rollout, dump, call, &shape);
        if (!ids) break;
        out_.seen_rollout = true;
        const std::vector<int64_t> positions =
            NumbersOf(rollout, dump, call, "positions", static_cast<int64_t>(ids->size()));
        std::vector<int64_t> by_order = positions.empty() ? FirstInput(rollout, dump, call, ids->size()) : positions;
        std::vector<Stretch> found = Scheduled(rollout, dump, call, *ids, by_order, &computed);
        if (found.empty() && rollout.file(dump).schedule().empty() && by_order.size() == ids->size()) {
          found = ByPositions(dump, call, *ids, by_order);
        }
        PlaceLogits(rollout, dump, call, &found);
        found.empty() ? ++out_.refused : ++out_.steps;
        std::move(found.begin(), found.end(), std::back_inserter(stretches_));
      }
    }
  }

  /// Positions are the first argument of an engine's layers.
  static std::vector<int64_t> FirstInput(const SideOps& side, uint32_t dump, uint32_t call, size_t tokens) {
    for (const ModulePart part : {ModulePart::kLayer, ModulePart::kAttention, ModulePart::kRotary}) {
      const std::optional<SideOp> place = side.Call({0, part}, dump, call);
      const OpTensor* tensor = place ? side.Tensor(*place, ItemState::kInput, 0) : nullptr;
      if (tensor != nullptr && IsInteger(tensor->dtype) && tensor->elements() == static_cast<int64_t>(tokens)) {
        return Whole(side.Values(*place, *tensor));
      }
    }
    return {};
  }

  std::vector<uint32_t> Candidates(const std::vector<const Stretch*>& parts) const {
    std::vector<uint32_t> out;
    for (uint32_t s = 0; s < sequences_.size(); ++s) {
      const bool fits = std::all_of(parts.begin(), parts.end(),
                                    [&](const Stretch* one) { return Fits(sequences_[s], one->first, one->ids); });
      if (fits) out.push_back(s);
    }
    return out;
  }

  bool SameTokens(const std::vector<uint32_t>& found) const {
    return std::all_of(found.begin(), found.end(),
                       [&](uint32_t s) { return sequences_[s].ids == sequences_[found[0]].ids; });
  }

  void Place(const std::vector<uint32_t>& found, const std::vector<const Stretch*>& parts) {
    size_t tokens = 0;
    for (const Stretch* one : parts) tokens += one->ids.size();
    if (found.empty()) ++out_.unmatched;
    if (found.size() > 1) out_.ambiguous += tokens;
    if (found.size() != 1) return;
    for (const Stretch* one : parts) {
      for (size_t i = 0; i < one->ids.size(); ++i) {
        PairedToken token{found[0], one->first + static_cast<int64_t>(i), {}, one->row};
        token.train = sequences_[found[0]].rows[static_cast<size_t>(token.position)];
        token.rollout.row += static_cast<int64_t>(i);
        if (i + 1 < one->ids.size()) token.rollout.last = -1;
        out_.tokens.push_back(token);
      }
    }
  }

  std::vector<Sequence> sequences_;
  std::vector<Stretch> stretches_;
  TokenPairs out_;
};

}  // namespace

TokenPairs PairTokens(const SideOps& train, const SideOps& rollout) {
  return Pairing(SequencesOf(train), rollout).Run();
}

TokenPairs FindTokens(const std::vector<std::vector<int64_t>>& sequences, const SideOps& rollout) {
  std::vector<Sequence> wanted;
  for (const std::vector<int64_t>& ids : sequences) wanted.push_back({ids, std::vector<TokenRow>(ids.size())});
  return Pairing(std::move(wanted), rollout).Run();
}

std::vector<std::vector<TokenRow>> FindSequences(const std::vector<std::vector<int64_t>>& sequences,
                                                 const SideOps& train) {
  const std::vector<Sequence> recorded = SequencesOf(train);
  std::vector<std::vector<TokenRow>> out;
  for (const std::vector<int64_t>& ids : sequences) {
    const auto is = [&](const Sequence& one) {
      const size_t length = one.ids.size();
      return (length == ids.size() || length + 1 == ids.size()) &&
             std::equal(one.ids.begin(), one.ids.end(), ids.begin());
    };
    const auto found = std::find_if(recorded.begin(), recorded.end(), is);
    const bool once = found != recorded.end() && std::none_of(found + 1, recorded.end(), is);
    out.push_back(once ? found->rows : std::vector<TokenRow>());
  }
  return out;
}

}  // namespace msprobe
