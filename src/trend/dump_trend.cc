#include "trend/dump_trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>

#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "match/match_dumps.h"
#include "trend/micro_steps.h"
#include "trend/trend_db.h"
#include "trend/trend_tags.h"

namespace msprobe {
namespace {

constexpr std::array<const char*, 4> kMetrics{"forward", "backward", "recompute", "parameters_grad"};
constexpr std::array<const char*, 4> kStats{"norm", "max", "min", "mean"};
constexpr std::array<const char*, 4> kFields{"Norm", "Max", "Min", "Mean"};
constexpr size_t kBatch = 5000;  // rows after which new targets get their numbers
constexpr size_t kMaxDigits = 9;

struct RankDump {
  std::string path;
  int64_t rank = 0;
  int step = 0;
};

struct DumpRow {
  uint32_t name = 0;
  DumpMetric metric = DumpMetric::kNone;
  int32_t step = 0;  // within the dump
  int64_t call = 0;
  std::array<double, kStats.size()> values{};
};

// One dump.json, read.
struct DumpPart {
  std::vector<DumpRow> rows;
  std::vector<size_t> batches;  // where each ends
  std::deque<std::string> names;
  std::unordered_map<std::string_view, uint32_t> ids;
  int micro_steps = 1;
  std::string failed;  // why it could not be read
  std::vector<Message> warnings;
  std::vector<RecordingGap> gaps;

  uint32_t Id(const std::string& name) {
    const auto found = ids.find(name);
    if (found != ids.end()) return found->second;
    names.push_back(name);
    return ids.emplace(names.back(), static_cast<uint32_t>(names.size() - 1)).first->second;
  }
};

// Ranks as they are numbered; processes without a rank behind them, in the order of their ids.
std::vector<RankDump> AllRanks(const DumpPath& dump, std::vector<Message>* warnings) {
  std::vector<RankDump> out;
  for (const StepDir& step : dump.steps) {
    int64_t next = 0;
    for (const RankDir& rank : step.ranks) {
      const int64_t number = rank.rank ? *rank.rank : next;
      next = number + 1;
      const std::string path = JoinPath(rank.path, "dump.json");
      if (IsRegularFile(path)) {
        out.push_back({path, number, step.step});
      } else {
        warnings->push_back(Msg("{} holds no dump.json: it is left out", rank.path));
      }
    }
  }
  return out;
}

bool IsFloatTensor(const JsonValue& item) {
  constexpr std::array<std::string_view, 3> kTypes{"torch.Tensor", "mindspore.Tensor", "mindtorch.Tensor"};
  constexpr std::array<std::string_view, 6> kDtypes{"Float16",       "Float32",       "BFloat16",
                                                    "torch.float16", "torch.float32", "torch.bfloat16"};
  const JsonValue *type = item.Find("type"), *dtype = item.Find("dtype");
  const auto is_one = [](const JsonValue* v, const auto& list) {
    return v != nullptr && v->IsString() && std::find(list.begin(), list.end(), v->Text()) != list.end();
  };
  return is_one(type, kTypes) && is_one(dtype, kDtypes);
}

double ValueOf(const JsonValue* v) {
  if (v == nullptr) return kNoTrendValue;
  if (v->IsNumber()) return TrendValue(v->Number());
  if (v->IsBool()) return v->Bool() ? 1 : 0;
  if (!v->IsString()) return kNoTrendValue;
  double value = 0;
  const std::string_view text = v->Text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? TrendValue(value) : kNoTrendValue;
}

// Reads one dump.json.
class PartReader {
 public:
  PartReader(const RankDump& dump, const TrendSettings& settings) : dump_(dump), settings_(settings) {}

  StatusOr<DumpPart> Read() {
    const Status status = ReadAll();
    if (!status.ok() && status.code() != Code::kBadInput) return status;
    if (!status.ok()) part_.failed = status.message();
    return std::move(part_);
  }

 private:
  Status ReadAll() {
    MSP_ASSIGN_OR_RETURN(const DumpFile file, DumpFile::Open(dump_.path));
    NoteGap(DumpSide::kOnly, file, &part_.gaps);
    if (!file.truncated().empty()) part_.warnings.push_back(file.truncated());
    MicroSteps micro;
    if (settings_.micro_steps) MSP_RETURN_IF_ERROR(FindSteps(file, &micro));
    part_.micro_steps = micro.count;
    JsonDoc op;
    for (size_t i = 0; i < file.ops().size(); ++i) {
      MSP_RETURN_IF_ERROR(file.ParseOp(i, &op));
      const MicroPlace place = micro.places.empty() ? MicroPlace() : micro.places[i];
      AddOp(file.ops()[i].name, place, op);
    }
    if (part_.batches.empty() || part_.batches.back() != part_.rows.size()) part_.batches.push_back(part_.rows.size());
    return OkStatus();
  }

