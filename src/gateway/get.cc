// GetObject and HeadObject, in band and by plane.

#include <fmt/format.h>

#include "gateway/call.h"
#include "gateway/convert.h"
#include "gateway/plane_path.h"
#include "transfer/send.h"

namespace reelway::gateway {

namespace {

/// What both operations share.
struct Read {
  const s3::Conditions& conditions;
  const std::optional<s3::Range>& range;
  std::optional<std::uint32_t> part_number;
};

std::string condition_name(const s3::Conditions& conditions) {
  return conditions.if_match.empty() ? "If-Unmodified-Since" : "If-Match";
}

std::string range_text(const s3::Range& range) {
  const auto text = [](const std::optional<std::uint64_t>& value) {
    return value ? std::to_string(*value) : std::string{};
  };
  return fmt::format("bytes={}-{}", text(range.first), text(range.last));
}

/// A fault in full: what S3 says about the object that could not be given.
async::net::awaitable<s3::Fault> read_fault(Call& call, const Read& read, base::Error error) {
  s3::Fault fault = s3::to_fault(error, call.request.bucket, call.request.key);
  if (error.code == base::Code::precondition_failed) {
    co_return s3::fault(s3::ErrorCode::precondition_failed, {{"Condition", condition_name(read.conditions)}});
  }
  if (error.code == base::Code::unavailable && error.retry == base::Retry::later) {
    co_return s3::fault(s3::ErrorCode::slow_down);  // the tape took longer than a client's patience (rule 9)
  }
  const bool needs_info = error.code == base::Code::not_modified || error.code == base::Code::out_of_range ||
                          error.code == base::Code::not_resident;
  if (!needs_info) co_return fault;
  object::HeadRequest request{.name = call.name(), .conditions = {}};
  const auto info = co_await call.store().head(std::move(request));
  if (!info) co_return fault;
  if (error.code == base::Code::not_modified) {
    fault.headers.set("ETag", s3::quote_etag(info->etag));
    fault.headers.set("Last-Modified", base::to_http_date(info->last_modified));
  } else if (error.code == base::Code::not_resident) {
    fault = s3::fault(s3::ErrorCode::invalid_object_state, {{"StorageClass", shown_class(*info)}});
  } else if (read.part_number) {
    const std::size_t count = std::max<std::size_t>(info->part_sizes.size(), 1);
    fault = s3::fault(s3::ErrorCode::invalid_part_number,
                      {{"ActualPartCount", std::to_string(count)},
                       {"PartNumberRequested", std::to_string(*read.part_number)}});
  } else if (read.range) {
    fault = s3::fault(s3::ErrorCode::invalid_range, {{"RangeRequested", range_text(*read.range)},
                                                     {"ActualObjectSize", std::to_string(info->size)}});
    fault.headers.set("Content-Range", fmt::format("bytes */{}", info->size));
  }
  co_return fault;
}

base::Result<base::ByteRange> part_range(const object::ObjectInfo& info, std::uint32_t part_number) {
  if (info.part_sizes.empty() && part_number == 1) return base::ByteRange{.offset = 0, .length = info.size};
  if (part_number == 0 || part_number > info.part_sizes.size())
    return base::fail(base::Code::out_of_range, "no such part");
  base::ByteRange range;
  for (std::uint32_t index = 0; index + 1 < part_number; ++index) range.offset += info.part_sizes[index];
  range.length = info.part_sizes[part_number - 1];
  return range;
}

/// Which bytes a HEAD is about; absent: all of them.
base::Result<std::optional<base::ByteRange>> partial_range(const object::ObjectInfo& info, const Read& read) {
  if (read.part_number) {
    TRY(const auto range, part_range(info, *read.part_number));
    return std::optional(range);
  }
  if (!read.range) return std::optional<base::ByteRange>{};
  TRY(const auto range,
      object::resolve_range({.first = read.range->first, .last = read.range->last}, info.size));
  return std::optional(range);
}

template <class O>
s3::ObjectHeaderOptions header_options(const O& operation, std::optional<base::ByteRange> range) {
  return {.overrides = operation.overrides,
          .checksum_mode = operation.checksum_mode,
          .part_number = operation.part_number,
          .range = range};
}

/// The head as it is and the reader's bytes.
ReplyTask send_in_band(Call& call, Reply reply, object::Reader& reader) {
  auto sent = co_await transfer::send_reader(call.exchange, std::move(reply.head), reader, call.parts().pool,
                                             call.options().chunk_patience);
  reply.sent = true;
  if (!sent && call.exchange.status_sent() == 0)
    co_return s3::to_fault(sent.error(), call.request.bucket, call.request.key);
  if (!sent) reply.broken = std::move(sent).error();
  co_return reply;
}

/// Bytes go to the client's memory where a plane can; otherwise the answer says why not, and they go in band.
ReplyTask send_by_plane(Call& call, base::HttpResponseHead head, object::Reader& reader, bool partial) {
  const auto& parts = call.parts();
  const bool required = rdma::rdma_required(call.exchange.head().fields);
  CO_TRY(const auto moved, or_fault(call, co_await transfer::get_by_plane(
                                              parts.planes, parts.pool, parts.clock, call.request.rdma.token,
                                              call.exchange.peer(), reader, partial, required, {})));
  const bool failed = !moved.answer.error_code.empty();
  count_plane(call, "get",
              moved.moved ? "moved"
              : failed    ? "refused"
                          : "declined",
              moved.moved ? moved.bytes : 0);
  if (!moved.detail.empty()) parts.log.write(base::LogLevel::info, "rdma", moved.detail);
  if (failed) co_return plane_fault(moved.answer);
  for (const auto& field : moved.answer.fields) head.fields.set(field.name, field.value);
  head.status = moved.answer.status;
  Reply reply{.head = std::move(head), .body = {}, .sent = false, .broken = {}};
  if (!moved.answer.body_in_band) co_return reply;
  co_return co_await send_in_band(call, std::move(reply), reader);
}

}  // namespace

ReplyTask handle(Call& call, const s3::GetObject& operation) {
  CO_TRY_VOID(check_version(call, operation.version_id));
  const Read read{operation.conditions, operation.range, operation.part_number};
  object::GetRequest request{.name = call.name(),
                             .conditions = to_object(operation.conditions),
                             .range = to_object(operation.range),
                             .part_number = operation.part_number,
                             // A plane's chunks and deadline cannot wait for a tape (rule 9).
                             .without_tape_waits = static_cast<bool>(call.request.rdma)};
  auto reader = co_await call.store().get(std::move(request));
  if (!reader) {
    s3::Fault fault = co_await read_fault(call, read, std::move(reader).error());
    co_return fault;
  }
  const auto& info = (*reader)->info();
  const bool partial = operation.range.has_value() || operation.part_number.has_value();
  base::HttpResponseHead head = call.head(partial ? 206 : 200);
  const auto range = partial ? std::optional((*reader)->range()) : std::nullopt;
  s3::add_object_headers(head.fields, to_view(info), header_options(operation, range));
  if (call.request.rdma) co_return co_await send_by_plane(call, std::move(head), **reader, partial);
  Reply reply{.head = std::move(head), .body = {}, .sent = false, .broken = {}};
  co_return co_await send_in_band(call, std::move(reply), **reader);
}

ReplyTask handle(Call& call, const s3::HeadObject& operation) {
  CO_TRY_VOID(check_version(call, operation.version_id));
  const Read read{operation.conditions, operation.range, operation.part_number};
  object::HeadRequest request{.name = call.name(), .conditions = to_object(operation.conditions)};
  auto info = co_await call.store().head(std::move(request));
  if (!info) {
    s3::Fault fault = co_await read_fault(call, read, std::move(info).error());
    co_return fault;
  }
  auto range = partial_range(*info, read);
  if (!range) {
    s3::Fault fault = co_await read_fault(call, read, std::move(range).error());
    co_return fault;
  }
  Reply reply = call.reply(*range ? 206 : 200);
  s3::add_object_headers(reply.head.fields, to_view(*info), header_options(operation, *range));
  reply.head.content_length = *range ? (*range)->length : info->size;
  co_return reply;
}

}  // namespace reelway::gateway
