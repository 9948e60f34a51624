#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <string>
#include <thread>
#include <vector>

#include "async/channel.h"
#include "async/gate.h"
#include "async/limiter.h"
#include "async/offload.h"
#include "async/pool_wait.h"
#include "async/spawn.h"
#include "async/timer.h"
#include "async/waiter.h"

namespace reelway::async {
namespace {

using namespace std::chrono_literals;
using base::Code;
using base::Result;

constexpr base::Duration kForever = 1h;

/// An io_context with a thread of its own, until destroyed.
class Reactor {
 public:
  Reactor() : work_(net::make_work_guard(context_)), thread_([this] { context_.run(); }) {}
  ~Reactor() {
    work_.reset();
    thread_.join();
  }
  Executor executor() { return context_.get_executor(); }
  std::thread::id thread_id() const { return thread_.get_id(); }

 private:
  net::io_context context_{1};
  net::executor_work_guard<net::io_context::executor_type> work_;
  std::thread thread_;
};

/// Lets everything that is ready on this executor run first.
Task<void> yield_once() {
  const auto executor = co_await net::this_coro::executor;
  co_await net::post(executor, net::use_awaitable);
  co_return Result<void>{};
}

Task<std::thread::id> this_thread() { co_return std::this_thread::get_id(); }

Task<int> answer(int value) {
  CO_TRY_VOID(co_await yield_once());
  co_return value;
}

TEST(RunOn, RunsThereAndComesBack) {
  Reactor other;
  const auto here = std::this_thread::get_id();
  struct Body {
    static Task<void> run(Reactor& other, std::thread::id here) {
      CO_TRY(const auto there, co_await run_on(other.executor(), this_thread()));
      EXPECT_EQ(there, other.thread_id());
      EXPECT_EQ(std::this_thread::get_id(), here);
      CO_TRY(const int value, co_await run_on(other.executor(), answer(7)));
      EXPECT_EQ(value, 7);
      co_return Result<void>{};
    }
  };
  EXPECT_TRUE(run_until_done(Body::run(other, here)).has_value());
}

TEST(RunOn, GivesMoveOnlyValuesAndErrorsAndExceptions) {
  Reactor other;
  struct Body {
    static Task<std::unique_ptr<int>> pointer() { co_return std::make_unique<int>(3); }
    static Task<int> error() { co_return base::fail(Code::not_found, "nothing"); }
    static Task<int> exception() {
      CO_TRY_VOID(co_await yield_once());
      throw std::runtime_error("bug");
    }
    static Task<void> run(Executor there) {
      CO_TRY(const auto value, co_await run_on(there, pointer()));
      EXPECT_EQ(*value, 3);
      const auto failed = co_await run_on(there, error());
      EXPECT_EQ(failed.error().code, Code::not_found);
      bool thrown = false;
      try {
        (void)co_await run_on(there, exception());
      } catch (const std::runtime_error&) {
        thrown = true;
      }
      EXPECT_TRUE(thrown);
      co_return Result<void>{};
    }
  };
  EXPECT_TRUE(run_until_done(Body::run(other.executor())).has_value());
}

TEST(Deadline, GivesTheResultInTime) {
  EXPECT_EQ(run_until_done(with_deadline(answer(5), kForever)).value(), 5);
}

TEST(Deadline, CancelsWhatIsLate) {
  struct Body {
    static Task<void> wait(const std::shared_ptr<Waiter>& waiter, bool& saw_cancel) {
      const auto woken = co_await waiter->wait();
      saw_cancel = !woken.has_value() && woken.error().code == Code::cancelled;
      co_return woken;
    }
  };
  const auto waiter = std::make_shared<Waiter>();
  bool saw_cancel = false;
  const auto result = run_until_done(with_deadline(Body::wait(waiter, saw_cancel), 1ms));
  EXPECT_EQ(result.error().code, Code::deadline_exceeded);
  EXPECT_TRUE(saw_cancel);
}

TEST(Deadline, CancelReachesSleepsOnAnotherExecutor) {
  Reactor other;
  SystemTimer timer;
  EXPECT_EQ(
      run_until_done(with_deadline(run_on(other.executor(), timer.sleep_for(kForever)), 1ms)).error().code,
      Code::deadline_exceeded);
}

TEST(Deadline, InnerDeadlineDoesNotOutliveTheOuter) {
  SystemTimer timer;
  const auto result = run_until_done(with_deadline(with_deadline(timer.sleep_for(kForever), kForever), 1ms));
  EXPECT_EQ(result.error().code, Code::deadline_exceeded);
}

TEST(Deadline, ATaskThatGoesOnWaitingAfterACancelIsCancelledAgain) {
  struct Body {
    static Task<void> stubborn(Timer& timer, int& waits) {
      for (int i = 0; i < 3; ++i) {
        (void)co_await timer.sleep_for(kForever);
        ++waits;
      }
      co_return Result<void>{};
    }
  };
  SystemTimer timer;
  int waits = 0;
  EXPECT_EQ(run_until_done(with_deadline(Body::stubborn(timer, waits), 1ms)).error().code,
            Code::deadline_exceeded);
  EXPECT_EQ(waits, 3);
}

TEST(VirtualTimer, WakesInOrderOfTimeThenOfArrival) {
  struct Body {
    static Task<void> sleeper(VirtualTimer& timer, base::Duration time, std::string name,
                              std::vector<std::string>& order) {
      CO_TRY_VOID(co_await timer.sleep_for(time));
      order.push_back(std::move(name));
      co_return Result<void>{};
    }
  };
  net::io_context context(1);
  base::ManualClock clock;
  VirtualTimer timer(clock);
  Gate gate;
  std::vector<std::string> order;
  const auto start = [&](base::Duration time, std::string name) {
    spawn(context.get_executor(), gate.hold().value(), name, base::null_log(),
          Body::sleeper(timer, time, name, order));
  };
  start(3h, "c");
  start(1h, "a");
  start(3h, "d");
  start(2h, "b");
  context.poll();
  EXPECT_EQ(timer.sleeper_count(), 4U);
  const auto begin = clock.steady_now();
  while (timer.advance_to_next()) context.poll();
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(clock.steady_now() - begin, 3h);
}

TEST(VirtualTimer, AdvanceByWakesOnlyWhoseTimeCame) {
  struct Body {
    static Task<void> sleeper(VirtualTimer& timer, base::Duration time, int& woken) {
      CO_TRY_VOID(co_await timer.sleep_for(time));
      ++woken;
      co_return Result<void>{};
    }
  };
  net::io_context context(1);
  base::ManualClock clock;
  VirtualTimer timer(clock);
  Gate gate;
  int woken = 0;
  for (const auto time : {1s, 2s, 5s}) {
    spawn(context.get_executor(), gate.hold().value(), "sleeper", base::null_log(),
          Body::sleeper(timer, time, woken));
  }
  context.poll();
  timer.advance_by(2s);
  context.poll();
  EXPECT_EQ(woken, 2);
  while (timer.advance_to_next()) context.poll();
}

TEST(Gate, CloseWaitsForTheLastHolder) {
  struct Body {
    static Task<void> closer(Gate& gate, bool& closed) {
      CO_TRY_VOID(co_await gate.close());
      closed = true;
      co_return Result<void>{};
    }
  };
  net::io_context context(1);
  Gate gate;
  Gate outer;
  bool closed = false;
  auto first = gate.hold();
  auto second = gate.hold();
  spawn(context.get_executor(), outer.hold().value(), "closer", base::null_log(), Body::closer(gate, closed));
  context.poll();
  EXPECT_TRUE(gate.is_closed());
  EXPECT_EQ(gate.hold().error().code, Code::closed);
  *first = Gate::Holder();
  context.poll();
  EXPECT_FALSE(closed);
  *second = Gate::Holder();
  context.restart();
  context.poll();
  EXPECT_TRUE(closed);
}

TEST(GateDeathTest, AbortsWhenDestroyedWhileHeld) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        auto gate = std::make_unique<Gate>();
        const auto holder = gate->hold();
        gate.reset();
      },
      "held|hold");
}

