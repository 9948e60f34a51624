#include "tape/ltfs/index.h"

#include "tape/ltfs/names.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

base::Error taken(std::string_view path) {
  return fail(Code::already_exists, "the volume has " + std::string(path) + " already", base::Scope::object);
}

/// The folder's path and the last name.
std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

void touch(Directory& directory, base::TimePoint now) {
  directory.times.modify = now;
  directory.times.change = now;
}

void visit_files(const Directory& directory, std::string& path,
                 const std::function<void(const std::string&, const File&)>& visit) {
  const auto length = path.size();
  for (const auto& [name, child] : directory.directories) {
    path.resize(length);
    path += '/';
    path += name;
    visit_files(*child, path, visit);  // as deep as IndexLimits lets a tree be
  }
  for (const auto& [name, file] : directory.files) {
    path.resize(length);
    path += '/';
    path += name;
    visit(path, *file);
  }
  path.resize(length);
}

}  // namespace

const std::string* Entry::attribute(std::string_view key) const {
  for (const auto& attribute : attributes) {
    if (attribute.key == key) return &attribute.value;
  }
  return nullptr;
}

const Directory* Index::find_directory(std::string_view path) const {
  const Directory* directory = &root;
  while (!path.empty()) {
    if (path.front() != '/') return nullptr;
    path.remove_prefix(1);
    if (path.empty()) return directory;
    const auto slash = path.find('/');
    const auto found = directory->directories.find(path.substr(0, slash));
    if (found == directory->directories.end()) return nullptr;
    directory = found->second.get();
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash);
  }
  return directory;
}

const File* Index::find_file(std::string_view path) const {
  const auto [folder, name] = split_last(path);
  const auto* directory = find_directory(folder);
  if (directory == nullptr) return nullptr;
  const auto found = directory->files.find(name);
  return found == directory->files.end() ? nullptr : found->second.get();
}

Result<Directory*> Index::make_parents(std::string_view path, base::TimePoint now) {
  Directory* directory = &root;
  while (true) {
    path.remove_prefix(1);
    const auto slash = path.find('/');
    if (slash == std::string_view::npos) return directory;
    const auto name = path.substr(0, slash);
    path.remove_prefix(slash);
    if (directory->files.contains(name)) return taken(name);
    auto found = directory->directories.find(name);
    if (found == directory->directories.end()) {
      auto made = std::make_unique<Directory>();
      made->times = {now, now, now, now, now};
      made->uid = take_uid();
      touch(*directory, now);
      found = directory->directories.emplace(std::string(name), std::move(made)).first;
    }
    directory = found->second.get();
  }
}

Result<File*> Index::add_file(std::string_view path, File file, base::TimePoint now) {
  if (!is_storable_path(path))
    return fail(Code::invalid_argument, "LTFS cannot hold that path", base::Scope::object);
  TRY(auto* directory, make_parents(path, now));
  const auto name = split_last(path).second;
  if (directory->files.contains(name) || directory->directories.contains(name)) return taken(path);
  if (file.uid == 0) file.uid = take_uid();
  highest_uid = std::max(highest_uid, file.uid);
  touch(*directory, now);
  ++file_count_;
  auto& slot = directory->files[std::string(name)];
  slot = std::make_unique<File>(std::move(file));
  return slot.get();
}

Result<void> Index::rename_file(std::string_view from, std::string_view to, base::TimePoint now) {
  const auto* file = find_file(from);
  if (file == nullptr)
    return fail(Code::not_found, "the volume has no " + std::string(from), base::Scope::object);
  auto copy = *file;
  copy.times.change = now;
  TRY_VOID(add_file(to, std::move(copy), now));
  return remove_file(from, now);
}

Result<void> Index::remove_file(std::string_view path, base::TimePoint now) {
  const auto [folder, name] = split_last(path);
  auto* directory = const_cast<Directory*>(find_directory(folder));
  if (directory == nullptr || directory->files.erase(std::string(name)) == 0) {
    return fail(Code::not_found, "the volume has no " + std::string(path), base::Scope::object);
  }
  touch(*directory, now);
  --file_count_;
  return {};
}

void Index::for_each_file(const std::function<void(const std::string&, const File&)>& visit) const {
  std::string path;
  visit_files(root, path, visit);
}

}  // namespace reelway::tape::ltfs
