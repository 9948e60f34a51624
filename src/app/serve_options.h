#pragma once
// What `reelway serve` can be told.

#include <string>
#include <vector>

#include "base/clock.h"
#include "config/options.h"

namespace reelway::app {

struct ServeOptions {
  std::string root;
  std::string state;
  std::string listen = "127.0.0.1:7070";
  std::string admin_listen = "127.0.0.1:7071";
  std::string region = "us-east-1";
  std::vector<std::string> virtual_host_domains;
  std::string access_key;
  std::string secret_key;
  std::string tls_certificate;
  std::string tls_key;
  std::string durability = "full";              ///< full | none
  std::string etag = "md5";                     ///< md5 | crc64
  std::string rdma_etag = "crc64";              ///< md5 | crc64
  std::vector<std::string> rdma{"shm", "tcp"};  ///< providers to open where they can be; "off" for none
  std::string rdma_address;
  std::vector<std::string> rdma_peers;  ///< networks that planes may connect to
  bool rdma_shm_trust_local = false;
  bool recall_on_read = false;
  base::Duration patience = std::chrono::seconds{45};
  bool evict_on_any_file_system = false;
  config::ByteCount pool_bytes{256 * 1024 * 1024};
  std::string vtl;
  std::vector<std::string> pools;  ///< "a=L90001L9,L90002L9"
  std::string ready_file;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string log_file;
  std::uint64_t threads = 0;  ///< reactors; 0: one per core
  base::Duration client_patience = std::chrono::seconds{30};
  base::Duration shutdown_patience = std::chrono::seconds{20};
};

}  // namespace reelway::app
