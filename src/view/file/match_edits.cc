#include "view/file/match_edits.h"

#include <fmt/core.h>

#include "base/text.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe::view {
namespace {

constexpr size_t kMaxNameBytes = 64 << 10;  // as in a graph

Status BadFile(std::string_view shown, std::string_view what) {
  return BadInput(fmt::format("{} is not a list of matches ({}): remove it, or write it again", shown, what));
}

bool IsName(std::string_view name) { return !name.empty() && name.size() <= kMaxNameBytes; }

StatusOr<MatchEdits> ParseGraph(const JsonValue& graph, std::string_view shown) {
  MatchEdits edits;
  if (const JsonValue* made = graph.Find("made")) {
    if (!made->IsObject()) return BadFile(shown, "\"made\" is not an object");
    for (const auto& pair : made->Members()) {
      if (!IsName(pair.name) || !IsName(pair.value.Text()))
        return BadFile(shown, "a pair in \"made\" is not two names");
      edits.made.insert_or_assign(std::string(pair.name), std::string(pair.value.Text()));
    }
  }
  if (const JsonValue* cancelled = graph.Find("cancelled")) {
    if (!cancelled->IsArray()) return BadFile(shown, "\"cancelled\" is not a list");
    for (const JsonValue& name : cancelled->Items()) {
      if (!IsName(name.Text())) return BadFile(shown, "an entry of \"cancelled\" is not a name");
      edits.cancelled.emplace(name.Text());
    }
  }
  return edits;
}

constexpr JsonStyle kStyle{.indent = 4, .comma = ",", .ascii = false};

}  // namespace

StatusOr<FileEdits> ParseFileEdits(std::string_view json, std::string_view shown) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(json, shown, &doc));
  const JsonValue* format = doc.Find("msprobe_matches");
  if (format == nullptr || !format->IsInt32() || format->Int32() != 1) return BadFile(shown, "a different format");
  const JsonValue* graphs = doc.Find("graphs");
  if (graphs == nullptr || !graphs->IsArray()) return BadFile(shown, "\"graphs\" is not a list");
  FileEdits out;
  for (const JsonValue& graph : graphs->Items()) {
    const JsonValue *step = graph.Find("step"), *rank = graph.Find("rank");
    if (step == nullptr || rank == nullptr || !step->IsInt() || !rank->IsInt())
      return BadFile(shown, "a graph has no step or rank");
    MSP_ASSIGN_OR_RETURN(MatchEdits edits, ParseGraph(graph, shown));
    if (!edits.empty()) out.insert_or_assign({step->Int(), rank->Int()}, std::move(edits));
  }
  return out;
}

// A name on a line of its own: people look at this file.
std::string FileEditsJson(const FileEdits& all) {
  std::string out = "{\"msprobe_matches\": 1, \"graphs\": [";
  const char* comma = "";
  for (const auto& [key, edits] : all) {
    out += fmt::format("{}\n  {{\"step\": {}, \"rank\": {}, \"made\": {{", comma, key.first, key.second);
    comma = ",";
    JsonWriter made(&out, kStyle, 1);
    for (const auto& [npu, bench] : edits.made) made.Member(npu, bench);
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
    return BadInput(fmt::format(
        "{} is not a configuration of matches ({}): it holds {{\"target node\": \"golden node\"}}", shown, what));
  };
  if (!doc.IsObject()) return wrong("it is not a JSON object");
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(doc.size());
  for (const auto& pair : doc.Members()) {
    if (!IsName(pair.name) || !IsName(pair.value.Text())) return wrong("an entry is not two names");
    pairs.emplace_back(pair.name, pair.value.Text());
  }
  return pairs;
}

std::string MatchConfigJson(const MatchEdits& edits) {
  JsonWriter json(kStyle);
  json.Object([&] {
    for (const auto& [npu, bench] : edits.made) json.Member(npu, bench);
  });
  return json.Take();
}

StatusOr<MatchRequest> ParseMatchRequest(std::string_view json) {
  JsonDoc doc;
  if (Status parsed = ParseJson(json, "the body", &doc); !parsed.ok()) return UsageError(parsed.message());
  if (!doc.IsObject()) return UsageError("the body is not a JSON object: send one, see docs/page_api.md");
  MatchRequest request;
  for (const auto& member : doc.Members()) {
    const std::string_view key = member.name;
    if (key == "descendants") {
      if (!member.value.IsBool()) return UsageError("descendants is neither true nor false: send one of them");
      request.descendants = member.value.Bool();
      continue;
    }
    std::string* into = key == "npu"        ? &request.target
                        : key == "bench"    ? &request.golden
                        : key == "config"   ? &request.config
                        : key == "revision" ? &request.revision
                                            : nullptr;
    if (into == nullptr) return UsageError("the body has a member that means nothing here: see docs/page_api.md");
    if (!member.value.IsString() || member.value.size() > kMaxNameBytes)
      return UsageError(fmt::format("{} is not text: send a text", key));
    *into = member.value.Text();
  }
  return request;
}

}  // namespace msprobe::view
