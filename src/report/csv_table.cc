#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "report/columns.h"
#include "report/table.h"

namespace msprobe {
namespace {

/// Bytes that need a look: what makes csv quote a field, and ';'.
constexpr std::array<bool, 256> MakeSpecial() {
  std::array<bool, 256> out{};
  for (const char c : {',', '"', '\r', '\n', ';'}) out[static_cast<unsigned char>(c)] = true;
  return out;
}
constexpr std::array<bool, 256> kSpecial = MakeSpecial();

bool StartsFormula(std::string_view s) {
  if (s.empty()) return false;
  if (s[0] != '\0' && std::strchr("=+-@%\t\r\n", s[0])) return true;
  for (const std::string_view wide : {"＝", "＋", "－", "＠", "％"}) {
    if (StartsWith(s, wide)) return true;
  }
  return false;
}

/// "-0.5;1.5": the statistics of items that were joined.
bool IsNumberList(std::string_view s) {
  const std::string copy(s);
  const char* at = copy.c_str();
  for (;;) {
    char* end = nullptr;
    std::strtod(at, &end);
    if (end == at) return false;
    if (*end == '\0') return end == copy.c_str() + copy.size();
    if (*end != ';') return false;
    at = end + 1;
  }
}

void AppendQuoted(std::string* out, std::string_view s) {
  *out += '"';
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '"') *out += '"';
    *out += s[i];
    // Where ';' separates fields, what follows it starts one.
    if (s[i] == ';' && StartsFormula(s.substr(i + 1))) *out += '\'';
  }
  *out += '"';
}

class CsvFormat : public RowFormat {
 public:
  explicit CsvFormat(const TableSpec& spec)
      : mode_(spec.mode),
        with_stack_(spec.stacks != nullptr),
        ruler_(spec.ruler),
        older_(spec.older),
        replays_(spec.replays, spec.target_dump) {
    if (!spec.stacks) return;
    for (size_t i = 0; i < spec.stacks->size(); ++i) {
      AppendCsvField(&stacks_.emplace_back(), StackCell(spec.stacks->Frames(static_cast<uint32_t>(i))));
    }
  }

  void AppendOp(const OpDiff& op, int stack, RowBlock* block) const override {
    for (size_t i = 0; i < op.rows_used; ++i) {
      AppendRow(op, i, i == StackRow(op) ? stack : -1, &block->bytes);
      block->row_ends.push_back(block->bytes.size());
    }
  }

 private:
  void AppendRow(const OpDiff& op, size_t i, int stack, std::string* out) const {
    const ItemView& a = op.target[i];
    const DiffRow& row = op.rows[i];
    const ItemView* b = row.golden == kNoItem ? nullptr : &op.golden[static_cast<size_t>(row.golden)];
    const auto pair = [&](std::string_view x, std::string_view y) {
      AppendCsvField(out, x);
      *out += ',';
      AppendCsvField(out, b ? y : kNotAvailableCell);
      *out += ',';
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
    *out += row.grad_consistent ? "True," : "False,";
    *out += older_ ? OlderVerdict(op, i, mode_) : VerdictText(row.verdict);
    if (!older_ || mode_ != CompareMode::kChecksum) {
      *out += ',';
      if (older_ && mode_ == CompareMode::kStatistics) {
        AppendCsvField(out, OlderStatistics(op, i).message);
      } else if (row.findings) {
        AppendCsvField(out,
                       FindingsJson(row.findings, op.tensors.empty() ? std::string_view() : op.tensors[i].finding));
      } else {
        *out += "[]";
      }
    }
    if (with_stack_) {
      *out += ',';
      *out += stack >= 0 ? std::string_view(stacks_[static_cast<size_t>(stack)]) : kNotAvailableCell;
    }
    if (mode_ == CompareMode::kTensor) {
      *out += ',';
      AppendCsvField(out, DataNameCell(a.data_name, b ? b->data_name : kNotAvailableCell));
    }
    if (ruler_) {
      const RulerCell& cell = op.ruler[i];
      *out += "," + RulerText(cell.error, cell) + "," + RulerText(cell.units, cell) + ",";
      *out += cell.verdict;
    }
    if (replays_.active()) {
      for (const std::string& cell : replays_.Cells(op, i)) *out += "," + cell;
    }
    *out += '\n';
  }

  static void AppendMetrics(const TensorDiff& diff, std::string* out) {
    for (const MetricCell& cell : diff.cells) {
      if (cell.IsNumber() && std::isinf(cell.value)) *out += ' ';  // as in AppendStat
      cell.AppendText(out);
      *out += ',';
    }
    for (const StatValue& value : diff.custom) AppendStat(value, out);
  }

  /// `older`: the golden item where relative errors are those of release 8.x, else null.
  static void AppendDiffs(const DiffRow& row, const ItemView* older, std::string* out) {
    for (const StatDiff& d : row.diff) {
      d.AppendDiff(out);
      *out += ',';
    }
    for (size_t k = 0; k < kStatCount; ++k) {
      if (older) {
        *out += OlderRelative(row.diff[k], older->stats[k]);
      } else {
        row.diff[k].AppendRel(out);
      }
      *out += ',';
    }
  }

  static void AppendStats(const ItemView& a, const ItemView* b, std::string* out) {
    for (const StatValue& v : a.stats) AppendStat(v, out);
    for (size_t k = 0; k < kStatCount; ++k) {
      if (b) {
        AppendStat(b->stats[k], out);
      } else {
        *out += "N/A,";
      }
    }
  }

  static void AppendStat(const StatValue& v, std::string* out) {
    if (v.kind == StatValue::Kind::kText) {
      AppendCsvField(out, v.text == "nan" || v.text == "NaN" ? std::string_view("Nan") : std::string_view(v.text));
    } else {
      // A spreadsheet takes a bare inf for the name of a cell range; with a space in front it is text.
      if (v.kind == StatValue::Kind::kDouble && std::isinf(v.d)) *out += ' ';
      v.AppendText(out);
    }
    *out += ',';
  }

  const CompareMode mode_;
  const bool with_stack_, ruler_, older_;
  const ReplayLookup replays_;
  std::vector<std::string> stacks_;  // as csv fields
};

class CsvTable : public ResultTable {
 public:
  CsvTable(const TableSpec& spec, uint64_t rows_per_file) : spec_(spec), rows_per_file_(rows_per_file), format_(spec) {
    for (const std::string_view column : ColumnsOf(spec)) {
      if (!header_.empty()) header_ += ',';
      AppendCsvField(&header_, column);
    }
    header_ += '\n';
  }

