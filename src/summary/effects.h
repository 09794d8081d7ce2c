#pragma once

// The effect of each setting, others equal: every pair of contenders that differ in one setting alone, of their
// framework or of their process. Pure functions of the summary.
//
//   for (const SettingEffect& effect : effects_of(summary)) print(advice(effect, summary.margin));

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "summary/summary.h"

namespace bakeoff {

// Two contenders that differ in one setting alone.
struct EffectPair {
  std::string before = {}, after = {};           // Contender::id: with `from`, with `to`
  std::map<std::string, std::string> with = {};  // settings that both have, and that tell the pairs apart
  std::optional<PairRatio> ratio = {};  // step time after over that before; absent: nothing links them
  Estimate speed = {};                  // times as fast with `to`; where `ratio` is there
  PairVerdict verdict = PairVerdict::kUndecided;
  bool operator==(const EffectPair&) const = default;
};

// One change of one setting of a framework, in every combination of other settings that was raced.
struct SettingEffect {
  std::string where = {};  // "torch", "keras[backend=jax]"
  std::string place = {};  // the same as people call it: "PyTorch", "Keras on JAX"
  std::string setting = {};
  std::string from = {}, to = {};  // `from` is the default, if one of the two is
  std::vector<EffectPair> pairs = {};
  bool operator==(const SettingEffect&) const = default;
};

// The one setting, of the framework or of the process, in which two contenders of one framework differ; empty: there is
// none, or there are several.
std::string differing_setting(const Contender& a, const Contender& b);
// Its value, as the record has it.
std::string value_of(const Contender& contender, const std::string& setting);

// By the recipe's order of contenders. None where the verdict is refused. Contenders that are not ranked have no
// effect, nor have settings that change the precision: each precision is a race of its own.
std::vector<SettingEffect> effects_of(const Summary& summary);

// What to do about it, in one sentence: "Set compile = default in torch: 1.15x faster [1.12, 1.18]." If the pairs
// disagree it says what the effect depends on.
std::string advice(const SettingEffect& effect, double margin);

// "1.15x faster [1.12, 1.18]", "1.20x slower [1.15, 1.26]".
std::string speed_in_words(const Estimate& speed);
// "channels_last = true, compile = none"; empty without settings.
std::string with_in_words(const EffectPair& pair);

}  // namespace bakeoff
