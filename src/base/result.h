#pragma once
// Expected failures are values: every function that can fail returns Result<T>. An Error says what happened
// (code), the largest thing that is broken (scope), whether trying again can help (retry), and a sentence for
// the log (detail), which never reaches an S3 client. Exceptions mean a bug or no memory. Propagate with TRY,
// TRY_VOID, CO_TRY, CO_TRY_VOID and nothing else.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace reelway::base {

enum class Code : std::uint8_t {
  invalid_argument,  // the caller's words make no sense
  not_found,
  already_exists,
  not_empty,            // a bucket or folder that still holds something
  precondition_failed,  // a condition of the caller's (If-Match, generation, identity) does not hold
  not_modified,         // a GET or HEAD condition that answers "unchanged"
  out_of_range,
  access_denied,
  not_resident,  // the bytes are on tape only
  busy,          // somebody else holds it; the same call may work soon
  deadline_exceeded,
  cancelled,
  unavailable,        // a server, device or peer does not answer
  data_loss,          // bytes that should be there are not, or fail their checksum
  checksum_mismatch,  // bytes do not have the checksum that the caller declared
  no_space,
  too_large,
  unsupported,
  closed,  // the other end went away in an orderly manner
  internal,
};

enum class Scope : std::uint8_t { request, object, connection, peer, cartridge, drive, library, node };

enum class Retry : std::uint8_t { never, same_place, elsewhere, later };

struct [[nodiscard]] Error {
  Code code = Code::internal;
  std::string detail;
  Scope scope = Scope::request;
  Retry retry = Retry::never;
};

std::string_view to_string(Code code);
std::string_view to_string(Scope scope);

/// "data_loss (cartridge): block 12 of TAPE01L9 fails its CRC"
std::string to_string(const Error& error);

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result() = default;
  Result(Error error) : std::expected<T, Error>(std::unexpect, std::move(error)) {}
};

inline Error fail(Code code, std::string detail, Scope scope = Scope::request, Retry retry = Retry::never) {
  return Error{.code = code, .detail = std::move(detail), .scope = scope, .retry = retry};
}

/// The error for an errno value: ENOENT is not_found, ENOSPC and EDQUOT no_space, and so on; `what` says what
/// was tried.
Error from_errno(int error_number, std::string_view what);

}  // namespace reelway::base

#define REELWAY_CONCAT_(a, b) a##b
#define REELWAY_CONCAT(a, b) REELWAY_CONCAT_(a, b)

#define REELWAY_TRY_(tmp, declaration, expression, leave) \
  auto tmp = (expression);                                \
  if (!tmp.has_value()) leave std::move(tmp).error();     \
  declaration = std::move(*tmp)
#define REELWAY_TRY_VOID_(tmp, expression, leave) \
  if (auto tmp = (expression); !tmp.has_value()) leave std::move(tmp).error()

/// TRY(auto value, call()); returns the error, or declares `value`.
#define TRY(declaration, ...) \
  REELWAY_TRY_(REELWAY_CONCAT(try_result_, __LINE__), declaration, (__VA_ARGS__), return)
#define TRY_VOID(...) REELWAY_TRY_VOID_(REELWAY_CONCAT(try_result_, __LINE__), (__VA_ARGS__), return)
/// CO_TRY(auto value, co_await call()); the same in a coroutine.
#define CO_TRY(declaration, ...) \
  REELWAY_TRY_(REELWAY_CONCAT(try_result_, __LINE__), declaration, (__VA_ARGS__), co_return)
#define CO_TRY_VOID(...) REELWAY_TRY_VOID_(REELWAY_CONCAT(try_result_, __LINE__), (__VA_ARGS__), co_return)
