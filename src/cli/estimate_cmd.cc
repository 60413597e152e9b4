// msprobe estimate: what a capture will cost, before it is run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/message.h"
#include "capture/cost_estimate.h"
#include "cli/context/register_commands.h"
#include "cli/launch/launch.h"
#include "dump/output_bound.h"
#include "dump/reader.h"
#include "json/parser.h"
#include "json/writer.h"
#include "parallel/recorded_ranks.h"

namespace msprobe {
namespace {

struct EstimateArgs {
  AttachRequest request;
  std::string from;
  std::optional<ParallelLayout> layout;  // of the run that will be recorded
};

/// One kind of capture: bytes of all ranks together, times and memory of the slowest rank.
struct Row {
  size_t task = 0, level = 0;
  StepCost cost;
  std::optional<double> seconds;
  std::optional<int64_t> memory;  // beyond that of the run without capture
};

struct Estimate {
  std::vector<Row> rows;
  std::optional<double> bare_seconds;
  size_t ranks = 0;
  int64_t steps = 0;  // that the configuration records; 0: all
  bool exact_links = true;
  std::vector<Message> warnings;
  /// Of the whole run: all of its ranks, and one of each place in the model.
  std::optional<ParallelLayout> layout;
  std::vector<int> places;
};

/// Of so many ranks, over the steps that the configuration records.
StepCost CostOf(const Estimate& e, const StepCost& measured, size_t ranks) {
  const auto scaled = [&](uint64_t n) {
    const double each = static_cast<double>(n) / static_cast<double>(std::max<size_t>(1, e.ranks));
    return static_cast<uint64_t>(each * static_cast<double>(ranks) *
                                 static_cast<double>(std::max<int64_t>(1, e.steps)));
  };
  return {scaled(measured.ops), scaled(measured.files), scaled(measured.bytes), 0, 0};
}

std::optional<double> Median(const JsonValue* list) {
  if (list == nullptr || !list->IsArray() || list->empty()) return std::nullopt;
  std::vector<double> values;
  for (const JsonValue& v : list->Items()) {
    if (v.IsNumber()) values.push_back(v.Number());
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

template <typename List>
size_t IndexOf(const List& list, std::string_view name) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), name) - list.begin());
}

void Add(const StepCost& cost, StepCost* sum) {
  sum->ops += cost.ops;
  sum->files += cost.files;
  sum->bytes += cost.bytes;
  sum->tensors += cost.tensors;
  sum->tensor_bytes += cost.tensor_bytes;
}

Row* FindRow(Estimate* estimate, size_t task, size_t level) {
  for (Row& row : estimate->rows) {
    if (row.task == task && row.level == level) return &row;
  }
  return &estimate->rows.emplace_back(Row{task, level, {}, {}, {}});
}

void KeepLarger(std::optional<double> value, std::optional<double>* kept) {
  if (value && (!*kept || **kept < *value)) *kept = value;
}

/// Why figures are missing, and how many steps would give them.
Message TooFewSteps(const JsonValue& result, bool all_timed) {
  const auto number = [&](std::string_view key) { return result[key].Int(); };
  if (all_timed) {
    return Msg(
        "the script ended after {} steps: times are medians of fewer steps than --steps asks for, which takes {}",
        number("steps"), number("steps_of_all"));
  }
  return Msg("the script ended after {} steps: times need {} steps, and {} for medians of --steps", number("steps"),
             number("steps_of_a_round"), number("steps_of_all"));
}

