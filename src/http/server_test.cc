// Speaks to a real server over raw sockets, byte by byte.
#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>

#include "async/spawn.h"
#include "async/timer.h"
#include "http/test_server.h"

namespace reelway::http {
namespace {

using namespace std::chrono_literals;
using base::Code;
using base::Result;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A blocking client socket. Reads give up after a generous time, so that a broken server fails a test
/// instead of hanging it.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      ADD_FAILURE() << "connect";
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  /// False when the server has closed.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  /// Everything until the server closes; reset_ tells whether it was by a reset.
  std::string read_to_end() {
    while (read_more()) {
    }
    return std::exchange(received_, {});
  }
  /// One response whose length Content-Length gives (or that has no body).
  std::string read_response(bool head_request = false) {
    std::string head = read_until("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    const std::size_t length = at == std::string::npos || head_request ? 0 : std::stoul(head.substr(at + 16));
    return head + read_exactly(length);
  }
  std::string read_until(std::string_view end) {
    while (received_.find(end) == std::string::npos) {
      if (!read_more()) return std::exchange(received_, {});
    }
    return take(received_.find(end) + end.size());
  }
  std::string read_exactly(std::size_t size) {
    while (received_.size() < size && read_more()) {
    }
    return take(std::min(size, received_.size()));
  }
  bool was_reset() const { return reset_; }
  std::string exchange(std::string_view request) {
    send(request);
    return read_response();
  }

 private:
  std::string take(std::size_t size) {
    std::string text = received_.substr(0, size);
    received_.erase(0, size);
    return text;
  }
  bool read_more() {
    char buffer[65536];
    const ssize_t count = ::recv(descriptor_, buffer, sizeof buffer, 0);
    if (count < 0) reset_ = errno == ECONNRESET;
    if (count <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int descriptor_;
  std::string received_;
  bool reset_ = false;
};

base::HttpResponseHead head_of(int status, std::optional<std::uint64_t> length = std::nullopt) {
  return {.status = status, .fields = {}, .content_length = length};
}

async::Task<std::string> read_whole_body(Exchange& exchange) {
  std::string body;
  std::array<std::byte, 1000> buffer;
  for (;;) {
    CO_TRY(const std::size_t count, co_await exchange.read_body(buffer));
    if (count == 0) co_return body;
    body.append(base::as_text(base::ByteView(buffer).first(count)));
  }
}

/// Small behaviours by path, so that each test reads as a conversation.
struct Handlers {
  int file = -1;
  std::atomic<int> entered = 0;
  std::atomic<bool> release = false;
  std::atomic<bool> saw_peer_gone = false;
  std::atomic<int> read_error = -1;

  async::Task<void> run(Exchange& exchange) {
    const std::string& target = exchange.head().target;
    if (target == "/echo") co_return co_await echo(exchange);
    if (target == "/early") co_return co_await early(exchange);
    if (target == "/chunked") co_return co_await chunked(exchange);
    if (target == "/fail") co_return base::fail(Code::internal, "on purpose");
    if (target == "/silent") co_return Result<void>{};
    if (target == "/short") co_return co_await short_answer(exchange);
    if (target == "/wait") co_return co_await wait(exchange);
    if (target == "/inject") co_return co_await inject(exchange);
    if (target == "/unchanged")
      co_return co_await exchange.respond(head_of(304), base::as_bytes("never sent"));
    if (target == "/lying") co_return co_await exchange.respond(head_of(200, 3), base::as_bytes("four"));
    if (target == "/empty") co_return co_await exchange.respond(head_of(204), {});
    if (target.starts_with("/file")) co_return co_await file_part(exchange);
    co_return co_await plain(exchange);
  }

  static async::Task<void> plain(Exchange& exchange) {
    const std::string body = exchange.head().method + " " + exchange.head().target;
    if (exchange.head().method == "HEAD") co_return co_await exchange.respond(head_of(200, 12345), {});
    co_return co_await exchange.respond(head_of(200), base::as_bytes(body));
  }
  async::Task<void> echo(Exchange& exchange) {
    const Result<std::string> body = co_await read_whole_body(exchange);
    if (!body.has_value()) {
      read_error = static_cast<int>(body.error().code);
      read_error.notify_all();
      if (body.error().code == Code::invalid_argument) co_return co_await exchange.respond(head_of(400), {});
      co_return body.error();
    }
    co_return co_await exchange.respond(head_of(200), base::as_bytes(*body));
  }
  static async::Task<void> early(Exchange& exchange) {
    co_return co_await exchange.respond(head_of(403), base::as_bytes("no"));
  }
  static async::Task<void> chunked(Exchange& exchange) {
    CO_TRY_VOID(co_await exchange.start_response(head_of(200)));
    CO_TRY_VOID(co_await exchange.write_body(base::as_bytes("hello ")));
    CO_TRY_VOID(co_await exchange.write_body({}));
    CO_TRY_VOID(co_await exchange.write_body(base::as_bytes("chunked world!!!")));
    co_return co_await exchange.end_body();
  }
  static async::Task<void> short_answer(Exchange& exchange) {
    CO_TRY_VOID(co_await exchange.start_response(head_of(200, 10)));
    CO_TRY_VOID(co_await exchange.write_body(base::as_bytes("only")));
    co_return base::fail(Code::data_loss, "the rest is not to be had");
  }
  async::Task<void> wait(Exchange& exchange) {
    async::SystemTimer timer;
    ++entered;
    entered.notify_all();
    while (!release && !saw_peer_gone) {
      CO_TRY_VOID(co_await timer.sleep_for(1ms));
      saw_peer_gone = saw_peer_gone || exchange.peer_gone();
    }
    saw_peer_gone.notify_all();
    co_return co_await exchange.respond(head_of(200), base::as_bytes("waited"));
  }
  static async::Task<void> inject(Exchange& exchange) {
    base::HttpResponseHead head = head_of(200);
    head.fields.add("x-meta", "a\r\nSet-Cookie: b");
    co_return co_await exchange.respond(std::move(head), {});
  }
  /// "/file?<offset>-<length>"
  async::Task<void> file_part(Exchange& exchange) {
    const std::string& target = exchange.head().target;
    const std::size_t dash = target.find('-');
    const std::uint64_t offset = std::stoull(target.substr(6, dash - 6));
    const std::uint64_t length = std::stoull(target.substr(dash + 1));
    CO_TRY_VOID(co_await exchange.start_response(head_of(200, length)));
    co_return co_await exchange.send_file(file, offset, length);
  }
};

/// A server with the handlers above.
struct HandlersServer {
  explicit HandlersServer(ServerOptions options = {}, std::size_t reactors = 1)
      : running([this](Exchange& exchange) { return handlers.run(exchange); }, std::move(options), reactors) {
  }
  ~HandlersServer() { handlers.release = true; }
  std::uint16_t port() const { return running.port(); }
  void shut_down(base::Duration patience) { running.shut_down(patience); }
  Server& server() { return running.server(); }

  Handlers handlers;
  TestServer running;
};

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(Server, AnswersAndKeepsTheConnection) {
  HandlersServer server;
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    const std::string response = client.exchange(kGet);
    EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(response, HasSubstr("\r\nContent-Length: 6\r\n"));
    EXPECT_THAT(response, HasSubstr("\r\nServer: Reelway\r\n"));
    EXPECT_THAT(response, HasSubstr("\r\nDate: "));
    EXPECT_THAT(response, Not(HasSubstr("Connection:")));
    EXPECT_THAT(response, EndsWith("\r\n\r\nGET /a"));
  }
  EXPECT_EQ(server.server().connection_count(), 1U);
}

TEST(Server, TakesPipelinedRequestsInOrder) {
  HandlersServer server;
  RawClient client(server.port());
  client.send(
      "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nfirst"
      "\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
      "PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      "GET /4 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_response(), EndsWith("first"));
  EXPECT_THAT(client.read_response(), EndsWith("GET /2"));
  EXPECT_THAT(client.read_response(), EndsWith("abc"));
  const std::string last = client.read_to_end();
  EXPECT_THAT(last, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(last, EndsWith("GET /4"));
}

TEST(Server, HeadAndEmptyAnswersHaveNoBody) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string response = client.read_response(true);
  EXPECT_THAT(response, HasSubstr("Content-Length: 12345\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\n"));
  const std::string empty = client.exchange("GET /empty HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(empty, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(empty, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(client.exchange(kGet), EndsWith("GET /a"));
}

TEST(Server, AnswersStayInFrameWhateverTheHandlerSays) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("GET /unchanged HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.read_response(true), StartsWith("HTTP/1.1 304 "));
  EXPECT_THAT(client.exchange("GET /lying HTTP/1.1\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(client.exchange(kGet), EndsWith("GET /a"));
}

TEST(Server, SpeaksHttp10) {
  HandlersServer server;
  {
    RawClient client(server.port());
    client.send("GET /chunked HTTP/1.0\r\n\r\n");
    const std::string response = client.read_to_end();
    EXPECT_THAT(response, Not(HasSubstr("chunked\r\n")));
    EXPECT_THAT(response, EndsWith("\r\n\r\nhello chunked world!!!"));
  }
  RawClient client(server.port());
  EXPECT_THAT(client.exchange("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
              HasSubstr("Connection: keep-alive\r\n"));
  client.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), HasSubstr("Connection: close\r\n"));
}

TEST(Server, SendsChunkedAnswers) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("GET /chunked HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string response = client.read_until("0\r\n\r\n");
  EXPECT_THAT(response, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\n6\r\nhello \r\n10\r\nchunked world!!!\r\n0\r\n\r\n"));
  EXPECT_THAT(client.exchange(kGet), EndsWith("GET /a"));
}

struct BadCase {
  const char* name;
  std::string_view request;
  int status;
};

class BadHead : public testing::TestWithParam<BadCase> {};

using namespace std::string_view_literals;
INSTANTIATE_TEST_SUITE_P(
    Server, BadHead,
    testing::Values(
        BadCase{"BothLengths",
                "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
                400},
        BadCase{"RepeatedLength",
                "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
        BadCase{"ListOfLengths", "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc", 400},
        BadCase{"SignedLength", "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc", 400},
        BadCase{"NegativeLength", "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: -3\r\n\r\nabc", 400},
        BadCase{"HugeLength",
                "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\nabc", 400},
        BadCase{"RepeatedCoding",
                "PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
                "chunked\r\n\r\n",
                400},
        BadCase{"OtherCoding", "PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                501},
        BadCase{"CodingIn10", "PUT /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        BadCase{"BareLf", "GET /a HTTP/1.1\nHost: h\n\n", 400},
        BadCase{"BareLfLater", "GET /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400},
        BadCase{"BareCr", "GET /a HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", 400},
        BadCase{"NulInField", "GET /a HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"sv, 400},
        BadCase{"NulInTarget", "GET /a\0b HTTP/1.1\r\nHost: h\r\n\r\n"sv, 400},
        BadCase{"FoldedLine", "GET /a HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400},
        BadCase{"SpaceBeforeColon", "GET /a HTTP/1.1\r\nHost : h\r\n\r\n", 400},
        BadCase{"SpaceBeforeFirstField", "GET /a HTTP/1.1\r\n Host: h\r\n\r\n", 400},
        BadCase{"NoColon", "GET /a HTTP/1.1\r\nHost: h\r\nX\r\n\r\n", 400},
        BadCase{"EmptyName", "GET /a HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400},
        BadCase{"NoHost", "GET /a HTTP/1.1\r\n\r\n", 400},
        BadCase{"TwoHosts", "GET /a HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", 400},
        BadCase{"NoVersion", "GET /a\r\n\r\n", 400}, BadCase{"OldVersion", "GET /a HTTP/0.9\r\n\r\n", 505},
        BadCase{"NewVersion", "GET /a HTTP/2.0\r\nHost: h\r\n\r\n", 505},
        BadCase{"LowerCaseVersion", "GET /a http/1.1\r\nHost: h\r\n\r\n", 400},
        BadCase{"SpaceInTarget", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        BadCase{"NoPath", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        BadCase{"BadMethod", "G(T /a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        BadCase{"EmptyLines", "\r\n\r\n\r\n\r\n", 400}, BadCase{"Tls", "\x16\x03\x01\x02\n\x01", 400},
        BadCase{"OtherExpectation", "PUT /a HTTP/1.1\r\nHost: h\r\nExpect: miracle\r\n\r\n", 417}),
    [](const auto& info) { return info.param.name; });

TEST_P(BadHead, IsRefusedAndTheConnectionEnds) {
  HandlersServer server;
  RawClient client(server.port());
  client.send(GetParam().request);
  const std::string response = client.read_to_end();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 " + std::to_string(GetParam().status) + " "));
  EXPECT_THAT(response, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(response, HasSubstr("\r\nContent-Length: 0\r\n"));
  EXPECT_FALSE(client.was_reset());
}

TEST(Server, AcceptsWhatOnlyLooksBad) {
  HandlersServer server;
  RawClient client(server.port());
  EXPECT_THAT(client.exchange("GET http://other/x?y HTTP/1.1\r\nHost: h\r\n\r\n"), EndsWith("GET /x?y"));
  EXPECT_THAT(client.exchange("GET /\xc3\xa4 HTTP/1.1\r\nhOST:\th \r\nX:\r\nY: \xe4\r\n\r\n"),
              EndsWith("GET /\xc3\xa4"));
  EXPECT_THAT(client.exchange("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), EndsWith("OPTIONS *"));
  EXPECT_THAT(client.exchange("PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
                              "1;name=\"x\"\r\na\r\n0005\r\nbcdef\r\n0\r\nTrailer: t\r\n\r\n"),
              EndsWith("abcdef"));
}

TEST(Server, RefusesHeadsOverTheLimit) {
  ServerOptions options;
  options.head_bytes_max = 8192;
  HandlersServer server(options);
  const auto with_padding = [](std::size_t size) {
    std::string head = "GET /a HTTP/1.1\r\nHost: h\r\nX: ";
    return head + std::string(size - head.size() - 4, 'x') + "\r\n\r\n";
  };
  RawClient good(server.port());
  EXPECT_THAT(good.exchange(with_padding(8192)), StartsWith("HTTP/1.1 200 "));
  RawClient bad(server.port());
  bad.send(with_padding(8193 + 5000));
  EXPECT_THAT(bad.read_to_end(), StartsWith("HTTP/1.1 431 "));
  EXPECT_FALSE(bad.was_reset());
}

TEST(Server, DropsASlowHeadWith408AndAnIdleConnectionSilently) {
  ServerOptions options;
  options.head_timeout = 50ms;
  options.idle_timeout = 60ms;
  HandlersServer server(options);
  RawClient slow(server.port());
  slow.send("GET /a HTTP/1.1\r\nHo");
  EXPECT_THAT(slow.read_to_end(), StartsWith("HTTP/1.1 408 "));
  RawClient idle(server.port());
  EXPECT_EQ(idle.read_to_end(), "");
  RawClient used(server.port());
  used.exchange(kGet);
  EXPECT_EQ(used.read_to_end(), "");
}

TEST(Server, ATricklingHeadDoesNotMoveItsDeadline) {
  ServerOptions options;
  options.head_timeout = 100ms;
  HandlersServer server(options);
  RawClient slow(server.port());
  // One byte at a time, for ever; ends because the server ends it.
  std::atomic<bool> closed = false;
  std::thread trickle([&] {
    slow.send("GET /a HTTP/1.1\r\nX: ");
    while (!closed && slow.send("x")) std::this_thread::yield();
  });
  const std::string response = slow.read_until("\r\n\r\n");
  closed = true;
  trickle.join();
  EXPECT_THAT(response, testing::AnyOf(StartsWith("HTTP/1.1 408 "), StartsWith("HTTP/1.1 431 ")));
}

TEST(Server, ABodyThatStopsIsAnErrorOfTheRead) {
  ServerOptions options;
  options.progress_timeout = 50ms;
  HandlersServer server(options);
  RawClient slow(server.port());
  slow.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(slow.read_to_end(), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(server.handlers.read_error, static_cast<int>(Code::deadline_exceeded));
}

TEST(Server, ABodyThatDripsIsAnErrorOfTheRead) {
  ServerOptions options;
  options.progress_timeout = 500ms;
  options.body_bytes_per_second_min = base::kMiB;
  HandlersServer server(options);
  RawClient slow(server.port());
  slow.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  for (int drops = 0; drops < 3000 && server.handlers.read_error == -1; ++drops) {
    slow.send("x");  // soon enough after the last one, every time
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(server.handlers.read_error, static_cast<int>(Code::deadline_exceeded));
}

TEST(Server, AClientThatGoesAwayInTheMiddleOfABodyIsClosed) {
  HandlersServer server;
  {
    RawClient client(server.port());
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  }
  server.handlers.read_error.wait(-1);
  EXPECT_EQ(server.handlers.read_error, static_cast<int>(Code::closed));
}

TEST(Server, BrokenChunksEndTheConnection) {
  for (const std::string_view body :
       {"x\r\n"sv, "3\r\nabcd\r\n"sv, "3\nabc\r\n"sv, "\r\n"sv, "11111111111111111\r\n"sv, "-1\r\n"sv,
        "0x3\r\nabc\r\n"sv, "3\r\nabc\n0\r\n\r\n"sv, "3 \r\nabc\r\n"sv, "0\r\nTrailer\n\r\n"sv}) {
    HandlersServer server;
    RawClient client(server.port());
    client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(body);
    const std::string response = client.read_to_end();
    EXPECT_THAT(response, StartsWith("HTTP/1.1 400 ")) << body;
    EXPECT_THAT(response, HasSubstr("Connection: close")) << body;
    EXPECT_EQ(server.handlers.read_error, static_cast<int>(Code::invalid_argument)) << body;
  }
}

TEST(Server, EndlessTrailersHaveABound) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
  for (int i = 0; i < 3000 && client.send("X: yyyyyyyyyy\r\n"); ++i) {
  }
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 400 "));
}

TEST(Server, ContinueIsSentOnlyWhenTheBodyIsRead) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_THAT(client.read_response(), EndsWith("body"));

  client.send("PUT /early HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  const std::string refused = client.read_to_end();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(refused, HasSubstr("Connection: close"));
}

TEST(Server, ContinueIsLeftOutWhenTheBodyIsHere) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-Continue\r\n\r\nbody");
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200 "));
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200 "));
}

TEST(Server, AnEarlyAnswerDrainsASmallBodyAndKeepsTheConnection) {
  HandlersServer server;
  RawClient client(server.port());
  EXPECT_THAT(client.exchange("PUT /early HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" +
                              std::string(100000, 'x')),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(
      client.exchange(
          "PUT /early HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"),
      StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(client.exchange(kGet), EndsWith("GET /a"));
}

TEST(Server, AnEarlyAnswerToALargeBodyIsReadableAndCloses) {
  HandlersServer server;
  for (const std::string_view framing :
       {"Content-Length: 67108864\r\n\r\n"sv, "Transfer-Encoding: chunked\r\n\r\n4000000\r\n"sv}) {
    RawClient client(server.port());
    client.send("PUT /early HTTP/1.1\r\nHost: h\r\n");
    client.send(framing);
    const std::string block(1 << 20, 'x');
    // The client sends all of it before it looks for the answer, as simple clients do.
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(client.send(block)) << i;
    EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 403 "));
    EXPECT_FALSE(client.was_reset());
  }
}

TEST(Server, AnErrorBeforeTheHeadIs500AndTheConnectionGoesOn) {
  HandlersServer server;
  RawClient client(server.port());
  EXPECT_THAT(client.exchange("GET /fail HTTP/1.1\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(client.exchange("GET /silent HTTP/1.1\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(client.exchange(kGet), EndsWith("GET /a"));
}

TEST(Server, AnErrorAfterTheHeadClosesShort) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("GET /short HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), EndsWith("\r\n\r\nonly"));
}

TEST(Server, NoFieldCanSplitAnAnswer) {
  HandlersServer server;
  RawClient client(server.port());
  const std::string response = client.exchange("GET /inject HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(response, Not(HasSubstr("Set-Cookie")));
}

TEST(Server, OneConnectionTooManyIsAnswered503) {
  ServerOptions options;
  options.connections_max = 2;
  HandlersServer server(options);
  RawClient first(server.port());
  RawClient second(server.port());
  first.exchange(kGet);
  second.exchange(kGet);
  RawClient third(server.port());
  third.send(kGet);
  const std::string refused = third.read_to_end();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: "));
  EXPECT_FALSE(third.was_reset());
  EXPECT_THAT(first.exchange(kGet), EndsWith("GET /a"));
}

class FileTest : public testing::Test {
 protected:
  FileTest() : content_(3 << 20, '\0') {
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 31 + i / 4096);
    path_ = testing::TempDir() + "/http_file_XXXXXX";
    descriptor_ = ::mkstemp(path_.data());
    std::ofstream(path_, std::ios::binary) << content_;
  }
  ~FileTest() override {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  std::string request(std::uint64_t offset, std::uint64_t length) {
    return "GET /file?" + std::to_string(offset) + "-" + std::to_string(length) +
           " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  std::string content_;
  std::string path_;
  int descriptor_;
};

std::string body_of(const std::string& response) { return response.substr(response.find("\r\n\r\n") + 4); }

TEST_F(FileTest, SendsPartsOfFiles) {
  HandlersServer server;
  server.handlers.file = descriptor_;
  RawClient client(server.port());
  const std::pair<std::uint64_t, std::uint64_t> parts[] = {
      {0, 3 << 20}, {1, 4097}, {4095, 2}, {(3 << 20) - 1, 1}, {7, 0}, {100'000, 2'000'000}};
  for (const auto& [offset, length] : parts) {
    EXPECT_TRUE(body_of(client.exchange(request(offset, length))) == content_.substr(offset, length))
        << offset << " " << length;
  }
}

TEST_F(FileTest, AFileThatEndsEarlyClosesShort) {
  HandlersServer server;
  server.handlers.file = descriptor_;
  RawClient client(server.port());
  client.send(request((3 << 20) - 10, 20));
  EXPECT_EQ(body_of(client.read_to_end()), content_.substr((3 << 20) - 10));
}

TEST(Server, SeesThatThePeerHasGone) {
  HandlersServer server;
  {
    RawClient client(server.port());
    client.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
    server.handlers.entered.wait(0);
  }
  server.handlers.saw_peer_gone.wait(false);
  EXPECT_TRUE(server.handlers.saw_peer_gone);
}

TEST(Server, ShutdownLetsTheRunningAnswerEndAndClosesIdleConnections) {
  HandlersServer server;
  RawClient idle(server.port());
  idle.exchange(kGet);
  RawClient busy(server.port());
  busy.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  server.handlers.entered.wait(0);
  auto down = std::async(std::launch::async, [&] { server.shut_down(1h); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_EQ(down.wait_for(0s), std::future_status::timeout);
  server.handlers.release = true;
  const std::string response = busy.read_to_end();
  EXPECT_THAT(response, HasSubstr("Connection: close"));
  EXPECT_THAT(response, EndsWith("waited"));
  busy.close();
  down.get();
  EXPECT_EQ(server.server().connection_count(), 0U);
}

TEST(Server, ShutdownCutsABodyInFlightWhenPatienceEnds) {
  HandlersServer server;
  RawClient client(server.port());
  client.send("PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  RawClient other(server.port());
  other.exchange(kGet);  // the first one's handler has begun: one reactor, in order
  server.shut_down(1ms);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(server.handlers.read_error, static_cast<int>(Code::closed));
}

TEST(Server, SeveralReactorsShareTheConnections) {
  HandlersServer server({}, 3);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      RawClient client(server.port());
      for (int j = 0; j < 50; ++j) good += client.exchange(kGet).ends_with("GET /a") ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 300);
}

TEST(Server, SaysWhatIsWrongWithItsOptions) {
  async::net::io_context context(1);
  const auto create = [&](ServerOptions options) {
    return Server::create(
        {context.get_executor()}, std::move(options),
        [](Exchange& exchange) { return Handlers::plain(exchange); }, base::null_log());
  };
  ServerOptions name;
  name.address = "localhost";
  EXPECT_EQ(create(name).error().code, Code::invalid_argument);
  ServerOptions no_certificate;
  no_certificate.tls_certificate_file = no_certificate.tls_key_file = "/nowhere";
  EXPECT_EQ(create(no_certificate).error().code, Code::invalid_argument);
  HandlersServer taken;
  ServerOptions same_port;
  same_port.port = taken.port();
  const auto second = create(same_port);
  EXPECT_EQ(second.error().code, Code::unavailable);
  EXPECT_THAT(second.error().detail, HasSubstr("127.0.0.1:" + std::to_string(taken.port())));
}

}  // namespace
}  // namespace reelway::http
