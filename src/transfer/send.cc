#include "transfer/send.h"

#include "async/pool_wait.h"

namespace reelway::transfer {

namespace {

/// For a chunk in the middle of an answer, which cannot be refused any more.
constexpr base::Duration kPatienceUnderWay = std::chrono::seconds{30};

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

/// Nobody waits for a tape with a chunk in hand (rule 9).
async::Task<void> wait_for_tape(object::Reader& reader, base::BufferPool& pool,
                                std::vector<base::Chunk>& chunks) {
  auto wait = reader.tape_wait();
  if (!wait) co_return base::Result<void>{};
  chunks.clear();
  CO_TRY_VOID(co_await std::move(*wait));
  CO_TRY(chunks, co_await async::take_chunks(pool, base::PoolShare::http, 1, kPatienceUnderWay));
  co_return base::Result<void>{};
}

async::Task<void> send_copied(http::Exchange& exchange, object::Reader& reader, base::BufferPool& pool,
                              std::vector<base::Chunk> chunks) {
  std::uint64_t left = reader.range().length;
  while (left > 0) {
    CO_TRY_VOID(co_await wait_for_tape(reader, pool, chunks));
    const base::MutableBytes buffer = chunks.front().bytes();
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
  CO_TRY(auto chunks, co_await async::take_chunks(pool, base::PoolShare::http, 1, patience));
  if (is_small) co_return co_await send_small(exchange, std::move(head), reader, chunks.front().bytes());
  CO_TRY_VOID(co_await exchange.start_response(std::move(head)));
  co_return co_await send_copied(exchange, reader, pool, std::move(chunks));
}

}  // namespace reelway::transfer
