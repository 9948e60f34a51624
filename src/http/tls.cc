#include "http/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <new>
#include <string_view>

namespace reelway::http {

namespace {

using ContextPointer = std::unique_ptr<SSL_CTX, TlsFree>;

ContextPointer new_context(const SSL_METHOD* method) {
  ContextPointer context(SSL_CTX_new(method));
  if (!context) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  return context;
}

base::Error bad_file(const std::string& file) {
  return base::fail(base::Code::invalid_argument, "TLS: " + file + ": " + take_tls_error(),
                    base::Scope::node);
}

int choose_http_1_1(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
                    unsigned in_length, void*) {
  static constexpr unsigned char kProtocols[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_length, kProtocols, sizeof kProtocols - 1, in, in_length) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

bool is_address(const std::string& host) {
  unsigned char buffer[16];
  return ::inet_pton(AF_INET, host.c_str(), buffer) == 1 || ::inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

TlsSession new_session(SSL_CTX* context, int descriptor) {
  TlsSession session(SSL_new(context));
  if (!session || SSL_set_fd(session.get(), descriptor) != 1) throw std::bad_alloc();
  return session;
}

}  // namespace

void TlsFree::operator()(SSL* ssl) const { SSL_free(ssl); }
void TlsFree::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

std::string take_tls_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "closed by the peer";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

TlsContext::TlsContext(ContextPointer context, bool verify) : context_(std::move(context)), verify_(verify) {}

base::Result<std::shared_ptr<TlsContext>> TlsContext::server(const std::string& certificate_file,
                                                             const std::string& key_file) {
  ContextPointer context = new_context(TLS_server_method());
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file.c_str()) != 1)
    return bad_file(certificate_file);
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return bad_file(key_file);
  if (SSL_CTX_check_private_key(context.get()) != 1) return bad_file(key_file);
  static constexpr unsigned char kSessionContext[] = "reelway";
  SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof kSessionContext - 1);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_http_1_1, nullptr);
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(context), false));
}

base::Result<std::shared_ptr<TlsContext>> TlsContext::client(const std::string& ca_file, bool verify) {
  ContextPointer context = new_context(TLS_client_method());
  ERR_clear_error();
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_file(context.get(), ca_file.c_str()) != 1) {
    return bad_file(ca_file);
  }
  SSL_CTX_set_verify(context.get(), verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(context), verify));
}

TlsSession TlsContext::accept(int descriptor) const {
  TlsSession session = new_session(context_.get(), descriptor);
  SSL_set_accept_state(session.get());
  return session;
}

TlsSession TlsContext::connect(int descriptor, const std::string& host) const {
  TlsSession session = new_session(context_.get(), descriptor);
  SSL_set_connect_state(session.get());
  if (is_address(host)) {
    if (verify_) X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str());
  } else {
    SSL_set_tlsext_host_name(session.get(), host.c_str());
    if (verify_) SSL_set1_host(session.get(), host.c_str());
  }
  return session;
}

}  // namespace reelway::http
