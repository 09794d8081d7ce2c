#include "recipe/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/testing.h"
#include "recipe/shipped.h"

namespace bakeoff::recipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBase = R"(workload = "mlp_small"
batch = 50
contenders = [{ framework = "torch", channels_last = [false, true] }, { framework = "jax" }]
[optimizer]
kind = "rmsprop"
lr = 0.1
rho = 0.8
)";

Recipe base() { return *parse(kBase, "/somewhere/r.toml"); }

std::vector<std::string> ids(const Recipe& recipe) {
  std::vector<std::string> all;
  for (const Contender& contender : recipe.contenders) all.push_back(contender.id);
  return all;
}

TEST(Changes, SetKeysOfEverySection) {
  const auto made = with_changes(base(), {{"batch", "64", "--batch 64"},
                                          {"race.threads", "2", "--set race.threads=2"},
                                          {"name", "7", "--set name=7"},
                                          {"data.path", "a b.npz", "--set"},
                                          {"data.kind", "npz", "--set"}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->training.batch, 64);
  EXPECT_EQ(made->race.threads, 2);
  EXPECT_TRUE(made->race.stated.contains("threads"));
  EXPECT_EQ(made->name, "7");
  EXPECT_EQ(made->data.path, fs::current_path() / "a b.npz");
  EXPECT_EQ(made->training.optimizer.rho, 0.8);
  // A run's record holds the changed text: what is read from it is the same.
  const auto recorded = parse_recorded(made->text, made->file);
  ASSERT_TRUE(recorded) << recorded.error().text();
  EXPECT_EQ(recorded->training.batch, 64);
  EXPECT_EQ(recorded->contenders, made->contenders);
  EXPECT_THAT(made->text, HasSubstr("--set race.threads=2"));
}

TEST(Changes, AnEmptyValueRemovesAKeyAndTheOrderOfOptionsIsFree) {
  const auto made = with_changes(base(), {{"optimizer.kind", "sgd", "--set optimizer.kind=sgd"},
                                          {"optimizer.rho", "", "--set optimizer.rho="}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->training.optimizer.kind, ir::OptimizerKind::kSgd);
}

TEST(Changes, FrameworksAreKeptOrAdded) {
  const auto of = [](const char* names) {
    return with_changes(base(), {{kFrameworks, names, "--frameworks"}});
  };
  EXPECT_THAT(ids(*of("torch")), ElementsAre("torch", "torch[channels_last]"));
  EXPECT_THAT(ids(*of("jax, tensorflow")), ElementsAre("jax", "tensorflow"));
  const auto keras = of("keras,keras,jax");
  ASSERT_TRUE(keras) << keras.error().text();
  EXPECT_THAT(ids(*keras), ElementsAre("jax", HasSubstr("keras")));
}

// What stays of the text: all but the values.
struct Edit {
  Change change;
  const char* before;
  const char* after;
};
const std::string kRest = "workload = \"mlp_small\"\ncontenders = [{ framework = \"torch\" }]\n";
const std::string kAdam = "[optimizer]\nkind = \"adam\"\nlr = 0.1\n";
const Edit kEdits[] = {
    {{"batch", "64", "--batch 64"}, "batch = 50  # rows\n", "batch = 64  # rows\n"},
    {{"batch", "64", "--batch 64"}, "# ünï\n\n", "# ünï\n\nbatch = 64\n"},
    {{"margin", "0.05", "--set"}, "margin = 0.1 # \n", "margin = 0.05 # \n"},
    {{"name", "a \"b\"", "--set"}, "name = \"ü\"  # ü\n", "name = 'a \"b\"'  # ü\n"},
    {{"batch", "", "--set"}, "# one\nbatch = 50  # rows\n# two\n", "# one\n# two\n"},
};

TEST(Changes, CommentsAndOrderStay) {
  for (const Edit& edit : kEdits) {
    const auto read = parse(edit.before + kRest + kAdam, "r.toml");
    ASSERT_TRUE(read) << read.error().text();
    const auto made = with_changes(*read, {edit.change});
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_TRUE(made->text.ends_with("\n" + (edit.after + kRest + kAdam))) << made->text;
  }
  const auto sections = with_changes(
      base(), {{"race.threads", "2", ""}, {"optimizer.eps", "1e-5", ""}, {"race.pin", "none", ""}});
  ASSERT_TRUE(sections) << sections.error().text();
  EXPECT_THAT(sections->text, HasSubstr("[optimizer]\neps = 1e-05\nkind"));
  EXPECT_TRUE(sections->text.ends_with("\n\n[race]\npin = 'none'\nthreads = 2\n")) << sections->text;
  const auto dotted = parse("race.threads = 1\ndata = { samples = 10 }\n" + kRest + kAdam, "r.toml");
  ASSERT_TRUE(dotted) << dotted.error().text();
  const auto anew = with_changes(
      *dotted, {{"race.live", "3", ""}, {"data.shuffle", "true", ""}, {"race.threads", "3", ""}});
  ASSERT_TRUE(anew) << anew.error().text();
  EXPECT_EQ(anew->race.live, 3);
  EXPECT_EQ(anew->race.threads, 3);
  EXPECT_TRUE(anew->data.shuffle);
}

struct BadChange {
  Change change;
  const char* message;
  const char* remedy;
};
const BadChange kBadChanges[] = {
    {{"batch", "0", "--batch 0"}, "--batch 0: 'batch' is 0, outside its range", "at least 1"},
    {{"batch", "32,64", "--batch 32,64"},
     "--batch 32,64: 'batch' must be an integer",
     "--set 'search.batches=[32,64]'"},
    {{"batch", "many", "--batch many"}, "--batch many: 'batch' must be an integer", "for example batch = 32"},
    {{"optimizer.lr", "x", "--lr x"}, "--lr x: 'optimizer.lr' must be a number", "for example lr = 0.01"},
    {{"race.thread", "2", "--set"}, "unknown key 'race.thread'", "did you mean 'race.threads'?"},
    {{"threads", "2", "--set"}, "unknown key 'threads'", "did you mean 'race.threads'?"},
    {{"seed", "1\nbatch = 3", "--set"}, "'seed' must be an integer", "for example seed = 1"},
    {{kFrameworks, "torhc", "--frameworks torhc"},
     "--frameworks torhc: unknown framework 'torhc'",
     "'torch'"},
    {{kFrameworks, "", "--frameworks"}, "unknown framework ''", "one of"},
    {{kFrameworks, "onnxruntime", "--frameworks onnxruntime"}, "onnxruntime", ""},
    {{"workload", "none.ir", "--set"}, "cannot open", "docs/ir.md"},
    {{"contenders", "3", "--set"}, "'contenders' must be a list of tables", "for example"},
};

TEST(Changes, ErrorsNameTheOption) {
  for (const BadChange& bad : kBadChanges) {
    SCOPED_TRACE(bad.change.key + " " + bad.change.value);
    const auto made = with_changes(
        base(), {{"margin", "0.1", "--set margin=0.1"}, bad.change, {"alpha", "0.02", "--set alpha=0.02"}});
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, HasSubstr(bad.message));
    EXPECT_TRUE(made.error().message.starts_with(bad.change.option)) << made.error().text();
    EXPECT_THAT(made.error().remedy, HasSubstr(bad.remedy));
    EXPECT_EQ(made.error().where, "");
  }
}

// The working directory is a folder of its own.
struct Elsewhere {
  testing::TestFolder folder = {};
  fs::path before = fs::current_path();
  Elsewhere() { fs::current_path(folder.path()); }
  ~Elsewhere() { fs::current_path(before); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
};

TEST(Shipped, EveryRecipeOfTheRepositoryIsInside) {
  const Elsewhere elsewhere;
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(BAKEOFF_SOURCE_DIR) / "recipes")) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const auto inside = load(fs::path("recipes") / entry.path().filename());
    const auto& group = find_shipped(entry.path().filename())->group;
    EXPECT_NE(std::ranges::find(kRecipeGroups, group), std::end(kRecipeGroups)) << entry.path() << group;
    ASSERT_TRUE(inside) << inside.error().text();
    EXPECT_TRUE(inside->shipped);
    const auto there = load(entry.path());
    ASSERT_TRUE(there) << there.error().text();
    EXPECT_FALSE(there->shipped);
    EXPECT_EQ(inside->text, there->text);
    EXPECT_EQ(inside->workload, there->workload);
    EXPECT_EQ(inside->published.text, there->published.text);
    const ShippedRecipe* shipped = find_shipped(entry.path().stem());
    ASSERT_NE(shipped, nullptr);
    EXPECT_GT(shipped->doc.size(), 20U) << shipped->name;
    EXPECT_TRUE(shipped->doc.ends_with('.') || shipped->doc.ends_with('?')) << shipped->doc;
  }
  EXPECT_EQ(count, shipped_recipes().size());
}

TEST(Shipped, AFileOnDiskWins) {
  const Elsewhere elsewhere;
  ASSERT_TRUE(write_file("mnist_cnn.toml", kBase));
  fs::create_directories("mlp_small");  // a folder is no recipe
  EXPECT_EQ(load("mnist_cnn")->workload.name, "mlp_small");
  EXPECT_EQ(load("mnist_cnn.toml")->file, "mnist_cnn.toml");
  EXPECT_TRUE(load("recipes/mnist_cnn.toml")->shipped);
  EXPECT_TRUE(load("mlp_small")->shipped);
  const auto unknown = load("mnist_cn.toml");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().remedy, HasSubstr("did you mean 'mnist_cnn'?"));
  EXPECT_THAT(load("elsewhere/mnist_cnn.toml").error().message, HasSubstr("cannot open"));
  EXPECT_FALSE(load(""));
  EXPECT_FALSE(load("."));
}

}  // namespace
}  // namespace bakeoff::recipe
