#include "serve/convert_api.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "json/parser.h"
#include "json/writer.h"
#include "match/layer_templates.h"
#include "serve/convert_request.h"
#include "view/file/served_tree.h"

namespace msprobe::serve {
namespace {

constexpr std::string_view kStart = "/api/convert", kCancel = "/api/convert/cancel";
constexpr std::string_view kLast = "/api/conversion", kDirs = "/api/dirs";
constexpr std::array kRoutes{ServedRoute{"POST", kStart}, ServedRoute{"POST", kCancel}, ServedRoute{"GET", kLast},
                             ServedRoute{"GET", kDirs}};
constexpr const char* kReadOnly =
    "dumps are not converted here: start msprobe serve or TensorBoard with a directory and without what forbids it "
    "(--no_convert, --msprobe_no_convert, MSPROBE_NO_CONVERT)";

bool IsRoute(std::string_view method, std::string_view path) {
  return std::any_of(kRoutes.begin(), kRoutes.end(),
                     [&](const ServedRoute& route) { return route.method == method && route.path == path; });
}

ApiReply Failed(const Status& status) {
  return ErrorReply(status.code() == Code::kUsage      ? 400
                    : status.code() == Code::kBadInput ? 404
                                                       : 500,
                    status.message());
}

std::string_view StateName(Conversion::State state) {
  switch (state) {
    case Conversion::State::kRunning: return "running";
    case Conversion::State::kCancelling: return "cancelling";
    case Conversion::State::kDone: return "done";
    case Conversion::State::kCancelled: return "cancelled";
    case Conversion::State::kFailed: break;
  }
  return "failed";
}

void WriteConversion(JsonWriter* json, const Conversion& c) {
  json->BeginObject();
  json->Member("id", c.id);
  json->Member("state", StateName(c.state));
  json->Member("percent", c.percent);
  json->RawMember("seconds", fmt::format("{:.1f}", c.seconds));
  json->Member("command", c.command);
  c.file.empty() ? json->Member("file", nullptr) : json->Member("file", c.file);
  json->Member("text", c.text);
  json->Member("error", c.error.english);
  json->Member("error_zh", c.error.chinese);
  json->ArrayMember("log", c.log, [&](const Conversion::Line& line) { json->String(line.english); });
  json->ArrayMember("log_zh", c.log, [&](const Conversion::Line& line) { json->String(line.chinese); });
  json->EndObject();
}

ApiReply ConversionReply(Converter* converter) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("enabled", converter != nullptr);
  json.ArrayMember("templates", LayerTemplates(), [&](const LayerTemplate& t) { json.String(t.name); });
  json.Key("conversion");
  const auto last = converter ? converter->Last() : std::nullopt;
  last ? WriteConversion(&json, *last) : json.Null();
  json.EndObject();
  return {200, json.Take()};
}

/// {"id": N}
StatusOr<int64_t> ConversionId(std::string_view body) {
  JsonDoc doc;
  if (Status parsed = ParseJson(body, "the request", &doc); !parsed.ok()) return UsageError(parsed.message());
  const JsonValue* id = doc.Find("id");
  if (!id || !id->IsInt()) return UsageError("id is missing: send the id of the conversion that runs");
  return id->Int();
}

ApiReply List(Converter* converter, const RequestTarget& target) {
  const auto list = view::ServedTree(converter->directory()).List(target.Get("path"));
  if (!list.ok()) return Failed(list.status());
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("path", list->path);
  json.Member("kind", view::DumpKindName(list->kind));
  json.ArrayMember("dirs", list->directories, [&](const view::TreeListing::Directory& d) {
    json.BeginObject();
    json.Member("name", d.name);
    json.Member("kind", view::DumpKindName(d.kind));
    json.EndObject();
  });
  json.Member("files", list->files);
  json.Member("cut", list->cut);
  json.EndObject();
  return {200, json.Take()};
}

}  // namespace

std::vector<ServedRoute> ConvertRoutes() { return {kRoutes.begin(), kRoutes.end()}; }

std::optional<ApiReply> AnswerConvertQuery(Converter* converter, const RequestTarget& target) {
  if (!IsRoute("GET", target.path)) return std::nullopt;
  if (target.path == kLast) return ConversionReply(converter);
  if (!converter) return ErrorReply(403, kReadOnly);
  return List(converter, target);
}

bool IsConvertChange(std::string_view path) { return IsRoute("POST", path); }

ApiReply AnswerConvert(Converter* converter, const RequestTarget& target, std::string_view body) {
  if (!converter) return ErrorReply(403, kReadOnly);
  if (target.path == kCancel) {
    const auto id = ConversionId(body);
    if (!id.ok()) return Failed(id.status());
    if (!converter->Cancel(*id)) return ErrorReply(409, "that conversion does not run any more: load the page again");
    return ConversionReply(converter);
  }
  auto options = ConvertOptions(view::ServedTree(converter->directory()), body);
  if (!options.ok()) return Failed(options.status());
  if (!converter->Start(*std::move(options))) {
    return ErrorReply(409, "another conversion runs: wait for it, or cancel it");
  }
  return ConversionReply(converter);
}

}  // namespace msprobe::serve
