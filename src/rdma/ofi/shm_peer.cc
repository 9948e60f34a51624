#include "rdma/ofi/shm_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/encoding.h"

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;
using base::Scope;

constexpr std::string_view kPrefix = "fi_shm://";

Result<std::uint32_t> take_number(std::string_view& text, char end) {
  const auto stop = end == '\0' ? text.size() : text.find(end);
  if (stop == std::string_view::npos)
    return base::fail(Code::invalid_argument, "shm endpoint name: a field is missing");
  auto number = base::parse_decimal(text.substr(0, stop));
  text.remove_prefix(std::min(text.size(), stop + 1));
  if (!number || *number > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    return base::fail(Code::invalid_argument, "shm endpoint name: a field is not a number");
  }
  return static_cast<std::uint32_t>(*number);
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

struct DiagRequest {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

/// Address as inet_diag has it; IPv4 in IPv6 clothes becomes IPv4. Returns the family, 0 when the text is no
/// address.
int parse_address(const std::string& text, std::array<__be32, 4>& out) {
  out = {};
  if (inet_pton(AF_INET, text.c_str(), out.data()) == 1) return AF_INET;
  in6_addr six{};
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return 0;
  if (IN6_IS_ADDR_V4MAPPED(&six)) {
    std::memcpy(out.data(), six.s6_addr + 12, 4);
    return AF_INET;
  }
  std::memcpy(out.data(), &six, sizeof six);
  return AF_INET6;
}

/// Asks for the socket whose own end is the requester's; by both ends when ours is known (one look-up), else
/// by scanning.
Result<DiagRequest> make_request(const base::HttpPeer& requester) {
  DiagRequest request{};
  std::array<__be32, 4> source{};
  const int family = parse_address(requester.address, source);
  if (family == 0) return base::fail(Code::invalid_argument, "the requester's address is not an address");
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = static_cast<std::uint8_t>(family);
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  std::copy(source.begin(), source.end(), request.body.id.idiag_src);
  request.body.id.idiag_sport = htons(requester.port);
  request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  std::array<__be32, 4> target{};
  if (requester.local_port != 0 && parse_address(requester.local_address, target) == family) {
    std::copy(target.begin(), target.end(), request.body.id.idiag_dst);
    request.body.id.idiag_dport = htons(requester.local_port);
    request.header.nlmsg_flags = NLM_F_REQUEST;
  }
  return request;
}

/// The user of the socket in a batch of answers; done when the batch is the last.
struct Scan {
  bool found = false;
  bool done = false;
  uid_t user = 0;
};

Scan scan_answers(const char* data, std::size_t size, const inet_diag_req_v2& wanted) {
  Scan scan;
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, data, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > size) break;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      scan.done = true;
      return scan;
    }
    inet_diag_msg message;
    if (header.nlmsg_len >= NLMSG_LENGTH(sizeof message)) {
      std::memcpy(&message, data + NLMSG_HDRLEN, sizeof message);
      const bool same =
          message.id.idiag_sport == wanted.id.idiag_sport &&
          std::equal(std::begin(message.id.idiag_src), std::end(message.id.idiag_src), wanted.id.idiag_src) &&
          message.idiag_inode != 0;
      if (same) return {.found = true, .done = true, .user = message.idiag_uid};
    }
    const std::size_t step = std::min<std::size_t>(size, NLMSG_ALIGN(header.nlmsg_len));
    data += step;
    size -= step;
  }
  return scan;
}

}  // namespace

Result<ProcessWatch> ProcessWatch::open(pid_t process) {
  ProcessWatch watch;
  watch.descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (watch.descriptor_ < 0) {
    return base::fail(Code::unavailable, fmt::format("process {}: {}", process, std::strerror(errno)),
                      Scope::peer);
  }
  return watch;
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessWatch::is_running() const {
  pollfd entry{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) == 0;
}

Result<ShmPeer> find_shm_peer(base::ByteView endpoint_name) {
  std::string_view text = base::as_text(endpoint_name);
  if (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  if (!text.starts_with(kPrefix)) return base::fail(Code::invalid_argument, "not an shm endpoint name");
  text.remove_prefix(kPrefix.size());
  const std::string segment = "/dev/shm/" + std::string(text);
  TRY(const std::uint32_t process, take_number(text, ':'));
  TRY(const std::uint32_t user, take_number(text, ':'));
  TRY_VOID(take_number(text, '\0'));
  struct stat file{};
  if (::lstat(segment.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) {
    return base::fail(Code::unavailable, "the shm endpoint's segment does not exist", Scope::peer);
  }
  struct stat owner{};
  if (process == 0 || ::stat(fmt::format("/proc/{}", process).c_str(), &owner) != 0) {
    return base::fail(Code::unavailable, "the shm endpoint's process does not exist", Scope::peer);
  }
  if (file.st_uid != owner.st_uid || file.st_uid != user) {
    return base::fail(Code::access_denied, "the shm endpoint's process and segment have different owners",
                      Scope::peer);
  }
  return ShmPeer{.process = static_cast<pid_t>(process), .user = file.st_uid};
}

Result<void> check_cross_memory_attach() {
  int from = 1;
  int to = 0;
  const iovec local{&from, sizeof from};
  const iovec remote{&to, sizeof to};
  if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != sizeof from) {
    return base::fail(Code::unsupported,
                      fmt::format("shm: process_vm_writev is not permitted here ({})", std::strerror(errno)),
                      Scope::node);
  }
  return {};
}

Result<uid_t> find_local_requester(const base::HttpPeer& requester) {
  TRY(const DiagRequest request, make_request(requester));
  const Descriptor socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      ::send(socket.get(), &request, sizeof request, 0) != sizeof request) {
    return base::from_errno(errno, "asking the kernel for the requester's socket");
  }
  alignas(nlmsghdr) std::array<char, 16384> buffer;
  while (true) {
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return base::from_errno(errno, "asking the kernel for the requester's socket");
    const Scan scan = scan_answers(buffer.data(), static_cast<std::size_t>(size), request.body);
    if (scan.found) return scan.user;
    if (scan.done) return base::fail(Code::not_found, "the requester is not a process of this machine");
    if ((request.header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) break;
  }
  return base::fail(Code::not_found, "the requester is not a process of this machine");
}

}  // namespace reelway::rdma::ofi
