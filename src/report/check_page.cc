#include "report/check_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/both_words.h"
#include "report/fill_page.h"
#include "report/report_page.h"
#include "sheet/check_names.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

constexpr size_t kMostRows = 10'000;       // what a browser draws and searches at once
constexpr size_t kMostFunctions = 20'000;  // by direction and dtype; torch and MindSpore have some thousands
constexpr std::array<std::string_view, 5> kVerdicts{"right", "round-off", "unknown", "suspicious", "wrong"};
constexpr size_t kUnknown = 2;
constexpr size_t kMostRanges = 500'000;  // of all histograms; a float64 has 525 of them
constexpr uintmax_t kMostCallBytes = uintmax_t{512} << 20;
constexpr size_t kClasses = 7;  // of the histogram: up to 0.5, 1, 2, 4, 16, 256 ulp, and further

/// Columns of the table that the page reads.
enum Column : size_t {
  kName,
  kDtype,
  kVerdict,
  kError,
  kLimit,
  kKnown,
  kElementError,
  kElementLimit,
  kRule,
  kTerms,
  kCondition,
  kRtol,
  kAtol,
  kRanges,
  kHistogram,
  kColumns
};

struct Result {
  std::vector<std::string> cells;
  size_t verdict = 0;
  double times = 0;  // its error in multiples of what rounding explains
  uint64_t row = 0;
};

bool IsWorse(const Result& a, const Result& b) {
  return std::tuple(b.verdict, b.times, a.row) < std::tuple(a.verdict, a.times, b.row);
}

/// A function in one direction and dtype.
struct Function {
  std::array<uint64_t, kVerdicts.size()> verdicts{};
  double times = 0, ulp = 0, rtol = 0;
  std::map<std::string, std::array<uint64_t, kClasses>> histogram;  // by "2^-4"
};
using FunctionKey = std::tuple<std::string, std::string, std::string>;

double NumberOf(const std::string& cell) {
  double v = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), v);
  return error == std::errc() && end == cell.data() + cell.size() && v >= 0 ? v : 0;
}

double TimesOf(const std::vector<std::string>& cells, Column error, Column limit) {
  const double e = NumberOf(cells[error]), l = NumberOf(cells[limit]);
  return e > 0 && l > 0 ? e / l : 0;
}

/// "Functional.linear.0.forward.output.0" is of "Functional.linear", forward.
FunctionKey FunctionOf(const std::vector<std::string>& cells) {
  const std::string& name = cells[kName];
  for (const std::string_view direction : {"forward", "backward"}) {
    const size_t at = name.find("." + std::string(direction) + ".");
    if (at == std::string::npos) continue;
    const size_t call = name.rfind('.', at - 1);
    return {name.substr(0, call == std::string::npos ? at : call), std::string(direction), cells[kDtype]};
  }
  return {name, "", cells[kDtype]};
}

/// `ranges`: how many there may still be.
void AddHistogram(std::string_view text, Function* function, size_t* ranges) {
  while (!text.empty()) {
    const size_t end = text.find(' ');
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string range(part.substr(0, colon));
    if (!function->histogram.contains(range)) {
      if (*ranges == 0) continue;
      --*ranges;
    }
    std::array<uint64_t, kClasses>& counts = function->histogram[range];
    const char* at = part.data() + colon + 1;
    const char* const last = part.data() + part.size();
    for (size_t i = 0; i < kClasses && at <= last; ++i) {
      uint64_t count = 0;
      const auto [stop, error] = std::from_chars(at, last, count);
      if (error != std::errc()) break;
      counts[i] += count;
      at = stop + 1;
    }
  }
}

class CheckTable {
 public:
  Status Read(const std::string& path) {
    return ReadCsv(path, [&](const std::vector<SheetCell>& cells, bool first) {
      std::vector<std::string> row;
      for (const SheetCell& cell : cells) row.push_back(cell.text);
      row.resize(std::max<size_t>(row.size(), kColumns));
      if (first) {
        if (row[kName] == "API Name" && row[kVerdict] == "Verdict") return OkStatus();
        return BadInput(Msg("{} is no table of acc_check: it has no columns API Name and Verdict", path));
      }
      Add(std::move(row));
      return OkStatus();
    });
  }

  void Write(JsonWriter* json) {
    Bound();
    std::sort(worst_.begin(), worst_.end(), IsWorse);
    json->ObjectMember("verdicts", [&] {
      for (size_t i = 0; i < kVerdicts.size(); ++i) json->Member(kVerdicts[i], verdicts_[i]);
    });
    json->Member("total", rows_);
    json->ArrayMember("functions", functions_, [&](const auto& function) { WriteFunction(json, function); });
    json->ArrayMember("rows", worst_, [&](const Result& result) {
      json->BeginArray();
      for (size_t i = 0; i < kColumns; ++i) json->Value(ToUtf8(result.cells[i]));
      json->EndArray();
    });
  }

  ReportHead Head() const {
    const uint64_t wrong = verdicts_[4], suspicious = verdicts_[3];
    const auto head = [](std::string outcome, const BothWords& words) {
      return ReportHead{"laboratory", std::move(outcome), words.en, words.zh};
    };
    if (wrong > 0) {
      return head("origin", Both("{} of {} results are further from float64 than rounding explains.",
                                 "{1} 个结果中有 {0} 个与 float64 的距离超出舍入所能解释的范围。", wrong, rows_));
    }
    if (suspicious > 0) {
      return head("unknown",
                  Both("{} of {} results are suspicious.", "{1} 个结果中有 {0} 个可疑。", suspicious, rows_));
    }
    if (rows_ == 0) return head("unknown", Both("No result was checked.", "没有检查任何结果。"));
    return head("equal", Both("All {} results are as near to float64 as rounding allows.",
                              "全部 {} 个结果与 float64 的差异均在舍入范围内。", rows_));
  }

