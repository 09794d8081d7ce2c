#pragma once

// What was claimed, what the bar is, what was seen.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "prove/engine.h"
#include "prove/rules.h"

namespace bakeoff::prove {

struct Options {
  bool full = false;
  double share = 1;  // of the simulations of the tier
  uint64_t seed = 1;
  std::vector<std::string> only;  // "T5"; empty: all
  Mutant mutant = Mutant::kNone;
  std::vector<Block> recorded;  // empty: simulation alone
  std::string json;             // file, or empty
  std::string document;         // docs/measured/verdicts.md to rewrite, or empty
};
bool wanted(const Options& options, const std::string& id);
// `quick` or `full`, by the tier; of its share no fewer than 4, where there are any.
inline int tier(const Options& options, int quick, int full) {
  const int whole = options.full ? full : quick;
  return std::min(whole, std::max(4, static_cast<int>(options.share * whole)));
}
// Whether it is a share alone: what is told for information, and fields of hundreds, are left out.
inline bool in_part(const Options& options) { return options.share < 1; }

struct Claim {
  std::string id;    // "T1"
  std::string what;  // "heavy tails"
  std::string bar;
  std::string seen;
  bool held = true;
  bool barred = true;  // false: for information
  bool open = false;   // not barred because the guarantee does not hold here: known, and shown
};

class Report {
 public:
  void add(Claim claim);  // prints it
  const std::vector<Claim>& claims() const { return claims_; }
  std::vector<Contest> contests;  // T12
  int missed() const;

 private:
  std::vector<Claim> claims_;
};

// Of n trials whose true rate is `rate`, more than this many hits have probability below 1 in 1,000; fewer
// than the other: the allowance for chance.
int most_by_chance(int n, double rate);
int fewest_by_chance(int n, double rate);
// "0.35% (7 of 2000)".
std::string share(int hits, int n);

// A rate that must not exceed, or not fall below, the bar but by chance.
Claim at_most(const std::string& id, const std::string& what, int hits, int n, double rate);
Claim at_least(const std::string& id, const std::string& what, int hits, int n, double rate);
// A figure (a mean) with its standard error; three of them are the allowance.
Claim figure_at_most(const std::string& id, const std::string& what, double figure, double error, double bar,
                     const std::string& unit);

Status write_json(const Report& report, const Options& options);
// Replaces the text between the marks of docs/measured/verdicts.md, and draws images/verdicts.svg next to it.
Status write_document(const Report& report, const Options& options, double seconds);

// The claims, by file.
void prove_verdicts(const Options& options, Report& report);  // T1, T3-T7
void prove_hosts(const Options& options, Report& report);     // T14
void prove_races(const Options& options, Report& report);     // T8, T9
void prove_families(const Options& options, Report& report);  // T15
void prove_series(const Options& options, Report& report);    // T10, T11
void prove_stalls(const Options& options, Report& report);    // V10
void prove_times(const Options& options, Report& report);     // V2 to V6, V9
void prove_fleets(const Options& options, Report& report);    // L1 to L3
void prove_gates(const Options& options, Report& report);     // G1 to G3
void hold_contest(const Options& options, Report& report);    // T12

}  // namespace bakeoff::prove
