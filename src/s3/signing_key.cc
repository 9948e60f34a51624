#include <list>
#include <mutex>
#include <unordered_map>

#include "base/checksum.h"
#include "s3/canonical.h"

namespace reelway::s3 {

SigningKey derive_signing_key(std::string_view secret, std::string_view date, std::string_view region,
                              std::string_view service) {
  base::Bytes key = base::hmac_sha256(base::as_bytes("AWS4" + std::string(secret)), base::as_bytes(date));
  for (const std::string_view word : {region, service, std::string_view("aws4_request")}) {
    key = base::hmac_sha256(key, base::as_bytes(word));
  }
  SigningKey out{};
  std::copy(key.begin(), key.end(), out.begin());
  return out;
}

struct SigningKeyCache::State {
  struct Entry {
    std::string name;
    std::string secret;
    SigningKey key;
  };
  std::size_t capacity = 0;
  std::mutex mutex;
  std::list<Entry> entries;  ///< the most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_name;

  std::optional<SigningKey> find(std::string_view name, std::string_view secret) {
    const std::lock_guard lock(mutex);
    const auto it = by_name.find(name);
    if (it == by_name.end() || !equal_in_constant_time(it->second->secret, secret)) return std::nullopt;
    entries.splice(entries.begin(), entries, it->second);
    return it->second->key;
  }

  void put(std::string name, std::string_view secret, const SigningKey& key) {
    const std::lock_guard lock(mutex);
    if (const auto it = by_name.find(name); it != by_name.end()) {
      const auto entry = it->second;
      by_name.erase(it);
      entries.erase(entry);
    }
    entries.push_front({std::move(name), std::string(secret), key});
    by_name.emplace(entries.front().name, entries.begin());
    if (entries.size() > capacity) {
      by_name.erase(entries.back().name);
      entries.pop_back();
    }
  }
};

SigningKeyCache::SigningKeyCache(std::size_t capacity) : state_(std::make_unique<State>()) {
  state_->capacity = capacity;
}
SigningKeyCache::~SigningKeyCache() = default;

SigningKey SigningKeyCache::get(std::string_view access_key, std::string_view secret, std::string_view date,
                                std::string_view region, std::string_view service) {
  std::string name;
  for (const std::string_view part : {access_key, date, region, service}) {
    name += part;
    name += '\n';
  }
  if (const auto key = state_->find(name, secret)) return *key;
  const SigningKey key = derive_signing_key(secret, date, region, service);
  state_->put(std::move(name), secret, key);
  return key;
}

}  // namespace reelway::s3
