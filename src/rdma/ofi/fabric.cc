#include "rdma/ofi/fabric.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;
using base::Scope;

constexpr std::uint32_t kApiVersion = FI_VERSION(1, 17);
constexpr std::size_t kCompletionQueueSize = 256;
/// An initiator is never sent anything: a short receive queue keeps shm's segment small.
constexpr std::size_t kInitiatorQueueSize = 64;
constexpr std::size_t kNameMax = 192;

/// libfabric's providers install handlers for fatal and terminating signals when it starts; those that the
/// process had set itself are put back.
class SignalsKept {
 public:
  SignalsKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~SignalsKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      const bool was_default = (before_[i].sa_flags & SA_SIGINFO) == 0 && before_[i].sa_handler == SIG_DFL;
      if (!was_default) sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  SignalsKept(const SignalsKept&) = delete;
  SignalsKept& operator=(const SignalsKept&) = delete;

 private:
  static constexpr std::array kSignals = {SIGBUS, SIGSEGV, SIGTERM, SIGINT};
  std::array<struct sigaction, kSignals.size()> before_{};
};

std::unique_ptr<fi_info, InfoCloser> make_hints(const std::string& provider) {
  std::unique_ptr<fi_info, InfoCloser> hints(fi_allocinfo());
  if (!hints) return hints;
  hints->caps = FI_RMA | FI_MSG;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  return hints;
}

/// libfabric's names for a provider, best first. The tcp that serves unconnected endpoints itself is called
/// net in 1.16 and 1.17, tcp from 1.18 on; the older tcp under ofi_rxm speaks another protocol and takes 80
/// MB for an endpoint.
std::vector<std::string> library_names(const std::string& provider) {
  if (provider == "tcp") return {"net", "tcp"};
  return {provider};
}

Result<std::unique_ptr<fi_info, InfoCloser>> find_provider(const std::string& provider,
                                                           const std::string& address) {
  static std::mutex starting;
  const std::scoped_lock lock(starting);
  const SignalsKept kept;
  int code = 0;
  for (const std::string& name : library_names(provider)) {
    const auto hints = make_hints(name);
    if (!hints) return base::fail(Code::no_space, "fi_allocinfo", Scope::node);
    fi_info* found = nullptr;
    code = fi_getinfo(kApiVersion, address.empty() ? nullptr : address.c_str(), nullptr,
                      address.empty() ? 0 : FI_SOURCE, hints.get(), &found);
    if (code == 0) return std::unique_ptr<fi_info, InfoCloser>(found);
  }
  return base::fail(Code::unsupported,
                    fmt::format("libfabric has no provider '{}'{}{} with one-sided transfers ({})", provider,
                                address.empty() ? "" : " on ", address, fi_strerror(-code)),
                    Scope::node);
}

}  // namespace

base::Error from_fabric(long code, std::string_view what, Scope scope) {
  const int number = static_cast<int>(code < 0 ? -code : code);
  const Code mapped = number == FI_EAGAIN || number == FI_EBUSY          ? Code::busy
                      : number == FI_ENOMEM                              ? Code::no_space
                      : number == FI_EACCES || number == FI_EKEYREJECTED ? Code::access_denied
                                                                         : Code::unavailable;
  return base::fail(mapped, fmt::format("{}: {}", what, fi_strerror(number)), scope, base::Retry::later);
}

Endpoint& Endpoint::operator=(Endpoint&& other) noexcept {
  Endpoint taken(std::move(other));
  addresses.swap(taken.addresses);
  completions.swap(taken.completions);
  handle.swap(taken.handle);
  std::swap(wait_descriptor, taken.wait_descriptor);
  name.swap(taken.name);
  return *this;
}

