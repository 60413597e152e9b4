#include "jobs/merge_result.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "jobs/merge_input.h"
#include "json/parser.h"
#include "report/divergence_file.h"
#include "sheet/workbook_check.h"
#include "sheet/xlsx_library.h"

namespace msprobe {
namespace {

constexpr uint64_t kRowsPerSheet = 1'048'500;
constexpr size_t kMaxTitle = 31, kMaxCellChars = 32'767;  // limits of the file format
constexpr size_t kMaxRanks = 16'000;                      // columns of a sheet

class MergedBook {
 public:
  MergedBook(const XlsxLibrary& library, const std::string& path)
      : library_(library), temp_(path), directory_(DirName(path)), check_(library, path) {}
  ~MergedBook() {
    if (book_) library_.free(book_);
  }

  Status Open() {
    lxw_workbook_options options{};
    options.constant_memory = 1;
    options.use_zip64 = 1;
    options.tmpdir = directory_.data();
    MSP_ASSIGN_OR_RETURN(const OutputFile probe, OutputFile::Create(temp_.path()));  // can the directory be written?
    book_ = library_.new_workbook(temp_.path().c_str(), &options);
    if (!book_) return InternalError(Msg("cannot start the workbook {}: out of memory?", temp_.final_path()));
    styles_ = library_.AddStyles(book_);
    return OkStatus();
  }

  Status AddSheet(const std::string& title, uint64_t rows, const std::vector<RankResults>& ranks) {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    sheet_ = library_.add_sheet(book_, UniqueTitle(title).c_str());
    if (!sheet_) return InternalError(Msg("cannot add the sheet {} to {}", OneLine(title), temp_.final_path()));
    library_.SetUpSheet(sheet_, rows, ranks.size() + 1);
    row_ = 0;
    MSP_RETURN_IF_ERROR(Write(0, {SheetCell::Kind::kText, "NPU Name"}, styles_.header));
    for (size_t i = 0; i < ranks.size(); ++i) {
      const std::string rank = "rank" + std::to_string(ranks[i].rank);
      MSP_RETURN_IF_ERROR(Write(i + 1, {SheetCell::Kind::kText, rank}, styles_.header));
    }
    row_ = 1;
    return OkStatus();
  }

