#include <fmt/format.h>

#include "emit/all/frameworks.h"
#include "import/import_steps.h"

namespace bakeoff {

std::string import_recipe(const ImportRequest& request, const ir::Workload& workload) {
  const std::string stem = request.out.stem().string();
  const int64_t batch = request.inputs[0].type.shape[0];
  std::string text = fmt::format(
      "# {}, imported. Data are drawn until you name your own in [data] (docs/data.md).\n"
      "workload = \"{}\"\nweights = \"{}.safetensors\"\nbatch = {}\nmargin = 0.05\n\ncontenders = [\n",
      request.title(), request.out.filename().string(), stem, batch);
  for (const emit::Framework* framework : emit::frameworks()) {
    if (emit::can(*framework, ir::Scenario::kTrain) && framework->extension == ".py")
      text += fmt::format("  {{ framework = \"{}\" }},\n", framework->name);
  }
  text += fmt::format("]\n\n[data]\nkind = \"synthetic\"   # inputs:");
  for (const ir::Input& input : workload.inputs)
    text += fmt::format(" {}: {}", input.name, ir::to_text(input.type));
  return text + fmt::format(
                    "\nsamples = {}\n\n[optimizer]\nkind = \"sgd\"\nlr = 1e-3\nmomentum = 0.9\n\n"
                    "[budget]\nminutes = 10\n",
                    16 * batch);
}

}  // namespace bakeoff
