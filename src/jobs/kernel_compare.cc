#include "jobs/kernel_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/story/story_finder.h"
#include "import/execution_order.h"
#include "import/ir_code.h"
#include "import/kernel_dump.h"
#include "jobs/kernel_rows.h"
#include "json/writer.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

constexpr size_t kRowsPerBlock = 16;
using KernelPlace = std::pair<int, int>;  // rank, step

std::string PlaceText(KernelPlace at) { return fmt::format("rank {}, step {}", at.first, at.second); }

/// Runs of one kernel stand against each other in the order of time, those of one graph first.
void PairRuns(std::vector<const KernelTensor*> targets, std::vector<const KernelTensor*> goldens,
              std::vector<KernelPair>* out) {
  const auto earlier = [](const KernelTensor* a, const KernelTensor* b) { return a->time < b->time; };
  std::stable_sort(targets.begin(), targets.end(), earlier);
  std::stable_sort(goldens.begin(), goldens.end(), earlier);
  std::unordered_map<std::string_view, std::deque<size_t>> by_graph;
  for (size_t k = 0; k < goldens.size(); ++k) by_graph[goldens[k]->graph].push_back(k);
  std::vector<const KernelTensor*> partner(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto same = by_graph.find(targets[i]->graph);
    if (same == by_graph.end() || same->second.empty()) continue;
    partner[i] = std::exchange(goldens[same->second.front()], nullptr);
    same->second.pop_front();
  }
  size_t free = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    while (free < goldens.size() && !goldens[free]) ++free;
    if (!partner[i] && free < goldens.size()) partner[i] = std::exchange(goldens[free], nullptr);
  }
  for (size_t i = 0; i < targets.size(); ++i) out->push_back({targets[i], partner[i]});
  for (const KernelTensor* rest : goldens) {
    if (rest) out->push_back({nullptr, rest});
  }
}

std::vector<KernelPair> PairKernels(const KernelList& target, const KernelList& golden) {
  std::map<std::string_view, std::array<std::vector<const KernelTensor*>, 2>> by_key;
  for (const KernelTensor& t : target.tensors) by_key[t.key][0].push_back(&t);
  for (const KernelTensor& t : golden.tensors) by_key[t.key][1].push_back(&t);
  std::vector<KernelPair> out;
  for (auto& [key, runs] : by_key) PairRuns(std::move(runs[0]), std::move(runs[1]), &out);
  return out;
}

/// As the target ran them, what only the golden run has behind the rest; inputs of a kernel before its outputs.
void OrderByExecution(std::vector<KernelPair>* pairs) {
  const auto key = [](const KernelPair& pair) {
    const KernelTensor& t = pair.target ? *pair.target : *pair.golden;
    return std::tuple(pair.target == nullptr, t.place, std::string_view(t.key));
  };
  std::stable_sort(pairs->begin(), pairs->end(),
                   [&](const KernelPair& a, const KernelPair& b) { return key(a) < key(b); });
}

std::string IterationsText(const std::vector<uint64_t>& iterations) {
  constexpr size_t kMost = 5;
  const size_t shown = std::min(kMost, iterations.size());
  std::string out =
      fmt::format("{}", fmt::join(iterations.begin(), iterations.begin() + static_cast<long>(shown), ", "));
  return out + (iterations.size() > shown ? fmt::format(", ... ({} in all)", iterations.size()) : "");
}

/// Once for a graph of a rank: the files are the same for all steps.
void CompareOrders(int rank, const ExecutionOrders& target, const ExecutionOrders& golden, KernelReport* report) {
  for (const auto& one : target) {
    const std::string& graph = one.first;  // which clang 14 lets lambdas refer to
    const ExecutionOrder& order = one.second;
    const auto partner = golden.find(graph);
    const auto known = [&](const KernelOrders& o) { return o.rank == rank && o.graph == graph; };
    if (partner == golden.end() || std::any_of(report->orders.begin(), report->orders.end(), known)) continue;
    const std::vector<std::string>&a = order.scopes(), &b = partner->second.scopes();
    KernelOrders out{rank, graph, a.size(), b.size(), a == b, 0, "", ""};
    if (!out.same) {
      out.first = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
      if (out.first < a.size()) out.target = a[out.first];
      if (out.first < b.size()) out.golden = b[out.first];
    }
    report->orders.push_back(std::move(out));
    const std::vector<uint64_t>&ran = order.iterations, &other = partner->second.iterations;
    if (!ran.empty() && !other.empty() && ran != other) {
      report->warnings.push_back(Msg("graph {} of rank {} ran in iterations {} in the target, in {} in the golden run",
                                     graph, rank, IterationsText(ran), IterationsText(other)));
    }
  }
}

