#include "http/client.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "http/test_server.h"

namespace reelway::http {
namespace {

using namespace std::chrono_literals;
using base::Code;
using base::Result;

class TextBody final : public BodyProducer {
 public:
  explicit TextBody(std::string text, bool can_rewind = true)
      : text_(std::move(text)), can_rewind_(can_rewind) {}
  async::Task<std::size_t> read(base::MutableBytes into) override {
    const std::size_t count = std::min(into.size(), text_.size() - position_);
    std::ranges::copy(base::as_bytes(text_).subspan(position_, count), into.begin());
    position_ += count;
    co_return count;
  }
  bool rewind() override {
    position_ = 0;
    return can_rewind_;
  }

 private:
  std::string text_;
  std::size_t position_ = 0;
  bool can_rewind_;
};

/// What the server saw, and what it shall do.
struct Site {
  std::mutex mutex;
  std::vector<std::string> seen;
  std::vector<std::uint16_t> ports;

  async::Task<void> run(Exchange& exchange) {
    const base::HttpRequestHead& head = exchange.head();
    {
      const std::lock_guard lock(mutex);
      seen.push_back(head.method + " " + head.target);
      ports.push_back(exchange.peer().port);
    }
    base::HttpResponseHead answer;
    if (head.target == "/early") {
      answer.status = 403;
      co_return co_await exchange.respond(answer, base::as_bytes("no"));
    }
    std::string body;
    std::vector<std::byte> buffer(100'000);
    for (;;) {
      CO_TRY(const std::size_t count, co_await exchange.read_body(buffer));
      if (count == 0) break;
      body += base::as_text(std::span(buffer).first(count));
    }
    if (head.target == "/chunked") {
      CO_TRY_VOID(co_await exchange.start_response(answer));
      for (int i = 0; i < 10; ++i) CO_TRY_VOID(co_await exchange.write_body(base::as_bytes("0123456789")));
      co_return co_await exchange.end_body();
    }
    if (head.target == "/short") {
      answer.content_length = 100;
      CO_TRY_VOID(co_await exchange.start_response(answer));
      co_return co_await exchange.write_body(base::as_bytes("only"));
    }
    if (head.target == "/close") answer.fields.add("Connection", "close");
    answer.fields.add("x-host", std::string(head.fields.get_or("Host", "")));
    if (head.method == "HEAD") {
      answer.content_length = 77;
      co_return co_await exchange.respond(answer, {});
    }
    co_return co_await exchange.respond(answer, base::as_bytes(body.empty() ? "hello" : body));
  }
  Handler handler() {
    return [this](Exchange& exchange) { return run(exchange); };
  }
  bool one_connection() const {
    return std::ranges::all_of(ports, [&](std::uint16_t port) { return port == ports.front(); });
  }
};

ClientOptions options_for(std::uint16_t port) {
  ClientOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  return options;
}

base::HttpRequestHead request(std::string method, std::string target) {
  base::HttpRequestHead head;
  head.method = std::move(method);
  head.target = std::move(target);
  return head;
}

/// Sends one request and gives the body; the status goes to `status`.
async::Task<std::string> fetch(Client& client, base::HttpRequestHead head, BodyProducer* body,
                               int* status = nullptr) {
  CO_TRY(const auto response, co_await client.send(std::move(head), body));
  if (status != nullptr) *status = response->head().status;
  CO_TRY(const base::Bytes bytes, co_await response->read_all(100 << 20));
  co_return std::string(base::as_text(bytes));
}

/// Runs a function of a client that lives on this thread.
template <class Function>
void with_client(ClientOptions options, Function function) {
  struct Body {
    static async::Task<void> run(ClientOptions client_options, Function body) {
      const async::Executor executor = co_await async::net::this_coro::executor;
      CO_TRY(const auto client, Client::create(executor, std::move(client_options)));
      co_return co_await body(*client);
    }
  };
  const Result<void> result = async::run_until_done(Body::run(std::move(options), std::move(function)));
  EXPECT_TRUE(result.has_value()) << base::to_string(result.error());
}

TEST(Client, ReusesOneConnectionForAllForms) {
  Site site;
  TestServer server(site.handler());
  with_client(options_for(server.port()), [](Client& client) -> async::Task<void> {
    CO_TRY(const std::string got, co_await fetch(client, request("GET", "/a"), nullptr));
    EXPECT_EQ(got, "hello");
    CO_TRY(const std::string chunks, co_await fetch(client, request("GET", "/chunked"), nullptr));
    EXPECT_EQ(chunks.size(), 100U);
    TextBody sized_body(std::string(300'000, 'x'));
    auto sized = request("PUT", "/b");
    sized.content_length = 300'000;
    CO_TRY(const std::string echoed, co_await fetch(client, sized, &sized_body));
    EXPECT_EQ(echoed, std::string(300'000, 'x'));
    TextBody chunked_body(std::string(300'000, 'y'));
    CO_TRY(const std::string chunked_echo, co_await fetch(client, request("PUT", "/c"), &chunked_body));
    EXPECT_EQ(chunked_echo, std::string(300'000, 'y'));
    TextBody held_back("body");
    auto expecting = request("PUT", "/d");
    expecting.content_length = 4;
    expecting.expects_continue = true;
    CO_TRY(const std::string late, co_await fetch(client, expecting, &held_back));
    EXPECT_EQ(late, "body");
    CO_TRY(const auto head, co_await client.send(request("HEAD", "/e"), nullptr));
    EXPECT_EQ(head->head().content_length, 77U);
    CO_TRY(const base::Bytes none, co_await head->read_all(10));
    EXPECT_TRUE(none.empty());
    CO_TRY(const auto last, co_await client.send(request("GET", "/f"), nullptr));
    EXPECT_TRUE(last->head().fields.get_or("x-host", "").starts_with("127.0.0.1:"));
    co_return Result<void>{};
  });
  EXPECT_EQ(site.seen.size(), 7U);
  EXPECT_TRUE(site.one_connection());
}

TEST(Client, AnUnreadAnswerClosesItsConnection) {
  Site site;
  TestServer server(site.handler());
  with_client(options_for(server.port()), [](Client& client) -> async::Task<void> {
    {
      CO_TRY(const auto unread, co_await client.send(request("GET", "/a"), nullptr));
      EXPECT_EQ(unread->head().status, 200);
    }
    CO_TRY(const std::string next, co_await fetch(client, request("GET", "/b"), nullptr));
    EXPECT_EQ(next, "hello");
    co_return Result<void>{};
  });
  EXPECT_FALSE(site.one_connection());
}

TEST(Client, TakesAnAnswerThatComesBeforeTheBodysEnd) {
  Site site;
  TestServer server(site.handler());
  with_client(options_for(server.port()), [](Client& client) -> async::Task<void> {
    TextBody body(std::string(64 << 20, 'x'));
    auto head = request("PUT", "/early");
    head.content_length = 64 << 20;
    int status = 0;
    CO_TRY(const std::string answer, co_await fetch(client, head, &body, &status));
    EXPECT_EQ(status, 403);
    EXPECT_EQ(answer, "no");
    TextBody refused("body");
    auto expecting = request("PUT", "/early");
    expecting.content_length = 4;
    expecting.expects_continue = true;
    CO_TRY(const std::string second, co_await fetch(client, expecting, &refused, &status));
    EXPECT_EQ(status, 403);
    CO_TRY(const std::string next, co_await fetch(client, request("GET", "/a"), nullptr));
    EXPECT_EQ(next, "hello");
    co_return Result<void>{};
  });
}

TEST(Client, AnAnswerThatBreaksOffIsAnError) {
  Site site;
  TestServer server(site.handler());
  with_client(options_for(server.port()), [](Client& client) -> async::Task<void> {
    const Result<std::string> broken = co_await fetch(client, request("GET", "/short"), nullptr);
    EXPECT_EQ(broken.error().code, Code::closed);
    co_return Result<void>{};
  });
}

TEST(Client, BoundsWhatItReads) {
  Site site;
  TestServer server(site.handler());
  with_client(options_for(server.port()), [](Client& client) -> async::Task<void> {
    CO_TRY(const auto exact, co_await client.send(request("GET", "/chunked"), nullptr));
    CO_TRY(const base::Bytes all, co_await exact->read_all(100));
    EXPECT_EQ(all.size(), 100U);
    CO_TRY(const auto over, co_await client.send(request("GET", "/chunked"), nullptr));
    const auto refused = co_await over->read_all(99);
    EXPECT_EQ(refused.error().code, Code::too_large);
    co_return Result<void>{};
  });
}

TEST(Client, RefusesHeadsThatWouldBreakApart) {
  with_client(options_for(1), [](Client& client) -> async::Task<void> {
    auto split = request("GET", "/a");
    split.fields.add("x", "a\r\nb: c");
    for (const auto& head : {split, request("GET", "/a b"), request("GET", ""), request("GET", "/a\r\n")}) {
      const auto refused = co_await client.send(head, nullptr);
      // Port 1 is closed: a head that passed would end in unavailable.
      EXPECT_TRUE(refused.error().code == Code::unavailable ||
                  refused.error().code == Code::invalid_argument);
    }
    co_return Result<void>{};
  });
}

TEST(Client, SaysWhichServerIsNotThere) {
  with_client(options_for(1), [](Client& client) -> async::Task<void> {
    const auto refused = co_await client.send(request("GET", "/"), nullptr);
    EXPECT_EQ(refused.error().code, Code::unavailable);
    EXPECT_TRUE(refused.error().detail.starts_with("127.0.0.1:1: ")) << refused.error().detail;
    co_return Result<void>{};
  });
}

TEST(Client, RetriesOnceOnANewConnectionWhatMayBeRepeated) {
  Site site;
  auto first = std::make_unique<TestServer>(site.handler());
  ServerOptions same_port;
  same_port.port = first->port();
  std::unique_ptr<TestServer> second;
  with_client(options_for(first->port()), [&](Client& client) -> async::Task<void> {
    CO_TRY(const std::string before, co_await fetch(client, request("GET", "/a"), nullptr));
    EXPECT_EQ(before, "hello");
    first.reset();
    second = std::make_unique<TestServer>(site.handler(), same_port);
    TextBody body("again");
    auto put = request("PUT", "/b");
    put.content_length = 5;
    CO_TRY(const std::string after, co_await fetch(client, put, &body));
    EXPECT_EQ(after, "again");
    co_return Result<void>{};
  });
}

TEST(Client, WorksFromSeveralExecutorsWithABoundedPool) {
  Site site;
  TestServer server(site.handler());
  async::net::io_context home(1);
  auto work = async::net::make_work_guard(home);
  std::thread home_thread([&] { home.run(); });
  {
    ClientOptions options = options_for(server.port());
    options.connections_max = 2;
    const auto client = Client::create(home.get_executor(), options).value();
    std::vector<std::thread> threads;
    std::atomic<int> good = 0;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 25; ++j) {
          const auto got = async::run_until_done(fetch(*client, request("GET", "/a"), nullptr));
          good += got.has_value() && *got == "hello" ? 1 : 0;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(good, 100);
    std::ranges::sort(site.ports);
    site.ports.erase(std::unique(site.ports.begin(), site.ports.end()), site.ports.end());
    EXPECT_LE(site.ports.size(), 2U);
  }
  work.reset();
  home_thread.join();
}

/// A self-signed certificate for 127.0.0.1 and its key, as files.
class Certificate {
 public:
  Certificate() {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("reelway test"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(certificate, names, -1);
    X509_sign(certificate, key, EVP_sha256());
    write(certificate_file, [&](std::FILE* file) { return PEM_write_X509(file, certificate); });
    write(key_file, [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    X509_EXTENSION_free(names);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~Certificate() {
    std::remove(certificate_file.c_str());
    std::remove(key_file.c_str());
  }
  std::string certificate_file = testing::TempDir() + "/http_test_" + std::to_string(::getpid()) + ".crt";
  std::string key_file = testing::TempDir() + "/http_test_" + std::to_string(::getpid()) + ".key";

 private:
  template <class Writer>
  static void write(const std::string& path, Writer writer) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    EXPECT_EQ(writer(file), 1);
    std::fclose(file);
  }
};

TEST(Tls, CarriesEverythingAndVerifiesTheServer) {
  const Certificate certificate;
  Site site;
  ServerOptions server_options;
  server_options.tls_certificate_file = certificate.certificate_file;
  server_options.tls_key_file = certificate.key_file;
  TestServer server(site.handler(), server_options);
  ClientOptions options = options_for(server.port());
  options.tls = true;
  options.tls_ca_file = certificate.certificate_file;
  with_client(options, [](Client& client) -> async::Task<void> {
    for (int i = 0; i < 3; ++i) {
      const std::string text(5'000'000, static_cast<char>('a' + i));
      TextBody body(text);
      auto put = request("PUT", "/a");
      put.content_length = text.size();
      CO_TRY(const std::string echoed, co_await fetch(client, put, &body));
      EXPECT_TRUE(echoed == text);
    }
    CO_TRY(const std::string chunks, co_await fetch(client, request("GET", "/chunked"), nullptr));
    EXPECT_EQ(chunks.size(), 100U);
    co_return Result<void>{};
  });
  EXPECT_TRUE(site.one_connection());
  options.tls_ca_file.clear();
  with_client(options, [](Client& client) -> async::Task<void> {
    const auto untrusted = co_await client.send(request("GET", "/a"), nullptr);
    EXPECT_EQ(untrusted.error().code, Code::unavailable);
    EXPECT_NE(untrusted.error().detail.find("certificate verify failed"), std::string::npos)
        << untrusted.error().detail;
    co_return Result<void>{};
  });
}

TEST(Tls, SendsFilesAndOutlivesClientsThatDoNotSpeakIt) {
  const Certificate certificate;
  const std::string text = std::string(1'000'000, 'z') + "end";
  std::FILE* file = std::tmpfile();
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  std::fflush(file);
  ServerOptions server_options;
  server_options.tls_certificate_file = certificate.certificate_file;
  server_options.tls_key_file = certificate.key_file;
  TestServer server(
      [file, &text](Exchange& exchange) -> async::Task<void> {
        base::HttpResponseHead head;
        head.content_length = text.size() - 5;
        EXPECT_TRUE(exchange.peer().tls);
        CO_TRY_VOID(co_await exchange.start_response(head));
        co_return co_await exchange.send_file(::fileno(file), 5, text.size() - 5);
      },
      server_options);
  with_client(options_for(server.port()), [](Client& client) -> async::Task<void> {
    const auto plain = co_await client.send(request("GET", "/a"), nullptr);
    EXPECT_FALSE(plain.has_value());
    co_return Result<void>{};
  });
  ClientOptions options = options_for(server.port());
  options.tls = true;
  options.tls_verify = false;
  with_client(options, [&text](Client& client) -> async::Task<void> {
    CO_TRY(const std::string got, co_await fetch(client, request("GET", "/a"), nullptr));
    EXPECT_TRUE(got == text.substr(5));
    co_return Result<void>{};
  });
  server.shut_down(10s);
  std::fclose(file);
}

}  // namespace
}  // namespace reelway::http
