#include "plan/plan_scripts.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "emit/all/frameworks.h"
#include "emit/generation.h"
#include "passes/decode.h"

namespace bakeoff {

fs::path twin_of_script(const fs::path& script) {
  return script.parent_path() / (script.stem().string() + "_float32" + script.extension().string());
}

std::vector<fs::path> with_twin(const fs::path& script) {
  std::vector<fs::path> all = {script};
  if (const fs::path twin = twin_of_script(script); fs::exists(twin)) all.push_back(twin);
  return all;
}

fs::path layout_of(fs::path script) { return script.replace_extension(".layout.json"); }

fs::path stated_of(fs::path script) { return script.replace_extension(".contender.json"); }

namespace {

// What a script of the user's own need not say itself (runners/bakeoff_runner/defaults.py).
std::string stated_json(const recipe::Recipe& recipe) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::object();
  for (const ir::Input& input : recipe.workload.inputs)
    inputs[input.name] = input.type.dtype == ir::DType::kI32 ? "i32" : "f32";
  nlohmann::ordered_json frozen = nlohmann::ordered_json::array();
  for (const ir::Parameter& parameter : recipe.workload.parameters)
    if (parameter.frozen) frozen.push_back(parameter.name);
  const nlohmann::ordered_json stated = {{"inputs", inputs},
                                         {"divisor", recipe.training.input_divisor},
                                         {"batch", recipe.training.batch},
                                         {"frozen", frozen}};
  return dump(stated, 2) + "\n";
}

}  // namespace

Status link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::create_hard_link(from, to, code);
  if (!code) return Done{};
  TRY(const std::string content, read_file(from));
  return write_file(to, content);
}

Result<std::optional<Failure>> write_script(const recipe::Recipe& recipe, const recipe::Contender& contender,
                                            const fs::path& folder) {
  const emit::Framework& framework = *emit::find_framework(contender.framework);
  auto emitted = [&]() -> Result<emit::Emitted> {
    CHECK_OK(emit::check_supported(framework, recipe.workload));
    if (!recipe.training.generates())
      return framework.emit({recipe.workload, recipe.training, contender.settings, contender.file});
    TRY(const ir::Workload step, passes::decode(recipe.workload, emit::keeps_words(contender.settings)));
    return framework.emit({step, recipe.training, contender.settings, contender.file});
  }();
  if (!emitted && contender.script.empty())
    return std::optional<Failure>(Failure{Stage::kEmit, emitted.error().line(), {}});
  const fs::path script = folder / contender.file;
  std::string source = emitted ? emitted->source : "";
  std::string layout = emitted ? emitted->layout_json : "";
  if (!contender.script.empty()) {
    source = contender.source;
    if (!contender.layout.empty()) layout = contender.layout;
  }
  CHECK_OK(write_file(script, source));
  if (!contender.script.empty()) CHECK_OK(write_file(stated_of(script), stated_json(recipe)));
  if (emitted && contender.script.empty()) {
    for (const auto& [name, text] : emitted->beside) CHECK_OK(write_file(folder / name, text));
  }
  if (!layout.empty()) CHECK_OK(write_file(layout_of(script), layout));
  return std::optional<Failure>();
}

Result<std::optional<Failure>> write_twin(const recipe::Recipe& recipe, const recipe::Contender& contender,
                                          const fs::path& folder) {
  recipe::Contender twin = contender;
  twin.settings = emit::float32_twin(contender.settings);
  twin.file = twin_of_script(contender.file).string();
  if (twin.settings == contender.settings || !contender.script.empty()) return std::optional<Failure>();
  return write_script(recipe, twin, folder);
}

}  // namespace bakeoff
