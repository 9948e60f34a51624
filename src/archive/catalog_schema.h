#pragma once
// The catalog's schema, the same for every database. A change of it raises kSchemaVersion and adds the steps
// that lead there from the version before.

#include <array>

namespace reelway::archive::catalog_detail {

inline constexpr int kSchemaVersion = 2;

inline constexpr std::array kSchema = {
    "CREATE TABLE IF NOT EXISTS policies (id INTEGER PRIMARY KEY, bucket TEXT NOT NULL, prefix TEXT NOT "
    "NULL, pools TEXT NOT NULL,"
    " minimum_age BIGINT NOT NULL, batch_age BIGINT NOT NULL, batch_count BIGINT NOT NULL, batch_bytes "
    "BIGINT NOT NULL,"
    " bundle_below BIGINT NOT NULL, verify TEXT NOT NULL, changed BIGINT NOT NULL DEFAULT 1, removed INTEGER "
    "NOT NULL DEFAULT 0, UNIQUE (bucket, prefix))",

    "CREATE TABLE IF NOT EXISTS volumes (id INTEGER PRIMARY KEY, barcode TEXT NOT NULL UNIQUE, uuid TEXT NOT "
    "NULL, serial TEXT NOT NULL,"
    " pool TEXT NOT NULL, state INTEGER NOT NULL, bytes BIGINT NOT NULL, capacity BIGINT NOT NULL, batches "
    "BIGINT NOT NULL,"
    " end_block BIGINT NOT NULL, block_bytes BIGINT NOT NULL, medium_serial TEXT NOT NULL DEFAULT '', "
    "policies_at BIGINT NOT NULL DEFAULT 0)",

    // disk: 0 resident, 1 evicting, 2 evicted, 3 conflict, 4 lost, 5 removed. missing: pools without a
    // counted copy, joined by commas.
    "CREATE TABLE IF NOT EXISTS objects (id INTEGER PRIMARY KEY, bucket TEXT NOT NULL, key TEXT NOT NULL, "
    "generation TEXT NOT NULL,"
    " size BIGINT NOT NULL, inode BIGINT NOT NULL, mtime BIGINT NOT NULL, ctime BIGINT NOT NULL, sha256 TEXT "
    "NOT NULL, metadata TEXT NOT NULL,"
    " disk INTEGER NOT NULL, missing TEXT NOT NULL, policy BIGINT NOT NULL, noted BIGINT NOT NULL)",
    "CREATE UNIQUE INDEX IF NOT EXISTS objects_current ON objects (bucket, key) WHERE disk <> 5",
    "CREATE INDEX IF NOT EXISTS objects_generation ON objects (generation)",
    "CREATE INDEX IF NOT EXISTS objects_waiting ON objects (policy, missing, bucket, key) WHERE missing <> "
    "''",
    "CREATE INDEX IF NOT EXISTS objects_disk ON objects (disk)",

    "CREATE TABLE IF NOT EXISTS copies (id INTEGER PRIMARY KEY, object BIGINT NOT NULL, volume BIGINT NOT "
    "NULL, path TEXT NOT NULL,"
    " bundled INTEGER NOT NULL, file_offset BIGINT NOT NULL, length BIGINT NOT NULL, block BIGINT NOT NULL, "
    "end_block BIGINT NOT NULL,"
    " batch BIGINT NOT NULL, verified INTEGER NOT NULL, damaged INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS copies_object ON copies (object)",
    // All members of a bundle share its path: without the offset each new copy would be compared with all of
    // them.
    "DROP INDEX IF EXISTS copies_volume",
    "CREATE INDEX IF NOT EXISTS copies_member ON copies (volume, path, file_offset)",
    "CREATE INDEX IF NOT EXISTS copies_place ON copies (volume, block, id)",
    "CREATE INDEX IF NOT EXISTS copies_unread ON copies (volume) WHERE verified = 0 AND damaged = 0",
    "CREATE INDEX IF NOT EXISTS copies_batch ON copies (volume, batch)",

    // state: 1 queued, 2 running, 3 done, 4 failed. expiry: of the pin, 0: none.
    "CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, object BIGINT NOT NULL, state INTEGER NOT "
    "NULL, for_reader INTEGER NOT NULL,"
    " tier INTEGER NOT NULL, days BIGINT NOT NULL, asked BIGINT NOT NULL, expiry BIGINT NOT NULL, "
    "explanation TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS requests_object ON requests (object)",
    "CREATE INDEX IF NOT EXISTS requests_open ON requests (state) WHERE state < 3",
    "CREATE INDEX IF NOT EXISTS requests_expiry ON requests (expiry) WHERE expiry > 0",

    // Deaths that are not written to these volumes yet.
    "CREATE TABLE IF NOT EXISTS journal (volume BIGINT NOT NULL, object BIGINT NOT NULL, PRIMARY KEY "
    "(volume, object))",
};

/// From 1 to 2: what a volume is known by, and policies as tapes carry them.
inline constexpr std::array kStepsTo2 = {
    "ALTER TABLE policies ADD COLUMN changed BIGINT NOT NULL DEFAULT 1",
    "ALTER TABLE policies ADD COLUMN removed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE volumes ADD COLUMN medium_serial TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE volumes ADD COLUMN policies_at BIGINT NOT NULL DEFAULT 0",
};

}  // namespace reelway::archive::catalog_detail
