#include "monitor/csv_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "monitor/append_file.h"

namespace msprobe {
namespace {

bool NeedsQuotes(std::string_view text) {
  // Not find_first_of(), which searches the set anew for each character.
  bool found = false;
  for (const char c : text) found |= c == ',' || c == '"' || c == '\r' || c == '\n';
  return found;
}

void AppendQuoted(std::string& out, std::string_view text) {
  if (!NeedsQuotes(text)) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void AppendCell(std::string& out, const CsvCell& cell, bool whole, int digits) {
  switch (cell.kind) {
    case CsvCell::Kind::kMissing: out += "nan"; return;
    case CsvCell::Kind::kText: return AppendQuoted(out, cell.text);
    case CsvCell::Kind::kInteger:
      if (whole) return AppendInt(out, cell.integer);
      return AppendPyRepr(out, static_cast<double>(cell.integer));
    case CsvCell::Kind::kReal: return AppendRounded(out, cell.real, digits);
  }
}

double PowerOfTen(int digits) {
  static constexpr std::array<double, 21> kPowers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                                                  1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};
  return kPowers[static_cast<size_t>(std::clamp(digits, 0, 20))];
}

}  // namespace

void AppendRounded(std::string& out, double v, int digits) {
  const double scaled = std::fabs(v) * PowerOfTen(digits);
  // Whole numbers of up to 15 digits: no two decimals of so few are the same double, so that this one is the shortest
  // text of it. Below 1e-4 Python writes an exponent.
  if (digits < 1 || digits > 15 || !(scaled >= 1 && scaled < 9e14 && std::fabs(v) >= 1.001e-4)) {
    return AppendPyRepr(out, RoundDecimals(v, digits));
  }
  auto n = static_cast<uint64_t>(std::nearbyint(scaled));
  const auto places = static_cast<size_t>(digits);
  char text[32];
  char* const end = text + sizeof text;
  char* at = end;
  for (size_t i = 0; i < places || n > 0; ++i, n /= 10) {
    if (i == places) *--at = '.';
    *--at = static_cast<char>('0' + n % 10);
  }
  if (at == end - places) *--at = '.', *--at = '0';
  if (std::signbit(v)) *--at = '-';
  const char* last = end;
  while (last[-1] == '0' && last[-2] != '.') --last;
  out.append(at, static_cast<size_t>(last - at));
}

std::string CsvRowHead(int64_t vpp_stage, std::string_view name) {
  std::string text;
  AppendInt(text, vpp_stage);
  text += ',';
  AppendQuoted(text, name);
  text += ',';
  return text;
}

double RoundDecimals(double v, int digits) {
  if (!std::isfinite(v)) return v;
  const double scale = PowerOfTen(digits);
  const double scaled = v * scale;
  return std::isfinite(scaled) ? std::nearbyint(scaled) / scale : v;
}

CsvTable::CsvTable(std::string directory, std::string prefix, std::vector<std::string> columns, bool micro_steps,
                   int digits, int64_t steps_per_file)
    : directory_(std::move(directory)),
      prefix_(std::move(prefix)),
      columns_(std::move(columns)),
      micro_steps_(micro_steps),
      digits_(digits),
      steps_per_file_(std::max<int64_t>(steps_per_file, 1)) {}

CsvTable::CsvTable(CsvTable&& o) noexcept
    : directory_(std::move(o.directory_)),
      prefix_(std::move(o.prefix_)),
      columns_(std::move(o.columns_)),
      micro_steps_(o.micro_steps_),
      digits_(o.digits_),
      steps_per_file_(o.steps_per_file_),
      path_(std::move(o.path_)),
      pending_(std::move(o.pending_)),
      fd_(std::exchange(o.fd_, -1)) {}

CsvTable::~CsvTable() { Close(); }

void CsvTable::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string CsvTable::FileOf(int64_t step) const {
  const int64_t first = step / steps_per_file_ * steps_per_file_;
  return JoinPath(directory_, fmt::format("{}_{}-{}.csv", prefix_, first, first + steps_per_file_ - 1));
}

Status CsvTable::OpenFor(int64_t step) {
  std::string path = FileOf(step);
  if (fd_ >= 0 && path == path_) return OkStatus();
  Close();
  MSP_ASSIGN_OR_RETURN(fd_, OpenAppend(path));
  path_ = std::move(path);
  struct stat info {};
  if (fstat(fd_, &info) == 0 && info.st_size > 0) return OkStatus();
  // With the rows, in one call of the system: files of one step are many.
  std::string header = micro_steps_ ? "vpp_stage,name,step,micro_step" : "vpp_stage,name,step";
  for (const std::string& column : columns_) header += "," + column;
  pending_.insert(0, header + "\n");
  return OkStatus();
}

void CsvTable::Add(int64_t step, std::span<const CsvRow> rows) {
  std::vector<char> whole(columns_.size(), 1);
  for (const CsvRow& row : rows) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto kind = i < row.cells->size() ? (*row.cells)[i].kind : CsvCell::Kind::kMissing;
      whole[i] &= kind == CsvCell::Kind::kInteger || kind == CsvCell::Kind::kText;
    }
  }
  std::string& text = pending_;
  std::string step_text;
  AppendInt(step_text, step);
  for (const CsvRow& row : rows) {
    text += row.head;
    text += step_text;
    if (micro_steps_) {
      text += ',';
      AppendInt(text, std::max<int64_t>(row.micro_step, 0));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      text += ',';
      AppendCell(text, i < row.cells->size() ? (*row.cells)[i] : CsvCell{}, whole[i] != 0, digits_);
    }
    text += '\n';
  }
}

Status CsvTable::Flush(int64_t step, uint64_t* bytes) {
  if (pending_.empty()) return OkStatus();
  Status status = OpenFor(step);
  if (status.ok()) status = AppendWhole(fd_, path_, pending_);
  if (status.ok() && bytes != nullptr) *bytes += pending_.size();
  pending_.clear();
  return status;
}

}  // namespace msprobe
