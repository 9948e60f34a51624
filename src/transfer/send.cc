#include "transfer/send.h"

#include "async/pool_wait.h"

namespace reelway::transfer {

namespace {

base::Error ended_early() {
  return base::fail(base::Code::data_loss, "an object ended before its length", base::Scope::object);
}

async::Task<void> send_small(http::Exchange& exchange, base::HttpResponseHead head, object::Reader& reader,
                             base::MutableBytes buffer) {
  const auto bytes = buffer.first(reader.range().length);
  CO_TRY(const std::size_t count, co_await object::read_full(reader, bytes));
  if (count < bytes.size()) co_return ended_early();
  co_return co_await exchange.respond(std::move(head), bytes);
}

async::Task<void> send_copied(http::Exchange& exchange, object::Reader& reader, base::MutableBytes buffer) {
  std::uint64_t left = reader.range().length;
  while (left > 0) {
    CO_TRY(const std::size_t count,
           co_await reader.read(buffer.first(std::min<std::uint64_t>(left, buffer.size()))));
    if (count == 0) co_return ended_early();
    CO_TRY_VOID(co_await exchange.write_body(buffer.first(count)));
    left -= count;
  }
  co_return base::Result<void>{};
}

}  // namespace

async::Task<void> send_reader(http::Exchange& exchange, base::HttpResponseHead head, object::Reader& reader,
                              base::BufferPool& pool, base::Duration patience) {
  const std::uint64_t length = reader.range().length;
  head.content_length = length;
  if (length == 0) co_return co_await exchange.respond(std::move(head), {});
  const auto segment = reader.file_segment();
  const bool is_small = length <= pool.chunk_bytes(base::PoolShare::http);
  if (segment && !is_small) {
    CO_TRY_VOID(co_await exchange.start_response(std::move(head)));
    co_return co_await exchange.send_file(segment->descriptor, segment->offset, segment->length);
  }
  CO_TRY(const auto chunks, co_await async::take_chunks(pool, base::PoolShare::http, 1, patience));
  if (is_small) co_return co_await send_small(exchange, std::move(head), reader, chunks.front().bytes());
  CO_TRY_VOID(co_await exchange.start_response(std::move(head)));
  co_return co_await send_copied(exchange, reader, chunks.front().bytes());
}

}  // namespace reelway::transfer
