#include "lab/check_tables.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "lab/csv_lines.h"
#include "lab/standards/api_name.h"
#include "lab/standards/ratios.h"
#include "sheet/check_names.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

constexpr size_t kTimeDigits = 14;
constexpr double kCorrectlyRounded = 0.5;  // ulp
constexpr double kSuspiciousLimits = 4;    // further away than this many times what rounding explains is wrong

/// mindstudio-probe spells the first one in two ways.
const std::vector<std::string>& ResultColumns(const std::vector<std::string>& details) {
  static const std::vector<std::string> pytorch = {"API name", "Forward Test Success", "Backward Test Success",
                                                   "Message"};
  static const std::vector<std::string> mindspore = {"API Name", "Forward Test Success", "Backward Test Success",
                                                     "Message"};
  return &details == &MindSporeCheckColumns() ? mindspore : pytorch;
}

std::string HeaderOf(const std::vector<std::string>& columns) {
  std::string out = kByteOrderMark;
  AppendCsvLine(columns, &out);
  return out;
}

Status WriteWhole(const std::string& path, const std::string& text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

/// A line that was cut off has fewer cells than the header, or an end without a line break.
StatusOr<std::string> KeptRows(const std::string& path, const std::vector<std::string>& columns,
                               const std::function<bool(const std::vector<std::string>&)>& keep) {
  std::string out = HeaderOf(columns);
  const auto take = [&](const std::vector<SheetCell>& cells, bool first) {
    std::vector<std::string> row;
    for (const SheetCell& cell : cells) row.push_back(cell.text);
    if (first) {
      if (!row.empty() && row.front() == columns.front()) return OkStatus();
      return BadInput(Msg("{} is no table of acc_check: its first column is not {}", path, columns.front()));
    }
    row.resize(std::max(row.size(), columns.size()));
    if (keep(row)) AppendCsvLine(row, &out);
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ReadCsv(path, take));
  return out;
}

/// A killed check leaves half a line at the end of a file.
Status DropHalfLine(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text = file.text();
  if (EndsWith(text, "\n")) return OkStatus();
  // Cells may hold line breaks, lines end in CR LF.
  const size_t end = text.rfind("\r\n");
  if (end == std::string_view::npos) return BadInput(Msg("{} is no table of acc_check: it has no whole line", path));
  return WriteWhole(path, std::string(text.substr(0, end + 2)));
}

}  // namespace

CheckTables::~CheckTables() {
  for (const int fd : {result_fd_, details_fd_, float64_fd_}) {
    if (fd >= 0) close(fd);
  }
}

std::string_view Float64VerdictText(Float64Verdict v) {
  switch (v) {
    case Float64Verdict::kRight: return "right";
    case Float64Verdict::kRoundOff: return "round-off";
    case Float64Verdict::kSuspicious: return "suspicious";
    case Float64Verdict::kWrong: break;
  }
  return "wrong";
}

const std::vector<std::string>& MindSporeCheckColumns() {
  static const std::vector<std::string> columns = {"API Name",  "Bench Dtype",    "Tested Dtype", "Shape",  "Cosine",
                                                   "MaxAbsErr", "MaxRelativeErr", "Status",       "Message"};
  return columns;
}

const std::vector<std::string>& Float64Columns() {
  static const std::vector<std::string> columns = {"API Name",
                                                   "Dtype",
                                                   "Verdict",
                                                   "Error (ulp)",
                                                   "Round-off (ulp)",
                                                   "Known",
                                                   "Element Error (ulp)",
                                                   "Element Round-off (ulp)",
                                                   "Rule",
                                                   "Terms",
                                                   "Condition",
                                                   "Required rtol",
                                                   "Required atol",
                                                   "Classes",
                                                   "Ulp Histogram"};
  return columns;
}

Float64Verdict VerdictOf(double error, double limit, double coarse) {
  if (error <= kCorrectlyRounded) return Float64Verdict::kRight;
  if (error <= limit) return Float64Verdict::kRoundOff;
  return error <= std::max(kSuspiciousLimits * limit, coarse) ? Float64Verdict::kSuspicious : Float64Verdict::kWrong;
}

