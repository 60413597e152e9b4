// Matching nodes by hand.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "view/matching/match_pairs.h"
#include "view/query/query_caches.h"
#include "view/query/recompare.h"
#include "view/query/viewer.h"

namespace msprobe::view {
namespace {

MatchChange Refuse(MatchRefusal refusal, std::string text) {
  MatchChange out;
  out.refusal = refusal;
  out.text = std::move(text);
  return out;
}

MatchRefusal WhyNotAtAll(const QueryContext& held) {
  const VisSettings& config = held.file->config();
  if (!config.compared) return MatchRefusal::kSingle;
  const auto mode = MatchingMode(config);
  const bool values = mode != CompareMode::kTensor || held.meter->enabled();
  return mode && values ? MatchRefusal::kNone : MatchRefusal::kTensor;
}

// kNone when the two can be matched.
MatchRefusal WhyNot(const GraphSides& graph, NodePair p) {
  if (graph.target[p.target].partner != kNoNode || graph.golden[p.golden].partner != kNoNode)
    return MatchRefusal::kTaken;
  return graph.target[p.target].type == graph.golden[p.golden].type ? MatchRefusal::kNone : MatchRefusal::kTypes;
}

// The graph as the file has it, and the edits that are to be changed.
struct Edit {
  const GraphSides& now;
  const GraphSides& file;
  MatchEdits* edits;

