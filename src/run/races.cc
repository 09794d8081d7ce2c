#include "run/races.h"

namespace bakeoff::run {

Result<Summary> RealRaces::race(const recipe::Recipe& recipe, const std::filesystem::path& folder) {
  Surroundings with = with_;
  with.begin_ns = monotonic_clock().now_ns();
  TRY(Session session, std::filesystem::exists(folder)
                           ? Session::reopen(folder, std::move(with))
                           : Session::make(recipe, folder, std::move(with), calibration_));
  session.limit(recipe.budget);
  CHECK_OK(session.carry_out());
  return session.summary();
}

}  // namespace bakeoff::run
