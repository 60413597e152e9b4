#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "serve/convert_request.h"
#include "serve/converter.h"
#include "serve/handler.h"
#include "view/test_db.h"

namespace msprobe::serve {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

struct ConvertApiTest : testing::Test {
  void SetUp() override {
    dir.Write("root/runs/a/step0/rank0/dump.json", "{}");
    dir.Write("root/runs/b b/step0/rank0/dump.json", "{}");
    dir.Write("root/map.yaml", "a: {b: c}");
    dir.Write("root/taken", "");
    dir.Write("root/text.txt", "");
    dir.Write("outside/dump.json", "{}");
    dir.Write("outside/x.yaml", "");
    fs::create_directory(dir / "root/.hidden");
    fs::create_directory_symlink(dir / "outside", dir / "root/link");
    fs::create_symlink(dir / "outside/x.yaml", dir / "root/link.yaml");
    fs::create_directory_symlink(dir / "root/runs", dir / "root/inner");
    dir.Write("fake", "#!/bin/sh\nexec sleep 20\n");
    chmod((dir / "fake").c_str(), 0755);
    viewer = *view::Viewer::Open(dir / "root");
    converter.emplace(dir / "fake", viewer->root());
    handler.emplace(viewer.get(), kToken, 6006, &*converter);
  }
  StatusOr<Words> Options(const std::string& body) const {
    return ConvertOptions(view::ServedTree(viewer->root()), body);
  }
  std::string Refused(const std::string& body) const {
    const auto options = Options(body);
    EXPECT_FALSE(options.ok()) << body;
    EXPECT_NE(options.status().code(), Code::kInternal) << body;
    return options.ok() ? "" : std::string(options.status().message());
  }
  Response Post(const std::string& target, const std::string& body, Request request = {}) const {
    request.method = "POST";
    request.target = target;
    request.host = "127.0.0.1:6006";
    if (request.token.empty()) request.token = kToken;
    if (request.content_type.empty()) request.content_type = "application/json";
    request.body = body;
    request.has_body = true;
    request.body_bytes = body.size();
    return handler->Answer(request);
  }
  Response Get(const std::string& target, const Handler& of) const {
    Request request;
    request.method = "GET";
    request.target = target;
    request.host = "127.0.0.1:6006";
    request.token = kToken;
    return of.Answer(request);
  }

  view::TestDir dir;
  std::unique_ptr<view::Viewer> viewer;
  std::optional<Converter> converter;
  std::optional<Handler> handler;
};

TEST_F(ConvertApiTest, OptionsBecomeWords) {
  EXPECT_EQ(*Options(R"({"target_path": "runs/a", "output_path": "new/graphs"})"),
            (Words{"--target_path", "./runs/a", "--output_path", "./new/graphs"}));
  EXPECT_EQ(*Options(R"({"target_path": ".", "golden_path": "runs/./b b/", "output_path": "runs", "layer_mapping": true,
                         "overflow_check": true, "fuzzy_match": false, "is_print_compare_log": true, "template": "",
                         "rank_size": [8, 4], "tp": [8, 4], "pp": [1, 1], "order": ["tp-cp-ep-dp-pp", "tp-pp"],
                         "layout": [], "engine": "ray", "thresholds": null, "suggest_mapping": "new.yaml"})"),
            (Words{"--target_path",
                   ".",
                   "--golden_path",
                   "./runs/b b",
                   "--output_path",
                   "./runs",
                   "--layer_mapping",
                   "--overflow_check",
                   "--is_print_compare_log",
                   "--suggest_mapping",
                   "./new.yaml",
                   "--engine",
                   "ray",
                   "--rank_size",
                   "8",
                   "4",
                   "--tp",
                   "8",
                   "4",
                   "--pp",
                   "1",
                   "1",
                   "--order",
                   "tp-cp-ep-dp-pp",
                   "tp-pp"}));
  EXPECT_EQ(Options(R"({"target_path": "runs/a", "output_path": "o", "layer_mapping": "map.yaml"})")->back(),
            "./map.yaml");
  EXPECT_EQ(Options(R"({"target_path": "runs/a", "output_path": "o", "template": "qwen2.5-vl:mindspeed-llamafactory"})")
                ->back(),
            "qwen2.5-vl:mindspeed-llamafactory");
}

TEST_F(ConvertApiTest, NoPathLeavesTheDirectory) {
  for (const std::string path :
       {"..", "../outside", "runs/../../outside", "/etc", "link", "link/x", "inner/a", "absent", "map.yaml",
        "a\\u0000b", "runs/a/../../..", "~", "$(id)", "./..", "runs/a\\u0000/../../../outside"}) {
    const std::string why = Refused(R"({"target_path": ")" + path + R"(", "output_path": "o"})");
    EXPECT_EQ(why.find('\n'), std::string::npos);
    Refused(R"({"target_path": "runs/a", "golden_path": ")" + path + R"(", "output_path": "o"})");
  }
  for (const std::string path : {"..", "../o", "/tmp/o", "link", "link/o", "inner/o", "taken", "taken/o", ".hidden/o",
                                 "o/.p", "a\\u0000b", "map.yaml"}) {
    Refused(R"({"target_path": "runs/a", "output_path": ")" + path + R"("})");
  }
  for (const std::string path :
       {"link.yaml", "link/x.yaml", "../outside/x.yaml", "text.txt", "/etc/passwd", "absent.yaml", "runs", "--plan"}) {
    const std::string before = R"({"target_path": "runs/a", "golden_path": "runs/a", "output_path": "o", )";
    Refused(before + R"("layer_mapping": ")" + path + R"("})");
    Refused(before + R"("thresholds": ")" + path + R"("})");
    Refused(before + R"("layout": [")" + path + R"("]})");
  }
  for (const std::string path : {"map.yaml", "link.yaml", "new.txt", "../new.yaml", "link/new.yaml", ".new.yaml"}) {
    Refused(R"({"target_path": "runs/a", "output_path": "o", "suggest_mapping": ")" + path + R"("})");
  }
}

