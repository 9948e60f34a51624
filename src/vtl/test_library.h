#pragma once
// For tests of this room: a library in a scratch folder and a way to send it commands from plain code.

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "scsi/commands.h"
#include "scsi/replies.h"
#include "scsi/sense.h"
#include "vtl/library.h"
#include "vtl/test_folder.h"

namespace reelway::vtl {

/// Sends a command and runs the executor until its reply.
inline base::Result<scsi::Reply> send(scsi::Device& device, const scsi::Command& command) {
  boost::asio::io_context context;
  std::optional<base::Result<scsi::Reply>> reply;
  boost::asio::co_spawn(context, device.execute(command),
                        [&](std::exception_ptr failure, base::Result<scsi::Reply> result) {
                          if (failure) std::rethrow_exception(failure);
                          reply.emplace(std::move(result));
                        });
  context.run();
  return std::move(*reply);
}

inline scsi::Reply ask(scsi::Device& device, const scsi::Command& command) {
  auto reply = send(device, command);
  EXPECT_TRUE(reply.has_value()) << (reply ? "" : to_string(reply.error()));
  return reply ? std::move(*reply) : scsi::Reply{};
}

inline std::string sense_of(const scsi::Reply& reply) {
  if (reply.status == scsi::Status::good) return "good";
  char text[16];
  std::snprintf(text, sizeof text, "%02x/%02x/%02x", reply.sense.key, reply.sense.asc, reply.sense.ascq);
  return text;
}

inline base::Bytes bytes_of_text(std::string_view text) {
  const base::ByteView view = base::as_bytes(text);
  return {view.begin(), view.end()};
}

/// A small library with cartridge RW0001L9 loaded in drive 0 and all attentions told.
class LoadedDrive : public testing::Test {
 protected:
  explicit LoadedDrive(Options options = {}) : options_(std::move(options)) {
    options_.directory = folder_.path() / "library";
    options_.sync = false;  // power cuts are played on what was not synced by a command; the disk's own work
                            // proves nothing here
    if (options_.capacity_scale == 1) options_.capacity_scale = 1e-4;

    open();
    move(kSlot, kBay);
    settle();
  }

  void open() {
    auto opened = Library::open(options_);
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    library_ = std::move(*opened);
    ask(library_->changer(), scsi::test_unit_ready());
  }
  void reopen() {
    library_.reset();
    open();
    settle();
  }
  void settle() {
    for (int i = 0; i < 4 && run(scsi::test_unit_ready()) != "good"; ++i) {
    }
  }
  std::string move(std::uint16_t source, std::uint16_t destination) {
    return sense_of(
        ask(library_->changer(), scsi::move_medium({.source = source, .destination = destination})));
  }

  scsi::Device& drive() { return library_->drive(0); }
  std::string run(const scsi::Command& command) { return sense_of(ask(drive(), command)); }
  std::string write(std::string_view text) { return run(scsi::write(base::as_bytes(text))); }
  std::string mark(std::uint32_t count = 1) {
    return run(scsi::write_filemarks(count, scsi::Immediate::yes));
  }
  std::string flush() { return run(scsi::write_filemarks(0, scsi::Immediate::no)); }
  /// The block's text, or what the drive said instead.
  std::string read(std::size_t size = 4096) {
    base::Bytes block(size);
    const scsi::Reply reply = ask(drive(), scsi::read(block, true));
    if (reply.status != scsi::Status::good) return sense_of(reply);
    return std::string(base::as_text(base::ByteView(block).first(reply.data_in_bytes)));
  }
  std::string locate(std::uint64_t block, std::optional<std::uint8_t> partition = std::nullopt) {
    return run(scsi::locate(scsi::LocateTo::object, block, partition));
  }
  scsi::Position position() {
    std::byte reply[32];
    ask(drive(), scsi::read_position(scsi::PositionForm::long_form, reply));
    auto parsed = scsi::parse_position(scsi::PositionForm::long_form, reply);
    EXPECT_TRUE(parsed.has_value());
    return parsed.value_or(scsi::Position{});
  }
  /// Two partitions, as LTFS formats.
  void format_two() {
    const scsi::ModePage page = scsi::encode_medium_partitions({.additional = 1, .sizes = {1, 0xffff}});
    const base::Bytes list = scsi::encode_mode_select({page});
    ASSERT_EQ(run(scsi::mode_select(list)), "good");
    ASSERT_EQ(locate(0, 0), "good");
    ASSERT_EQ(run(scsi::format_medium(scsi::FormatKind::by_mode_page)), "good");
  }

  static constexpr std::uint16_t kSlot = 0x1000, kBay = 0x100, kMailSlot = 0x10;
  static constexpr const char* kBarcode = "RW0001L9";
  ScratchFolder folder_;

  Options options_;
  std::unique_ptr<Library> library_;
};

}  // namespace reelway::vtl
