#include "import/kernel_dump.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "sheet/sheet_reader.h"
#include "tensor/files/adump_reader.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDepth = 10;
constexpr size_t kMostEntries = 20'000'000, kMostTensors = 2'000'000, kMostLevels = 4;
constexpr std::string_view kRankDir = "rank_", kStepDir = "step_", kFileEnd = ".npy", kList = "statistic.csv",
                           kNames = "mapping.csv", kConstants = "constants";

template <typename T>
std::optional<T> Number(std::string_view text) {
  T out = 0;
  if (!IsDigits(text)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// Rank and step from the last parts of a path, the step last; false for other directories.
bool PlaceOf(const std::vector<std::string>& parts, KernelDirectory* out) {
  if (parts.size() < kMostLevels) return false;
  const auto back = [&](size_t i) -> const std::string& { return parts[parts.size() - i]; };
  const auto numbered = [](std::string_view part, std::string_view prefix) {
    return StartsWith(part, prefix) ? Number<int>(part.substr(prefix.size())) : std::optional<int>();
  };
  // rank_{N}/{time}/step_{N}, as the C++ part of releases 8.x lays dumps out
  if (const auto step = numbered(back(1), kStepDir), rank = numbered(back(3), kRankDir); step && rank) {
    out->rank = *rank;
    out->step = *step;
    return true;
  }
  out->constants = back(1) == kConstants && StartsWith(back(kMostLevels), kRankDir);
  const std::optional<int> step = out->constants ? 0 : Number<int>(back(1));
  const std::string& top = back(kMostLevels);
  std::optional<int> rank = StartsWith(top, kRankDir) ? numbered(top, kRankDir) : Number<int>(top);
  if (!rank) rank = Number<int>(back(3));  // {device}/{model}/{step}
  if (!step || !rank) return false;
  out->rank = *rank;
  out->step = *step;
  out->graph = back(3) + "/" + back(2);
  return true;
}

/// "{type}.{op}.{task}.{stream}.{time}": a file of Ascend, with all tensors of one run of the kernel.
bool IsAdumpName(std::string_view name) {
  constexpr size_t kParts = 5, kFirstNumber = 2;
  const std::vector<std::string_view> parts = Split(name, '.');
  return parts.size() == kParts && !parts[0].empty() && !parts[1].empty() && parts[0] != "Opdebug" &&
         std::all_of(parts.begin() + kFirstNumber, parts.end(), IsDigits);
}

bool HoldsKernels(const fs::path& directory) {
  std::error_code error;
  if (fs::is_regular_file(directory / kList, error)) return true;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (EndsWith(it->path().native(), kFileEnd) || IsAdumpName(it->path().filename().native())) return true;
  }
  return false;
}

Status TooMany(const std::string& path) { return BadInput(Msg("{} lists more kernels than any dump", path)); }

/// The tensors of a file of Ascend, by its header.
Status AddAdump(const std::string& path, std::string_view name, const std::string& graph, KernelList* out) {
  const std::vector<std::string_view> parts = Split(name, '.');
  constexpr size_t kOp = 1, kTask = 2, kTime = 4;
  const std::optional<uint64_t> time = Number<uint64_t>(parts[kTime]);
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const StatusOr<AdumpFile> dump = ReadAdump(file.text(), path);
  if (!time || !dump.ok()) {
    ++out->passed_over;
    return OkStatus();
  }
  for (size_t i = 0; i < dump->tensors.size(); ++i) {
    if (out->tensors.size() == kMostTensors) return TooMany(path);
    KernelTensor& t = out->tensors.emplace_back();
    t.key = std::string(parts[kOp]).append(".").append(parts[kTask]).append(".") + dump->tensors[i].tensor.name;
    t.type = parts[0];
    t.time = *time;
    t.graph = graph;
    t.file = path;
    t.member = static_cast<int>(i);
  }
  return OkStatus();
}

Status ReadFiles(const KernelDirectory& directory, const std::vector<std::string>& names, KernelList* out) {
  std::map<std::string, std::string> long_names;
  if (const std::string list = JoinPath(directory.path, kNames); IsRegularFile(list)) {
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(list));
    MSP_RETURN_IF_ERROR(ReadLongNames(file.text(), list, &long_names));
  }
  for (const std::string& name : names) {
    if (IsAdumpName(name)) {
      MSP_RETURN_IF_ERROR(AddAdump(JoinPath(directory.path, name), name, directory.graph, out));
      continue;
    }
    if (!EndsWith(name, kFileEnd)) continue;
    KernelTensor tensor;
    const auto known = long_names.find(name);
    if (!ParseKernelName(known == long_names.end() ? name : known->second, &tensor)) {
      ++out->passed_over;
      continue;
    }
    if (out->tensors.size() == kMostTensors) return TooMany(directory.path);
    tensor.graph = directory.graph;
    tensor.constant = directory.constants;
    tensor.file = JoinPath(directory.path, name);
    out->tensors.push_back(std::move(tensor));
  }
  return OkStatus();
}

