#include "vtl/changer_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "media/cost.h"
#include "scsi/commands.h"
#include "scsi/fields.h"

namespace reelway::vtl {
namespace {

using scsi::ElementType;
using scsi::get_u16;
using scsi::get_u8;
using scsi::put_field;
namespace op = scsi::op;

const scsi::Sense kPowerOn = sense(scsi::key::unit_attention, 0x29, 0x00);
const scsi::Sense kMailSlotAccessed = sense(scsi::key::unit_attention, 0x28, 0x01);
const scsi::Sense kMayHaveChanged = sense(scsi::key::unit_attention, 0x28, 0x00);

constexpr std::string_view kSerial = "RWCHG00000";
constexpr std::size_t kBarcodeMax = 32;

void put_text(base::Bytes& out, std::size_t offset, std::size_t width, std::string_view text) {
  for (std::size_t i = 0; i < width; ++i)
    out[offset + i] = static_cast<std::byte>(i < text.size() ? text[i] : ' ');
}

bool good_barcode(std::string_view barcode) {
  return barcode.size() >= 8 && barcode.size() <= kBarcodeMax && std::ranges::all_of(barcode, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

}  // namespace

ChangerModel::ChangerModel(ChangerOptions options, Shelf shelf, std::vector<DriveModel*> drives)
    : options_(std::move(options)),
      shelf_(std::move(shelf)),
      drives_(std::move(drives)),
      load_seconds_(drives_.size()) {
  attentions_.add(kPowerOn);
}

Outcome ChangerModel::execute(const scsi::Command& command, double now_s) {
  const std::lock_guard lock(mutex_);
  const std::uint8_t opcode = command.cdb.bytes[0];
  const bool always = opcode == op::inquiry || opcode == op::request_sense || opcode == op::report_luns;
  if (!attentions_.empty() && !always) return failed(attentions_.take());
  return dispatch(command, now_s);
}

Outcome ChangerModel::dispatch(const scsi::Command& command, double now_s) {
  const base::ByteView cdb = cdb_of(command);
  switch (get_u8(cdb, 0)) {
    case op::test_unit_ready:
    case op::reserve_6:
    case op::release_6:
    case op::initialize_element_status:
    case op::initialize_element_status_range:
      return {};  // the shelf is always known
    case op::inquiry:
      return inquiry(command);
    case op::request_sense: {
      const scsi::Sense told = attentions_.empty() ? scsi::Sense{} : attentions_.take();
      return data_reply(command, scsi::encode_fixed_sense(told), get_u8(cdb, 4));
    }
    case op::mode_sense_6:
      return mode_sense(command, false);
    case op::mode_sense_10:
      return mode_sense(command, true);
    case op::prevent_allow:
      prevented_ = (get_u8(cdb, 4) & 0x01) != 0;
      return {};
    case op::read_element_status:
      return read_element_status(command);
    case op::move_medium:
      return move_medium(command, now_s);
    default:
      return illegal(0x20, 0x00);
  }
}

Outcome ChangerModel::inquiry(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t page = get_u8(cdb, 2);
  base::Bytes reply;
  if ((get_u8(cdb, 1) & 0x01) == 0) {
    if (page != 0) return invalid_field();
    reply.resize(56);
    put_field(reply, 0, 1, 0x08);
    put_field(reply, 1, 1, 0x80);
    put_field(reply, 2, 1, 0x06);
    put_field(reply, 3, 1, 0x02);
    put_field(reply, 4, 1, reply.size() - 5);
    put_text(reply, 8, 8, "REELWAY");
    put_text(reply, 16, 16, "VIRTUAL LIBRARY");
    put_text(reply, 32, 4, "0001");
    return data_reply(command, reply, get_u16(cdb, 3));
  }
  reply.resize(4);
  put_field(reply, 0, 1, 0x08);
  put_field(reply, 1, 1, page);
  if (page == 0x00) {
    for (const unsigned each : {0x00U, 0x80U}) reply.push_back(static_cast<std::byte>(each));
  } else if (page == 0x80) {
    reply.resize(4 + kSerial.size());
    put_text(reply, 4, kSerial.size(), kSerial);
  } else {
    return invalid_field();
  }
  put_field(reply, 2, 2, reply.size() - 4);
  return data_reply(command, reply, get_u16(cdb, 3));
}

Outcome ChangerModel::mode_sense(const scsi::Command& command, bool ten) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t page = get_u8(cdb, 2) & 0x3f;
  if (page != 0x1d && page != 0x3f) return invalid_field();
  const std::size_t header = ten ? 8 : 4;
  base::Bytes reply(header + 20);
  put_field(reply, 0, ten ? 2 : 1, reply.size() - (ten ? 2 : 1));
  put_field(reply, header, 1, 0x1d);
  put_field(reply, header + 1, 1, 0x12);
  const std::array<std::pair<std::uint16_t, ElementType>, 4> kinds{
      {{Shelf::kPicker, ElementType::picker},
       {Shelf::kFirstSlot, ElementType::slot},
       {Shelf::kFirstMailSlot, ElementType::mail_slot},
       {Shelf::kFirstDriveBay, ElementType::drive_bay}}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    put_field(reply, header + 2 + 4 * i, 2, kinds[i].first);
    put_field(reply, header + 4 + 4 * i, 2, shelf_.count(kinds[i].second));
  }
  return data_reply(command, reply, ten ? get_u16(cdb, 7) : get_u8(cdb, 4));
}

base::Bytes ChangerModel::element_descriptor(const Bay& bay, bool tags, bool device_ids) {
  base::Bytes bytes(12);
  put_field(bytes, 0, 2, bay.address);
  const bool full = !bay.barcode.empty();
  unsigned flags = full ? 0x01 : 0;
  if (bay.type == ElementType::mail_slot)
    flags |= 0x38U | (full && bay.by_operator ? 0x02U : 0U);  // INENAB EXENAB ACCESS
  if (bay.type == ElementType::slot) flags |= 0x08;
  // A bay is accessible when the robot may reach into it: empty, or with an unloaded cartridge.
  if (bay.type == ElementType::drive_bay && !drive_at(bay).loaded()) flags |= 0x08;
  put_field(bytes, 2, 1, flags);
  if (full && bay.source != 0) {
    put_field(bytes, 9, 1, 0x80);
    put_field(bytes, 10, 2, bay.source);
  }
  if (tags) {
    bytes.resize(bytes.size() + 36);
    if (full) put_text(bytes, 12, kBarcodeMax, bay.barcode);
  }
  if (device_ids) {
    const std::size_t at = bytes.size();
    const std::string serial = bay.type == ElementType::drive_bay ? drive_at(bay).serial() : "";
    bytes.resize(at + 4 + 32);
    put_field(bytes, at, 1, 0x02);  // ASCII
    put_field(bytes, at + 3, 1, 32);
    put_text(bytes, at + 4, 32, serial);
  }
  return bytes;
}

base::Bytes ChangerModel::element_page(ElementType type, const std::vector<const Bay*>& bays,
                                       std::uint8_t flags, bool device_ids) {
  const bool tags = (flags & 0x10) != 0;
  base::Bytes page(8);
  put_field(page, 0, 1, static_cast<std::uint8_t>(type));
  put_field(page, 1, 1, tags ? 0x80 : 0);
  std::size_t each = 0;
  for (const Bay* bay : bays) {
    const base::Bytes descriptor =
        element_descriptor(*bay, tags, device_ids && type == ElementType::drive_bay);
    each = descriptor.size();
    page.insert(page.end(), descriptor.begin(), descriptor.end());
  }
  put_field(page, 2, 2, each);
  put_field(page, 5, 3, page.size() - 8);
  return page;
}

Outcome ChangerModel::read_element_status(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t flags = get_u8(cdb, 1);
  const auto wanted = static_cast<ElementType>(flags & 0x0f);
  const std::uint16_t first = get_u16(cdb, 2);
  std::size_t left = get_u16(cdb, 4);
  const bool device_ids = (get_u8(cdb, 6) & 0x01) != 0;
  if (wanted > ElementType::drive_bay) return invalid_field();
  base::Bytes reply(8);
  std::size_t reported = 0;
  std::uint16_t first_reported = 0;
  std::vector<const Bay*> page;
  const auto finish_page = [&] {
    if (page.empty()) return;
    const base::Bytes bytes = element_page(page.front()->type, page, flags, device_ids);
    reply.insert(reply.end(), bytes.begin(), bytes.end());
    page.clear();
  };
  for (const Bay& bay : shelf_.bays()) {
    if (left == 0) break;
    if (bay.address < first || (wanted != ElementType::all && bay.type != wanted)) continue;
    if (!page.empty() && page.front()->type != bay.type) finish_page();
    if (reported++ == 0) first_reported = bay.address;
    page.push_back(&bay);
    --left;
  }
  finish_page();
  if (reported == 0) return illegal(0x21, 0x01);
  put_field(reply, 0, 2, first_reported);
  put_field(reply, 2, 2, reported);
  put_field(reply, 5, 3, reply.size() - 8);
  return data_reply(command, reply, scsi::get_field(cdb, 7, 3));
}

std::optional<scsi::Sense> ChangerModel::check_source(const Bay& bay) {
  if (bay.barcode.empty()) return sense(scsi::key::illegal_request, 0x3b, 0x0e);
  if (bay.type != ElementType::drive_bay) return std::nullopt;
  if (drive_at(bay).removal_prevented()) return sense(scsi::key::illegal_request, 0x53, 0x02);
  if (drive_at(bay).loaded()) return sense(scsi::key::illegal_request, 0x53, 0x01);
  return std::nullopt;
}

double ChangerModel::loading_s(const Cartridge& cartridge) {
  const media::Personality& medium = cartridge.personality();
  const double seconds = media::load_s(medium);
  if (!options_.media_optimisation || cartridge.characterized() || medium.first_load_s == 0) return seconds;
  // Lognormal around the published median, cut at the published two hours; the same cartridge always takes as
  // long.
  constexpr double kSpread = 0.35;
  constexpr double kLongest = 7200;
  base::SeededRng rng(options_.seed ^ std::hash<std::string>{}(cartridge.barcode()));
  constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
  const double u = static_cast<double>((rng.next_u64() >> 11) + 1) * kUnit;
  const double v = static_cast<double>(rng.next_u64() >> 11) * kUnit;
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return seconds + std::min(kLongest, medium.first_load_s * std::exp(kSpread * normal));
}

base::Result<std::shared_ptr<Cartridge>> ChangerModel::open(std::string_view barcode) {
  for (DriveModel* drive : drives_) {
    if (auto cartridge = drive->cartridge(); cartridge != nullptr && cartridge->barcode() == barcode)
      return cartridge;
  }
  TRY(std::unique_ptr<Cartridge> opened,
      Cartridge::open(options_.directory / barcode, std::string(barcode), options_.cartridge));
  return std::shared_ptr<Cartridge>(std::move(opened));
}

std::optional<scsi::Sense> ChangerModel::put_into(const Bay& bay, std::string_view barcode, double now_s) {
  auto cartridge = open(barcode);
  // The robot could not place it: what a drive says of a cartridge that it cannot take in.
  if (!cartridge) return sense(scsi::key::medium_error, 0x52, 0x00);
  const double seconds = loading_s(**cartridge);
  load_seconds_[static_cast<std::size_t>(bay.address - Shelf::kFirstDriveBay)] += seconds;
  const double moved_s = now_s + media::robot_move_s(media::personality(options_.generation));
  drive_at(bay).insert(std::move(*cartridge), options_.waits ? moved_s + seconds : 0);
  return std::nullopt;
}

Outcome ChangerModel::move_medium(const scsi::Command& command, double now_s) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint16_t picker = get_u16(cdb, 2);
  Bay* source = shelf_.find(get_u16(cdb, 4));
  Bay* destination = shelf_.find(get_u16(cdb, 6));
  if ((picker != 0 && picker != Shelf::kPicker) || source == nullptr || destination == nullptr ||
      source->type == ElementType::picker || destination->type == ElementType::picker) {
    return illegal(0x21, 0x01);
  }
  if (get_u8(cdb, 10) != 0) return invalid_field();  // nothing to turn over
  if (const auto why = check_source(*source)) return failed(*why);
  if (source != destination && !destination->barcode.empty()) return illegal(0x3b, 0x0d);
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::motion;
  outcome.charge.seconds.robot = media::robot_move_s(media::personality(options_.generation));
  if (source == destination) return outcome;