struct RecordingLog final : base::Log {
  void write(base::LogLevel, std::string_view room, std::string_view message) override {
    lines.push_back(std::string(room) + ": " + std::string(message));
  }
  std::vector<std::string> lines;
};

TEST(Spawn, LogsErrorsButNotOrderlyEnds) {
  struct Body {
    static Task<void> end_with(Code code) { co_return base::fail(code, "reason"); }
  };
  net::io_context context(1);
  Gate gate;
  RecordingLog log;
  for (const Code code : {Code::closed, Code::cancelled, Code::data_loss}) {
    spawn(context.get_executor(), gate.hold().value(), "worker", log, Body::end_with(code));
  }
  context.run();
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_EQ(log.lines[0], "worker: data_loss (request): reason");
  EXPECT_EQ(gate.holder_count(), 0U);
}

TEST(SpawnDeathTest, AnExceptionEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  struct Body {
    static Task<void> throws() {
      throw std::runtime_error("a bug");
      co_return Result<void>{};
    }
  };
  EXPECT_DEATH(
      {
        net::io_context context(1);
        Gate gate;
        spawn(context.get_executor(), gate.hold().value(), "worker", base::null_log(), Body::throws());
        context.run();
      },
      "a bug");
}

TEST(Offload, ComesBackToTheAwaitingThread) {
  struct Body {
    static Task<void> run(BlockingPool& pool) {
      const auto here = std::this_thread::get_id();
      CO_TRY(const auto there,
             co_await offload(pool, []() -> Result<std::thread::id> { return std::this_thread::get_id(); }));
      EXPECT_NE(there, here);
      EXPECT_EQ(std::this_thread::get_id(), here);
      const auto failed =
          co_await offload(pool, []() -> Result<int> { return base::fail(Code::no_space, "full"); });
      EXPECT_EQ(failed.error().code, Code::no_space);
      co_return Result<void>{};
    }
  };
  BlockingPool pool("test", 2);
  EXPECT_TRUE(run_until_done(Body::run(pool)).has_value());
}

