// "DIR:drives=2,cartridges=8,...": the form in which people give a virtual library on the command line.

#include <fmt/format.h>

#include <charconv>

#include "base/encoding.h"
#include "vtl/library.h"

namespace reelway::vtl {
namespace {

base::Error wrong(std::string_view word) {
  return base::fail(
      base::Code::invalid_argument,
      fmt::format("virtual library: '{}' is not understood; docs/tape.md lists the words and their values",
                  word));
}

bool take_count(std::string_view value, std::uint32_t& out) {
  const auto number = base::parse_decimal(value);
  if (!number || *number > 100'000) return false;
  out = static_cast<std::uint32_t>(*number);
  return true;
}

bool take_factor(std::string_view value, double& out) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  return error == std::errc{} && end == value.data() + value.size() && out > 0;
}

template <class T>
bool take_choice(std::string_view value, std::initializer_list<std::pair<std::string_view, T>> choices,
                 T& out) {
  for (const auto& [name, choice] : choices) {
    if (name != value) continue;
    out = choice;
    return true;
  }
  return false;
}

bool take(Options& options, std::string_view name, std::string_view value) {
  if (name == "drives") return take_count(value, options.drives);
  if (name == "slots") return take_count(value, options.slots);
  if (name == "mailslots") return take_count(value, options.mail_slots);
  if (name == "cartridges") return take_count(value, options.cartridges);
  if (name == "scale") return take_factor(value, options.capacity_scale);
  if (name == "speed") return take_factor(value, options.time_scale);
  if (name == "clock")
    return take_choice(value, {{"fast", ClockMode::fast}, {"lto9", ClockMode::lto9}}, options.clock);
  if (name == "payload")
    return take_choice(value, {{"full", Payload::full}, {"pattern", Payload::pattern}}, options.payload);
  if (name == "optimisation")
    return take_choice(value, {{"on", true}, {"off", false}}, options.media_optimisation);
  if (name == "generation") {
    return take_choice(value, {{"lto8", media::Generation::lto8}, {"lto9", media::Generation::lto9}},
                       options.generation);
  }
  return false;
}

}  // namespace

base::Result<Options> parse_options(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool has_words = colon != std::string_view::npos && text.find('=', colon) != std::string_view::npos;
  Options options;
  options.directory = text.substr(0, has_words ? colon : text.size());
  if (options.directory.empty()) return wrong(text);
  std::string_view words = has_words ? text.substr(colon + 1) : std::string_view{};
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || !take(options, word.substr(0, equals), word.substr(equals + 1)))
      return wrong(word);
  }
  return options;
}

}  // namespace reelway::vtl
