#include "jobs/merge_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <tuple>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"

namespace msprobe {
namespace {

constexpr std::string_view kNameColumn = "NPU Name", kNpuMax = "NPU max", kBenchMax = "Bench max", kMd5 = "NPU MD5",
                           kGrad = "Requires_grad Consistent";
// Columns in front of the metrics, of every release.
constexpr std::string_view kBasic[] = {"NPU Name",          "Bench Name",         "NPU Dtype",
                                       "Bench Dtype",       "NPU Tensor Shape",   "Bench Tensor Shape",
                                       "NPU Requires_grad", "Bench Requires_grad"};
constexpr int kMostRanks = 1'000'000;
constexpr size_t kMostKeptBytes = size_t{4} << 30;

/// Texts of a YAML list.
StatusOr<std::vector<std::string>> Texts(const YamlNode* node, const std::string& path, std::string_view key) {
  std::vector<std::string> out;
  if (!node || node->IsNull()) return out;
  if (!node->IsList()) return BadInput(Msg("{}: '{}' must be a list, one entry a line with '- '", path, key));
  for (const YamlNode& item : node->items) {
    if (!item.IsText() || item.text.empty()) {
      return BadInput(Msg("{}:{}: an entry of '{}' must be a text", path, item.line, key));
    }
    out.push_back(item.text);
  }
  return out;
}

/// "compare_result_rank3_20261121120000_part_2.csv" in its parts.
struct ResultName {
  int rank = -1;
  std::string time;
  int part = 0;  // also of a second result in one second ("..._2.csv"), which counts as newer
  bool again = false, csv = false;
};

bool TakeNumber(std::string_view* s, int* out) {
  const auto [end, error] = std::from_chars(s->data(), s->data() + s->size(), *out);
  if (error != std::errc() || s->empty() || !IsDigits(s->substr(0, 1))) return false;
  s->remove_prefix(static_cast<size_t>(end - s->data()));
  return true;
}

bool SkipText(std::string_view* s, std::string_view text) {
  if (!StartsWith(*s, text)) return false;
  s->remove_prefix(text.size());
  return true;
}

bool ParseResultName(std::string_view name, ResultName* out) {
  int other = 0;
  if (!SkipText(&name, "compare_result_rank") || !TakeNumber(&name, &out->rank) || out->rank > kMostRanks) return false;
  if (SkipText(&name, "-rank") && (!TakeNumber(&name, &other) || other != out->rank)) return false;
  if (!SkipText(&name, "_") || name.size() < 14 || !IsDigits(name.substr(0, 14))) return false;
  out->time = name.substr(0, 14);
  name.remove_prefix(14);
  if (SkipText(&name, "_part_")) {
    if (!TakeNumber(&name, &out->part)) return false;
  } else if (SkipText(&name, "_")) {
    out->again = true;
    if (!TakeNumber(&name, &out->part)) return false;
  }
  out->csv = name == ".csv";
  return out->csv || name == ".xlsx";
}

bool IsNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool NoValue(std::string_view text) { return text == "N/A" || text == "unsupported" || text == "Nan"; }

std::string BaseNames(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) out += (out.empty() ? "" : ", ") + OneLine(BaseName(path));
  return out;
}

}  // namespace

size_t MergeConfig::ApiOf(std::string_view row) const {
  size_t i = 0;
  while (i < apis.size() && !(StartsWith(row, apis[i]) && row.size() > apis[i].size() && row[apis[i].size()] == '.')) {
    ++i;
  }
  return i;
}

StatusOr<MergeConfig> ReadMergeConfig(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  if (!root.IsMap())
    return BadInput(Msg("{} must hold 'api:' with a list of APIs, and may hold 'compare_index:'", path));
  MergeConfig out;
  MSP_ASSIGN_OR_RETURN(out.apis, Texts(root.Find("api"), path, "api"));
  MSP_ASSIGN_OR_RETURN(out.metrics, Texts(root.Find("compare_index"), path, "compare_index"));
  if (out.apis.empty()) return BadInput(Msg("{}: 'api' names no API to merge, as in '- Distributed.all_reduce'", path));
  return out;
}