/// The columns of statistic.csv; those of statistics stand where the configuration put them.
struct StatisticColumns {
  static constexpr size_t kOpType = 0, kOpName = 1, kTask = 2, kTime = 4, kInOut = 5, kSlot = 6, kFirst = 8;
  size_t dtype = kFirst, shape = kFirst + 1;
  std::array<size_t, kKernelStats> stats{};  // 0: none
  size_t checksum = 0;                       // the same

  explicit StatisticColumns(const std::vector<SheetCell>& titles) {
    constexpr std::array<std::string_view, kKernelStats> kTitles = {"Max Value", "Min Value", "Avg Value",
                                                                    "L2Norm Value"};
    for (size_t i = 0; i < titles.size(); ++i) {
      if (titles[i].text == "Data Type") dtype = i;
      if (titles[i].text == "Shape") shape = i;
      for (size_t k = 0; k < kKernelStats; ++k) {
        if (titles[i].text == kTitles[k]) stats[k] = i;
      }
      const std::string& title = titles[i].text;
      if (title == "MD5" || title == "MD5 Value" || title == "SHA1") checksum = i;
    }
  }
};

/// The cells of a line. The C++ part of releases 8.x writes shapes without quotes: "(2,3)" is two cells there, and what
/// stands behind it is further to the right than its title.
class StatisticLine {
 public:
  StatisticLine(const std::vector<SheetCell>& row, size_t shape) : row_(row), at_(shape) {
    if (at_ >= row.size()) return;
    shape_ = row[at_].text;
    while (StartsWith(shape_, "(") && !EndsWith(shape_, ")") && at_ + extra_ + 1 < row.size()) {
      shape_ += "," + row[at_ + ++extra_].text;
    }
  }
  const std::string& shape() const { return shape_; }
  /// False where the line ends before its shape does.
  bool whole() const { return at_ < row_.size() && (!StartsWith(shape_, "(") || EndsWith(shape_, ")")); }
  std::string operator[](size_t column) const {
    const size_t i = column > at_ ? column + extra_ : column;
    return i < row_.size() ? row_[i].text : std::string();
  }

 private:
  const std::vector<SheetCell>& row_;
  size_t at_, extra_ = 0;
  std::string shape_;
};

/// False for a line that is not a kernel's.
bool ReadLine(const StatisticColumns& columns, const std::vector<SheetCell>& row, KernelTensor* out) {
  using C = StatisticColumns;
  if (row.size() <= std::max({columns.dtype, columns.shape, C::kSlot})) return false;
  const StatisticLine line(row, columns.shape);
  const std::optional<uint64_t> time = Number<uint64_t>(row[C::kTime].text);
  if (!time || row[C::kOpName].text.empty() || !line.whole()) return false;
  out->key = row[C::kOpName].text + "." + row[C::kTask].text + "." + row[C::kInOut].text + "." + row[C::kSlot].text;
  out->type = row[C::kOpType].text;
  out->time = *time;
  out->dtype = line[columns.dtype];
  out->shape = line.shape();
  for (size_t k = 0; k < kKernelStats; ++k) {
    if (columns.stats[k] > 0) out->stats[k] = line[columns.stats[k]];
  }
  if (columns.checksum > 0) out->checksum = line[columns.checksum];
  return true;
}

Status ReadStatistics(const KernelDirectory& directory, KernelList* out) {
  const std::string path = JoinPath(directory.path, kList);
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadKernelLines(file.text(), path, directory.graph, out);
}

}  // namespace

Status ReadLongNames(std::string_view text, const std::string& path, std::map<std::string, std::string>* out) {
  return ReadCsvText(text, path, [&](const std::vector<SheetCell>& row, bool) -> Status {
    if (row.size() < 2) return OkStatus();
    if (out->size() == kMostTensors) return BadInput(Msg("{} lists more files than any dump", path));
    (*out)[row[0].text] = row[1].text;
    return OkStatus();
  });
}

Status ReadKernelLines(std::string_view text, const std::string& path, const std::string& graph, KernelList* out) {
  std::optional<StatisticColumns> columns;
  MSP_RETURN_IF_ERROR(ReadCsvText(text, path, [&](const std::vector<SheetCell>& row, bool first) -> Status {
    if (first) {
      columns.emplace(row);
      return OkStatus();
    }
    KernelTensor tensor;
    if (!ReadLine(*columns, row, &tensor)) {
      ++out->passed_over;
      return OkStatus();
    }
    if (out->tensors.size() == kMostTensors) return TooMany(path);
    tensor.graph = graph;
    tensor.file = path;
    tensor.line = true;
    out->tensors.push_back(std::move(tensor));
    return OkStatus();
  }));
  if (columns) return OkStatus();
  return BadInput(Msg("{} is empty: the run ended before it wrote its kernels", path));
}

