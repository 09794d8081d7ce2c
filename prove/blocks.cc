#include "prove/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "stats/heat_value.h"

namespace bakeoff::prove {
namespace {

using Json = nlohmann::json;

Result<std::vector<double>> read_side(const Json& line, const char* side) {
  std::vector<double> times;
  if (!line.is_object() || !line.contains(side) || !line[side].is_array()) {
    return Error{fmt::format("no list \"{}\"", side)};
  }
  for (const Json& value : line[side]) {
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>())) {
      return Error{fmt::format("\"{}\" holds what is no positive time", side)};
    }
    times.push_back(value.get<double>());
  }
  if (times.empty()) return Error{fmt::format("\"{}\" is empty", side)};
  return times;
}

Result<Block> read_block(const std::string& text) {
  const Json line = Json::parse(text, nullptr, false);
  if (line.is_discarded()) return Error{"not JSON"};
  TRY(std::vector<double> a, read_side(line, "a"));
  TRY(std::vector<double> b, read_side(line, "b"));
  std::vector<double> a_bursts = a, b_bursts = b;
  if (line.contains("a_bursts") || line.contains("b_bursts")) {
    TRY(a_bursts, read_side(line, "a_bursts"));
    TRY(b_bursts, read_side(line, "b_bursts"));
  }
  return Block{std::move(a), std::move(b), std::move(a_bursts), std::move(b_bursts), {}, {}};
}

using stats::testing::Machine;
using stats::testing::ProcessTimes;

// A pair of contenders on a simulated machine, measured as races do, or as a mutant does.
class SimulatedPair {
 public:
  SimulatedPair(const stats::testing::NoiseModel& noise, double slowdown, uint64_t seed, Mutant mutant)
      : machine_(noise, {std::log1p(slowdown), 0}, seed),
        rounds_(noise.rounds),
        steps_(noise.steps),
        mutant_(mutant) {}

  Block next() {
    std::vector<ProcessTimes> times(2);
    machine_.start({0, 1});
    run(times);
    const auto d = [&] { return log_ratio(block_of(times)); };
    if (mutant_ == Mutant::kLengthened && d() * sum_ < 0) run(times);
    sum_ += d();
    return block_of(times);
  }

 private:
  void run(std::vector<ProcessTimes>& times) {
    for (int round = 0; round < rounds_; ++round) {
      machine_.round(times);
      if (mutant_ == Mutant::kRerun) run_again_if_slow(times);
    }
  }

  void run_again_if_slow(std::vector<ProcessTimes>& times) {
    const double last = times[0].burst_ms.back();
    if (bursts_ > 0 && last > before_ / bursts_) {
      for (ProcessTimes& side : times) {
        side.burst_ms.pop_back();
        side.step_ms.resize(side.step_ms.size() - static_cast<size_t>(steps_));
      }
      machine_.round(times);
    }
    before_ += last;
    ++bursts_;
  }

  // With the steps that do not count, where the mutant counts them.
  std::vector<double> bursts_of(const ProcessTimes& side) const {
    std::vector<double> bursts = side.burst_ms;
    if (mutant_ != Mutant::kWholeBurst || side.lead_in_ms.empty()) return bursts;
    for (size_t i = 0; i < bursts.size(); ++i)
      bursts[i] = (bursts[i] * steps_ + side.lead_in_ms[i]) / (steps_ + 1);
    return bursts;
  }

  Block block_of(const std::vector<ProcessTimes>& times) const {
    return {times[0].step_ms,    times[1].step_ms, bursts_of(times[0]),
            bursts_of(times[1]), times[0].steal,   times[1].steal};
  }

  Machine machine_;
  int rounds_, steps_;
  Mutant mutant_;
  double sum_ = 0;                  // of d
  double before_ = 0, bursts_ = 0;  // of the first contender: sum of ms per step, and number
};

}  // namespace

stats::HeatResult heat_of(const Block& block) {
  std::vector<ProcessTimes> times(2);
  times[0].burst_ms = block.a_bursts;
  times[1].burst_ms = block.b_bursts;
  times[0].steal = block.a_steal;
  times[1].steal = block.b_steal;
  return Machine::result_of(times, {0, 1});
}

double log_ratio(const Block& block) {
  return stats::heat_value(block.a_bursts).value() - stats::heat_value(block.b_bursts).value();
}

Source simulated(const stats::testing::NoiseModel& noise, double slowdown, uint64_t seed, Mutant mutant) {
  return [pair = std::make_shared<SimulatedPair>(noise, slowdown, seed, mutant)] { return pair->next(); };
}

Source replayed(const std::vector<Block>& recorded, double slowdown, uint64_t seed) {
  struct State {
    std::mt19937_64 random;
    std::vector<size_t> order;
    size_t next = 0;
  };
  auto state = std::make_shared<State>(State{std::mt19937_64(seed), {}, 0});
  state->order.resize(recorded.size());
  std::iota(state->order.begin(), state->order.end(), size_t{0});
  return [state, &recorded, slowdown] {
    if (state->next == 0) std::shuffle(state->order.begin(), state->order.end(), state->random);
    Block block = recorded[state->order[state->next]];
    state->next = (state->next + 1) % recorded.size();
    if (state->random() % 2) {
      std::swap(block.a, block.b);
      std::swap(block.a_bursts, block.b_bursts);
    }
    for (std::vector<double>* times : {&block.a, &block.a_bursts}) {
      for (double& ms : *times) ms *= 1 + slowdown;
    }
    return block;
  };
}

Result<std::vector<Block>> read_blocks(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Error{.message = "cannot be read", .where = file.string()};
  std::vector<Block> blocks;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<Block> block = read_block(line);
    if (!block) {
      return Error{.message = block.error().message,
                   .where = fmt::format("{}:{}", file.string(), number),
                   .remedy = "one block a line: {\"a\": [ms, ...], \"b\": [ms, ...]}"};
    }
    blocks.push_back(std::move(*block));
  }
  if (blocks.size() < 4) {
    return Error{.message = fmt::format("{} blocks; the fewest are 4", blocks.size()),
                 .where = file.string()};
  }
  return blocks;
}

}  // namespace bakeoff::prove