StatusOr<std::vector<RankResults>> FindRankFiles(const std::string& directory, std::vector<Message>* warnings) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  struct Found {
    ResultName name;
    std::string path;
  };
  std::map<int, std::vector<Found>> by_rank;
  for (const std::string& file : names) {
    ResultName name;
    if (ParseResultName(file, &name)) by_rank[name.rank].push_back({name, JoinPath(directory, file)});
  }
  std::vector<RankResults> out;
  for (auto& [rank, found] : by_rank) {
    // Of one run: equal but for the number of the part.
    const auto run = [](const Found& f) { return std::tuple(f.name.time, f.name.again ? f.name.part : 0, f.name.csv); };
    std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
      return run(a) != run(b) ? run(a) > run(b) : a.name.part < b.name.part;
    });
    RankResults files;
    files.rank = rank;
    files.time = found[0].name.time;
    std::vector<std::string> others;
    for (const Found& f : found) (run(f) == run(found[0]) ? files.paths : others).push_back(f.path);
    if (!others.empty()) {
      warnings->push_back(
          Msg("rank{} has several results: {} is merged, not {}", rank, BaseNames(files.paths), BaseNames(others)));
    }
    out.push_back(std::move(files));
  }
  return out;
}

/// Keeps what was asked for of the rows that go by.
class RankRows::Reader {
 public:
  Reader(const MergeConfig& config, RankRows* out) : config_(config), out_(out) {
    out->seen_.assign(config.apis.size(), false);
  }

  Status Take(const std::string& path, const std::vector<SheetCell>& cells, bool first) {
    csv_ = EndsWith(path, ".csv");
    if (first) return TakeHeader(path, cells);
    if (++rows_ % 4096 == 0 && InterruptRequested()) return Interrupted();
    for (size_t m = 0; m < columns_.size(); ++m) LookAt(At(cells, columns_[m]), m);
    const SheetCell& name = At(cells, name_);
    const size_t api = config_.ApiOf(name.text);
    if (api == config_.apis.size()) return OkStatus();
    MarkApis(name.text, api);
    const auto row = static_cast<uint32_t>(out_->names_.size());
    const auto same = [&](uint32_t i) { return out_->names_[i] == name.text; };
    if (out_->by_name_.Enter(HashName(name.text), row, same) != row) return OkStatus();  // the first counts
    out_->names_.Add(name.text);
    for (const size_t column : columns_) Put(At(cells, column), cells);
    out_->ends_.push_back(out_->cells_.size());
    return out_->cells_.size() > kMostKeptBytes
               ? BadInput(Msg("{} has too many rows of these APIs: name fewer in the configuration", path))
               : OkStatus();
  }

  void Finish() {
    for (const Kinds& k : kinds_) out_->numeric_.push_back(csv_ ? !k.percent : k.only_numbers);
  }

 private:
  struct Kinds {
    bool only_numbers = true, percent = false;
  };

  static const SheetCell& At(const std::vector<SheetCell>& cells, size_t column) {
    static const SheetCell kEmpty;
    return column < cells.size() ? cells[column] : kEmpty;
  }

  Status TakeHeader(const std::string& path, const std::vector<SheetCell>& cells) {
    std::vector<std::string> titles;
    for (const SheetCell& cell : cells) titles.push_back(cell.text);
    if (!titles_.empty()) {
      return titles == titles_ ? OkStatus() : BadInput(Msg("{}: its sheets or parts have different columns", path));
    }
    const auto find = [&](std::string_view title) {
      return static_cast<size_t>(std::find(titles.begin(), titles.end(), title) - titles.begin());
    };
    name_ = find(kNameColumn);
    npu_max_ = find(kNpuMax);
    bench_max_ = find(kBenchMax);
    if (name_ < titles.size() && find(kMd5) < titles.size()) {
      return BadInput(
          Msg("{} compares checksums, which have nothing to merge: merge results of statistics or tensors", path));
    }
    if (name_ == titles.size() || npu_max_ == titles.size() || bench_max_ == titles.size()) {
      return BadInput(Msg("{} has no columns NPU Name, NPU max and Bench max: it is not a comparison result", path));
    }
    for (size_t i = 0; i <= titles.size(); ++i) {
      const bool metric =
          i < npu_max_ && std::find(std::begin(kBasic), std::end(kBasic), titles[i]) == std::end(kBasic);
      if (!metric && (i == titles.size() || titles[i] != kGrad)) continue;
      columns_.push_back(i);
      out_->metrics_.push_back(titles[i]);
    }
    kinds_.resize(columns_.size());
    titles_ = std::move(titles);
    return OkStatus();
  }

