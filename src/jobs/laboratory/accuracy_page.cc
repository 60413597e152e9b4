#include "jobs/laboratory/accuracy_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "lab/check_tables.h"
#include "lab/standards/api_name.h"
#include "report/fill_page.h"
#include "report/report_page.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

constexpr size_t kMostRows = 5'000;  // what a browser draws and searches at once
constexpr size_t kMostFunctions = 2'000;
// Of the columns of the table.
constexpr size_t kName = 0, kDtype = 1, kVerdict = 2, kElementError = 6, kHistogram = 14;
constexpr std::array<std::string_view, 5> kVerdicts = {"wrong", "suspicious", "round-off", "right", "unknown"};

/// What is no number (an empty cell, "unknown") counts as 0.
double NumberOf(const std::string& text) {
  double out = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), out);  // "inf" is one
  return out;
}

/// The larger of the two errors of a row, in multiples of what rounding explains.
double TimesOf(const std::vector<std::string>& row) {
  double out = 0;
  for (const size_t at : {size_t{3}, kElementError}) {
    const double error = NumberOf(row[at]), limit = NumberOf(row[at + 1]);
    if (error > 0) out = std::max(out, limit > 0 ? error / limit : std::numeric_limits<double>::infinity());
  }
  return std::isnan(out) ? std::numeric_limits<double>::infinity() : out;
}

struct Badness {
  size_t rank = kVerdicts.size() - 1;  // of kVerdicts
  double times = 0;

  bool operator<(const Badness& b) const { return rank != b.rank ? rank < b.rank : times > b.times; }
};

struct ResultRow {
  Badness badness;
  std::vector<std::string> cells;

  bool operator<(const ResultRow& b) const { return badness < b.badness; }
};

/// The results of one function in one dtype and direction.
struct FunctionResults {
  Badness worst;
  uint64_t results = 0, off = 0;
  std::map<std::string, std::array<uint64_t, 7>> histogram;  // by magnitude, as the table spells it
};

/// "2^-4:1/0/0/0/0/0/0 2^0:..", added to what is there.
void AddHistogram(std::string_view text, FunctionResults* out) {
  for (const std::string_view part : Split(text, ' ')) {
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) continue;
    auto& counts = out->histogram[std::string(part.substr(0, colon))];
    size_t at = 0;
    for (const std::string_view count : Split(part.substr(colon + 1), '/')) {
      if (at == counts.size()) break;
      uint64_t more = 0;
      (void)std::from_chars(count.data(), count.data() + count.size(), more);
      counts[at++] += more;
    }
  }
}

class AccuracyResults {
 public:
  Status Read(const std::string& table) {
    return ReadCsv(table, [this](const std::vector<SheetCell>& cells, bool first) {
      if (!first) Add(cells);
      return OkStatus();
    });
  }

  void Write(JsonWriter* json) {
    std::sort(rows_.begin(), rows_.end());
    json->ObjectMember("results", [&] {
      for (size_t i = 0; i < kVerdicts.size(); ++i) json->Member(kVerdicts[i], counts_[i]);
    });
    WriteFunctions(json);
    json->Member("columns", Float64Columns());
    json->Member("total", total_);
    json->ArrayMember("rows", rows_, [&](const ResultRow& row) {
      json->BeginArray();
      json->Value(row.badness.times);
      json->Value(FunctionOf(row.cells));
      for (const std::string& cell : row.cells) json->Value(ToUtf8(cell));
      json->EndArray();
    });
  }

 private:
  static std::string FunctionOf(const std::vector<std::string>& row) {
    const OutputName name = ParseOutputName(row[kName]);
    if (!name.valid()) return ToUtf8(row[kName]);
    return ToUtf8(name.api + " " + std::string(name.direction));
  }

  void Add(const std::vector<SheetCell>& cells) {
    ResultRow row;
    for (const SheetCell& cell : cells) row.cells.push_back(cell.text);
    row.cells.resize(Float64Columns().size());
    const auto* at = std::find(kVerdicts.begin(), kVerdicts.end(), row.cells[kVerdict]);
    if (at == kVerdicts.end()) return;
    row.badness = {static_cast<size_t>(at - kVerdicts.begin()), TimesOf(row.cells)};
    ++counts_[row.badness.rank], ++total_;
    FunctionResults& function = functions_[{FunctionOf(row.cells), row.cells[kDtype]}];
    if (function.results++ == 0 || row.badness < function.worst) function.worst = row.badness;
    function.off += row.badness.rank < 2;
    AddHistogram(row.cells[kHistogram], &function);
    rows_.push_back(std::move(row));
    if (rows_.size() < 2 * kMostRows) return;
    std::nth_element(rows_.begin(), rows_.begin() + kMostRows, rows_.end());
    rows_.resize(kMostRows);
  }

  void WriteFunctions(JsonWriter* json) {
    using Entry = std::pair<const std::pair<std::string, std::string>, FunctionResults>;
    std::vector<const Entry*> sorted;
    for (const Entry& entry : functions_) sorted.push_back(&entry);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Entry* a, const Entry* b) { return a->second.worst < b->second.worst; });
    sorted.resize(std::min(sorted.size(), kMostFunctions));
    json->ArrayMember("functions", sorted, [&](const Entry* entry) {
      const FunctionResults& function = entry->second;
      json->Object([&] {
        json->Member("name", entry->first.first);
        json->Member("dtype", ToUtf8(entry->first.second));
        json->Member("verdict", kVerdicts[function.worst.rank]);
        json->Member("times", function.worst.times);
        json->Member("results", function.results);
        json->Member("off", function.off);
        json->ObjectMember("histogram", [&] {
          for (const auto& [magnitude, counts] : function.histogram) {
            json->Key(ToUtf8(magnitude));
            json->Array(counts, [&](uint64_t count) { json->Value(count); });
          }
        });
      });
    });
  }

  std::vector<ResultRow> rows_;
  std::map<std::pair<std::string, std::string>, FunctionResults> functions_;
  std::array<uint64_t, kVerdicts.size()> counts_{};
  uint64_t total_ = 0;
};

}  // namespace

StatusOr<std::string> WriteAccuracyPage(const std::string& dump, const AccCheckReport& report) {
  if (ReportPage().empty()) return std::string();
  AccuracyResults results;
  MSP_RETURN_IF_ERROR(results.Read(report.float64));
  MSP_ASSIGN_OR_RETURN(
      const std::string html, FilledReportPage([&](JsonWriter* json) {
        json->ObjectMember("accuracy", [&] {
          json->Member("dump", ToUtf8(dump));
          json->Member("device", report.device);
          json->Member("files", std::vector<std::string>{std::string(BaseName(report.result)),
                                                         std::string(BaseName(report.details)),
                                                         std::string(BaseName(report.float64))});
          json->Member("passed", report.passed);
          json->Member("warned", report.warned);
          json->Member("failed", report.failed);
          json->Member("skipped", report.skipped);
          json->Member("resumed", report.resumed);
          results.Write(json);
        });
      }));
  const std::string path = report.float64.substr(0, report.float64.rfind(".csv")) + ".html";
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(html));
  MSP_RETURN_IF_ERROR(file.Commit());
  return path;
}

}  // namespace msprobe
