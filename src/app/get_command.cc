// `reelway get`: objects into files, or only into memory to be hashed.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "app/parse.h"
#include "app/transfer_jobs.h"
#include "base/checksum.h"
#include "base/encoding.h"

namespace reelway::app {

namespace {

struct GetOptions : EndpointOptions {
  std::string source;
  std::string target;
  bool digest = false;
};

/// SHA-256 of a body, and the body in a file where there is one. A retry starts over at offset 0.
class Landing final : public s3client::Sink {
 public:
  Landing(bool digest, int descriptor) : digest_(digest), descriptor_(descriptor) {}
  ~Landing() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  async::Task<void> write(std::uint64_t offset, base::ByteView bytes) override {
    if (offset == 0 && digest_) hasher_ = base::make_hasher(base::ChecksumKind::sha256);
    if (digest_) hasher_->update(bytes);
    size_ = offset + bytes.size();
    while (descriptor_ >= 0 && !bytes.empty()) {
      const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0) co_return base::from_errno(errno, "cannot write a file");
      offset += static_cast<std::uint64_t>(count);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    co_return base::Result<void>{};
  }
  std::string digest() const {
    return base::to_hex(hasher_ ? hasher_->digest() : base::digest_of(base::ChecksumKind::sha256, {}));
  }
  std::uint64_t size() const { return size_; }

 private:
  bool digest_;
  int descriptor_;
  std::unique_ptr<base::Hasher> hasher_;
  std::uint64_t size_ = 0;
};

struct Item {
  std::string key;
  std::string name;  ///< relative to the prefix
  std::uint64_t size = 0;
};

/// Keys may say anything; files are made beneath the target only.
base::Result<std::filesystem::path> path_for(const GetOptions& options, const std::string& name) {
  if (!options.recursive) {
    std::error_code error;
    if (!std::filesystem::is_directory(options.target, error)) return std::filesystem::path(options.target);
  }
  const std::filesystem::path relative(name);
  const bool leads_out = relative.is_absolute() || std::ranges::find(relative, "..") != relative.end() ||
                         name.empty() || name.ends_with('/');
  if (leads_out) {
    const std::string_view advice = name.starts_with('/') ? ": end the prefix with a /" : "";
    return base::fail(base::Code::unsupported,
                      "its key is no file name beneath the target" + std::string(advice));
  }
  return std::filesystem::path(options.target) / relative;
}

base::Result<int> open_file(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return base::from_errno(errno, "cannot write " + path.string());
  return descriptor;
}

async::Task<void> get_one(Mover& mover, const GetOptions& options, const Item& item, Report& report) {
  std::filesystem::path path;
  std::filesystem::path temporary;
  int descriptor = -1;
  if (!options.target.empty()) {
    CO_TRY(path, path_for(options, item.name));
    temporary = path;
    temporary += ".part";
    CO_TRY(descriptor, open_file(temporary));
  }
  Landing landing(options.digest, descriptor);
  const auto fetched = co_await mover.fetch(item.key, item.size, landing);
  std::error_code error;
  if (!fetched) {
    if (!temporary.empty()) std::filesystem::remove(temporary, error);
    co_return fetched.error();
  }
  if (!temporary.empty()) std::filesystem::rename(temporary, path, error);
  if (error) co_return base::from_errno(error.value(), "cannot rename " + temporary.string());
  ++report.objects;
  report.bytes += landing.size();
  if (options.digest) report.sha256[item.name] = landing.digest();
  co_return base::Result<void>{};
}

async::Task<std::vector<Item>> find_items(s3client::Client& client, const object::ObjectName& source,
                                          bool recursive) {
  std::vector<Item> items;
  if (!recursive) {
    CO_TRY(const auto head, co_await client.head(source.bucket, source.key));
    const auto slash = source.key.rfind('/');
    items.push_back(
        {source.key, slash == std::string::npos ? source.key : source.key.substr(slash + 1), head.size});
    co_return items;
  }
  s3client::ListOptions list;
  list.prefix = source.key;
  while (true) {
    CO_TRY(auto page, co_await client.list(source.bucket, list));
    for (auto& entry : page.objects)
      items.push_back({entry.key, entry.key.substr(source.key.size()), entry.size});
    if (!page.truncated) co_return items;
    list.continuation_token = std::move(page.next_continuation_token);
  }
}

async::Task<Report> get_all(const s3client::Options& client_options, const GetOptions& options,
                            const object::ObjectName& source) {
  Report report;
  CO_TRY(const auto session, co_await open_session(client_options, options, source.bucket));
  CO_TRY(const auto items, co_await find_items(*session->client, source, options.recursive));
  const Job job = [&](std::size_t index) { return get_one(*session->mover, options, items[index], report); };
  const auto name = [&](std::size_t index) { return items[index].key; };
  CO_TRY_VOID(co_await run_jobs(items.size(), options.parallel, job, name, report));
  report.plane = session->mover->plane();
  co_return report;
}

base::Result<Exit> run_get(const GetOptions& options) {
  if (options.target.empty() && !options.digest)
    return base::fail(base::Code::invalid_argument, "say where to put it, or --digest");
  TRY(const auto endpoint, client_options(options));
  TRY(const auto source, parse_s3_url(options.source));
  return run_transfers(get_all(endpoint, options, source), options.as_json);
}

}  // namespace

void add_get(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("get", "Fetch objects");
  const auto options = std::make_shared<GetOptions>();
  add_endpoint_options(*command, *options);
  add_rdma_option(*command, *options);
  command->add_option("source", options->source, "s3://BUCKET/KEY, or a prefix with --recursive")->required();
  command->add_option("target", options->target, "A file, or a folder")->type_name("PATH");
  command->add_flag("--digest", options->digest,
                    "Print the SHA-256 of each; without a target the bytes go to memory only");
  command->callback([options, &action] { action = [options] { return run_get(*options); }; });
}

}  // namespace reelway::app
