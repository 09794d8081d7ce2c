#include "run/budget_error.h"

namespace bakeoff::run {

Error of_budget(Error error, const recipe::Recipe& recipe, const std::vector<std::string>& keys,
                const std::string& instead) {
  for (const std::string& key : keys)
    if (error.where == recipe::where(recipe, "budget", key)) error.where = instead;
  return error;
}

}  // namespace bakeoff::run
