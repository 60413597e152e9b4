#include "view/match_edits.h"

#include <fmt/core.h>

#include "base/text.h"
#include "dump/json.h"

namespace msprobe::view {
namespace {

constexpr size_t kMaxNameBytes = 64 << 10;  // as in a graph

Status BadFile(std::string_view shown, std::string_view what) {
  return BadInput(fmt::format("{} is no list of matches ({}): remove it, or write it again", shown, what));
}

bool IsName(const JsonValue& v) {
  return v.IsString() && v.GetStringLength() > 0 && v.GetStringLength() <= kMaxNameBytes;
}

StatusOr<MatchEdits> ParseGraph(const JsonValue& graph, std::string_view shown) {
  MatchEdits edits;
  if (const JsonValue* made = Find(graph, "made")) {
    if (!made->IsObject()) return BadFile(shown, "\"made\" is no object");
    for (const auto& pair : made->GetObject()) {
      if (!IsName(pair.name) || !IsName(pair.value)) return BadFile(shown, "a pair in \"made\" is not two names");
      edits.made.insert_or_assign(std::string(Text(pair.name)), std::string(Text(pair.value)));
    }
  }
  if (const JsonValue* cancelled = Find(graph, "cancelled")) {
    if (!cancelled->IsArray()) return BadFile(shown, "\"cancelled\" is no list");
    for (const JsonValue& name : cancelled->GetArray()) {
      if (!IsName(name)) return BadFile(shown, "an entry of \"cancelled\" is no name");
      edits.cancelled.emplace(Text(name));
    }
  }
  return edits;
}

void AppendPairs(std::string& out, const MatchEdits& edits, std::string_view indent) {
  const char* comma = "";
  for (const auto& [npu, bench] : edits.made) {
    out += comma;
    comma = ",";
    out += '\n';
    out += indent;
    AppendJsonString(out, npu, /*ascii=*/false);
    out += ": ";
    AppendJsonString(out, bench, /*ascii=*/false);
  }
}

}  // namespace

StatusOr<FileEdits> ParseFileEdits(std::string_view json, std::string_view shown) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(json, shown, &doc));
  const JsonValue* format = Find(doc, "msprobe_matches");
  if (format == nullptr || !format->IsInt() || format->GetInt() != 1) return BadFile(shown, "another format");
  const JsonValue* graphs = Find(doc, "graphs");
  if (graphs == nullptr || !graphs->IsArray()) return BadFile(shown, "\"graphs\" is no list");
  FileEdits out;
  for (const JsonValue& graph : graphs->GetArray()) {
    const JsonValue *step = Find(graph, "step"), *rank = Find(graph, "rank");
    if (step == nullptr || rank == nullptr || !step->IsInt64() || !rank->IsInt64())
      return BadFile(shown, "a graph has no step or rank");
    MSP_ASSIGN_OR_RETURN(MatchEdits edits, ParseGraph(graph, shown));
    if (!edits.empty()) out.insert_or_assign({step->GetInt64(), rank->GetInt64()}, std::move(edits));
  }
  return out;
}

std::string FileEditsJson(const FileEdits& all) {
  std::string out = "{\"msprobe_matches\": 1, \"graphs\": [";
  const char* comma = "";
  for (const auto& [key, edits] : all) {
    out += fmt::format("{}\n  {{\"step\": {}, \"rank\": {}, \"made\": {{", comma, key.first, key.second);
    comma = ",";
    AppendPairs(out, edits, "    ");
    out += "}, \"cancelled\": [";
    const char* between = "";
    for (const std::string& name : edits.cancelled) {
      out += between;
      between = ",";
      out += "\n    ";
      AppendJsonString(out, name, /*ascii=*/false);
    }
    out += "]}";
  }
  return out + "\n]}\n";
}

StatusOr<std::vector<std::pair<std::string, std::string>>> ParseMatchConfig(std::string_view json,
                                                                            std::string_view shown) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(json, shown, &doc));
  const auto wrong = [&](std::string_view what) {
    return BadInput(fmt::format("{} is no configuration of matches ({}): it holds {{\"target node\": \"golden node\"}}",
                                shown, what));
  };
  if (!doc.IsObject()) return wrong("it is no JSON object");
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(doc.MemberCount());
  for (const auto& pair : doc.GetObject()) {
    if (!IsName(pair.name) || !IsName(pair.value)) return wrong("an entry is not two names");
    pairs.emplace_back(Text(pair.name), Text(pair.value));
  }
  return pairs;
}

std::string MatchConfigJson(const MatchEdits& edits) {
  std::string out = "{";
  AppendPairs(out, edits, "    ");
  return out + (edits.made.empty() ? "}" : "\n}");
}

StatusOr<MatchRequest> ParseMatchRequest(std::string_view json) {
  JsonDoc doc;
  if (Status parsed = ParseJson(json, "the body", &doc); !parsed.ok()) return UsageError(parsed.message());
  if (!doc.IsObject()) return UsageError("the body is no JSON object: send one, see docs/page_api.md");
  MatchRequest request;
  for (const auto& member : doc.GetObject()) {
    const std::string_view key = Text(member.name);
    if (key == "descendants") {
      if (!member.value.IsBool()) return UsageError("descendants is neither true nor false: send one of them");
      request.descendants = member.value.GetBool();
      continue;
    }
    std::string* into = key == "npu"        ? &request.npu
                        : key == "bench"    ? &request.bench
                        : key == "config"   ? &request.config
                        : key == "revision" ? &request.revision
                                            : nullptr;
    if (into == nullptr) return UsageError("the body has a member that means nothing here: see docs/page_api.md");
    if (!member.value.IsString() || member.value.GetStringLength() > kMaxNameBytes)
      return UsageError(fmt::format("{} is no text: send a text", key));
    *into = Text(member.value);
  }
  return request;
}

}  // namespace msprobe::view