Result<std::unique_ptr<Domain>> Domain::open(const std::string& provider, const std::string& address,
                                             Role role) {
  std::unique_ptr<Domain> domain(new Domain);
  domain->provider_ = provider;
  TRY(domain->info_, find_provider(provider, provider == "shm" ? std::string() : address));
  fi_info* info = domain->info_.get();
  if (role == Role::initiator) {
    info->rx_attr->size = kInitiatorQueueSize;
    info->tx_attr->size = kInitiatorQueueSize;
  }
  fid_fabric* fabric = nullptr;
  if (const int code = fi_fabric(info->fabric_attr, &fabric, nullptr); code != 0) {
    return from_fabric(code, "fi_fabric", Scope::node);
  }
  domain->fabric_.reset(fabric);
  fid_domain* handle = nullptr;
  if (const int code = fi_domain(fabric, info, &handle, nullptr); code != 0) {
    return from_fabric(code, "fi_domain", Scope::node);
  }
  domain->domain_.reset(handle);
  return domain;
}

Result<MemoryRegion> Domain::register_memory(base::MutableBytes bytes, std::uint64_t access,
                                             std::uint64_t wanted_key) const {
  fid_mr* handle = nullptr;
  const int code =
      fi_mr_reg(domain_.get(), bytes.data(), bytes.size(), access, 0, wanted_key, 0, &handle, nullptr);
  if (code != 0) {
    const std::string_view cure = code == -FI_ENOMEM ? " (raise the memlock limit)" : "";
    return from_fabric(code, fmt::format("registering {} bytes with {}{}", bytes.size(), provider_, cure),
                       Scope::node);
  }
  return MemoryRegion{Fid<fid_mr>(handle), bytes};
}

Result<Endpoint> Domain::open_endpoint() const {
  Endpoint endpoint;
  fi_av_attr av_attributes{};
  av_attributes.count = 1;
  fid_av* av = nullptr;
  if (const int code = fi_av_open(domain_.get(), &av_attributes, &av, nullptr); code != 0) {
    return from_fabric(code, "fi_av_open", Scope::node);
  }
  endpoint.addresses.reset(av);

  fi_cq_attr cq_attributes{};
  cq_attributes.format = FI_CQ_FORMAT_CONTEXT;
  cq_attributes.size = kCompletionQueueSize;
  cq_attributes.wait_obj = is_shm() ? FI_WAIT_NONE : FI_WAIT_FD;
  fid_cq* cq = nullptr;
  if (const int code = fi_cq_open(domain_.get(), &cq_attributes, &cq, nullptr); code != 0) {
    return from_fabric(code, "fi_cq_open", Scope::node);
  }
  endpoint.completions.reset(cq);
  if (!is_shm() && fi_control(&cq->fid, FI_GETWAIT, &endpoint.wait_descriptor) != 0)
    endpoint.wait_descriptor = -1;

  fid_ep* ep = nullptr;
  if (const int code = fi_endpoint(domain_.get(), info_.get(), &ep, nullptr); code != 0) {
    return from_fabric(code, "fi_endpoint", Scope::node);
  }
  endpoint.handle.reset(ep);
  if (const int code = fi_ep_bind(ep, &av->fid, 0); code != 0)
    return from_fabric(code, "fi_ep_bind", Scope::node);
  if (const int code = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV); code != 0) {
    return from_fabric(code, "fi_ep_bind", Scope::node);
  }
  if (const int code = fi_enable(ep); code != 0) return from_fabric(code, "fi_enable", Scope::node);

  endpoint.name.resize(kNameMax);
  std::size_t size = endpoint.name.size();
  if (const int code = fi_getname(&ep->fid, endpoint.name.data(), &size); code != 0) {
    return from_fabric(code, "fi_getname", Scope::node);
  }
  endpoint.name.resize(size);
  return endpoint;
}

bool Domain::may_wait(const Endpoint& endpoint) const {
  fid* waited = &endpoint.completions->fid;
  return endpoint.wait_descriptor >= 0 && fi_trywait(fabric_.get(), &waited, 1) == FI_SUCCESS;
}

}  // namespace reelway::rdma::ofi
