#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "report/columns.h"
#include "report/highlight.h"
#include "report/table.h"
#include "report/workbook_check.h"
#include "report/xlsx_library.h"

namespace msprobe {
namespace {

constexpr size_t kMaxCellChars = 32767;  // a limit of the file format

void PutText(std::string* out, std::string_view s) {
  const uint32_t size = static_cast<uint32_t>(s.size());
  *out += 't';
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  *out += s;
}

/// Rows on their way to the sheet: a tag, then the cell. 't' length text | 'n' double | 'b' byte | 's' id of a stack.
/// In front of a coloured cell: 'c' and 'r' or 'y', of a coloured row 'R' and the same.
class CellFormat : public RowFormat {
 public:
  explicit CellFormat(const TableSpec& spec)
      : mode_(spec.mode),
        with_stack_(spec.stacks != nullptr),
        highlight_(spec.highlight),
        ruler_(spec.ruler),
        older_(spec.older),
        replays_(spec.replays, spec.target_dump) {}

  void AppendOp(const OpDiff& op, int stack, RowBlock* block) const override {
    std::vector<Highlight> highlights;
    if (highlight_) highlights = HighlightOp(op, mode_);
    for (size_t i = 0; i < op.rows_used; ++i) {
      AppendRow(op, i, i == StackRow(op) ? stack : -1, highlight_ ? highlights[i] : Highlight(), &block->bytes);
      block->row_ends.push_back(block->bytes.size());
    }
  }

 private:
  static void Raw(std::string* out, const void* data, size_t size) {
    out->append(static_cast<const char*>(data), size);
  }
  static void PutStat(std::string* out, const StatValue& v) {
    if (v.kind == StatValue::Kind::kBool) {
      *out += 'b';
      *out += static_cast<char>(v.flag);
    } else if (v.IsNumber() && std::isfinite(v.AsDouble())) {
      const double d = v.AsDouble();
      *out += 'n';
      Raw(out, &d, sizeof d);
    } else {
      std::string text;
      v.AppendText(&text);
      PutText(out, text);
    }
  }

  void AppendRow(const OpDiff& op, size_t i, int stack, const Highlight& highlight, std::string* out) const {
    const ItemView& a = op.target[i];
    const DiffRow& row = op.rows[i];
    const ItemView* b = row.golden == kNoItem ? nullptr : &op.golden[static_cast<size_t>(row.golden)];
    if (highlight.color != Highlight::Color::kNone) *out += highlight.color == Highlight::Color::kRed ? "Rr" : "Ry";
    const auto pair = [&](std::string_view x, std::string_view y) {
      PutText(out, x);
      PutText(out, b ? y : kNotAvailableCell);
    };
    pair(a.name, b ? b->name : std::string_view());
    pair(a.dtype, b ? b->dtype : std::string_view());
    pair(a.shape, b ? b->shape : std::string_view());
    pair(a.GradText(), b ? b->GradText() : std::string_view());
    if (mode_ == CompareMode::kChecksum) {
      pair(a.checksum, b ? b->checksum : std::string_view());
    } else {
      mode_ == CompareMode::kTensor ? AppendMetrics(op.tensors[i], out) : AppendDiffs(row, older_ ? b : nullptr, out);
      AppendStats(a, b, out);
    }
    *out += 'b';
    *out += static_cast<char>(row.grad_consistent);
    if (older_ && mode_ == CompareMode::kStatistics) {
      AppendOlder(OlderStatistics(op, i), highlight, out);
    } else {
      if (row.verdict != Verdict::kPass) *out += row.verdict == Verdict::kError ? "cr" : "cy";
      PutText(out, older_ ? OlderVerdict(op, i, mode_) : VerdictText(row.verdict));
      const std::string_view text = op.tensors.empty() ? std::string_view() : op.tensors[i].finding;
      if (!older_ || mode_ != CompareMode::kChecksum) {
        PutText(out, WithReasons(FindingsJson(row.findings, text), highlight));
      }
    }
    if (with_stack_) AppendStack(stack, out);
    if (mode_ == CompareMode::kTensor) PutText(out, DataNameCell(a.data_name, b ? b->data_name : kNotAvailableCell));
    if (ruler_) {
      const RulerCell& cell = op.ruler[i];
      PutRuler(cell.error, cell, out);
      PutRuler(cell.units, cell, out);
      PutText(out, cell.verdict);
    }
    if (!replays_.active()) return;
    for (const std::string& cell : replays_.Cells(op, i)) PutText(out, cell);
  }

