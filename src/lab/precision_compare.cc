#include "lab/precision_compare.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "lab/csv_lines.h"
#include "lab/standards/api_name.h"
#include "lab/standards/ratios.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

// What mindstudio-probe says of an unstable sort.
constexpr char kTopk[] =
    "在npu上，topk的入参sorted=False时不生效，会返回有序tensor，而cpu上会返回无序tensor。 "
    "如果topk精度不达标，请检查是否是该原因导致的。";
constexpr char kNoStandard[] = "This data type does not support benchmark compare.";

/// The columns of a details file, in any order.
class DetailsReader {
 public:
  explicit DetailsReader(std::string path) : path_(std::move(path)) {}

  StatusOr<std::vector<DetailsRow>> Read() {
    const auto take = [this](const std::vector<SheetCell>& cells, bool first) {
      if (first) return ReadHeader(cells);
      DetailsRow& row = rows_.emplace_back();
      for (size_t i = 0; i < kDetailsColumns; ++i) {
        if (places_[i] < cells.size()) row.cells[i] = cells[places_[i]].text;
      }
      return OkStatus();
    };
    MSP_RETURN_IF_ERROR(ReadCsv(path_, take));
    if (!header_) return BadInput(Msg("{} is empty: give an accuracy_checking_details_*.csv of acc_check", path_));
    return std::move(rows_);
  }

 private:
  Status ReadHeader(const std::vector<SheetCell>& cells) {
    header_ = true;
    std::string missing;
    for (size_t i = 0; i < kDetailsColumns; ++i) {
      const std::string_view name = DetailsColumnName(static_cast<DetailsColumn>(i));
      const auto at = std::find_if(cells.begin(), cells.end(), [&](const SheetCell& c) { return c.text == name; });
      places_[i] = static_cast<size_t>(at - cells.begin());
      if (at == cells.end()) missing.append(missing.empty() ? "" : ", ").append(name);
    }
    if (missing.empty()) return OkStatus();
    return BadInput(
        Msg("{} lacks the columns {}: give an accuracy_checking_details_*.csv of acc_check", path_, missing));
  }

  std::string path_;
  bool header_ = false;
  std::array<size_t, kDetailsColumns> places_{};
  std::vector<DetailsRow> rows_;
};

/// What the rows of one function come to.
struct FunctionRows {
  std::string full, dtype, skip_message;
  std::optional<LabStatus> forward, backward;  // kSkip while all are
};

void Merge(LabStatus s, std::optional<LabStatus>* into) {
  if (!*into) {
    *into = s;
  } else if (**into != LabStatus::kSkip || s != LabStatus::kSkip) {
    *into = WorseOf(**into, s);
  }
}

class PrecisionTables {
 public:
  PrecisionTables(const PrecisionCompareSettings& settings, PrecisionCompareReport* report)
      : settings_(settings), report_(report) {
    result_ = details_ = kByteOrderMark;
    AppendCsvLine(ApiResultColumns(), &result_);
    AppendCsvLine(RatioColumns(), &details_);
  }

  Status Take(const DetailsRow& npu, const std::unordered_map<std::string_view, const DetailsRow*>& gpu) {
    const std::string& name = npu[DetailsColumn::kName];
    const OutputName parts = ParseOutputName(name);
    if (!parts.valid()) {
      RatioRow row;
      row.cells.assign(RatioColumns().size(), " ");
      row.failed = "The API name " + OneLine(name) + " is invalid.";
      row.cells[0] = name;
      row.cells[row.cells.size() - 3] = LabStatusText(LabStatus::kSkip);
      row.cells.back() = row.failed;
      TakeFailed(name, row);
      return OkStatus();
    }
    const auto found = gpu.find(name);
    if (found == gpu.end()) {
      ++missing_;
      return OkStatus();
    }
    if (!found->second)
      return BadInput(Msg("{} has several rows {}: remove all but one", settings_.gpu, OneLine(name)));
    const RatioRow row = CompareRatios(npu, *found->second, parts.api, settings_.release);
    if (!row.failed.empty()) {
      TakeFailed(name, row);
      return OkStatus();
    }
    AppendCsvLine(row.cells, &details_);
    if (parts.full != function_.full) {
      Finish();
      function_ = {};
      function_.full = parts.full;
    }
    function_.dtype = npu[DetailsColumn::kDtype];
    if (IsOutsideStandards(function_.dtype)) return OkStatus();
    if (parts.direction == "backward") {
      Merge(row.status, &function_.backward);
    } else {
      Merge(row.status, &function_.forward);
      function_.skip_message = row.status == LabStatus::kSkip ? npu[DetailsColumn::kMessage] : std::string();
    }
    return OkStatus();
  }