// ---- one step of one rank

/// The line of source that a kernel comes from; "" where its graph was not saved.
std::string LineOf(const std::map<std::string, IrFile>& code, const KernelTensor& kernel) {
  const auto graph = code.find(kernel.graph);
  const IrNode* node = graph == code.end() ? nullptr : graph->second.Find(KernelOf(kernel));
  return node ? SourceLine(*node) : std::string();
}

struct KernelBlock {
  RowBlock rows;
  KernelTable counts;
  std::vector<KernelFinding> findings;
};

void CountRow(const KernelPair& pair, const KernelRow& row, KernelTable* counts) {
  ++counts->rows;
  counts->target_only += pair.golden == nullptr;
  counts->golden_only += pair.target == nullptr;
  counts->yes += row.accuracy == "Yes";
  counts->no += row.accuracy == "No";
  counts->unread += row.unread;
}

Status WriteRows(const TableSpec& spec, const std::vector<KernelPair>& pairs, const std::map<std::string, IrFile>& code,
                 KernelTable* out, std::vector<KernelFinding>* findings) {
  const bool csv = EndsWith(spec.path, ".csv");
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table, CreateTable(spec, pairs.size()));
  const auto make = [&](size_t b) -> StatusOr<KernelBlock> {
    KernelBlock block;
    for (size_t i = b * kRowsPerBlock; i < std::min(pairs.size(), (b + 1) * kRowsPerBlock); ++i) {
      KernelRow row = out->tensors ? ArrayRow(pairs[i], csv) : StatisticRow(pairs[i], csv);
      CountRow(pairs[i], row, &block.counts);
      if (!code.empty()) row.cells.push_back(LineOf(code, *(pairs[i].target ? pairs[i].target : pairs[i].golden)));
      AppendTextRow(*table, {row.cells.begin(), row.cells.end()}, &block.rows);
      if (row.finding) block.findings.push_back(std::move(*row.finding));
    }
    return block;
  };
  const auto take = [&](size_t, KernelBlock&& block) -> Status {
    if (InterruptRequested()) return Interrupted();
    out->rows += block.counts.rows;
    out->target_only += block.counts.target_only;
    out->golden_only += block.counts.golden_only;
    out->yes += block.counts.yes;
    out->no += block.counts.no;
    out->unread += block.counts.unread;
    std::move(block.findings.begin(), block.findings.end(), std::back_inserter(*findings));
    return table->Take(std::move(block.rows));
  };
  MSP_RETURN_IF_ERROR(ParallelOrdered<KernelBlock>((pairs.size() + kRowsPerBlock - 1) / kRowsPerBlock, 64, make, take));
  MSP_RETURN_IF_ERROR(table->Commit());
  out->path = table->paths().front();
  return OkStatus();
}

using KernelPlaces = std::map<KernelPlace, std::vector<const KernelDirectory*>>;

StatusOr<KernelList> ReadPlace(const std::vector<const KernelDirectory*>& directories, KernelReport* report) {
  KernelList out;
  for (const KernelDirectory* directory : directories) MSP_RETURN_IF_ERROR(ReadKernels(*directory, &out));
  if (std::all_of(out.tensors.begin(), out.tensors.end(), [](const KernelTensor& t) { return t.constant; })) {
    out.tensors.clear();
  }
  if (out.passed_over > 0) {
    report->warnings.push_back(Msg("{} files or lines below {} are not a kernel's and were passed over",
                                   out.passed_over, directories.front()->path));
  }
  if (out.tensors.empty()) return BadInput(Msg("{} holds no kernels", directories.front()->path));
  return out;
}

