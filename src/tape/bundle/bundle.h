#pragma once
// A bundle: many objects in one pax tar file (POSIX.1-2017, pax Interchange Format) that any tar reads,
// ending in a table of contents (docs/formats/bundle.md). Pure: these give and take bytes, the caller moves
// them. Members are named `bucket/key`; what a tar name cannot carry exactly (a key with "//", "..", NUL,
// ...) is named `.reelway/odd/<generation>`; the true name is in REELWAY.* pax records and in the table of
// contents.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/encoding.h"
#include "tape/member.h"

namespace reelway::tape::bundle {

inline constexpr std::size_t kTarBlock = 512;

struct MemberHead {
  std::string bucket;
  std::string key;
  std::string generation;
  std::uint64_t length = 0;
  base::TimePoint modify_time{};
  base::Bytes metadata;  ///< CBOR
  /// Known before the content: in the member's pax header; else give it to end_member, and only the table of
  /// contents has it.
  std::string sha256;
};

/// Builds a bundle's bytes: head, then the member's content (the caller's), then padding; at the end the
/// table of contents. Tracks offsets.
class Writer {
 public:
  /// Appends the tar headers of a member to `out`; `length` content bytes must follow.
  void begin_member(const MemberHead& head, std::string& out);
  /// Appends the padding after the content. `sha256` as in MemberHead, may be empty.
  void end_member(std::string sha256, std::string& out);
  /// A member whose source failed in the middle: the caller has padded its content with anything to the
  /// promised length; it will not be in the table of contents.
  void drop_member(std::string& out);
  /// The table of contents, the end-of-archive blocks and the footer. The bundle is complete after it.
  void finish(std::string& out);
  std::uint64_t size() const { return size_; }  ///< of everything so far, the open member's content included
  const std::vector<Member>& members() const { return members_; }

 private:
  std::uint64_t size_ = 0;
  std::vector<Member> members_;
  Member open_;
};

/// How many of a bundle's last bytes to read first to find its table of contents.
inline constexpr std::size_t kTailBytes = 4096;
struct TocLocation {
  std::uint64_t offset = 0;  ///< of the table's content in the bundle
  std::uint64_t length = 0;
  std::uint32_t crc32c = 0;
};
/// `tail`: the last min(size, kTailBytes) bytes of a bundle of `bundle_bytes`. data_loss: no bundle of ours,
/// or cut short.
base::Result<TocLocation> find_toc(base::ByteView tail, std::uint64_t bundle_bytes);
/// data_loss: damaged, or members that do not lie inside the bundle before the table.
base::Result<std::vector<Member>> decode_toc(base::ByteView toc, const TocLocation& location);

/// Reads any pax or ustar stream member by member, for bundles without a table of contents (cut short) and
/// for tests. Feed it from offset 0.
class Reader {
 public:
  struct Found {
    std::string name;  ///< as tar has it
    Member member;     ///< bucket, key, generation... from REELWAY records; empty for foreign members
    char type = '0';
  };
  enum class Need : std::uint8_t { header, skip, end };
  /// What the next step needs: the next kTarBlock bytes, or `skip_bytes()` bytes passed over, or nothing
  /// more.
  Need need() const { return need_; }
  std::uint64_t skip_bytes() const { return skip_; }
  /// One header block, or the content of a pax header (need() tells by content_bytes()).
  base::Result<void> feed(base::ByteView bytes);
  std::vector<Found> take_found() { return std::move(found_); }

 private:
  Need need_ = Need::header;
  std::uint64_t skip_ = 0;
  std::vector<Found> found_;
};

}  // namespace reelway::tape::bundle