  const Bay before = *source;
  destination->barcode = std::exchange(source->barcode, {});
  destination->source = source->type == ElementType::slot ? source->address : source->source;
  destination->by_operator = false;
  source->source = 0;
  const auto undo = [&](const scsi::Sense& why) {
    *source = before;
    destination->barcode.clear();
    destination->source = 0;
    return failed(why);
  };
  // Durable first: a library that lost power must not hold one cartridge twice.
  if (!shelf_.save()) return undo(sense(scsi::key::hardware_error, 0x44, 0x00));
  if (source->type == ElementType::drive_bay) drive_at(*source).eject();
  if (destination->type == ElementType::drive_bay) {
    if (const auto why = put_into(*destination, destination->barcode, now_s)) {
      const Outcome refused = undo(*why);
      if (!shelf_.save()) return failed(sense(scsi::key::hardware_error, 0x44, 0x00));
      return refused;
    }
  }
  return outcome;
}

std::vector<double> ChangerModel::take_load_seconds() {
  const std::lock_guard lock(mutex_);
  return std::exchange(load_seconds_, std::vector<double>(drives_.size()));
}

base::Result<void> ChangerModel::put_in(std::string_view barcode) {
  const std::lock_guard lock(mutex_);
  if (!good_barcode(barcode))
    return base::fail(base::Code::invalid_argument, "a barcode is 8 to 32 of A-Z and 0-9");
  if (shelf_.find(barcode) != nullptr)
    return base::fail(base::Code::already_exists, "the cartridge is inside");
  Bay* bay = shelf_.free_bay(ElementType::mail_slot);
  if (bay == nullptr)
    return base::fail(base::Code::busy, "no free mail slot", base::Scope::library, base::Retry::later);
  TRY(const auto cartridge, open(barcode));  // a blank one where there is none
  bay->barcode = barcode;
  bay->source = 0;
  bay->by_operator = true;
  attentions_.add(kMailSlotAccessed);
  return shelf_.save();
}

base::Result<void> ChangerModel::take_out(std::string_view barcode) {
  const std::lock_guard lock(mutex_);
  Bay* bay = shelf_.find(barcode);
  if (bay == nullptr) return base::fail(base::Code::not_found, "no such cartridge inside");
  if (bay->type == ElementType::drive_bay) drive_at(*bay).eject();
  const bool mail = bay->type == ElementType::mail_slot;
  bay->barcode.clear();
  bay->source = 0;
  bay->by_operator = false;
  attentions_.add(mail ? kMailSlotAccessed : kMayHaveChanged);
  return shelf_.save();
}

base::Result<std::shared_ptr<Cartridge>> ChangerModel::cartridge(std::string_view barcode) {
  const std::lock_guard lock(mutex_);
  std::error_code error;
  if (!std::filesystem::exists(options_.directory / barcode / "memory", error)) {
    return base::fail(base::Code::not_found, fmt::format("no cartridge {}", barcode));
  }
  return open(barcode);
}

std::vector<std::string> ChangerModel::barcodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const Bay& bay : shelf_.bays()) {
    if (!bay.barcode.empty()) all.push_back(bay.barcode);
  }
  return all;
}

