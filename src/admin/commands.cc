#include "admin/commands.h"

#include <array>
#include <boost/json.hpp>

#include "admin/members.h"
#include "admin/views.h"

namespace reelway::admin {

namespace json = boost::json;

namespace {

using Command = async::Task<json::object> (*)(archive::Client&, json::object);

async::Task<json::object> policy_set(archive::Client& archive, json::object members) {
  CO_TRY(auto policy, parse_policy(members));
  json::object shown = to_json(policy);
  CO_TRY_VOID(co_await archive.set_policy(std::move(policy)));
  co_return shown;
}

async::Task<json::object> policy_remove(archive::Client& archive, json::object object) {
  Members members(object);
  auto bucket = members.text("bucket", true);
  auto prefix = members.text("prefix", false);
  CO_TRY_VOID(members.finish());
  CO_TRY_VOID(co_await archive.remove_policy(std::move(bucket), std::move(prefix)));
  co_return json::object{};
}

async::Task<json::object> policy_list(archive::Client& archive, json::object object) {
  CO_TRY_VOID(Members(object).finish());
  CO_TRY(const auto policies, co_await archive.policies());
  json::array list;
  for (const auto& policy : policies) list.emplace_back(to_json(policy));
  co_return json::object{{"policies", std::move(list)}};
}

async::Task<json::object> status(archive::Client& archive, json::object object) {
  CO_TRY_VOID(Members(object).finish());
  CO_TRY(const auto view, co_await archive.status_view());
  co_return to_json(view);
}

async::Task<json::object> why(archive::Client& archive, json::object object) {
  Members members(object);
  object::ObjectName name{.bucket = members.text("bucket", true), .key = members.text("key", true)};
  CO_TRY_VOID(members.finish());
  CO_TRY(const auto view, co_await archive.why(std::move(name)));
  co_return to_json(view);
}

/// Bucket and prefix, which most commands are about.
struct Where {
  std::string bucket;
  std::string prefix;
};

base::Result<Where> parse_where(const json::object& object) {
  Members members(object);
  Where where{.bucket = members.text("bucket", true), .prefix = members.text("prefix", false)};
  TRY_VOID(members.finish());
  return where;
}

async::Task<json::object> archive_now(archive::Client& archive, json::object object) {
  CO_TRY(auto where, parse_where(object));
  CO_TRY(const auto view, co_await archive.archive_now(std::move(where.bucket), std::move(where.prefix)));
  co_return to_json(view);
}

async::Task<json::object> verify(archive::Client& archive, json::object object) {
  CO_TRY(auto where, parse_where(object));
  CO_TRY(const auto view, co_await archive.verify(std::move(where.bucket), std::move(where.prefix)));
  co_return to_json(view);
}

async::Task<json::object> evict(archive::Client& archive, json::object object) {
  CO_TRY(auto where, parse_where(object));
  CO_TRY(const auto outcome, co_await archive.evict(std::move(where.bucket), std::move(where.prefix)));
  co_return to_json(outcome);
}

async::Task<json::object> recall(archive::Client& archive, json::object object) {
  Members members(object);
  auto bucket = members.text("bucket", true);
  auto prefix = members.text("prefix", false);
  auto keys = members.texts("keys");
  const auto days = members.number<std::uint32_t>("days", 1);
  CO_TRY_VOID(members.finish());
  CO_TRY(const std::uint64_t queued,
         co_await archive.recall(std::move(bucket), std::move(prefix), std::move(keys), days));
  co_return json::object{{"queued", queued}};
}

async::Task<json::object> estimate(archive::Client& archive, json::object object) {
  Members members(object);
  auto bucket = members.text("bucket", true);
  auto keys = members.texts("keys");
  CO_TRY_VOID(members.finish());
  CO_TRY(const auto view, co_await archive.estimate(std::move(bucket), std::move(keys)));
  co_return to_json(view);
}

async::Task<json::object> library(archive::Client& archive, json::object object) {
  CO_TRY_VOID(Members(object).finish());
  CO_TRY(const auto view, co_await archive.library_view());
  co_return to_json(view);
}

async::Task<json::object> list_volume(archive::Client& archive, json::object object) {
  Members members(object);
  auto volume = members.text("volume", true);
  auto prefix = members.text("prefix", false);
  auto after = members.text("after", false);
  CO_TRY_VOID(members.finish());
  CO_TRY(const auto listing,
         co_await archive.list_volume(std::move(volume), std::move(prefix), std::move(after)));
  co_return to_json(listing);
}

async::Task<json::object> import(archive::Client& archive, json::object object) {
  Members members(object);
  const bool without_stubs = members.flag("without_stubs");
  CO_TRY_VOID(members.finish());
  CO_TRY(const auto view, co_await archive.import_volumes(!without_stubs));
  co_return to_json(view);
}

struct CommandRow {
  std::string_view name;
  Command run;
};

constexpr std::array kCommands{
    CommandRow{"archive/policy/set", policy_set},
    CommandRow{"archive/policy/remove", policy_remove},
    CommandRow{"archive/policy/list", policy_list},
    CommandRow{"archive/status", status},
    CommandRow{"archive/why", why},
    CommandRow{"archive/now", archive_now},
    CommandRow{"archive/evict", evict},
    CommandRow{"archive/recall", recall},
    CommandRow{"archive/estimate", estimate},
    CommandRow{"tape/library", library},
    CommandRow{"tape/ls", list_volume},
    CommandRow{"tape/import", import},
    CommandRow{"tape/verify", verify},
};

}  // namespace

async::Task<json::object> run_command(archive::Client& archive, std::string name, json::object members) {
  for (const auto& row : kCommands) {
    if (row.name == name) co_return co_await row.run(archive, std::move(members));
  }
  co_return base::fail(base::Code::not_found, "there is no command " + name);
}

}  // namespace reelway::admin
