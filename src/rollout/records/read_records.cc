#include "rollout/records/read_records.h"

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/scan.h"
#include "rollout/records/record_parts.h"
#include "rollout/records/request_of.h"
#include "tensor/files/pt_reader.h"

namespace msprobe {
namespace {

/// A vocabulary has the words "tokens" and "text", too, and is no record.
bool SaysNothing(const RolloutRequest& r) {
  return r.tokens.empty() && r.train_logprobs.empty() && r.rollout_logprobs.empty() && r.text.empty();
}

Status AddRecord(const RecordValue& record, const std::string& path, int64_t line, RolloutSide side,
                 RolloutRecords* out) {
  const ProgramRecords found = PartsOf(record);
  if (out->program.empty()) out->program = found.program;
  if (out->requests.size() + found.rows.size() > kMostRequests) {
    return BadInput(Msg("{} holds more requests than are read: give a part of them", path));
  }
  for (size_t row = 0; row < found.rows.size(); ++row) {
    RolloutRequest request = RequestOf(found.rows[row], side, out);
    if (SaysNothing(request)) continue;
    request.file = path;
    request.line = line > 0 ? line : static_cast<int64_t>(row) + 1;
    out->requests.push_back(std::move(request));
  }
  return OkStatus();
}

Status ReadLines(std::string_view text, const std::string& path, RolloutSide side, size_t* numbers,
                 RolloutRecords* out) {
  JsonDoc doc;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    ++number;
    if (SkipSpace(line, 0) < line.size()) {
      MSP_RETURN_IF_ERROR(ParseJson(line, path, &doc, at));
      MSP_ASSIGN_OR_RETURN(const RecordValue record, RecordOf(doc, path, numbers));
      MSP_RETURN_IF_ERROR(AddRecord(record, path, number, side, out));
    }
    at = end + 1;
  }
  return OkStatus();
}

}  // namespace

Status ReadRecordText(std::string_view text, const std::string& path, RolloutSide side, size_t* numbers,
                      RolloutRecords* out) {
  if (EndsWith(path, ".jsonl")) return ReadLines(text, path, side, numbers, out);
  if (EndsWith(path, ".json")) {
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(ParseJson(text, path, &doc));
    MSP_ASSIGN_OR_RETURN(const RecordValue record, RecordOf(doc, path, numbers));
    return AddRecord(record, path, 0, side, out);
  }
  // Objects beside the tensors, such as a reward's, are named and not made.
  MSP_ASSIGN_OR_RETURN(const PtFile file, PtFile::Parse(text, path, PtObjects::kShown));
  MSP_ASSIGN_OR_RETURN(const RecordValue record, RecordOf(file.value(), path, numbers));
  return AddRecord(record, path, 0, side, out);
}

Status ReadRecordFile(const std::string& path, RolloutSide side, size_t* numbers, RolloutRecords* out) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadRecordText(file.text(), path, side, numbers, out);
}

}  // namespace msprobe