  const RowFormat& format() const override { return format_; }
  const std::vector<std::string>& paths() const override { return paths_; }

  Status Open() {
    if (!files_.empty()) MSP_RETURN_IF_ERROR(files_.back()->Rest());
    MSP_ASSIGN_OR_RETURN(OutputFile file,
                         OutputFile::Create(files_.empty() ? spec_.path : PartPath(files_.size() + 1)));
    files_.push_back(std::make_unique<OutputFile>(std::move(file)));
    rows_ = 0;
    return files_.back()->Write(header_);
  }

  Status Take(RowBlock&& block) override {
    std::string_view bytes = block.bytes;
    size_t from = 0, row = 0;
    while (row < block.row_ends.size()) {
      if (rows_ == rows_per_file_) MSP_RETURN_IF_ERROR(Open());
      const size_t take = static_cast<size_t>(std::min<uint64_t>(block.row_ends.size() - row, rows_per_file_ - rows_));
      const size_t to = block.row_ends[row + take - 1];
      MSP_RETURN_IF_ERROR(files_.back()->Write(bytes.substr(from, to - from)));
      from = to;
      row += take;
      rows_ += take;
    }
    return OkStatus();
  }

  Status Commit() override {
    // Only now is it known whether the first file is a part.
    for (size_t i = 0; i < files_.size(); ++i) {
      const Status status = files_[i]->CommitResult(files_.size() > 1 ? PartPath(i + 1) : std::string());
      if (!status.ok()) {
        for (const std::string& done : paths_) std::remove(done.c_str());
        paths_.clear();
        return status;
      }
      paths_.push_back(files_[i]->path());
    }
    return OkStatus();
  }

 private:
  std::string PartPath(size_t part) const {
    const size_t dot = spec_.path.rfind('.');
    return spec_.path.substr(0, dot) + "_part_" + std::to_string(part) + spec_.path.substr(dot);
  }

  const TableSpec spec_;
  const uint64_t rows_per_file_;
  const CsvFormat format_;
  std::string header_;
  std::vector<std::unique_ptr<OutputFile>> files_;
  uint64_t rows_ = 0;  // in the last file
  std::vector<std::string> paths_;
};

}  // namespace

void AppendCsvField(std::string* out, std::string_view text) {
  bool special = false, quote = false;
  for (const char c : text) {
    if (!kSpecial[static_cast<unsigned char>(c)]) continue;
    special = true;
    quote = quote || c != ';';
  }
  // Numbers may start with a sign; other text with one is made harmless.
  std::string guarded;
  const bool numbers = (special || StartsFormula(text)) && IsNumberList(text);
  if (!numbers && StartsFormula(text)) {
    guarded.reserve(text.size() + 1);
    guarded += '\'';
    guarded += text;
    text = guarded;
  }
  if (!special || numbers) {
    *out += text;
    return;
  }
  const size_t at = out->size();
  AppendQuoted(out, text);
  if (quote) return;
  out->erase(at, 1);
  out->pop_back();
}

std::string StackCell(const std::vector<std::string>& frames) {
  std::string out = "[";
  for (const std::string& frame : frames) {
    if (out.size() > 1) out += ", ";
    AppendPyStrRepr(out, frame);
  }
  return out + "]";
}

std::vector<std::string_view> ColumnsOf(const TableSpec& spec) {
  if (!spec.columns.empty()) return {spec.columns.begin(), spec.columns.end()};
  MoreColumns more;
  more.ruler = spec.ruler;
  more.replay = spec.replays != nullptr;
  more.older = spec.older;
  return TableColumns(spec.mode, spec.stacks != nullptr, spec.custom, more);
}

void AppendTextRow(const TableSpec& spec, const std::vector<std::string_view>& cells, RowBlock* block) {
  if (EndsWith(spec.path, ".xlsx")) {
    AppendTextCells(cells, &block->bytes);
  } else {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i) block->bytes += ',';
      AppendCsvField(&block->bytes, cells[i]);
    }
    block->bytes += '\n';
  }
  block->row_ends.push_back(block->bytes.size());
}

std::unique_ptr<RowFormat> CreateCsvFormat(const TableSpec& spec) { return std::make_unique<CsvFormat>(spec); }

StatusOr<std::unique_ptr<ResultTable>> CreateCsvTable(const TableSpec& spec, uint64_t rows_per_file) {
  auto table = std::make_unique<CsvTable>(spec, rows_per_file);
  MSP_RETURN_IF_ERROR(table->Open());
  return std::unique_ptr<ResultTable>(std::move(table));
}

}  // namespace msprobe