StatusOr<KernelTable> ComparePlace(const KernelSettings& settings, KernelPlace at, const std::string& time,
                                   const std::vector<const KernelDirectory*>& target,
                                   const std::vector<const KernelDirectory*>& golden, KernelReport* report,
                                   RankFindings* judged) {
  MSP_ASSIGN_OR_RETURN(KernelList target_list, ReadPlace(target, report));
  MSP_ASSIGN_OR_RETURN(KernelList golden_list, ReadPlace(golden, report));
  const ExecutionOrders target_orders = ReadExecutionOrders(target, &report->warnings);
  const ExecutionOrders golden_orders = ReadExecutionOrders(golden, &report->warnings);
  PlaceKernels(target_orders, &target_list);
  PlaceKernels(golden_orders, &golden_list);
  if (!settings.plain) CompareOrders(at.first, target_orders, golden_orders, report);
  KernelTable out;
  out.rank = at.first;
  out.step = at.second;
  // Where one run holds only statistics, those of the other's files are computed.
  out.tensors = target_list.kind == KernelKind::kFiles && golden_list.kind == KernelKind::kFiles;
  TableSpec spec;
  spec.path = JoinPath(settings.output, fmt::format("compare_result_{}_{}_{}.{}", at.first, at.second, time,
                                                    settings.xlsx ? "xlsx" : "csv"));
  spec.columns = KernelTitles(out.tensors);
  std::map<std::string, IrFile> code;
  if (!settings.plain) code = ReadGraphCode(target, &report->warnings);
  if (!code.empty()) spec.columns.emplace_back("NPU Source");
  std::vector<KernelFinding> findings;
  std::vector<KernelPair> pairs = PairKernels(target_list, golden_list);
  if (!settings.plain && !target_orders.empty()) OrderByExecution(&pairs);
  MSP_RETURN_IF_ERROR(WriteRows(spec, pairs, code, &out, &findings));
  FilePair place;
  place.rank = at.first;
  place.step = at.second;
  MSP_ASSIGN_OR_RETURN(*judged, JudgeKernels(std::move(findings), place, settings.output));
  judged->target_only = out.target_only;
  judged->golden_only = out.golden_only;
  return out;
}

KernelPlaces Chosen(const std::vector<KernelDirectory>& all, const KernelSettings& settings) {
  const auto wanted = [](const std::vector<int>& list, int n) {
    return list.empty() || std::find(list.begin(), list.end(), n) != list.end();
  };
  KernelPlaces out;
  for (const KernelDirectory& d : all) {
    if (d.constants || !wanted(settings.ranks, d.rank) || !wanted(settings.steps, d.step)) continue;
    out[{d.rank, d.step}].push_back(&d);
  }
  if (settings.plain) return out;
  // Constants are compared once: with the first step of their rank that has their graph.
  for (const KernelDirectory& d : all) {
    if (!d.constants) continue;
    const auto has_graph = [&](const auto& place) {
      const auto& in = place.second;
      return place.first.first == d.rank &&
             std::any_of(in.begin(), in.end(), [&](const KernelDirectory* step) { return step->graph == d.graph; });
    };
    if (const auto first = std::find_if(out.begin(), out.end(), has_graph); first != out.end())
      first->second.push_back(&d);
  }
  return out;
}

void NoteLeftOut(const KernelPlaces& have, const KernelPlaces& other, const std::string& lacks, KernelReport* report) {
  std::string names;
  for (const auto& [at, directories] : have) {
    if (!other.contains(at)) names += (names.empty() ? "" : "; ") + PlaceText(at);
  }
  if (!names.empty()) report->warnings.push_back(Msg("{} has no kernels of {}: left out", lacks, names));
}

Status NothingFound(const KernelSettings& settings, const std::vector<KernelDirectory>& target,
                    const std::vector<KernelDirectory>& golden) {
  for (const auto& [path, found] : {std::pair(settings.target, &target), std::pair(settings.golden, &golden)}) {
    if (found->empty()) {
      return BadInput(
          Msg("{} holds no kernel dumps (rank_N/NET/GRAPH/STEP with .npy files or statistic.csv): for dumps of modules "
              "and functions leave out --rank and --step and give the rank's or step's directory",
              path));
    }
  }
  return BadInput(settings.ranks.empty() && settings.steps.empty()
                      ? Msg("{} and {} have no rank and step in common: compare kernel dumps of the same ranks and "
                            "steps",
                            settings.target, settings.golden)
                      : Msg("{} and {} have no rank and step in common that --rank and --step choose: compare kernel "
                            "dumps of the same ranks and steps",
                            settings.target, settings.golden));
}

/// The story of the run: the tables come rank by rank, it goes step by step.
Status Tell(std::vector<RankFindings> judged, KernelReport* report) {
  std::stable_sort(judged.begin(), judged.end(),
                   [](const RankFindings& a, const RankFindings& b) { return a.files.step < b.files.step; });
  StoryFinder finder;
  for (RankFindings& rank : judged) MSP_RETURN_IF_ERROR(finder.Add(std::move(rank)));
  MSP_RETURN_IF_ERROR(finder.End());
  report->story = finder.Tell();
  return OkStatus();
}

}  // namespace

