#pragma once

// Races of a command that runs several: `tune`, `run --why` and suites. Tests put known results in their place.

#include <filesystem>

#include "base/result.h"
#include "recipe/recipe.h"
#include "run/session.h"
#include "summary/summary.h"

namespace bakeoff::run {

class Races {
 public:
  virtual ~Races() = default;
  // A whole run in a folder of its own, with its summary; one that the folder holds already goes on where it stands.
  virtual Result<Summary> race(const recipe::Recipe& recipe, const std::filesystem::path& folder) = 0;
};

// Runs on this machine. The budget of each counts from its own beginning.
class RealRaces : public Races {
 public:
  // `calibration`: as of Session::make().
  explicit RealRaces(Surroundings with, Texts calibration = {})
      : with_(std::move(with)), calibration_(std::move(calibration)) {}
  Result<Summary> race(const recipe::Recipe& recipe, const std::filesystem::path& folder) override;

 private:
  Surroundings with_;
  Texts calibration_;
};

}  // namespace bakeoff::run
