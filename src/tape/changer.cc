#include "tape/changer.h"

#include <algorithm>

#include "scsi/commands.h"
#include "scsi/replies.h"
#include "scsi/sense.h"

namespace reelway::tape {

using async::Task;
using base::Code;
using base::fail;
using base::Scope;

namespace {

constexpr int kAttentionsMax = 8;
constexpr std::uint8_t kElementAddressPage = 0x1d;
constexpr std::size_t kDescriptorBytes = 160;  // with volume tag and device identifier: 52 to 100 in practice
constexpr std::size_t kHeaderBytes = 8 * 5;    // of the report and of a page for each type

ElementKind kind_of(scsi::ElementType type) {
  switch (type) {
    case scsi::ElementType::picker:
      return ElementKind::picker;
    case scsi::ElementType::mail_slot:
      return ElementKind::mail_slot;
    case scsi::ElementType::drive_bay:
      return ElementKind::drive_bay;
    default:
      return ElementKind::slot;
  }
}

}  // namespace

Changer::Changer(scsi::Device& device, base::Log& log) : device_(device), log_(log) {}

Task<scsi::Reply> Changer::run(scsi::Command command, AfterChange after_change) {
  for (int attempt = 0; attempt < kAttentionsMax; ++attempt) {
    CO_TRY(auto reply, co_await device_.execute(command));
    const bool attention =
        reply.status == scsi::Status::check_condition && reply.sense.key == scsi::key::unit_attention;
    if (!attention) co_return reply;
    auto error = scsi::to_error(reply, device_.name());
    log_.write(base::LogLevel::info, "tape", error.detail);
    ++change_count_;
    if (after_change == AfterChange::stop) co_return error;
  }
  co_return fail(Code::unavailable, device_.name() + ": one unit attention after the other", Scope::library,
                 base::Retry::later);
}

Task<std::size_t> Changer::element_count() {
  base::Bytes bytes(252);
  CO_TRY(const auto reply,
         co_await run(scsi::mode_sense(kElementAddressPage, 0, bytes), AfterChange::repeat));
  CO_TRY_VOID(scsi::check(reply, "MODE SENSE on " + device_.name()));
  CO_TRY(const auto mode, scsi::parse_mode_data(base::ByteView(bytes).first(reply.data_in_bytes)));
  const auto* page = mode.find(kElementAddressPage);
  if (page == nullptr)
    co_return fail(Code::unsupported, device_.name() + " tells no element addresses", Scope::library);
  CO_TRY(const auto addresses, scsi::parse_element_addresses(page->bytes));
  picker_ = addresses.first_picker;
  co_return std::size_t{0} + addresses.picker_count + addresses.slot_count + addresses.mail_slot_count +
      addresses.drive_bay_count;
}

Task<std::vector<Element>> Changer::inventory() {
  CO_TRY(const auto count, co_await element_count());
  base::Bytes bytes(kHeaderBytes + count * kDescriptorBytes);
  const scsi::ElementQuery query;
  CO_TRY(const auto reply, co_await run(scsi::read_element_status(query, bytes), AfterChange::repeat));
  CO_TRY_VOID(scsi::check(reply, "READ ELEMENT STATUS on " + device_.name()));
  CO_TRY(auto found, scsi::parse_element_status(base::ByteView(bytes).first(reply.data_in_bytes)));
  std::vector<Element> elements;
  elements.reserve(found.size());
  for (auto& element : found) {
    elements.push_back({.kind = kind_of(element.type),
                        .address = element.address,
                        .full = element.full,
                        .accessible = element.accessible && !element.exception,
                        .barcode = std::move(element.barcode),
                        .drive_serial = std::move(element.device_id),
                        .source = element.source});
  }
  std::ranges::sort(elements, {}, &Element::address);
  co_return elements;
}

Task<void> Changer::move(Move move) {
  const scsi::Move command{.picker = picker_, .source = move.from, .destination = move.to};
  CO_TRY(const auto reply, co_await run(scsi::move_medium(command), AfterChange::stop));
  co_return scsi::check(reply, "MOVE MEDIUM on " + device_.name());
}

}  // namespace reelway::tape