  Status Write(size_t column, const MergedCell& cell, lxw_format* style = nullptr) {
    const auto at = static_cast<lxw_col_t>(column);
    lxw_error error = LXW_NO_ERROR;
    if (cell.kind == SheetCell::Kind::kEmpty) return OkStatus();
    double value = 0;
    if (cell.kind == SheetCell::Kind::kNumber)
      (void)std::from_chars(cell.text.data(), cell.text.data() + cell.text.size(), value);
    if (cell.kind == SheetCell::Kind::kBool) {
      error = library_.write_bool(sheet_, row_, at, cell.text == "1", style);
    } else if (cell.kind == SheetCell::Kind::kNumber && std::isfinite(value)) {
      error = library_.write_number(sheet_, row_, at, value, style);
    } else {
      // A text, never a formula; the file format has no NaN and no infinity either.
      std::string text = ToUtf8(cell.text);
      size_t cut = std::min(text.size(), kMaxCellChars);
      while (cut > 0 && cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
      text.resize(cut);
      error = library_.write_string(sheet_, row_, at, text.c_str(), style);
    }
    return error == LXW_NO_ERROR ? OkStatus() : Failed(error);
  }
  Status NextRow() {
    ++row_;
    return row_ % 4096 == 0 ? check_.Look(sheet_) : OkStatus();
  }

  StatusOr<std::string> Commit() {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    MSP_RETURN_IF_ERROR(check_.BeforeClose());
    const lxw_error error = library_.close(std::exchange(book_, nullptr));
    if (error != LXW_NO_ERROR) return Failed(error);
    MSP_RETURN_IF_ERROR(check_.AfterClose(temp_.path()));
    if (InterruptRequested()) return Interrupted();
    MSP_RETURN_IF_ERROR(temp_.CommitResult());
    return temp_.final_path();
  }

 private:
  Status Failed(lxw_error error) const {
    return InternalError(
        Msg("cannot write {}: {}; free space or choose another -o", temp_.final_path(), library_.error_text(error)));
  }
  /// Without what the format forbids, and not twice.
  std::string UniqueTitle(const std::string& title) {
    std::string out;
    for (const char c : title) out += std::string_view("[]:*?/\\'").find(c) == std::string_view::npos ? c : '_';
    if (!IsUtf8(out) || out.empty() || out.size() > kMaxTitle) out = ToUtf8(out).substr(0, 20) + "_";
    if (!IsUtf8(out)) out = "metric";
    const std::string stem = out;
    for (int i = 2; !titles_.insert(out).second; ++i) out = stem.substr(0, 20) + "_" + std::to_string(i);
    return out;
  }

  const XlsxLibrary& library_;
  TempPath temp_;
  std::string directory_;
  WorkbookCheck check_;
  XlsxStyles styles_;
  std::set<std::string> titles_;
  lxw_workbook* book_ = nullptr;
  lxw_worksheet* sheet_ = nullptr;
  lxw_row_t row_ = 0;
};

/// All ranks read; their results have the same metrics.
StatusOr<std::vector<RankRows>> ReadRanks(const std::vector<RankResults>& files, const MergeConfig& config) {
  std::vector<std::optional<RankRows>> read(files.size());
  MSP_RETURN_IF_ERROR(ParallelFor(files.size(), [&](size_t i) -> Status {
    MSP_ASSIGN_OR_RETURN(read[i], RankRows::Read(files[i], config));
    return OkStatus();
  }));
  std::vector<RankRows> out;
  for (size_t i = 0; i < read.size(); ++i) {
    if (i > 0 && read[i]->metrics() != out[0].metrics()) {
      return BadInput(Msg("{} and {} have different metrics: merge results of the same kind of dump", files[i].paths[0],
                          files[0].paths[0]));
    }
    out.push_back(std::move(*read[i]));
  }
  return out;
}

/// Which of the results' metrics are merged, in the order of the configuration.
StatusOr<std::vector<size_t>> ChooseMetrics(const std::vector<std::string>& metrics, const MergeConfig& config) {
  std::vector<size_t> out;
  for (const std::string& wanted : config.metrics) {
    const auto it = std::find(metrics.begin(), metrics.end(), wanted);
    if (it == metrics.end()) {
      std::string all;
      for (const std::string& m : metrics) all += (all.empty() ? "" : ", ") + OneLine(m);
      return BadInput(Msg("compare_index: these results have no '{}', only {}", OneLine(wanted), all));
    }
    const size_t at = static_cast<size_t>(it - metrics.begin());
    if (std::find(out.begin(), out.end(), at) == out.end()) out.push_back(at);
  }
  for (size_t i = 0; config.metrics.empty() && i < metrics.size(); ++i) out.push_back(i);
  return out;
}

/// Names of all ranks, sorted.
BigArray<std::string_view> AllNames(const std::vector<RankRows>& ranks) {
  BigArray<std::string_view> out;
  for (const RankRows& rank : ranks) {
    for (size_t i = 0; i < rank.names().size(); ++i) out.push_back(rank.names()[i]);
  }
  std::sort(out.begin(), out.end());
  out.resize(static_cast<size_t>(std::unique(out.begin(), out.end()) - out.begin()));
  return out;
}

Status WriteMetric(size_t metric, const std::string& title, const std::vector<RankResults>& files,
                   const std::vector<RankRows>& ranks, const BigArray<std::string_view>& names, MergedBook* book) {
  const uint64_t sheets = std::max<uint64_t>(1, (names.size() + kRowsPerSheet - 1) / kRowsPerSheet);
  const uint64_t slice = (names.size() + sheets - 1) / sheets;
  for (uint64_t sheet = 0; sheet < sheets; ++sheet) {
    const uint64_t end = std::min<uint64_t>(names.size(), (sheet + 1) * slice);
    MSP_RETURN_IF_ERROR(
        book->AddSheet(sheets == 1 ? title : title + "_part_" + std::to_string(sheet), end - sheet * slice, files));
    for (uint64_t i = sheet * slice; i < end; ++i) {
      if (i % 4096 == 0 && InterruptRequested()) return Interrupted();
      MSP_RETURN_IF_ERROR(book->Write(0, {SheetCell::Kind::kText, names[i]}));
      for (size_t r = 0; r < ranks.size(); ++r) {
        const int64_t row = ranks[r].Find(names[i]);
        if (row >= 0) MSP_RETURN_IF_ERROR(book->Write(r + 1, ranks[r].Row(row)[metric]));
      }
      MSP_RETURN_IF_ERROR(book->NextRow());
    }
  }
  return OkStatus();
}

void NoteMissing(const MergeConfig& config, const std::vector<RankResults>& files, const std::vector<RankRows>& ranks,
                 std::vector<Message>* warnings) {
  for (size_t api = 0; api < config.apis.size(); ++api) {
    std::string missing;
    size_t count = 0;
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r].ApiSeen(api)) continue;
      if (++count <= 8) missing += (missing.empty() ? "rank" : ", rank") + std::to_string(files[r].rank);
    }
    if (count == 0) continue;
    if (count > 8) missing += ", ...";
    warnings->push_back(count == ranks.size()
                            ? Msg("{} is not in the results of any rank", OneLine(config.apis[api]))
                            : Msg("{} is not in the results of {}", OneLine(config.apis[api]), missing));
  }
}

