#include "rdma/ofi/shm_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace reelway::rdma::ofi {
namespace {

using base::Code;

Code code_of(const std::string& name) {
  const auto found = find_shm_peer(base::as_bytes(name));
  return found ? Code::internal : found.error().code;
}

/// A segment as libfabric makes them, gone at the end.
class Segment {
 public:
  explicit Segment(const std::string& name) : path_("/dev/shm/" + name) {
    const int file = open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    EXPECT_GE(file, 0) << path_;
    close(file);
  }
  ~Segment() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

TEST(ShmPeer, ALivingProcessOfOneUserIsFound) {
  const std::string name = fmt::format("{}:{}:77001", getpid(), getuid());
  const Segment segment(name);
  const auto found = find_shm_peer(base::as_bytes("fi_shm://" + name + std::string(1, '\0')));
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->process, getpid());
  EXPECT_EQ(found->user, getuid());
}

TEST(ShmPeer, BrokenNamesAreRefused) {
  for (const char* name :
       {"", "fi_shm://", "fi_shm://1", "fi_shm://1:2", "fi_shm://1:2:", "fi_shm://a:0:0", "fi_shm://1:0:0x",
        "fi_shm://-1:0:0", "fi_shm://99999999999:0:0", "fi_shm://1:0:../../etc/passwd", "tcp://1:0:0"}) {
    EXPECT_EQ(code_of(name), Code::invalid_argument) << name;
  }
}

TEST(ShmPeer, WithoutSegmentOrProcessNothingIsServed) {
  EXPECT_EQ(code_of(fmt::format("fi_shm://{}:{}:77002", getpid(), getuid())), Code::unavailable);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const std::string name = fmt::format("{}:{}:77003", child, getuid());
  const Segment segment(name);
  EXPECT_EQ(code_of("fi_shm://" + name), Code::unavailable);
}

TEST(ShmPeer, SegmentAndProcessMustHaveOneOwner) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const std::string name = fmt::format("{}:{}:77004", getpid(), getuid());
  const Segment segment(name);
  ASSERT_EQ(chown(segment.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(code_of("fi_shm://" + name), Code::access_denied);
  const std::string lying = fmt::format("{}:65534:77005", getpid());
  const Segment other(lying);
  EXPECT_EQ(code_of("fi_shm://" + lying), Code::access_denied);
}

TEST(ShmPeer, AnEndedProcessIsSeen) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto watch = ProcessWatch::open(child);
  ASSERT_TRUE(watch);
  EXPECT_TRUE(watch->is_running());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(watch->is_running());
  EXPECT_FALSE(ProcessWatch::open(child));
}

/// A TCP connection over loopback; `family` AF_INET6 uses ::1.
class Connection {
 public:
  explicit Connection(int family) : family_(family) {
    listener_ = socket(family, SOCK_STREAM, 0);
    sockaddr_storage address{};
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    address.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
      reinterpret_cast<sockaddr_in*>(&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr = in6addr_loopback;
    }
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ok_ = bind(listener_, generic, size) == 0 && listen(listener_, 1) == 0 &&
          getsockname(listener_, generic, &size) == 0;
    server_port_ = port_of(address);
    client_ = socket(family, SOCK_STREAM, 0);
    ok_ = ok_ && connect(client_, generic, size) == 0 && getsockname(client_, generic, &size) == 0;
    client_port_ = port_of(address);
  }
  ~Connection() {
    close(client_);
    close(listener_);
  }
  bool ok() const { return ok_; }
  base::HttpPeer peer(bool with_local) const {
    const std::string address = family_ == AF_INET ? "127.0.0.1" : "::1";
    base::HttpPeer peer{
        .address = address, .port = client_port_, .tls = false, .local_address = {}, .local_port = 0};
    if (with_local) {
      peer.local_address = address;
      peer.local_port = server_port_;
    }
    return peer;
  }

 private:
  std::uint16_t port_of(const sockaddr_storage& address) const {
    return ntohs(family_ == AF_INET ? reinterpret_cast<const sockaddr_in*>(&address)->sin_port
                                    : reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  int family_;
  int listener_ = -1;
  int client_ = -1;
  bool ok_ = false;
  std::uint16_t server_port_ = 0;
  std::uint16_t client_port_ = 0;
};

TEST(LocalRequester, IsTheOwnerOfTheOtherEnd) {
  for (const int family : {AF_INET, AF_INET6}) {
    const Connection connection(family);
    if (!connection.ok() && family == AF_INET6) continue;  // a machine without IPv6
    ASSERT_TRUE(connection.ok());
    for (const bool with_local : {true, false}) {
      const auto user = find_local_requester(connection.peer(with_local));
      ASSERT_TRUE(user) << family << with_local << to_string(user.error());
      EXPECT_EQ(*user, getuid());
    }
  }
}

TEST(LocalRequester, AnIpv4AddressInIpv6ClothesIsTheSame) {
  const Connection connection(AF_INET);
  auto peer = connection.peer(true);
  peer.address = "::ffff:127.0.0.1";
  peer.local_address = "::ffff:127.0.0.1";
  EXPECT_TRUE(find_local_requester(peer));
}

TEST(LocalRequester, AStrangerIsNotFound) {
  const Connection connection(AF_INET);
  auto peer = connection.peer(false);
  peer.address = "192.0.2.77";
  const auto stranger = find_local_requester(peer);
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, Code::not_found);
  auto wrong_end = connection.peer(true);
  wrong_end.local_port ^= 1;
  EXPECT_FALSE(find_local_requester(wrong_end));
  EXPECT_FALSE(
      find_local_requester({.address = "", .port = 1, .tls = false, .local_address = {}, .local_port = 0}));
}

}  // namespace
}  // namespace reelway::rdma::ofi