 private:
  void Add(std::vector<std::string>&& cells) {
    Result result;
    const auto found = std::find(kVerdicts.begin(), kVerdicts.end(), cells[kVerdict]);
    result.verdict = found == kVerdicts.end() ? kUnknown : static_cast<size_t>(found - kVerdicts.begin());
    result.times = std::max(TimesOf(cells, kError, kLimit), TimesOf(cells, kElementError, kElementLimit));
    result.row = rows_++;
    ++verdicts_[result.verdict];
    FunctionKey key = FunctionOf(cells);
    if (functions_.size() < kMostFunctions || functions_.contains(key)) {
      Function& function = functions_[std::move(key)];
      ++function.verdicts[result.verdict];
      function.times = std::max(function.times, result.times);
      function.ulp = std::max({function.ulp, NumberOf(cells[kError]), NumberOf(cells[kElementError])});
      function.rtol = std::max(function.rtol, NumberOf(cells[kRtol]));
      AddHistogram(cells[kHistogram], &function, &ranges_);
    }
    result.cells = std::move(cells);
    worst_.push_back(std::move(result));
    if (worst_.size() >= 2 * kMostRows) Bound();
  }

  void Bound() {
    if (worst_.size() <= kMostRows) return;
    std::nth_element(worst_.begin(), worst_.begin() + kMostRows, worst_.end(), IsWorse);
    worst_.resize(kMostRows);
  }

  static void WriteFunction(JsonWriter* json, const std::pair<const FunctionKey, Function>& of) {
    const FunctionKey& key = of.first;
    const Function& function = of.second;
    json->Object([&] {
      json->Member("name", ToUtf8(std::get<0>(key)));
      json->Member("direction", std::get<1>(key));
      json->Member("dtype", ToUtf8(std::get<2>(key)));
      json->Member("verdicts", function.verdicts);
      json->Member("times", function.times);
      json->Member("ulp", function.ulp);
      json->Member("rtol", function.rtol);
      json->ArrayMember("histogram", function.histogram, [&](const auto& range) {
        json->BeginArray();
        json->Value(ToUtf8(range.first));
        for (const uint64_t count : range.second) json->Value(count);
        json->EndArray();
      });
    });
  }

  std::vector<Result> worst_;
  std::map<FunctionKey, Function> functions_;
  std::array<uint64_t, kVerdicts.size()> verdicts_{};
  uint64_t rows_ = 0;
  size_t ranges_ = kMostRanges;
};

/// Calls that do not pass by the standards of the earlier tool, or were not made, and why.
struct Calls {
  std::map<std::string, uint64_t> counts;  // "pass", "warning", "error", "SKIP"
  std::vector<std::array<std::string, 4>> rows;
  uint64_t total = 0;

  static int Rank(const std::string& status) {
    return status == "error" ? 3 : status == "warning" ? 2 : status == "SKIP" ? 1 : 0;
  }

  Status Read(const std::string& path) {
    return ReadCsv(path, [&](const std::vector<SheetCell>& cells, bool first) {
      if (first || cells.size() < 3) return OkStatus();
      std::array<std::string, 4> row;
      for (size_t i = 0; i < row.size() && i < cells.size(); ++i) row[i] = ToUtf8(cells[i].text);
      const std::string& worst = Rank(row[1]) >= Rank(row[2]) ? row[1] : row[2];
      const int rank = Rank(worst);
      ++counts[rank == 0 ? "pass" : worst];
      if (rank > 0 && ++total <= kMostRows) rows.push_back(std::move(row));
      return OkStatus();
    });
  }
};

/// A link may lead out of a directory that is served, where the table itself was looked for.
bool IsOwnFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::regular &&
         std::filesystem::file_size(path, error) <= kMostCallBytes && !error;
}

}  // namespace

std::string CheckPageName(std::string_view table) {
  return std::string("accuracy_checking_report_").append(CheckTimeOf(table)).append(".html");
}

StatusOr<std::string> CheckPageData(const std::string& table, const std::vector<std::string>& graphs,
                                    ReportHead* head) {
  CheckTable results;
  MSP_RETURN_IF_ERROR(results.Read(table));
  Calls calls;
  std::vector<std::string> files{std::string(BaseName(table))};
  const std::string beside = std::string(kCheckResultPrefix).append(CheckTimeOf(table)).append(".csv");
  const std::string of_calls = JoinPath(DirName(table), beside);
  if (IsOwnFile(of_calls)) {
    MSP_RETURN_IF_ERROR(calls.Read(of_calls));
    files.push_back(beside);
  }
  JsonWriter json(kJsonPage);
  json.Object([&] {
    json.Member("files", files);
    json.Member("graphs", graphs);
    json.ObjectMember("calls", [&] {
      json.ObjectMember("counts", [&] {
        for (const auto& [status, count] : calls.counts) json.Member(status, count);
      });
      json.Member("total", calls.total);
      json.Member("rows", calls.rows);
    });
    results.Write(&json);
  });
  *head = results.Head();
  return json.Take();
}

StatusOr<std::string> CheckPage(const std::string& table, const std::vector<std::string>& graphs) {
  ReportHead head;
  MSP_ASSIGN_OR_RETURN(const std::string data, CheckPageData(table, graphs, &head));
  return FilledReportPage(head, [&](JsonWriter* json) { json->RawMember("laboratory", data); });
}

StatusOr<bool> WriteCheckPage(const std::string& table, const std::string& path) {
  if (ReportPage().empty()) return false;
  MSP_ASSIGN_OR_RETURN(const std::string html, CheckPage(table));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(html));
  MSP_RETURN_IF_ERROR(file.Commit());
  return true;
}

}  // namespace msprobe
