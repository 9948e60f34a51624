#pragma once
// TLS 1.2 and newer by OpenSSL, as contexts from files. Server contexts let clients resume sessions
// (tickets).

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_st;
struct ssl_ctx_st;

namespace reelway::http {

struct TlsFree {
  void operator()(ssl_st* ssl) const;
  void operator()(ssl_ctx_st* context) const;
};
using TlsSession = std::unique_ptr<ssl_st, TlsFree>;

class TlsContext {
 public:
  /// invalid_argument naming the file that OpenSSL does not take.
  static base::Result<std::shared_ptr<TlsContext>> server(const std::string& certificate_file,
                                                          const std::string& key_file);
  /// `ca_file` empty: the system's.
  static base::Result<std::shared_ptr<TlsContext>> client(const std::string& ca_file, bool verify);
  /// For an accepted socket (non-blocking).
  TlsSession accept(int descriptor) const;
  /// For a connected socket; the certificate must be for `host` (a name or an address).
  TlsSession connect(int descriptor, const std::string& host) const;

 private:
  explicit TlsContext(std::unique_ptr<ssl_ctx_st, TlsFree> context, bool verify);
  std::unique_ptr<ssl_ctx_st, TlsFree> context_;
  bool verify_ = true;
};

/// The oldest entry of OpenSSL's error queue in words; empties the queue.
std::string take_tls_error();

}  // namespace reelway::http