  Status FindSteps(const DumpFile& file, MicroSteps* micro) {
    const std::string path = JoinPath(DirName(dump_.path), "construct.json");
    if (!IsRegularFile(path)) {
      part_.warnings.push_back(
          Msg("{} is missing: step {} of rank {} counts as one micro step", path, dump_.step, dump_.rank));
      return OkStatus();
    }
    MSP_ASSIGN_OR_RETURN(const ConstructFile construct, ConstructFile::Open(path));
    if (!construct.truncated.empty()) part_.warnings.push_back(construct.truncated);
    *micro = FindMicroSteps(construct, OpNames(file));
    return OkStatus();
  }

  void AddOp(std::string_view op_name, const MicroPlace& place, const JsonValue& op) {
    std::string name(op_name);
    if (place.call >= 0) {
      const CallNumber call = CallNumberOf(name);
      if (call.number >= 0) name.replace(call.begin, call.end - call.begin, fmt::format(".{}", place.call));
    }
    const JsonValue* recomputed = op.Find("is_recompute");
    target_ = DumpTargetOf(std::move(name), settings_.mapping,
                           recomputed != nullptr && recomputed->IsBool() && recomputed->Bool());
    step_ = place.micro_step;
    switch (target_.metric) {
      case DumpMetric::kForward:
      case DumpMetric::kRecompute:
        AddList(op.Find("input_args"), ".input.");
        AddList(op.Find("output"), ".output.");
        AddNamed(op.Find("parameters"), ".parameters.");
        break;
      case DumpMetric::kBackward:
        AddList(op.Find("input"), ".input.");
        AddList(op.Find("output"), ".output.");
        break;
      case DumpMetric::kParametersGrad: AddNamed(&op, "."); break;
      case DumpMetric::kNone: return;
    }
    const size_t before = part_.batches.empty() ? 0 : part_.batches.back();
    if (part_.rows.size() > before && (part_.rows.size() - before) % kBatch == 0) {
      part_.batches.push_back(part_.rows.size());
    }
  }

  void AddList(const JsonValue* list, const char* kind) {
    if (list == nullptr || !list->IsArray()) return;
    for (size_t i = 0; i < list->size(); ++i) Add((*list)[i], kind, std::to_string(i));
  }

  // A parameter is an object, or a list with one.
  void AddNamed(const JsonValue* named, const char* kind) {
    if (named == nullptr || !named->IsObject()) return;
    for (const auto& member : named->Members()) {
      const JsonValue& v = member.value;
      Add(v.IsArray() && !v.empty() ? v[0] : v, kind, member.name);
    }
  }

  void Add(const JsonValue& item, const char* kind, std::string_view name) {
    if (!item.IsObject() || !IsFloatTensor(item)) return;
    DumpRow row;
    row.name = part_.Id(target_.prefix + kind + std::string(name));
    row.metric = target_.metric;
    row.step = step_;
    row.call = target_.call;
    for (size_t i = 0; i < kFields.size(); ++i) row.values[i] = ValueOf(item.Find(kFields[i]));
    part_.rows.push_back(row);
  }

  const RankDump& dump_;
  const TrendSettings& settings_;
  DumpPart part_;
  DumpTarget target_;
  int32_t step_ = 0;
};

// Takes the parts in the order of steps and ranks.
class TrendWriter {
 public:
  TrendWriter(TrendDb* db, bool micro_steps, TrendReport* report)
      : db_(db), micro_steps_(micro_steps), report_(report) {}

  Status Start() {
    for (const char* metric : kMetrics) {
      MSP_ASSIGN_OR_RETURN(const int64_t id, db_->Metric(metric));
      metric_ids_.push_back(id);
    }
    tagged_.resize(kMetrics.size());
    return OkStatus();
  }

  Status Take(const RankDump& dump, DumpPart part) {
    for (Message& warning : part.warnings) report_->warnings.push_back(std::move(warning));
    report_->gaps.insert(report_->gaps.end(), part.gaps.begin(), part.gaps.end());
    if (!part.failed.empty()) {
      ++report_->left_out;
      report_->warnings.push_back(Msg("step {} of rank {} is left out: {}", dump.step, dump.rank, part.failed));
      return OkStatus();
    }
    if (!started_ || dump.step != step_) NextStep(dump.step);
    report_->max_rank = std::max(report_->max_rank, dump.rank);
    most_ = std::max<int64_t>(most_, part.micro_steps);
    size_t begin = 0;
    for (const size_t end : part.batches) {
      MSP_RETURN_IF_ERROR(TakeBatch(dump.rank, part, begin, end));
      begin = end;
    }
    return OkStatus();
  }

