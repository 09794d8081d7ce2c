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

#include "stats/trimmed.h"

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
  return Block{std::move(a), std::move(b)};
}

}  // namespace

double log_ratio(const Block& block) { return stats::log_ratio(block.a, block.b).value(); }

Source simulated(const stats::testing::NoiseModel& noise, double slowdown, uint64_t seed) {
  auto machine =
      std::make_shared<stats::testing::Machine>(noise, std::vector<double>{std::log1p(slowdown), 0}, seed);
  return [machine] {
    std::vector<std::vector<double>> steps = machine->steps({0, 1});
    return Block{std::move(steps[0]), std::move(steps[1])};
  };
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
    if (state->random() % 2) std::swap(block.a, block.b);
    for (double& ms : block.a) ms *= 1 + slowdown;
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
