#include "view/run/csv_series.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "monitor/series_writer.h"
#include "sheet/sheet_reader.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostFiles = 100'000;
constexpr size_t kFlushEvery = 256;  // steps

struct CsvFile {
  std::string path, metric;
  int64_t first = 0;
};

double CsvNumber(std::string_view text) {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      error != std::errc() || end != text.data() + text.size()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

std::optional<int64_t> CsvWhole(std::string_view text) {
  const double value = CsvNumber(text);
  if (!(std::abs(value) < 1e15) || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Rows of one step become one block.
class CsvToSeries {
 public:
  CsvToSeries(SeriesWriter* writer, CutRows* cut) : writer_(writer), cut_(cut) {}

  Status Take(const CsvFile& file) {
    columns_.clear();
    const auto take = [&](const std::vector<SheetCell>& cells, bool first) {
      return first ? Head(file.metric, cells) : Row(cells);
    };
    uint64_t cut = 0;
    const Status status = ReadCutCsv(file.path, take, &cut);
    if (cut_->count == 0 && cut > 0) cut_->file = file.path;
    cut_->count += cut;
    MSP_RETURN_IF_ERROR(EndStep());
    return status.code() == Code::kBadInput ? OkStatus() : status;
  }

 private:
  Status Head(const std::string& metric, const std::vector<SheetCell>& cells) {
    std::vector<std::string> names;
    name_ = vpp_ = step_ = micro_ = kAbsent;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string& text = cells[i].text;
      size_t* key = text == "name" ? &name_ : text == "vpp_stage" ? &vpp_ : text == "step" ? &step_ : nullptr;
      if (text == "micro_step") key = &micro_;
      if (key != nullptr) {
        *key = i;
      } else {
        columns_.push_back(i);
        names.push_back(text);
      }
    }
    if (name_ == kAbsent || step_ == kAbsent || names.empty()) {
      return BadInput(Msg("it has no columns name and step: is it a file of a training monitor?"));
    }
    const auto [known, fresh] =
        tables_.emplace(fmt::format("{}\n{}", metric, fmt::join(names, "\n")), static_cast<uint32_t>(tables_.size()));
    if (fresh) writer_->AddTable(metric, names, micro_ != kAbsent);
    table_ = known->second;
    return OkStatus();
  }

  Status Row(const std::vector<SheetCell>& cells) {
    const auto text = [&](size_t at) {
      return at < cells.size() ? std::string_view(cells[at].text) : std::string_view();
    };
    const auto step = CsvWhole(text(step_));
    if (!step || text(name_).empty()) return OkStatus();
    const int64_t vpp = CsvWhole(text(vpp_)).value_or(0), micro = CsvWhole(text(micro_)).value_or(-1);
    if (step != at_) MSP_RETURN_IF_ERROR(EndStep());
    at_ = step;
    const auto [known, fresh] = series_.emplace(fmt::format("{}\n{}\n{}\n{}", table_, vpp, micro, text(name_)),
                                                static_cast<uint32_t>(series_.size()));
    if (fresh) {
      const SeriesName name{table_, vpp, std::string(text(name_)), micro};
      writer_->AddSeries({&name, 1});
    }
    rows_.push_back(known->second);
    for (const size_t column : columns_) values_.push_back(CsvNumber(text(column)));
    return OkStatus();
  }

  Status EndStep() {
    if (!at_ || rows_.empty()) return OkStatus();
    turned_.resize(values_.size());
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (size_t c = 0; c < columns_.size(); ++c) turned_[c * rows_.size() + r] = values_[r * columns_.size() + c];
    }
    writer_->AddValues(*at_, table_, rows_, turned_);
    rows_.clear();
    values_.clear();
    at_.reset();
    return ++blocks_ % kFlushEvery == 0 ? writer_->Flush() : OkStatus();
  }

  static constexpr size_t kAbsent = SIZE_MAX;
  SeriesWriter* writer_;
  CutRows* cut_;
  size_t name_ = kAbsent, vpp_ = kAbsent, step_ = kAbsent, micro_ = kAbsent, blocks_ = 0;
  uint32_t table_ = 0;
  std::vector<size_t> columns_;
  std::unordered_map<std::string, uint32_t> tables_, series_;
  std::optional<int64_t> at_;
  std::vector<uint32_t> rows_;
  std::vector<double> values_, turned_;
};

std::vector<CsvFile> CsvFilesOf(const std::string& directory, const std::vector<std::string>& names) {
  std::vector<CsvFile> files;
  for (const std::string& name : names) {
    std::string metric = MetricOfCsv(name);
    if (metric.empty() || files.size() >= kMostFiles) continue;
    const int64_t first =
        CsvWhole(std::string_view(name).substr(metric.size() + 1, name.rfind('-') - metric.size() - 1)).value_or(0);
    files.push_back({JoinPath(directory, name), std::move(metric), first});
  }
  std::sort(files.begin(), files.end(), [](const CsvFile& a, const CsvFile& b) {
    return std::tie(a.first, a.metric, a.path) < std::tie(b.first, b.metric, b.path);
  });
  return files;
}

}  // namespace

std::string MetricOfCsv(std::string_view file) {
  constexpr std::string_view kSuffix = ".csv";
  if (!file.ends_with(kSuffix)) return "";
  file.remove_suffix(kSuffix.size());
  const size_t steps = file.rfind('_'), dash = file.rfind('-');
  if (steps == std::string_view::npos || steps == 0 || dash == std::string_view::npos || dash < steps) return "";
  if (!IsDigits(file.substr(steps + 1, dash - steps - 1)) || !IsDigits(file.substr(dash + 1))) return "";
  return std::string(file.substr(0, steps));
}

StatusOr<std::optional<SeriesFile>> SeriesOfCsv(const std::string& directory, CutRows* cut) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  const std::vector<CsvFile> files = CsvFilesOf(directory, names);
  if (files.empty()) return std::optional<SeriesFile>();
  const char* temp = std::getenv("TMPDIR");
  std::string path = JoinPath(temp != nullptr && *temp != '\0' ? temp : "/tmp", "msprobe_series_XXXXXX");
  const int fd = mkstemp(path.data());
  if (fd < 0) return InternalError(Msg("{} cannot be made: set TMPDIR to a directory with space", path));
  close(fd);
  SeriesWriter writer;
  Status status = writer.Open(path);
  CsvToSeries convert(&writer, cut);
  for (size_t i = 0; i < files.size() && status.ok(); ++i) status = convert.Take(files[i]);
  if (status.ok()) status = writer.Flush();
  writer.Close();
  auto made = status.ok() ? SeriesFile::Open(path) : StatusOr<SeriesFile>(status);
  unlink(path.c_str());
  if (!made.ok()) return made.status();
  return std::optional<SeriesFile>(*std::move(made));
}

}  // namespace msprobe::view
