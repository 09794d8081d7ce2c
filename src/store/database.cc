#include "store/database.h"

#include <limits>

namespace bakeoff::store {

std::string text(const Value& value) {
  const std::string* held = std::get_if<std::string>(&value);
  return held == nullptr ? "" : *held;
}

int64_t integer(const Value& value) {
  const int64_t* held = std::get_if<int64_t>(&value);
  return held == nullptr ? 0 : *held;
}

double number(const Value& value) {
  if (const double* held = std::get_if<double>(&value)) return *held;
  if (const int64_t* held = std::get_if<int64_t>(&value)) return static_cast<double>(*held);
  return std::numeric_limits<double>::quiet_NaN();
}

Result<Transaction> Transaction::begin(Database& database) {
  CHECK_OK(database.begin());
  return Transaction(database);
}

Status Transaction::commit() {
  CHECK_OK(database_->commit());
  database_ = nullptr;
  return Done{};
}

}  // namespace bakeoff::store
