// What `msprobe verify-dump` prints.
#include <algorithm>

#include "base/message.h"
#include "dump/repair/verify.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string Padded(std::string text, size_t width, bool right) {
  if (text.size() >= width) return text;
  const std::string blanks(width - text.size(), ' ');
  return right ? blanks + text : text + blanks;
}

uint64_t FindingsOf(const RankCheck& rank) {
  return static_cast<uint64_t>(
      std::count_if(rank.findings.begin(), rank.findings.end(), [](const VerifyFinding& f) { return !f.note; }));
}

void Lines(const std::vector<VerifyFinding>& findings, const Message& where, Message* out) {
  for (const VerifyFinding& f : findings) {
    const Message text = f.note ? Msg("note: {}", f.text) : f.text;
    *out += where.empty() ? text : Msg("{}: {}", where, text);
    *out += Message("\n");
  }
}

void Write(const std::vector<VerifyFinding>& findings, JsonWriter* json) {
  json->Key("findings");
  json->BeginArray();
  for (const VerifyFinding& f : findings) {
    json->BeginObject();
    json->Key("kind"), json->String(f.kind);
    json->Key("count"), json->UInt(f.count);
    json->Key("note"), json->Bool(f.note);
    json->Key("text"), json->String(f.text);
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace

Message CheckText(const DumpCheck& check) {
  std::vector<std::vector<std::string>> table = {
      {"step", "rank", "state", "ops", "items", "tensors", "tensor files", "MB", "findings"}};
  for (const RankCheck& r : check.ranks) {
    char mb[32];
    std::snprintf(mb, sizeof mb, "%.1f", static_cast<double>(r.bytes) / 1e6);
    table.push_back({std::to_string(r.step), r.rank, r.readable ? r.state : "unreadable", std::to_string(r.ops),
                     std::to_string(r.items), std::to_string(r.tensors), std::to_string(r.tensor_files), mb,
                     std::to_string(FindingsOf(r))});
  }
  std::vector<size_t> widths(table[0].size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  Message out;
  for (const auto& row : table) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i ? "  " : "") + Padded(row[i], widths[i], i > 2);
    line.erase(line.find_last_not_of(' ') + 1);
    out += Message(line + "\n");
  }
  Lines(check.findings, {}, &out);
  for (const RankCheck& r : check.ranks) {
    Lines(r.findings, Message(fmt::format("step {} {}", r.step, r.rank)), &out);
  }
  return out;
}

std::string CheckJson(const DumpCheck& check) {
  std::string out;
  JsonWriter json(&out, kJsonIndented);
  json.BeginObject();
  json.Key("ok"), json.Bool(check.count() == 0);
  json.Key("ranks");
  json.BeginArray();
  for (const RankCheck& r : check.ranks) {
    json.BeginObject();
    json.Key("path"), json.String(r.path);
    json.Key("step"), json.Int(r.step);
    json.Key("rank"), json.String(r.rank);
    json.Key("state"), json.String(r.state);
    json.Key("readable"), json.Bool(r.readable);
    json.Key("ops"), json.UInt(r.ops);
    json.Key("items"), json.UInt(r.items);
    json.Key("tensors"), json.UInt(r.tensors);
    json.Key("tensor_files"), json.UInt(r.tensor_files);
    json.Key("bytes"), json.UInt(r.bytes);
    Write(r.findings, &json);
    json.EndObject();
  }
  json.EndArray();
  Write(check.findings, &json);
  json.EndObject();
  return out;
}

}  // namespace msprobe
