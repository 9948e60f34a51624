#include "app/mover.h"

#include <algorithm>

#include "app/registered.h"
#include "s3client/reply_xml.h"

namespace reelway::app {

namespace {

base::Error changed() {
  return base::fail(base::Code::precondition_failed, "it changed while it was fetched");
}

async::Task<void> read_full(s3client::Content& content, std::uint64_t offset, base::MutableBytes into) {
  while (!into.empty()) {
    CO_TRY(const std::size_t count, co_await content.read_at(offset, into));
    offset += count;
    into = into.subspan(count);
  }
  co_return base::Result<void>{};
}

class HttpMover final : public Mover {
 public:
  HttpMover(s3client::Client& client, std::string bucket) : client_(client), bucket_(std::move(bucket)) {}
  async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) override {
    CO_TRY(const auto got, co_await client_.get(bucket_, std::move(key), sink, {}));
    if (got.bytes != size) co_return changed();
    co_return base::Result<void>{};
  }
  async::Task<void> send(std::string key, s3client::Content& content) override {
    CO_TRY(const auto stored, co_await client_.put(bucket_, std::move(key), content, {}));
    co_return base::Result<void>{};
  }
  std::string plane() const override { return "http"; }

 private:
  s3client::Client& client_;
  const std::string bucket_;
};

/// Nobody registers nothing: empty objects travel in band.
class PlaneMover final : public Mover {
 public:
  PlaneMover(std::unique_ptr<SlotPool> slots, s3client::Client& control, const std::string& bucket)
      : slots_(std::move(slots)), control_(control), in_band_(control, bucket), bucket_(bucket) {}

  async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) override {
    if (size == 0) co_return co_await in_band_.fetch(std::move(key), size, sink);
    CO_TRY(const auto slot, slots_->take());
    std::string etag;
    for (std::uint64_t offset = 0; offset < size;) {
      const std::uint64_t length = std::min(kSlotBytes, size - offset);
      std::optional<s3::Range> range;
      if (length < size) range = s3::Range{.first = offset, .last = offset + length - 1};
      const client::Slice slice{.offset = 0, .length = length};
      CO_TRY(const auto moved, co_await slots_->client().get(bucket_, key, *slot->memory, slice, range));
      if (moved.bytes != length || (!etag.empty() && etag != moved.etag)) co_return changed();
      etag = moved.etag;
      CO_TRY_VOID(co_await sink.write(offset, base::ByteView(slot->bytes.get(), length)));
      offset += length;
    }
    co_return base::Result<void>{};
  }

  async::Task<void> send(std::string key, s3client::Content& content) override {
    if (content.size() == 0) co_return co_await in_band_.send(std::move(key), content);
    CO_TRY(const auto slot, slots_->take());
    if (content.size() > kSlotBytes) co_return co_await send_in_parts(key, content, *slot);
    CO_TRY_VOID(co_await read_full(content, 0, {slot->bytes.get(), content.size()}));
    const client::Slice slice{.offset = 0, .length = content.size()};
    CO_TRY(const auto moved,
           co_await slots_->client().put(bucket_, std::move(key), *slot->memory, slice, {}));
    co_return base::Result<void>{};
  }
  std::string plane() const override { return slots_->client().plane(); }

 private:
  s3client::Call call_on(const std::string& key, std::string method, s3::Query query) const {
    s3client::Call call;
    call.method = std::move(method);
    call.bucket = bucket_;
    call.key = key;
    call.query = std::move(query);
    return call;
  }

  async::Task<std::string> succeed(s3client::Call call) {
    const s3client::Call asked = call;
    CO_TRY(auto reply, co_await control_.call(std::move(call)));
    if (!reply.ok()) co_return s3client::to_error(reply, asked);
    co_return std::move(reply.body);
  }

  async::Task<void> send_in_parts(const std::string& key, s3client::Content& content, SlotPool::Slot& slot) {
    CO_TRY(const std::string begun, co_await succeed(call_on(key, "POST", {{"uploads", ""}})));
    CO_TRY(const std::string id, s3client::parse_upload_id(begun));
    auto sent = co_await send_parts(key, id, content, slot);
    if (sent) co_return base::Result<void>{};
    // What is left of it costs the bucket's owner space; that the abort fails too changes nothing for the
    // caller.
    static_cast<void>(co_await succeed(call_on(key, "DELETE", {{"uploadId", id}})));
    co_return std::move(sent).error();
  }

  async::Task<void> send_parts(const std::string& key, const std::string& id, s3client::Content& content,
                               SlotPool::Slot& slot) {
    if (content.size() > kSlotBytes * s3::kPartNumberMax)
      co_return base::fail(base::Code::too_large, "it needs more than 10000 parts");
    std::vector<s3::CompletedPart> parts;
    for (std::uint64_t offset = 0; offset < content.size();) {
      const std::uint64_t length = std::min(kSlotBytes, content.size() - offset);
      CO_TRY_VOID(co_await read_full(content, offset, {slot.bytes.get(), length}));
      const auto number = static_cast<std::uint32_t>(parts.size() + 1);
      const client::Slice slice{.offset = 0, .length = length};
      CO_TRY(auto moved, co_await slots_->client().put_part(bucket_, key, id, number, *slot.memory, slice));
      parts.push_back({.part_number = number, .etag = std::move(moved.etag), .checksums = {}});
      offset += length;
    }
    s3client::Call complete = call_on(key, "POST", {{"uploadId", id}});
    complete.body = s3client::write_complete_request(parts);
    CO_TRY(const std::string answer, co_await succeed(std::move(complete)));
    // S3 may begin a 200 before it knows that the upload cannot be completed.
    if (const auto error = s3::parse_error_document(answer))
      co_return base::fail(base::Code::unavailable, error->message);
    co_return base::Result<void>{};
  }

  std::unique_ptr<SlotPool> slots_;
  s3client::Client& control_;
  HttpMover in_band_;
  const std::string bucket_;
};

}  // namespace

async::Task<std::unique_ptr<Mover>> make_mover(s3client::Client& client, base::Rng& rng,
                                               PlaneOptions options) {
  if (options.rdma == "off") co_return std::make_unique<HttpMover>(client, std::move(options.bucket));
  const std::string bucket = options.bucket;
  CO_TRY(auto slots, co_await SlotPool::create(client, rng, std::move(options)));
  co_return std::make_unique<PlaneMover>(std::move(slots), client, bucket);
}

}  // namespace reelway::app