/// One process's figures.
Status AddResult(const JsonValue& result, Estimate* estimate) {
  const JsonValue* shapes = result.Find("shapes");
  const JsonValue *kinds = result.Find("kinds"), *bare = result.Find("bare"), *complete = result.Find("complete");
  if (!shapes || !shapes->IsString() || !kinds || !kinds->IsArray() || !bare) {
    return InternalError(Msg("a process left no measurements"));
  }
  MSP_ASSIGN_OR_RETURN(const CostEstimate costs, EstimateCost(std::string(shapes->Text())));
  ++estimate->ranks;
  estimate->exact_links &= costs.exact_links;
  KeepLarger(Median(bare->Find("seconds")), &estimate->bare_seconds);
  if (const JsonValue* n = result.Find("steps_recorded"); n && n->IsInt()) estimate->steps = n->Int();
  const std::optional<double> bare_memory = Median(bare->Find("memory"));
  bool all_timed = true;
  for (const JsonValue& kind : kinds->Items()) {
    const JsonValue *task = kind.Find("task"), *level = kind.Find("level");
    if (!task || !task->IsString() || !level || !level->IsString()) continue;
    const size_t t = IndexOf(kCostTasks, task->Text()), l = IndexOf(kCostLevels, level->Text());
    if (t == kCostTasks.size() || l == kCostLevels.size()) continue;
    Row* row = FindRow(estimate, t, l);
    Add(costs.costs[t][l], &row->cost);
    const std::optional<double> seconds = Median(kind.Find("seconds"));
    all_timed &= seconds.has_value();
    KeepLarger(seconds, &row->seconds);
    if (const auto memory = Median(kind.Find("memory")); memory && bare_memory) {
      row->memory = std::max(row->memory.value_or(0), static_cast<int64_t>(*memory - *bare_memory));
    }
  }
  if (complete == nullptr || !complete->Bool()) {
    const Message warning = TooFewSteps(result, all_timed);
    if (std::count(estimate->warnings.begin(), estimate->warnings.end(), warning) == 0)
      estimate->warnings.push_back(warning);
  }
  return OkStatus();
}

StatusOr<Estimate> FromRun(EstimateArgs args, const std::vector<std::string>& program) {
  MSP_RETURN_IF_ERROR(CheckLaunch(&args.request, program));
  const char* tmp = std::getenv("TMPDIR");
  MSP_ASSIGN_OR_RETURN(auto work, WorkDir::Create(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp"));
  args.request.out = work->path();
  MSP_ASSIGN_OR_RETURN(const int code, RunProgram(args.request, program));
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, work->Results("estimate."));
  if (code != 0) return BadInput(Msg("{} ended with exit code {}: see its messages", program[0], code));
  if (ranks.empty()) {
    return BadInput(
        Msg("{} ran too few steps to measure: it must call a PyTorch model at least three times", program[0]));
  }
  Estimate estimate;
  Status status;
  for (const std::string& rank : ranks) {
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(JoinPath(work->path(), "estimate." + rank + ".json")));
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(ParseJson(file.text(), file.path(), &doc));
    if (status.ok()) status = AddResult(doc, &estimate);
    if (const JsonValue* dir = doc.Find("work"); dir && dir->IsString()) RemoveTree(std::string(dir->Text()));
  }
  if (!status.ok()) return status;
  return estimate;
}

/// One step of a dump: all its ranks.
StatusOr<Estimate> FromDump(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const DumpPath dump, ResolveDumpPath(path));
  if (dump.steps.empty())
    return BadInput(Msg("{} is a file: give the rank, step or dump directory that contains it", path));
  Estimate estimate;
  for (const RankDir& rank : dump.steps.front().ranks) {
    MSP_ASSIGN_OR_RETURN(const CostEstimate costs, EstimateCost(rank.path));
    ++estimate.ranks;
    estimate.exact_links &= costs.exact_links;
    for (size_t t = 0; t < kCostTasks.size(); ++t) {
      for (size_t l = 0; l < kCostLevels.size(); ++l) {
        if (costs.known[l]) Add(costs.costs[t][l], &FindRow(&estimate, t, l)->cost);
      }
    }
  }
  return estimate;
}