base::Result<void> ChangerModel::refill_drives() {
  const std::lock_guard lock(mutex_);
  for (const Bay& bay : shelf_.bays()) {
    if (bay.type != ElementType::drive_bay || bay.barcode.empty()) continue;
    TRY(auto cartridge, open(bay.barcode));
    drive_at(bay).insert(std::move(cartridge), 0);
    drive_at(bay).power_on();
  }
  return {};
}

base::Result<void> ChangerModel::stock(std::uint32_t cartridges) {
  const std::lock_guard lock(mutex_);
  const std::string_view suffix = media::personality(options_.generation).barcode_suffix;
  std::uint32_t inside = static_cast<std::uint32_t>(
      std::ranges::count_if(shelf_.bays(), [](const Bay& bay) { return !bay.barcode.empty(); }));
  for (std::uint32_t number = 1; inside < cartridges; ++number) {
    const std::string barcode = fmt::format("RW{:04}{}", number, suffix);
    std::error_code error;
    if (std::filesystem::exists(options_.directory / barcode, error))
      continue;  // inside, or taken out by somebody
    Bay* bay = shelf_.free_bay(ElementType::slot);
    if (bay == nullptr) return base::fail(base::Code::invalid_argument, "more cartridges than slots");
    TRY(const auto made, open(barcode));
    bay->barcode = barcode;
    ++inside;
  }
  return shelf_.save();
}

base::Result<void> ChangerModel::lose_power(base::Rng& rng) {
  const std::lock_guard lock(mutex_);
  for (DriveModel* drive : drives_) {
    if (const auto cartridge = drive->cartridge(); cartridge != nullptr) TRY_VOID(cartridge->lose_power(rng));
    drive->power_on();
  }
  prevented_ = false;
  attentions_.clear();
  attentions_.add(kPowerOn);
  return {};
}

}  // namespace reelway::vtl
