#include "serve/server.h"

#include <fmt/core.h>

#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "serve/handler.h"
#include "serve/token.h"

namespace msprobe::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr uint32_t kMaxHeadBytes = 16 << 10;
constexpr size_t kMaxDrainBytes = 1 << 20;
constexpr auto kLinger = std::chrono::seconds(1);
constexpr auto kInterruptPoll = std::chrono::milliseconds(100);

class Session;

// Connections that have shown no token yet, the oldest first.
class Strangers {
 public:
  void Add(const std::shared_ptr<Session>& session);
  void Remove(const Session* session);
  // The oldest but `newest`; null when there is none.
  std::shared_ptr<Session> TakeOldest(const Session* newest);

 private:
  std::mutex mutex_;
  std::list<std::pair<const Session*, std::weak_ptr<Session>>> list_;
};

// What every connection needs of its server.
struct Shared {
  const Handler* handler = nullptr;
  std::chrono::milliseconds timeout{};
  std::atomic<int> connections{0};
  Strangers strangers;
};

// A connection: reads a request, answers it, and so on until either end closes. It lives as long as an operation refers
// to it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared* shared) : stream_(std::move(socket)), shared_(shared) { ++shared_->connections; }
  ~Session() {
    --shared_->connections;
    if (!known_) shared_->strangers.Remove(this);
  }

  void Read() {
    body_parser_.reset();
    parser_.emplace();
    parser_->header_limit(kMaxHeadBytes);
    stream_.expires_after(shared_->timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code ec, size_t) { self->OnRead(ec); });
  }

  // Makes room for another; from any thread.
  void GiveWay() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      error_code ignored;
      self->stream_.socket().close(ignored);
    });
  }

  void Refuse(int status, std::string_view text) { Write(Handler::Refusal(status, text), 11, false); }

 private:
  void OnRead(error_code ec) {
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
      return Refuse(431, "the head of the request is larger than 16 KiB: shorten the address");
    }
    if (ec == http::error::body_limit) return Refuse(413, "the body is larger than 64 KiB: send fewer words");
    if (ec == beast::error::timeout || ec == http::error::end_of_stream || ec == asio::error::operation_aborted) return;
    if (ec.category() == http::make_error_code(http::error::bad_target).category()) {
      return Refuse(400, fmt::format("the request is malformed ({}): this is an HTTP server", ec.message()));
    }
    if (ec) return Close();
    const auto& head = parser_->get();
    const Request request = RequestOf(head);
    if (!known_ && shared_->handler->ShowsToken(request)) {
      known_ = true;
      shared_->strangers.Remove(this);
    }
    const bool head_only = head.method() == http::verb::head;
    if (request.method == "POST" && request.has_body) {
      auto refusal = shared_->handler->RefuseBody(request);
      if (!refusal) return ReadBody();
      return Write(*std::move(refusal), head.version(), head_only);
    }
    Response response = shared_->handler->Answer(request);
    response.close = response.close || request.has_body || !head.keep_alive();
    Write(std::move(response), head.version(), head_only);
  }

  template <typename Head>
  Request RequestOf(const Head& head) const {
    Request request;
    request.method = {head.method_string().data(), head.method_string().size()};
    request.target = {head.target().data(), head.target().size()};
    const auto value = [&](auto name) { return std::string_view(head[name].data(), head[name].size()); };
    // Two Host or Origin headers are an attempt to be understood in two ways; none of them counts then.
    if (head.count(http::field::host) == 1) request.host = value(http::field::host);
    request.origin = head.count(http::field::origin) > 1 ? std::string_view("two") : value(http::field::origin);
    request.token = value("X-Msprobe-Token");
    request.content_type = value(http::field::content_type);
    if (parser_) {
      request.has_body = parser_->chunked() || parser_->content_length().value_or(0) != 0;
      if (!parser_->chunked() && parser_->content_length()) request.body_bytes = *parser_->content_length();
    }
    return request;
  }

  // Only after the head was found fit.
  void ReadBody() {
    body_parser_.emplace(std::move(*parser_));
    parser_.reset();
    body_parser_->body_limit(Handler::kMaxBodyBytes);
    http::async_read(stream_, buffer_, *body_parser_,
                     [self = shared_from_this()](error_code ec, size_t) { self->OnBody(ec); });
  }

  void OnBody(error_code ec) {
    if (ec == http::error::body_limit) return Refuse(413, "the body is larger than 64 KiB: send fewer words");
    if (ec) return Close();
    const auto& message = body_parser_->get();
    Request request = RequestOf(message);
    request.has_body = true;
    request.body_bytes = message.body().size();
    request.body = message.body();
    Response response = shared_->handler->Answer(request);
    response.close = response.close || !message.keep_alive();
    Write(std::move(response), message.version(), false);
  }

  void Write(Response response, unsigned version, bool head_only) {
    message_.emplace();
    message_->version(version);
    message_->result(static_cast<unsigned>(response.status));
    message_->set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message_->set(name, value);
    message_->content_length(response.body.size());
    message_->keep_alive(!response.close);
    if (!head_only) message_->body() = std::move(response.body);
    serializer_.emplace(*message_);
    stream_.expires_after(shared_->timeout);
    auto done = [self = shared_from_this(), close = response.close](error_code ec, size_t) {
      self->serializer_.reset();
      self->message_.reset();
      if (ec || close) return self->Close();
      self->Read();
    };
    if (head_only) {
      http::async_write_header(stream_, *serializer_, std::move(done));
    } else {
      http::async_write(stream_, *serializer_, std::move(done));
    }
  }

  // What the other end still sends is read and dropped for a moment: closing on unread bytes resets the connection, and
  // the answer would be lost with it.
  void Close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    Drain();
  }

  void Drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kMaxHeadBytes), [self = shared_from_this()](error_code ec, size_t got) {
      self->drained_ += got;
      if (!ec && self->drained_ < kMaxDrainBytes) self->Drain();
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMaxHeadBytes + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<http::request_parser<http::string_body>> body_parser_;
  std::optional<http::response<http::string_body>> message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  Shared* shared_;
  size_t drained_ = 0;
  bool known_ = false;  // has shown the token
};