  void Make(NodePair p) {
    const uint32_t known = file.target[p.target].partner;
    const std::string name(now.target.Name(p.target));
    // What the file had is taken back, with all its figures.
    if (known == p.golden && file.golden[p.golden].partner == p.target) {
      edits->cancelled.erase(name);
    } else {
      edits->made.insert_or_assign(name, std::string(now.golden.Name(p.golden)));
    }
  }
  void Cancel(uint32_t target) {
    const std::string_view name = now.target.Name(target);
    const auto made = edits->made.find(name);
    if (made != edits->made.end()) {
      edits->made.erase(made);
    } else {
      edits->cancelled.emplace(name);
    }
  }
};

// Of a pair of a tensor dump, which of its values can be had; of others nothing is read. What was read is kept for the
// graph that is made afterwards.
StatusOr<ReadTensors> TensorsOf(const QueryContext& held, NodePair p) {
  ReadTensors tensors;
  if (MatchingMode(held.file->config()) != CompareMode::kTensor) return tensors;
  MSP_ASSIGN_OR_RETURN(NodeRecord record, held.file->LoadRecord(held.graph->target[p.target].rowid));
  MSP_RETURN_IF_ERROR(
      RecomparePair(*held.file, *held.graph, p.target, p.golden, held.meter, &record, &tensors).status());
  return tensors;
}

void Skip(std::string target, std::string golden, MatchRefusal why, MatchChange* out) {
  if (++out->skipped_total <= MatchChange::kMostSkipped)
    out->skipped.push_back({std::move(target), std::move(golden), why});
}

MatchChange AddPairs(const GraphAddress& key, const QueryContext& held, const MatchRequest& request, Edit edit,
                     Status* failure) {
  auto target = held.Find(key, Side::kTarget, request.target), golden = held.Find(key, Side::kGolden, request.golden);
  if (!target.ok() || !golden.ok()) {
    *failure = target.ok() ? golden.status() : target.status();
    return {};
  }
  const NodePair pair{*target, *golden};
  const GraphSides& graph = *held.graph;
  if (WhyNot(graph, pair) == MatchRefusal::kTaken) {
    const bool target_taken = graph.target[pair.target].partner != kNoNode;
    const std::string_view taken = target_taken ? graph.target.Name(pair.target) : graph.golden.Name(pair.golden);
    const std::string_view by = target_taken ? graph.golden.Name(graph.target[pair.target].partner)
                                             : graph.target.Name(graph.golden[pair.golden].partner);
    return Refuse(MatchRefusal::kTaken,
                  fmt::format("{} is matched with {} already: cancel that match first", taken, by));
  }
  if (WhyNot(graph, pair) == MatchRefusal::kTypes) {
    return Refuse(MatchRefusal::kTypes,
                  fmt::format("{} and {} are of different kinds: match a module with a module, a call with a call",
                              graph.target.Name(pair.target), graph.golden.Name(pair.golden)));
  }
  MatchChange out;
  for (const NodePair p : PairsToMatch(graph, pair, request.descendants)) {
    const auto tensors = TensorsOf(held, p);
    if (!tensors.ok()) {
      *failure = tensors.status();
      return {};
    }
    if (tensors->read == 0 && tensors->unread > 0) {
      if (p.target == pair.target) {
        return Refuse(MatchRefusal::kTensor,
                      fmt::format("{} cannot be compared ({}): serve the directory that holds the dumps",
                                  graph.target.Name(p.target), tensors->why));
      }
      Skip(std::string(graph.target.Name(p.target)), std::string(graph.golden.Name(p.golden)), MatchRefusal::kTensor,
           &out);
      continue;
    }
    edit.Make(p);
    ++out.changed;
  }
  return out;
}

MatchChange RemovePairs(const GraphAddress& key, const QueryContext& held, const MatchRequest& request, Edit edit,
                        Status* failure) {
  auto node = held.Find(key, Side::kTarget, request.target);
  if (!node.ok()) {
    *failure = node.status();
    return {};
  }
  const Tree& target = held.graph->target;
  if (target[*node].partner == kNoNode)
    return Refuse(MatchRefusal::kNotMatched, fmt::format("{} is matched with no node", target.Name(*node)));
  MatchChange out;
  for (const uint32_t i : NodesToCancel(*held.graph, *node, request.descendants)) {
    edit.Cancel(i);
    ++out.changed;
  }
  return out;
}

MatchChange ApplyPairs(const QueryContext& held, const std::vector<std::pair<std::string, std::string>>& pairs,
                       Edit edit) {
  GraphSides graph = *held.graph;  // which grows the partners as they are made
  const auto nodes = [&](const std::string& target, const std::string& golden) {
    return NodePair{graph.target.Find(target), graph.golden.Find(golden)};
  };
  const auto there = [](NodePair p) { return p.target != kNoNode && p.golden != kNoNode; };
  const auto matched = [&](NodePair p) { return there(p) && graph.target[p.target].partner == p.golden; };
  MatchChange out;
  std::vector<std::pair<const std::pair<std::string, std::string>*, MatchRefusal>> refused;
  for (const auto& pair : pairs) {
    NodePair p = nodes(pair.first, pair.second);
    if (!there(p)) p = nodes(pair.second, pair.first);
    if (matched(p)) continue;
    if (const MatchRefusal why = there(p) ? WhyNot(graph, p) : MatchRefusal::kAbsent; why != MatchRefusal::kNone) {
      refused.emplace_back(&pair, why);
      continue;
    }
    graph.target.SetPartner(p.target, p.golden);
    graph.golden.SetPartner(p.golden, p.target);
    edit.Make(p);
    ++out.changed;
  }
  // In files of the earlier tool each pair stands the other way round as well, before it or behind it. Names may be on
  // both sides, so that either may be meant: both are tried, and what is refused is told once, and not of a made pair.
  std::set<std::pair<std::string_view, std::string_view>> told;
  for (const auto& [pair, why] : refused) {
    const auto& [key, value] = *pair;
    if (matched(nodes(value, key)) || told.count({value, key}) > 0) continue;
    told.emplace(key, value);
    Skip(key, value, why, &out);
  }
  return out;
}

}  // namespace

std::string_view RefusalName(MatchRefusal refusal) {
  static constexpr std::array<std::string_view, 10> kNames{"",       "single",      "tensor", "taken",   "types",
                                                           "absent", "not_matched", "stale",  "nothing", "no_change"};
  return kNames[static_cast<size_t>(refusal)];
}

StatusOr<MatchState> Viewer::Matches(const GraphAddress& key) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const auto found, directory_.Resolve(key.file));
  MatchStore::Loaded loaded = cache_->matches.Load(found.first);
  MatchState out;
  out.refusal = WhyNotAtAll(held);
  out.revision = std::move(loaded.revision);
  out.problem = std::move(loaded.problem);
  out.configs = ListMatchConfigs(found.first);
  const auto edits = loaded.edits->find({key.step, key.rank});
  const auto depth = cache_->changes.DepthOf({found.first, key.step, key.rank},
                                             edits == loaded.edits->end() ? MatchEdits() : edits->second);
  out.undo = depth.undo;
  out.redo = depth.redo;
  if (edits == loaded.edits->end()) return out;
  out.made.assign(edits->second.made.begin(), edits->second.made.end());
  out.cancelled.assign(edits->second.cancelled.begin(), edits->second.cancelled.end());
  return out;
}

