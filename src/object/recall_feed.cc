#include "object/recall_feed.h"

#include <algorithm>

namespace reelway::object {

void RecallFeed::begin(const std::shared_ptr<LandingFile>& file) {
  const std::lock_guard lock(mutex_);
  file_ = file;
  ++run_;
  bytes_ = 0;
  running_ = true;
}

void RecallFeed::advance(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
  wake_all();
}

void RecallFeed::abandon() {
  const std::lock_guard lock(mutex_);
  running_ = false;
  wake_all();
}

void RecallFeed::land() {
  const std::lock_guard lock(mutex_);
  landed_ = true;
  wake_all();
}

void RecallFeed::end(base::Error why) {
  const std::lock_guard lock(mutex_);
  if (!ended_) ended_ = std::move(why);
  wake_all();
}

bool RecallFeed::has_landed() const {
  const std::lock_guard lock(mutex_);
  return landed_;
}

base::Result<std::optional<FeedView>> RecallFeed::look(std::uint64_t offset,
                                                       std::optional<std::uint64_t> run) const {
  const std::lock_guard lock(mutex_);
  if (run && (*run != run_ || !running_)) {
    return base::fail(base::Code::data_loss, "the copy that was being read from tape came to nothing",
                      base::Scope::object, base::Retry::later);
  }
  const std::uint64_t before_tail = size_ - std::min(size_, kWithheldBytes);
  const std::uint64_t readable = landed_ ? size_ : running_ ? std::min(bytes_, before_tail) : 0;
  auto file = readable > offset ? file_.lock() : nullptr;
  if (file) return FeedView{.file = std::move(file), .run = run_, .readable = readable};
  if (ended_) return *ended_;
  return std::nullopt;
}

void RecallFeed::add_waiter(std::shared_ptr<async::Waiter> waiter) {
  const std::lock_guard lock(mutex_);
  waiters_.push_back(std::move(waiter));
}

void RecallFeed::remove_waiter(const std::shared_ptr<async::Waiter>& waiter) {
  const std::lock_guard lock(mutex_);
  std::erase(waiters_, waiter);
}

void RecallFeed::wake_all() {
  for (const auto& waiter : waiters_) waiter->wake();
  waiters_.clear();
}

namespace {

class FeedReader final : public Reader {
 public:
  FeedReader(std::shared_ptr<RecallFeed> feed, FeedView begun, ObjectInfo info, base::ByteRange range)
      : feed_(std::move(feed)), view_(std::move(begun)), info_(std::move(info)), range_(range) {}
  const ObjectInfo& info() const override { return info_; }
  base::ByteRange range() const override { return range_; }

  std::optional<async::Task<void>> tape_wait() override {
    if (done_ == range_.length || view_.readable > position()) return std::nullopt;
    return wait();
  }

  async::Task<std::size_t> read(base::MutableBytes into) override {
    if (done_ == range_.length) co_return std::size_t{0};
    if (view_.readable <= position()) CO_TRY_VOID(co_await wait());
    const std::uint64_t left = std::min(range_.length - done_, view_.readable - position());
    if (into.size() > left) into = into.first(static_cast<std::size_t>(left));
    CO_TRY(const std::size_t count, co_await view_.file->read(position(), into));
    if (count == 0)
      co_return base::fail(base::Code::data_loss, "a landing file was cut short while it was read",
                           base::Scope::object);
    done_ += count;
    co_return count;
  }

 private:
  std::uint64_t position() const { return range_.offset + done_; }

  /// Bytes of two runs are never mixed: after the first one, only its own run will do.
  async::Task<void> wait() {
    for (;;) {
      const auto waiter = std::make_shared<async::Waiter>();
      feed_->add_waiter(waiter);  // before the look, so that no change is missed
      auto seen = feed_->look(position(), done_ > 0 ? std::optional(view_.run) : std::nullopt);
      if (!seen || *seen) {
        feed_->remove_waiter(waiter);
        if (!seen) co_return seen.error();
        view_ = std::move(**seen);
        co_return base::Result<void>{};
      }
      const auto woken = co_await waiter->wait();
      feed_->remove_waiter(waiter);
      if (!woken) co_return woken.error();
    }
  }

  std::shared_ptr<RecallFeed> feed_;
  FeedView view_;
  ObjectInfo info_;
  base::ByteRange range_;
  std::uint64_t done_ = 0;
};

}  // namespace

std::unique_ptr<Reader> make_feed_reader(std::shared_ptr<RecallFeed> feed, FeedView begun, ObjectInfo info,
                                         base::ByteRange range) {
  return std::make_unique<FeedReader>(std::move(feed), std::move(begun), std::move(info), range);
}

}  // namespace reelway::object
