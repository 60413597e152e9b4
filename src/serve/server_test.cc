#include "serve/server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "view/test_db.h"

namespace msprobe::serve {
namespace {

// A bare socket, so that the tests can send what no HTTP library would.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience{60, 0};  // the server hangs
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { close(fd_); }
  bool connected() const { return connected_; }
  void Send(const std::string& bytes) { (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Until the server closes.
  std::string ReadAll() {
    std::string all;
    char buffer[65536];
    for (ssize_t n; (n = recv(fd_, buffer, sizeof buffer, 0)) > 0;) all.append(buffer, static_cast<size_t>(n));
    return all;
  }
  // Whether the server closes, before patience ends.
  bool Ends() {
    char buffer[4096];
    ssize_t n = 0;
    while ((n = recv(fd_, buffer, sizeof buffer, 0)) > 0) {
    }
    return n == 0 || errno == ECONNRESET;  // reset: it closed before it had read all that was sent
  }
  // Neither answered nor closed so far.
  bool Waits() const {
    char c;
    return recv(fd_, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  // One answer by its Content-Length; what follows it stays unread.
  std::string ReadOne(bool head_only = false) {
    std::string all;
    char c;
    while (all.find("\r\n\r\n") == std::string::npos && recv(fd_, &c, 1, 0) == 1) all += c;
    const size_t at = all.find("Content-Length: ");
    size_t want = at == std::string::npos || head_only ? 0 : std::stoul(all.substr(at + 16));
    for (; want > 0 && recv(fd_, &c, 1, 0) == 1; --want) all += c;
    return all;
  }

 private:
  int fd_;
  bool connected_ = false;
};

struct ServerTest : testing::Test {
  void StartWith(ServerOptions options) {
    if (server) Stop();
    server = *Server::Start(*view::Viewer::Open(dir.path()), options);
    running = std::thread([this] { EXPECT_TRUE(server->Run().ok()); });
  }
  void SetUp() override {
    view::MakeCompareDb(dir / "c.vis.db");
    StartWith({});
  }
  void Stop() {
    server->Stop();
    running.join();
  }
  void TearDown() override { Stop(); }

  std::string Ask(const std::string& bytes) {
    Client client(server->port());
    client.Send(bytes);
    return client.ReadAll();
  }
  std::string Host() const { return fmt::format("Host: 127.0.0.1:{}\r\n", server->port()); }
  std::string Token() const { return fmt::format("X-Msprobe-Token: {}\r\n", server->token()); }
  std::string Get(const std::string& target) {
    return Ask(fmt::format("GET {} HTTP/1.1\r\n{}{}Connection: close\r\n\r\n", target, Host(), Token()));
  }
  static int StatusOf(const std::string& answer) {
    return answer.size() > 12 && answer.rfind("HTTP/1.", 0) == 0 ? std::stoi(answer.substr(9, 3)) : -1;
  }
  static std::string Body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

  view::TestDir dir;
  std::unique_ptr<Server> server;
  std::thread running;
};

TEST_F(ServerTest, Page) {
  const std::string answer =
      Ask(fmt::format("GET /?token={} HTTP/1.1\r\n{}Connection: close\r\n\r\n", server->token(), Host()));
  EXPECT_EQ(StatusOf(answer), 200) << answer;
  for (const char* header :
       {"Content-Type: text/html", "Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer", "Cache-Control: no-store"}) {
    EXPECT_NE(answer.find(header), std::string::npos) << header;
  }
  EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
  EXPECT_NE(answer.find("<title>"), std::string::npos);
  EXPECT_EQ(server->url(), fmt::format("http://127.0.0.1:{}/?token={}", server->port(), server->token()));
}

TEST_F(ServerTest, Queries) {
  EXPECT_EQ(
      Body(Get("/api/files")).rfind(fmt::format("{{\"root\":\"{}\",\"files\":[{{\"file\":\"c.vis.db\"", dir.path()), 0),
      0u);
  for (const char* target :
       {"/api/config?file=c.vis.db", "/api/summary?file=c.vis.db&step=0&rank=0",
        "/api/children?file=c.vis.db&step=0&rank=0&side=NPU&name=DefaultModel",
        "/api/path?file=c.vis.db&step=0&rank=0&side=Bench&name=Functional.relu.0.forward",
        "/api/node?file=c.vis.db&step=0&rank=0&name=Functional.relu.0.forward",
        "/api/search?file=c.vis.db&step=0&rank=0&side=NPU&q=lin&limit=2&level=error,none&leaf=1",
        "/api/seek?file=c.vis.db&step=0&rank=0&level=error&direction=-1", "/api/matrix?file=c.vis.db",
        "/api/links?file=c.vis.db&step=0&rank=0&name=Functional.relu.0.forward", "/api/verdict?file=c.vis.db",
        "/api/findings?file=c.vis.db&step=0&rank=0", "/api/layers?file=c.vis.db&step=0&rank=0",
        "/api/activations?file=c.vis.db&step=0&rank=0"}) {
    const std::string answer = Get(target);
    EXPECT_EQ(StatusOf(answer), 200) << target << answer;
    EXPECT_EQ(Body(answer).front(), '{');
  }
}

TEST_F(ServerTest, WrongQueriesSayWhatIsWrong) {
  const std::pair<const char*, int> cases[] = {{"/api/nothing", 404},
                                               {"/nothing", 404},
                                               {"/api/config", 400},
                                               {"/api/config?file=absent.vis.db", 404},
                                               {"/api/config?file=../c.vis.db", 400},
                                               {"/api/config?file=%2e%2e%2fc.vis.db", 400},
                                               {"/api/config?file=..%252fc.vis.db", 404},
                                               {"/api/config?file=%2Fetc%2Fpasswd", 400},
                                               {"/api/config?file=c.vis.db%00.vis.db", 400},
                                               {"/../../etc/passwd", 404},
                                               {"/api/config?file=%zz", 400},
                                               {"/api/summary?file=c.vis.db&step=0", 400},
                                               {"/api/summary?file=c.vis.db&step=x&rank=0", 400},
                                               {"/api/summary?file=c.vis.db&step=5&rank=0", 404},
                                               {"/api/children?file=c.vis.db&step=0&rank=0&name=absent", 404},
                                               {"/api/children?file=c.vis.db&step=0&rank=0&side=Other", 400},
                                               {"/api/children?file=c.vis.db&step=0&rank=0&limit=-1", 400},
                                               {"/api/node?file=c.vis.db&step=0&rank=0", 400},
                                               {"/api/node?file=c.vis.db&step=0&rank=0&name=%27%20OR%201=1--", 404},
                                               {"/api/search?file=c.vis.db&step=0&rank=0&level=bad", 400},
                                               {"/api/seek?file=c.vis.db&step=0&rank=0&direction=2", 400},
                                               {"/api/seek?file=c.vis.db&step=0&rank=0&from=absent", 404},
                                               {"/api/links?file=c.vis.db&step=0&rank=0", 400},
                                               {"/api/layers?file=c.vis.db&step=9&rank=0", 404},
                                               {"/api/matrix", 400},
                                               {"/api/search?file=c.vis.db&step=0&rank=0&q=a&q=b", 400}};
  for (const auto& [target, status] : cases) {
    const std::string answer = Get(target);
    EXPECT_EQ(StatusOf(answer), status) << target << "\n" << answer;
    EXPECT_EQ(Body(answer).rfind("{\"error\":\"", 0), 0u) << answer;
  }
}

TEST_F(ServerTest, TokenIsNeeded) {
  for (const std::string& token :
       std::vector<std::string>{"", "X-Msprobe-Token: wrong\r\n", "X-Msprobe-Token: " + server->token() + "0\r\n"}) {
    for (const char* target : {"/api/files", "/", "/api/nothing"}) {
      EXPECT_EQ(StatusOf(Ask(fmt::format("GET {} HTTP/1.1\r\n{}{}Connection: close\r\n\r\n", target, Host(), token))),
                403)
          << token;
    }
  }
  EXPECT_EQ(StatusOf(Ask(fmt::format("GET /api/files?token={} HTTP/1.1\r\n{}Connection: close\r\n\r\n", server->token(),
                                     Host()))),
            200);
}

TEST_F(ServerTest, WithoutTokenAPersonIsToldWhatToOpen) {
  for (const char* target : {"/", "/index.html?token=wrong"}) {
    const std::string answer = Ask(fmt::format("GET {} HTTP/1.1\r\n{}Connection: close\r\n\r\n", target, Host()));
    EXPECT_EQ(StatusOf(answer), 403) << answer;
    EXPECT_NE(answer.find("Content-Type: text/html"), std::string::npos);
    EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'; style-src"), std::string::npos);
    EXPECT_NE(Body(answer).find("<code>msprobe serve</code> printed last"), std::string::npos);
    EXPECT_NE(Body(answer).find("lang=\"zh\""), std::string::npos);
    EXPECT_EQ(answer.find("<script"), std::string::npos);
  }
}

TEST_F(ServerTest, HostMustBeOurs) {
  const std::string port = std::to_string(server->port());
  const auto ask = [&](const std::string& hosts) {
    return StatusOf(Ask(fmt::format("GET /api/files HTTP/1.1\r\n{}{}Connection: close\r\n\r\n", hosts, Token())));
  };
  EXPECT_EQ(ask("Host: localhost:" + port + "\r\n"), 200);
  EXPECT_EQ(ask("Host: LocalHost:" + port + "\r\n"), 200);
  for (const std::string& host :
       {"evil.example:" + port, std::string("127.0.0.1"), std::string("127.0.0.1:1"), std::string(""),
        "127.0.0.1.evil.example:" + port, "localhost:" + port + ".evil.example"}) {
    EXPECT_EQ(ask("Host: " + host + "\r\n"), 403) << host;
  }
  EXPECT_EQ(ask(""), 403);
  EXPECT_EQ(ask(Host() + "Host: evil.example\r\n"), 403);
}

TEST_F(ServerTest, OnlyGetAndHead) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"}) {
    const std::string answer =
        Ask(fmt::format("{} /api/files HTTP/1.1\r\n{}{}Content-Length: 2\r\n\r\n{{}}", method, Host(), Token()));
    EXPECT_EQ(StatusOf(answer), 405) << method << answer;
    EXPECT_NE(answer.find("Allow: GET, HEAD"), std::string::npos);
  }
  EXPECT_EQ(StatusOf(Ask(fmt::format("GET /api/files HTTP/1.1\r\n{}{}Content-Length: 2\r\n\r\n{{}}", Host(), Token()))),
            400);
  Client client(server->port());
  client.Send(fmt::format("HEAD /api/files HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
  const std::string head = client.ReadOne(true);
  EXPECT_EQ(StatusOf(head), 200);
  EXPECT_EQ(head.find("Content-Length: 0"), std::string::npos) << head;
  client.Send(fmt::format("GET /api/nothing HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
  EXPECT_EQ(StatusOf(client.ReadOne()), 404) << "the connection goes on after HEAD";
}

// What changes something: POST from our own page with the token in a header, and nothing else.
TEST_F(ServerTest, Changes) {
  const std::string port = std::to_string(server->port()), json = "Content-Type: application/json\r\n";
  const std::string own = "Origin: http://127.0.0.1:" + port + "\r\n";
  const auto ask = [&](const std::string& head, const std::string& body, const std::string& what = "add") {
    return Ask(
        fmt::format("POST /api/match/{}?file=c.vis.db&step=0&rank=0 HTTP/1.1\r\n{}{}Content-Length: {}\r\n"
                    "Connection: close\r\n\r\n{}",
                    what, Host(), head, body.size(), body));
  };
  const auto is = [&](const std::string& head, const std::string& body, const std::string& what = "add") {
    const std::string answer = ask(head, body, what);
    EXPECT_EQ(Body(answer).front(), '{') << answer;
    return StatusOf(answer);
  };
  const std::string add = R"({"npu": "Torch.add.0.forward", "bench": "Torch.add.0.forward"})";
  EXPECT_EQ(is(own + json, add), 403) << "no token";
  EXPECT_EQ(is(own + json + "X-Msprobe-Token: wrong\r\n", add), 403);
  const std::string token = Token() + json;
  for (const std::string& origin :
       std::vector<std::string>{"http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:" + port,
                                "http://127.0.0.1:" + port + ".evil.example", std::string("null")}) {
    EXPECT_EQ(is(token + "Origin: " + origin + "\r\n", add), 403) << origin;
  }
  EXPECT_EQ(is(token + own + "Origin: http://evil.example\r\n", add), 403) << "two of them";
  EXPECT_EQ(is(own + Token() + "Content-Type: text/plain\r\n", add), 415);
  EXPECT_EQ(is(own + Token(), add), 415);
  EXPECT_EQ(is(token + own, add), 409) << "they are matched already";
  EXPECT_NE(ask(token + own, add).find("\"reason\":\"taken\""), std::string::npos);
  EXPECT_EQ(is(token + own, R"({"npu": "Torch.add.0.forward"})", "remove"), 200);
  EXPECT_EQ(is(token, add), 200) << "a program that is not a browser";
  EXPECT_EQ(is(token + own, R"({"npu": "absent", "bench": "absent"})"), 404);
  for (const char* body :
       {"", "{", "[]", "null", "{\"npu\": 1}", "{\"other\": \"x\"}", "\xff\xfe", "{\"npu\": \"a\"}"}) {
    EXPECT_EQ(is(token + own, body), 400) << body;
  }
  EXPECT_EQ(is(token + own, "{\"npu\": \"" + std::string(70000, 'a') + "\"}"), 413);
  EXPECT_EQ(is(token + own, R"({"config": "../c.vis.config"})", "apply"), 400);
  EXPECT_EQ(is(token + own, R"({"config": "absent.vis.config"})", "apply"), 404);
  EXPECT_EQ(is(token + own, "{}", "nothing"), 405);
  EXPECT_EQ(is(token + own, "{}", "add?step=0&x="), 400) << "a parameter is given twice";
  EXPECT_EQ(is(token + own, "{}", "%zz"), 400);
  EXPECT_EQ(is(own + json, "{}", "%zz"), 403);
  EXPECT_EQ(StatusOf(Get("/api/match/add?file=c.vis.db&step=0&rank=0")), 405);
  EXPECT_EQ(StatusOf(Get("/api/matches?file=c.vis.db&step=0&rank=0")), 200);
  const std::string target = "POST /api/match/add?file=c.vis.db&step=0&rank=0 HTTP/1.1\r\n" + Host() + token + own;
  EXPECT_EQ(StatusOf(Ask(target + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")), 411);
  EXPECT_EQ(StatusOf(Ask(target + "Content-Length: 99999999999\r\n\r\n{}")), 413);
  Client client(server->port());
  for (int i = 0; i < 3; ++i) {
    client.Send(fmt::format("{}Content-Length: {}\r\n\r\n{}", target, add.size(), add));
    EXPECT_EQ(StatusOf(client.ReadOne()), 409) << "the connection goes on";
    client.Send(fmt::format("GET /api/files HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
    EXPECT_EQ(StatusOf(client.ReadOne()), 200);
  }
}

TEST_F(ServerTest, KeepsTheConnection) {
  Client client(server->port());
  for (int i = 0; i < 20; ++i) {
    client.Send(fmt::format("GET /api/config?file=c.vis.db HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
    EXPECT_EQ(StatusOf(client.ReadOne()), 200);
  }
}

TEST_F(ServerTest, OversizedAndMalformedHeads) {
  EXPECT_EQ(StatusOf(Ask("GET /" + std::string(100000, 'a') + " HTTP/1.1\r\n\r\n")), 431);
  EXPECT_EQ(StatusOf(Ask("GET / HTTP/1.1\r\nX: " + std::string(100000, 'a') + "\r\n\r\n")), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 5000; ++i) many += fmt::format("X{}: y\r\n", i);
  EXPECT_EQ(StatusOf(Ask(many + "\r\n")), 431);
  for (const char* bad : {"hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
                          "GET / HTTP/1.1\r\nbad header\r\n\r\n"}) {
    EXPECT_EQ(StatusOf(Ask(bad)), 400) << bad;
  }
  EXPECT_EQ(StatusOf(Get("/api/files")), 200);
}

TEST_F(ServerTest, SlowClientsHinderNobody) {
  ServerOptions options;
  options.request_timeout = std::chrono::minutes(10);
  options.threads = 2;
  StartWith(options);
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Client>(server->port()));
    slow.back()->Send("GET /api/fi");
  }
  EXPECT_EQ(StatusOf(Get("/api/files")), 200);
  for (const auto& client : slow) EXPECT_TRUE(client->Waits()) << "the answer came only when it was dropped";
}

TEST_F(ServerTest, SlowClientsAreDropped) {
  ServerOptions options;
  options.request_timeout = std::chrono::milliseconds(300);
  options.threads = 2;
  StartWith(options);
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 5; ++i) {
    slow.push_back(std::make_unique<Client>(server->port()));
    slow.back()->Send("GET /api/fi");
  }
  // A byte now and then does not buy more time.
  std::atomic<bool> done{false};
  std::thread drip([&] {
    while (!done) {
      slow[0]->Send("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  for (const auto& client : slow) EXPECT_TRUE(client->Ends());
  done = true;
  drip.join();
}

TEST_F(ServerTest, TooManyConnections) {
  ServerOptions options;
  options.max_connections = 3;
  StartWith(options);
  std::vector<std::unique_ptr<Client>> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<Client>(server->port()));
    open.back()->Send(fmt::format("GET /api/files HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
    EXPECT_EQ(StatusOf(open.back()->ReadOne()), 200);
  }
  EXPECT_EQ(StatusOf(Get("/api/files")), 503);
  open.clear();
  int status = 0;
  for (int i = 0; i < 100 && status != 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = StatusOf(Get("/api/files"));
  }
  EXPECT_EQ(status, 200);
}

TEST_F(ServerTest, StrangersShutNobodyOut) {
  ServerOptions options;
  options.max_connections = 8;
  StartWith(options);
  Client known(server->port());
  known.Send(fmt::format("GET /api/files HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
  EXPECT_EQ(StatusOf(known.ReadOne()), 200);
  std::vector<std::unique_ptr<Client>> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(std::make_unique<Client>(server->port()));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(StatusOf(Get("/api/files")), 200);
  // Who showed the token is still there.
  known.Send(fmt::format("GET /api/files HTTP/1.1\r\n{}{}\r\n", Host(), Token()));
  EXPECT_EQ(StatusOf(known.ReadOne()), 200);
}

TEST_F(ServerTest, ConcurrentRequests) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const std::string answer = Get("/api/node?file=c.vis.db&step=0&rank=0&name=Functional.linear.0.forward");
        good += StatusOf(answer) == 200 && answer.find("File b.py") != std::string::npos;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 16 * 25);
}

TEST_F(ServerTest, PortTaken) {
  ServerOptions options;
  options.port = server->port();
  auto second = Server::Start(*view::Viewer::Open(dir.path()), options);
  EXPECT_EQ(second.status().code(), Code::kBadInput);
  EXPECT_NE(second.status().message().find("--port"), std::string::npos);
}

TEST_F(ServerTest, InterruptStops) {
  SetInterruptRequested(true);
  running.join();
  SetInterruptRequested(false);
  EXPECT_FALSE(Client(server->port()).connected());
  running = std::thread([] {});
}

}  // namespace
}  // namespace msprobe::serve
