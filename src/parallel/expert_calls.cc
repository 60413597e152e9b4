#include "parallel/expert_calls.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/message.h"
#include "base/text.h"
#include "dump/flatten.h"
#include "graph/tree/flat_structure.h"
#include "ops/collective.h"
#include "parallel/merge_groups.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

/// How a communication may move tokens.
enum class Moves : uint8_t { kNot, kEitherWay, kToExperts, kBack };

Moves MovesOf(std::string_view api) {
  if (Contains(api, "all_to_all")) return Moves::kEitherWay;
  if (Contains(api, "all_gather")) return Moves::kToExperts;
  if (Contains(api, "reduce_scatter")) return Moves::kBack;
  return Moves::kNot;
}

/// How many tokens a rank gave and has then.
struct Tokens {
  double given = 0, got = 0;
  bool any() const { return given > 0 || got > 0; }
  bool operator==(const Tokens&) const = default;
  Tokens Back() const { return {got, given}; }
};

/// Of floats with at least so many dimensions.
double RowsOf(const Item& item, unsigned dimensions) {
  const JsonValue* dtype = item.leaf && item.leaf->IsObject() ? item.leaf->Find("dtype") : nullptr;
  const JsonValue* shape = dtype ? item.leaf->Find("shape") : nullptr;
  if (!dtype || !dtype->IsString() || !IsFloating(ParseDType(dtype->Text()))) return 0;
  if (!shape || !shape->IsArray() || shape->size() < dimensions || !(*shape)[0].IsInt()) return 0;
  return (*shape)[0].Number();
}

/// Whether the argument with this name is the one that a collective fills.
bool IsFilled(std::string_view argument, const Collective& collective) {
  const std::string_view first = argument.substr(0, argument.find('.'));
  return first == std::to_string(collective.position) || first == collective.keyword;
}

Tokens TokensOf(std::string_view name, const JsonDoc& doc, unsigned dimensions) {
  Tokens out;
  const Collective* collective = FindCollective(CommApi(name));
  if (!collective) return out;
  std::vector<Item> items;
  FlattenOp(name, doc, &items);
  for (const Item& item : items) {
    const bool output = item.state == ItemState::kOutput;
    const std::string_view argument = std::string_view(item.suffix).substr(item.suffix.find('.', 1) + 1);
    const bool filled = IsFilled(argument, *collective);
    if (output && filled) out.got += RowsOf(item, dimensions);
    if (!output && !filled) out.given += RowsOf(item, dimensions);
  }
  return out;
}

class ExpertCallFinder {
 public:
  ExpertCallFinder(const MergePool& pool, size_t stage, size_t cell)
      : pool_(pool), stage_(stage), cell_(cell), rank_(pool.At(stage, cell)) {}

  StatusOr<CallsOfRank> Run() {
    ReadCalls();
    for (const bool all_to_all : {true, false}) {
      // Sequence parallelism gathers and scatters as well, and parts of experts have summands of pieces.
      if (!all_to_all && pool_.settings().tp > 1) break;
      MSP_RETURN_IF_ERROR(Divide(all_to_all));
      if (!out_.experts.empty()) break;
    }
    if (away_ || !BackwardAgrees()) return UnknownExpertCalls(pool_, stage_, cell_);
    return std::move(out_);
  }

 private:
  /// From the graph of the rank, as the pool may hold the calls of all stages as those of the first.
  void ReadCalls() {
    const NodeGraph& graph = pool_.Graph(rank_).graph;
    for (const std::string_view module : {kAllCallsForward, kAllCallsBackward}) {
      const uint32_t node = graph.Find(module);
      if (node == kNoIndex) continue;
      for (const uint32_t call : graph.nodes[node].children) calls_.push_back(pool_.Root(rank_) + call);
    }
    std::ranges::sort(calls_, {}, [&](uint32_t call) { return pool_[call].op; });
  }