std::string_view KernelOf(const KernelTensor& tensor) {
  size_t end = tensor.key.size();
  for (int part = 0; part < 3 && end != std::string::npos && end > 0; ++part) end = tensor.key.rfind('.', end - 1);
  return std::string_view(tensor.key).substr(0, end);
}

bool IsOutput(const KernelTensor& tensor) {
  const size_t slot = tensor.key.rfind('.');
  return EndsWith(std::string_view(tensor.key).substr(0, slot), ".output");
}

uint32_t SlotOf(const KernelTensor& tensor) {
  return Number<uint32_t>(std::string_view(tensor.key).substr(tensor.key.rfind('.') + 1)).value_or(0);
}

bool ParseKernelName(std::string_view name, KernelTensor* out) {
  if (!EndsWith(name, kFileEnd)) return false;
  const std::vector<std::string_view> parts = Split(name.substr(0, name.size() - kFileEnd.size()), '.');
  constexpr size_t kOp = 1, kTask = 2, kTime = 4, kFirstInOut = 5;  // a time may have a fraction
  size_t at = kFirstInOut;
  while (at < parts.size() && IsDigits(parts[at])) ++at;
  if (at + 2 >= parts.size() || (parts[at] != "input" && parts[at] != "output")) return false;
  const std::optional<uint64_t> time = Number<uint64_t>(parts[kTime]);
  if (!time || !IsDigits(parts[at + 1]) || parts[kOp].empty()) return false;
  out->type = parts[0];
  out->time = *time;
  out->key.clear();
  for (const std::string_view part : {parts[kOp], parts[kTask], parts[at]}) out->key.append(part).append(".");
  out->key.append(parts[at + 1]);
  return true;
}

bool LooksLikeKernels(const std::string& path) {
  const auto is_rank = [](std::string_view name) {
    return StartsWith(name, kRankDir) && Number<int>(name.substr(kRankDir.size())).has_value();
  };
  if (!IsDirectory(path)) return false;
  if (is_rank(BaseName(path))) return true;
  const auto names = ListDirectory(path);
  if (!names.ok()) return false;
  return std::any_of(names->begin(), names->end(),
                     [&](const std::string& name) { return is_rank(name) && IsDirectory(JoinPath(path, name)); });
}

StatusOr<std::vector<KernelDirectory>> FindKernels(const std::string& root) {
  std::error_code error;
  const fs::path top = fs::canonical(root, error);
  if (error || !fs::is_directory(top, error)) {
    return BadInput(Msg("{} is not a directory: --rank and --step are for kernel dumps, which are directories", root));
  }
  std::vector<KernelDirectory> out;
  fs::recursive_directory_iterator it(top, error), end;
  for (size_t entries = 0; !error && it != end; it.increment(error)) {
    if (++entries > kMostEntries)
      return BadInput(Msg("{} holds more files than any dump: give a directory below it", root));
    std::error_code ignored;
    if (!it->is_directory(ignored) || it->is_symlink(ignored)) continue;
    if (it.depth() > kMostDepth)
      return BadInput(Msg("{} is nested deeper than the directories of any dump", it->path().string()));
    KernelDirectory found;
    std::vector<std::string> parts;
    for (const fs::path& part : it->path()) parts.push_back(part.string());
    if (!PlaceOf(parts, &found) || !HoldsKernels(it->path())) continue;
    found.path = it->path().string();
    out.push_back(std::move(found));
  }
  if (error) return BadInput(Msg("{} cannot be read: {}", root, KnownText(error.message())));
  std::sort(out.begin(), out.end(), [](const KernelDirectory& a, const KernelDirectory& b) { return a.path < b.path; });
  return out;
}

Status ReadKernels(const KernelDirectory& directory, KernelList* out) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory.path));
  if (directory.constants) return ReadFiles(directory, names, out);
  const bool files =
      std::any_of(names.begin(), names.end(), [](const auto& n) { return EndsWith(n, kFileEnd) || IsAdumpName(n); });
  const KernelKind kind = files ? KernelKind::kFiles : KernelKind::kStatistics;
  if (out->kind != KernelKind::kNone && out->kind != kind) {
    return BadInput(
        files ? Msg("{} holds tensors and the graphs before it do not: dump all graphs of a run in the same way",
                    directory.path)
              : Msg("{} holds statistics and the graphs before it do not: dump all graphs of a run in the "
                    "same way",
                    directory.path));
  }
  out->kind = kind;
  return files ? ReadFiles(directory, names, out) : ReadStatistics(directory, out);
}

}  // namespace msprobe