TEST(Offload, RefusesWhenTheQueueIsFullAndRunsCallsInOrder) {
  std::vector<int> order;
  {
    std::atomic<bool> started = false;
    std::atomic<bool> go = false;
    BlockingPool pool("test", 1, 2);
    ASSERT_TRUE(pool.post([&] {
      started = true;
      started.notify_one();
      go.wait(false);
    }));
    started.wait(false);
    EXPECT_TRUE(pool.post([&] { order.push_back(1); }));
    EXPECT_TRUE(pool.post([&] { order.push_back(2); }));
    EXPECT_FALSE(pool.post([&] { order.push_back(3); }));
    EXPECT_EQ(run_until_done(offload(pool, []() -> Result<int> { return 1; })).error().code, Code::busy);
    go = true;
    go.notify_one();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Offload, ACancelledCallerStillWaitsForTheCall) {
  struct Body {
    static Task<void> run(BlockingPool& pool, std::atomic<bool>& go, bool& ended) {
      const auto result = co_await offload(pool, [&]() -> Result<int> {
        go.wait(false);
        ended = true;
        return 1;
      });
      EXPECT_TRUE(ended);
      if (!result.has_value()) co_return result.error();
      co_return Result<void>{};
    }
    static Task<void> release(std::atomic<bool>& go) {
      go = true;
      go.notify_one();
      co_return Result<void>{};
    }
  };
  std::atomic<bool> go = false;
  BlockingPool pool("test", 1);
  bool ended = false;
  net::io_context context(1);
  Gate gate;
  Reactor reactor;
  struct Outer {
    static Task<void> run(Task<void> inner, std::optional<Result<void>>& result) {
      result = co_await with_deadline(std::move(inner), 0ms);
      co_return Result<void>{};
    }
  };
  std::optional<Result<void>> result;
  spawn(context.get_executor(), gate.hold().value(), "outer", base::null_log(),
        Outer::run(Body::run(pool, go, ended), result));
  // The deadline's handler and the cancel run; the call does not end.
  while (context.run_one_for(10ms) > 0) {
  }
  EXPECT_FALSE(result.has_value());
  ASSERT_TRUE(run_until_done(run_on(reactor.executor(), Body::release(go))).has_value());
  context.restart();
  context.run();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().code, Code::deadline_exceeded);
}