StatusOr<KernelReport> CompareKernels(const KernelSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const std::vector<KernelDirectory> all_target, FindKernels(settings.target));
  MSP_ASSIGN_OR_RETURN(const std::vector<KernelDirectory> all_golden, FindKernels(settings.golden));
  const KernelPlaces target = Chosen(all_target, settings), golden = Chosen(all_golden, settings);
  KernelReport report;
  NoteLeftOut(target, golden, settings.golden, &report);
  NoteLeftOut(golden, target, settings.target, &report);
  const std::string time = TimestampNow();
  bool any = false;
  std::vector<RankFindings> judged;
  for (const auto& [at, directories] : target) {
    const auto partner = golden.find(at);
    if (partner == golden.end()) continue;
    if (!std::exchange(any, true)) MSP_RETURN_IF_ERROR(MakeOutputDir(settings.output));
    RankFindings findings;
    StatusOr<KernelTable> table = ComparePlace(settings, at, time, directories, partner->second, &report, &findings);
    if (table.ok()) {
      report.tables.push_back(std::move(*table));
      judged.push_back(std::move(findings));
    } else if (table.status().code() == Code::kBadInput) {
      report.failures.emplace_back(PlaceText(at), table.status());  // the others can be compared
    } else {
      return table.status();
    }
  }
  if (!any) return NothingFound(settings, all_target, all_golden);
  if (report.tables.empty()) return report.failures.front().second;
  MSP_RETURN_IF_ERROR(Tell(std::move(judged), &report));
  return report;
}

Message KernelReportText(const KernelReport& report) {
  Message out(StoryText(report.story, LocaleLanguage()));
  for (const KernelOrders& o : report.orders) {
    if (o.same) {
      out += Msg("execution order of graph {}, rank {}: the same {} kernels\n", o.graph, o.rank, o.target_kernels);
      continue;
    }
    const auto name = [](const std::string& kernel) { return kernel.empty() ? "-" : OneLine(kernel); };
    out += Msg(
        "execution order of graph {}, rank {}: different from kernel {} on: {} in the target, {} in the golden run\n",
        o.graph, o.rank, o.first + 1, name(o.target), name(o.golden));
  }
  for (const KernelTable& t : report.tables) {
    const std::string place = PlaceText({t.rank, t.step}), path = OneLine(t.path);
    out += t.tensors
               ? Msg("compare (kernels, tensors), {}: {} rows, {} reach the accuracy, {} do not; {} only in the "
                     "target, {} only in the golden run\n  result: {}\n",
                     place, t.rows, t.yes, t.no, t.target_only, t.golden_only, path)
               : Msg("compare (kernels, statistics), {}: {} rows, {} reach the accuracy, {} do not; {} only in the "
                     "target, {} only in the golden run\n  result: {}\n",
                     place, t.rows, t.yes, t.no, t.target_only, t.golden_only, path);
  }
  return out;
}

std::string KernelReportJson(const KernelReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.ArrayMember("tables", report.tables, [&](const KernelTable& t) {
    json.BeginObject();
    json.Member("rank", t.rank);
    json.Member("step", t.step);
    json.Member("mode", t.tensors ? "kernel_tensor" : "kernel_statistics");
    json.Member("file", t.path);
    json.Member("rows", t.rows);
    json.Member("reached", t.yes);
    json.Member("not_reached", t.no);
    json.Member("target_only", t.target_only);
    json.Member("golden_only", t.golden_only);
    json.Member("unread", t.unread);
    json.EndObject();
  });
  json.ArrayMember("execution_orders", report.orders, [&](const KernelOrders& o) {
    json.BeginObject();
    json.Member("rank", o.rank);
    json.Member("graph", o.graph);
    json.Member("target_kernels", o.target_kernels);
    json.Member("golden_kernels", o.golden_kernels);
    json.Member("same", o.same);
    if (!o.same) {
      json.Member("first", o.first);
      json.Member("target", o.target);
      json.Member("golden", o.golden);
    }
    json.EndObject();
  });
  json.ArrayMember("failures", report.failures, [&](const auto& failure) {
    json.BeginObject();
    json.Member("label", failure.first);
    json.Member("why", failure.second.message());
    json.EndObject();
  });
  json.RawMember("verdict", StoryJson(report.story));
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