StatusOr<MatchChange> Viewer::ChangeMatches(const GraphAddress& key, MatchAction action, const MatchRequest& request) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  switch (WhyNotAtAll(held)) {
    case MatchRefusal::kNone: break;
    case MatchRefusal::kSingle:
      return Refuse(MatchRefusal::kSingle,
                    fmt::format("{} is a single graph: there is nothing to match with", key.file));
    default:
      return Refuse(MatchRefusal::kTensor,
                    fmt::format("{} was made from a tensor dump, whose values are not in the file: serve the directory "
                                "that holds graph and dumps",
                                key.file));
  }
  MSP_ASSIGN_OR_RETURN(const auto found, directory_.Resolve(key.file));
  std::vector<std::pair<std::string, std::string>> pairs;
  if (action == MatchAction::kApply) {
    MSP_ASSIGN_OR_RETURN(const std::string text, ReadMatchConfig(found.first, request.config));
    MSP_ASSIGN_OR_RETURN(pairs, ParseMatchConfig(text, request.config));
  }
  if (action == MatchAction::kAdd && (request.target.empty() || request.golden.empty()))
    return UsageError("npu or bench is missing: send the names of both nodes");
  if (action == MatchAction::kRemove && request.target.empty())
    return UsageError("npu is missing: send the node's name");
  MatchChange out;
  const MatchHistory::Place place{found.first, key.step, key.rank};
  MatchEdits before, after;
  const auto change = [&](const std::string& revision, FileEdits* all) -> StatusOr<bool> {
    if (!request.revision.empty() && request.revision != revision) {
      out = Refuse(MatchRefusal::kStale, "somebody else changed the matches meanwhile: look at them and try again");
      return false;
    }
    // Under the lock of the store: `held` may be older, and of another file that was there before.
    MSP_ASSIGN_OR_RETURN(const QueryContext now, cache_->Hold(key));
    MSP_ASSIGN_OR_RETURN(const auto file_graph, cache_->graphs.Graph(now.file, key.step, key.rank));
    MatchEdits& edits = (*all)[{key.step, key.rank}];
    const Edit edit{*now.graph, *file_graph, &edits};
    before = edits;
    Status failure;
    switch (action) {
      case MatchAction::kAdd: out = AddPairs(key, now, request, edit, &failure); break;
      case MatchAction::kRemove: out = RemovePairs(key, now, request, edit, &failure); break;
      case MatchAction::kApply: out = ApplyPairs(now, pairs, edit); break;
      case MatchAction::kSave: {
        if (edits.made.empty()) {
          out = Refuse(MatchRefusal::kNothing, "no nodes were matched by hand in this graph: match some first");
          return false;
        }
        MSP_ASSIGN_OR_RETURN(out.config, WriteMatchConfig(found.first, key.step, key.rank, edits));
        return false;
      }
      case MatchAction::kUndo:
      case MatchAction::kRedo: {
        auto other = cache_->changes.Peek(place, edits, action == MatchAction::kRedo);
        if (!other) {
          out = Refuse(MatchRefusal::kNoChange, "there is no change of matches to undo or redo");
          return false;
        }
        out.changed = PairsBetween(edits, *other);
        edits = *std::move(other);
      }
    }
    if (!failure.ok()) return failure;
    after = edits;
    return out.changed > 0;
  };
  MSP_RETURN_IF_ERROR(cache_->matches.Change(found.first, change));
  if (out.refusal != MatchRefusal::kNone || out.changed == 0) return out;
  if (action == MatchAction::kUndo || action == MatchAction::kRedo) {
    cache_->changes.Move(place, action == MatchAction::kRedo);
  } else {
    cache_->changes.Add(place, std::move(before), std::move(after));
  }
  return out;
}

StatusOr<PartnerSuggestions> Viewer::SuggestPartners(const GraphAddress& key, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, name));
  MSP_ASSIGN_OR_RETURN(const auto guesses,
                       GuessPartners(*held.file, *held.graph, side == Side::kTarget, node, PartnerSuggestions::kMost));
  PartnerSuggestions out;
  const Side other = side == Side::kTarget ? Side::kGolden : Side::kTarget;
  for (const PartnerGuess& guess : guesses) out.list.push_back({held.Summary(other, guess.node), guess});
  return out;
}

}  // namespace msprobe::view