Message TextOf(const Estimate& e) {
  std::string text = fmt::format("{:<11} {:<5} {:>8} {:>8} {:>10}", "task", "level", "ops", "files", "bytes/step");
  const bool timed = e.bare_seconds &&
                     std::any_of(e.rows.begin(), e.rows.end(), [](const Row& row) { return row.seconds.has_value(); });
  if (timed) text += fmt::format(" {:>9} {:>9} {:>9}", "s/step", "slowdown", "memory");
  text += '\n';
  for (const Row& row : e.rows) {
    text += fmt::format("{:<11} {:<5} {:>8} {:>8} {:>10}", kCostTasks[row.task], kCostLevels[row.level], row.cost.ops,
                        row.cost.files, BytesText(static_cast<double>(row.cost.bytes)));
    if (timed && row.seconds) {
      text += fmt::format(" {:>9.4f} {:>9.2f} {:>9}", *row.seconds, *row.seconds / *e.bare_seconds,
                          row.memory ? BytesText(static_cast<double>(*row.memory)) : "");
    } else if (timed) {
      text += fmt::format(" {:>9} {:>9} {:>9}", "-", "-", "-");
    }
    text += '\n';
  }
  Message out(text);
  if (timed && e.ranks > 1) {
    out += Msg("without capture: {:.4f} s/step; bytes of {} ranks, times of the slowest\n", *e.bare_seconds, e.ranks);
  } else if (timed) {
    out += Msg("without capture: {:.4f} s/step\n", *e.bare_seconds);
  } else if (e.ranks > 1) {
    out += Msg("bytes of {} ranks, times of the slowest\n", e.ranks);
  }
  if (e.steps > 0 && !e.rows.empty()) {
    out += Msg("the configuration records {} steps: {}\n", e.steps,
               BytesText(static_cast<double>(e.rows.back().cost.bytes) * static_cast<double>(e.steps)));
  }
  return out;
}

