#include "iam/accounts.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/encoding.h"

namespace reelway::iam {

namespace {

constexpr std::size_t kAccessKeyBytesMin = 3;
constexpr std::size_t kSecretKeyBytesMin = 8;

bool is_key_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string canonical_id(std::string_view access_key) {
  return base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(access_key)));
}

base::Result<Accounts> Accounts::with_root(std::string access_key, std::string secret_key) {
  if (access_key.size() < kAccessKeyBytesMin || !is_key_text(access_key) || access_key.contains('/')) {
    return base::fail(
        base::Code::invalid_argument,
        "the root access key needs 3 or more printable characters without '/': set REELWAY_ACCESS_KEY");
  }
  if (secret_key.size() < kSecretKeyBytesMin || !is_key_text(secret_key)) {
    return base::fail(base::Code::invalid_argument,
                      "the root secret key needs 8 or more printable characters: set REELWAY_SECRET_KEY");
  }
  Accounts accounts;
  Principal principal{.role = Role::root, .account_id = canonical_id(access_key), .display_name = "root"};
  accounts.accounts_.push_back({std::move(principal), std::move(access_key), std::move(secret_key)});
  return accounts;
}

const Account* Accounts::find(std::string_view access_key) const {
  const auto found = std::ranges::find(accounts_, access_key, &Account::access_key);
  return found == accounts_.end() ? nullptr : &*found;
}

}  // namespace reelway::iam