  Status Finish() {
    if (!started_)
      return BadInput(report_->warnings.empty() ? Msg("no dump.json could be read") : report_->warnings.front());
    report_->max_step = micro_steps_ ? first_ + most_ - 1 : step_;
    for (size_t m = 0; m < kMetrics.size(); ++m) {
      for (const auto& [target, name] : tagged_[m])
        MSP_RETURN_IF_ERROR(db_->Tag(metric_ids_[m], target, DumpTags(name)));
    }
    TrendExtent extent{report_->max_rank, report_->min_step, report_->max_step, {}};
    for (const char* metric : kMetrics) extent.metrics.push_back({metric, {kStats.begin(), kStats.end()}});
    report_->rows = db_->rows();
    report_->targets = db_->targets();
    return db_->Commit(extent);
  }

 private:
  // Micro steps are counted through all steps; a step has as many as its rank with the most.
  void NextStep(int step) {
    if (!started_) report_->min_step = micro_steps_ ? 0 : step;
    first_ = micro_steps_ ? (started_ ? first_ + most_ : 0) : step;
    most_ = 0;
    step_ = step;
    started_ = true;
  }

  Status TakeBatch(int64_t rank, const DumpPart& part, size_t begin, size_t end) {
    ids_.resize(end - begin);
    for (size_t m = 0; m < kMetrics.size(); ++m) {
      for (size_t i = begin; i < end; ++i) {
        const DumpRow& row = part.rows[i];
        if (static_cast<size_t>(row.metric) != m) continue;
        MSP_ASSIGN_OR_RETURN(ids_[i - begin], db_->Target(part.names[row.name], 0, row.call));
        tagged_[m].try_emplace(ids_[i - begin], part.names[row.name]);
      }
    }
    for (size_t i = begin; i < end; ++i) {
      const DumpRow& row = part.rows[i];
      MSP_RETURN_IF_ERROR(db_->Row(rank, first_ + row.step, ids_[i - begin],
                                   metric_ids_[static_cast<size_t>(row.metric)], row.values.data()));
    }
    return OkStatus();
  }

  TrendDb* db_;
  bool micro_steps_;
  TrendReport* report_;
  std::vector<int64_t> metric_ids_, ids_;
  std::vector<std::map<int64_t, std::string>> tagged_;  // targets of each metric
  bool started_ = false;
  int step_ = 0;
  int64_t first_ = 0, most_ = 0;
};

}  // namespace

void ReplaceAll(std::string* name, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = name->find(from); at != std::string::npos; at = name->find(from, at + to.size())) {
    name->replace(at, from.size(), to);
  }
}

DumpTarget DumpTargetOf(std::string name, const TrendMapping& mapping, bool recomputed) {
  constexpr std::string_view kGrad = ".parameters_grad";
  for (const auto& [from, to] : mapping) ReplaceAll(&name, from, to);
  DumpTarget target;
  const auto take = [&](std::string_view direction, DumpMetric metric) {
    const std::string inside = std::string(direction) + ".";
    if (!Contains(name, inside) && !EndsWith(name, direction)) return false;
    ReplaceAll(&name, inside, ".");
    ReplaceAll(&name, direction, "");
    target.metric = metric;
    return true;
  };
  if (!take(".forward", recomputed ? DumpMetric::kRecompute : DumpMetric::kForward) &&
      !take(".backward", DumpMetric::kBackward)) {
    const size_t grad = name.rfind(kGrad);
    if (grad == std::string::npos) return target;
    const size_t end = grad + kGrad.size();
    const std::string rest = name.substr(end);
    if (!rest.empty() && (rest[0] != '.' || rest.find('.', 1) != std::string::npos)) return target;
    name.erase(grad, IsDigits(std::string_view(rest).substr(rest.empty() ? 0 : 1)) ? kGrad.size() : std::string::npos);
    target.metric = DumpMetric::kParametersGrad;
  }
  const size_t dot = name.rfind('.');
  const std::string_view last = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
  if (IsDigits(last) && last.size() <= kMaxDigits) {
    target.call = std::stoll(std::string(last));
    name.resize(dot == std::string::npos ? 0 : dot);
  }
  target.prefix = std::move(name);
  return target;
}

StatusOr<TrendReport> WriteDumpTrend(const DumpPath& dump, const TrendSettings& settings) {
  TrendReport report;
  const std::vector<RankDump> ranks = AllRanks(dump, &report.warnings);
  if (ranks.empty()) return BadInput(Msg("{} holds no dump.json: give the directory above step0", dump.path));
  MSP_ASSIGN_OR_RETURN(auto db, TrendDb::Create(settings.output, {kStats.begin(), kStats.end()}));
  TrendWriter writer(db.get(), settings.micro_steps, &report);
  MSP_RETURN_IF_ERROR(writer.Start());
  MSP_RETURN_IF_ERROR(ParallelOrdered<DumpPart>(
      ranks.size(), static_cast<size_t>(ThreadCount()) + 1,
      [&](size_t i) { return PartReader(ranks[i], settings).Read(); },
      [&](size_t i, DumpPart&& part) { return writer.Take(ranks[i], std::move(part)); }));
  MSP_RETURN_IF_ERROR(writer.Finish());
  report.path = db->path();
  return report;
}

}  // namespace msprobe
