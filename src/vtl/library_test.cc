// Time, faults and options of the library.

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>

#include "base/clock.h"
#include "media/cost.h"
#include "vtl/test_library.h"

namespace reelway::vtl {
namespace {

class Faulty : public LoadedDrive {};

TEST_F(Faulty, SenseStrikesTheNthCommandInstead) {
  library_->faults().add({.device = DeviceId::drive(0),
                          .opcode = scsi::op::write_6,
                          .nth = 2,
                          .sense = scsi::Sense{.key = 3, .asc = 0x0c, .ascq = 0}});
  EXPECT_EQ(write("one"), "good");
  EXPECT_EQ(mark(), "good") << "another opcode";
  EXPECT_EQ(write("two"), "03/0c/00");
  EXPECT_EQ(library_->faults().pending(), 0U);
  EXPECT_EQ(position().block, 2U) << "the block was not written";
  EXPECT_EQ(write("three"), "good");
}

TEST_F(Faulty, FaultAfterwardsLeavesTheEffect) {
  library_->faults().add({.device = DeviceId::drive(0),
                          .opcode = scsi::op::write_6,
                          .when = Fault::When::after,
                          .sense = scsi::Sense{.key = 0xb, .asc = 0, .ascq = 0}});
  EXPECT_EQ(write("written all the same"), "0b/00/00");
  EXPECT_EQ(position().block, 1U);
}

TEST_F(Faulty, HangEndsAtTheDeadline) {
  library_->faults().add({.device = DeviceId::drive(0), .hang = true});
  const auto reply = send(drive(), scsi::test_unit_ready());
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code, base::Code::deadline_exceeded);
  EXPECT_EQ(reply.error().scope, base::Scope::drive);
  EXPECT_EQ(run(scsi::test_unit_ready()), "good");
}

TEST_F(Faulty, RobotFailureLeavesTheCartridgeWhereItWas) {
  library_->faults().add({.device = DeviceId::changer(),
                          .opcode = scsi::op::move_medium,
                          .sense = scsi::Sense{.key = 4, .asc = 0x15, .ascq = 1}});
  EXPECT_EQ(move(kSlot + 1, kBay + 1), "04/15/01");
  EXPECT_EQ(move(kSlot + 1, kBay + 1), "good");
}

TEST_F(Faulty, TwoFaultsStrikeTwoCommands) {
  for (const std::uint8_t key : std::initializer_list<std::uint8_t>{3, 4}) {
    library_->faults().add(
        {.device = DeviceId::drive(0), .sense = scsi::Sense{.key = key, .asc = 0x44, .ascq = 0}});
  }
  EXPECT_EQ(run(scsi::test_unit_ready()), "03/44/00");
  EXPECT_EQ(run(scsi::test_unit_ready()), "04/44/00");
  EXPECT_EQ(run(scsi::test_unit_ready()), "good");
}

class FastClock : public LoadedDrive {};

TEST_F(FastClock, CountsWhatItDoesNotWaitFor) {
  const Seconds before = library_->drive_seconds(0);
  EXPECT_EQ(before.load, media::lto9().load_s);
  EXPECT_EQ(library_->changer_seconds().robot, media::lto9().robot_move_s);
  base::Bytes block(4U << 20, std::byte{1});
  for (int i = 0; i < 10; ++i) run(scsi::write(block));
  EXPECT_NEAR(library_->drive_seconds(0).transfer, 40 * 1.048576 / 400, 1e-6);
  flush();
  EXPECT_EQ(library_->drive_seconds(0).flush, 0) << "a write that follows at once costs no stop";
  run(scsi::write(block));
  flush();
  run(scsi::rewind(scsi::Immediate::no));
  EXPECT_EQ(library_->drive_seconds(0).flush, media::lto9().flush_s);
  EXPECT_GT(library_->drive_seconds(0).rewind, media::lto9().rewind_fixed_s);
  run(scsi::unload());
  EXPECT_NEAR(library_->drive_seconds(0).unload, media::lto9().unload_s, 1e-9);
  EXPECT_NEAR(library_->modelled_seconds(), library_->drive_seconds(0).total(), 1e-9);
}

/// On a virtual clock: commands in order, hours in no time.
class Lto9Clock : public testing::Test {
 protected:
  void start(Options options = {}) {
    options.directory = folder_.path() / "library";
    options.clock = ClockMode::lto9;
    options.timer = &timer_;
    options.inline_io = true;
    options.sync = false;
    options.payload = Payload::pattern;
    options.capacity_scale = 0.01;
    auto opened = Library::open(options);
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    library_ = std::move(*opened);
    ask(library_->changer(), scsi::test_unit_ready());
  }
  scsi::Reply ask(scsi::Device& device, const scsi::Command& command) {
    std::optional<base::Result<scsi::Reply>> reply;
    boost::asio::co_spawn(
        context_, device.execute(command),
        [&](std::exception_ptr, base::Result<scsi::Reply> result) { reply.emplace(std::move(result)); });
    while (!reply) {
      context_.restart();
      context_.poll();
      if (!reply && !timer_.advance_to_next()) break;
    }
    EXPECT_TRUE(reply.has_value() && reply->has_value());
    return reply && *reply ? std::move(**reply) : scsi::Reply{};
  }
  std::string run(const scsi::Command& command) { return sense_of(ask(library_->drive(0), command)); }
  std::string load() {
    return sense_of(ask(library_->changer(), scsi::move_medium({.source = 0x1000, .destination = 0x100})));
  }
  /// Polls as a host does; modelled seconds until ready.
  double until_ready() {
    const double from = now_s();
    for (int i = 0; i < 20'000 && run(scsi::test_unit_ready()) != "good"; ++i)
      clock_.advance(std::chrono::seconds{1});
    return now_s() - from;
  }
  double now_s() const { return std::chrono::duration<double>(clock_.steady_now() - start_).count(); }

  ScratchFolder folder_;
  base::ManualClock clock_;
  base::SteadyPoint start_ = clock_.steady_now();
  async::VirtualTimer timer_{clock_};
  boost::asio::io_context context_;
  std::unique_ptr<Library> library_;
};

TEST_F(Lto9Clock, MoveAndLoadTakeTheirTime) {
  start();
  EXPECT_EQ(load(), "good");
  EXPECT_NEAR(now_s(), media::lto9().robot_move_s, 0.01);
  EXPECT_EQ(run(scsi::test_unit_ready()), "06/29/00");
  EXPECT_EQ(run(scsi::test_unit_ready()), "02/04/01") << "becoming ready";
  EXPECT_NEAR(until_ready(), media::lto9().load_s, 1.01);
}

TEST_F(Lto9Clock, NewMediumIsCharacterizedOnceWhenAskedFor) {
  start({.media_optimisation = true});
  load();
  const double first = until_ready();
  EXPECT_GT(first, 900);
  EXPECT_LT(first, 7300);
  EXPECT_EQ(run(scsi::unload()), "good");
  ask(library_->changer(), scsi::move_medium({.source = 0x100, .destination = 0x1000}));
  load();
  EXPECT_LT(until_ready(), 20);
}

TEST_F(Lto9Clock, WritesStreamAtTheDrivesRate) {
  start();
  load();
  until_ready();
  base::Bytes block(8U << 20, std::byte{1});
  const double from = now_s();
  constexpr int kBlocks = 2000;  // 16.8 GB
  for (int i = 0; i < kBlocks; ++i) ASSERT_EQ(run(scsi::write(block)), "good");
  const double bytes = 8.388608e6 * kBlocks;
  const double streamed = now_s() - from;
  // The host is ahead of the tape by no more than the buffer.
  EXPECT_NEAR(streamed, (bytes - 1.073741824e9) / 400e6, 0.1);
  EXPECT_EQ(run(scsi::write_filemarks(0, scsi::Immediate::no)), "good");
  EXPECT_NEAR(now_s() - from, bytes / 400e6, 0.1) << "the flush waits for the buffer";
}

TEST_F(Lto9Clock, SlowHostIsForgivenByTheSpeedStepsThenBackHitches) {
  start();
  load();
  until_ready();
  base::Bytes block(4U << 20, std::byte{1});
  const auto transfer = [&] { return library_->drive_seconds(0).transfer; };
  const auto stream = [&](std::chrono::milliseconds pause) {
    const double before = transfer();
    for (int i = 0; i < 500; ++i) {
      EXPECT_EQ(run(scsi::write(block)), "good");
      clock_.advance(pause);
    }
    return transfer() - before - 500 * 4.194304 / 400;
  };
  EXPECT_NEAR(stream(std::chrono::milliseconds{20}), 0, 0.01) << "210 MB/s is within the steps";
  EXPECT_GT(stream(std::chrono::milliseconds{60}), 3) << "70 MB/s is not";
}

TEST_F(Lto9Clock, LocateAndReadTakeTheModelsTime) {
  start();
  load();
  until_ready();
  base::Bytes block(8U << 20, std::byte{1});
  for (int i = 0; i < 1000; ++i) run(scsi::write(block));
  run(scsi::write_filemarks(0, scsi::Immediate::no));
  run(scsi::rewind(scsi::Immediate::no));
  double from = now_s();
  EXPECT_EQ(run(scsi::locate(scsi::LocateTo::object, 500, std::nullopt)), "good");
  const double expected =
      media::locate_s(media::lto9(), media::HeadPosition{},
                      media::position_of(media::lto9(), media::Layout::one_partition, 0, 500 * (8ULL << 20)));
  EXPECT_NEAR(now_s() - from, expected, 0.01);
  from = now_s();
  base::Bytes back(8U << 20);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(run(scsi::read(back, true)), "good");
  EXPECT_NEAR(now_s() - from, 100 * 8.388608 / 400, 0.01);
}

TEST_F(Lto9Clock, ImmediateRewindReturnsAndTheNextCommandWaits) {
  start();
  load();
  until_ready();
  base::Bytes block(8U << 20, std::byte{1});
  for (int i = 0; i < 500; ++i) run(scsi::write(block));
  run(scsi::write_filemarks(0, scsi::Immediate::no));
  clock_.advance(std::chrono::seconds{10});
  const double from = now_s();
  EXPECT_EQ(run(scsi::rewind(scsi::Immediate::yes)), "good");
  EXPECT_NEAR(now_s(), from, 0.01);
  EXPECT_EQ(run(scsi::read(block, true)), "good");
  EXPECT_GT(now_s() - from, media::lto9().rewind_fixed_s);
}

TEST_F(Lto9Clock, TimeScaleShortensTheWaits) {
  start({.time_scale = 20});
  load();
  EXPECT_NEAR(now_s(), media::lto9().robot_move_s / 20, 0.01);
  EXPECT_EQ(library_->changer_seconds().robot, media::lto9().robot_move_s);
}

TEST(LibraryOptions, AreReadFromOneWord) {
  const auto options = parse_options(
      "/var/lib/a:b:drives=3,slots=20,mailslots=1,cartridges=9,scale=0.5,clock=lto9,speed=20,"
      "payload=pattern,optimisation=on,generation=lto8");
  ASSERT_TRUE(options.has_value()) << to_string(options.error());
  EXPECT_EQ(options->directory, "/var/lib/a:b");
  EXPECT_EQ(options->drives, 3U);
  EXPECT_EQ(options->slots, 20U);
  EXPECT_EQ(options->cartridges, 9U);
  EXPECT_EQ(options->capacity_scale, 0.5);
  EXPECT_EQ(options->clock, ClockMode::lto9);
  EXPECT_EQ(options->time_scale, 20);
  EXPECT_EQ(options->payload, Payload::pattern);
  EXPECT_TRUE(options->media_optimisation);
  EXPECT_EQ(options->generation, media::Generation::lto8);
  EXPECT_EQ(parse_options("/just/a:folder")->directory, "/just/a:folder");
  for (const char* bad :
       {"", ":drives=2", "/a:drives=x", "/a:drives=", "/a:colour=red", "/a:drives=2,,x=1", "/a:scale=-1"}) {
    const auto refused = parse_options(bad);
    EXPECT_FALSE(refused.has_value()) << bad;
  }
}

TEST(LibraryOptions, ThatMakeNoSenseAreRefused) {
  const ScratchFolder folder;
  const auto code = [&](Options options) {
    options.directory = folder.path() / "library";
    const auto opened = Library::open(std::move(options));
    return opened ? base::Code::internal : opened.error().code;
  };
  EXPECT_EQ(code({.drives = 0}), base::Code::invalid_argument);
  EXPECT_EQ(code({.capacity_scale = 0}), base::Code::invalid_argument);
  EXPECT_EQ(code({.clock = ClockMode::lto9}), base::Code::invalid_argument);
  EXPECT_EQ(code({.time_scale = -1}), base::Code::invalid_argument);
}

}  // namespace
}  // namespace reelway::vtl
