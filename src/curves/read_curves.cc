#include "curves/read_curves.h"

#include <fmt/format.h>

#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "curves/event_curves.h"
#include "curves/log_curves.h"
#include "curves/table_curves.h"

namespace msprobe {
namespace {

constexpr size_t kMaxEventFiles = 1000;

StatusOr<RunCurves> ReadDirectory(const std::string& path,  // NOLINT(misc-no-recursion): its files are no directories
                                  const CurveNames& names) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> found, ListDirectory(path));
  std::vector<MappedFile> files;
  std::vector<std::string_view> texts;
  for (const std::string& name : found) {
    if (!IsEventFile(name) || !IsRegularFile(JoinPath(path, name)) || files.size() >= kMaxEventFiles) continue;
    MSP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(JoinPath(path, name)));
    files.push_back(std::move(file));
  }
  for (const MappedFile& file : files) texts.push_back(file.text());
  if (!texts.empty()) return ReadEventCurves(texts, path, names);
  const std::string state = JoinPath(path, "trainer_state.json");
  if (IsRegularFile(state)) return ReadCurves(state, names);
  const std::string metrics = JoinPath(path, "metrics.csv");
  if (IsRegularFile(metrics)) return ReadCurves(metrics, names);
  std::string only;
  size_t tables = 0;
  for (const std::string& name : found) {
    if (!EndsWith(name, ".csv") || !IsRegularFile(JoinPath(path, name))) continue;
    only = JoinPath(path, name);
    ++tables;
  }
  if (tables == 1) return ReadCurves(only, names);
  return BadInput(
      Msg("{} holds neither event files of TensorBoard (events.out.tfevents.*) nor trainer_state.json, metrics.csv or "
          "only one csv: give the file with the loss",
          OneLine(path)));
}

}  // namespace

StatusOr<RunCurves> ReadCurves(const std::string& path,  // NOLINT(misc-no-recursion): of a directory its files
                               const CurveNames& names) {
  if (IsDirectory(path)) return ReadDirectory(path, names);
  if (EndsWith(path, ".db")) return ReadTrendCurves(path, names);
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (IsEventFile(BaseName(path))) return ReadEventCurves({file.text()}, path, names);
  if (EndsWith(path, ".csv")) return ReadCsvCurves(file.text(), path, names);
  if (EndsWith(path, ".json")) return ReadTrainerState(file.text(), path, names);
  return ReadLogCurves(file.text(), path, names);
}

}  // namespace msprobe