  /// How many different shares of the experts some ranks of the stage have; 0 where one is of another stage.
  size_t SharesOf(const std::vector<int>& ranks) const {
    std::set<size_t> shares;
    for (const int number : ranks) {
      size_t cell = 0;
      while (cell < pool_.Cells() && pool_.RankNumber(pool_.At(stage_, cell)) != number) ++cell;
      if (cell == pool_.Cells()) return 0;
      shares.insert(pool_.ShareOf(cell));
    }
    return shares.size();
  }

  Status Divide(bool all_to_all) {
    out_ = {};
    away_ = false;
    size_t behind = 0;  // how many calls came behind the last communication of tokens
    JsonDoc doc;
    for (const uint32_t call : calls_) {
      const std::string_view name = pool_[call].was;
      const Moves moves = MovesOf(CommApi(name));
      bool moved = false;
      if ((moves == Moves::kEitherWay) == all_to_all && moves != Moves::kNot) {
        MSP_RETURN_IF_ERROR(pool_.ReadOp(call, &doc));
        const unsigned dimensions = all_to_all ? 1 : 2;  // a flat buffer is one of parameters or gradients
        moved = doc.IsObject() && IsAmongShares(doc, name) && Move(moves, TokensOf(name, doc, dimensions), behind);
      }
      behind = moved ? 0 : behind + 1;
      if (away_ && !moved) {
        out_.experts.back().calls.push_back(call);
        out_.experts.back().backward |= Contains(name, ".backward");
      } else {
        out_.own.push_back(call);
      }
    }
    return OkStatus();
  }

  bool IsAmongShares(const JsonDoc& doc, std::string_view name) const {
    const std::vector<int> group = RanksOfGroup(doc, name);
    return group.empty() || SharesOf(group) == pool_.Shares();
  }

  /// True where the call moves tokens; several in a row may do, as weights go with their tokens.
  bool Move(Moves moves, const Tokens& tokens, size_t behind) {
    if (!tokens.any()) return false;
    const bool more = tokens == last_ && (behind == 0 || tokens.given != tokens.got);
    if (more && moves == last_moves_) return true;
    const bool back = away_ && tokens == last_.Back() && moves != Moves::kToExperts;
    const bool out = !away_ && moves != Moves::kBack;
    if (!back && !out) return false;
    if (out) out_.experts.push_back({out_.own.size() + 1, {}, false});
    away_ = out;
    last_ = tokens;
    last_moves_ = moves;
    return true;
  }

  /// The backward call of what an expert called is an expert's, and that of no other is.
  bool BackwardAgrees() const {
    std::unordered_set<uint32_t> of_experts;
    for (const ExpertCalls& experts : out_.experts) of_experts.insert(experts.calls.begin(), experts.calls.end());
    return std::ranges::all_of(calls_, [&](uint32_t call) {
      const std::string_view name = pool_[call].was;
      if (!Contains(name, ".backward")) return true;
      const uint32_t forward = pool_.Find(rank_, ReplaceAll(name, ".backward", ".forward"));
      return forward == kNoIndex || of_experts.contains(forward) == of_experts.contains(call);
    });
  }

  const MergePool& pool_;
  const size_t stage_, cell_;
  const uint32_t rank_;
  std::vector<uint32_t> calls_;  // in the order of the dump
  CallsOfRank out_;
  bool away_ = false;  // the tokens are with their experts
  Tokens last_;        // moved last
  Moves last_moves_ = Moves::kNot;
};

}  // namespace

Status UnknownExpertCalls(const MergePool& pool, size_t stage, size_t cell) {
  return BadInput(
      Msg("{} holds no model structure, and its communications do not tell which calls are those of its experts: dump "
          "again at level L0 or mix",
          pool.Graph(pool.At(stage, cell)).files.dir));
}

StatusOr<CallsOfRank> FindExpertCalls(const MergePool& pool, size_t stage, size_t cell) {
  return ExpertCallFinder(pool, stage, cell).Run();
}

}  // namespace msprobe
