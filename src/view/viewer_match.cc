// Matching nodes by hand.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "view/held.h"
#include "view/match_pairs.h"
#include "view/recompare.h"
#include "view/viewer.h"

namespace msprobe::view {
namespace {

MatchChange Refuse(MatchRefusal refusal, std::string text) {
  MatchChange out;
  out.refusal = refusal;
  out.text = std::move(text);
  return out;
}

MatchRefusal WhyNotAtAll(const Held& held) {
  const VisConfig& config = held.file->config();
  if (!config.compared) return MatchRefusal::kSingle;
  const auto mode = MatchingMode(config);
  const bool values = mode != GraphMode::kTensor || held.meter->enabled();
  return mode && values ? MatchRefusal::kNone : MatchRefusal::kTensor;
}

// kNone when the two can be matched.
MatchRefusal WhyNot(const RankGraph& graph, NodePair p) {
  if (graph.npu[p.npu].partner != kNoNode || graph.bench[p.bench].partner != kNoNode) return MatchRefusal::kTaken;
  return graph.npu[p.npu].type == graph.bench[p.bench].type ? MatchRefusal::kNone : MatchRefusal::kTypes;
}

// The graph as the file has it, and the edits that are to be changed.
struct Edit {
  const RankGraph& now;
  const RankGraph& file;
  MatchEdits* edits;