/// The ranks as the configuration takes them.
std::string RankList(const std::vector<int>& ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

/// What recording the whole run leaves on a shared disk, and what a part of its ranks would.
Message RunText(const Estimate& e) {
  const ParallelLayout& l = *e.layout;
  const auto all = static_cast<size_t>(l.rank_size);
  Message out = Msg("{} ranks (tp {} x pp {} x cp {} x ep {}), {} steps:\n", l.rank_size, l.tp, l.pp, l.cp, l.ep,
                    std::max<int64_t>(1, e.steps));
  for (const Row& row : e.rows) {
    const StepCost whole = CostOf(e, row.cost, all), part = CostOf(e, row.cost, e.places.size());
    out += Msg("  {} {}: {} files, {}; of one rank for each place in the model: {} files, {}\n", kCostTasks[row.task],
               kCostLevels[row.level], whole.files, BytesText(static_cast<double>(whole.bytes)), part.files,
               BytesText(static_cast<double>(part.bytes)));
  }
  if (e.places.size() == all) return out;
  out += Msg("one rank for each place, in the configuration: \"rank\": {}\n", RankList(e.places));
  return out;
}

void RunJson(const Estimate& e, JsonWriter* json) {
  const auto cost = [&](const char* key, const StepCost& c) {
    json->ObjectMember(key, [&] {
      json->Member("files", c.files);
      json->Member("bytes", c.bytes);
    });
  };
  json->ObjectMember("run", [&] {
    json->Member("ranks", e.layout->rank_size);
    json->Member("record", e.places);
    json->ArrayMember("kinds", e.rows, [&](const Row& row) {
      json->BeginObject();
      json->Member("task", kCostTasks[row.task]);
      json->Member("level", kCostLevels[row.level]);
      cost("all", CostOf(e, row.cost, static_cast<size_t>(e.layout->rank_size)));
      cost("one_of_each", CostOf(e, row.cost, e.places.size()));
      json->EndObject();
    });
  });
}

std::string JsonOf(const Estimate& e) {
  JsonWriter json;
  // Seconds and factors with as many digits as they need: 2, not 2.0.
  const auto figure = [&](std::string_view key, const std::optional<double>& value) {
    json.RawMember(key, value ? fmt::format("{}", *value) : "null");
  };
  json.BeginObject();
  json.Member("ranks", e.ranks);
  json.Member("steps", e.steps);
  figure("bare_seconds", e.bare_seconds);
  json.ArrayMember("kinds", e.rows, [&](const Row& row) {
    std::optional<double> slowdown;
    if (row.seconds && e.bare_seconds) slowdown = *row.seconds / *e.bare_seconds;
    json.BeginObject();
    json.Member("task", kCostTasks[row.task]);
    json.Member("level", kCostLevels[row.level]);
    json.Member("ops", row.cost.ops);
    json.Member("files", row.cost.files);
    json.Member("bytes", row.cost.bytes);
    json.Member("tensor_files", row.cost.tensors);
    json.Member("tensor_bytes", row.cost.tensor_bytes);
    figure("seconds", row.seconds);
    figure("slowdown", slowdown);
    json.Member("memory", row.memory);
    json.EndObject();
  });
  if (e.layout) RunJson(e, &json);
  json.EndObject();
  return json.Take() + "\n";
}

Status Run(const EstimateArgs& args, const CommandContext& context) {
  if (!args.from.empty() && !context.program.empty()) {
    return UsageError(Msg("estimate takes --from DIR or a command after '--', not both"));
  }
  EstimateArgs here = args;
  // Nothing stays there; it is the disk that is measured.
  if (here.request.config.empty() && here.request.dump_path.empty()) here.request.dump_path = ".";
  std::vector<int> places;
  if (args.layout) {
    MSP_ASSIGN_OR_RETURN(places, OneOfEachPlace(*args.layout));
  }
  auto estimate = args.from.empty() ? FromRun(here, context.program) : FromDump(args.from);
  if (!estimate.ok()) return estimate.status();
  estimate->layout = args.layout;
  estimate->places = std::move(places);
  if (!estimate->exact_links) PrintWarning(Msg("the dump has no checksums: statistics decide which tensors are equal"));
  for (const Message& warning : estimate->warnings) PrintWarning(warning);
  context.json ? PrintJson(JsonOf(*estimate)) : PrintForPeople(TextOf(*estimate));
  if (!context.json && estimate->layout) PrintForPeople(RunText(*estimate));
  return OkStatus();
}

/// The run that is meant, which may be larger than what is measured.
void AddLayout(CLI::App* command, std::optional<ParallelLayout>* to) {
  const auto add = [&](const char* name, int ParallelLayout::*member, const char* help) {
    return command
        ->add_option_function<int>(
            name,
            [to, member](int n) {
              if (!*to) to->emplace();
              (**to).*member = n;
            },
            help)
        ->check(CLI::PositiveNumber);
  };
  CLI::Option* ranks = add("--rank_size", &ParallelLayout::rank_size,
                           "ranks of the run to record: also files and bytes of all, and which ranks are enough");
  for (CLI::Option* option : {add("--tp", &ParallelLayout::tp, "with --rank_size: tensor parallel size"),
                              add("--pp", &ParallelLayout::pp, "with --rank_size: pipeline parallel size"),
                              add("--cp", &ParallelLayout::cp, "with --rank_size: context parallel size"),
                              add("--ep", &ParallelLayout::ep, "with --rank_size: expert parallel size"),
                              command->add_option_function<std::string>(
                                  "--order",
                                  [to](const std::string& order) {
                                    if (!*to) to->emplace();
                                    (*to)->order = order;
                                  },
                                  "with --rank_size: order of the rank dimensions, such as tp-cp-ep-dp-pp")}) {
    option->needs(ranks);
  }
}

}  // namespace

void RegisterEstimate(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<EstimateArgs>();
  args->request.mode = "estimate";
  CLI::App* command = app.add_subcommand(
      "estimate", "predict what a capture costs per step: files, bytes, seconds and memory, by task and level");
  AddAttachOptions(command, &args->request);
  command->get_option("--task")->description("task instead of the configuration's; all: every task");
  command->get_option("--level")->description("level instead of the configuration's; all: every level");
  command->add_option("--steps", args->request.steps, "steps to time of each kind (default: 3)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--from", args->from,
                      "a dump of task statistics: compute the bytes from its first step and run nothing");
  AddLayout(command, &args->layout);
  command->add_flag("--json", context->json, "print the figures as one JSON object");
  command->footer("Your command comes last: msprobe estimate --config config.json -- python train.py ARGUMENTS");
  command->callback([args, context] {
    args->request.prints_to_stderr = context->json;
    context->status = Run(*args, *context);
  });
}

}  // namespace msprobe
