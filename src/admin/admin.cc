#include "admin/admin.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <boost/json.hpp>
#include <mutex>

#include "admin/commands.h"
#include "admin/page.h"
#include "admin/views.h"
#include "async/apart.h"
#include "base/checksum.h"
#include "iam/authenticate.h"
#include "iam/authorize.h"

namespace reelway::admin {

namespace json = boost::json;

namespace {

constexpr std::size_t kBodyBytesMax = 64 * base::kMiB;  // the keys of a large recall
constexpr base::Duration kKeepAliveInterval = std::chrono::seconds{5};
constexpr int kQuietRounds = 15;  // of events without news before a comment shows that the connection lives
constexpr std::string_view kCommandPath = "/v1/";

base::HttpResponseHead make_head(int status, std::string type) {
  base::HttpResponseHead head{.status = status, .fields = {}, .content_length = {}};
  head.fields.set("Content-Type", std::move(type));
  head.fields.set("Cache-Control", "no-store");
  head.fields.set("X-Content-Type-Options", "nosniff");
  return head;
}

async::Task<void> respond(http::Exchange& exchange, int status, std::string type, std::string_view body) {
  base::HttpResponseHead head = make_head(status, std::move(type));
  head.content_length = body.size();
  const bool is_head = exchange.head().method == "HEAD";
  co_return co_await exchange.respond(std::move(head), base::as_bytes(is_head ? std::string_view{} : body));
}

std::string error_json(std::string_view code, std::string_view message) {
  return json::serialize(json::object{{"error", json::object{{"code", code}, {"message", message}}}});
}

int status_of(base::Code code) {
  switch (code) {
    case base::Code::invalid_argument:
      return 400;
    case base::Code::not_found:
      return 404;
    case base::Code::already_exists:
    case base::Code::precondition_failed:
      return 409;
    case base::Code::unsupported:
      return 501;
    case base::Code::busy:
    case base::Code::unavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

struct Admin::State {
  State(AdminParts parts_in, AdminOptions options_in)
      : parts(std::move(parts_in)), options(std::move(options_in)), started(parts.clock.steady_now()) {}

  async::Task<void> route(http::Exchange& exchange);
  async::Task<void> send_status(http::Exchange& exchange);
  async::Task<void> send_events(http::Exchange& exchange);
  async::Task<void> command(http::Exchange& exchange, std::string name);
  async::Task<void> run_slowly(http::Exchange& exchange, std::string name, json::object members);
  async::Task<std::string> status_json();
  async::Task<std::string> shared_status_json();
  s3::Outcome<s3::Payload> admit(const base::HttpRequestHead& head);

  AdminParts parts;
  AdminOptions options;
  base::SteadyPoint started;
  s3::SigningKeyCache signing_keys;
  async::Gate gate;
  std::atomic<bool> closing = false;
  std::atomic<std::size_t> event_readers = 0;
  std::mutex status_mutex;  // guards the two below
  std::string last_status;
  std::optional<base::SteadyPoint> last_status_at;
};

Admin::Admin(AdminParts parts, AdminOptions options)
    : state_(std::make_unique<State>(std::move(parts), std::move(options))) {}

Admin::~Admin() = default;

async::Task<void> Admin::handle(http::Exchange& exchange) { return state_->route(exchange); }

async::Task<void> Admin::close() {
  state_->closing = true;
  return state_->gate.close();
}

async::Task<void> Admin::State::route(http::Exchange& exchange) {
  const auto& head = exchange.head();
  const std::string path = head.target.substr(0, head.target.find('?'));
  const bool is_read = head.method == "GET" || head.method == "HEAD";
  if (is_read && path == "/")
    co_return co_await respond(exchange, 200, "text/html; charset=utf-8", status_page());
  if (is_read && path == "/health") co_return co_await respond(exchange, 200, "text/plain", "ok\n");
  if (is_read && path == "/metrics") {
    const std::string text = parts.metrics ? parts.metrics() : std::string{};
    co_return co_await respond(exchange, 200, "text/plain; version=0.0.4", text);
  }
  if (is_read && path == "/status.json") co_return co_await send_status(exchange);
  if (head.method == "GET" && path == "/events") co_return co_await send_events(exchange);
  if (head.method == "POST" && path.starts_with(kCommandPath))
    co_return co_await command(exchange, path.substr(kCommandPath.size()));
  co_return co_await respond(exchange, 404, "application/json", error_json("not_found", "no such page"));
}

// ---- status ----

async::Task<std::string> Admin::State::status_json() {
  const auto up =
      std::chrono::duration_cast<std::chrono::seconds>(parts.clock.steady_now() - started).count();
  const DiskView disk = parts.disk ? parts.disk() : DiskView{};
  json::object out{{"version", REELWAY_VERSION},
                   {"time", base::to_iso8601(parts.clock.now())},
                   {"uptime_s", up},
                   {"region", options.region},
                   {"s3_address", options.s3_address},
                   {"disk", json::object{{"bytes_total", disk.bytes_total}, {"bytes_free", disk.bytes_free}}},
                   {"archive", nullptr},
                   {"library", nullptr}};
  if (parts.archive != nullptr) {
    CO_TRY(const auto status, co_await parts.archive->status_view());
    CO_TRY(const auto library, co_await parts.archive->library_view());
    out["archive"] = to_json(status);
    out["library"] = to_json(library);
  } else if (parts.archive_missing) {
    out["archive_missing"] = parts.archive_missing();
  }
  co_return json::serialize(out);
}

/// However many look at the page, the archive is asked once in an interval.
async::Task<std::string> Admin::State::shared_status_json() {
  const auto now = parts.clock.steady_now();
  {
    const std::lock_guard lock(status_mutex);
    if (last_status_at && now - *last_status_at < options.event_interval / 2) co_return last_status;
    last_status_at = now;
  }
  CO_TRY(std::string text, co_await status_json());
  const std::lock_guard lock(status_mutex);
  last_status = text;
  co_return text;
}

async::Task<void> Admin::State::send_status(http::Exchange& exchange) {
  const auto text = co_await status_json();
  if (!text)
    co_return co_await respond(exchange, 503, "application/json",
                               error_json(base::to_string(text.error().code), text.error().detail));
  co_return co_await respond(exchange, 200, "application/json", *text);
}

async::Task<void> Admin::State::send_events(http::Exchange& exchange) {
  auto holder = gate.hold();
  if (!holder || event_readers >= options.event_readers_max) {
    co_return co_await respond(exchange, 503, "application/json",
                               error_json("busy", "too many readers of /events"));
  }
  struct Count {
    explicit Count(std::atomic<std::size_t>& value_in) : value(value_in) { ++value; }
    ~Count() { --value; }
    std::atomic<std::size_t>& value;
  } const count(event_readers);
  async::SystemTimer timer;
  CO_TRY_VOID(co_await exchange.start_response(make_head(200, "text/event-stream")));
  std::string sent;
  for (int quiet = 0; !closing && !exchange.peer_gone(); ++quiet) {
    const auto text = co_await shared_status_json();
    if (text && *text != sent) {
      sent = *text;
      quiet = 0;
      const std::string event = "event: status\ndata: " + sent + "\n\n";
      CO_TRY_VOID(co_await exchange.write_body(base::as_bytes(event)));
    } else if (quiet >= kQuietRounds) {
      quiet = 0;
      CO_TRY_VOID(co_await exchange.write_body(base::as_bytes(": still here\n\n")));
    }
    CO_TRY_VOID(co_await timer.sleep_for(options.event_interval));
  }
  co_return co_await exchange.end_body();
}

// ---- commands ----

/// How to check the body of a sender who may command here.
s3::Outcome<s3::Payload> Admin::State::admit(const base::HttpRequestHead& head) {
  TRY(const auto caller,
      iam::authenticate(head, parts.accounts, signing_keys, options.region, parts.clock.now()));
  if (!iam::allow(caller.principal, "reelway:Administer", {})) return s3::fault(s3::ErrorCode::access_denied);
  if (caller.verified.payload.form != s3::PayloadForm::signed_hash)
    return s3::fault(s3::ErrorCode::invalid_request);
  return caller.verified.payload;
}

async::Task<void> Admin::State::command(http::Exchange& exchange, std::string name) {
  const auto payload = admit(exchange.head());
  if (!payload) {
    const auto& row = s3::error_row(payload.error().code);
    co_return co_await respond(exchange, row.status, "application/json", error_json(row.name, row.message));
  }
  std::string body;
  std::vector<std::byte> piece(16 * base::kKiB);
  while (body.size() <= kBodyBytesMax) {
    CO_TRY(const std::size_t count, co_await exchange.read_body(piece));
    if (count == 0) break;
    body += base::as_text(base::ByteView(piece).first(count));
  }
  if (body.size() > kBodyBytesMax)
    co_return co_await respond(exchange, 413, "application/json",
                               error_json("too_large", "the body is too large"));
  if (!std::ranges::equal(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(body)),
                          payload->sha256)) {
    co_return co_await respond(
        exchange, 400, "application/json",
        error_json("XAmzContentSHA256Mismatch", "the body is not the one that was signed"));
  }
  boost::system::error_code parse_error;
  const json::value value = body.empty() ? json::value(json::object{}) : json::parse(body, parse_error);
  if (parse_error || !value.is_object()) {
    co_return co_await respond(exchange, 400, "application/json",
                               error_json("invalid_argument", "the body is no JSON object"));
  }
  if (parts.archive == nullptr) {
    co_return co_await respond(
        exchange, 501, "application/json",
        error_json("unsupported", "this server has no tape library; start it with --vtl"));
  }
  co_return co_await run_slowly(exchange, std::move(name), value.get_object());
}

async::Task<void> Admin::State::run_slowly(http::Exchange& exchange, std::string name, json::object members) {
  auto holder = gate.hold();
  if (!holder)
    co_return co_await respond(exchange, 503, "application/json",
                               error_json("unavailable", "the server is going down"));
  const async::Executor executor = co_await async::net::this_coro::executor;
  parts.log.write(base::LogLevel::info, "admin", name);
  auto running = async::Apart<json::object>::start(executor, std::move(*holder), "command " + name, parts.log,
                                                   run_command(*parts.archive, name, std::move(members)));
  CO_TRY_VOID(co_await running.wait(kKeepAliveInterval));
  const bool is_slow = !running.result();
  if (is_slow) CO_TRY_VOID(co_await exchange.start_response(make_head(200, "application/json")));
  while (!running.result()) {
    CO_TRY_VOID(co_await exchange.write_body(base::as_bytes(" ")));
    CO_TRY_VOID(co_await running.wait(kKeepAliveInterval));
  }
  const auto& result = *running.result();
  const std::string text = result ? json::serialize(*result)
                                  : error_json(base::to_string(result.error().code), result.error().detail);
  if (!is_slow)
    co_return co_await respond(exchange, result ? 200 : status_of(result.error().code), "application/json",
                               text);
  CO_TRY_VOID(co_await exchange.write_body(base::as_bytes(text)));
  co_return co_await exchange.end_body();
}

}  // namespace reelway::admin
