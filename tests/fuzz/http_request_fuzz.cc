// Requests: the first lines of the input are method, target, Host and token; "$" in the token stands for the right one.
// What follows is the body of a POST.
#include <array>
#include <filesystem>
#include <string>

#include "fuzz_file.h"
#include "json/parser.h"
#include "serve/handler.h"
#include "view/query/viewer.h"

namespace {

using namespace msprobe;

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";

struct Server {
  Server() {
    std::string name = (std::filesystem::temp_directory_path() / "msprobe_fuzz_XXXXXX").string();
    fuzz::Check(mkdtemp(name.data()) != nullptr, "a directory can be made");
    auto opened = view::Viewer::Open(name);
    fuzz::Check(opened.ok(), "an empty directory opens");
    viewer = *std::move(opened);
    handler = std::make_unique<serve::Handler>(viewer.get(), std::string(kToken), 6006);
    std::filesystem::remove(name);
  }
  std::unique_ptr<view::Viewer> viewer;
  std::unique_ptr<serve::Handler> handler;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Server server;
  std::array<std::string_view, 4> lines;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (std::string_view& line : lines) {
    const size_t end = rest.find('\n');
    line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  serve::Request request;
  request.method = lines[0];
  request.target = lines[1];
  request.host = lines[2];
  request.token = lines[3] == "$" ? kToken : lines[3];
  if (request.method == "POST") {
    request.content_type = "application/json";
    request.body = rest;
    request.body_bytes = rest.size();
    request.has_body = !rest.empty();
  }
  const serve::Response response = server.handler->Answer(request);
  const bool known =
      request.host == "127.0.0.1:6006" || request.host.size() == std::string_view("localhost:6006").size();
  const bool right = request.token == kToken || request.target.find("token=") != std::string_view::npos;
  if (response.status == 200) fuzz::Check(known && right, "an answer needs the host and the token");
  if (response.content_type.rfind("application/json", 0) == 0) {
    JsonDoc doc;
    fuzz::Check(ParseJson(response.body, "answer", &doc).ok() && doc.IsObject(), "an answer is a JSON object");
    if (response.status != 200) fuzz::Check(doc.Find("error") != nullptr, "a refusal says why");
  }
  return 0;
}
