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
using catalog_detail::time_from_db;
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
    sql << "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)";
    int version = 0;  // of a new one
    soci::indicator indicator = soci::i_null;
    sql << "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'schema'", into(version, indicator);
    if (version > catalog_detail::kSchemaVersion) {
      return base::fail(Code::internal,
                        fmt::format("the catalog has schema {}, this reelway knows {}: use a newer one",
                                    version, catalog_detail::kSchemaVersion),
                        base::Scope::node);
    }
    if (version == 1) {
      for (const char* statement : catalog_detail::kStepsTo2) sql << statement;
    }
    for (const char* statement : catalog_detail::kSchema) sql << statement;
    const std::string now = std::to_string(catalog_detail::kSchemaVersion);
    sql << "INSERT INTO meta (name, value) VALUES ('schema', :version) ON CONFLICT (name) DO UPDATE SET "
           "value "
           "= excluded.value",
        use(now);
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

namespace {

struct VolumeFields {
  static constexpr const char* kColumns =
      "id, barcode, uuid, serial, pool, state, bytes, capacity, batches, end_block, block_bytes, "
      "medium_serial, policies_at";
  long long id = 0, bytes = 0, capacity = 0, batches = 0, end_block = 0, block_bytes = 0, policies_at = 0;
  int state = 0;
  std::string barcode, uuid, serial, pool, medium_serial;
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
    statement.exchange(into(medium_serial));
    statement.exchange(into(policies_at));
  }
  VolumeRow row() const {
    return {.id = id,
            .barcode = barcode,
            .uuid = uuid,
            .serial = serial,
            .medium_serial = medium_serial,
            .pool = pool,
            .state = static_cast<VolumeState>(state),
            .bytes = from_db(bytes),
            .capacity_bytes = from_db(capacity),
            .batches = from_db(batches),
            .end_block = from_db(end_block),
            .block_bytes = static_cast<std::uint32_t>(block_bytes),
            .policies_at = time_from_db(policies_at)};
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

// ---- volumes ----

Result<std::vector<VolumeRow>> Catalog::volumes() {
  return guarded("volumes", [&]() -> Result<std::vector<VolumeRow>> {
    return catalog_detail::collect<VolumeFields>(
        state_->sql, fmt::format("SELECT {} FROM volumes ORDER BY barcode", VolumeFields::kColumns),
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
  const long long policies_at = to_db(volume.policies_at);
  sql << "INSERT INTO volumes (barcode, uuid, serial, pool, state, bytes, capacity, batches, end_block, "
         "block_bytes, medium_serial, policies_at)"
         " VALUES (:barcode, :uuid, :serial, :pool, :state, :bytes, :capacity, :batches, :end_block, "
         ":block_bytes, :medium_serial, :policies_at)"
         " ON CONFLICT (barcode) DO UPDATE SET uuid = excluded.uuid, serial = excluded.serial, pool = "
         "excluded.pool, state = excluded.state,"
         " bytes = excluded.bytes, capacity = excluded.capacity, batches = excluded.batches, end_block = "
         "excluded.end_block,"
         " block_bytes = excluded.block_bytes, medium_serial = excluded.medium_serial, policies_at = "
         "excluded.policies_at",
      use(volume.barcode), use(volume.uuid), use(volume.serial), use(volume.pool), use(state), use(bytes),
      use(capacity), use(batches), use(end_block), use(block_bytes), use(volume.medium_serial),
      use(policies_at);
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
