// The reference of the PUT benchmarks: accepts one loopback connection after another, receives `bytes` from
// each and writes them to a new file, which is published by rename; with `md5` it also computes the MD5 as
// the bytes pass. Answers one byte when a file is in place. Usage: receive_loop PORT BYTES FOLDER [md5]

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int listen_on(std::uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 16) != 0) {
    std::perror("receive_loop");
    std::exit(1);
  }
  return listener;
}

bool receive_file(int connection, std::size_t bytes, const std::string& folder, EVP_MD_CTX* md5,
                  std::vector<char>& buffer) {
  const std::string temporary = folder + "/receiving";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (count <= 0 || ::write(file, buffer.data(), static_cast<std::size_t>(count)) != count) break;
    if (md5 != nullptr) EVP_DigestUpdate(md5, buffer.data(), static_cast<std::size_t>(count));
    done += static_cast<std::size_t>(count);
  }
  ::close(file);
  return done == bytes && ::rename(temporary.c_str(), (folder + "/received").c_str()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int listener = listen_on(static_cast<std::uint16_t>(std::atoi(argv[1])));
  const auto bytes = static_cast<std::size_t>(std::atoll(argv[2]));
  const bool with_md5 = argc > 4 && std::strcmp(argv[4], "md5") == 0;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return 1;
    EVP_MD_CTX* md5 = with_md5 ? EVP_MD_CTX_new() : nullptr;
    if (md5 != nullptr) EVP_DigestInit_ex(md5, EVP_md5(), nullptr);
    while (receive_file(connection, bytes, argv[3], md5, buffer)) {
      if (::send(connection, "+", 1, MSG_NOSIGNAL) != 1) break;
      if (md5 != nullptr) EVP_DigestInit_ex(md5, EVP_md5(), nullptr);
    }
    EVP_MD_CTX_free(md5);
    ::close(connection);
  }
}
