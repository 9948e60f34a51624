#include "archive/catalog.h"

#include <fmt/format.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

#include "archive/catalog_schema.h"
#include "archive/catalog_state.h"

namespace reelway::archive {

using base::Code;
using base::Result;
using catalog_detail::from_db;
using catalog_detail::guarded;
using catalog_detail::join_pools;
using catalog_detail::split_pools;
using catalog_detail::to_db;
using catalog_detail::transacted;
using soci::into;
using soci::use;

namespace catalog_detail {

std::string join_pools(const std::vector<std::string>& pools) {
  return fmt::format("{}", fmt::join(pools, ","));
}

std::vector<std::string> split_pools(const std::string& text) {
  std::vector<std::string> pools;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    pools.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return pools;
}

std::string prefix_end(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace catalog_detail

std::string_view to_string(VolumeState state) {
  static constexpr std::array<std::string_view, 5> kNames = {"blank", "active", "full", "damaged", "foreign"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string_view to_string(Disk disk) {
  static constexpr std::array<std::string_view, 6> kNames = {"resident", "evicting", "evicted",
                                                             "conflict", "lost",     "removed"};
  return kNames.at(static_cast<std::size_t>(disk));
}

std::optional<std::string> refuse_file_system(std::int64_t magic) {
  // linux/magic.h and the file systems' own headers. SQLite's WAL needs shared memory and locks that these do
  // not give.
  struct Row {
    std::int64_t magic;
    const char* name;
  };
  static constexpr std::array<Row, 7> kRefused = {{{0x6969, "NFS"},
                                                   {0x0bd00bd0, "Lustre"},
                                                   {0x00c36400, "CephFS"},
                                                   {0x01021997, "9p"},
                                                   {0x65735546, "FUSE"},
                                                   {0xff534d42, "CIFS"},
                                                   {0xfe534d42, "SMB2"}}};
  const auto row =
      std::find_if(kRefused.begin(), kRefused.end(), [&](const Row& at) { return at.magic == magic; });
  if (row == kRefused.end()) return std::nullopt;
  return fmt::format(
      "the catalog cannot lie on {}: its database would not survive a crash there; put --state on a local "
      "disk (ext4, XFS, Btrfs)",
      row->name);
}

namespace {

Result<void> migrate(soci::session& sql) {
  return transacted(sql, "schema", [&]() -> Result<void> {
    for (const char* statement : catalog_detail::kSchema) sql << statement;
    int version = 0;
    soci::indicator indicator = soci::i_null;
    sql << "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'schema'", into(version, indicator);
    if (!sql.got_data()) {
      sql << "INSERT INTO meta (name, value) VALUES ('schema', '" << catalog_detail::kSchemaVersion << "')";
    } else if (version > catalog_detail::kSchemaVersion) {
      return base::fail(Code::internal,
                        fmt::format("the catalog has schema {}, this reelway knows {}: use a newer one",
                                    version, catalog_detail::kSchemaVersion),
                        base::Scope::node);
    }
    return {};
  });
}

}  // namespace

Catalog::Catalog(std::unique_ptr<State> state) : state_(std::move(state)) {}
Catalog::~Catalog() = default;

Result<std::unique_ptr<Catalog>> Catalog::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return base::from_errno(error.value(), folder.string());
  struct statfs kind{};
  if (::statfs(folder.c_str(), &kind) != 0) return base::from_errno(errno, folder.string());
  if (auto cure = refuse_file_system(static_cast<std::int64_t>(static_cast<std::uint32_t>(kind.f_type)))) {
    return base::fail(Code::unsupported, std::move(*cure), base::Scope::node);
  }
  return guarded("open", [&]() -> Result<std::unique_ptr<Catalog>> {
    auto state = std::make_unique<State>();
    state->sql.open(soci::sqlite3, fmt::format("dbname={} timeout=10", (folder / "catalog.sqlite").string()));
    std::string mode;
    state->sql << "PRAGMA journal_mode = WAL", into(mode);
    state->sql << "PRAGMA synchronous = FULL";
    TRY_VOID(migrate(state->sql));
    return std::unique_ptr<Catalog>(new Catalog(std::move(state)));
  });
}

// ---- policies ----

Result<PolicyRow> Catalog::put_policy(const Policy& policy) {
  auto& sql = state_->sql;
  return transacted(sql, "put_policy", [&]() -> Result<PolicyRow> {
    const std::string pools = join_pools(policy.pools);
    const long long minimum_age = policy.minimum_age_s;
    const long long batch_age = policy.batch_age_s;
    const long long batch_count = to_db(policy.batch_count);
    const long long batch_bytes = to_db(policy.batch_bytes);
    const long long bundle_below = to_db(policy.bundle_below_bytes);
    sql << "INSERT INTO policies (bucket, prefix, pools, minimum_age, batch_age, batch_count, batch_bytes, "
           "bundle_below, verify)"
           " VALUES (:bucket, :prefix, :pools, :minimum_age, :batch_age, :batch_count, :batch_bytes, "
           ":bundle_below, :verify)"
           " ON CONFLICT (bucket, prefix) DO UPDATE SET pools = excluded.pools, minimum_age = "
           "excluded.minimum_age,"
           " batch_age = excluded.batch_age, batch_count = excluded.batch_count, batch_bytes = "
           "excluded.batch_bytes,"
           " bundle_below = excluded.bundle_below, verify = excluded.verify",
        use(policy.bucket), use(policy.prefix), use(pools), use(minimum_age), use(batch_age),
        use(batch_count), use(batch_bytes), use(bundle_below), use(policy.verify);
    long long id = 0;
    sql << "SELECT id FROM policies WHERE bucket = :bucket AND prefix = :prefix", use(policy.bucket),
        use(policy.prefix), into(id);
    return PolicyRow{id, policy};
  });
}

Result<void> Catalog::remove_policy(const std::string& bucket, const std::string& prefix) {
  auto& sql = state_->sql;
  return transacted(sql, "remove_policy", [&]() -> Result<void> {
    sql << "UPDATE objects SET policy = 0, missing = '' WHERE policy IN (SELECT id FROM policies WHERE "
           "bucket = :bucket AND prefix = :prefix)",
        use(bucket), use(prefix);
    sql << "DELETE FROM policies WHERE bucket = :bucket AND prefix = :prefix", use(bucket), use(prefix);
    return {};
  });
}

namespace {

struct PolicyFields {
  long long id = 0, minimum_age = 0, batch_age = 0, batch_count = 0, batch_bytes = 0, bundle_below = 0;
  std::string bucket, prefix, pools, verify;
  void bind(soci::statement& statement) {
    statement.exchange(into(id));
    statement.exchange(into(bucket));
    statement.exchange(into(prefix));
    statement.exchange(into(pools));
    statement.exchange(into(minimum_age));
    statement.exchange(into(batch_age));
    statement.exchange(into(batch_count));
    statement.exchange(into(batch_bytes));
    statement.exchange(into(bundle_below));
    statement.exchange(into(verify));
  }
  PolicyRow row() const {
    return {id, Policy{.bucket = bucket,
                       .prefix = prefix,
                       .pools = split_pools(pools),
                       .minimum_age_s = static_cast<std::uint32_t>(minimum_age),
                       .batch_age_s = static_cast<std::uint32_t>(batch_age),
                       .batch_count = from_db(batch_count),
                       .batch_bytes = from_db(batch_bytes),
                       .bundle_below_bytes = from_db(bundle_below),
                       .verify = verify}};
  }
};

struct VolumeFields {
  long long id = 0, bytes = 0, capacity = 0, batches = 0, end_block = 0, block_bytes = 0;
  int state = 0;
  std::string barcode, uuid, serial, pool;
  void bind(soci::statement& statement) {
    statement.exchange(into(id));
    statement.exchange(into(barcode));
    statement.exchange(into(uuid));
    statement.exchange(into(serial));
    statement.exchange(into(pool));
    statement.exchange(into(state));
    statement.exchange(into(bytes));
    statement.exchange(into(capacity));
    statement.exchange(into(batches));
    statement.exchange(into(end_block));
    statement.exchange(into(block_bytes));
  }
  VolumeRow row() const {
    return {.id = id,
            .barcode = barcode,
            .uuid = uuid,
            .serial = serial,
            .pool = pool,
            .state = static_cast<VolumeState>(state),
            .bytes = from_db(bytes),
            .capacity_bytes = from_db(capacity),
            .batches = from_db(batches),
            .end_block = from_db(end_block),
            .block_bytes = static_cast<std::uint32_t>(block_bytes)};
  }
};

struct VolumeCountFields {
  long long volume = 0, copies = 0, damaged = 0;
  void bind(soci::statement& statement) {
    statement.exchange(into(volume));
    statement.exchange(into(copies));
    statement.exchange(into(damaged));
  }
  VolumeCounts row() const {
    return {.volume = volume, .copies = from_db(copies), .damaged = from_db(damaged)};
  }
};

}  // namespace

Result<std::vector<PolicyRow>> Catalog::policies() {
  return guarded("policies", [&]() -> Result<std::vector<PolicyRow>> {
    return catalog_detail::collect<PolicyFields>(state_->sql,
                                                 "SELECT id, bucket, prefix, pools, minimum_age, batch_age, "
                                                 "batch_count, batch_bytes, bundle_below, verify"
                                                 " FROM policies ORDER BY bucket, prefix",
                                                 [](soci::statement&) {});
  });
}

// ---- volumes ----

Result<std::vector<VolumeRow>> Catalog::volumes() {
  return guarded("volumes", [&]() -> Result<std::vector<VolumeRow>> {
    return catalog_detail::collect<VolumeFields>(state_->sql,
                                                 "SELECT id, barcode, uuid, serial, pool, state, bytes, "
                                                 "capacity, batches, end_block, block_bytes FROM volumes"
                                                 " ORDER BY barcode",
                                                 [](soci::statement&) {});
  });
}

namespace {

VolumeRow store_volume(soci::session& sql, VolumeRow volume) {
  const int state = static_cast<int>(volume.state);
  const long long bytes = to_db(volume.bytes);
  const long long capacity = to_db(volume.capacity_bytes);
  const long long batches = to_db(volume.batches);
  const long long end_block = to_db(volume.end_block);
  const long long block_bytes = volume.block_bytes;
  sql << "INSERT INTO volumes (barcode, uuid, serial, pool, state, bytes, capacity, batches, end_block, "
         "block_bytes)"
         " VALUES (:barcode, :uuid, :serial, :pool, :state, :bytes, :capacity, :batches, :end_block, "
         ":block_bytes)"
         " ON CONFLICT (barcode) DO UPDATE SET uuid = excluded.uuid, serial = excluded.serial, pool = "
         "excluded.pool, state = excluded.state,"
         " bytes = excluded.bytes, capacity = excluded.capacity, batches = excluded.batches, end_block = "
         "excluded.end_block,"
         " block_bytes = excluded.block_bytes",
      use(volume.barcode), use(volume.uuid), use(volume.serial), use(volume.pool), use(state), use(bytes),
      use(capacity), use(batches), use(end_block), use(block_bytes);
  long long id = 0;
  sql << "SELECT id FROM volumes WHERE barcode = :barcode", use(volume.barcode), into(id);
  volume.id = id;
  return volume;
}

}  // namespace

Result<VolumeRow> Catalog::put_volume(VolumeRow volume) {
  return transacted(state_->sql, "put_volume",
                    [&]() -> Result<VolumeRow> { return store_volume(state_->sql, volume); });
}

Result<std::vector<VolumeCounts>> Catalog::volume_counts() {
  return guarded("volume_counts", [&]() -> Result<std::vector<VolumeCounts>> {
    return catalog_detail::collect<VolumeCountFields>(
        state_->sql, "SELECT volume, COUNT(*), COALESCE(SUM(damaged), 0) FROM copies GROUP BY volume",
        [](soci::statement&) {});
  });
}

}  // namespace reelway::archive
