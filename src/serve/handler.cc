#include "serve/handler.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "report/check_page.h"
#include "report/fill_page.h"
#include "serve/convert_api.h"
#include "serve/page.h"
#include "serve/token.h"

namespace msprobe::serve {
namespace {

constexpr std::array<std::string_view, 2> kPagePaths{"/", "/index.html"};
constexpr std::string_view kCheckPath = "/check";    // a table of acc_check as a page
constexpr std::string_view kReportPath = "/report";  // a report that a tool has written
constexpr const char* kJson = "application/json; charset=utf-8";
constexpr const char* kHtml = "text/html; charset=utf-8";

void AddCommonHeaders(Response* response, const char* frames = "DENY") {
  response->headers.emplace_back("X-Content-Type-Options", "nosniff");
  response->headers.emplace_back("Referrer-Policy", "no-referrer");
  response->headers.emplace_back("Cache-Control", "no-store");
  response->headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response->headers.emplace_back("X-Frame-Options", frames);
}

Response Json(int status, std::string text) {
  Response response;
  response.status = status;
  response.content_type = kJson;
  response.body = std::move(text);
  AddCommonHeaders(&response);
  response.headers.emplace_back("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  return response;
}

Response Error(int status, std::string_view text) { return Json(status, ErrorReply(status, text).json); }

// Somebody typed the address without its token, or came back to a tab of an earlier run: that is a person.
Response NoToken() {
  Response response;
  response.status = 403;
  response.content_type = kHtml;
  response.body = NoTokenHtml();
  AddCommonHeaders(&response);
  response.headers.emplace_back("Content-Security-Policy",
                                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  return response;
}

}  // namespace

Handler::Handler(view::Viewer* viewer, std::string token, uint16_t port, Converter* converter)
    : viewer_(viewer), converter_(converter), token_(std::move(token)), port_(std::to_string(port)) {}

Handler::Handler(view::Viewer* viewer, std::string token, Guest, Converter* converter)
    : viewer_(viewer), converter_(converter), token_(std::move(token)), guest_(true) {}

Response Handler::Refusal(int status, std::string_view text) {
  Response response = Error(status, text);
  response.close = true;
  return response;
}

// A name of the attacker's that resolves to 127.0.0.1 makes a browser send us its pages' requests; they carry that
// name.
bool Handler::KnownHost(std::string_view host) const {
  if (guest_) return true;
  const size_t colon = host.rfind(':');
  const std::string_view name = host.substr(0, colon);
  const std::string_view port = colon == std::string_view::npos ? std::string_view("80") : host.substr(colon + 1);
  return port == port_ && (name == "127.0.0.1" || EqualsNoCase(name, "localhost"));
}

Response Handler::Page() const { return WithNonce(PageHtml()); }

Response Handler::CheckTablePage(std::string_view file) const {
  const auto table = viewer_->CheckTable(file);
  if (!table.ok()) return Error(table.status().code() == Code::kUsage ? 400 : 404, table.status().message());
  const auto files = viewer_->Files();
  std::vector<std::string> graphs;
  if (files.ok()) {
    for (const view::FoundFile& graph : files->files) graphs.push_back(graph.file);
  }
  const auto html = CheckPage(*table, graphs);
  if (!html.ok()) return Error(400, html.status().message());
  return WithNonce(*html);
}

Response Handler::ReportPageOf(std::string_view file) const {
  const auto path = viewer_->Report(file);
  if (!path.ok()) return Error(path.status().code() == Code::kUsage ? 400 : 404, path.status().message());
  const auto html = ReportAgain(*path);
  if (!html.ok()) return Error(400, html.status().message());
  return WithNonce(*html);
}

Response Handler::WithNonce(std::string_view html) {
  auto nonce = MakeToken();
  if (!nonce.ok()) return Error(500, nonce.status().message());
  Response response;
  response.content_type = kHtml;
  response.body = WithScriptNonce(html, *nonce);
  AddCommonHeaders(&response);
  response.headers.emplace_back("Content-Security-Policy", ContentSecurityPolicy(*nonce));
  return response;
}

// Pages of other sites can neither read the token out of it nor put it into a frame of theirs.
Response Handler::GuestPage() const {
  Response response;
  response.content_type = kHtml;
  response.body = WithGuestToken(PageHtml(), token_);
  AddCommonHeaders(&response, "SAMEORIGIN");
  response.headers.emplace_back("Content-Security-Policy", GuestPolicy(PageHtml()));
  return response;
}

// A page of another site cannot send what it is not allowed to read, unless its browser forgets to say where it is
// from; the token in a header of its own, which such a page does not know, stands behind this.
bool Handler::OwnOrigin(const Request& request) const {
  if (guest_ || request.origin.empty()) return true;  // the host's matter; no browser
  constexpr std::string_view kScheme = "http://";
  return request.origin.substr(0, kScheme.size()) == kScheme && KnownHost(request.origin.substr(kScheme.size()));
}

std::optional<Response> Handler::RefuseHead(const Request& request) const {
  if (!KnownHost(request.host)) {
    return Refusal(
        403,
        fmt::format("the Host header is not 127.0.0.1:{} or localhost:{}: open the address that msprobe serve printed; "
                    "through ssh -L use the same port on both ends",
                    port_, port_));
  }
  const bool asks = request.method == "GET" || request.method == "HEAD";
  auto target = ParseTarget(request.target);
  // Which route was meant cannot be told: Change says what is wrong with the address, to who has the token.
  if (!target.ok() && request.method == "POST") return std::nullopt;
  const bool change = target.ok() && (IsChange(target->path) || IsConvertChange(target->path));
  if (asks != change && (asks || request.method == "POST")) return std::nullopt;
  Response response = Refusal(405, change ? "this is answered to POST only: see docs/page_api.md"
                                          : "only GET and HEAD are answered: nothing here can be changed");
  response.headers.emplace_back("Allow", change ? "POST" : "GET, HEAD");
  return response;
}

std::optional<Response> Handler::RefuseBody(const Request& request) const {
  if (auto refusal = RefuseHead(request)) return refusal;
  if (request.method != "POST") {
    if (!request.has_body) return std::nullopt;
    return Refusal(400, "a request here has no body: put the parameters into the address");
  }
  if (!OwnOrigin(request)) return Refusal(403, "the request comes from another site: nothing is changed for it");
  if (!SameToken(request.token, token_))
    return Refusal(403, "the X-Msprobe-Token header is missing or wrong: open the address that msprobe serve printed");
  if (!guest_ && request.content_type.substr(0, request.content_type.find(';')) != "application/json")
    return Refusal(415, "the body is not application/json: send JSON and say so in Content-Type");
  if (!request.body_bytes) return Refusal(411, "the request does not say how long its body is: send Content-Length");
  if (*request.body_bytes > kMaxBodyBytes) return Refusal(413, "the body is larger than 64 KiB: send fewer words");
  return std::nullopt;
}

Response Handler::Change(const Request& request) const {
  auto target = ParseTarget(request.target);
  if (!target.ok()) return Error(400, target.status().message());
  ApiReply reply = IsConvertChange(target->path) ? AnswerConvert(converter_, *target, request.body)
                                                 : AnswerChange(viewer_, *target, request.body);
  return Json(reply.status, std::move(reply.json));
}

std::vector<ServedRoute> Handler::Routes() {
  std::vector<ServedRoute> routes;
  for (const std::string_view path : kPagePaths) routes.push_back({"GET", path});
  routes.push_back({"GET", kCheckPath});
  routes.push_back({"GET", kReportPath});
  for (const ServedRoute& route : ApiRoutes()) routes.push_back(route);
  for (const ServedRoute& route : ConvertRoutes()) routes.push_back(route);
  return routes;
}

bool Handler::ShowsToken(const Request& request) const {
  if (guest_) return true;  // whom the host lets in
  if (!KnownHost(request.host)) return false;
  if (!request.token.empty()) return SameToken(request.token, token_);
  const auto target = ParseTarget(request.target);
  return target.ok() && SameToken(target->Get("token"), token_);
}

Response Handler::Answer(const Request& request) const {
  if (auto refusal = RefuseBody(request)) return *std::move(refusal);
  if (request.method == "POST") return Change(request);
  auto target = ParseTarget(request.target);
  if (!target.ok()) return Error(400, target.status().message());
  const bool is_api = target->path.rfind("/api/", 0) == 0;
  const bool is_check = target->path == kCheckPath && !guest_, is_report = target->path == kReportPath && !guest_;
  if (!is_api && !is_check && !is_report &&
      std::find(kPagePaths.begin(), kPagePaths.end(), target->path) == kPagePaths.end()) {
    return Error(404, "there is nothing here: the page is at /");
  }
  if (guest_ && !is_api) return GuestPage();
  const std::string_view token = request.token.empty() ? target->Get("token") : request.token;
  if (!SameToken(token, token_)) {
    if (!is_api) return NoToken();
    return Error(403, "the token is missing or wrong: open the address that msprobe serve printed");
  }
  if (is_check) return CheckTablePage(target->Get("file"));
  if (is_report) return ReportPageOf(target->Get("file"));
  if (!is_api) return Page();
  auto about_dumps = AnswerConvertQuery(converter_, *target);
  ApiReply reply = about_dumps ? *std::move(about_dumps) : AnswerApi(viewer_, *target);
  return Json(reply.status, std::move(reply.json));
}

}  // namespace msprobe::serve