  void Make(NodePair p) {
    const uint32_t known = file.npu[p.npu].partner;
    const std::string name(now.npu.Name(p.npu));
    // What the file had is taken back, with all its figures.
    if (known == p.bench && file.bench[p.bench].partner == p.npu) {
      edits->cancelled.erase(name);
    } else {
      edits->made.insert_or_assign(name, std::string(now.bench.Name(p.bench)));
    }
  }
  void Cancel(uint32_t npu) {
    const std::string_view name = now.npu.Name(npu);
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
StatusOr<ReadTensors> TensorsOf(const Held& held, NodePair p) {
  ReadTensors tensors;
  if (MatchingMode(held.file->config()) != GraphMode::kTensor) return tensors;
  MSP_ASSIGN_OR_RETURN(NodeRecord record, held.file->LoadRecord(held.graph->npu[p.npu].rowid));
  MSP_RETURN_IF_ERROR(RecomparePair(*held.file, *held.graph, p.npu, p.bench, held.meter, &record, &tensors).status());
  return tensors;
}

void Skip(std::string npu, std::string bench, MatchRefusal why, MatchChange* out) {
  if (++out->skipped_total <= MatchChange::kMostSkipped)
    out->skipped.push_back({std::move(npu), std::move(bench), why});
}

MatchChange AddPairs(const GraphKey& key, const Held& held, const MatchRequest& request, Edit edit, Status* failure) {
  auto npu = held.Find(key, Side::kNpu, request.npu), bench = held.Find(key, Side::kBench, request.bench);
  if (!npu.ok() || !bench.ok()) {
    *failure = npu.ok() ? bench.status() : npu.status();
    return {};
  }
  const NodePair pair{*npu, *bench};
  const RankGraph& graph = *held.graph;
  if (WhyNot(graph, pair) == MatchRefusal::kTaken) {
    const bool ours = graph.npu[pair.npu].partner != kNoNode;
    const std::string_view taken = ours ? graph.npu.Name(pair.npu) : graph.bench.Name(pair.bench);
    const std::string_view by =
        ours ? graph.bench.Name(graph.npu[pair.npu].partner) : graph.npu.Name(graph.bench[pair.bench].partner);
    return Refuse(MatchRefusal::kTaken,
                  fmt::format("{} is matched with {} already: cancel that match first", taken, by));
  }
  if (WhyNot(graph, pair) == MatchRefusal::kTypes) {
    return Refuse(MatchRefusal::kTypes,
                  fmt::format("{} and {} are of different kinds: match a module with a module, a call with a call",
                              graph.npu.Name(pair.npu), graph.bench.Name(pair.bench)));
  }
  MatchChange out;
  for (const NodePair p : PairsToMatch(graph, pair, request.descendants)) {
    const auto tensors = TensorsOf(held, p);
    if (!tensors.ok()) {
      *failure = tensors.status();
      return {};
    }
    if (tensors->read == 0 && tensors->unread > 0) {
      if (p.npu == pair.npu) {
        return Refuse(MatchRefusal::kTensor,
                      fmt::format("{} cannot be compared ({}): serve the directory that holds the dumps",
                                  graph.npu.Name(p.npu), tensors->why));
      }
      Skip(std::string(graph.npu.Name(p.npu)), std::string(graph.bench.Name(p.bench)), MatchRefusal::kTensor, &out);
      continue;
    }
    edit.Make(p);
    ++out.changed;
  }
  return out;
}

MatchChange RemovePairs(const GraphKey& key, const Held& held, const MatchRequest& request, Edit edit,
                        Status* failure) {
  auto node = held.Find(key, Side::kNpu, request.npu);
  if (!node.ok()) {
    *failure = node.status();
    return {};
  }
  const Tree& npu = held.graph->npu;
  if (npu[*node].partner == kNoNode)
    return Refuse(MatchRefusal::kNotMatched, fmt::format("{} is matched with no node", npu.Name(*node)));
  MatchChange out;
  for (const uint32_t i : NodesToCancel(*held.graph, *node, request.descendants)) {
    edit.Cancel(i);
    ++out.changed;
  }
  return out;
}

MatchChange ApplyPairs(const Held& held, const std::vector<std::pair<std::string, std::string>>& pairs, Edit edit) {
  RankGraph graph = *held.graph;  // which grows the partners as they are made
  const auto nodes = [&](const std::string& npu, const std::string& bench) {
    return NodePair{graph.npu.Find(npu), graph.bench.Find(bench)};
  };
  const auto there = [](NodePair p) { return p.npu != kNoNode && p.bench != kNoNode; };
  const auto matched = [&](NodePair p) { return there(p) && graph.npu[p.npu].partner == p.bench; };
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
    graph.npu.SetPartner(p.npu, p.bench);
    graph.bench.SetPartner(p.bench, p.npu);
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
  static constexpr std::array<std::string_view, 9> kNames{"",       "single",      "tensor", "taken",  "types",
                                                          "absent", "not_matched", "stale",  "nothing"};
  return kNames[static_cast<size_t>(refusal)];
}

StatusOr<MatchState> Viewer::Matches(const GraphKey& key) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const auto found, directory_.Resolve(key.file));
  MatchStore::Loaded loaded = cache_->matches.Load(found.first);
  MatchState out;
  out.refusal = WhyNotAtAll(held);
  out.revision = std::move(loaded.revision);
  out.problem = std::move(loaded.problem);
  out.configs = ListMatchConfigs(found.first);
  const auto edits = loaded.edits->find({key.step, key.rank});
  if (edits == loaded.edits->end()) return out;
  out.made.assign(edits->second.made.begin(), edits->second.made.end());
  out.cancelled.assign(edits->second.cancelled.begin(), edits->second.cancelled.end());
  return out;
}

StatusOr<MatchChange> Viewer::ChangeMatches(const GraphKey& key, MatchAction action, const MatchRequest& request) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
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
  if (action == MatchAction::kAdd && (request.npu.empty() || request.bench.empty()))
    return UsageError("npu or bench is missing: send the names of both nodes");
  if (action == MatchAction::kRemove && request.npu.empty()) return UsageError("npu is missing: send the node's name");
  MatchChange out;
  const auto change = [&](const std::string& revision, FileEdits* all) -> StatusOr<bool> {
    if (!request.revision.empty() && request.revision != revision) {
      out = Refuse(MatchRefusal::kStale, "somebody else changed the matches meanwhile: look at them and try again");
      return false;
    }
    // Under the lock of the store: `held` may be older, and of another file that was there before.
    MSP_ASSIGN_OR_RETURN(const Held now, cache_->Hold(key));
    MSP_ASSIGN_OR_RETURN(const auto file_graph, cache_->graphs.Graph(now.file, key.step, key.rank));
    MatchEdits& edits = (*all)[{key.step, key.rank}];
    const Edit edit{*now.graph, *file_graph, &edits};
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
    }
    if (!failure.ok()) return failure;
    return out.changed > 0;
  };
  MSP_RETURN_IF_ERROR(cache_->matches.Change(found.first, change));
  return out;
}

}  // namespace msprobe::view