TEST(Channel, KeepsOrderAndBoundBetweenThreads) {
  struct Body {
    static Task<void> produce(Channel<int>& channel, int count) {
      for (int i = 0; i < count; ++i) CO_TRY_VOID(co_await channel.send(i));
      channel.close();
      co_return Result<void>{};
    }
    static Task<int> consume(Channel<int>& channel) {
      int expected = 0;
      for (;;) {
        const Result<int> value = co_await channel.receive();
        if (!value.has_value()) {
          EXPECT_EQ(value.error().code, Code::closed);
          co_return expected;
        }
        EXPECT_EQ(*value, expected++);
      }
    }
  };
  constexpr int kCount = 20'000;
  Reactor other;
  Gate gate;
  Channel<int> channel(3);
  spawn(other.executor(), gate.hold().value(), "producer", base::null_log(), Body::produce(channel, kCount));
  EXPECT_EQ(run_until_done(Body::consume(channel)).value(), kCount);
  EXPECT_TRUE(run_until_done(gate.close()).has_value());
}

TEST(Channel, SendWaitsWhileFullAndFailsWhenClosed) {
  struct Body {
    static Task<void> send(Channel<std::string>& channel, std::string text,
                           std::optional<Result<void>>& result) {
      result = co_await channel.send(std::move(text));
      co_return Result<void>{};
    }
  };
  net::io_context context(1);
  Gate gate;
  Channel<std::string> channel(1);
  std::optional<Result<void>> first;
  std::optional<Result<void>> second;
  spawn(context.get_executor(), gate.hold().value(), "a", base::null_log(), Body::send(channel, "a", first));
  spawn(context.get_executor(), gate.hold().value(), "b", base::null_log(), Body::send(channel, "b", second));
  context.poll();
  EXPECT_TRUE(first.has_value() && first->has_value());
  EXPECT_FALSE(second.has_value());
  channel.close();
  context.restart();
  context.poll();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->error().code, Code::closed);
  EXPECT_EQ(run_until_done(channel.receive()).value(), "a");
  EXPECT_EQ(run_until_done(channel.receive()).error().code, Code::closed);
}

TEST(Channel, ACancelledReceiverPassesItsTurnOn) {
  struct Body {
    static Task<void> receive(Channel<int>& channel, std::vector<int>& got) {
      CO_TRY(const int value, co_await channel.receive());
      got.push_back(value);
      co_return Result<void>{};
    }
  };
  net::io_context context(1);
  Gate gate;
  Channel<int> channel(4);
  std::vector<int> got;
  spawn(context.get_executor(), gate.hold().value(), "patient", base::null_log(),
        Body::receive(channel, got));
  spawn(context.get_executor(), gate.hold().value(), "hasty", base::null_log(),
        with_deadline(Body::receive(channel, got), 0ms));
  while (context.run_one_for(10ms) > 0) {
  }
  EXPECT_EQ(gate.holder_count(), 1U);
  ASSERT_TRUE(run_until_done(channel.send(9)).has_value());
  context.restart();
  context.poll();
  EXPECT_EQ(got, std::vector<int>{9});
}

struct LimiterBody {
  static Task<void> take(Limiter& limiter, std::size_t units, std::vector<std::size_t>& order,
                         std::vector<Limiter::Permit>& held) {
    CO_TRY(auto permit, co_await limiter.acquire(units, kForever));
    order.push_back(units);
    held.push_back(std::move(permit));
    co_return Result<void>{};
  }
};

