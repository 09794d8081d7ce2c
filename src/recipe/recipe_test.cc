#include "recipe/recipe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/testing.h"
#include "recipe/contenders.h"
#include "recipe/reader.h"
#include "recipe/schema.h"

namespace bakeoff::recipe {
namespace {

constexpr const char* kGood = R"(workload = "mlp_small"
batch = 50
contenders = [
  { framework = "torch", compile = ["off", "default"], channels_last = [false, true] },
]
[optimizer]
kind = "adam"
lr = 1e-3
)";

// kGood with one line replaced; `line` counts from 1.
std::string with(int line, const std::string& text) {
  std::string all = kGood;
  size_t begin = 0;
  for (int n = 1; n < line; ++n) begin = all.find('\n', begin) + 1;
  return all.replace(begin, all.find('\n', begin) - begin, text);
}

TEST(Recipe, ListsOfSettingsAreCrossed) {
  const auto recipe = parse(kGood, "/r/good.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->name, "good");
  ASSERT_EQ(recipe->contenders.size(), 4u);
  EXPECT_EQ(recipe->contenders[0].id, "torch");
  EXPECT_EQ(recipe->contenders[3].id, "torch[compile=default,channels_last]");
  EXPECT_EQ(recipe->contenders[3].file, "train_torch_compile_default_channels_last.py");
  EXPECT_EQ(recipe->training.optimizer.stated, (std::set<std::string>{"kind", "lr"}));
}

TEST(Recipe, ControlsAreCrossedLikeSettings) {
  const auto recipe =
      parse(with(4,
                 "{ framework = \"torch\", compile = [\"off\", \"default\"], allocator = [\"default\", "
                 "\"tuned\"], threads = 1, pin = \"0\" }"),
            "/r/good.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  ASSERT_EQ(recipe->contenders.size(), 4u);
  EXPECT_EQ(recipe->contenders[0].id, "torch[allocator=default,threads=1,pin=0]");
  EXPECT_EQ(recipe->contenders[3].id, "torch[compile=default,allocator=tuned,threads=1,pin=0]");
  EXPECT_EQ(recipe->contenders[3].controls,
            (std::map<std::string, std::string>{{"allocator", "tuned"}, {"pin", "0"}, {"threads", "1"}}));
  EXPECT_FALSE(recipe->contenders[3].settings.contains("allocator")) << "the framework never sees it";
  std::set<std::string> files;
  for (const Contender& c : recipe->contenders) files.insert(c.file);
  EXPECT_EQ(files.size(), 4u);
}

constexpr const char* kPredict = R"(scenario = "predict"
workload = "mlp_small"
contenders = [
  { framework = "torch", compile = "default" },
  { framework = "onnxruntime", optimization = ["basic", "all"], io_binding = true },
]
)";

TEST(Recipe, PredictNeedsNoOptimizer) {
  const auto recipe = parse(kPredict, "/r/predict.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_TRUE(recipe->training.predicts());
  ASSERT_EQ(recipe->contenders.size(), 3u);
  EXPECT_EQ(recipe->contenders[0].file, "predict_torch_compile_default.py");
  EXPECT_EQ(recipe->contenders[1].id, "onnxruntime[optimization=basic,io_binding]");
  EXPECT_TRUE(parse(std::string(kPredict) + "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n", "r.toml"))
      << "a training recipe becomes one that predicts by a single line";
  EXPECT_FALSE(parse(kGood, "/r/good.toml")->training.predicts());
}

TEST(Recipe, RefusesWhatAScenarioLacks) {
  const auto refused = [](const std::string& text) {
    const auto recipe = parse(text, "r.toml");
    return recipe ? "" : recipe.error().text();
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  holds(refused(with(4, "  { framework = \"onnxruntime\" },")), "ONNX Runtime has no scenario 'train'");
  holds(refused(with(4, "  { framework = \"onnxruntime\" },")), "r.toml:4");
  const std::string head = "scenario = \"predict\"\nworkload = \"mlp_small\"\ncontenders = [";
  holds(refused(head + "{ framework = \"jax\", donate = false }]\n"),
        "setting 'donate' of jax has no effect in scenario 'predict'");
  holds(refused("scenario = \"fit\"\nworkload = \"mlp_small\"\n"), "'scenario' cannot be 'fit'");
}

TEST(Recipe, RemembersWhichRaceKeysAreStated) {
  const auto recipe = parse(std::string(kGood) + "[race]\nallocator = \"jemalloc\"\nthreads = 1\n", "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->race.stated, (std::set<std::string>{"allocator", "threads"}));
  EXPECT_EQ(recipe->race.allocator, "jemalloc");
}

TEST(Recipe, KnowsItsDeviceAndTheSamplersPace) {
  const auto recipe = parse(std::string(kGood) + "[race]\ndevice = \"cuda\"\nsample_ms = 10\n", "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->race.device, "cuda");
  EXPECT_EQ(recipe->race.sample_ms, 10);
  EXPECT_EQ(parse(std::string(kGood) + "[race]\nsample_ms = 0\n", "r.toml")->race.sample_ms, 0);
  EXPECT_EQ(parse(kGood, "r.toml")->race.sample_ms, 100);
}

TEST(Recipe, KnowsWhatTheMachineCosts) {
  const auto recipe = parse(
      std::string(kGood) + "[cost]\nper_hour = 2.5\ncurrency = \"EUR\"\ngrams_per_kwh = 380\n", "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->cost, (Cost{2.5, "EUR", 380}));
  EXPECT_EQ(parse(kGood, "r.toml")->cost, Cost{});
  EXPECT_FALSE(parse(std::string(kGood) + "[cost]\nper_hour = -1\n", "r.toml"));
  EXPECT_FALSE(parse(std::string(kGood) + "[cost]\nper_hour = 0\n", "r.toml"));
}

TEST(Recipe, ReadsWhichLatenciesAreAskedFor) {
  const auto recipe = parse(std::string(kPredict) +
                                "[latency]\narrivals_per_second = [50, 20.5, 50]\nrequests = 300\n"
                                "percentiles = 99\nseconds = 10\n",
                            "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(
      recipe->latency,
      (Latency{.arrivals_per_second = {20.5, 50}, .requests = 300, .seconds = 10, .percentiles = {99}}));
  EXPECT_TRUE(recipe->latency.wanted());
  EXPECT_FALSE(parse(kPredict, "r.toml")->latency.wanted());
  EXPECT_EQ(parse(std::string(kPredict) + "[latency]\narrivals_per_second = 7\n", "r.toml")
                ->latency.arrivals_per_second,
            std::vector<double>{7});
}

TEST(Recipe, ReadsWhichBatchesAreSearched) {
  const auto search = [](const std::string& text) {
    const auto recipe = parse(kGood + text, "r.toml");
    EXPECT_TRUE(recipe) << recipe.error().text();
    return recipe ? recipe->search : Search{};
  };
  EXPECT_FALSE(search("").wanted);
  EXPECT_EQ(search("[search]\n"), (Search{.wanted = true})) << "doubled, without another word";
  EXPECT_TRUE(search("[search]\n").doubles());
  EXPECT_EQ(search("[search]\nbatches = [64, 16, 64]\nprocesses = 3\n"),
            (Search{.wanted = true, .batches = {16, 64}, .processes = 3}));
  EXPECT_EQ(search("[search]\nleast = 8\nmost = 128\n"), (Search{.wanted = true, .least = 8, .most = 128}));
}

TEST(Recipe, ReadsATarget) {
  const auto target = [](const std::string& text) {
    const auto recipe = parse(kGood + text, "r.toml");
    EXPECT_TRUE(recipe) << recipe.error().text();
    return recipe ? recipe->target : Target{};
  };
  EXPECT_FALSE(target("").wanted());
  EXPECT_EQ(target("[target]\naccuracy = 0.97\n"), (Target{.accuracy = 0.97}));
  EXPECT_EQ(target("[target]\nloss = -2\nseeds = 9\nrows = 10\nevery = 3\nepochs = 0.5\nreferee = false\n"),
            (Target{.loss = -2, .seeds = 9, .rows = 10, .every = 3, .epochs = 0.5, .referee = false}));
}

TEST(Recipe, ReadsWholeTrainings) {
  const auto fit = [](const std::string& text) {
    const auto recipe = parse(kGood + text, "r.toml");
    EXPECT_TRUE(recipe) << recipe.error().text();
    return recipe ? recipe->fit : Fit{};
  };
  EXPECT_FALSE(fit("").wanted());
  EXPECT_EQ(fit("[fit]\nepochs = 41\n"), (Fit{.epochs = 41}));
  EXPECT_EQ(fit("[fit]\nepochs = 2\nseeds = 3\nrows = 0\n"), (Fit{.epochs = 2, .seeds = 3, .rows = 0}));
  EXPECT_EQ(fit("[fit]\nepochs = 2\nrows = 9\npatience = 3\nmin_delta = 1e-3\n"),
            (Fit{.epochs = 2, .rows = 9, .patience = 3, .min_delta = 1e-3}));
}

TEST(Recipe, ReadsWhatSurroundsAnUpdate) {
  const auto optimizer = [](const std::string& text) {
    const auto recipe = parse(kGood + text, "r.toml");
    EXPECT_TRUE(recipe) << recipe.error().text();
    return recipe ? recipe->training.optimizer : ir::Optimizer{};
  };
  EXPECT_FALSE(optimizer("").schedule.varies());
  EXPECT_FALSE(optimizer("").clips());
  const ir::Optimizer o = optimizer(
      "clip_norm = 1\nema = 0.99\nweight_decay = 0.1\nno_decay = [\"bias\", \"fc1.w*\"]\n[schedule]\n"
      "kind = \"cosine\"\nwarmup_steps = 5\nwarmup_from = 0.1\nsteps = 100\nfinal = 0.01\n");
  EXPECT_EQ(o.schedule, (ir::Schedule{.kind = ir::ScheduleKind::kCosine,
                                      .warmup_steps = 5,
                                      .warmup_from = 0.1,
                                      .steps = 100,
                                      .final = 0.01}));
  EXPECT_EQ(o.clip_norm, 1);
  EXPECT_EQ(o.ema, 0.99);
  EXPECT_EQ(o.no_decay, (std::set<int>{0, 1, 3}));
  EXPECT_EQ(optimizer("[schedule]\nkind = \"step\"\nevery = 7\n").schedule,
            (ir::Schedule{.kind = ir::ScheduleKind::kStep, .every = 7, .step_factor = 0.1}));
}

// Before anything else reads the workload: [optimizer] names its parameters.
TEST(Recipe, LoraIsAppliedToTheWorkload) {
  const std::string lora = "[lora]\nrank = 4\ntargets = [\"fc1\", \"fc?.weight\"]\n";
  const auto recipe = parse(with(8, "lr = 1\nweight_decay = 0.1\nno_decay = \"*lora_B*\"") + lora, "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  const ir::Workload& w = recipe->workload;
  EXPECT_EQ(w.parameter_count(), 4 * (100 + 128) + 4 * (128 + 10));
  EXPECT_EQ(w.frozen_count(), 100 * 128 + 128 + 128 * 10 + 10);
  EXPECT_FALSE(w.has(ir::Op::kMul)) << "alpha is the rank where none is stated";
  EXPECT_EQ(recipe->training.optimizer.no_decay,
            (std::set<int>{w.find_parameter("fc1_lora_B.weight"), w.find_parameter("fc2_lora_B.weight")}));
  const auto predicts = parse(kPredict + lora, "r.toml");
  ASSERT_TRUE(predicts) << predicts.error().text();
  EXPECT_EQ(predicts->workload, w);
  EXPECT_TRUE(parse_recorded(recipe->text, "r.toml")->workload.nodes.empty());
}

TEST(Recipe, ReadsDataOfTheUsersOwn) {
  const auto recipe =
      parse(with(2, R"(data = { kind = "csv", path = "t.csv", categories = "class", delimiter = ";",)"
                    R"( inputs = { x = ["a", "b"], y = "class" } })"),
            "/r/csv.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->data.path, "/r/t.csv");
  EXPECT_EQ(recipe->data.inputs.at("x"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(recipe->data.inputs.at("y"), std::vector<std::string>{"class"});
  EXPECT_EQ(recipe->data.categories, std::vector<std::string>{"class"});
  EXPECT_EQ(recipe->data.delimiter, ";");
  const auto npy =
      parse(with(2, R"(data = { kind = "npy", inputs = { x = "x.npy", y = "/d/y.npy" } })"), "/r/npy.toml");
  ASSERT_TRUE(npy) << npy.error().text();
  EXPECT_EQ(npy->data.inputs.at("x"), std::vector<std::string>{"/r/x.npy"});
  EXPECT_EQ(npy->data.inputs.at("y"), std::vector<std::string>{"/d/y.npy"});
}

TEST(ParseCpus, TakesListsAndRanges) {
  EXPECT_EQ(parse_cpus("0").value(), (std::vector<int>{0}));
  EXPECT_EQ(parse_cpus("5,0,2-3,3").value(), (std::vector<int>{0, 2, 3, 5}));
  for (const char* bad : {"", "a", "1,", "3-2", "-1", "1-", "0 1", "0-99999999999", "4096", "0;1"}) {
    EXPECT_FALSE(parse_cpus(bad)) << bad;
  }
}

std::string many(int times, const std::string& text) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Dots within texts and comments part no key.
TEST(Recipe, DotsOfTextsAreNoParts) {
  const std::string dots(200, '.'), one = "\"", three = "\"\"\"", plain = "'''";
  for (const std::string& line :
       {"# " + dots, "name = " + one + dots + one, "name = '" + dots + "'",
        "name = " + three + dots + "\n" + three, "name = " + one + "\\" + one + dots + one,
        "name = " + plain + "\n" + dots + plain}) {
    const auto recipe = parse(with(2, line), "/r/r.toml");
    ASSERT_TRUE(recipe) << line << recipe.error().text();
  }
}

struct Bad {
  const char* what;
  std::string text;
  std::string where;
  std::string message;
  std::string remedy;
};

const Bad kBad[] = {
    {"not TOML", with(2, "batch = = 3"), "r.toml:2", "not valid TOML", "docs/recipe.md"},
    {"a brace in an array", with(2, "batch = [3,}"), "r.toml:2", "not valid TOML", "docs/recipe.md"},
    {"unknown key", with(2, "bach = 50"), "r.toml:2", "unknown key 'bach'", "did you mean 'batch'?"},
    {"a key with a mark that turns the text around", with(2, "\"\u202ebatch\" = 50"), "r.toml:2",
     "unknown key", "characters that cannot be seen: write 'batch' anew"},
    {"unknown section key", with(8, "learning = 1"), "r.toml:8", "unknown key 'learning' in [optimizer]",
     "one of:"},
    {"a key of many parts", with(2, "[" + many(100'000, "a.") + "a]"), "r.toml:2",
     "more than 32 dotted parts", "docs/recipe.md"},
    {"such a key within tables", with(2, "x = { y = { " + many(100, "a.") + "a = 1 } }"), "r.toml:2",
     "more than 32 dotted parts", ""},
    {"such a key after quotes that a text ends with",
     with(2, "x = { y = \"\"\"a\"\"\"\"\", " + many(100, "a.") + "a = 1 }"), "r.toml:2",
     "more than 32 dotted parts", ""},
    {"an integer that no real number holds", with(2, "margin = 9007199254740993"), "r.toml:2",
     "'margin' is 9007199254740992, outside its range", "at most"},
    {"one that no integer may be", with(2, "batch = 9007199254740993"), "r.toml:2", "outside its range",
     "at most"},
    {"wrong type", with(2, "batch = \"many\""), "r.toml:2", "'batch' must be an integer",
     "for example batch = 32"},
    {"out of range", with(2, "batch = 0"), "r.toml:2", "'batch' is 0, outside its range", "at least 1"},
    {"not a number", with(2, "margin = nan"), "r.toml:2", "'margin' is nan", "above 0"},
    {"margin at its open end", with(2, "margin = 0.0"), "r.toml:2", "outside its range", "above 0"},
    {"unknown workload", with(1, "workload = \"mlp_smal\""), "r.toml:1", "unknown workload 'mlp_smal'",
     "did you mean 'mlp_small'?"},
    {"missing IR file", with(1, "workload = \"none.ir\""), "r.toml:1", "cannot open", "name an IR file"},
    {"unknown framework", with(4, "{ framework = \"pytorch\" }"), "r.toml:4", "unknown framework 'pytorch'",
     "did you mean 'torch'?"},
    {"unknown setting", with(4, "{ framework = \"torch\", compil = \"off\" }"), "r.toml:4",
     "torch has no setting 'compil'", "did you mean 'compile'?"},
    {"setting of another framework",
     with(4, "{ framework = \"libtorch\", precision = \"float16\", scaler = true }"), "r.toml:4",
     "libtorch has no setting 'scaler'", "leave it out; torch"},
    {"setting that a framework cannot have", with(4, "{ framework = \"libtorch\", devices = 2 }"), "r.toml:4",
     "libtorch has no setting 'devices': torch's packages lack gloo's headers", "torch"},
    {"unknown value", with(4, "{ framework = \"torch\", compile = \"max\" }"), "r.toml:4",
     "setting 'compile' of torch cannot be 'max'", "one of:"},
    {"unknown allocator", with(4, "{ framework = \"torch\", allocator = \"jmalloc\" }"), "r.toml:4",
     "setting 'allocator' of torch cannot be 'jmalloc'", "did you mean 'jemalloc'?"},
    {"no threads", with(4, "{ framework = \"torch\", threads = 0 }"), "r.toml:4",
     "must be a positive integer", ""},
    {"bad pin", with(4, "{ framework = \"torch\", pin = \"1-0\" }"), "r.toml:4", "'pin' cannot be '1-0'",
     "CPUs such as"},
    {"bad pin of all", std::string(kGood) + "[race]\npin = \"all\"\n", "r.toml:10", "'pin' cannot be 'all'",
     "CPUs such as"},
    {"negative cooldown", std::string(kGood) + "[race]\ncooldown_seconds = -1\n", "r.toml:10",
     "'race.cooldown_seconds' is -1", "at least 0"},
    {"sampling too fast", std::string(kGood) + "[race]\nsample_ms = 9\n", "r.toml:10",
     "'race.sample_ms' cannot be 9", "from 10 to 1000"},
    {"no such device", with(4, "{ framework = \"torch\", device = \"gpu\" }"), "r.toml:4",
     "setting 'device' of torch cannot be 'gpu'", "cpu"},
    {"negative workers", with(4, "{ framework = \"torch\", input = \"dataset\", workers = -1 }"), "r.toml:4",
     "setting 'workers' of torch must be an integer of 0 or more, is '-1'", ""},
    {"unknown pipeline", with(4, "{ framework = \"keras\", input = \"tfdata\" }"), "r.toml:4",
     "setting 'input' of keras cannot be 'tfdata'", "did you mean 'tf_data'?"},
    {"unknown precision", with(4, "{ framework = \"jax\", precision = \"bf16\" }"), "r.toml:4",
     "setting 'precision' of jax cannot be 'bf16'", "bfloat16"},
    {"order of the as-is track", with(2, "track = \"as-is\"\ndata.shuffle = true"), "r.toml:3",
     "every framework shuffles in its own way", "remove data.shuffle"},
    {"weights of the as-is track", with(2, "track = \"as-is\"\nweights = \"w.safetensors\""), "r.toml:3",
     "draws its own initial weights", "remove weights"},
    {"missing published table", with(2, "published.file = \"none.csv\""), "r.toml:2", "cannot open",
     "relative to"},
    {"same twice", with(4, "{ framework = \"torch\" }, { framework = \"torch\" }"), "r.toml:4",
     "contender 'torch' is named twice", "remove one"},
    {"no contender", with(3, "contenders = []\nx = ["), "r.toml:4", "", ""},
    {"environment without a script", with(4, "{ framework = \"torch\", environment = \"torch_libraries\" }"),
     "r.toml:4", "torch has no setting 'environment'", ""},
    {"missing script", with(4, "{ script = \"mine.py\" }"), "r.toml:4", "there is no script", "relative to"},
    {"wrong loss", with(2, "loss = \"mse\""), "r.toml:2", "loss 'mse' does not fit", "remove `loss`"},
    {"key of another optimizer", with(8, "lr = 1\nrho = 0.9"), "r.toml:9",
     "'optimizer.rho' has no effect on adam", "remove it"},
    {"missing key", with(8, ""), "r.toml:1", "'optimizer.lr' is missing", "add `lr = ...` under [optimizer]"},
    {"data without path", with(2, "data.kind = \"file\""), "r.toml:2", "needs data.path", "add path"},
    {"folder without path", with(2, "data.kind = \"image folder\""), "r.toml:2", "needs data.path",
     "add path"},
    {"table without columns", with(2, "data = { kind = \"csv\", path = \"a.csv\" }"), "r.toml:2",
     "data.kind = \"csv\" needs data.inputs", "add inputs = {"},
    {"an unknown input", with(2, "data = { kind = \"npy\", inputs = { z = \"a.npy\", y = \"b.npy\" } }"),
     "r.toml:2", "workload 'mlp_small' has no input 'z'", "did you mean 'x'"},
    {"two files for an input", with(2, "data = { kind = \"npy\", inputs = { x = [\"a\", \"b\"] } }"),
     "r.toml:2", "data.inputs names 2 things for 'x'", "only a CSV file"},
    {"inputs that are no table", with(2, "data = { kind = \"npy\", inputs = \"a.npy\" }"), "r.toml:2",
     "'data.inputs' must be a table of texts", "for example inputs = { x ="},
    {"inputs of numbers", with(2, "data = { kind = \"npy\", inputs = { x = 3 } }"), "r.toml:2",
     "'data.inputs' must be a table of texts", ""},
    {"a resize of tables", with(2, "data = { resize = \"crop\" }"), "r.toml:2",
     "'data.resize' has no effect on data of kind 'synthetic'", "remove it"},
    {"a long delimiter",
     with(2, "data = { kind = \"csv\", path = \"a\", inputs = { x = \"a\" }, delimiter = \"::\" }"),
     "r.toml:2", "'data.delimiter' must be one character", "for example"},
    {"categories of numbers",
     with(2, "data = { kind = \"csv\", path = \"a\", inputs = { x = \"a\" }, categories = [1] }"), "r.toml:2",
     "'data.categories' must be text or a list of texts", "for example"},
    {"no target", std::string(kGood) + "[target]\nseeds = 3\n", "r.toml:9", "either an accuracy or a loss",
     "for example accuracy = 0.97"},
    {"a target of predictions", std::string(kPredict) + "[target]\nloss = 1\n", "r.toml:7",
     "[target] is about training", "remove [target]"},
    {"an accuracy in per cent", std::string(kGood) + "[target]\naccuracy = 97\n", "r.toml:10",
     "'target.accuracy' is 97, outside its range", "at most 1"},
    {"whole trainings of predictions", std::string(kPredict) + "[fit]\nepochs = 1\n", "r.toml:7",
     "[fit] is about training", "remove [fit]"},
    {"no epochs", std::string(kGood) + "[fit]\nepochs = 0\n", "r.toml:10",
     "'fit.epochs' is 0, outside its range", "at least 1"},
    {"epochs unsaid", std::string(kGood) + "[fit]\nseeds = 2\n", "r.toml:1", "'fit.epochs' is missing",
     "add `epochs = ...` under [fit]"},
    {"patience without rows", std::string(kGood) + "[fit]\nepochs = 2\npatience = 2\n", "r.toml:11",
     "fit.patience watches the loss of held-out rows", "set fit.rows"},
    {"patience that never ends", std::string(kGood) + "[fit]\nepochs = 2\nmin_delta = 0.1\n", "r.toml:11",
     "'fit.min_delta' has no effect without fit.patience", "set fit.patience"},
    {"negative patience", std::string(kGood) + "[fit]\nepochs = 2\npatience = -1\n", "r.toml:11",
     "'fit.patience' is -1", "at least 0"},
    {"no kind of schedule", std::string(kGood) + "[schedule]\nsteps = 10\n", "r.toml:1",
     "'schedule.kind' is missing", "add `kind = ...` under [schedule]"},
    {"an unknown schedule", std::string(kGood) + "[schedule]\nkind = \"cosin\"\n", "r.toml:10",
     "'schedule.kind' cannot be 'cosin'", "did you mean 'cosine'"},
    {"a cosine without end", std::string(kGood) + "[schedule]\nkind = \"cosine\"\n", "r.toml:10",
     "schedule.kind = \"cosine\" needs schedule.steps", "add steps = 1000"},
    {"steps without length", std::string(kGood) + "[schedule]\nkind = \"step\"\n", "r.toml:10",
     "schedule.kind = \"step\" needs schedule.every", "add every = 1000"},
    {"a step of a cosine", std::string(kGood) + "[schedule]\nkind = \"cosine\"\nsteps = 9\nevery = 3\n",
     "r.toml:12", "'schedule.every' has no effect on kind = \"cosine\"", "remove it"},
    {"the end of steps", std::string(kGood) + "[schedule]\nkind = \"step\"\nevery = 9\nfinal = 0.1\n",
     "r.toml:12", "'schedule.final' has no effect on kind = \"step\"", "remove it"},
    {"no schedule at all", std::string(kGood) + "[schedule]\nkind = \"constant\"\n", "r.toml:10",
     "without a warm-up is no schedule", "set schedule.warmup_steps"},
    {"a start without warm-up",
     std::string(kGood) + "[schedule]\nkind = \"linear\"\nsteps = 9\nwarmup_from = 0.5\n", "r.toml:12",
     "'schedule.warmup_from' has no effect without a warm-up", "set schedule.warmup_steps"},
    {"a schedule of no steps", std::string(kGood) + "[schedule]\nkind = \"linear\"\nsteps = 0\n", "r.toml:11",
     "'schedule.steps' is 0, outside its range", "at least 1"},
    {"half a step", std::string(kGood) + "[schedule]\nkind = \"linear\"\nsteps = 2.5\n", "r.toml:11",
     "'schedule.steps' must be an integer", ""},
    {"a factor that raises", std::string(kGood) + "[schedule]\nkind = \"step\"\nevery = 9\nfactor = 1.5\n",
     "r.toml:12", "'schedule.factor' is 1.5, outside its range", "at most 1"},
    {"both kinds of clipping", with(8, "lr = 1\nclip_norm = 1\nclip_value = 2"), "r.toml:10",
     "'optimizer.clip_norm' and 'optimizer.clip_value' exclude each other", "remove one"},
    {"a negative limit", with(8, "lr = 1\nclip_norm = -1"), "r.toml:9", "'optimizer.clip_norm' is -1",
     "at least 0"},
    {"an average that never moves", with(8, "lr = 1\nema = 1"), "r.toml:9", "'optimizer.ema' is 1", ""},
    {"no decay to spare", with(8, "lr = 1\nno_decay = \"bias\""), "r.toml:9",
     "'optimizer.no_decay' has no effect without weight decay", "set optimizer.weight_decay"},
    {"a pattern of nothing", with(8, "lr = 1\nweight_decay = 0.1\nno_decay = [\"bias\", \"conv*\"]"),
     "r.toml:10", "'conv*' of optimizer.no_decay names no parameter of 'mlp_small'", "fc1.weight"},
    {"norms of a network without", with(8, "lr = 1\nweight_decay = 0.1\nno_decay = \"norm\""), "r.toml:10",
     "'norm' of optimizer.no_decay names no parameter", "\"bias\""},
    {"patterns that are numbers", with(8, "lr = 1\nweight_decay = 0.1\nno_decay = [1]"), "r.toml:10",
     "'optimizer.no_decay' must be text or a list of texts", ""},
    {"LoRA of nothing", std::string(kGood) + "[lora]\nrank = 0\ntargets = \"fc1\"\n", "r.toml:10",
     "'lora.rank' is 0", "at least 1"},
    {"LoRA without targets", std::string(kGood) + "[lora]\nrank = 4\n", "r.toml:1",
     "'lora.targets' is missing", "under [lora]"},
    {"a target that is none", std::string(kGood) + "[lora]\nrank = 4\ntargets = \"fc\"\n", "r.toml:9",
     "'fc' of lora.targets names no linear layer of 'mlp_small'", "did you mean 'fc1'?"},
    {"a negative scale", std::string(kGood) + "[lora]\nrank = 4\nalpha = -1\ntargets = \"fc1\"\n",
     "r.toml:11", "'lora.alpha' is -1", "above 0"},
    {"a batch of zero", std::string(kGood) + "[search]\nbatches = [8, 0]\n", "r.toml:10",
     "'search.batches' is 0, outside its range", "at least 1"},
    {"a batch that is none", std::string(kGood) + "[search]\nbatches = [8, 1.5]\n", "r.toml:10",
     "'search.batches' must be an integer or a list of integers", "for example batches = [10, 20]"},
    {"both kinds of search", std::string(kGood) + "[search]\nbatches = 8\nmost = 64\n", "r.toml:11",
     "search.most has no effect together with search.batches", "remove one"},
    {"no amount of memory", std::string(kGood) + "[largest_batch]\nmemory = \"4 gigs\"\n", "r.toml:10",
     "'4 gigs' is not an amount of memory", "for example \"4 GiB\""},
    {"no memory at all", std::string(kGood) + "[largest_batch]\nmemory = \"0 MiB\"\n", "r.toml:10",
     "is not an amount of memory", "available"},
    {"scaling of one device", std::string(kGood) + "[scaling]\n", "r.toml:9",
     "[scaling] is about contenders on several devices, and there is none", "give one `devices = 2`"},
    {"scaling of predictions", std::string(kPredict) + "[scaling]\n",
     "r.toml:", "[scaling] is about training", "remove [scaling]"},
    {"search without room", std::string(kGood) + "[search]\nleast = 8\nmost = 4\n", "r.toml:10",
     "search.least = 8 is above search.most = 4", "set search.most"},
    {"latency of training", std::string(kGood) + "[latency]\narrivals_per_second = 50\n", "r.toml:10",
     "[latency] is about predictions", "add `scenario = \"predict\"`"},
    {"latency without rate", std::string(kPredict) + "[latency]\nrequests = 50\n", "r.toml:1",
     "'latency.arrivals_per_second' is missing", "add `arrivals_per_second = ...` under [latency]"},
    {"no rate in the list", std::string(kPredict) + "[latency]\narrivals_per_second = []\n", "r.toml:8",
     "must be a number or a list of numbers", "for example"},
    {"a rate that is none", std::string(kPredict) + "[latency]\narrivals_per_second = [10, \"a\"]\n",
     "r.toml:8", "must be a number or a list of numbers", "for example"},
    {"a rate of zero", std::string(kPredict) + "[latency]\narrivals_per_second = [10, 0]\n", "r.toml:8",
     "'latency.arrivals_per_second' is 0, outside its range", "above 0"},
    {"too few arrivals", std::string(kPredict) + "[latency]\narrivals_per_second = 0.1\n", "r.toml:8",
     "0.1 arrivals a second are 3 requests in 30 s", "set latency.seconds to 200 or more"},
    {"a percentile of 100",
     std::string(kPredict) + "[latency]\narrivals_per_second = 10\npercentiles = [50, 100]\n", "r.toml:9",
     "'latency.percentiles' is 100, outside its range", "at most 99.9999"},
    {"wrong section type", with(2, "race = 3"), "r.toml:2", "'race' must be a table", "write [race]"},
};

TEST(Recipe, ErrorsNameFileLineKeyAndRemedy) {
  for (const Bad& c : kBad) {
    SCOPED_TRACE(c.what);
    const auto recipe = parse(c.text, "r.toml");
    ASSERT_FALSE(recipe);
    EXPECT_TRUE(recipe.error().where.starts_with(c.where)) << recipe.error().text();
    EXPECT_NE(recipe.error().message.find(c.message), std::string::npos) << recipe.error().text();
    EXPECT_NE(recipe.error().remedy.find(c.remedy), std::string::npos) << recipe.error().text();
  }
}

TEST(Recipe, FrameworksAreImportedInManyWays) {
  const auto framework = [](const std::string& source) -> std::string {
    const emit::Framework* found = framework_of(source);
    return found == nullptr ? "" : found->name;
  };
  EXPECT_EQ(framework("import numpy as np, torch, torch.nn as nn\n"), "torch");
  EXPECT_EQ(framework("import os; import jax\n"), "jax");
  EXPECT_EQ(framework("try:\n    import jax.numpy as jnp\nexcept ImportError:\n    raise\n"), "jax");
  EXPECT_EQ(framework("import numpy as np, keras\r\n"), "keras");
  EXPECT_EQ(framework("# import torch\nimport torchmetrics\nimport my.torch\n"), "");
  EXPECT_EQ(imported_modules("from .model import Net  # mine"), std::vector<std::string>{".model"});
}

TEST(Recipe, AScriptsFrameworkIsReadFromItsImports) {
  const testing::TestFolder dir;
  ASSERT_TRUE(write_file(dir / "mine.py", "import torch\nfrom torch import nn\n"));
  const auto recipe = parse(with(4, "{ framework = \"torch\" }, { script = \"mine.py\" }"), dir / "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->contenders[1].framework, "torch");
  EXPECT_EQ(recipe->contenders[1].id, "torch:mine.py");
  EXPECT_EQ(recipe->contenders[1].script, fs::canonical(dir / "mine.py"));
  EXPECT_EQ(recipe->contenders[1].environment, "torch");
  const char* elsewhere =
      "{ framework = \"torch\" }, { script = \"mine.py\", environment = \"torch_libraries\" }";
  const auto library = parse(with(4, elsewhere), dir / "r.toml");
  ASSERT_TRUE(library) << library.error().text();
  EXPECT_EQ(library->contenders[0].environment, "torch");
  EXPECT_EQ(library->contenders[1].environment, "torch_libraries");
  ASSERT_TRUE(write_file(dir / "old.py", "import tensorflow as tf\nimport tf_keras as keras\n"));
  const auto old = parse(with(4, "{ framework = \"torch\" }, { script = \"old.py\" }"), dir / "r.toml");
  ASSERT_TRUE(old) << old.error().text();
  EXPECT_EQ(old->contenders[1].framework, "keras2");
  // A Keras script sets its backend itself; what the recipe says comes first.
  for (const auto& [line, backend] : {std::pair{"os.environ[\"KERAS_BACKEND\"] = \"jax\"", "jax"},
                                      {"os.environ.setdefault('KERAS_BACKEND', 'torch')", "torch"},
                                      {"# os.environ[\"KERAS_BACKEND\"] = \"jax\"", "tensorflow"},
                                      {"backend = os.environ[\"KERAS_BACKEND\"]", "tensorflow"}}) {
    ASSERT_TRUE(write_file(dir / "k.py", fmt::format("import os\n{}\nimport keras\n", line)));
    const auto read = parse(with(4, "{ framework = \"torch\" }, { script = \"k.py\" }"), dir / "r.toml");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->contenders[1].settings.at("backend"), backend) << line;
    const auto stated = parse(
        with(4, "{ framework = \"torch\" }, { script = \"k.py\", backend = \"torch\" }"), dir / "r.toml");
    ASSERT_TRUE(stated) << stated.error().text();
    EXPECT_EQ(stated->contenders[1].settings.at("backend"), "torch") << line;
  }
  fs::remove_all(dir);
  // From a run's record the script may be gone.
  EXPECT_TRUE(parse_recorded(with(4, "{ framework = \"torch\", script = \"mine.py\" }"), dir / "r.toml"));
}

TEST(Recipe, ARecordedRecipeReadsNoFile) {
  const testing::TestFolder dir;
  ASSERT_TRUE(write_file(dir / "t.csv", "contender,seconds\ntorch,5\n"));
  ASSERT_TRUE(write_file(dir / "k.py", "import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n"));
  std::string text = with(4, "{ framework = \"torch\" }, { script = \"k.py\", jit = true }");
  text = "weights = \"w.safetensors\"\n" + text + "\n[published]\nfile = \"t.csv\"\n";
  const auto before = parse_recorded(text, dir / "r.toml");
  ASSERT_TRUE(before) << before.error().text();
  EXPECT_EQ(before->published.text, "");
  EXPECT_EQ(before->weights, fs::weakly_canonical(dir / "w.safetensors"));
  fs::remove_all(dir);
  const auto after = parse_recorded(text, dir / "r.toml");
  ASSERT_TRUE(after) << after.error().text();
  EXPECT_EQ(after->published.text, "");
  EXPECT_EQ(after->contenders, before->contenders);
}

TEST(Recipe, EveryShippedRecipeLoads) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(BAKEOFF_SOURCE_DIR) / "recipes")) {
    if (entry.path().extension() != ".toml") continue;
    const auto recipe = load(entry.path());
    EXPECT_TRUE(recipe) << entry.path() << ": " << recipe.error().text();
    ++count;
  }
  EXPECT_GE(count, 4);
}

// One value of a type that the key does not take.
std::string mistyped(const Key& key) {
  return key.kind == Kind::kWord || key.kind == Kind::kPath ? "{ a = 1 }" : "\"0.1\"";
}

// A recipe with this value of the key, and with what has to be there besides.
std::string recipe_with(const Key& key, const std::string& value) {
  std::string text;
  for (const std::string& section : sections()) {
    if (!section.empty() && section != "optimizer" && section != key.section) continue;
    if (!section.empty()) text += "[" + section + "]\n";
    for (const Key& other : keys()) {
      const bool same = other.section == key.section && other.name == key.name;
      if (other.section == section && (same || other.required))
        text += other.name + " = " + (same ? value : example_of(other)) + "\n";
    }
  }
  return text;
}

TEST(Schema, EveryKeyOfAWrongTypeGetsAnExampleThatIsRight) {
  const auto error_of = [](const std::string& text) {
    const toml::parse_result parsed = toml::parse(text);
    EXPECT_TRUE(parsed) << text;
    const auto checked = Reader(parsed.table(), "r.toml", false, false).check();
    return checked ? Error{} : checked.error();
  };
  for (const Key& key : keys()) {
    const Error wrong = error_of(recipe_with(key, mistyped(key)));
    const std::string name = (key.section.empty() ? "" : key.section + ".") + key.name;
    EXPECT_TRUE(wrong.message.starts_with("'" + name + "' must be ")) << name << ": " << wrong.text();
    const std::string begin = "for example " + key.name + " = ";
    ASSERT_TRUE(wrong.remedy.starts_with(begin) && wrong.remedy.size() > begin.size())
        << name << " needs example(...) in the schema: " << wrong.remedy;
    const Error still = error_of(recipe_with(key, wrong.remedy.substr(begin.size())));
    EXPECT_EQ(still.message, "") << name << ": " << still.text();
  }
}

TEST(Schema, IsJsonThatNamesEveryKey) {
  const auto schema = nlohmann::json::parse(json_schema(), nullptr, false);
  ASSERT_FALSE(schema.is_discarded());
  for (const Key& key : keys()) {
    const auto& home =
        key.section.empty() ? schema["properties"] : schema["properties"][key.section]["properties"];
    EXPECT_TRUE(home.contains(key.name)) << key.section << "." << key.name;
    EXPECT_NE(markdown().find("| `" + key.name + "` |"), std::string::npos);
  }
  EXPECT_TRUE(schema["properties"].contains("contenders"));
}

TEST(Schema, DocsAreMadeFromIt) {
  const auto docs = read_file(fs::path(BAKEOFF_SOURCE_DIR) / "docs/recipe.md");
  ASSERT_TRUE(docs) << docs.error().text();
  EXPECT_EQ(*docs, markdown()) << "run: bakeoff recipe --markdown > docs/recipe.md";
}

}  // namespace
}  // namespace bakeoff::recipe
