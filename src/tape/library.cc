#include "tape/library.h"

#include <algorithm>

namespace reelway::tape {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;

namespace {

constexpr int kAttemptsMax = 5;  // of a move while the contents change under us
constexpr base::Duration kReadyPatience =
    std::chrono::hours(3);  // LTO-9 characterizes a new cartridge for up to 132 minutes

bool is_storage(const Element& element) {
  return element.kind == ElementKind::slot || element.kind == ElementKind::mail_slot;
}

}  // namespace

Library::Library(Changer& changer, std::vector<Drive*> drives)
    : changer_(changer), drives_(std::move(drives)) {}

Task<void> Library::refresh() {
  const auto change_count = changer_.change_count();
  CO_TRY(auto elements, co_await changer_.inventory());
  if (serials_.empty()) {
    for (auto* drive : drives_) {
      CO_TRY(auto identity, co_await drive->identify());
      serials_.push_back(std::move(identity.serial));
    }
  }
  CO_TRY(auto view, make_view(elements));
  view_ = std::move(view);
  seen_change_count_ = change_count;
  co_return Result<void>{};
}

Result<LibraryView> Library::make_view(const std::vector<Element>& elements) const {
  LibraryView view;
  for (const auto& serial : serials_) {
    const auto bay = std::ranges::find_if(elements, [&serial](const Element& element) {
      return element.kind == ElementKind::drive_bay && element.drive_serial == serial;
    });
    if (bay == elements.end()) {
      return fail(Code::unavailable, "no bay of the changer holds the drive with serial number " + serial,
                  Scope::library);
    }
    view.bays.push_back({.address = bay->address,
                         .drive_serial = serial,
                         .full = bay->full,
                         .barcode = bay->barcode,
                         .source = bay->source});
  }
  for (const auto& element : elements) {
    if (!is_storage(element)) continue;
    view.slots.push_back({.address = element.address,
                          .mail = element.kind == ElementKind::mail_slot,
                          .full = element.full,
                          .accessible = element.accessible,
                          .barcode = element.barcode});
  }
  return view;
}

Task<void> Library::refresh_if_stale() {
  if (seen_change_count_ == changer_.change_count()) co_return Result<void>{};
  co_return co_await refresh();
}

/// A move, and a look at what it did whatever the answer was. True when the caller should decide again.
Task<bool> Library::try_move(Move move) {
  const auto moved = co_await changer_.move(move);
  CO_TRY_VOID(co_await refresh());
  if (moved) co_return false;
  const auto code = moved.error().code;
  const bool again = code == Code::busy || code == Code::not_found || code == Code::already_exists ||
                     code == Code::deadline_exceeded;
  if (again) co_return true;
  co_return moved.error();
}

Task<void> Library::load(std::string barcode, std::size_t drive_number) {
  if (drive_number >= drives_.size() || barcode.empty()) {
    co_return fail(Code::invalid_argument, "no such drive, or no barcode", Scope::library);
  }
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    CO_TRY_VOID(co_await refresh_if_stale());
    const auto holder = drive_of(barcode);
    if (holder == drive_number) co_return co_await drives_[drive_number]->wait_ready(kReadyPatience);
    if (holder)
      co_return fail(Code::busy, barcode + " is in another drive", Scope::cartridge, base::Retry::later);
    const auto slot = std::ranges::find(view_.slots, barcode, &LibraryView::Slot::barcode);
    if (slot == view_.slots.end()) {
      co_return fail(Code::not_found, barcode + " is not in the library", Scope::cartridge);
    }
    if (view_.bays[drive_number].full) {
      CO_TRY_VOID(co_await unload(drive_number));
      continue;
    }
    const Move move{.from = slot->address, .to = view_.bays[drive_number].address};
    CO_TRY_VOID(co_await try_move(move));
  }
  co_return fail(Code::busy, "the library's contents keep changing", Scope::library, base::Retry::later);
}

Task<void> Library::unload(std::size_t drive_number) {
  if (drive_number >= drives_.size()) co_return fail(Code::invalid_argument, "no such drive", Scope::library);
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    CO_TRY_VOID(co_await refresh_if_stale());
    const auto& bay = view_.bays[drive_number];
    if (!bay.full) co_return Result<void>{};
    const auto home = free_slot(bay.source);
    if (!home)
      co_return fail(Code::no_space, "no free slot for " + bay.barcode, Scope::library, base::Retry::later);
    const Move move{.from = bay.address, .to = *home};
    CO_TRY_VOID(co_await drives_[drive_number]->unload());
    CO_TRY_VOID(co_await try_move(move));
  }
  co_return fail(Code::busy, "the library's contents keep changing", Scope::library, base::Retry::later);
}

std::optional<std::uint16_t> Library::free_slot(std::optional<std::uint16_t> preferred) const {
  const LibraryView::Slot* found = nullptr;
  for (const auto& slot : view_.slots) {
    if (slot.full || !slot.accessible) continue;
    if (slot.address == preferred) return slot.address;
    const bool better = found == nullptr || (found->mail && !slot.mail);
    if (better) found = &slot;
  }
  if (found == nullptr) return std::nullopt;
  return found->address;
}

std::optional<std::size_t> Library::drive_of(const std::string& barcode) const {
  for (std::size_t number = 0; number < view_.bays.size(); ++number) {
    if (view_.bays[number].full && view_.bays[number].barcode == barcode) return number;
  }
  return std::nullopt;
}

}  // namespace reelway::tape
