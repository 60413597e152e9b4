#include "jobs/configuration/round_trip.h"

#include <charconv>
#include <set>

#include "base/message.h"
#include "base/python_process.h"
#include "base/text.h"
#include "jobs/configuration/round_trip_program.h"
#include "jobs/configuration/tokenizer_files.h"

namespace msprobe {
namespace {

constexpr int kSecondsOfTokenizer = 60;

/// What the program says of the rows; a note where it has no answer.
Status AskPython(const std::string& path, const TokenRows& rows, Configuration* out, ConfigSource* source) {
  const auto python = PythonProcess::Start("config_check", RoundTripProgram(), {path});
  const auto leave_out = [&](const std::string& why) {
    out->notes.push_back(Msg("the recorded ids were not decoded and encoded again: {}", OneLine(why)));
    return OkStatus();
  };
  if (!python.ok()) return leave_out(python.status().message());
  std::string text;
  for (const std::vector<int64_t>& row : rows) {
    for (const int64_t id : row) text += std::to_string(id) + " ";
    text += "\n";
  }
  text += ".\n";
  if (const Status sent = (*python)->Send(text.data(), text.size()); !sent.ok()) return leave_out(sent.message());
  const auto answer = (*python)->ReadLine(kSecondsOfTokenizer);
  if (!answer.ok()) return leave_out(answer.status().message());
  const std::string& line = *answer;
  if (StartsWith(line, "none ")) return leave_out(line.substr(5));
  uint64_t back = 0, total = 0;
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, back);
  if (first.ec != std::errc() || first.ptr == end || std::from_chars(first.ptr + 1, end, total).ec != std::errc())
    return leave_out((*python)->Ended().message());
  if (total > 0) {
    source->settings.push_back({"tokenizer.share_that_comes_back",
                                ConfigValue::Of(static_cast<double>(back) / static_cast<double>(total)), source->path});
  }
  return OkStatus();
}

}  // namespace

Status AddRoundTrip(const TokenRows& rows, Configuration* out) {
  if (rows.empty()) return OkStatus();
  for (ConfigSource& source : out->sources) {
    if (source.dialect != ConfigDialect::kTokenizer) continue;
    MSP_ASSIGN_OR_RETURN(const std::set<int64_t> known, IdsOfTokenizer(source.path));
    int64_t unknown = 0;
    for (const std::vector<int64_t>& row : rows) {
      for (const int64_t id : row) unknown += known.contains(id) ? 0 : 1;
    }
    source.settings.push_back({"tokenizer.ids_without_a_token", ConfigValue::Of(unknown), source.path});
    if (unknown == 0) MSP_RETURN_IF_ERROR(AskPython(source.path, rows, out, &source));
    return OkStatus();
  }
  return OkStatus();
}

}  // namespace msprobe
