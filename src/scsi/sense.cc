#include "scsi/sense.h"

#include <fmt/format.h>

#include <algorithm>

#include "scsi/fields.h"

namespace reelway::scsi {
namespace {

constexpr std::uint8_t kFixedCurrent = 0x70, kFixedDeferred = 0x71, kDescriptorCurrent = 0x72,
                       kDescriptorDeferred = 0x73;
constexpr std::uint8_t kFilemarkBit = 0x80, kEndOfMediumBit = 0x40, kIncorrectLengthBit = 0x20;

base::Error malformed(std::string_view why) {
  return base::fail(base::Code::invalid_argument, fmt::format("sense data: {}", why), base::Scope::drive);
}

void take_stream_bits(Sense& sense, std::uint8_t bits) {
  sense.filemark = (bits & kFilemarkBit) != 0;
  sense.end_of_medium = (bits & kEndOfMediumBit) != 0;
  sense.incorrect_length = (bits & kIncorrectLengthBit) != 0;
}

unsigned stream_bits(const Sense& sense) {
  return (sense.filemark ? kFilemarkBit : 0U) | (sense.end_of_medium ? kEndOfMediumBit : 0U) |
         (sense.incorrect_length ? kIncorrectLengthBit : 0U);
}

base::Result<Sense> parse_fixed(base::ByteView raw) {
  if (raw.size() < 8) return malformed("fixed format of under 8 bytes");
  Sense sense;
  sense.key = get_u8(raw, 2) & 0x0f;
  take_stream_bits(sense, get_u8(raw, 2));
  sense.information_valid = (get_u8(raw, 0) & 0x80) != 0;
  if (sense.information_valid) sense.information = static_cast<std::int32_t>(get_u32(raw, 3));
  const std::size_t end = std::min<std::size_t>(raw.size(), 8U + get_u8(raw, 7));
  if (end > 12) sense.asc = get_u8(raw, 12);
  if (end > 13) sense.ascq = get_u8(raw, 13);
  return sense;
}

base::Result<Sense> parse_descriptors(base::ByteView raw) {
  if (raw.size() < 8) return malformed("descriptor format of under 8 bytes");
  Sense sense{
      .key = static_cast<std::uint8_t>(get_u8(raw, 1) & 0x0f), .asc = get_u8(raw, 2), .ascq = get_u8(raw, 3)};
  const std::size_t end = std::min<std::size_t>(raw.size(), 8U + get_u8(raw, 7));
  for (std::size_t at = 8; at + 2 <= end;) {
    const std::size_t length = 2U + get_u8(raw, at + 1);
    if (at + length > end) break;  // cut short by the allocation length
    const std::uint8_t type = get_u8(raw, at);
    if (type == 0x00 && length >= 12) {  // information
      sense.information_valid = (get_u8(raw, at + 2) & 0x80) != 0;
      if (sense.information_valid) sense.information = static_cast<std::int64_t>(get_u64(raw, at + 4));
    } else if (type == 0x04 && length >= 4) {  // stream commands
      take_stream_bits(sense, get_u8(raw, at + 3));
    }
    at += length;
  }
  return sense;
}

}  // namespace

base::Result<Sense> parse_sense(base::ByteView raw) {
  if (raw.empty()) return malformed("none");
  switch (get_u8(raw, 0) & 0x7f) {
    case kFixedCurrent:
    case kFixedDeferred:
      return parse_fixed(raw);
    case kDescriptorCurrent:
    case kDescriptorDeferred:
      return parse_descriptors(raw);
    default:
      return malformed("unknown format");
  }
}

base::Bytes encode_fixed_sense(const Sense& sense) {
  base::Bytes raw(18);
  put_field(raw, 0, 1, kFixedCurrent | (sense.information_valid ? 0x80U : 0U));
  put_field(raw, 2, 1, stream_bits(sense) | sense.key);
  if (sense.information_valid) put_field(raw, 3, 4, static_cast<std::uint64_t>(sense.information));
  put_field(raw, 7, 1, raw.size() - 8);
  put_field(raw, 12, 1, sense.asc);
  put_field(raw, 13, 1, sense.ascq);
  return raw;
}

base::Bytes encode_descriptor_sense(const Sense& sense) {
  base::Bytes raw(8);
  put_field(raw, 0, 1, kDescriptorCurrent);
  put_field(raw, 1, 1, sense.key);
  put_field(raw, 2, 1, sense.asc);
  put_field(raw, 3, 1, sense.ascq);
  if (sense.information_valid) {
    const std::size_t at = raw.size();
    raw.resize(at + 12);
    put_field(raw, at + 1, 1, 0x0a);
    put_field(raw, at + 2, 1, 0x80);
    put_field(raw, at + 4, 8, static_cast<std::uint64_t>(sense.information));
  }
  if (stream_bits(sense) != 0) {
    const std::size_t at = raw.size();
    raw.resize(at + 4);
    put_field(raw, at, 1, 0x04);
    put_field(raw, at + 1, 1, 0x02);
    put_field(raw, at + 3, 1, stream_bits(sense));
  }
  put_field(raw, 7, 1, raw.size() - 8);
  return raw;
}

base::Error to_error(const Sense& sense, std::string_view what) {
  const SenseRow& row = classify(sense);
  return base::fail(
      row.code,
      fmt::format("{}: {} ({:02X}/{:02X}/{:02X})", what, row.text, sense.key, sense.asc, sense.ascq),
      row.scope, row.retry);
}

base::Error to_error(const Reply& reply, std::string_view what) {
  switch (reply.status) {
    case Status::check_condition:
      return to_error(reply.sense, what);
    case Status::busy:
      return base::fail(base::Code::busy, fmt::format("{}: device busy", what), base::Scope::drive,
                        base::Retry::later);
    case Status::reservation_conflict:
      return base::fail(base::Code::busy, fmt::format("{}: reserved by another initiator", what),
                        base::Scope::drive, base::Retry::elsewhere);
    case Status::task_aborted:
      return base::fail(base::Code::unavailable, fmt::format("{}: aborted", what), base::Scope::drive,
                        base::Retry::same_place);
    case Status::good:
      break;
  }
  return base::fail(base::Code::internal,
                    fmt::format("{}: unexpected status {:02X}", what, static_cast<unsigned>(reply.status)),
                    base::Scope::drive);
}

base::Result<void> check(const Reply& reply, std::string_view what) {
  if (reply.status == Status::good) return {};
  if (reply.status == Status::check_condition) {
    const SenseAction action = classify(reply.sense).action;
    if (action == SenseAction::none || action == SenseAction::log) return {};
  }
  return to_error(reply, what);
}

}  // namespace reelway::scsi