  static void AppendOlder(OlderResult result, const Highlight& highlight, std::string* out) {
    if (result.verdict == "Warning") *out += "cy";
    PutText(out, result.verdict);
    for (const std::string& reason : highlight.reasons) result.message += reason + " ";
    PutText(out, result.message);
  }

  static void PutRuler(double value, const RulerCell& cell, std::string* out) {
    const std::string text = RulerText(value, cell);
    if (text == kNotAvailableCell || !std::isfinite(value)) return PutText(out, text);
    *out += 'n';
    Raw(out, &value, sizeof value);
  }

  static void AppendStack(int stack, std::string* out) {
    if (stack < 0) return PutText(out, kNotAvailableCell);
    *out += 's';
    Raw(out, &stack, sizeof stack);
  }

  static void AppendMetrics(const TensorDiff& diff, std::string* out) {
    for (const MetricCell& cell : diff.cells) {
      if (cell.IsNumber() && std::isfinite(cell.value)) {
        *out += 'n';
        Raw(out, &cell.value, sizeof cell.value);
        continue;
      }
      std::string text;
      cell.AppendText(&text);
      PutText(out, text);
    }
    for (const StatValue& value : diff.custom) PutStat(out, value);
  }

  /// `older`: the golden item where relative errors are those of release 8.x, else null.
  static void AppendDiffs(const DiffRow& row, const ItemView* older, std::string* out) {
    std::string text;
    for (const StatDiff& d : row.diff) {
      text.clear();
      d.AppendDiff(&text);
      PutText(out, text);
    }
    for (size_t k = 0; k < kStatCount; ++k) {
      text.clear();
      if (older) {
        text = OlderRelative(row.diff[k], older->stats[k]);
      } else {
        row.diff[k].AppendRel(&text);
      }
      PutText(out, text);
    }
  }

  static void AppendStats(const ItemView& a, const ItemView* b, std::string* out) {
    for (const StatValue& v : a.stats) PutStat(out, v);
    for (size_t k = 0; k < kStatCount; ++k) b ? PutStat(out, b->stats[k]) : PutText(out, kNotAvailableCell);
  }

  const CompareMode mode_;
  const bool with_stack_;
  const bool highlight_;
  const bool ruler_, older_;
  const ReplayLookup replays_;
};

class XlsxTable : public ResultTable {
 public:
  XlsxTable(const TableSpec& spec, const XlsxLibrary& library, uint64_t total_rows, uint64_t rows_per_sheet)
      : spec_(spec),
        library_(library),
        format_(spec),
        temp_(spec.path),
        final_path_(spec.path),
        check_(library, spec.path),
        total_rows_(total_rows) {
    if (total_rows < rows_per_sheet) {
      slice_ = UINT64_MAX;
    } else {
      const uint64_t sheets = (total_rows + rows_per_sheet - 1) / rows_per_sheet;
      slice_ = (total_rows + sheets - 1) / sheets;
    }
  }
  ~XlsxTable() override {
    if (book_) library_.free(book_);
  }

  const RowFormat& format() const override { return format_; }
  const std::vector<std::string>& paths() const override { return paths_; }

  Status Open() {
    lxw_workbook_options options{};
    options.constant_memory = 1;
    options.use_zip64 = 1;
    options.tmpdir = directory_.data();  // the rows wait there until the end: /tmp may be small
    // The library opens the file only when it is closed; a directory that cannot be written is told now.
    MSP_ASSIGN_OR_RETURN(const OutputFile probe, OutputFile::Create(temp_.path()));
    book_ = library_.new_workbook(temp_.path().c_str(), &options);
    if (!book_) return InternalError("cannot start the workbook " + final_path_ + ": out of memory?");
    styles_ = library_.AddStyles(book_);
    return AddSheet();
  }

  Status Take(RowBlock&& block) override {
    MSP_RETURN_IF_ERROR(check_.Look(sheet_));
    size_t at = 0;
    for (const uint64_t end : block.row_ends) {
      if (rows_ == slice_) MSP_RETURN_IF_ERROR(AddSheet());
      MSP_RETURN_IF_ERROR(WriteRow(std::string_view(block.bytes).substr(at, end - at)));
      at = end;
      ++rows_;
    }
    return OkStatus();
  }

  Status Commit() override {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    MSP_RETURN_IF_ERROR(check_.BeforeClose());
    const lxw_error error = library_.close(std::exchange(book_, nullptr));
    if (error != LXW_NO_ERROR) return Failed(error);
    MSP_RETURN_IF_ERROR(check_.AfterClose(temp_.path()));
    if (InterruptRequested()) return Interrupted();  // packing a large workbook takes seconds
    MSP_RETURN_IF_ERROR(temp_.CommitResult());
    paths_.push_back(temp_.final_path());
    return OkStatus();
  }