TEST_F(ConvertApiTest, HostileBodies) {
  const std::string good = R"({"target_path": "runs/a", "output_path": "o", )";
  for (const std::string& body : Words{"",
                                       "{",
                                       "[]",
                                       "null",
                                       "1",
                                       "\"x\"",
                                       std::string(60000, '['),
                                       "{\"target_path\": \"runs/a\"}",
                                       "{\"output_path\": \"o\"}",
                                       "{\"target_path\": 1, \"output_path\": \"o\"}",
                                       good + "\"--part\": 1}",
                                       good + "\"part\": 1}",
                                       good + "\"json\": true}",
                                       good + "\"tp\": 8}",
                                       good + "\"tp\": [0]}",
                                       good + "\"tp\": [-1]}",
                                       good + "\"tp\": [1.5]}",
                                       good + "\"tp\": [1, 2, 3]}",
                                       good + "\"tp\": [1e30]}",
                                       good + "\"tp\": [\"8\"]}",
                                       good + "\"tp\": [NaN]}",
                                       good + "\"order\": [\"--plan\"]}",
                                       good + "\"order\": [\"tp pp\"]}",
                                       good + "\"engine\": \"sh\"}",
                                       good + "\"file_type\": \"exe\"}",
                                       good + "\"template\": \"list\"}",
                                       good + "\"overflow_check\": \"yes\"}",
                                       good + "\"layer_mapping\": {}}"}) {
    Refused(body);
    EXPECT_EQ(Post("/api/convert", body).status / 100, 4) << body.substr(0, 100);
  }
  EXPECT_FALSE(converter->Last());
}

TEST_F(ConvertApiTest, OnlyThePageMayStart) {
  const std::string body = R"({"target_path": "runs/a", "output_path": "o"})";
  Request request;
  request.token = "wrong";
  EXPECT_EQ(Post("/api/convert", body, request).status, 403);
  EXPECT_EQ(Post(fmt::format("/api/convert?token={}", kToken), body, request).status, 403);
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:6006", "http://127.0.0.1:6007", "two"}) {
    request = {};
    request.origin = origin;
    EXPECT_EQ(Post("/api/convert", body, request).status, 403) << origin;
  }
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    request = {};
    request.content_type = type;
    EXPECT_EQ(Post("/api/convert", body, request).status, 415) << type;
  }
  EXPECT_EQ(Get("/api/convert", *handler).status, 405);
  EXPECT_EQ(Post("/api/files", body).status, 405);
  EXPECT_EQ(Post("/api/conversion", body).status, 405);
  EXPECT_FALSE(converter->Last());
}

TEST_F(ConvertApiTest, StartWatchCancel) {
  const std::string body = R"({"target_path": "runs/a", "output_path": "o"})";
  EXPECT_NE(Get("/api/conversion", *handler).body.find("\"conversion\":null"), std::string::npos);
  Request own;
  own.origin = "http://localhost:6006";
  const Response started = Post("/api/convert", body, own);
  EXPECT_EQ(started.status, 200) << started.body;
  EXPECT_NE(started.body.find(R"("id":1,"state":"running","percent":0)"), std::string::npos) << started.body;
  EXPECT_EQ(Post("/api/convert", body).status, 409);
  EXPECT_EQ(Post("/api/convert/cancel", R"({"id": 7})").status, 409);
  EXPECT_EQ(Post("/api/convert/cancel", "{}").status, 400);
  EXPECT_EQ(Post("/api/convert/cancel", R"({"id": 1})").status, 200);
  std::string last;
  for (int i = 0; i < 12000; ++i) {
    last = Get("/api/conversion", *handler).body;
    if (last.find("\"state\":\"cancelled\"") != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ADD_FAILURE() << last;
}

TEST_F(ConvertApiTest, Directories) {
  EXPECT_EQ(Get("/api/dirs", *handler).body,
            R"({"path":"","kind":"","dirs":[{"name":"runs","kind":""}],"files":["map.yaml"],"cut":false})");
  EXPECT_EQ(Get("/api/dirs?path=runs", *handler).body,
            R"({"path":"runs","kind":"","dirs":[{"name":"a","kind":"run"},{"name":"b b","kind":"run"}],"files":[],)"
            R"("cut":false})");
  EXPECT_NE(
      Get("/api/dirs?path=runs%2Fa", *handler).body.find(R"("kind":"run","dirs":[{"name":"step0","kind":"step"}])"),
      std::string::npos);
  for (const char* path : {"..", "%2Fetc", "runs%2F..%2F..", "link", "inner", "absent", "map.yaml", "a%00b", "%FF"}) {
    const Response answer = Get(std::string("/api/dirs?path=") + path, *handler);
    EXPECT_EQ(answer.status / 100, 4) << path << answer.body;
  }
}

TEST_F(ConvertApiTest, ReadOnly) {
  const Handler closed(viewer.get(), kToken, 6006);
  EXPECT_NE(Get("/api/conversion", closed).body.find("\"enabled\":false"), std::string::npos);
  EXPECT_EQ(Get("/api/dirs", closed).status, 403);
  Request request;
  request.method = "POST";
  request.target = "/api/convert";
  request.host = "127.0.0.1:6006";
  request.token = kToken;
  request.content_type = "application/json";
  request.body = "{}";
  request.has_body = true;
  request.body_bytes = 2;
  EXPECT_EQ(closed.Answer(request).status, 403);
}

}  // namespace
}  // namespace msprobe::serve
