#include "app/parse.h"

#include "base/encoding.h"

namespace reelway::app {

namespace {

base::Error wrong(std::string_view text, std::string_view what) {
  return base::fail(base::Code::invalid_argument, "'" + std::string(text) + "' is not " + std::string(what));
}

}  // namespace

base::Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong(text, "an address of the form HOST:PORT");
  const auto port = base::parse_decimal(text.substr(colon + 1));
  if (!port || *port > 65535) return wrong(text, "an address of the form HOST:PORT");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Address{.host = host.empty() ? "0.0.0.0" : std::string(host),
                 .port = static_cast<std::uint16_t>(*port)};
}

base::Result<Endpoint> parse_endpoint(std::string_view text) {
  std::string_view rest = text;
  const bool tls = rest.starts_with("https://");
  if (tls) rest.remove_prefix(8);
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const bool has_port = rest.rfind(':') != std::string_view::npos && !rest.ends_with(']');
  TRY(auto address, parse_address(has_port ? std::string(rest) : std::string(rest) + (tls ? ":443" : ":80")));
  return Endpoint{.address = std::move(address), .tls = tls};
}

base::Result<object::ObjectName> parse_s3_url(std::string_view text) {
  constexpr std::string_view kScheme = "s3://";
  if (!text.starts_with(kScheme)) return wrong(text, "of the form s3://BUCKET/KEY");
  const std::string_view rest = text.substr(kScheme.size());
  const auto slash = rest.find('/');
  object::ObjectName name{.bucket = std::string(rest.substr(0, slash)), .key = {}};
  if (slash != std::string_view::npos) name.key = rest.substr(slash + 1);
  if (name.bucket.empty()) return wrong(text, "of the form s3://BUCKET/KEY");
  return name;
}

}  // namespace reelway::app
