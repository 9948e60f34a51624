#pragma once
// Accounts and their keys. An access key is public, a secret key never leaves this room except to check a
// signature: it is not printable, and no error or log names it. Immutable once built, so it may be read from
// every reactor without a lock.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reelway::iam {

enum class Role : std::uint8_t { anonymous, root };

/// Who a request comes from, once its signature was checked. Anonymous has no id.
struct Principal {
  Role role = Role::anonymous;
  std::string account_id;  ///< canonical id: 64 hex digits, as S3 shows owners
  std::string display_name;
};

struct Account {
  Principal principal;
  std::string access_key;
  std::string secret_key;
};

/// The canonical id of an access key: SHA-256 of it, so that listings never show the key itself.
std::string canonical_id(std::string_view access_key);

class Accounts {
 public:
  /// invalid_argument when a key is empty, too short (secret under 8 characters) or holds '/' or white space.
  static base::Result<Accounts> with_root(std::string access_key, std::string secret_key);
  const Account* find(std::string_view access_key) const;
  const Account& root() const { return accounts_.front(); }

 private:
  std::vector<Account> accounts_;
};

}  // namespace reelway::iam
