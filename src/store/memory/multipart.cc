#include <algorithm>
#include <tuple>

#include "store/memory/state.h"

namespace reelway::store::memory {

namespace {

class MemoryMultipart final : public object::Multipart {
 public:
  explicit MemoryMultipart(State& state) : state_(state) {}

  async::Task<object::UploadInfo> create_upload(object::CreateUploadRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY_VOID(state_.bucket(request.name.bucket));
    object::UploadInfo info{.name = std::move(request.name),
                            .upload_id = base::make_ulid(*state_.options.clock, *state_.options.rng),
                            .initiated = state_.options.clock->now(),
                            .attributes = std::move(request.attributes),
                            .checksum_kind = request.checksum_kind,
                            .checksum_full_object = request.checksum_full_object};
    state_.uploads[info.upload_id].info = info;
    co_return info;
  }

  async::Task<object::PartInfo> put_part(object::PutPartRequest request,
                                         object::ByteSource& source) override {
    CO_TRY_VOID(check(request.name, request.upload_id));
    CO_TRY(base::Bytes bytes, co_await read_everything(source));
    CO_TRY(object::Seal seal, request.seal());
    const std::lock_guard lock(state_.mutex);
    CO_TRY(PendingUpload * upload, state_.upload(request.name, request.upload_id));
    Part& part = upload->parts[request.part_number];
    part.info = {.part_number = request.part_number,
                 .size = bytes.size(),
                 .etag = std::move(seal.etag),
                 .last_modified = state_.options.clock->now(),
                 .checksums = std::move(seal.checksums)};
    part.bytes = std::move(bytes);
    co_return part.info;
  }

  async::Task<object::PartPage> list_parts(object::ListPartsRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const PendingUpload* upload, state_.upload(request.name, request.upload_id));
    object::PartPage page;
    page.upload = upload->info;
    for (auto it = upload->parts.upper_bound(request.after); it != upload->parts.end(); ++it) {
      if (page.parts.size() == request.count_max) {
        page.truncated = request.count_max > 0;
        break;
      }
      page.parts.push_back(it->second.info);
    }
    co_return page;
  }

  async::Task<object::UploadPage> list_uploads(object::ListUploadsRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY_VOID(state_.bucket(request.bucket));
    co_return page_of(request, sorted_uploads(request));
  }

  async::Task<object::ObjectInfo> complete_upload(object::CompleteRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const PendingUpload* upload, state_.upload(request.name, request.upload_id));
    object::ObjectInfo info;
    base::Bytes bytes;
    for (const object::PartInfo& checked : request.parts) {
      const auto part = upload->parts.find(checked.part_number);
      if (part == upload->parts.end() || !object::same_bytes(part->second.info, checked))
        co_return base::fail(base::Code::invalid_argument, "a part is missing, or was uploaded anew");
      bytes.insert(bytes.end(), part->second.bytes.begin(), part->second.bytes.end());
      info.part_sizes.push_back(part->second.bytes.size());
    }
    info.name = request.name;
    info.attributes = upload->info.attributes;
    info.etag = std::move(request.seal.etag);
    info.checksums = std::move(request.seal.checksums);
    CO_TRY(object::ObjectInfo published,
           state_.publish(std::move(info), std::move(bytes), request.conditions));
    state_.uploads.erase(request.upload_id);
    co_return published;
  }

  async::Task<void> abort_upload(object::ObjectName name, std::string upload_id) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY_VOID(state_.upload(name, upload_id));
    state_.uploads.erase(upload_id);
    co_return base::Result<void>{};
  }

 private:
  base::Result<void> check(const object::ObjectName& name, const std::string& upload_id) {
    const std::lock_guard lock(state_.mutex);
    TRY_VOID(state_.upload(name, upload_id));
    return {};
  }

  static auto order_of(const object::UploadInfo& upload) {
    return std::tie(upload.name.key, upload.initiated, upload.upload_id);
  }

  /// Those after the markers, in order.
  std::vector<object::UploadInfo> sorted_uploads(const object::ListUploadsRequest& request) {
    const auto marker = state_.uploads.find(request.upload_id_marker);
    std::vector<object::UploadInfo> out;
    for (const auto& [id, upload] : state_.uploads) {
      const object::UploadInfo& info = upload.info;
      if (info.name.bucket != request.bucket || !info.name.key.starts_with(request.prefix)) continue;
      if (!request.key_marker.empty() && info.name.key < request.key_marker) continue;
      if (!request.key_marker.empty() && info.name.key == request.key_marker &&
          (marker == state_.uploads.end() || order_of(info) <= order_of(marker->second.info)))
        continue;
      out.push_back(info);
    }
    std::ranges::sort(out, [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
    return out;
  }

  static object::UploadPage page_of(const object::ListUploadsRequest& request,
                                    const std::vector<object::UploadInfo>& uploads) {
    object::UploadPage page;
    for (const object::UploadInfo& upload : uploads) {
      const std::string& key = upload.name.key;
      const std::size_t at =
          request.delimiter.empty() ? std::string::npos : key.find(request.delimiter, request.prefix.size());
      const std::string common = at == std::string::npos ? "" : key.substr(0, at + request.delimiter.size());
      const bool seen = !page.common_prefixes.empty() && page.common_prefixes.back() == common;
      if (!common.empty() && (seen || common <= request.key_marker)) continue;
      if (page.uploads.size() + page.common_prefixes.size() == request.count_max) {
        page.truncated = request.count_max > 0;
        return page;
      }
      page.next_key_marker = common.empty() ? key : common;
      page.next_upload_id_marker = common.empty() ? upload.upload_id : "";
      if (common.empty()) {
        page.uploads.push_back(upload);
      } else {
        page.common_prefixes.push_back(common);
      }
    }
    page.next_key_marker = page.next_upload_id_marker = "";
    return page;
  }

  State& state_;
};

}  // namespace

std::unique_ptr<object::Multipart> make_multipart(State& state) {
  return std::make_unique<MemoryMultipart>(state);
}

}  // namespace reelway::store::memory
