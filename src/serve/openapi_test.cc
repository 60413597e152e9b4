// docs/openapi.yaml names every path that the server answers, and no other.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "serve/handler.h"

namespace msprobe::serve {
namespace {

// "GET /api/files", from the lines "  /api/files:" and "    get:" of the file's part `paths`.
std::set<std::string> Described() {
  std::ifstream file(MSPROBE_SOURCE_DIR "/docs/openapi.yaml");
  std::set<std::string> out;
  std::string line, path;
  bool inside = false;
  while (std::getline(file, line)) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#') inside = line == "paths:";
    if (!inside) continue;
    if (line.rfind("  /", 0) == 0) path = line.substr(2, line.find(':') - 2);
    if (line.rfind("    get:", 0) == 0) out.insert("GET " + path);
    if (line.rfind("    post:", 0) == 0) out.insert("POST " + path);
  }
  return out;
}

TEST(OpenApi, NamesEveryRouteAndNoOther) {
  std::set<std::string> served;
  for (const ServedRoute& route : Handler::Routes()) {
    served.insert(std::string(route.method) + " " + std::string(route.path));
  }
  EXPECT_EQ(served.size(), Handler::Routes().size());
  EXPECT_EQ(Described(), served);
}

TEST(OpenApi, WhatIsNoRouteIsNotThere) {
  const auto viewer = view::Viewer::Open(MSPROBE_SOURCE_DIR "/docs");
  ASSERT_TRUE(viewer.ok());
  const Handler handler(viewer->get(), "t", 1);
  for (const char* method : {"GET", "POST"}) {
    for (const char* path : {"/api/", "/api/file", "/api/filesx", "/api/match", "/api/convert/", "/api", "//"}) {
      Request request;
      request.method = method;
      request.target = path;
      request.host = "127.0.0.1:1";
      request.token = "t";
      const int status = handler.Answer(request).status;
      EXPECT_EQ(status, method == std::string_view("GET") ? 404 : 405) << method << " " << path;
    }
  }
}

}  // namespace
}  // namespace msprobe::serve
