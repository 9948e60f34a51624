#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "obs/log.h"
#include "obs/meter.h"

namespace reelway::obs {
namespace {

using base::LogLevel;
using testing::HasSubstr;
using testing::Not;

TEST(LogLine, HasBothForms) {
  EXPECT_EQ(format_line(LogFormat::text, "T", LogLevel::warning, "http", "say \"x\\y\""),
            "T warning http: say \"x\\y\"");
  EXPECT_EQ(format_line(LogFormat::json, "T", LogLevel::error, "http", "say \"x\\y\""),
            R"({"time":"T","level":"error","room":"http","message":"say \"x\\y\""})");
}

TEST(LogLine, CannotBeForgedByItsMessage) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line = format_line(format, "T", LogLevel::info, "s3",
                                         std::string("a\r\nT error x: forged\x1b[2J\0\x7f", 27));
    EXPECT_THAT(line, HasSubstr("a\\u000d\\u000aT error"));
    EXPECT_EQ(line.find_first_of(std::string("\r\n\x1b\0\x7f", 5)), std::string::npos);
  }
}

TEST(Log, WritesFromItsLevelOn) {
  const std::string path = testing::TempDir() + "/obs_test_" + std::to_string(::getpid()) + ".log";
  std::remove(path.c_str());
  {
    const auto log = make_log({.level = LogLevel::warning, .format = LogFormat::json, .file = path}).value();
    log->write(LogLevel::info, "a", "quiet");
    log->write(LogLevel::warning, "a", "loud {}");
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  EXPECT_THAT(text, HasSubstr(R"("level":"warning","room":"a","message":"loud {}"})"
                              "\n"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
}

TEST(Log, SaysWhichFileItCannotOpen) {
  const auto log =
      make_log({.level = LogLevel::info, .format = LogFormat::text, .file = "/proc/nothing/here.log"});
  ASSERT_FALSE(log.has_value());
  EXPECT_THAT(log.error().detail, HasSubstr("/proc/nothing/here.log"));
}

TEST(Log, ParsesLevels) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

TEST(Meter, ExposesCountersGaugesAndHistograms) {
  PrometheusMeter meter;
  meter.describe("reelway_puts_total", "Objects stored");
  meter.count("reelway_puts_total{plane=\"http\",bucket=\"a\\\"b\"}", 1);
  meter.count("reelway_puts_total{plane=\"http\",bucket=\"a\\\"b\"}", 2);
  meter.count("reelway_puts_total{plane=\"ofi\"}", 1);
  meter.gauge("reelway_drives", 2);
  meter.observe("reelway_seconds", 0.3);
  const std::string text = meter.expose();
  EXPECT_THAT(text, HasSubstr("# HELP reelway_puts_total Objects stored\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reelway_puts_total counter\n"));
  EXPECT_THAT(text, HasSubstr("reelway_puts_total{bucket=\"a\\\"b\",plane=\"http\"} 3"));
  EXPECT_THAT(text, HasSubstr("reelway_puts_total{plane=\"ofi\"} 1"));
  EXPECT_THAT(text, HasSubstr("reelway_drives 2"));
  EXPECT_THAT(text, HasSubstr("reelway_seconds_bucket{le=\"0.25\"} 0"));
  EXPECT_THAT(text, HasSubstr("reelway_seconds_bucket{le=\"0.5\"} 1"));
}

TEST(Meter, DropsAndCountsWhatItCannotKeep) {
  PrometheusMeter meter(10);
  for (const char* bad :
       {"", "1x", "a b", "x{", "x{}", "x{a}", "x{a=b}", "x{a=\"b}", "x{a=\"b\"", "x{=\"b\"}"})
    meter.count(bad, 1);
  EXPECT_THAT(meter.expose(), HasSubstr("reelway_meter_dropped_total 10"));
  meter.count("over_the_limit", 1);
  EXPECT_THAT(meter.expose(), HasSubstr("reelway_meter_dropped_total 11"));
  EXPECT_THAT(meter.expose(), Not(HasSubstr("over_the_limit")));
}

TEST(Meter, ANameIsOfOneKind) {
  PrometheusMeter meter;
  meter.count("thing", 1);
  meter.gauge("thing", 5);
  EXPECT_THAT(meter.expose(), HasSubstr("thing 1"));
  EXPECT_THAT(meter.expose(), HasSubstr("reelway_meter_dropped_total 1"));
}

TEST(Meter, CountsFromSeveralThreads) {
  PrometheusMeter meter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) meter.count("hits", 1);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(meter.expose(), HasSubstr("hits 4000"));
}

}  // namespace
}  // namespace reelway::obs
