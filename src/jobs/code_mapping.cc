#include "jobs/code_mapping.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "import/ir_code.h"
#include "import/kernel_dump.h"
#include "sheet/sheet_reader.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

constexpr std::string_view kCode = "Code Stack", kScope = "Scope Name";
using Cells = std::vector<std::string>;

/// Code and scope of a kernel; both empty where the graph does not have it.
std::pair<std::string, std::string_view> CodeOf(const IrFile& ir, std::string_view kernel, CodeMappingReport* report) {
  ++report->rows;
  const IrNode* node = ir.Find(kernel);
  if (!node) return {};
  if (!node->lines.empty()) ++report->found;
  return {CodeStack(*node), node->scope};
}

void AppendRow(const Cells& cells, std::string* out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) *out += ',';
    AppendCsvField(out, cells[i]);
  }
  *out += '\n';
}

Status WriteText(const std::string& path, std::string_view text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

/// A row of statistic.csv with the two columns behind the others, whose lines may be longer than the titles.
class StatisticTable {
 public:
  Status Read(const std::string& path) {
    return ReadCsv(path, [this](const std::vector<SheetCell>& cells, bool) -> Status {
      Cells& row = rows_.emplace_back();
      for (const SheetCell& cell : cells) row.push_back(cell.text);
      width_ = std::max(width_, row.size());
      return OkStatus();
    });
  }
  Status Fill(const IrFile& ir, const std::string& path, CodeMappingReport* report) {
    if (rows_.empty()) return BadInput(Msg("{} is empty: the run ended before it wrote its kernels", path));
    Cells& titles = rows_.front();
    const auto name = std::find(titles.begin(), titles.end(), "Op Name");
    if (name == titles.end())
      return BadInput(Msg("{} has no column \"Op Name\": it is no statistic.csv of MindSpore", path));
    const auto kernel = static_cast<size_t>(name - titles.begin());
    const auto earlier = std::find(titles.begin(), titles.end(), kCode);  // of a mapping before this one
    if (earlier != titles.end()) width_ = static_cast<size_t>(earlier - titles.begin());
    const std::string unnamed = "Unnamed: ";  // as pandas calls columns without a title
    while (titles.size() < width_) titles.push_back(unnamed + std::to_string(titles.size()));
    for (size_t i = 0; i < rows_.size(); ++i) {
      Cells& row = rows_[i];
      row.resize(width_);
      if (i == 0) {
        row.emplace_back(kCode);
        row.emplace_back(kScope);
        continue;
      }
      const auto [code, scope] = CodeOf(ir, kernel < row.size() ? row[kernel] : std::string(), report);
      row.push_back(code);
      row.emplace_back(scope);
    }
    return OkStatus();
  }
  std::string Text() const {
    std::string out;
    for (const Cells& row : rows_) AppendRow(row, &out);
    return out;
  }

 private:
  std::vector<Cells> rows_;
  size_t width_ = 0;
};

StatusOr<std::vector<KernelTensor>> FilesOf(const std::string& path) {
  KernelList list;
  KernelDirectory directory;
  const bool whole = IsDirectory(path);
  directory.path = whole ? path : std::string(DirName(path));
  MSP_RETURN_IF_ERROR(ReadKernels(directory, &list));
  if (!whole) std::erase_if(list.tensors, [&](const KernelTensor& t) { return BaseName(t.file) != BaseName(path); });
  if (list.kind == KernelKind::kFiles && !list.tensors.empty()) return std::move(list.tensors);
  return BadInput(
      Msg("{} holds no files of kernels (.npy): give the directory of one step, or its statistic.csv", path));
}

}  // namespace

StatusOr<CodeMappingReport> MapCode(const CodeMappingSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const IrFile ir, IrFile::Open(settings.ir));
  CodeMappingReport report;
  if (EndsWith(settings.dump, ".csv")) {
    StatisticTable table;
    MSP_RETURN_IF_ERROR(table.Read(settings.dump));
    MSP_RETURN_IF_ERROR(table.Fill(ir, settings.dump, &report));
    report.path = settings.dump;
    MSP_RETURN_IF_ERROR(WriteText(report.path, table.Text()));
    return report;
  }
  MSP_ASSIGN_OR_RETURN(std::vector<KernelTensor> files, FilesOf(settings.dump));
  MSP_RETURN_IF_ERROR(MakeOutputDir(settings.output));
  std::string text;
  AppendRow({"File Path", std::string(kCode), std::string(kScope)}, &text);
  for (const KernelTensor& t : files) {
    std::error_code error;
    const std::string path = std::filesystem::canonical(t.file, error).string();
    const auto [code, scope] = CodeOf(ir, KernelOf(t), &report);
    AppendRow({error ? t.file : path, code, std::string(scope)}, &text);
  }
  report.path = JoinPath(settings.output, "code_mapping_" + TimestampNow() + ".csv");
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(report.path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  report.path = file.path();
  return report;
}

}  // namespace msprobe