void CheckTables::SetPaths(const std::string& folder) {
  result_ = JoinPath(folder, std::string(kCheckResultPrefix) + time_ + ".csv");
  details_ = JoinPath(folder, std::string(kCheckDetailsPrefix) + time_ + ".csv");
  float64_ = JoinPath(folder, std::string(kCheckFloat64Prefix) + time_ + ".csv");
}

Status CheckTables::Create(const std::string& folder) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(folder));
  time_ = TimestampNow();
  SetPaths(folder);
  if (PathExists(result_) || PathExists(details_))
    return BadInput(Msg("{} is there already: wait a second, or choose a different -o", result_));
  MSP_RETURN_IF_ERROR(WriteWhole(float64_, HeaderOf(Float64Columns())));
  MSP_RETURN_IF_ERROR(WriteWhole(details_, HeaderOf(columns_)));
  MSP_RETURN_IF_ERROR(WriteWhole(result_, HeaderOf(ResultColumns(columns_))));
  return OpenToAppend();
}

Status CheckTables::Continue(const std::string& result, std::set<std::string, std::less<>>* done) {
  const std::string_view name = BaseName(result);
  const std::string_view prefix = kCheckResultPrefix;
  const bool named = StartsWith(name, prefix) && EndsWith(name, ".csv") &&
                     name.size() == prefix.size() + kTimeDigits + 4 &&
                     IsDigits(name.substr(prefix.size(), kTimeDigits));
  if (!named)
    return UsageError(
        Msg("-csv_path takes an accuracy_checking_result_{{time}}.csv under its own name, not {}", OneLine(result)));
  time_ = name.substr(prefix.size(), kTimeDigits);
  SetPaths(std::string(DirName(result)));
  result_ = result;
  if (!PathExists(float64_)) MSP_RETURN_IF_ERROR(WriteWhole(float64_, HeaderOf(Float64Columns())));
  for (const std::string& path : {result_, details_, float64_}) MSP_RETURN_IF_ERROR(DropHalfLine(path));
  const auto keep_result = [&](const std::vector<std::string>& row) { return done->insert(row.front()).second; };
  MSP_ASSIGN_OR_RETURN(const std::string results, KeptRows(result_, ResultColumns(columns_), keep_result));
  const auto keep_details = [&](const std::vector<std::string>& row) {
    return done->contains(ParseOutputName(row.front()).full);
  };
  MSP_ASSIGN_OR_RETURN(const std::string details, KeptRows(details_, columns_, keep_details));
  MSP_ASSIGN_OR_RETURN(const std::string float64, KeptRows(float64_, Float64Columns(), keep_details));
  MSP_RETURN_IF_ERROR(WriteWhole(float64_, float64));
  MSP_RETURN_IF_ERROR(WriteWhole(details_, details));
  MSP_RETURN_IF_ERROR(WriteWhole(result_, results));
  return OpenToAppend();
}

Status CheckTables::OpenToAppend() {
  for (const auto& [path, fd] :
       {std::pair{&result_, &result_fd_}, std::pair{&details_, &details_fd_}, std::pair{&float64_, &float64_fd_}}) {
    *fd = open(path->c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (*fd < 0) return BadInput(Msg("cannot write {}: {}", *path, KnownText(std::strerror(errno))));
  }
  return OkStatus();
}

Status CheckTables::Append(int fd, const std::string& path, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return InternalError(Msg("cannot write {}: {}", path, KnownText(std::strerror(errno))));
    at += static_cast<size_t>(wrote);
  }
  return OkStatus();
}

Status CheckTables::Add(const CheckedCall& call) {
  std::string rows, line, float64;
  for (const std::vector<std::string>& row : call.float64) AppendCsvLine(row, &float64);
  for (const std::vector<std::string>& row : call.rows) AppendCsvLine(row, &rows);
  const std::string cells[] = {call.full, std::string(LabStatusText(call.forward)),
                               std::string(LabStatusText(call.backward)), call.message};
  AppendCsvLine(cells, &line);
  MSP_RETURN_IF_ERROR(Append(float64_fd_, float64_, float64));
  MSP_RETURN_IF_ERROR(Append(details_fd_, details_, rows));
  return Append(result_fd_, result_, line);
}

}  // namespace msprobe
