// Bringing interrupted evicts and recalls to an end. Each entry of .reelway/evicting is one of: a stub not
// yet exchanged; a file that an evict displaced (named by its generation); under "recall:<generation>" a
// recalled file not yet exchanged, the stub that it displaced, or somebody's file that a recall displaced by
// mistake and did not live to exchange back. No file of somebody's is ever dropped.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "store/posix/tier.h"
#include "store/posix/tier_spot.h"

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr base::Duration kTemporaryAgeMax = std::chrono::hours{24};

/// What lies at a key's path, as far as recovery cares.
struct AtKey {
  Spot spot;
  base::FileStatus status;
  std::optional<StubText> stub;
};

base::Result<std::optional<AtKey>> look_at_key(Space& space, const object::ObjectName& name, bool odd) {
  auto spot = open_spot(space, name, odd);
  if (!spot && spot.error().code == base::Code::not_found) return std::nullopt;
  if (!spot) return spot.error();
  const auto status = space.files().status_at(spot->folder.get(), spot->name);
  if (!status && status.error() == ENOENT) return std::nullopt;
  if (!status) return base::from_errno(status.error(), "stat a key");
  AtKey at{.spot = std::move(*spot), .status = *status, .stub = std::nullopt};
  if (status->is_link()) {
    const auto text = space.files().read_link(at.spot.folder.get(), at.spot.name);
    if (text) at.stub = parse_stub_text(*text);
  }
  return at;
}

/// Empty for a link, and when it is gone.
base::Result<base::File> open_entry(Space& space, const std::string& entry) {
  auto file = space.files().open(space.evicting(), entry, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (file) return std::move(*file);
  if (file.error() == ELOOP || file.error() == ENOENT) return base::File();
  return base::from_errno(file.error(), "open " + entry);
}

object::Conflict conflict_of(const object::ObjectName& name, const std::string& generation,
                             std::string reason) {
  return {.name = name, .generation = generation, .reason = std::move(reason)};
}

}  // namespace

base::Result<void> exchange_for_stub(Space& space, Temporary& file, const std::string& generation,
                                     const Spot& spot, std::uint64_t stub_inode) {
  const std::string entry = kRecallPrefix + generation;
  // Left by a recall that did not live to exchange it; we hold the key's lock.
  if (const auto stale = space.files().unlink(space.evicting(), entry); !stale && stale.error() != ENOENT)
    return base::from_errno(stale.error(), "remove a stale recall");
  if (file.name().empty()) {
    TRY_VOID(
        in_context(space.files().link_unnamed(file.get(), space.evicting(), entry), "name a recalled file"));
  } else {
    TRY_VOID(in_context(
        space.files().rename(space.tmp(), file.name(), space.evicting(), entry, base::RenameMode::no_replace),
        "name a recalled file"));
    file.forget_name();
  }
  const auto exchange = [&] {
    return in_context(space.files().rename(space.evicting(), entry, spot.folder.get(), spot.name,
                                           base::RenameMode::exchange),
                      "exchange the stub with the recalled file");
  };
  // What lies under the recall's name is somebody's own file only when the exchange displaced it; it must
  // never be unlinked then.
  const auto drop = [&] { std::ignore = space.files().unlink(space.evicting(), entry); };
  if (auto exchanged = exchange(); !exchanged) {
    drop();
    if (exchanged.error().code == base::Code::not_found)
      return base::fail(base::Code::precondition_failed, "the stub is gone", base::Scope::object);
    return exchanged;
  }
  const auto settle = [&]() -> base::Result<void> {
    TRY(const base::FileStatus displaced,
        in_context(space.files().status_at(space.evicting(), entry), "stat the displaced entry"));
    const auto text = space.files().read_link(space.evicting(), entry);
    const auto stub = text ? parse_stub_text(*text) : std::nullopt;
    if (displaced.inode != stub_inode || !stub || stub->generation != generation)
      return base::fail(base::Code::precondition_failed, "another entry took the stub's place",
                        base::Scope::object);
    return space.sync(spot.folder.get());
  };
  auto settled = settle();
  if (settled) {
    drop();
    return settled;
  }
  const auto ours = space.files().status(file.get());
  const auto at_key = space.files().status_at(spot.folder.get(), spot.name);
  const bool is_ours = ours && at_key && at_key->inode == ours->inode;
  // Not exchanged back: the key has become something newer still. What was displaced stays, for recover to
  // report.
  if (is_ours && exchange()) drop();
  return settled;
}

base::Result<void> put_stub_in_place(Space& space, const std::string& entry, const object::ObjectName& name) {
  bool prefer_odd = false;
  for (int attempt = 0; attempt < 100; ++attempt) {
    TRY(const Place place, make_place(space, name, prefer_odd));
    const auto renamed = space.files().rename(space.evicting(), entry, place.folder.get(), place.name,
                                              base::RenameMode::no_replace);
    if (renamed) {
      auto synced = space.sync(place.folder.get());
      if (!synced) std::ignore = space.files().unlink(place.folder.get(), place.name);
      return synced;
    }
    if (renamed.error() != EEXIST && renamed.error() != ENOENT)
      return base::from_errno(renamed.error(), "publish a stub");
    if (renamed.error() == ENOENT) continue;
    const auto there = space.files().status_at(place.folder.get(), place.name);
    if (place.odd || !there || !there->is_folder())
      return base::fail(base::Code::already_exists, "the key is taken", base::Scope::object);
    prefer_odd = true;
  }
  return base::fail(base::Code::busy, "the key's place changes all the time", base::Scope::object,
                    base::Retry::later);
}