/// What the comparison said of its dumps; nothing where it left no such file (--plain).
Status NoteWholeness(const std::string& directory, MergeReport* report) {
  const std::string path = JoinPath(directory, kDivergenceFile);
  if (!IsRegularFile(path)) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  report->gaps = ReadGaps(doc["not_whole"]);
  if (const JsonValue& unread = doc["rows_without_tensor"]; unread.IsUInt()) report->unread = unread.UInt();
  return OkStatus();
}

}  // namespace

StatusOr<MergeReport> MergeResults(const MergeSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const MergeConfig config, ReadMergeConfig(settings.config));
  MergeReport report;
  MSP_ASSIGN_OR_RETURN(const std::vector<RankResults> files, FindRankFiles(settings.input, &report.warnings));
  if (files.size() < 2) {
    return BadInput(
        Msg("{} holds results of {} rank(s), merging needs two or more: files are named "
            "compare_result_rank0_20260101120000.csv or .xlsx",
            settings.input, files.size()));
  }
  MSP_RETURN_IF_ERROR(NoteWholeness(settings.input, &report));
  if (files.size() > kMaxRanks) return BadInput(Msg("{} holds more ranks than a sheet has columns", settings.input));
  MSP_ASSIGN_OR_RETURN(const XlsxLibrary* library, XlsxLibrary::Get());
  SetSpillDirectory(settings.input);  // rows of many ranks may not fit memory
  MSP_ASSIGN_OR_RETURN(const std::vector<RankRows> ranks, ReadRanks(files, config));
  MSP_ASSIGN_OR_RETURN(const std::vector<size_t> metrics, ChooseMetrics(ranks[0].metrics(), config));
  NoteMissing(config, files, ranks, &report.warnings);
  const BigArray<std::string_view> names = AllNames(ranks);
  if (names.empty()) return BadInput(Msg("no result has rows of the APIs that {} names", settings.config));
  MSP_RETURN_IF_ERROR(MakeOutputDir(settings.output));
  MergedBook book(*library, JoinPath(settings.output, "multi_ranks_compare_merge_" + TimestampNow() + ".xlsx"));
  MSP_RETURN_IF_ERROR(book.Open());
  for (const size_t metric : metrics) {
    report.metrics.push_back(ranks[0].metrics()[metric]);
    MSP_RETURN_IF_ERROR(WriteMetric(metric, report.metrics.back(), files, ranks, names, &book));
  }
  MSP_ASSIGN_OR_RETURN(report.path, book.Commit());
  for (const RankResults& rank : files) report.ranks.push_back(rank.rank);
  report.rows = names.size();
  return report;
}

}  // namespace msprobe
