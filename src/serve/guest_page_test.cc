#include "serve/guest_page.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "serve/page.h"
#include "view/test_db.h"

namespace msprobe::serve {
namespace {

std::string Header(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

struct GuestPageTest : testing::Test {
  void SetUp() override {
    view::MakeCompareDb(dir / "c.vis.db");
    page = *GuestPage::Make(dir.path());
  }
  Response Get(std::string_view target, std::string_view token = {}) {
    Request request;
    request.method = "GET";
    request.target = target;
    request.host = "gpu01.example:6006";  // as TensorBoard was reached; its own server decides about that
    request.token = token;
    return page->Answer(request);
  }
  Response Post(std::string_view target, std::string_view body, const std::string& other_token = {}) {
    const std::string token = other_token.empty() ? Token() : other_token;
    Request request;
    request.method = "POST";
    request.target = target;
    request.host = "gpu01.example:6006";
    request.token = token;
    request.content_type = "application/json";
    request.body = body;
    request.has_body = true;
    request.body_bytes = body.size();
    return page->Answer(request);
  }
  std::string Token() {
    constexpr std::string_view kName = "msprobe-token\" content=\"";
    const std::string body = Get("/index.html").body;
    const size_t at = body.find(kName);
    return at == std::string::npos ? "" : body.substr(at + kName.size(), 32);
  }

  view::TestDir dir;
  std::unique_ptr<GuestPage> page;
};

TEST_F(GuestPageTest, GivesThePageWithItsTokenToFramesOfTheSameServerOnly) {
  const Response page_itself = Get("/index.html");
  EXPECT_EQ(page_itself.status, 200);
  EXPECT_EQ(Header(page_itself, "X-Frame-Options"), "SAMEORIGIN");
  const std::string policy = Header(page_itself, "Content-Security-Policy");
  EXPECT_NE(policy.find("frame-ancestors 'self'"), std::string::npos) << policy;
  EXPECT_EQ(policy.find("nonce"), std::string::npos) << policy;
  EXPECT_EQ(Token().size(), 32u);
}

TEST_F(GuestPageTest, QueriesNeedTheToken) {
  EXPECT_EQ(Get("/api/files").status, 403);
  EXPECT_EQ(Get("/api/files", "0123456789abcdef0123456789abcdef").status, 403);
  const Response files = Get("/api/files", Token());
  EXPECT_EQ(files.status, 200) << files.body;
  EXPECT_NE(files.body.find("\"c.vis.db\""), std::string::npos) << files.body;
  // An answer is for scripts: no frame may hold it.
  EXPECT_EQ(Header(files, "X-Frame-Options"), "DENY");
}

TEST_F(GuestPageTest, NothingOutsideIsReached) {
  const std::string token = Token();
  EXPECT_EQ(Get("/api/config?file=..%2F..%2Fetc%2Fpasswd", token).status, 400);
  EXPECT_EQ(Get("/../../etc/passwd", token).status, 404);
  EXPECT_EQ(Get("/c.vis.db", token).status, 404);
}

TEST_F(GuestPageTest, ADirectoryThatComesLaterIsFoundThen) {
  const std::string later = dir / "later";
  page = *GuestPage::Make(later);
  EXPECT_EQ(Get("/index.html").status, 200);
  const std::string token = Token();
  const Response missing = Get("/api/files", token);
  EXPECT_EQ(missing.status, 404);
  EXPECT_NE(missing.body.find("later"), std::string::npos) << missing.body;
  EXPECT_EQ(Get("/%61pi/files", token).status, 404) << "however the path is written";
  EXPECT_EQ(Get("/index.html?x=1").status, 200);
  std::filesystem::create_directory(later);
  EXPECT_EQ(Get("/api/files", token).status, 200);
}

TEST_F(GuestPageTest, ConvertsBelowTheDirectoryWhereACommandIsGiven) {
  const std::string request = R"({"target_path": "run", "output_path": "out"})";
  std::filesystem::create_directories(dir / "run/step0/rank0");
  dir.Write("run/step0/rank0/dump.json", "{}");
  EXPECT_NE(Get("/api/conversion", Token()).body.find("\"enabled\":false"), std::string::npos);
  EXPECT_EQ(Post("/api/convert", request).status, 403);
  EXPECT_EQ(Get("/api/dirs", Token()).status, 403);

  dir.Write("fake", "#!/bin/sh\npwd > out.txt\necho '{\"file\": \"./out/build_1.vis.db\"}'\n");
  chmod((dir / "fake").c_str(), 0755);
  page = *GuestPage::Make(dir.path(), dir / "fake");
  EXPECT_NE(Get("/api/dirs", Token()).body.find("\"run\""), std::string::npos);
  EXPECT_EQ(Post("/api/convert", request, "0123456789abcdef0123456789abcdef").status, 403);
  EXPECT_EQ(Post("/api/convert", R"({"target_path": "..", "output_path": "out"})").status, 400);
  const Response started = Post("/api/convert", request);
  EXPECT_EQ(started.status, 200) << started.body;
  std::string last;
  for (int i = 0; i < 12000 && last.find("\"done\"") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    last = Get("/api/conversion", Token()).body;
  }
  EXPECT_NE(last.find("\"file\":\"out/build_1.vis.db\""), std::string::npos) << last;
  EXPECT_TRUE(std::filesystem::exists(dir / "out.txt"));
}

TEST_F(GuestPageTest, ThreadsMayAskAtOnce) {
  const std::string token = Token();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) EXPECT_EQ(Get("/api/summary?file=c.vis.db&step=0&rank=0", token).status, 200);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(GuestHtml, TokenGoesIntoTheHeadAndHashesIntoTheHeader) {
  const std::string html =
      "<html><head><meta charset=\"utf-8\" />\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; "
      "script-src 'sha256-abc='; style-src 'x'\" /></head></html>";
  const std::string with = WithGuestToken(html, "T");
  EXPECT_NE(
      with.find("/><meta name=\"msprobe-host\" content=\"tensorboard\"><meta name=\"msprobe-token\" content=\"T\">\n"),
      std::string::npos);
  EXPECT_NE(GuestPolicy(html).find("script-src 'sha256-abc=';"), std::string::npos);
  EXPECT_NE(GuestPolicy("<p>no policy</p>").find("script-src 'none';"), std::string::npos);
  EXPECT_EQ(WithGuestToken("<p>no head</p>", "T"), "<p>no head</p>");
}

}  // namespace
}  // namespace msprobe::serve
