#pragma once
// libfabric objects with owners: a Domain of one provider, endpoints in it, memory registered with it.
// Everything here is made for one-sided transfers between reliable unconnected endpoints (FI_EP_RDM, FI_RMA).
// libfabric 1.17, man fi_rma(3), fi_mr(3), fi_cq(3).
//
// What differs by provider is asked, not assumed: whether remote addresses are virtual or offsets, whether
// keys are chosen by the provider, whether a completion queue has a file descriptor to wait on. What cannot
// be asked: a plain write over tcp and verbs completes before it is in target memory; shm (1.17), of which
// only targets are made here, copies during the call that posts, and a delivery-complete write there needs
// the target to poll all the time.

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/encoding.h"
#include "base/result.h"

namespace reelway::rdma::ofi {

struct FidCloser {
  template <class F>
  void operator()(F* object) const {
    fi_close(&object->fid);
  }
};
template <class F>
using Fid = std::unique_ptr<F, FidCloser>;

struct InfoCloser {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

/// Error for a negative libfabric code.
base::Error from_fabric(long code, std::string_view what, base::Scope scope = base::Scope::peer);

struct MemoryRegion {
  Fid<fid_mr> handle;
  base::MutableBytes bytes;
  void* descriptor() const { return fi_mr_desc(handle.get()); }
  std::uint64_t key() const { return fi_mr_key(handle.get()); }
};

/// An endpoint with its own address table (of at most one peer) and completion queue.
struct Endpoint {
  Fid<fid_av> addresses;
  Fid<fid_cq> completions;
  Fid<fid_ep> handle;  // closed first: declared last
  int wait_descriptor = -1;
  base::Bytes name;

  Endpoint() = default;
  Endpoint(Endpoint&&) = default;
  /// Closes what it had, in the order that libfabric wants.
  Endpoint& operator=(Endpoint&& other) noexcept;
};

enum class Role { initiator, target };

class Domain {
 public:
  /// `provider`: "shm", "tcp", "verbs;ofi_rxm". `address`: a local address to bind, empty: the provider's
  /// choice. unsupported: the provider or what it needs from the kernel is not there; the detail says which.
  static base::Result<std::unique_ptr<Domain>> open(const std::string& provider, const std::string& address,
                                                    Role role);

  base::Result<MemoryRegion> register_memory(base::MutableBytes bytes, std::uint64_t access,
                                             std::uint64_t wanted_key) const;
  base::Result<Endpoint> open_endpoint() const;
  /// True when there is something to wait for on the endpoint's descriptor: nothing is ready yet.
  bool may_wait(const Endpoint& endpoint) const;

  const std::string& provider() const { return provider_; }
  bool is_shm() const { return provider_ == "shm"; }
  bool has_virtual_addresses() const { return (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0; }
  std::size_t message_max() const { return info_->ep_attr->max_msg_size; }
  /// For writes: the completion must mean that the bytes are in the target's memory.
  std::uint64_t write_flags() const {
    return is_shm() ? FI_COMPLETION : FI_COMPLETION | FI_DELIVERY_COMPLETE;
  }

 private:
  Domain() = default;
  std::string provider_;
  std::unique_ptr<fi_info, InfoCloser> info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
};

}  // namespace reelway::rdma::ofi
