#pragma once
// A bundle: many objects in one pax tar file (POSIX.1-2017, pax Interchange Format) that any tar reads,
// ending in a table of contents (docs/formats/bundle.md). Pure: these give and take bytes, the caller moves
// them. Members are named `bucket/key`; what a tar cannot unpack under that name (a key with "//", "..", a
// trailing "/", a name that is both file and folder, ...) is named
// `.reelway/odd/<generation>`. True names, generation and metadata are in SCHILY.xattr.user.reelway.* records
// (so tar says nothing about unknown keywords, and `tar --xattrs` restores them) and in the table of
// contents.

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
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
  std::string sha256;    ///< when known before the content; else give it to end_member: only the table of
                         ///< contents has it then
};

/// Builds a bundle's bytes: a member's head, its content (which the caller moves), its padding, and at the
/// end the table of contents.
class Writer {
 public:
  /// Appends the tar headers of a member to `out`; `length` content bytes must follow. Close the open member
  /// first.
  void begin_member(const MemberHead& head, std::string& out);
  /// Appends the padding after the content. `sha256`: of the content, or empty for what the head said.
  void end_member(std::string sha256, std::string& out);
  /// For a member whose source failed in the middle: its content was filled up with anything to the promised
  /// length. It is in the tar but not in the table of contents, and does not count.
  void drop_member(std::string& out);
  /// Table of contents, footer, end-of-archive blocks. The bundle is complete after it.
  void finish(std::string& out);
  std::uint64_t size() const { return size_; }  ///< of everything so far, the open member's content included
  const std::vector<Member>& members() const { return members_; }

 private:
  std::string choose_name(const MemberHead& head);
  void pad(std::string& out);

  std::uint64_t size_ = 0;
  std::uint64_t odd_count_ = 0;
  Member open_;
  std::vector<Member> members_;
  std::unordered_set<std::string> files_;
  std::unordered_set<std::string> folders_;
};

/// How many of a bundle's last bytes to read first to find its table of contents.
inline constexpr std::size_t kTailBytes = 4096;

struct TocLocation {
  std::uint64_t offset = 0;  ///< of the table's text in the bundle
  std::uint64_t length = 0;
  std::uint64_t count = 0;  ///< of members
  std::uint32_t crc32c = 0;
  friend bool operator==(const TocLocation&, const TocLocation&) = default;
};

/// `tail`: the last min(size, kTailBytes) bytes of a bundle. data_loss: no bundle of ours, or one that was
/// cut short.
base::Result<TocLocation> find_toc(base::ByteView tail, std::uint64_t bundle_bytes);
/// data_loss: damaged, or a member that does not lie inside the bundle before the table.
base::Result<std::vector<Member>> decode_toc(base::ByteView toc, const TocLocation& location);

/// Reads a tar stream member by member, for bundles that were cut short: feed it all bytes in order, or
/// skip() what it says may be skipped.
class Reader {
 public:
  struct Found {
    std::string name;  ///< as tar has it
    char type = '0';   ///< '0' file, '5' folder, ...
    Member member;     ///< offset and length always; the rest from our records, empty for foreign members
  };
  /// data_loss after which nothing more can be read.
  base::Result<void> feed(base::ByteView bytes);
  /// Content bytes that come next and need not be fed.
  std::uint64_t skippable() const { return skip_; }
  void skip(std::uint64_t bytes);
  bool at_end() const { return at_end_; }  ///< the end-of-archive mark was met
  std::vector<Found> take_found() { return std::move(found_); }

 private:
  struct Extended {  // records of a pax header, for the next member
    std::string path, bucket, key, generation, sha256;
    std::string metadata;
    bool has_size = false;
    std::uint64_t size = 0;
  };
  base::Result<void> take_header(std::string_view block);
  base::Result<void> take_records(std::string_view text);

  std::string pending_;  // an incomplete header block or pax content
  std::uint64_t wanted_ = kTarBlock;
  std::uint64_t record_bytes_ = 0;  // of pax content in pending_, 0: a header is awaited
  bool records_are_ours_ = false;   // an 'x' header, not 'g'
  std::uint64_t position_ = 0;
  std::uint64_t skip_ = 0;
  bool at_end_ = false;
  Extended extended_;
  std::vector<Found> found_;
};

}  // namespace reelway::tape::bundle
