#include "admin/views.h"

#include <boost/json.hpp>

#include "admin/members.h"

namespace reelway::admin {

namespace json = boost::json;

namespace {

json::array texts(const std::vector<std::string>& values) {
  json::array out;
  for (const auto& value : values) out.emplace_back(printable(value));
  return out;
}

json::object to_json(const archive::CopyView& copy) {
  return {{"barcode", copy.barcode}, {"pool", copy.pool},   {"path", printable(copy.path)},
          {"block", copy.block},     {"bytes", copy.bytes}, {"verified", copy.verified},
          {"damaged", copy.damaged}};
}

json::object to_json(const archive::SlotView& slot) {
  return {{"name", slot.name}, {"barcode", slot.barcode}};
}

json::object to_json(const archive::DriveView& drive) {
  return {{"name", drive.name},
          {"barcode", drive.barcode},
          {"state", drive.state},
          {"activity", printable(drive.activity)},
          {"done", drive.done},
          {"total", drive.total},
          {"bytes_read", drive.bytes_read},
          {"bytes_written", drive.bytes_written}};
}

json::object to_json(const archive::CartridgeView& cartridge) {
  return {{"barcode", cartridge.barcode}, {"pool", cartridge.pool},
          {"state", cartridge.state},     {"location", cartridge.location},
          {"bytes", cartridge.bytes},     {"capacity_bytes", cartridge.capacity_bytes},
          {"copies", cartridge.copies},   {"damaged_copies", cartridge.damaged_copies}};
}

json::object to_json(const archive::QueueView& entry) {
  return {{"kind", entry.kind},       {"bucket", entry.name.bucket}, {"key", printable(entry.name.key)},
          {"barcode", entry.barcode}, {"state", entry.state},        {"waited_s", entry.waited_s}};
}

json::object to_json(const archive::VolumeEntry& entry) {
  return {
      {"state", entry.state},           {"partition", entry.partition},  {"block", entry.block},
      {"bytes", entry.bytes},           {"bucket", entry.name.bucket},   {"key", printable(entry.name.key)},
      {"generation", entry.generation}, {"path", printable(entry.path)}, {"member", printable(entry.member)}};
}

template <class T>
json::array list(const std::vector<T>& values) {
  json::array out;
  for (const auto& value : values) out.emplace_back(to_json(value));
  return out;
}

}  // namespace

json::object to_json(const archive::Policy& policy) {
  return {{"bucket", policy.bucket},
          {"prefix", printable(policy.prefix)},
          {"pools", texts(policy.pools)},
          {"minimum_age_s", policy.minimum_age_s},
          {"batch_age_s", policy.batch_age_s},
          {"batch_count", policy.batch_count},
          {"batch_bytes", policy.batch_bytes},
          {"bundle_below_bytes", policy.bundle_below_bytes},
          {"verify", policy.verify}};
}

json::object to_json(const archive::StatusView& status) {
  return {{"objects_waiting", status.objects_waiting},   {"bytes_waiting", status.bytes_waiting},
          {"objects_archived", status.objects_archived}, {"objects_evicted", status.objects_evicted},
          {"recalls_queued", status.recalls_queued},     {"recalls_running", status.recalls_running},
          {"recalls_failed", status.recalls_failed},     {"last_errors", texts(status.last_errors)}};
}

json::object to_json(const archive::ObjectView& view) {
  return {{"bucket", view.name.bucket},    {"key", printable(view.name.key)},
          {"generation", view.generation}, {"state", view.state},
          {"copies", list(view.copies)},   {"explanation", printable(view.explanation)}};
}

json::object to_json(const archive::EvictOutcome& outcome) {
  return {{"evicted", outcome.evicted},
          {"bytes", outcome.bytes},
          {"skipped", texts(outcome.skipped)},
          {"skipped_count", outcome.skipped_count}};
}

json::object to_json(const archive::RecallEstimate& estimate) {
  return {{"objects", estimate.objects},
          {"bytes", estimate.bytes},
          {"as_asked_s", estimate.as_asked_s},
          {"by_position_s", estimate.by_position_s},
          {"planned_s", estimate.planned_s},
          {"lower_bound_s", estimate.lower_bound_s},
          {"scale", estimate.scale}};
}

json::object to_json(const archive::ImportView& view) {
  return {{"volumes", view.volumes}, {"objects", view.objects},   {"copies", view.copies},
          {"stubs", view.stubs},     {"policies", view.policies}, {"problems", texts(view.problems)}};
}

json::object to_json(const archive::VolumeListing& listing) {
  return {{"barcode", listing.barcode},
          {"uuid", listing.uuid},
          {"pool", listing.pool},
          {"entries", list(listing.entries)},
          {"next", listing.next}};
}

json::object to_json(const archive::LibraryView& view) {
  return {{"slots", list(view.slots)},
          {"drives", list(view.drives)},
          {"cartridges", list(view.cartridges)},
          {"robot", printable(view.robot)},
          {"queue", list(view.queue)},
          {"queue_count", view.queue_count},
          {"last_errors", texts(view.last_errors)}};
}

base::Result<archive::Policy> parse_policy(const json::object& object) {
  Members members(object);
  archive::Policy policy;
  policy.bucket = members.text("bucket", true);
  policy.prefix = members.text("prefix", false);
  policy.pools = members.texts("pools");
  policy.minimum_age_s = members.number<std::uint32_t>("minimum_age_s", policy.minimum_age_s);
  policy.batch_age_s = members.number<std::uint32_t>("batch_age_s", policy.batch_age_s);
  policy.batch_count = members.number<std::uint64_t>("batch_count", policy.batch_count);
  policy.batch_bytes = members.number<std::uint64_t>("batch_bytes", policy.batch_bytes);
  policy.bundle_below_bytes = members.number<std::uint64_t>("bundle_below_bytes", policy.bundle_below_bytes);
  policy.verify = members.text("verify", false, policy.verify);
  TRY_VOID(members.finish());
  if (policy.pools.empty()) return base::fail(base::Code::invalid_argument, "pools: name at least one");
  return policy;
}

}  // namespace reelway::admin
