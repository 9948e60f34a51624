#include "base/result.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace reelway::base {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::not_found:
      return "not_found";
    case Code::already_exists:
      return "already_exists";
    case Code::not_empty:
      return "not_empty";
    case Code::precondition_failed:
      return "precondition_failed";
    case Code::not_modified:
      return "not_modified";
    case Code::out_of_range:
      return "out_of_range";
    case Code::access_denied:
      return "access_denied";
    case Code::not_resident:
      return "not_resident";
    case Code::busy:
      return "busy";
    case Code::deadline_exceeded:
      return "deadline_exceeded";
    case Code::cancelled:
      return "cancelled";
    case Code::unavailable:
      return "unavailable";
    case Code::data_loss:
      return "data_loss";
    case Code::checksum_mismatch:
      return "checksum_mismatch";
    case Code::no_space:
      return "no_space";
    case Code::too_large:
      return "too_large";
    case Code::unsupported:
      return "unsupported";
    case Code::closed:
      return "closed";
    case Code::internal:
      return "internal";
  }
  return "unknown";
}

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::request:
      return "request";
    case Scope::object:
      return "object";
    case Scope::connection:
      return "connection";
    case Scope::peer:
      return "peer";
    case Scope::cartridge:
      return "cartridge";
    case Scope::drive:
      return "drive";
    case Scope::library:
      return "library";
    case Scope::node:
      return "node";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  return fmt::format("{} ({}): {}", to_string(error.code), to_string(error.scope), error.detail);
}

namespace {

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Code::not_found;
    case EEXIST:
      return Code::already_exists;
    case ENOTEMPTY:
      return Code::not_empty;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::access_denied;
    case ENOSPC:
    case EDQUOT:
      return Code::no_space;
    case EFBIG:
      return Code::too_large;
    case EAGAIN:
    case EBUSY:
    case ETXTBSY:
      return Code::busy;
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ELOOP:
    case EXDEV:
      return Code::invalid_argument;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::unsupported;
    case ECANCELED:
      return Code::cancelled;
    case ETIMEDOUT:
      return Code::deadline_exceeded;
    case ECONNRESET:
    case EPIPE:
      return Code::closed;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Code::unavailable;
    case EIO:
      return Code::data_loss;
    default:
      return Code::internal;
  }
}

}  // namespace

Error from_errno(int error_number, std::string_view what) {
  const bool is_exhausted =
      error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM || error_number == ENOSPC;
  const Scope scope = is_exhausted || error_number == EIO ? Scope::node : Scope::request;
  const Retry retry =
      is_exhausted || error_number == EAGAIN || error_number == EBUSY ? Retry::later : Retry::never;
  return fail(code_of_errno(error_number), fmt::format("{}: {}", what, std::strerror(error_number)), scope,
              retry);
}

}  // namespace reelway::base