base::Result<InodeRecord> stub_record(Space& space, const object::ObjectInfo& info) {
  TRY(const Temporary sample, space.make_temporary());
  TRY(const base::FileStatus status, in_context(space.files().status(sample.get()), "stat a temporary file"));
  return InodeRecord{.stub_inode = 0,
                     .user = status.user,
                     .group = status.group,
                     .mode = status.mode & 07777,
                     .accessed = info.last_modified,
                     .modified = info.last_modified,
                     .attributes = {}};
}

base::Result<std::vector<object::Conflict>> Tier::recover() {
  std::vector<object::Conflict> conflicts;
  TRY_VOID(sweep_temporaries());
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(space_.evicting()), "read .reelway/evicting"));
  for (const base::FolderEntry& entry : entries) {
    if (entry.name.starts_with(kRecallPrefix)) {
      TRY_VOID(settle_recalled(entry.name, conflicts));
    } else {
      TRY_VOID(settle_evicted(entry.name, conflicts));
    }
  }
  return conflicts;
}

/// Named temporaries are all ours and never hold what the store promised, so age is enough here. Other
/// gateways may be at work on young ones.
base::Result<void> Tier::sweep_temporaries() {
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(space_.tmp()), "read .reelway/tmp"));
  for (const base::FolderEntry& entry : entries) {
    const auto status = space_.files().status_at(space_.tmp(), entry.name);
    if (status && status->changed + kTemporaryAgeMax < space_.clock().now())
      std::ignore = space_.files().unlink(space_.tmp(), entry.name);
  }
  return {};
}

base::Result<void> Tier::settle_evicted(const std::string& entry, std::vector<object::Conflict>& conflicts) {
  const std::string& generation = entry;
  TRY(const base::File file, open_entry(space_, entry));
  // A link is a stub that was never exchanged: the next evict of the key takes it away, under the lock that
  // we cannot name here.
  if (!file) return {};
  TRY(const base::FileStatus status, in_context(space_.files().status(file.get()), "stat a displaced file"));
  TRY(const auto recorded, read_recorded_name(space_, space_.evicting(), entry, ""));
  if (!recorded) {
    conflicts.push_back(conflict_of({}, generation, "a displaced file without a name in .reelway/evicting"));
    return {};
  }
  TRY(const StoredInfo stored, read_stored_info(space_, file.get(), status, *recorded));
  TRY(const KeyLocks::Held held, objects_.lock(*recorded));
  const auto still = space_.files().status_at(space_.evicting(), entry);
  if (!still || still->inode != status.inode)
    return {};  // another gateway's evict, which has ended meanwhile
  for (const bool odd : {false, true}) {
    if (!odd && !is_plain_key(recorded->key)) continue;
    TRY(const std::optional<AtKey> at, look_at_key(space_, *recorded, odd));
    if (!at || !at->stub || at->stub->generation != generation) continue;
    TRY_VOID(in_context(space_.files().rename(space_.evicting(), entry, at->spot.folder.get(), at->spot.name,
                                              base::RenameMode::exchange),
                        "bring a file back"));
    TRY_VOID(space_.sync(at->spot.folder.get()));
    TRY_VOID(in_context(space_.files().unlink(space_.evicting(), entry), "remove a stub"));
    if (!stored.has_sidecar) remove_sidecar(space_, recorded->bucket, generation);
    return {};
  }
  // The stub is gone: the object was overwritten or deleted. Its bytes may go when nobody uses them and they
  // are those that were archived.
  const bool as_archived = stored.info.generation == generation && still->link_count == 1;
  if (as_archived && space_.files().set_lease(file.get(), base::Lease::write)) {
    TRY_VOID(in_context(space_.files().unlink(space_.evicting(), entry), "remove a displaced file"));
    return {};
  }
  conflicts.push_back(
      conflict_of(*recorded, generation,
                  "a displaced file in .reelway/evicting changed after it was archived, or is in use"));
  return {};
}

base::Result<void> Tier::settle_recalled(const std::string& entry, std::vector<object::Conflict>& conflicts) {
  const std::string generation = entry.substr(std::string_view(kRecallPrefix).size());
  const auto text = space_.files().read_link(space_.evicting(), entry);
  const auto stub = text ? parse_stub_text(*text) : std::nullopt;
  if (stub && stub->generation == generation) {  // the exchange was done: the object is on disk
    std::ignore = space_.files().unlink(space_.evicting(), entry);
    return {};
  }
  TRY(const auto recorded, read_recorded_name(space_, space_.evicting(), entry, ""));
  if (recorded) {
    TRY(const base::File file, open_entry(space_, entry));
    if (!file) return {};
    TRY(const base::FileStatus status, in_context(space_.files().status(file.get()), "stat a recalled file"));
    TRY(const StoredInfo stored, read_stored_info(space_, file.get(), status, *recorded));
    if (stored.info.generation ==
        generation) {  // never exchanged: the key still is the stub, and the bytes are on tape
      std::ignore = space_.files().unlink(space_.evicting(), entry);
      return {};
    }
  }
  conflicts.push_back(
      conflict_of(recorded.value_or(object::ObjectName{}), generation,
                  "a file that took a stub's place during a recall lies in .reelway/evicting"));
  return {};
}

}  // namespace reelway::store::posix
