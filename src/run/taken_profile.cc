#include "run/taken_profile.h"

#include <fmt/format.h>

#include "base/files.h"
#include "calibrate/profile.h"
#include "evidence/promise.h"
#include "machine/host.h"
#include "sample/machine_limits.h"

namespace bakeoff::run {

Result<Texts> take_profile(const std::string& profile_name, recipe::Recipe& recipe, const Progress& tell) {
  if (profile_name == "none") return Texts{};
  const std::filesystem::path file =
      profile_name.empty() ? profile_file(bakeoff_home()) : std::filesystem::path(profile_name);
  if (profile_name.empty() && !std::filesystem::exists(file)) {
    tell("no noise profile for this machine; `bakeoff calibrate` creates one (less noise, predicted time)");
    return Texts{};
  }
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
