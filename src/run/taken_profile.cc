#include "run/taken_profile.h"

#include <fmt/format.h>

#include "base/files.h"
#include "calibrate/profile.h"
#include "evidence/promise.h"
#include "machine/host.h"
#include "sample/machine_limits.h"

namespace bakeoff::run {

namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::string& name) {
  return name.empty() ? profile_file(bakeoff_home()) : fs::path(name);
}

// Without one nothing is taken.
bool is_none(const std::string& name) {
  return name == "none" || (name.empty() && !fs::exists(file_of(name)));
}

}  // namespace

Status check_profile(const std::string& name) {
  if (is_none(name)) return Done{};
  TRY(const Profile ignored, load_profile(file_of(name), read_host()));
  static_cast<void>(ignored);
  return Done{};
}

Result<Texts> take_profile(const std::string& name, recipe::Recipe& recipe, const Progress& tell) {
  if (is_none(name)) {
    if (name.empty())
      tell("no noise profile for this machine; `bakeoff calibrate` creates one (less noise, predicted time)");
    return Texts{};
  }
  const fs::path file = file_of(name);
  TRY(const Profile profile, load_profile(file, read_host()));
  Texts record = {{"profile", file.string()},
                  {"measured", profile.measured},
                  {"with", profile.framework + ", " + profile.work}};
  for (const auto& [key, value] : take_over(profile, recipe)) record["taken: race." + key] = value;
  const size_t cpus = sample::allowed_cpus().size();
  const auto ceiling = promised_ceiling(profile, recipe, cpus);
  if (ceiling && !recipe.race.stated.contains("noise_ceiling")) {
    recipe.race.noise_ceiling = *ceiling;
    record[kTakenCeiling] = fmt::format("{:.3f}", *ceiling);
  }
  if (const auto prediction = predict(profile, recipe, cpus)) {
    CHECK_OK(check_prediction(*prediction, recipe));
    record["prediction"] = prediction->text;
    tell(prediction->text);
  }
  return record;
}

}  // namespace bakeoff::run