 private:
  Status Failed(lxw_error error) const {
    return InternalError("cannot write " + final_path_ + ": " + library_.error_text(error) +
                         "; free space or choose another -o");
  }

  Status AddSheet() {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    const std::string name = slice_ == UINT64_MAX ? "Sheet1" : "part_" + std::to_string(sheets_);
    ++sheets_;
    sheet_ = library_.add_sheet(book_, name.c_str());
    if (!sheet_) return InternalError("cannot add the sheet " + name + " to " + final_path_ + ": out of memory?");
    rows_ = 0;
    lxw_col_t column = 0;
    const auto titles = ColumnsOf(spec_);
    library_.SetUpSheet(sheet_, std::min(slice_, total_rows_), titles.size());
    for (const std::string_view title : titles) {
      MSP_RETURN_IF_ERROR(WriteText(0, column++, std::string(title), styles_.header));
    }
    return OkStatus();
  }

  Status WriteText(lxw_row_t row, lxw_col_t column, std::string text, lxw_format* style) {
    // The limit counts characters; fewer bytes than that are safe, longer text is cut between two of them.
    if (text.size() > kMaxCellChars) {
      size_t cut = kMaxCellChars;
      while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
      text.resize(cut);
    }
    const lxw_error error = library_.write_string(sheet_, row, column, text.c_str(), style);
    return error == LXW_NO_ERROR ? OkStatus() : Failed(error);
  }

  Status WriteRow(std::string_view cells) {
    const lxw_row_t row = static_cast<lxw_row_t>(rows_ + 1);
    lxw_col_t column = 0;
    const auto read = [&](void* to, size_t size) {
      std::memcpy(to, cells.data(), size);
      cells.remove_prefix(size);
    };
    lxw_format* row_style = nullptr;
    for (; !cells.empty(); ++column) {
      char tag = 0;
      read(&tag, 1);
      lxw_error error = LXW_NO_ERROR;
      if (tag == 'R') {
        read(&tag, 1);
        row_style = tag == 'r' ? styles_.red : styles_.yellow;
        read(&tag, 1);
      }
      lxw_format* style = row_style;
      if (tag == 'c') {
        read(&tag, 1);
        style = tag == 'r' ? styles_.red : styles_.yellow;
        read(&tag, 1);
      }
      if (tag == 'n') {
        double v = 0;
        read(&v, sizeof v);
        error = library_.write_number(sheet_, row, column, v, style);
      } else if (tag == 'b') {
        char v = 0;
        read(&v, 1);
        error = library_.write_bool(sheet_, row, column, v, style);
      } else if (tag == 's') {
        int id = 0;
        read(&id, sizeof id);
        MSP_RETURN_IF_ERROR(WriteText(row, column, StackCell(spec_.stacks->Frames(static_cast<uint32_t>(id))), style));
      } else {
        uint32_t size = 0;
        read(&size, sizeof size);
        MSP_RETURN_IF_ERROR(WriteText(row, column, std::string(cells.substr(0, size)), style));
        cells.remove_prefix(size);
      }
      if (error != LXW_NO_ERROR) return Failed(error);
    }
    return OkStatus();
  }

  const TableSpec spec_;
  const XlsxLibrary& library_;
  const CellFormat format_;
  TempPath temp_;
  const std::string final_path_;
  std::string directory_{DirName(final_path_)};
  WorkbookCheck check_;
  const uint64_t total_rows_;
  XlsxStyles styles_;
  uint64_t slice_ = 0, rows_ = 0;
  int sheets_ = 0;
  lxw_workbook* book_ = nullptr;
  lxw_worksheet* sheet_ = nullptr;
  std::vector<std::string> paths_;
};

}  // namespace

void AppendTextCells(const std::vector<std::string_view>& cells, std::string* out) {
  for (const std::string_view cell : cells) {
    if (cell == VerdictText(Verdict::kError)) *out += "cr";
    if (cell == VerdictText(Verdict::kWarning)) *out += "cy";
    PutText(out, cell);
  }
}

StatusOr<std::unique_ptr<ResultTable>> CreateXlsxTable(const TableSpec& spec, uint64_t total_rows,
                                                       uint64_t rows_per_sheet) {
  MSP_ASSIGN_OR_RETURN(const XlsxLibrary* library, XlsxLibrary::Get());
  auto table = std::make_unique<XlsxTable>(spec, *library, total_rows, rows_per_sheet);
  MSP_RETURN_IF_ERROR(table->Open());
  return std::unique_ptr<ResultTable>(std::move(table));
}

}  // namespace msprobe
