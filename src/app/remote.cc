#include "app/remote.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/json.hpp>

#include "app/parse.h"
#include "async/spawn.h"
#include "base/checksum.h"
#include "http/client.h"
#include "s3/sigv4.h"

namespace reelway::app {

namespace json = boost::json;

namespace {

constexpr std::size_t kAnswerBytesMax = 256 * base::kMiB;

class TextBody final : public http::BodyProducer {
 public:
  explicit TextBody(std::string_view text) : rest_(text) {}
  async::Task<std::size_t> read(base::MutableBytes into) override {
    const auto piece = rest_.substr(0, into.size());
    std::ranges::copy(base::as_bytes(piece), into.begin());
    rest_.remove_prefix(piece.size());
    co_return piece.size();
  }

 private:
  std::string_view rest_;
};

base::Code code_of(std::string_view name) {
  for (int code = 0; code <= static_cast<int>(base::Code::internal); ++code) {
    if (base::to_string(static_cast<base::Code>(code)) == name) return static_cast<base::Code>(code);
  }
  return base::Code::internal;
}

/// A server's refusal of a member is no wrong use of ours.
base::Error to_error(const json::object& error) {
  const auto text = [&](std::string_view name) {
    const auto* value = error.if_contains(name);
    return value && value->is_string() ? std::string(std::string_view(value->get_string())) : std::string{};
  };
  const std::string code = text("code");
  return base::fail(code_of(code), code + ": " + text("message"));
}

base::Result<json::object> parse_answer(std::string_view body, int status) {
  boost::system::error_code parse_error;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), parse_error);
  if (parse_error || !value.is_object()) {
    return base::fail(base::Code::unavailable,
                      "the admin address answered " + std::to_string(status) +
                          " with something that is no JSON object: does --admin name the admin address?");
  }
  const auto& object = value.get_object();
  if (const auto* error = object.if_contains("error"); error && error->is_object())
    return to_error(error->get_object());
  return object;
}

async::Task<json::object> send_command(const RemoteOptions& options, std::string command, std::string body) {
  CO_TRY(const Endpoint endpoint, parse_endpoint(options.admin));
  const async::Executor executor = co_await async::net::this_coro::executor;
  http::ClientOptions client_options;
  client_options.host = endpoint.address.host;
  client_options.port = endpoint.address.port;
  client_options.tls = endpoint.tls;
  CO_TRY(const auto client, http::Client::create(executor, std::move(client_options)));
  base::HttpRequestHead head{
      .method = "POST", .target = "/v1/" + command, .fields = {}, .content_length = body.size()};
  head.fields.set("Host", endpoint.address.host + ":" + std::to_string(endpoint.address.port));
  head.fields.set("Content-Type", "application/json");
  s3::SigningKeyCache keys;
  const s3::Credentials credentials{.access_key = options.access_key,
                                    .secret_key = options.secret_key,
                                    .region = options.region,
                                    .service = "s3"};
  const std::string hash = base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(body)));
  s3::sign(head, credentials, keys, hash, base::SystemClock{}.now());
  TextBody producer(body);
  CO_TRY(const auto response, co_await client->send(std::move(head), &producer));
  CO_TRY(const auto answer, co_await response->read_all(kAnswerBytesMax));
  co_return parse_answer(base::as_text(answer), response->head().status);
}

}  // namespace

void add_remote_options(CLI::App& command, RemoteOptions& options) {
  options.options->add("admin", options.admin, "The server's admin address");
  options.options->add("region", options.region, "The server's region");
  options.options->add_secret("access-key", options.access_key, "Root's access key");
  options.options->add_secret("secret-key", options.secret_key, "Root's secret key");
  options.options->attach(command);
  command.add_flag("--json", options.as_json, "Print the answer as JSON");
}

base::Result<json::object> call_admin(const RemoteOptions& options, std::string command,
                                      json::object members) {
  TRY_VOID(options.options->resolve({}, config::Options::system_environment()));
  if (options.access_key.empty() || options.secret_key.empty()) {
    return base::fail(base::Code::invalid_argument,
                      "set REELWAY_ACCESS_KEY and REELWAY_SECRET_KEY to the server's root keys");
  }
  std::string body = json::serialize(members);
  return async::run_until_done(send_command(options, std::move(command), std::move(body)));
}

}  // namespace reelway::app
