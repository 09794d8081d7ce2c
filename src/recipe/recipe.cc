// From a text to a Recipe, in three steps. Reader::check() tests each key by itself against the schema:
// name, type, range. fill() and the read_ functions then take values without further tests. What concerns
// several keys, or the workload, is tested where both are known (check_optimizer_keys, check_as_is, ...);
// these errors name the line of the key that has to change.
//
// A recorded recipe, from the record of a run, is read offline: its workload and other files are not
// opened, because they may have changed or gone since.

#include "recipe/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/files.h"
#include "base/nearest.h"
#include "emit/all/frameworks.h"
#include "emit/devices.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "passes/decode.h"
#include "passes/lora.h"
#include "passes/predicting.h"
#include "recipe/contenders.h"
#include "recipe/largest_batch.h"
#include "recipe/reader.h"
#include "recipe/shipped.h"
#include "recipe/text_edit.h"
#include "recipe/updates.h"
#include "zoo/zoo.h"

namespace bakeoff::recipe {
namespace {

namespace fs = std::filesystem;

Result<ir::Workload> read_workload(const Reader& reader) {
  const std::string name = reader.word("", "workload", "");
  const toml::node& node = *reader.find("", "workload");
  ir::Workload workload;
  if (name.ends_with(".ir")) {
    auto text = reader.read(name);
    if (!text)
      return reader.error(node.source(), text.error().message,
                          "name an IR file (docs/ir.md; `bakeoff import` makes one of a model) or a shipped "
                          "workload (`bakeoff ops --workloads`)");
    TRY(workload, ir::parse(*text, reader.path(name).string()));
  } else {
    auto built = zoo::build(name);
    if (!built)
      return reader.error(node.source(), built.error().message,
                          built.error().remedy + " (or the path of a file ending in .ir: docs/ir.md)");
    workload = *built;
  }
  const std::string loss = ir::info(workload.first_loss().op).name;
  if (const std::string wanted = reader.word("", "loss", loss); wanted != loss) {
    return reader.error(
        reader.find("", "loss")->source(),
        fmt::format("loss '{}' does not fit workload '{}', whose loss is {}", wanted, workload.name, loss),
        "remove `loss` or write a workload with it");
  }
  return workload;
}

// The workload with [lora] applied, where the recipe has it.
Result<ir::Workload> with_lora(const Reader& reader, const toml::table& root, ir::Workload workload) {
  const toml::node* section = root.get("lora");
  if (section == nullptr) return workload;
  passes::Lora lora;
  lora.rank = reader.integer("lora", "rank", lora.rank);
  lora.alpha = reader.real("lora", "alpha", static_cast<double>(lora.rank));
  lora.targets = reader.words("lora", "targets");
  auto made = passes::lora(workload, lora);
  if (!made) return reader.error(section->source(), made.error().message, made.error().remedy);
  return made;
}

// The part of the workload that the scenario needs.
Result<ir::Workload> for_scenario(const Reader& reader, ir::Workload workload, const ir::Training& training) {
  const toml::node* node = reader.find("", "outputs");
  if (node == nullptr) return training.predicts() ? passes::predicting(workload) : std::move(workload);
  if (training.scenario != ir::Scenario::kPredict)
    return reader.error(node->source(), "`outputs` is about the scenario \"predict\"",
                        "set scenario = \"predict\" at the top, or remove `outputs`");
  auto made = passes::predicting(workload, reader.words("", "outputs"));
  if (!made) return reader.error(node->source(), made.error().message, made.error().remedy);
  return made;
}

// A model of language whose sequence has room for prompt and answer.
Status read_generation(const Reader& reader, bool recorded, const ir::Workload& workload,
                       ir::Training& training) {
  for (const char* key : {"prompt", "words", "answers", "processes", "batches", "prompts"}) {
    if (const toml::node* node = reader.find("generate", key); node != nullptr && !training.generates())
      return reader.error(node->source(), "[generate] is about the scenario \"generate\"",
                          "set scenario = \"generate\" at the top, or remove [generate]");
  }
  if (!training.generates()) return Done{};
  const toml::node& scenario = *reader.find("", "scenario");
  if (!recorded) {
    if (const auto step = passes::decode(workload); !step)
      return reader.error(scenario.source(), step.error().message, step.error().remedy);
    const int64_t places = passes::decoding_positions(workload);
    training.generation = {.prompt = places / 2, .words = places - places / 2};
  }
  ir::Generation& g = training.generation;
  const auto stated = [&](const char* key) { return reader.find("generate", key); };
  g.prompt = reader.integer("generate", "prompt", g.prompt);
  // A record has the step of decoding, whose places nobody counts again.
  const int64_t places = recorded ? 0 : passes::decoding_positions(workload);
  if (!recorded && stated("prompt") != nullptr) g.words = std::max<int64_t>(1, places - g.prompt);
  g.words = reader.integer("generate", "words", g.words);
  if (recorded) return Done{};
  if (stated("words") != nullptr && stated("prompt") == nullptr)
    g.prompt = std::max<int64_t>(1, std::min(g.prompt, places - g.words));
  const toml::node* key = stated("words") != nullptr ? stated("words") : stated("prompt");
  if (g.prompt < 1 || g.words < 1 || g.prompt + g.words > places)
    return reader.error(
        key != nullptr ? key->source() : scenario.source(),
        fmt::format("a prompt of {} words and {} in answer do not fit the {} positions of '{}'", g.prompt,
                    g.words, places, workload.name),
        "state fewer as generate.prompt and generate.words, or import the model with a longer sequence");
  return Done{};
}

struct Applies {
  const char* key;
  std::vector<ir::OptimizerKind> kinds;
};

Status check_optimizer_keys(const Reader& reader, const ir::Optimizer& optimizer) {
  using K = ir::OptimizerKind;
  const Applies rules[] = {{"momentum", {K::kSgd, K::kRmsprop}},
                           {"nesterov", {K::kSgd}},
                           {"rho", {K::kRmsprop}},
                           {"beta1", {K::kAdam, K::kAdamW}},
                           {"beta2", {K::kAdam, K::kAdamW}},
                           {"eps", {K::kRmsprop, K::kAdam, K::kAdamW}},
                           {"eps_form", {K::kRmsprop, K::kAdam, K::kAdamW}}};
  for (const Applies& rule : rules) {
    const toml::node* node = reader.find("optimizer", rule.key);
    if (node != nullptr &&
        std::find(rule.kinds.begin(), rule.kinds.end(), optimizer.kind) == rule.kinds.end()) {
      return reader.error(
          node->source(),
          fmt::format("'optimizer.{}' has no effect on {}", rule.key, ir::name(optimizer.kind)), "remove it");
    }
  }
  if (optimizer.kind == K::kRmsprop && optimizer.eps_form == ir::EpsForm::kHat) {
    return reader.error(reader.find("optimizer", "eps_form")->source(),
                        "eps_form 'hat' belongs to adam and adamw", "use outside or inside");
  }
  if (optimizer.kind == K::kAdamW && optimizer.decay_form == ir::DecayForm::kL2) {
    return reader.error(reader.find("optimizer", "decay_form")->source(), "adamw's decay is decoupled",
                        "use kind = \"adam\" for L2 decay");
  }
  if (optimizer.nesterov && optimizer.momentum == 0) {
    return reader.error(reader.find("optimizer", "nesterov")->source(), "nesterov needs momentum",
                        "set optimizer.momentum");
  }
  return Done{};
}

Result<ir::Optimizer> read_optimizer(const Reader& reader) {
  ir::Optimizer o;
  const std::string kind = reader.word("optimizer", "kind", "");
  for (const auto k : {ir::OptimizerKind::kSgd, ir::OptimizerKind::kRmsprop, ir::OptimizerKind::kAdam,
                       ir::OptimizerKind::kAdamW}) {
    if (ir::name(k) == kind) o.kind = k;
  }
  o.lr = reader.real("optimizer", "lr", o.lr);
  o.momentum = reader.real("optimizer", "momentum", o.momentum);
  o.nesterov = reader.flag("optimizer", "nesterov", o.nesterov);
  o.rho = reader.real("optimizer", "rho", o.rho);
  o.beta1 = reader.real("optimizer", "beta1", o.beta1);
  o.beta2 = reader.real("optimizer", "beta2", o.beta2);
  o.eps = reader.real("optimizer", "eps", o.eps);
  o.weight_decay = reader.real("optimizer", "weight_decay", o.weight_decay);
  const std::string form = reader.word("optimizer", "eps_form", "outside");
  for (const auto f : {ir::EpsForm::kOutside, ir::EpsForm::kInside, ir::EpsForm::kHat}) {
    if (ir::name(f) == form) o.eps_form = f;
  }
  const std::string decay =
      reader.word("optimizer", "decay_form", o.kind == ir::OptimizerKind::kAdamW ? "decoupled" : "l2");
  o.decay_form = decay == "l2" ? ir::DecayForm::kL2 : ir::DecayForm::kDecoupled;
  for (const std::string& name : names_in("optimizer")) {
    if (reader.find("optimizer", name) != nullptr) o.stated.insert(name);
  }
  CHECK_OK(check_optimizer_keys(reader, o));
  return o;
}

HostRule read_host_rule(const Reader& reader) {
  HostRule rule;
  rule.max_steal = reader.real("race", "max_steal", rule.max_steal);
  rule.max_others = reader.real("race", "max_others", rule.max_others);
  rule.max_pressure = reader.real("race", "max_pressure", rule.max_pressure);
  rule.max_clock_change = reader.real("race", "max_clock_change", rule.max_clock_change);
  rule.max_busy = reader.real("race", "max_busy", rule.max_busy);
  return rule;
}

Result<Latency> read_latency(const Reader& reader, bool predicts) {
  Latency latency;
  const toml::node* rates = reader.find("latency", "arrivals_per_second");
  if (rates == nullptr) return latency;
  if (!predicts) {
    return reader.error(rates->source(), "[latency] is about predictions, the scenario \"predict\"",
                        "add `scenario = \"predict\"` at the top, or remove [latency]");
  }
  latency.arrivals_per_second = reader.reals("latency", "arrivals_per_second", {});
  latency.requests = reader.integer("latency", "requests", latency.requests);
  latency.seconds = reader.real("latency", "seconds", latency.seconds);
  latency.processes = reader.integer("latency", "processes", latency.processes);
  latency.percentiles = reader.reals("latency", "percentiles", latency.percentiles);
  for (auto* list : {&latency.arrivals_per_second, &latency.percentiles}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  const double slowest = latency.arrivals_per_second.front();
  if (slowest * latency.seconds < static_cast<double>(Latency::kFewest)) {
    return reader.error(
        rates->source(),
        fmt::format("{:g} arrivals a second are {:.0f} requests in {:g} s, too few for a percentile", slowest,
                    std::floor(slowest * latency.seconds), latency.seconds),
        fmt::format("set latency.seconds to {:.0f} or more",
                    std::ceil(static_cast<double>(Latency::kFewest) / slowest)));
  }
  return latency;
}

// A list of integers, ascending, each once.
std::vector<int64_t> distinct(const Reader& reader, const char* section, const char* key) {
  std::set<int64_t> numbers;
  for (const double one : reader.reals(section, key, {})) numbers.insert(static_cast<int64_t>(one));
  return {numbers.begin(), numbers.end()};
}

Result<Search> read_search(const Reader& reader, bool wanted) {
  Search search{.wanted = wanted};
  search.batches = distinct(reader, "search", "batches");
  search.least = reader.integer("search", "least", search.least);
  search.most = reader.integer("search", "most", search.most);
  search.processes = reader.integer("search", "processes", search.processes);
  for (const char* key : {"least", "most"}) {
    const toml::node* node = reader.find("search", key);
    if (node == nullptr) continue;
    if (!search.doubles()) {
      return reader.error(node->source(),
                          fmt::format("search.{} has no effect together with search.batches", key),
                          "remove one of them");
    }
    if (search.least > search.most) {
      return reader.error(
          node->source(),
          fmt::format("search.least = {} is above search.most = {}", search.least, search.most),
          "set search.most to at least search.least");
    }
  }
  return search;
}

Result<Scaling> read_scaling(const Reader& reader, const toml::table& root, bool recorded,
                             const Recipe& recipe) {
  const toml::node* section = root.get("scaling");
  Scaling scaling{.wanted = section != nullptr};
  scaling.heats = reader.integer("scaling", "heats", scaling.heats);
  if (section == nullptr || recorded) return scaling;
  if (recipe.training.predicts())
    return reader.error(section->source(), "[scaling] is about training, and this recipe predicts",
                        "remove [scaling], or `scenario = \"predict\"`");
  if (std::none_of(recipe.contenders.begin(), recipe.contenders.end(),
                   [](const Contender& one) { return emit::devices_of(one.settings) > 1; }))
    return reader.error(section->source(),
                        "[scaling] is about contenders on several devices, and there is none",
                        "give one `devices = 2` or more, or remove [scaling]");
  return scaling;
}

Result<Target> read_target(const Reader& reader, const toml::table& root, bool predicts) {
  Target target;
  const toml::node* section = root.get("target");
  if (section == nullptr) return target;
  if (predicts) {
    return reader.error(section->source(), "[target] is about training, and this recipe predicts",
                        "remove [target], or `scenario = \"predict\"`");
  }
  if (reader.find("target", "accuracy") != nullptr) target.accuracy = reader.real("target", "accuracy", 0);
  if (reader.find("target", "loss") != nullptr) target.loss = reader.real("target", "loss", 0);
  if (target.accuracy.has_value() == target.loss.has_value()) {
    return reader.error(section->source(), "[target] needs either an accuracy or a loss",
                        "write one of them, for example accuracy = 0.97");
  }
  target.seeds = reader.integer("target", "seeds", target.seeds);
  target.rows = reader.integer("target", "rows", target.rows);
  target.every = reader.integer("target", "every", target.every);
  target.epochs = reader.real("target", "epochs", target.epochs);
  target.referee = reader.flag("target", "referee", target.referee);
  return target;
}

Result<Fit> read_fit(const Reader& reader, const toml::table& root, bool predicts) {
  Fit fit;
  const toml::node* section = root.get("fit");
  if (section == nullptr) return fit;
  if (predicts) {
    return reader.error(section->source(), "[fit] is about training, and this recipe predicts",
                        "remove [fit], or `scenario = \"predict\"`");
  }
  fit.epochs = reader.integer("fit", "epochs", fit.epochs);
  fit.seeds = reader.integer("fit", "seeds", fit.seeds);
  if (reader.find("fit", "rows") != nullptr) fit.rows = reader.integer("fit", "rows", 0);
  fit.patience = reader.integer("fit", "patience", fit.patience);
  fit.min_delta = reader.real("fit", "min_delta", fit.min_delta);
  const toml::node* delta = reader.find("fit", "min_delta");
  if (delta != nullptr && fit.patience == 0) {
    return reader.error(delta->source(), "'fit.min_delta' has no effect without fit.patience",
                        "set fit.patience, or remove it");
  }
  const toml::node* patience = reader.find("fit", "patience");
  if (fit.patience > 0 && fit.rows.value_or(reader.word("data", "kind", "synthetic") == "mnist") == 0) {
    return reader.error(patience->source(),
                        "fit.patience watches the loss of held-out rows, and there are none",
                        "set fit.rows, for example rows = 1000");
  }
  return fit;
}

// The keys of [data] that belong to some kinds alone.
struct DataKey {
  const char* name;
  std::set<std::string> kinds;
  std::set<std::string> needed_by;
  const char* example;
};
const DataKey kDataKeys[] = {
    {"path", {}, {"file", "npz", "csv", "image folder"}, "path = \"...\""},
    {"inputs", {"npz", "npy", "idx", "csv"}, {"npy", "idx", "csv"}, "inputs = { x = \"...\", y = \"...\" }"},
    {"categories", {"csv"}, {}, ""},
    {"delimiter", {"csv"}, {}, ""},
    {"resize", {"image folder"}, {}, ""},
    {"expansion", {"npz", "npy", "idx", "csv"}, {}, ""},
};

Status check_data_keys(const Reader& reader, const std::string& kind) {
  for (const DataKey& key : kDataKeys) {
    const toml::node* node = reader.find("data", key.name);
    if (node == nullptr && key.needed_by.contains(kind)) {
      return reader.error(reader.find("data", "kind")->source(),
                          fmt::format("data.kind = \"{}\" needs data.{}", kind, key.name),
                          fmt::format("add {} under [data]", key.example));
    }
    if (node != nullptr && !key.kinds.empty() && !key.kinds.contains(kind)) {
      return reader.error(node->source(),
                          fmt::format("'data.{}' has no effect on data of kind '{}'", key.name, kind),
                          "remove it");
    }
  }
  return Done{};
}

// `workload` null: the recipe comes from a record.
Result<Data> read_data(const Reader& reader, const ir::Workload* workload) {
  Data data;
  data.kind = reader.word("data", "kind", data.kind);
  CHECK_OK(check_data_keys(reader, data.kind));
  if (reader.find("data", "path") != nullptr) data.path = reader.path(reader.word("data", "path", ""));
  data.samples = reader.integer("data", "samples", data.samples);
  data.shuffle = reader.flag("data", "shuffle", false);
  data.inputs = reader.word_table("data", "inputs");
  data.categories = reader.words("data", "categories");
  data.delimiter = reader.word("data", "delimiter", data.delimiter);
  data.resize = reader.word("data", "resize", data.resize);
  data.expansion = reader.real("data", "expansion", data.expansion);
  if (data.delimiter.size() != 1 || data.delimiter.find_first_of(" \"\r\n") == 0) {
    return reader.error(reader.find("data", "delimiter")->source(), "'data.delimiter' must be one character",
                        "for example delimiter = \";\"");
  }
  for (auto& [input, sources] : data.inputs) {
    const toml::node& node = *reader.find("data", "inputs");
    std::vector<std::string> names;
    for (const ir::Input& each : workload == nullptr ? std::vector<ir::Input>() : workload->inputs)
      names.push_back(each.name);
    if (workload != nullptr && std::find(names.begin(), names.end(), input) == names.end()) {
      return reader.error(node.source(),
                          fmt::format("workload '{}' has no input '{}'", workload->name, input),
                          suggest(input, names));
    }
    if (data.kind != "csv" && sources.size() > 1) {
      return reader.error(node.source(),
                          fmt::format("data.inputs names {} things for '{}'", sources.size(), input),
                          "name one; only a CSV file has several columns for an input");
    }
    if (data.kind == "npy" || data.kind == "idx") sources[0] = reader.path(sources[0]).string();
  }
  return data;
}

void fill(Recipe& recipe, const Reader& reader) {
  recipe.name = reader.word("", "name", reader.file().stem().string());
  ir::Training& t = recipe.training;
  for (const ir::Scenario each : {ir::Scenario::kPredict, ir::Scenario::kGenerate})
    if (reader.word("", "scenario", "train") == ir::name(each)) t.scenario = each;
  t.track = reader.word("", "track", "equalised") == "as-is" ? ir::Track::kAsIs : ir::Track::kEqualised;
  t.batch = reader.integer("", "batch", t.batch);
  t.precision = reader.word("", "precision", t.precision);
  t.seed = static_cast<uint64_t>(reader.integer("", "seed", 1));
  t.input_divisor = reader.real("data", "divisor", 1);
  if (reader.find("", "weights") != nullptr) recipe.weights = reader.path(reader.word("", "weights", ""));
  recipe.margin = reader.real("", "margin", recipe.margin);
  recipe.alpha = reader.real("", "alpha", recipe.alpha);
  recipe.budget.minutes = reader.real("budget", "minutes", recipe.budget.minutes);
  recipe.budget.heats = reader.integer("budget", "heats", recipe.budget.heats);
  recipe.cost.per_hour = reader.real("cost", "per_hour", 0);
  recipe.cost.currency = reader.word("cost", "currency", "");
  recipe.cost.grams_per_kwh = reader.real("cost", "grams_per_kwh", 0);
  Race& race = recipe.race;
  race.threads = reader.integer("race", "threads", race.threads);
  race.live = reader.integer("race", "live", race.live);
  race.warmup_steps = reader.integer("race", "warmup_steps", race.warmup_steps);
  race.bursts = reader.integer("race", "bursts", race.bursts);
  race.burst_seconds = reader.real("race", "burst_seconds", race.burst_seconds);
  race.allocator = reader.word("race", "allocator", race.allocator);
  race.pin = reader.word("race", "pin", race.pin);
  race.huge_pages = reader.word("race", "huge_pages", race.huge_pages);
  race.randomise_addresses = reader.flag("race", "randomise_addresses", race.randomise_addresses);
  race.cooldown_seconds = reader.real("race", "cooldown_seconds", race.cooldown_seconds);
  race.device = reader.word("race", "device", race.device);
  race.gpu_clock_mhz = reader.integer("race", "gpu_clock_mhz", race.gpu_clock_mhz);
  race.sample_ms = reader.integer("race", "sample_ms", race.sample_ms);
  race.nvtx = reader.flag("race", "nvtx", race.nvtx);
  race.confirm_heats = reader.integer("race", "confirm_heats", race.confirm_heats);
  race.noise_ceiling = reader.real("race", "noise_ceiling", race.noise_ceiling);
  for (const std::string& name : names_in("race")) {
    if (reader.find("race", name) != nullptr) race.stated.insert(name);
  }
  race.parity_steps = reader.integer("race", "parity_steps", race.parity_steps);
  race.stage_seconds = reader.real("race", "stage_seconds", race.stage_seconds);
  race.host = read_host_rule(reader);
}

// What the as-is track leaves to every framework cannot be stated.
Status check_as_is(const Reader& reader, const Recipe& recipe) {
  if (recipe.training.track != ir::Track::kAsIs) return Done{};
  if (recipe.training.generates())
    return reader.error(
        reader.find("", "track")->source(), "in the as-is track nothing is generated",
        "remove track = \"as-is\": it leaves initial weights and optimizer to the frameworks");
  if (!recipe.weights.empty()) {
    return reader.error(reader.find("", "weights")->source(),
                        "in the as-is track every framework draws its own initial weights",
                        "remove weights, or set track = \"equalised\"");
  }
  if (recipe.data.shuffle) {
    return reader.error(reader.find("data", "shuffle")->source(),
                        "in the as-is track every framework shuffles in its own way",
                        "remove data.shuffle, or set track = \"equalised\"");
  }
  for (const ir::Parameter& parameter : recipe.workload.parameters) {
    if (!parameter.frozen) continue;
    return reader.error(
        reader.find("", "track")->source(),
        fmt::format("the frozen parameter '{}' has no initial value of a framework's own", parameter.name),
        "remove track = \"as-is\"");
  }
  return Done{};
}

struct Origin {
  bool recorded = false, shipped = false;
};

// What the table of words is about (study/generation/generation.h).
Result<Generate> read_words(const Reader& reader, bool recorded, const ir::Workload& workload,
                            const ir::Training& training) {
  Generate words;
  words.answers = reader.integer("generate", "answers", words.answers);
  words.processes = reader.integer("generate", "processes", words.processes);
  words.batches = distinct(reader, "generate", "batches");
  words.prompts = distinct(reader, "generate", "prompts");
  if (recorded || words.prompts.empty()) return words;
  const int64_t places = passes::decoding_positions(workload), most = places - training.generation.words;
  if (words.prompts.back() > most)
    return reader.error(
        reader.find("generate", "prompts")->source(),
        fmt::format("a prompt of {} words and {} in answer do not fit the {} positions of '{}'",
                    words.prompts.back(), training.generation.words, places, workload.name),
        fmt::format("prompts of {} words and fewer leave room for {} in answer", most,
                    training.generation.words));
  return words;
}

Result<Recipe> parse_text(std::string_view text, const fs::path& file, Origin origin) {
  const bool recorded = origin.recorded;
  TRY(const toml::table root, parse_toml(text, file));
  const Reader reader(root, file, recorded, origin.shipped);
  CHECK_OK(reader.check());
  Recipe recipe{.file = file, .shipped = origin.shipped, .text = std::string(text)};
  fill(recipe, reader);
  if (!recorded) {
    TRY(recipe.workload, read_workload(reader));
    TRY(recipe.workload, with_lora(reader, root, std::move(recipe.workload)));
    TRY(recipe.workload, for_scenario(reader, std::move(recipe.workload), recipe.training));
  }
  CHECK_OK(read_generation(reader, recorded, recipe.workload, recipe.training));
  TRY(recipe.generate, read_words(reader, recorded, recipe.workload, recipe.training));
  TRY(recipe.data, read_data(reader, recorded ? nullptr : &recipe.workload));
  if (!recipe.training.predicts() || root.contains("optimizer")) {
    TRY(recipe.training.optimizer, read_optimizer(reader));
    CHECK_OK(read_updates(reader, root, recorded ? nullptr : &recipe.workload, recipe.training.batch,
                          recipe.training.optimizer));
  }
  TRY(recipe.target, read_target(reader, root, recipe.training.predicts()));
  TRY(recipe.fit, read_fit(reader, root, recipe.training.predicts()));
  TRY(recipe.search, read_search(reader, root.contains("search")));
  TRY(recipe.largest_batch, read_largest_batch(reader, root.contains("largest_batch")));
  TRY(recipe.latency, read_latency(reader, recipe.training.scenario == ir::Scenario::kPredict));
  TRY(recipe.contenders, read_contenders(reader, root, recipe.training.scenario));
  TRY(recipe.scaling, read_scaling(reader, root, recorded, recipe));
  if (const toml::node* node = reader.find("", "baseline")) {
    recipe.baseline = reader.word("", "baseline", "");
    if (const Status known = check_baseline(recipe, recipe.baseline); !known && !recorded)
      return reader.error(node->source(), known.error().message, known.error().remedy);
  }
  if (recipe.race.stated.contains("pin")) {
    CHECK_OK(check_pin(reader, *reader.find("race", "pin"), recipe.race.pin));
  }
  if (const toml::node* node = reader.find("published", "file")) {
    recipe.published.file = reader.path(reader.word("published", "file", ""));
    if (!recorded) {
      auto table = reader.read(reader.word("published", "file", ""));
      if (!table)
        return reader.error(node->source(), table.error().message,
                            "paths are relative to the recipe's folder");
      recipe.published.text = std::move(*table);
    }
  }
  CHECK_OK(check_as_is(reader, recipe));
  if (recipe.race.sample_ms > 0 && recipe.race.sample_ms < 10) {
    return reader.error(reader.find("race", "sample_ms")->source(),
                        fmt::format("'race.sample_ms' cannot be {}", recipe.race.sample_ms),
                        "from 10 to 1000, or 0 for none");
  }
  return recipe;
}

}  // namespace

Result<Recipe> parse(std::string_view text, const fs::path& file, bool shipped) {
  return parse_text(text, file, {.shipped = shipped});
}

Status check_baseline(const Recipe& recipe, const std::string& name) {
  std::vector<std::string> ids;
  for (const Contender& contender : recipe.contenders) ids.push_back(contender.id);
  if (std::find(ids.begin(), ids.end(), name) != ids.end()) return Done{};
  return Error{.message = fmt::format("the baseline '{}' is no contender", name),
               .remedy = suggest(name, ids)};
}

Result<Recipe> parse_recorded(std::string_view text, const fs::path& file) {
  return parse_text(text, file, {.recorded = true});
}

namespace {

// The line of what `find` finds in the recipe's text; its file alone where it finds nothing.
template <typename Find>
std::string line_of(const Recipe& recipe, const Find& find) {
  const toml::parse_result parsed = toml::parse(recipe.text, recipe.file.string());
  if (!parsed || recipe.changed) return recipe.file.string();
  const toml::node* node = find(Reader(parsed.table(), recipe.file, false, recipe.shipped), parsed.table());
  if (node == nullptr) return recipe.file.string();
  return fmt::format("{}:{}", recipe.file.string(), node->source().begin.line);
}

}  // namespace

std::string where(const Recipe& recipe, const std::string& section, const std::string& key) {
  return line_of(recipe, [&](const Reader& reader, const auto&) { return reader.find(section, key); });
}

std::string where(const Recipe& recipe, const Contender& contender, const std::string& setting) {
  return line_of(recipe, [&](const Reader& reader, const toml::table& root) {
    return find_setting(reader, root, recipe.training.scenario, contender.id, setting);
  });
}

Result<Recipe> load(const fs::path& file) {
  const auto found = find_recipe(file);
  if (!found) return found.error();
  if (found->shipped != nullptr) return parse(found->shipped->text, found->file, true);
  TRY(const std::string text, read_file(found->file));
  return parse(text, found->file);
}

namespace {

toml::table toml_of(const Contender& c) {
  toml::table table;
  const auto add = [&](const std::string& name, const std::string& value, bool number) {
    if (number)
      table.insert(name, std::stoll(value));
    else if (value == "true" || value == "false")
      table.insert(name, value == "true");
    else
      table.insert(name, value);
  };
  if (!c.script.empty()) {
    table.insert("script", c.script.string());
    table.insert("environment", c.environment);
  }
  table.insert("framework", c.framework);
  if (c.script.empty())
    for (const emit::Setting& s : emit::find_framework(c.framework)->settings)
      if (const auto found = c.settings.find(s.name);
          found != c.settings.end() && (s.always_named || found->second != s.fallback))
        add(s.name, found->second, s.values.empty());
  for (const auto& [name, value] : c.controls) add(name, value, name == "threads");
  table.is_inline(true);
  return table;
}

}  // namespace

Result<std::string> with_contenders(std::string_view text, const std::vector<Contender>& contenders) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) return Error{.message = std::string(parsed.error().description())};
  toml::table root = std::move(parsed).table();
  toml::array list;
  for (const Contender& contender : contenders) list.push_back(toml_of(contender));
  root.insert_or_assign("contenders", std::move(list));
  return edited(text, root, "", "contenders");
}

}  // namespace bakeoff::recipe
