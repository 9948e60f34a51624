// GET /.well-known/reelway: what a client needs to know of this gateway, as JSON.

#include <fmt/format.h>

#include "gateway/call.h"

namespace reelway::gateway {

namespace {

/// Forms and providers are words of ours, without characters that JSON escapes.
std::string plane_json(const rdma::PlaneInfo& plane) {
  return fmt::format(R"({{"form":"{}","provider":"{}","window_max":{}}})", plane.form, plane.provider,
                     plane.window_max);
}

}  // namespace

ReplyTask handle(Call& call, const s3::WellKnown& /*operation*/) {
  std::string planes;
  for (const auto& plane : call.parts().planes.infos())
    planes += (planes.empty() ? "" : ",") + plane_json(plane);
  Reply reply = call.reply(200);
  reply.head.fields.set("Content-Type", "application/json");
  reply.body = fmt::format(
      R"({{"version":"{}","planes":[{}],"small_object_bytes":{},"checksums":["CRC32","CRC32C","CRC64NVME","SHA1","SHA256"]}})",
      REELWAY_VERSION, planes, call.options().small_object_bytes);
  co_return reply;
}

}  // namespace reelway::gateway
