#include "study/all/studies.h"

#include <fmt/format.h>

#include "study/batches/batch_section.h"
#include "study/batches/largest_section.h"
#include "study/generation/generation_section.h"
#include "study/latency/latency_section.h"
#include "study/scaling/scaling_section.h"
#include "study/training/fit_section.h"
#include "study/training/target_section.h"

namespace bakeoff {

const std::vector<Study>& studies() {
  static const std::vector<Study> all = {
      latency_study(),        //
      generation_study(),     //
      target_study(),         //
      fit_study(),            //
      batch_search_study(),   //
      largest_batch_study(),  //
      scaling_study(),
  };
  return all;
}

std::vector<std::string> wanted_studies(const recipe::Recipe& recipe) {
  std::vector<std::string> tables;
  for (const Study& study : studies()) {
    if (study.wanted(recipe)) tables.push_back(fmt::format("[{}]", study.name));
  }
  return tables;
}

}  // namespace bakeoff