  void Finish() {
    if (function_.full.empty()) return;
    if (IsOutsideStandards(function_.dtype)) {
      AddResult(function_.full, LabStatus::kSkip, LabStatus::kSkip, kNoStandard);
      return;
    }
    const LabStatus forward = function_.forward.value_or(LabStatus::kNone);
    std::string message;
    if (forward == LabStatus::kError && ApiOfFullName(function_.full) == "topk") message = kTopk;
    if (forward == LabStatus::kSkip) message += function_.skip_message;
    AddResult(function_.full, forward, function_.backward.value_or(LabStatus::kNone), message);
  }

  Status Write() {
    MSP_RETURN_IF_ERROR(MakeOutputDir(settings_.output));
    const std::string time = TimestampNow();
    MSP_RETURN_IF_ERROR(WriteFile("api_precision_compare_details_" + time + ".csv", details_, &report_->details));
    MSP_RETURN_IF_ERROR(WriteFile("api_precision_compare_result_" + time + ".csv", result_, &report_->result));
    if (missing_ == 0) return OkStatus();
    report_->warnings.push_back(
        Msg("{} rows of {} have no partner in {}: they are left out", missing_, settings_.npu, settings_.gpu));
    return OkStatus();
  }

 private:
  void TakeFailed(const std::string& name, const RatioRow& row) {
    AppendCsvLine(row.cells, &details_);
    AddResult(name, LabStatus::kSkip, LabStatus::kSkip, row.failed);
  }

  void AddResult(const std::string& name, LabStatus forward, LabStatus backward, const std::string& message) {
    const std::string cells[] = {name, std::string(LabStatusText(forward)), std::string(LabStatusText(backward)),
                                 message};
    AppendCsvLine(cells, &result_);
    const LabStatus worst = WorseOf(forward, backward);
    if (worst == LabStatus::kError) {
      ++report_->failed;
    } else if (worst == LabStatus::kWarning) {
      ++report_->warned;
    } else if (forward == LabStatus::kSkip) {
      ++report_->skipped;
    } else {
      ++report_->passed;
    }
  }

  Status WriteFile(const std::string& name, const std::string& text, std::string* path) {
    MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(JoinPath(settings_.output, name)));
    MSP_RETURN_IF_ERROR(file.Write(text));
    MSP_RETURN_IF_ERROR(file.CommitResult());
    *path = file.path();
    return OkStatus();
  }

  const PrecisionCompareSettings& settings_;
  PrecisionCompareReport* report_;
  std::string result_, details_;
  FunctionRows function_;
  uint64_t missing_ = 0;
};

}  // namespace

StatusOr<PrecisionCompareReport> ComparePrecision(const PrecisionCompareSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const std::vector<DetailsRow> npu, DetailsReader(settings.npu).Read());
  MSP_ASSIGN_OR_RETURN(const std::vector<DetailsRow> gpu, DetailsReader(settings.gpu).Read());
  std::unordered_map<std::string_view, const DetailsRow*> by_name;
  for (const DetailsRow& row : gpu) {
    const auto [at, added] = by_name.try_emplace(row[DetailsColumn::kName], &row);
    if (!added) at->second = nullptr;
  }
  PrecisionCompareReport report;
  PrecisionTables tables(settings, &report);
  for (const DetailsRow& row : npu) MSP_RETURN_IF_ERROR(tables.Take(row, by_name));
  tables.Finish();
  if (report.passed + report.failed + report.warned + report.skipped == 0)
    return BadInput(
        Msg("{} and {} have no row in common: give the two files of the same dump", settings.npu, settings.gpu));
  MSP_RETURN_IF_ERROR(tables.Write());
  return report;
}

}  // namespace msprobe