TEST(Limiter, ServesFirstComeFirstServed) {
  net::io_context context(1);
  Gate gate;
  Limiter limiter(3);
  std::vector<std::size_t> order;
  std::vector<Limiter::Permit> held;
  for (const std::size_t units : {2U, 3U, 1U}) {
    spawn(context.get_executor(), gate.hold().value(), "taker", base::null_log(),
          LimiterBody::take(limiter, units, order, held));
  }
  context.poll();
  // One unit is free, but the third must not pass the second.
  EXPECT_EQ(order, (std::vector<std::size_t>{2}));
  held.clear();
  context.poll();
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 3}));
  held.clear();
  context.poll();
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 3, 1}));
  EXPECT_EQ(limiter.in_use(), 1U);
  held.clear();
  EXPECT_EQ(limiter.in_use(), 0U);
}

TEST(Limiter, IsBusyAfterPatienceAndLeavesNothingBehind) {
  Limiter limiter(1);
  auto first = run_until_done(limiter.acquire(1, kForever));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(run_until_done(limiter.acquire(1, 1ms)).error().code, Code::busy);
  EXPECT_EQ(run_until_done(limiter.acquire(2, kForever)).error().code, Code::invalid_argument);
  *first = Limiter::Permit();
  EXPECT_EQ(limiter.in_use(), 0U);
  EXPECT_TRUE(run_until_done(limiter.acquire(1, 1ms)).has_value());
}

TEST(Limiter, NeverExceedsItsLimitAcrossThreads) {
  struct Body {
    static Task<void> work(Limiter& limiter, std::atomic<int>& inside, std::atomic<bool>& exceeded) {
      for (int i = 0; i < 500; ++i) {
        CO_TRY(const auto permit, co_await limiter.acquire(1, kForever));
        if (++inside > 2) exceeded = true;
        CO_TRY_VOID(co_await yield_once());
        --inside;
      }
      co_return Result<void>{};
    }
  };
  Limiter limiter(2);
  std::atomic<int> inside = 0;
  std::atomic<bool> exceeded = false;
  {
    Reactor a;
    Reactor b;
    Gate gate;
    for (int i = 0; i < 3; ++i) {
      spawn(a.executor(), gate.hold().value(), "a", base::null_log(), Body::work(limiter, inside, exceeded));
      spawn(b.executor(), gate.hold().value(), "b", base::null_log(), Body::work(limiter, inside, exceeded));
    }
    EXPECT_TRUE(run_until_done(gate.close()).has_value());
  }
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(limiter.in_use(), 0U);
}

TEST(TakeChunks, WaitsForChunksThatComeBack) {
  struct Body {
    static Task<void> take(base::BufferPool& pool, std::vector<base::Chunk>& got) {
      CO_TRY(got, co_await take_chunks(pool, base::PoolShare::http, 2, kForever));
      co_return Result<void>{};
    }
  };
  const auto pool = base::BufferPool::create({.chunk_bytes = 4096,
                                              .http_chunk_bytes = 4096,
                                              .drives_bytes = 0,
                                              .planes_bytes = 0,
                                              .http_bytes = 2 * 4096});
  ASSERT_TRUE(pool.has_value());
  auto first = (*pool)->try_take(base::PoolShare::http, 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(run_until_done(take_chunks(**pool, base::PoolShare::http, 2, 1ms)).error().code, Code::busy);
  net::io_context context(1);
  Gate gate;
  std::vector<base::Chunk> got;
  spawn(context.get_executor(), gate.hold().value(), "taker", base::null_log(), Body::take(**pool, got));
  context.poll();
  EXPECT_TRUE(got.empty());
  first->clear();
  context.poll();
  EXPECT_EQ(got.size(), 2U);
}

}  // namespace
}  // namespace reelway::async
