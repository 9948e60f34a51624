#include "store/posix/tier.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "store/posix/tier_spot.h"

namespace reelway::store::posix {

namespace {

using base::in_context;

base::Error changed(const char* what) {
  return base::fail(base::Code::precondition_failed, what, base::Scope::object);
}

base::Error in_use(const char* what) {
  return base::fail(base::Code::busy, what, base::Scope::object, base::Retry::later);
}

bool same_content(const base::FileStatus& a, const base::FileStatus& b) {
  return a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

}  // namespace

object::Identity identity_of(const object::ObjectInfo& info, const base::FileStatus& status) {
  return {.generation = info.generation,
          .inode = status.inode,
          .size = info.size,
          .mtime = status.modified,
          .ctime = status.changed};
}

base::Result<Spot> open_spot(Space& space, const object::ObjectName& name, bool odd) {
  const std::string path = name.bucket + "/" + (odd ? odd_name_of(name.key) : name.key);
  const std::size_t slash = path.rfind('/');
  const int base = odd ? space.odd() : space.root();
  TRY(base::File folder,
      in_context(space.files().open(base, path.substr(0, slash), O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
                 "open the object's folder"));
  return Spot{.folder = std::move(folder), .name = path.substr(slash + 1)};
}

base::Result<std::vector<object::TierEntry>> Tier::scan(const std::string& bucket, const std::string& prefix,
                                                        const std::string& start_after,
                                                        std::size_t count_max) {
  std::vector<object::TierEntry> entries;
  const auto take = [&](Visit visit) {
    if (entries.size() == count_max) return false;
    Found& found = *visit.object;
    entries.push_back({.info = std::move(found.info), .identity = {}});
    entries.back().identity = identity_of(entries.back().info, found.status);
    return true;
  };
  TRY_VOID(enumerate(space_, cache_,
                     {.bucket = bucket, .prefix = prefix, .delimiter = {}, .start_after = start_after},
                     take));
  return entries;
}

base::Result<Tier::OpenedForArchive> Tier::open_for_archive(const object::ObjectName& name) {
  TRY(Found found, objects_.find_patiently(name));
  if (!found.file) return base::fail(base::Code::not_resident, "the object is evicted", base::Scope::object);
  const base::TimePoint last_change = std::max(found.status.modified, found.status.changed);
  if (space_.clock().now() < last_change + space_.options().settle)
    return in_use("the object changed a moment ago");
  OpenedForArchive opened{.found = std::move(found), .identity = {}, .leased = false};
  const auto leased = space_.files().set_lease(opened.found.file.get(), base::Lease::read);
  if (!leased && leased.error() == EAGAIN) return in_use("somebody has the object open for writing");
  // EINVAL, EACCES: no leases here, or not for us. Then only the comparison of identities protects; evict
  // refuses such files.
  opened.leased = leased.has_value();
  TRY(const base::FileStatus now,
      in_context(space_.files().status(opened.found.file.get()), "stat an object"));
  if (!same_content(now, opened.found.status)) return in_use("the object changed a moment ago");
  if (opened.found.info.generation.empty()) TRY_VOID(give_generation(opened.found));
  opened.identity = identity_of(opened.found.info, opened.found.status);
  return opened;
}

/// A file born by POSIX becomes a version that the archive can name.
base::Result<void> Tier::give_generation(Found& found) {
  TRY(const KeyLocks::Held held, objects_.lock(found.info.name));
  TRY(const Found current, objects_.find(found.info.name));
  if (!same_content(current.status, found.status)) return in_use("the object changed a moment ago");
  if (current.info.generation.empty()) {
    found.info.generation = space_.make_ulid();
    TRY(found.has_sidecar, write_stored_info(space_, found.file.get(), found.info));
    TRY_VOID(space_.sync(found.file.get()));
  } else {
    found.info = current.info;
    found.has_sidecar = current.has_sidecar;
  }
  TRY(found.status, in_context(space_.files().status(found.file.get()), "stat an object"));
  return {};
}

base::Result<void> Tier::check_lease(const OpenedForArchive& opened) {
  if (!opened.leased) return {};
  TRY(const base::Lease lease, in_context(space_.files().lease(opened.found.file.get()), "read a lease"));
  if (lease != base::Lease::read) return in_use("somebody opens the object for writing");
  return {};
}

base::Result<object::Identity> Tier::confirm_unchanged(const OpenedForArchive& opened) {
  if (!check_lease(opened)) return changed("somebody opened the object for writing while it was archived");
  TRY(const base::FileStatus now,
      in_context(space_.files().status(opened.found.file.get()), "stat an object"));
  const object::Identity identity = identity_of(opened.found.info, now);
  if (now.size != opened.found.info.size || identity != opened.identity)
    return changed("the object changed while it was archived");
  TRY(const Spot spot, open_spot(space_, opened.found.info.name, opened.found.odd));
  const auto named = space_.files().status_at(spot.folder.get(), spot.name);
  if (!named || named->inode != now.inode) return changed("the object was replaced while it was archived");
  return identity;
}

base::Result<void> Tier::check_archived(const Found& found, const object::Identity& archived) {
  if (!found.file) return changed("the object is evicted already");
  TRY(const base::FileStatus now, in_context(space_.files().status(found.file.get()), "stat an object"));
  if (!now.is_regular()) return changed("not a regular file");
  if (now.link_count != 1) return changed("the file has other names");
  if (archived.generation.empty() || now.size != archived.size || identity_of(found.info, now) != archived)
    return changed("the object is not the one that was archived");
  return {};
}

base::Result<std::uint64_t> Tier::make_stub(const std::string& entry, const StubText& stub) {
  const auto there = space_.files().status_at(space_.evicting(), entry);
  // A stub that was never exchanged: made by an evict of this key, whose lock we hold, that did not live to
  // use it.
  if (there && there->is_link())
    TRY_VOID(in_context(space_.files().unlink(space_.evicting(), entry), "remove a stale stub"));
  if (there && !there->is_link())
    return in_use("an interrupted evict of the object has to be recovered first");
  TRY_VOID(
      in_context(space_.files().make_link(make_stub_text(stub), space_.evicting(), entry), "make a stub"));
  TRY(const base::FileStatus status,
      in_context(space_.files().status_at(space_.evicting(), entry), "stat a stub"));
  return status.inode;
}

base::Result<void> Tier::check_displaced(const Found& found) {
  TRY(const base::FileStatus displaced,
      in_context(space_.files().status_at(space_.evicting(), found.info.generation),
                 "stat the displaced entry"));
  if (!same_content(displaced, found.status) || !displaced.is_regular())
    return changed("another file took the object's place");
  if (displaced.link_count != 1) return changed("the file has other names");
  TRY(const base::Lease lease, in_context(space_.files().lease(found.file.get()), "read a lease"));
  if (lease != base::Lease::write) return in_use("somebody opens the object");
  return {};
}

/// Undoes the exchange, unless the key has meanwhile become something else: then the file that lies displaced
/// was replaced or deleted like any other.
void Tier::bring_back(const Found& found, const Spot& spot, std::uint64_t stub_inode) {
  const std::string& entry = found.info.generation;
  const auto at_key = space_.files().status_at(spot.folder.get(), spot.name);
  const auto displaced = space_.files().status_at(space_.evicting(), entry);
  if (at_key && at_key->inode == stub_inode) {
    const auto exchanged = space_.files().rename(space_.evicting(), entry, spot.folder.get(), spot.name,
                                                 base::RenameMode::exchange);
    if (exchanged) std::ignore = space_.sync(spot.folder.get());
    if (exchanged) return;
  } else if (displaced && displaced->inode == found.status.inode && (at_key || at_key.error() == ENOENT)) {
    std::ignore = space_.files().unlink(space_.evicting(), entry);
    return;
  }
  space_.log().write(base::LogLevel::error, "store/posix",
                     fmt::format("an evict of {}/{} was interrupted; its file waits in .reelway/evicting/{}",
                                 found.info.name.bucket, found.info.name.key, entry));
}

/// The exchange of rule 3. On an error the file is back in its place.
base::Result<object::Identity> Tier::swap_for_stub(const Found& found, const Spot& spot,
                                                   std::uint64_t stub_inode) {
  const std::string& entry = found.info.generation;
  const auto exchanged = space_.files().rename(space_.evicting(), entry, spot.folder.get(), spot.name,
                                               base::RenameMode::exchange);
  if (!exchanged && exchanged.error() == EXDEV)
    return base::fail(base::Code::unsupported, "evict: the object lies on another file system than the root",
                      base::Scope::object);
  TRY_VOID(in_context(exchanged, "exchange the object with its stub"));
  const auto settle = [&]() -> base::Result<object::Identity> {
    TRY_VOID(check_displaced(found));
    TRY_VOID(space_.sync(spot.folder.get()));
    // Once more: who opened the file since still waits for the lease, and is given the file back.
    TRY_VOID(check_displaced(found));
    TRY(const base::FileStatus stub,
        in_context(space_.files().status_at(spot.folder.get(), spot.name), "stat the stub"));
    if (stub.inode != stub_inode) return changed("another file took the stub's place");
    TRY_VOID(in_context(space_.files().unlink(space_.evicting(), entry), "remove the evicted file"));
    return identity_of(found.info, stub);
  };
  auto settled = settle();
  if (!settled) bring_back(found, spot, stub_inode);
  return settled;
}

base::Result<object::Identity> Tier::evict(const object::ObjectName& name, const object::Identity& archived) {
  if (!space_.leases_are_believed())
    return base::fail(base::Code::unsupported,
                      "the file system's leases are not known to be kept; see --evict-on-any-filesystem");
  TRY(const KeyLocks::Held held, objects_.lock(name));
  TRY(Found found, objects_.find(name));
  TRY_VOID(check_archived(found, archived));
  const auto leased = space_.files().set_lease(found.file.get(), base::Lease::write);
  if (!leased && leased.error() == EAGAIN) return in_use("somebody has the object open");
  if (!leased) return base::from_errno(leased.error(), "take a lease");
  TRY_VOID(check_archived(found, archived));  // again, now that nobody else can write
  TRY(const Spot spot, open_spot(space_, name, found.odd));

  TRY(const std::uint64_t stub_inode,
      make_stub(archived.generation, {.generation = archived.generation, .size = archived.size}));
  const auto swap = [&]() -> base::Result<object::Identity> {
    TRY(InodeRecord record, read_inode_record(space_, found.file.get(), found.status));
    record.stub_inode = stub_inode;
    TRY_VOID(write_sidecar(space_, {.info = found.info, .inode = std::move(record)}));
    TRY_VOID(space_.sync(space_.evicting()));
    return swap_for_stub(found, spot, stub_inode);
  };
  auto swapped = swap();
  if (!swapped) {
    const auto left = space_.files().status_at(space_.evicting(), archived.generation);
    const bool is_back = left && left->is_link();
    if (is_back) std::ignore = space_.files().unlink(space_.evicting(), archived.generation);
    if (is_back && !found.has_sidecar) remove_sidecar(space_, name.bucket, archived.generation);
  }
  return swapped;
}

base::Result<Tier::Recall> Tier::begin_recall(const object::ObjectName& name, const std::string& generation) {
  TRY(const KeyLocks::Held held, objects_.lock(name));
  TRY(const Found found, objects_.find(name));
  if (found.file || found.info.generation != generation)
    return changed("the key is not the stub of that generation");
  TRY(Sidecar sidecar, read_sidecar(space_, name.bucket, generation));
  // After mv the sidecar learns the new name, so that a crash from here on finds it.
  if (sidecar.info.name != name) {
    sidecar.info.name = name;
    TRY_VOID(write_sidecar(space_, sidecar));
  }
  TRY(Temporary file, space_.make_temporary());
  return Recall{
      .file = std::move(file), .sidecar = std::move(sidecar), .name = name, .stub_inode = found.status.inode};
}

base::Result<object::Identity> Tier::commit_recall(Recall& recall) {
  const object::ObjectInfo& info = recall.sidecar.info;
  const int file = recall.file.get();
  if (recall.sidecar.inode) {
    TRY_VOID(restore_inode(space_, file, *recall.sidecar.inode));
  } else {
    TRY_VOID(in_context(space_.files().set_times(file, info.last_modified, info.last_modified),
                        "give a recalled file its times"));
  }
  TRY(const base::FileStatus status, in_context(space_.files().status(file), "stat a recalled file"));
  if (status.size != info.size)
    return base::fail(base::Code::checksum_mismatch, "the recall has a wrong length", base::Scope::object);
  TRY(const bool keeps_sidecar, write_stored_info(space_, file, info, true));
  TRY_VOID(space_.sync(file));

  TRY(const KeyLocks::Held held, objects_.lock(recall.name));
  TRY(const Found found, objects_.find(recall.name));
  if (found.file || found.info.generation != info.generation || found.status.inode != recall.stub_inode)
    return changed("the key is not the recorded stub any more");
  TRY(const Spot spot, open_spot(space_, recall.name, found.odd));
  TRY_VOID(exchange_for_stub(space_, recall.file, info.generation, spot, recall.stub_inode));
  if (!keeps_sidecar) remove_sidecar(space_, recall.name.bucket, info.generation);
  TRY(const base::FileStatus now, in_context(space_.files().status(file), "stat a recalled file"));
  return identity_of(info, now);
}

base::Result<void> Tier::create_stub(const object::ObjectInfo& info) {
  if (!is_generation(info.generation))
    return base::fail(base::Code::invalid_argument, "a stub needs a generation");
  TRY(const KeyLocks::Held bucket, objects_.lock_bucket(info.name.bucket));
  TRY(const base::File still_there, open_bucket(space_, info.name.bucket));
  TRY(const KeyLocks::Held held, objects_.lock(info.name));
  const auto current = objects_.find(info.name);
  if (current) return base::fail(base::Code::already_exists, "the key is taken", base::Scope::object);
  if (!object::is_object_not_found(current.error())) return current.error();
  const std::string entry = info.generation;
  TRY(InodeRecord record, stub_record(space_, info));
  TRY(record.stub_inode, make_stub(entry, {.generation = info.generation, .size = info.size}));
  const auto publish = [&]() -> base::Result<void> {
    Sidecar sidecar{.info = info, .inode = record};
    sidecar.info.residency = object::Residency::resident;
    TRY_VOID(write_sidecar(space_, sidecar));
    return put_stub_in_place(space_, entry, info.name);
  };
  auto published = publish();
  if (!published) {
    std::ignore = space_.files().unlink(space_.evicting(), entry);
    remove_sidecar(space_, info.name.bucket, info.generation);
    remove_empty_parents(space_, info.name);
  }
  return published;
}

}  // namespace reelway::store::posix