  void LookAt(const SheetCell& cell, size_t m) {
    if (cell.kind != SheetCell::Kind::kText) return;
    kinds_[m].percent = kinds_[m].percent || EndsWith(cell.text, "%");
    kinds_[m].only_numbers = kinds_[m].only_numbers && IsNumber(cell.text);
  }

  void MarkApis(std::string_view name, size_t first) {
    for (size_t i = first; i < config_.apis.size(); ++i) {
      const std::string& api = config_.apis[i];
      if (StartsWith(name, api) && name.size() > api.size() && name[api.size()] == '.') out_->seen_[i] = true;
    }
  }

  void Put(const SheetCell& cell, const std::vector<SheetCell>& row) {
    BigArray<char>* out = &out_->cells_;
    if (NoValue(cell.text)) {
      PutText('t', "NPU:" + At(row, npu_max_).text + "  Bench:" + At(row, bench_max_).text, out);
    } else if (cell.kind == SheetCell::Kind::kText && csv_ && (cell.text == "True" || cell.text == "False")) {
      PutText('b', cell.text == "True" ? "1" : "0", out);
    } else {
      PutText("etnb"[static_cast<size_t>(cell.kind)], cell.text, out);
    }
  }
  static void PutText(char kind, std::string_view text, BigArray<char>* out) {
    const uint32_t size = static_cast<uint32_t>(text.size());
    out->push_back(kind);
    out->append(reinterpret_cast<const char*>(&size), sizeof size);
    out->append(text.data(), text.size());
  }

  const MergeConfig& config_;
  RankRows* out_;
  std::vector<std::string> titles_;
  std::vector<size_t> columns_;  // of the metrics
  std::vector<Kinds> kinds_;
  size_t name_ = 0, npu_max_ = 0, bench_max_ = 0;
  uint64_t rows_ = 0;
  bool csv_ = false;
};

StatusOr<RankRows> RankRows::Read(const RankResults& files, const MergeConfig& config) {
  RankRows out;
  Reader reader(config, &out);
  for (const std::string& path : files.paths) {
    const auto take = [&](const std::vector<SheetCell>& cells, bool first) { return reader.Take(path, cells, first); };
    MSP_RETURN_IF_ERROR(EndsWith(path, ".csv") ? ReadCsv(path, take) : ReadXlsx(path, take));
  }
  if (out.metrics_.empty()) return BadInput(Msg("{} is empty: compare this rank again", files.paths[0]));
  reader.Finish();
  return out;
}

int64_t RankRows::Find(std::string_view name) const {
  const uint32_t at = by_name_.Find(HashName(name), [&](uint32_t i) { return names_[i] == name; });
  return at == SlotTable::kNone ? -1 : static_cast<int64_t>(at);
}

std::vector<MergedCell> RankRows::Row(int64_t row) const {
  const size_t i = static_cast<size_t>(row);
  std::string_view rest = std::string_view(cells_.data(), cells_.size()).substr(i == 0 ? 0 : ends_[i - 1]);
  std::vector<MergedCell> out;
  for (size_t m = 0; m < metrics_.size(); ++m) {
    const char kind = rest[0];
    uint32_t size = 0;
    std::memcpy(&size, rest.data() + 1, sizeof size);
    MergedCell cell{SheetCell::Kind::kText, rest.substr(1 + sizeof size, size)};
    if (kind == 'e') cell.kind = SheetCell::Kind::kEmpty;
    if (kind == 'b') cell.kind = SheetCell::Kind::kBool;
    if (kind == 'n' || (kind == 't' && numeric_[m] && IsNumber(cell.text))) cell.kind = SheetCell::Kind::kNumber;
    out.push_back(cell);
    rest.remove_prefix(1 + sizeof size + size);
  }
  return out;
}

}  // namespace msprobe
