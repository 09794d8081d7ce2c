#pragma once

// A study's records while it runs: records that an earlier run left on disk, and new ones, which are written at
// once. They tell what is left to do.
//
//   TRY(auto done, Ledger<FitTrial>::open(plan.directory));
//   if (!done.settled("torch", [](const FitTrial& t) { return t.seed == 2; })) ...
//   CHECK_OK(done.add(std::move(trial)));

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "records/records.h"

namespace bakeoff {

// A record that fails in other ways, too, has an overload of its own.
template <typename Record>
bool has_failed(const Record& record) {
  return record.failure.has_value();
}

template <typename Record>
class Ledger {
 public:
  static Result<Ledger> open(const RunDirectory& directory) {
    TRY(auto known, directory.read<Record>());
    return Ledger(directory, std::move(known));
  }

  const std::vector<Record>& all() const { return records_; }

  Status add(Record record) {
    CHECK_OK(directory_->append(record));
    records_.push_back(std::move(record));
    return Done{};
  }

  // Whether a measurement need not be made: of the records that `of` picks one is `same`, or one has failed.
  // What failed once is not tried again.
  template <typename Of, typename Same>
  bool settled_among(const Of& of, const Same& same) const {
    return std::any_of(records_.begin(), records_.end(),
                       [&](const Record& r) { return of(r) && (same(r) || has_failed(r)); });
  }
  // Among the records of one contender.
  template <typename Same>
  bool settled(const std::string& contender, const Same& same) const {
    return settled_among([&](const Record& r) { return r.contender == contender; }, same);
  }

 private:
  Ledger(const RunDirectory& directory, std::vector<Record> known)
      : directory_(&directory), records_(std::move(known)) {}
  const RunDirectory* directory_;  // outlives this
  std::vector<Record> records_;
};

}  // namespace bakeoff