void Strangers::Add(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  list_.emplace_back(session.get(), session);
}

void Strangers::Remove(const Session* session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(list_, [&](const auto& entry) { return entry.first == session; });
}

std::shared_ptr<Session> Strangers::TakeOldest(const Session* newest) {
  const std::lock_guard lock(mutex_);
  while (!list_.empty() && list_.front().first != newest) {
    std::shared_ptr<Session> out = list_.front().second.lock();
    list_.pop_front();
    if (out) return out;
  }
  return nullptr;
}

}  // namespace

struct Server::Impl {
  explicit Impl(const ServerOptions& o) : options(o), io(o.threads), acceptor(asio::make_strand(io)), timer(io) {}
  ~Impl() { io.stop(); }

  void Accept() {
    acceptor.async_accept(asio::make_strand(io), [this](error_code ec, tcp::socket socket) {
      if (ec == asio::error::operation_aborted) return;
      if (!ec) Admit(std::move(socket));
      // Out of descriptors: trying again at once would only burn a core.
      if (ec) return AcceptLater();
      Accept();
    });
  }

  void AcceptLater() {
    auto wait = std::make_shared<asio::steady_timer>(acceptor.get_executor(), kInterruptPoll);
    wait->async_wait([this, wait](error_code ec) {
      if (!ec) Accept();
    });
  }

  void Admit(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto session = std::make_shared<Session>(std::move(socket), &shared);
    shared.strangers.Add(session);
    // Who has shown no token never shuts others out: the oldest of them goes first.
    std::shared_ptr<Session> stranger;
    const bool full = shared.connections > options.max_connections;
    if (full) stranger = shared.strangers.TakeOldest(session.get());
    if (stranger) stranger->GiveWay();
    if (full && !stranger) {
      session->Refuse(503, "too many connections are open: close some tabs");
    } else {
      session->Read();
    }
  }

  void WatchInterrupt() {
    timer.expires_after(kInterruptPoll);
    timer.async_wait([this](error_code ec) {
      if (ec) return;
      if (InterruptRequested()) return io.stop();
      WatchInterrupt();
    });
  }

  // A handler that runs out of memory loses its connection, not the server.
  void Work() {
    while (!io.stopped()) {
      try {
        io.run();
        return;
      } catch (const std::exception& e) {
        fmt::print(stderr, "[msprobe] warning: a request was dropped ({})\n", e.what());
      }
    }
  }

  ServerOptions options;
  std::unique_ptr<view::Viewer> viewer;
  std::optional<Converter> converter;
  std::string token;
  std::optional<Handler> handler;
  Shared shared;  // outlives the sessions, which `io` holds
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::steady_timer timer;
  uint16_t bound = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
uint16_t Server::port() const { return impl_->bound; }
const std::string& Server::token() const { return impl_->token; }
std::string Server::url() const { return fmt::format("http://127.0.0.1:{}/?token={}", impl_->bound, impl_->token); }
void Server::Stop() { impl_->io.stop(); }

StatusOr<std::unique_ptr<Server>> Server::Start(std::unique_ptr<view::Viewer> viewer, const ServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  impl->viewer = std::move(viewer);
  impl->token = options.token;
  if (impl->token.empty()) {
    MSP_ASSIGN_OR_RETURN(impl->token, MakeToken());
  }
  const tcp::endpoint where(asio::ip::address_v4::loopback(), options.port);
  error_code ec;
  impl->acceptor.open(where.protocol(), ec);
  if (!ec) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) impl->acceptor.bind(where, ec);
  if (!ec) impl->acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) {
    return BadInput(Msg("port {} of 127.0.0.1 cannot be used ({}): give another --port, or 0 for a free one",
                        options.port, KnownText(ec.message())));
  }
  impl->bound = impl->acceptor.local_endpoint(ec).port();
  if (!options.converter.empty() && !impl->viewer->root().empty()) {
    impl->converter.emplace(options.converter, impl->viewer->root());
  }
  impl->handler.emplace(impl->viewer.get(), impl->token, impl->bound, impl->converter ? &*impl->converter : nullptr);
  impl->shared.handler = &*impl->handler;
  impl->shared.timeout = options.request_timeout;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::Run() {
  impl_->Accept();
  impl_->WatchInterrupt();
  // Before anybody asks: whoever opens the page finds the graph in memory. What is wrong with it is told to who asks
  // for it.
  std::vector<std::thread> threads = StartThreads(1, [this] {
    try {
      (void)impl_->viewer->ReadAhead();
    } catch (const std::bad_alloc&) {
      // Who asks for it is told as well.
    }
  });
  for (int i = 1; i < impl_->options.threads; ++i) threads.emplace_back([this] { impl_->Work(); });
  impl_->Work();
  for (std::thread& t : threads) t.join();
  error_code ignored;
  impl_->acceptor.close(ignored);
  return OkStatus();
}

}  // namespace msprobe::serve
