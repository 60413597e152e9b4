#include "serve/convert_api.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "dump/json.h"
#include "match/layer_templates.h"
#include "serve/convert_request.h"
#include "view/json_parts.h"
#include "view/served_tree.h"

namespace msprobe::serve {
namespace {

using view::Array;
using view::Key;
using view::Text;

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

void AppendConversion(std::string& out, const Conversion& c) {
  out += fmt::format("{{\"id\":{},\"state\":\"{}\",\"percent\":{},\"seconds\":{:.1f}", c.id, StateName(c.state),
                     c.percent, c.seconds);
  Key(out, "command");
  view::Texts(out, c.command);
  Key(out, "file");
  c.file.empty() ? void(out += "null") : Text(out, c.file);
  Key(out, "text");
  Text(out, c.text);
  Key(out, "error");
  Text(out, c.error);
  Key(out, "log");
  view::Texts(out, c.log);
  out += '}';
}

ApiReply ConversionReply(Converter* converter) {
  std::string out = "{\"enabled\":";
  out += converter ? "true" : "false";
  Key(out, "templates");
  Array(out, LayerTemplates(), [&](const LayerTemplate& t) { Text(out, t.name); });
  Key(out, "conversion");
  const auto last = converter ? converter->Last() : std::nullopt;
  if (last) {
    AppendConversion(out, *last);
  } else {
    out += "null";
  }
  return {200, out + "}"};
}

/// {"id": N}
StatusOr<int64_t> ConversionId(std::string_view body) {
  JsonDoc doc;
  if (Status parsed = ParseJson(body, "the request", &doc); !parsed.ok()) return UsageError(parsed.message());
  const JsonValue* id = Find(doc, "id");
  if (!id || !id->IsInt64()) return UsageError("id is missing: send the id of the conversion that runs");
  return id->GetInt64();
}

ApiReply List(Converter* converter, const RequestTarget& target) {
  const auto list = view::ServedTree(converter->directory()).List(target.Get("path"));
  if (!list.ok()) return Failed(list.status());
  std::string out = "{\"path\":";
  Text(out, list->path);
  Key(out, "kind");
  Text(out, view::DumpKindName(list->kind));
  Key(out, "dirs");
  Array(out, list->directories, [&](const view::TreeListing::Directory& d) {
    out += "{\"name\":";
    Text(out, d.name);
    Key(out, "kind");
    Text(out, view::DumpKindName(d.kind));
    out += '}';
  });
  Key(out, "files");
  view::Texts(out, list->files);
  Key(out, "cut");
  out += list->cut ? "true" : "false";
  return {200, out + "}"};
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
