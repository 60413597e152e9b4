#include "cli/graph/graph_structure.h"

#include <fmt/format.h>

#include <optional>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "graph/tree/graph_size.h"
#include "json/writer.h"
#include "match/implementations.h"
#include "match/mapping.h"
#include "report/structure_compare.h"

namespace msprobe {
namespace {

std::string ListPath(const std::string& graph) {
  static constexpr std::string_view kEnd = ".vis.db";
  return graph.substr(0, graph.size() - (EndsWith(graph, kEnd) ? kEnd.size() : 0)) + "_structure.json";
}

void WritePlace(JsonWriter* json, const GraphPair& pair) {
  json->Member("step", pair.step);
  json->Member("rank", pair.rank);
}

class StructureList {
 public:
  StructureList(const GraphSettings& settings, const GraphStructureOptions& options, const std::string& file)
      : settings_(settings), options_(options), path_(ListPath(file)) {}

  StatusOr<GraphStructures> Run() {
    MappingSettings named;
    named.layer = settings_.layer_mapping;
    named.layer_template = settings_.layer_template;
    MSP_ASSIGN_OR_RETURN(mapping_, LoadMapping(named));
    MSP_ASSIGN_OR_RETURN(const GraphPlan plan, PlanGraph(settings_));
    json_.BeginArray();
    for (const GraphPair& pair : plan.pairs) {
      if (InterruptRequested()) return Interrupted();
      MSP_RETURN_IF_ERROR(Add(pair));
    }
    json_.EndArray();
    if (pairs_ == 0) return GraphStructures();
    MSP_RETURN_IF_ERROR(WriteFiles());
    return GraphStructures{Text(), json_.Take()};
  }

 private:
  Status Add(const GraphPair& pair) {
    StatusOr<DumpFile> target = DumpFile::Open(JoinPath(pair.target_dir, "dump.json"));
    StatusOr<DumpFile> golden = DumpFile::Open(JoinPath(pair.golden_dir, "dump.json"));
    if (!target.ok() || !golden.ok()) return OkStatus();
    const bool wanted = options_.always || !options_.suggest_mapping.empty();
    if (!wanted && (target->task() != "structure" || golden->task() != "structure")) return OkStatus();
    const Vocabulary names = VocabularyOf(*target, *golden, mapping_.layer);
    MSP_ASSIGN_OR_RETURN(const Structure target_structure, Structure::Read(*target, names));
    MSP_ASSIGN_OR_RETURN(const Structure golden_structure, Structure::Read(*golden, names));
    StructureSummary summary;
    summary.diff = DiffStructures(target_structure, golden_structure, mapping_.layers);
    if (!options_.suggest_mapping.empty()) {
      suggestion_.Add(SuggestMapping(target_structure, golden_structure, summary.diff, mapping_.layers));
    }
    ++pairs_;
    // The layout of earlier tools has no file beside the graph.
    const bool listed = !summary.diff.changes.empty() && (options_.always || !settings_.plain);
    if (listed) summary.list_path = path_;
    json_.Object([&] {
      WritePlace(&json_, pair);
      json_.Key("structure"), WriteStructure(&json_, summary);
    });
    if (summary.diff.changes.empty()) return OkStatus();
    const auto* told = &summary;
    if (++differing_ == 1) {
      first_ = std::move(summary);
      told = &first_;
      first_at_ = fmt::format("step {}, rank {}", pair.step, pair.rank);
      for (const StructureChange& change : first_.diff.changes) renamed_ |= change.kind == StructureKind::kRenamed;
      if (!listed) return OkStatus();
      MSP_ASSIGN_OR_RETURN(OutputFile list, OutputFile::Create(path_));
      list_.emplace(std::move(list));
    }
    if (!list_) return OkStatus();
    MSP_RETURN_IF_ERROR(list_->Write(differing_ == 1 ? "[\n" : ",\n"));
    JsonWriter line;
    line.Object([&] {
      WritePlace(&line, pair);
      line.RawMember("structure", StructureDiffJson(told->diff));
    });
    return list_->Write(line.Take());
  }

  Status WriteFiles() {
    if (list_) {
      MSP_RETURN_IF_ERROR(list_->Write("\n]\n"));
      MSP_RETURN_IF_ERROR(list_->CommitResult());
      first_.list_path = list_->path();
    }
    if (options_.suggest_mapping.empty()) return OkStatus();
    return suggestion_.Write(options_.suggest_mapping, settings_.target, settings_.golden);
  }

  Message Text() const {
    Message out = differing_ == 0 ? Msg("structure: no difference\n") : StructureText(first_);
    if (pairs_ > 1 && differing_ > 0) {
      out += Msg("  ({}; {} of {} graphs differ in structure)\n", first_at_, differing_, pairs_);
    }
    if (!options_.suggest_mapping.empty()) {
      const SuggestedMapping& s = suggestion_.sum();
      out +=
          Msg("suggested layer mapping: {}\n  partners by it: {} of {} calls, without it {}; check it, then give it as "
              "-lm\n",
              OneLine(options_.suggest_mapping), s.matched_with, s.calls, s.matched_without);
    } else if (renamed_) {
      out += Msg("  modules have different names: --suggest_mapping FILE writes a layer mapping (-lm) to check\n");
    }
    return out;
  }

  const GraphSettings& settings_;
  const GraphStructureOptions& options_;
  const std::string path_;
  Mapping mapping_;
  MappingSuggestion suggestion_;
  std::optional<OutputFile> list_;
  StructureSummary first_;  // of the first pair that differs
  std::string first_at_;
  JsonWriter json_;  // a list of all pairs
  size_t pairs_ = 0, differing_ = 0;
  bool renamed_ = false;
};

}  // namespace

StatusOr<GraphStructures> CompareGraphStructures(const GraphSettings& settings, const GraphStructureOptions& options,
                                                 const std::string& file) {
  return StructureList(settings, options, file).Run();
}

}  // namespace msprobe
