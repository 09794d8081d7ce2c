#include "calibrate/profile.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "records/machine_report.h"
#include "stats/planning.h"

namespace bakeoff {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRemedy =
    "run `bakeoff calibrate`, or do without a profile: `bakeoff run --profile none`";

template <typename T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
std::optional<T> optional_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? std::nullopt : std::optional<T>(found->get<T>());
}

// sd, its interval and the pairs are for readers of the file; they are computed again from d.
Json entry_json(const Measured& m) {
  const stats::Spread spread = m.spread();
  Json pairs = Json::object();
  for (const int percent : {1, 2, 3, 5}) {
    if (spread.n > 0)
      pairs[fmt::format("{}%", percent)] = stats::pairs_needed(spread.sd, percent / 100.0).value_or(0);
  }
  return {{"name", m.name},
          {"controls", to_texts(m.controls)},
          {"sd", spread.sd},
          {"sd_low", spread.interval.low},
          {"sd_high", spread.n > 0 ? Json(spread.interval.high) : Json(nullptr)},
          {"pairs_needed", pairs},
          {"against", m.against},
          {"p", m.p},
          {"kept", m.kept},
          {"why", m.why},
          {"d", m.d}};
}

Json host_json(const Host& h) {
  return {{"name", h.name}, {"kernel", h.kernel}, {"cpu", h.cpu},
          {"os", h.os},     {"cpus", h.cpus},     {"memory_bytes", h.memory_bytes}};
}

Measured entry_from(const Json& json) {
  Measured m;
  m.name = json.at("name").get<std::string>();
  m.controls = controls_from(json.at("controls").get<Texts>());
  m.d = json.at("d").get<std::vector<double>>();
  m.against = json.at("against").get<std::string>();
  m.p = json.at("p").get<double>();
  m.kept = json.at("kept").get<bool>();
  m.why = json.at("why").get<std::string>();
  return m;
}

Profile profile_from(const Json& json) {
  Profile p;
  p.bakeoff_version = json.at("bakeoff_version").get<std::string>();
  p.measured = json.at("measured").get<std::string>();
  const Json& host = json.at("host");
  p.host = {.name = host.at("name").get<std::string>(),
            .kernel = host.at("kernel").get<std::string>(),
            .cpu = host.at("cpu").get<std::string>(),
            .os = host.at("os").get<std::string>(),
            .cpus = host.at("cpus").get<int>(),
            .memory_bytes = host.at("memory_bytes").get<int64_t>(),
            .more = {}};
  p.framework = json.at("framework").get<std::string>();
  p.work = json.at("work").get<std::string>();
  p.minutes = json.at("minutes").get<double>();
  p.complete = json.at("complete").get<bool>();
  for (const Json& entry : json.at("entries")) p.entries.push_back(entry_from(entry));
  p.kept = controls_from(json.at("kept").get<Texts>());
  p.processes_sd = optional_at<double>(json, "processes_sd");
  p.bursts_sd = optional_at<double>(json, "bursts_sd");
  p.steps_sd = optional_at<double>(json, "steps_sd");
  p.cheapest_bursts = optional_at<int64_t>(json, "cheapest_bursts");
  p.start_s = json.at("start_s").get<double>();
  p.burst_s = json.at("burst_s").get<double>();
  return p;
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

// Values that a file edited by hand may hold.
bool sane(const Profile& p) {
  const Controls& k = p.kept;
  if (k.threads < 1 || !within(k.cooldown_s, 0, 60) || !within(p.start_s, 0, 1e6) ||
      !within(p.burst_s, 0, 1e6))
    return false;
  if (p.cheapest_bursts && *p.cheapest_bursts < 1) return false;
  if (k.huge_pages != "default" && k.huge_pages != "off" && k.huge_pages != "malloc") return false;
  if (k.allocator != "default" && k.allocator != "tuned" && k.allocator != "jemalloc" &&
      k.allocator != "mimalloc" && k.allocator != "tcmalloc")
    return false;
  return k.pin == "auto" || k.pin == "none" || static_cast<bool>(recipe::parse_cpus(k.pin));
}

}  // namespace

std::string to_json(const Profile& p) {
  Json entries = Json::array();
  for (const Measured& m : p.entries) entries.push_back(entry_json(m));
  const Json json = {{"profile_version", p.version},
                     {"bakeoff_version", p.bakeoff_version},
                     {"measured", p.measured},
                     {"host", host_json(p.host)},
                     {"framework", p.framework},
                     {"work", p.work},
                     {"minutes", p.minutes},
                     {"complete", p.complete},
                     {"kept", to_texts(p.kept)},
                     {"processes_sd", optional(p.processes_sd)},
                     {"bursts_sd", optional(p.bursts_sd)},
                     {"steps_sd", optional(p.steps_sd)},
                     {"cheapest_bursts", optional(p.cheapest_bursts)},
                     {"start_s", p.start_s},
                     {"burst_s", p.burst_s},
                     {"entries", entries}};
  return dump(json, 1) + "\n";
}

Result<Profile> profile_from_json(std::string_view text, const std::string& file) {
  const auto bad = [&](std::string message) {
    return Error{.message = std::move(message), .where = file, .remedy = kRemedy};
  };
  const Json json = parse_json<Json>(text);
  if (json.is_discarded() || !json.is_object())
    return bad("this machine profile is truncated or damaged: it is no JSON object");
  const auto version = json.find("profile_version");
  if (version == json.end() || !version->is_number_integer())
    return bad("this is no machine profile: it has no profile_version");
  if (*version != kProfileVersion) {
    return bad(fmt::format("profile version {}, this program reads {}", dump(*version), kProfileVersion));
  }
  try {
    Profile profile = profile_from(json);
    if (!sane(profile)) return bad("this machine profile has impossible controls");
    return profile;
  } catch (const nlohmann::json::exception& e) {
    return bad(std::string("this machine profile is truncated or damaged: ") + e.what());
  }
}

fs::path profile_file(const fs::path& home) { return home / "profile.json"; }

Result<Profile> load_profile(const fs::path& file, const Host& here) {
  auto text = read_file(file);
  if (!text) return Error{.message = text.error().message, .where = {}, .remedy = kRemedy};
  TRY(Profile profile, profile_from_json(*text, file.string()));
  const std::string other = other_machine(profile.host, here);
  if (other.empty()) return profile;
  return Error{.message = "this machine profile is " + other, .where = file.string(), .remedy = kRemedy};
}

}  // namespace bakeoff
