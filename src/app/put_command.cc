// `reelway put`: files into a bucket.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/parse.h"
#include "app/transfer_jobs.h"

namespace reelway::app {

namespace {

struct PutOptions : EndpointOptions {
  std::string source;
  std::string target;
  std::string files_from;
};

/// A file's bytes, read where they are asked for. The command's one thread may wait for the disk.
class FileContent final : public s3client::Content {
 public:
  static base::Result<std::unique_ptr<FileContent>> open(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return base::from_errno(errno, "cannot open " + path.string());
    std::unique_ptr<FileContent> content(new FileContent(descriptor));
    struct stat status{};
    if (fstat(descriptor, &status) != 0) return base::from_errno(errno, "cannot look at " + path.string());
    if (!S_ISREG(status.st_mode))
      return base::fail(base::Code::unsupported, path.string() + " is no regular file");
    content->size_ = static_cast<std::uint64_t>(status.st_size);
    return content;
  }
  ~FileContent() override { ::close(descriptor_); }
  FileContent(const FileContent&) = delete;
  FileContent& operator=(const FileContent&) = delete;

  std::uint64_t size() const override { return size_; }
  async::Task<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
    const ssize_t count = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0) co_return base::from_errno(errno, "cannot read a file");
    if (count == 0) co_return base::fail(base::Code::data_loss, "a file became shorter while it was sent");
    co_return static_cast<std::size_t>(count);
  }

 private:
  explicit FileContent(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  std::uint64_t size_ = 0;
};

struct Item {
  std::filesystem::path path;
  std::string key;
};

base::Result<std::vector<Item>> listed_items(const PutOptions& options, const std::string& prefix) {
  std::ifstream file(options.files_from, std::ios::binary);
  if (!file)
    return base::fail(base::Code::invalid_argument, "cannot read --files-from " + options.files_from);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<Item> items;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    if (!name.empty()) items.push_back({std::filesystem::path(options.source) / name, prefix + name});
    begin = end + 1;
  }
  return items;
}

base::Result<std::vector<Item>> found_items(const PutOptions& options, const object::ObjectName& target) {
  const std::filesystem::path source(options.source);
  if (!options.files_from.empty()) return listed_items(options, target.key);
  std::error_code error;
  if (!options.recursive) {
    if (std::filesystem::is_directory(source, error))
      return base::fail(base::Code::invalid_argument, options.source + " is a folder: add --recursive");
    const bool is_folder = target.key.empty() || target.key.ends_with('/');
    return std::vector<Item>{{source, is_folder ? target.key + source.filename().string() : target.key}};
  }
  std::vector<Item> items;
  for (std::filesystem::recursive_directory_iterator entry(source, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file() || entry->is_symlink()) continue;
    items.push_back({entry->path(), target.key + entry->path().lexically_relative(source).string()});
  }
  if (error) return base::from_errno(error.value(), "cannot read the folder " + options.source);
  std::ranges::sort(items, {}, &Item::key);
  return items;
}

async::Task<void> put_one(Mover& mover, const Item& item, Report& report) {
  CO_TRY(const auto content, FileContent::open(item.path));
  CO_TRY_VOID(co_await mover.send(item.key, *content));
  ++report.objects;
  report.bytes += content->size();
  co_return base::Result<void>{};
}

async::Task<Report> put_all(const s3client::Options& client_options, const PutOptions& options,
                            const std::string& bucket, const std::vector<Item>& items) {
  Report report;
  CO_TRY(const auto session, co_await open_session(client_options, options, bucket));
  const Job job = [&](std::size_t index) { return put_one(*session->mover, items[index], report); };
  const auto name = [&](std::size_t index) { return items[index].key; };
  CO_TRY_VOID(co_await run_jobs(items.size(), options.parallel, job, name, report));
  report.plane = session->mover->plane();
  co_return report;
}

base::Result<Exit> run_put(const PutOptions& options) {
  TRY(const auto endpoint, client_options(options));
  TRY(const auto target, parse_s3_url(options.target));
  TRY(const auto items, found_items(options, target));
  return run_transfers(put_all(endpoint, options, target.bucket, items), options.as_json);
}

}  // namespace

void add_put(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("put", "Store files");
  const auto options = std::make_shared<PutOptions>();
  options->rdma = "off";
  add_endpoint_options(*command, *options);
  add_rdma_option(*command, *options);
  command->add_option("source", options->source, "A file, or a folder with --recursive")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("target", options->target, "s3://BUCKET/KEY; a key that ends in / (or none) is a folder")
      ->required();
  command
      ->add_option("--files-from", options->files_from,
                   "Only these files of the folder: paths with a NUL byte after each")
      ->type_name("FILE");
  command->callback([options, &action] { action = [options] { return run_put(*options); }; });
}

}  // namespace reelway::app
