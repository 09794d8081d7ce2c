#include "explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>

#include "../tests/golden.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/temporary_folder.h"
#include "explain/folders.h"
#include "explain/heats.h"
#include "explain/inquiry.h"
#include "explain/words.h"

namespace bakeoff::explain {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000;

// A run of 40 steps of 10 ms, of which 4 ms are waits; two epochs, the second of which begins with 100 ms.
Report steady() {
  Report report{.kind = "optimizer", .started = 10 * kMs, .begun = 5 * kMs};
  report.imports = {{"keras", 20 * kMs, 520 * kMs}, {"torch", 30 * kMs, 500 * kMs}};
  int64_t at = 1000 * kMs;
  for (int i = 0; i < 40; ++i) {
    at += i == 20 ? 100 * kMs : 10 * kMs;
    report.marks.push_back(at);
    report.waits.push_back(4 * kMs);
  }
  report.epochs = {0, 20};
  report.ns = at + 7 * kMs - report.begun;
  return report;
}

double seconds_of(const Profile& profile, const std::string& key) {
  for (const Phase& phase : profile.phases)
    if (phase.key == key) return phase.seconds;
  return -1;
}

// A framework that computes behind the loop: calls return at once, and the last step ends long after them.
TEST(Phases, QueuedStepsTakeWhatAllTake) {
  Report report{.kind = "function", .started = 0, .begun = 0};
  for (int i = 0; i < 100; ++i) report.marks.push_back(1000 * kMs + i * kMs / 10);
  report.waits.assign(100, 0);
  report.ns = 1510 * kMs;  // 500 ms after the last call
  EXPECT_NEAR(profile_of(report).step_s, 0.0052, 0.0001);
}

TEST(Phases, AddUpToTheWhole) {
  const Profile profile = profile_of(steady());
  const double sum = std::accumulate(profile.phases.begin(), profile.phases.end(), 0.0,
                                     [](double all, const Phase& phase) { return all + phase.seconds; });
  EXPECT_NEAR(sum, profile.total_s, 1e-9);
  EXPECT_NEAR(profile.total_s, 1.492, 1e-9);
  EXPECT_NEAR(seconds_of(profile, "imports"), 0.5, 1e-9) << "torch within Keras counts once";
  EXPECT_NEAR(seconds_of(profile, "waits"), 39 * 0.004, 1e-9);
  EXPECT_NEAR(seconds_of(profile, "epochs"), 0.09, 1e-9);
  EXPECT_NEAR(seconds_of(profile, "steps"), 39 * 0.006, 1e-9);
  EXPECT_NEAR(seconds_of(profile, "end"), 0.007, 1e-9);
  EXPECT_NEAR(profile.step_s, 0.006, 1e-9);
  EXPECT_EQ(profile.epoch_steps, 20);
}

TEST(Phases, LongStepsHaveAPeriod) {
  const auto profile_with = [](int64_t every) {
    Report report{.kind = "step", .started = 0, .begun = 0};
    int64_t at = 100 * kMs;
    for (int64_t i = 0; i < 100; ++i) report.marks.push_back(at += (i % every == every - 1 ? 500 : 10) * kMs);
    report.waits.assign(100, 0);
    report.ns = at;
    return profile_of(report);
  };
  EXPECT_EQ(profile_with(20).period_steps, 20);
  EXPECT_NEAR(profile_with(20).period_s, 20 * 0.01 + 0.5, 0.02);
  EXPECT_EQ(profile_with(60).period_steps, 56) << "the first three steps count for nothing";
  EXPECT_NEAR(profile_with(60).period_s, 1.06, 0.02);
  EXPECT_EQ(profile_with(1000).period_steps, 0);
}

Subject torch_script(nlohmann::json facts) {
  Subject subject{.name = "train.py", .file = "train.py", .source = std::string(60, '\n'), .seen = steady()};
  facts["parameters"] = 1000;
  if (!facts.contains("threads")) facts["threads"] = 2;
  subject.seen.facts = {{"torch", facts}};
  subject.profile = profile_of(subject.seen);
  subject.profile.wait_share = 0;
  subject.profile.step_s = 0.2;
  subject.profile.epoch_start_s = 0;
  return subject;
}

std::vector<std::string> keys(const Subject& subject) {
  std::vector<std::string> all;
  for (const Suspect& suspect : suspects(subject, 2)) all.emplace_back(suspect.rule->key);
  return all;
}

TEST(Rules, AreSilentOnAPlainScript) { EXPECT_THAT(keys(torch_script({})), ::testing::IsEmpty()); }

TEST(Rules, SuspectWhatIsSeen) {
  EXPECT_THAT(keys(torch_script({{"anomaly", true}})), Contains("anomaly"));
  EXPECT_THAT(keys(torch_script({{"threads", 1}})), Contains("threads"));
  EXPECT_THAT(keys(torch_script({{"denormals", 0.5}})), Contains("denormals"));
  Subject faults = torch_script({});
  faults.faults = 100'000;  // 25 ms of 200
  EXPECT_THAT(keys(faults), Contains("allocator"));
  EXPECT_THAT(keys(torch_script({{"denormals", 0.001}})), Not(Contains("denormals")));
  EXPECT_THAT(keys(torch_script({{"dtypes", {"float64"}}})), Contains("float64"));
  EXPECT_THAT(keys(torch_script({{"convolutions", 3}, {"layout", "contiguous"}})), Contains("layout"));
  EXPECT_THAT(keys(torch_script({{"convolutions", 3}, {"layout", "channels_last"}})),
              Not(Contains("layout")));
  Subject waits = torch_script({{"loaders", {{{"workers", 0}, {"dataset", "Files"}}}}});
  waits.profile.wait_share = 0.6;
  EXPECT_THAT(keys(waits), Contains("input"));
  EXPECT_THAT(keys(waits), Contains("no_workers"));
  EXPECT_THAT(keys(waits), Not(Contains("per_item")));
}

TEST(Rules, OfCallsTakeAllOfOneKind) {
  const auto calls = [](nlohmann::json rates) {
    return torch_script({{"calls_per_step", rates}, {"lines", {{"torch.save", 41}}}});
  };
  EXPECT_THAT(keys(calls({{"SummaryWriter.add_scalar", 0.15}, {"SummaryWriter.flush", 0.15}})),
              Contains("log"));
  EXPECT_THAT(keys(calls({{"torch.save", 0.01}})), ::testing::IsEmpty()) << "once in 100 steps";
  const auto found = suspects(calls({{"torch.save", 1.0}}), 2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 41);
}

const std::string kSlowSource = R"("""A script
that does something."""
import torch

def features(x):
    return torch.stack([one(row) for row in x])

class Net(Module):
    def forward(self, x):
        return self.head(features(x))

net = Net(
    width=8,
)
for batch in batches(4):
    loss = net(batch)  # what it learns
    log(loss)
)";

TEST(Differences, AreOfCodeAlone) {
  std::string other = kSlowSource;
  other.replace(other.find("torch.stack([one(row) for row in x])"), 36, "one(x)");
  other.replace(other.find("that does something"), 19, "that does the same ");
  other.replace(other.find("    log(loss)\n"), 14, "");
  const auto found = differences(kSlowSource, other);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Difference{.line = 6,
                                  .last = 6,
                                  .mine = {"    return torch.stack([one(row) for row in x])"},
                                  .other = {"    return one(x)"}}));
  EXPECT_EQ(found[1].line, 17);
  EXPECT_TRUE(found[1].other.empty());
  EXPECT_TRUE(differences(kSlowSource, kSlowSource).empty());
  EXPECT_EQ(differences(std::string(), std::string("a = 1\n")).size(), 1u);
  EXPECT_TRUE(differences(std::string(9000, '\n') + "a", std::string("# a\n")).size() == 1u);
}

TEST(Differences, AreCutBetweenCharacters) {
  std::string slow = "s = '", fast;
  for (int i = 0; i < 90; ++i) slow += "慢";
  fast = "t" + slow;
  const std::string text =
      difference_words({.line = 1, .last = 1, .mine = {slow}, .other = {fast, "a", "b"}});
  EXPECT_THAT(text, HasSubstr("慢…', where the other script has 'ts = '慢"));
  EXPECT_EQ(nlohmann::json(text).dump().size(), text.size() + 2) << "a part of a character cannot be dumped";
}

std::vector<int64_t> runs_of(const Source& source, int64_t line) { return runs(source, {line}).at(line); }

TEST(Differences, AreMetByTheNamesOfALine) {
  const auto lines = runs_of(kSlowSource, 16);
  EXPECT_EQ(lines.front(), 16);
  EXPECT_THAT(lines, ::testing::IsSupersetOf({5, 6, 8, 9, 10, 12, 13, 14}))
      << "net is a Net, whose forward calls features";
  EXPECT_THAT(lines, Not(Contains(17)));
  EXPECT_TRUE(runs_of(kSlowSource, 0).empty());
  EXPECT_TRUE(runs_of(kSlowSource, 99).empty());
  EXPECT_THAT(runs_of(std::string("x = 'a b"), 1), ::testing::ElementsAre(1)) << "quotes that are not closed";
  EXPECT_THAT(runs_of(std::string("m = Net()\nm.compile(\n  metrics=[a])\nm.fit(x)\n"), 4),
              ::testing::ElementsAre(4, 1, 2, 3));
  EXPECT_THAT(runs_of(std::string("f = f(f)\n"), 1), ::testing::ElementsAre(1));
  EXPECT_THAT(runs_of(std::string("v = f()\nprint(f\"loss {float(v):.3f} v\")\n"), 2),
              ::testing::ElementsAre(2, 1));
  EXPECT_THAT(runs_of(std::string("v = f()\nprint(\"loss {float(v)} v\")\n"), 2), ::testing::ElementsAre(2));
}

// A script and a module of its folder, of which one line differs.
Source with_module(const std::string& line) {
  Source source(std::string("from model import net\nfor x in data:\n    loss = net(x)\n"));
  source.add({.name = "lib/model.py", .first = 700000, .lines = {"def net(x):", "    return " + line}});
  return source;
}

// Lines that do something, as text.
std::string code_of(const std::string& text) {
  std::string code;
  for (const std::string& line : lines_of(text))
    if (!trimmed(line).empty() && trimmed(line)[0] != '#') code += line + "\n";
  return code;
}

TEST(Exchanges, AreOfLinesThatNeedEachOther) {
  const Source slow(std::string(
      "import time\n\nrows = [1, 2]\ndef load(i):\n    return list(rows)[i]\nfor step in range(9):\n"
      "    x = load(step)\n    time.sleep(1)\n    print(x)\n"));
  const Source fast(std::string(
      "import time\nimport numpy as np\nrows = np.array([1, 2])\ndef load(i):\n    return rows[i]\n"
      "for step in range(9):\n    x = load(step)\n    print(x)\nprint(1)\n"));
  const auto found = exchanges(slow, fast);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0],
            (Changes{{3, "import numpy as np\nrows = np.array([1, 2])\n"}, {5, "    return rows[i]\n"}}));
  EXPECT_EQ(found[1], (Changes{{8, ""}}));
  EXPECT_EQ(found[2], (Changes{{10, "print(1)\n"}})) << "behind the last line";
  EXPECT_EQ(changed_text(slow.files()[0], found[1]),
            "import time\n\nrows = [1, 2]\ndef load(i):\n    return list(rows)[i]\nfor step in range(9):\n"
            "    x = load(step)\n    print(x)\n");
  EXPECT_EQ(changed_text({.name = "a.py", .first = 500, .lines = {"a"}}, found[1]), std::nullopt);
  EXPECT_EQ(exchanges(slow, slow).size(), 0u);
  EXPECT_EQ(exchanges(slow, std::string(300, '\n') + "a = 1\n# b\n").size(), 1u);
  std::string many;
  for (int i = 0; i < 90; ++i) many += "a = 1\n";
  EXPECT_TRUE(exchanges(slow, many).empty()) << "hardly the same script";
}

// Whatever differs: all exchanges together make the other script of the first one.
TEST(Exchanges, TogetherMakeTheOtherScript) {
  std::mt19937 random(7);
  const auto script = [&] {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      const std::string name(1, static_cast<char>('a' + random() % 6));
      text += std::string(4 * (random() % 2), ' ') + name + " = f(" + static_cast<char>('a' + random() % 6) +
              ")\n";
      if (random() % 4 == 0) text += "\n# a\n";
    }
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    const std::string slow = script(), fast = script();
    Changes all;
    for (const Changes& one : exchanges(slow, fast)) all.insert(one.begin(), one.end());
    EXPECT_EQ(code_of(changed_text(Source(slow).files()[0], all).value_or(slow)), code_of(fast)) << slow;
  }
}

TEST(Differences, OfIndentsAreToldWhereNoLineAboveDiffers) {
  const std::string loop = "for b in data:\n    step(b)\n    print(b)\n";
  const auto found = differences(loop + "    for v in test:\n        run(v)\nprint(1)\n",
                                 loop + "for v in test:\n    run(v)\nprint(1)\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 4);
  EXPECT_EQ(found[0].last, 5);
  EXPECT_TRUE(found[0].deeper());
  EXPECT_EQ(difference_words(found[0]),
            "'for v in test: run(v)', which stands less deep in the other script");
  const auto within =
      differences(loop, std::string("with a:\n    for b in data:\n        step(b)\n        print(b)\n"));
  ASSERT_EQ(within.size(), 1u) << "lines below another one that differs";
  EXPECT_FALSE(within[0].deeper());
}

TEST(Differences, TheOrderOfDefinitionsIsNone) {
  const std::string one = "@jit\ndef one(a,\n        b):\n    return a\n";
  const std::string two =
      "class Two:\n    x = 1\n\n    def f(self):\n        pass\n\n    def g(self):\n        run(1)\n";
  const std::string other_two =
      "class Two:\n    x = 1\n\n    def g(self):\n        run(2)\n\n    def f(self):\n        pass\n";
  const std::string slow = "import a\n" + one + two + "one(1, 2)\n",
                    fast = "import a\n" + other_two + one + "one(1, 2)\n";
  const auto found = differences(slow, fast);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 13);
  EXPECT_EQ(found[0].other, std::vector<std::string>{"        run(2)"});
  EXPECT_TRUE(differences(slow, "import a\n" + two + one + "one(1, 2)\n").empty());
  EXPECT_EQ(
      differences(slow, std::string("import a\n") + one + "def more():\n    pass\n" + two + "one(1, 2)\n")
          .size(),
      1u);
  const std::string twice = "def f():\n    a()\ndef f():\n    b()\n";
  EXPECT_TRUE(differences(twice, twice).empty());
}

TEST(Differences, OfNamesAlone) {
  const auto renames = [](const char* mine, const char* other) {
    return Difference{.line = 1, .last = 1, .mine = {mine}, .other = {other}}.renames();
  };
  EXPECT_TRUE(renames("out, _ = self.rnn(x)", "hidden, _ = self.rnn(x)"));
  EXPECT_FALSE(renames("out, _ = self.rnn(x)", "out, _ = self.gru(x)"));
  EXPECT_FALSE(renames("for i in range(2):", "for i in range(40):"));
  EXPECT_FALSE(renames("y = [f(x) for x in xs]", "y = f(xs)"));
  EXPECT_FALSE(renames("y = a @ b", "y = a * b"));
  EXPECT_FALSE(renames("y = f(x, 'sum')", "y = f(x, 'mean')"));
  EXPECT_FALSE(Difference({.line = 1, .other = {"a = b"}}).renames());
}

TEST(Differences, TextsInTripleQuotesAreNoEndOfTheCode) {
  const std::string text = "data = \"\"\"\n1 2\n\"\"\"\nx = 1\n";
  EXPECT_EQ(differences(text, text + "y = 2\n").size(), 1u);
  EXPECT_EQ(differences(text, std::string("data = \"\"\"\n1 3\n\"\"\"\nx = 1\n"))[0].mine,
            std::vector<std::string>{"1 2"});
}

TEST(Differences, AreOfLongFilesToo) {
  std::string slow, fast;
  for (int i = 0; i < 7000; ++i) {
    slow += fmt::format("a{} = {}\n", i, i == 500 ? -1 : i);
    fast += fmt::format("a{} = {}\n", i, i == 510 ? -1 : i);
  }
  const auto found = differences(slow, fast);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].line, 501);
  EXPECT_EQ(found[1].mine, std::vector<std::string>{"a510 = 510"});
  const auto all = differences(slow, std::string("b = 1\n") + fast + "b = 2\n");
  ASSERT_EQ(all.size(), 1u) << "too long to be held against each other line by line";
  EXPECT_EQ(all[0].last, 7000);
  EXPECT_TRUE(exchanges(slow, std::string("b = 1\n") + fast + "b = 2\n").empty());
}

TEST(Differences, AreOfTheFilesThatAScriptImports) {
  const Source slow = with_module("slow(x)"), fast = with_module("fast(x)");
  const auto found = differences(slow, fast);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].has(700002));
  EXPECT_THAT(runs_of(slow, 3), ::testing::IsSupersetOf({3, 700001, 700002}));
  EXPECT_EQ(slow.words(700002), "line 2 of lib/model.py");
  EXPECT_EQ(slow.words(3), "line 3");
  EXPECT_EQ(slow.words(9900001), "a line of a file that cannot be read");
  EXPECT_FALSE(slow.has(4));
  EXPECT_FALSE(slow.has(700003));
  EXPECT_EQ(slow.line(700002), "    return slow(x)");
  Source other_name(std::string("from model import net\nfor x in data:\n    loss = net(x)\n"));
  other_name.add({.name = "model2.py", .first = 100000, .lines = slow.files()[1].lines});
  EXPECT_TRUE(differences(slow, other_name).empty()) << "the file has another name alone";
  EXPECT_EQ(differences(slow, Source(std::string("x = 1\n"))).size(), 2u);
  const auto more =
      differences(std::string("from model import net\nfor x in data:\n    loss = net(x)\n"), slow);
  ASSERT_EQ(more.size(), 1u) << "the other script has a file more";
  EXPECT_EQ(more[0].line, 0);
  EXPECT_EQ(difference_words(more[0]),
            "the other script has a file more, which begins with 'def net(x): return slow(x)'");
}

TEST(Text, PlacesAreThoseOfTheFile) {
  Subject s = torch_script({});
  s.source = with_module("slow(x)");
  EXPECT_EQ(place_of(s, 700002), "lib/model.py:2");
  EXPECT_EQ(place_of(s, 3), "train.py:3");
  EXPECT_EQ(place_of(s, 44), "");
  s.seen.lines = {{.line = 700002, .share = 0.9}, {.line = 9900001, .function = "g", .share = 0.1}};
  const auto seen = hot_lines(s);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].second, "lib/model.py:2: return slow(x)");
  EXPECT_EQ(seen[1].second, "a file that cannot be read, in g");
  const auto json = parse_json<nlohmann::json>(to_json({.subjects = {s}}));
  EXPECT_EQ(json["scripts"][0]["lines"][0]["file"], "lib/model.py");
  EXPECT_EQ(json["scripts"][0]["lines"][0]["line"], 2);
}

TEST(Remarks, AreOfWhatIsWrong) {
  EXPECT_TRUE(remarks(torch_script({})).empty());
  const auto found = remarks(torch_script({{"broadcast_loss", {{16, 1}, {16}}},
                                           {"lines", {{"broadcast_loss", 31}}},
                                           {"unchanged", {"fc.weight"}},
                                           {"double_softmax", true},
                                           {"early_clocks", 0.9},
                                           {"batch_as_time", {"LSTM", {32, 20, 16}}}}));
  EXPECT_TRUE(remarks(torch_script({{"early_clocks", 0.1}})).empty());
  ASSERT_EQ(found.size(), 5u);
  EXPECT_THAT(found[3].text, HasSubstr("gets [32,20,16]"));
  EXPECT_EQ(std::string(found[4].id), "R18");
  EXPECT_EQ(found[0].line, 31);
  EXPECT_THAT(found[0].text, HasSubstr("[16,1] and [16]"));
}

TEST(Rules, AreWellFormed) {
  for (const Rule& rule : rules()) {
    EXPECT_NE(page(rule.id), "") << rule.key;
    EXPECT_NE(std::string(rule.signal), "") << rule.key;
    EXPECT_NE(std::string(rule.change), "") << rule.key;
    EXPECT_EQ(*rule.thrown == '\0', *rule.method == '\0') << rule.key;
    const auto same =
        std::ranges::count(rules(), std::string(rule.key), [](const Rule& r) { return std::string(r.key); });
    EXPECT_EQ(same, 1) << rule.key;
  }
}

TEST(Rules, NameTheLineButNoCommentAndNoImport) {
  Subject subject = torch_script({{"anomaly", true}});
  subject.source = std::string(
      "from torch.autograd import set_detect_anomaly\n# set_detect_anomaly\nx = 1\nset_detect_anomaly(True)\n");
  const auto found = suspects(subject, 2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 4);
}

TEST(Rules, BelongToFrameworks) {
  Subject keras = torch_script({{"backend", "torch"}, {"anomaly", true}});
  keras.seen.facts = {{"keras", keras.seen.facts["torch"]}, {"torch", {{"parameters", 0}}}};
  EXPECT_EQ(keras.framework(), "keras");
  EXPECT_THAT(keys(keras), Contains("anomaly")) << "its backend's rules hold, too";
  Subject jax = torch_script({{"anomaly", true}});
  jax.seen.facts = {{"jax", jax.seen.facts["torch"]}};
  EXPECT_THAT(keys(jax), Not(Contains("anomaly")));
}

TEST(Rules, NameTheLineThatWasSeen) {
  Subject jax = torch_script({});
  jax.seen.facts = {{"jax", {{"parameters", 9}, {"eager_loop", {{"function", "update"}, {"line", 31}}}}}};
  const auto found = suspects(jax, 2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 31);
  EXPECT_THAT(found[0].suspicion.evidence, HasSubstr("'update'"));
}

TEST(Rules, PagesAreThoseOfTheDocuments) { expect_golden("../../docs/rules.md", rules_document()); }

TEST(Rules, PagesOfAllTopics) {
  for (int number = 1; number <= 31; ++number)
    EXPECT_THAT(page(fmt::format("R{}", number)), HasSubstr("### How it is measured")) << number;
  EXPECT_EQ(topics().size(), 32u);
  EXPECT_EQ(page("R99"), "");
  EXPECT_THAT(index_page(), HasSubstr("[R13](#r13-denormal-numbers)"));
}

LaneHeat heat_of(std::vector<double> bursts) { return {.bursts = std::move(bursts)}; }

TEST(Difference, TakesRoundsInPairs) {
  std::mt19937_64 rng(1);
  std::normal_distribution<double> machine(0, 0.5), own(0, 0.01);
  LaneHeat a, b;
  for (int i = 0; i < 12; ++i) {
    const double both = machine(rng);  // what slows the machine for a round hits both
    a.bursts.push_back(both + 0.3 + own(rng));
    b.bursts.push_back(both + own(rng));
  }
  b.bursts[3] += 2;  // a spike
  a.bursts[5] = std::numeric_limits<double>::quiet_NaN();
  const auto found = difference(a, b);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->d, DoubleNear(0.3, 0.02));
  EXPECT_LT(std::sqrt(found->variance), 0.02);
  EXPECT_EQ(found->rounds, 11);
}

TEST(Difference, NeedsRounds) {
  EXPECT_FALSE(difference(heat_of({1}), heat_of({1})).has_value());
  LaneHeat failed = heat_of({1, 2, 3, 4});
  failed.failure = "it crashed";
  EXPECT_FALSE(difference(failed, heat_of({1, 2, 3, 4})).has_value());
}

// The variance that is told covers the true one, for rounds that vary as they like.
TEST(Difference, ItsVarianceIsNotTooSmall) {
  std::mt19937_64 rng(7);
  std::normal_distribution<double> noise(0, 0.1);
  constexpr int kTrials = 4000;
  for (const int rounds : {2, 3, 4, 8, 12}) {
    int outside = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      LaneHeat a, b;
      for (int i = 0; i < rounds; ++i) {
        a.bursts.push_back(noise(rng));
        b.bursts.push_back(noise(rng));
      }
      const auto found = difference(a, b);
      if (std::abs(found->d) > 2.576 * std::sqrt(found->variance)) ++outside;
    }
    EXPECT_LT(outside, 0.016 * kTrials) << "1% for a variance that is known; " << rounds << " rounds";
  }
}

TEST(Difference, OfTwoRoundsTellsAWideGapAlone) {
  const auto low = [](double factor) {
    const auto found = difference(heat_of({std::log(factor), std::log(factor) + 0.1}), heat_of({0, 0}));
    return std::exp(found->d - 2.576 * std::sqrt(found->variance));
  };
  EXPECT_GT(low(264), 2);
  EXPECT_LT(low(5), 1);
}

// Two rounds that are 264 times apart tell it on a quiet machine, and not beside other work.
TEST(Differences, OneHeatBesideOtherWorkTellsLess) {
  std::vector<double> slow(12, std::log(1.8)), fast(12, 0.0);
  for (size_t i = 0; i < slow.size(); ++i) slow[i] += i % 2 == 0 ? 0.02 : -0.02;
  Differences quiet, busy;
  quiet.add(heat_of(slow), heat_of(fast), true);
  busy.add(heat_of(slow), heat_of(fast), false);
  EXPECT_GT(quiet.factor(0.002)->low, 1.5);
  EXPECT_LT(busy.factor(0.002)->low, 1.02);
}

// Processes differ from one start to the next, beside other work much; rounds of processes of their own show by how much.
TEST(Differences, RoundsOfOwnProcessesHaveTheNoiseOfRestarts) {
  std::mt19937_64 rng(5);
  std::normal_distribution<double> start(0, 0.15);
  const auto heat = [&](double factor, int rounds) {
    LaneHeat made{.apart = true};
    for (int i = 0; i < rounds; ++i) made.bursts.push_back(std::log(factor) + start(rng));
    return made;
  };
  constexpr int kTrials = 4000;
  for (const int rounds : {2, 4, 8}) {
    int wrong = 0, seen = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      Differences equal, apart;
      equal.add(heat(1, rounds), heat(1, rounds), false);
      apart.add(heat(2, rounds), heat(1, rounds), false);
      const auto none = equal.factor(0.01);
      wrong += none->low > 1 || none->high < 1 ? 1 : 0;
      seen += apart.factor(0.01)->low > 1 ? 1 : 0;
    }
    EXPECT_LE(wrong, 0.012 * kTrials) << rounds;
    EXPECT_GT(seen, rounds == 8 ? 0.9 * kTrials : 0);
  }
}

TEST(Differences, TwoRoundsTellAGlaringGapOnAQuietMachine) {
  const LaneHeat slow = heat_of({std::log(264), std::log(264) + 0.3}), fast = heat_of({0, 0});
  Differences quiet, busy, small, back;
  quiet.add(slow, fast, true);
  busy.add(slow, fast, false);
  small.add(heat_of({std::log(3), std::log(3) + 0.3}), fast, true);
  back.add(fast, slow, true);
  EXPECT_NEAR(quiet.factor(0.001)->low, 264 / 4.0, 1);
  EXPECT_LT(busy.factor(0.001)->low, 1.02);
  EXPECT_LT(small.factor(0.001)->low, 1.02) << "within what one burst may be off";
  EXPECT_LT(back.factor(0.001)->high, 0.02);
  quiet.add(heat_of({0.1, 0.2}), fast, true);
  EXPECT_LT(quiet.factor(0.001)->low, 1.02) << "not all rounds have it";
}

// Two heats beside other work bound nothing: [1e-22, 1e+22] once replaced the interval that had confirmed a cause.
TEST(Cause, ThatTheFirstHeatConfirmedKeepsItsIntervalUntilLaterOnesSayMore) {
  const Estimate first{4, 2, 8};
  const auto after = [&](const Estimate& later) {
    Cause cause{.finding = Finding::kConfirmed, .first = first, .measured = first};
    measure_again(cause, later);
    return cause;
  };
  EXPECT_EQ(after({4, 1e-22, 1e23}).measured, first);
  EXPECT_EQ(after({4, 1e-22, 1e23}).finding, Finding::kConfirmed);
  EXPECT_EQ(after({3.5, 3, 4}).measured->low, 3);
  EXPECT_EQ(after({1.01, 0.5, 2}).finding, Finding::kOpen);
  EXPECT_EQ(after({1, 0.99, 1.01}).finding, Finding::kNoGain);
}

TEST(Folders, AreCopiedWithoutWhatIsNotTheUsers) {
  const auto scratch = TemporaryFolder::make("explain");
  ASSERT_TRUE(scratch.has_value());
  const fs::path from = scratch->path() / "mine", to = scratch->path() / "copy";
  fs::create_directories(from / "data");
  fs::create_directories(from / ".git");
  fs::create_directories(from / "venv");
  fs::create_directories(from / "bakeoff_tmp_run_abcdef");  // temporary files may lie in the user's folder
  std::ofstream(from / "train.py") << "x";
  std::ofstream(from / "data/a.bin") << "y";
  std::ofstream(from / ".git/config") << "z";
  std::ofstream(from / "venv/pyvenv.cfg") << "z";
  fs::create_symlink("data", from / "link");
  EXPECT_EQ(too_large(from), "");
  ASSERT_TRUE(copy_folder(from, to).has_value());
  EXPECT_TRUE(fs::exists(to / "data/a.bin"));
  EXPECT_TRUE(fs::exists(to / "link/a.bin"));
  EXPECT_FALSE(fs::exists(to / ".git"));
  EXPECT_FALSE(fs::exists(to / "venv"));
  EXPECT_FALSE(fs::exists(to / "bakeoff_tmp_run_abcdef"));
  const fs::path inside = from / "bakeoff_tmp_run_abcdef/copy";
  ASSERT_TRUE(copy_folder(from, inside).has_value());
  EXPECT_TRUE(fs::exists(inside / "data/a.bin"));
}

TEST(Reports, OfGarbageAreErrors) {
  EXPECT_FALSE(parse_report("").has_value());
  EXPECT_FALSE(parse_report("{}").has_value());
  EXPECT_FALSE(parse_report(R"({"ended": 7})").has_value());
}

TEST(Work, DifferencesAreListed) {
  Subject a = torch_script({{"batch", 32}, {"optimizers", {{{"class", "Adam"}, {"lr", 0.001}}}}});
  Subject b = torch_script({{"batch", 64}, {"optimizers", {{{"class", "SGD"}, {"lr", 0.001}}}}});
  const auto found = work_differences(a, b);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].what, "samples of a step");
  EXPECT_EQ(found[1].first, "Adam, lr 0.001");
  EXPECT_TRUE(work_differences(a, a).empty());
  a = b = torch_script({{"loss", "mse"}, {"matmul_precision", "highest"}});
  b.seen.facts["torch"]["loss"] = "mae";
  b.seen.facts["torch"]["matmul_precision"] = "medium";
  EXPECT_EQ(work_differences(a, b).size(), 2u);
  b.seen.facts["torch"]["loss"] = "MeanBackward0";
  EXPECT_EQ(work_differences(a, b).size(), 1u);
  b.seen.facts = {{"jax", {{"parameters", 1000}, {"threads", 2}, {"loss", "other"}}}};
  EXPECT_TRUE(work_differences(a, b).empty()) << "names of losses are a framework's own";
}

TEST(Subjects, ByStepTheBatchDoesNotCount) {
  Subject s = torch_script({{"batch", 32}, {"steps_per_execution", 4}});
  EXPECT_EQ(s.samples(), 128);
  s.by_step = true;
  EXPECT_EQ(s.samples(), 4);
  Explanation e{.subjects = {s, s}, .gap = Estimate{2, 1.9, 2.1}};
  EXPECT_THAT(to_text(e, 80, false), HasSubstr("takes 2.00 [1.90, 2.10] times as long per step as"));
}

TEST(Text, AnIntervalThatSaysNothingIsNotShown) {
  const Explanation e{.subjects = {torch_script({{"batch", 32}}), torch_script({{"batch", 32}})},
                      .gap = Estimate{5.42, 0.01, 2049},
                      .equal = true,
                      .heats = 1};
  EXPECT_THAT(gap_words(e), HasSubstr("takes 5.42 times as long per sample as"));
  EXPECT_THAT(gap_words(e), HasSubstr(", in too few heats (1) for an interval"));
}

TEST(Text, AWideIntervalAboveOneIsShown) {
  const Explanation e{.subjects = {torch_script({}), torch_script({})}, .gap = Estimate{150, 1.3, 17000}};
  EXPECT_THAT(gap_words(e), HasSubstr("takes 150 [1.30, ∞) times as long"));
  EXPECT_EQ(parse_json<nlohmann::json>(to_json(e))["gap"]["low"], 1.3);
}

// Grades of evidence: what no run confirms is named by what was measured in the observed run, the rest by name alone.
TEST(Text, BookedCausesAreNamedAndSuspectsListed) {
  Explanation e{.subjects = {torch_script({}), torch_script({})}, .gap = Estimate{9, 8, 10}};
  const Rule *compiles = nullptr, *sleeps = nullptr;
  for (const Rule& rule : rules()) {
    if (std::string(rule.key) == "new_functions") compiles = &rule;
    if (std::string(rule.key) == "sleep") sleeps = &rule;
  }
  e.causes = {
      {.suspect = {.rule = compiles, .suspicion = {.evidence = "32 compilations", .booked = 0.96}},
       .finding = Finding::kBooked,
       .reason = "the switch found nothing to change"},
      {.suspect = {.rule = sleeps, .suspicion = {.evidence = "a sleep a step"}}, .finding = Finding::kOpen}};
  const std::string text = to_text(e, 100, false);
  EXPECT_THAT(text, HasSubstr(" 1. a function is defined and compiled again at each step"));
  EXPECT_THAT(text,
              HasSubstr("booked: the steps of the observed run spent at least 96% of their time on it"));
  EXPECT_THAT(text, HasSubstr("the switch found nothing to change"));
  EXPECT_THAT(text, HasSubstr("not certain: it sleeps at each step: a sleep a step"));
  const auto causes = parse_json<nlohmann::json>(to_json(e))["causes"];
  EXPECT_EQ(causes[0]["finding"], "booked");
  EXPECT_EQ(causes[0]["named"], true);
  EXPECT_EQ(causes[0]["confirmed"], false);
  EXPECT_EQ(causes[0]["booked_share"], 0.96);
  EXPECT_EQ(causes[1]["named"], false);
  e.equal = true;
  EXPECT_THAT(to_text(e, 100, false), Not(HasSubstr("booked")));
}

// Each look at the stack belongs to one account, so they add up to the time that is compared.
TEST(Text, LinesThatTwoScriptsDoNotShareAreShown) {
  Explanation e{.subjects = {torch_script({}), torch_script({})}, .gap = Estimate{9, 8, 10}};
  e.subjects[0].name = "slow.py";
  e.subjects[1].name = "fast.py";
  e.subjects[0].code = {{.text = {.line = 7, .last = 7, .mine = {"  y = f(x)"}, .other = {"  y = g(x)"}}},
                        {.text = {.line = 9, .last = 8, .mine = {}, .other = {"close()"}}}};
  EXPECT_THAT(to_text(e, 80, false), HasSubstr("lines that slow.py (-) and fast.py (+) do not share:\n"
                                               "    7 -   y = f(x)\n"
                                               "      +   y = g(x)\n"
                                               "    9 + close()\n"));
  EXPECT_EQ(parse_json<nlohmann::json>(to_json(e))["code"][1]["values"][1][0], "close()");
  e.subjects[0].code.resize(40, e.subjects[0].code[0]);
  EXPECT_THAT(to_text(e, 80, false), Not(HasSubstr("do not share"))) << "these are two scripts";
}

TEST(Text, AGapOfTheFirstStepsAloneIsToldAsSuch) {
  Explanation e{
      .subjects = {torch_script({}), torch_script({})}, .gap = Estimate{1.0, 0.9, 1.1}, .early = true};
  EXPECT_THAT(headline(e), HasSubstr("is slower in its first steps: in the observed runs a sample took "));
  EXPECT_THAT(headline(e), HasSubstr("After them no gap is certain: train.py takes 1.00 [0.90, 1.10] times"));
}

TEST(Subjects, DifferencesTakeTheTimeOfLinesThatNeedThem) {
  Subject s = torch_script({});
  s.source = std::string("def f(x):\n  return slow(x)\nfor x in data:\n  y = f(x)\n  log(y)\n");
  s.other_source = std::string("def f(x):\n  return quick(x)\nfor x in data:\n  y = f(x)\n  log(y)\n");
  // It is seen in `y = f(x)` alone, as in a compiled function.
  s.seen.lines = {{.line = 4, .share = 0.9, .within = 0.9}, {.line = 5, .share = 0.1, .within = 0.1}};
  s.other_lines = {{"y = f(x)", 0.1 * s.looked_at_s()}, {"log(y)", 0.1 * s.looked_at_s()}};
  auto code = code_times(s);
  ASSERT_EQ(code.size(), 1u);
  EXPECT_NEAR(code[0].more_s, 0.8 * s.looked_at_s(), 1e-9);
  EXPECT_FALSE(code[0].own);
  // It is seen in a library's code that line 2 calls.
  s.seen.lines = {{.line = 700001, .share = 0.9, .within = 0.9},
                  {.line = 2, .share = 0, .within = 0.9},
                  {.line = 4, .share = 0, .within = 0.9}};
  s.other_lines = {};
  s.other_within = {{"return quick(x)", 0.3 * s.looked_at_s()}};
  code = code_times(s);
  ASSERT_EQ(code.size(), 1u);
  EXPECT_NEAR(code[0].more_s, 0.6 * s.looked_at_s(), 1e-9);
  EXPECT_TRUE(code[0].own);
  EXPECT_EQ(code[0].line.line.line, 2);
}

TEST(Rules, AFunctionThatIsCalledElsewhereIsNamed) {
  const std::string made = "def table(i):\n  return slow(i)\n";
  Subject s = torch_script({});
  s.other_s = 0.1 * s.looked_at_s();
  s.source = made + "class Rows:\n  def __getitem__(self, index):\n    return table(index)\n";
  s.other_source = made +
                   "class Rows:\n  def __init__(self):\n    self.rows = [table(i) for i in range(9)]\n"
                   "  def __getitem__(self, index):\n    return self.rows[index]\n";
  s.seen.lines = {{.line = 2, .share = 0.9, .within = 0.9}, {.line = 5, .share = 0, .within = 0.9}};
  const auto found = [&] {
    s.code = code_times(s);
    std::vector<std::string> keys;
    for (const Suspect& suspect : suspects(s, 2))
      if (std::string(suspect.rule->id) == "R32") keys.emplace_back(suspect.rule->key);
    return keys;
  };
  EXPECT_THAT(found(), ElementsAre("moved_out")) << "and no other row: a place has one reason";
  s.other_within = {{"self.rows = [table(i) for i in range(9)]", 0.8 * s.looked_at_s()}};
  EXPECT_THAT(found(), Not(Contains("moved_out"))) << "it takes as long there";
  s.other_within = {};
  s.other_source = made + "class Rows:\n  def __getitem__(self, index):\n    return table(index % 9)\n";
  EXPECT_THAT(found(), Not(Contains("moved_out"))) << "it stands at its place";
}

TEST(Subjects, AConditionOfTheOtherScriptIsOfTheLineBehindIt) {
  Subject s = torch_script({});
  s.source = std::string("for x in data:\n  y = f(x)\n  for n in y:\n    draw(y)\n  end(y)\n");
  s.other_source =
      std::string("for x in data:\n  y = f(x)\n  if k % 9 == 0:\n    for n in y:\n      draw(y)\n  end(y)\n");
  s.seen.lines = {{.line = 4, .share = 0, .within = 0.9}, {.line = 5, .share = 0.1, .within = 0.1}};
  s.other_within = {{"draw(y)", 0.1 * s.looked_at_s()}};
  const auto code = code_times(s);
  ASSERT_EQ(code.size(), 1u);
  EXPECT_NEAR(code[0].more_s, 0.8 * s.looked_at_s(), 1e-9);
  EXPECT_TRUE(code[0].own);
}

TEST(Text, AccountsAddUpToTheTimeOfAStep) {
  Subject s = torch_script({});
  s.name = "slow.py";
  s.by_step = true;
  s.profile.step_s = 0.1;
  s.profile.phases.clear();
  s.seen.accounts = {{"own", 0.25}, {"backward", 0.75}};
  const Explanation e{.subjects = {s}};
  const auto table = accounts(e);
  ASSERT_EQ(table.size(), 4u);
  EXPECT_THAT(table[0], ElementsAre("what a step does in the mean, ms", "slow.py"));
  EXPECT_THAT(table[1], ElementsAre("backward pass", "75.00"));
  EXPECT_THAT(table[2], ElementsAre("its own lines and their calls", "25.00"));
  EXPECT_THAT(table[3], ElementsAre("in all", "100.00"));
  EXPECT_THAT(to_text(e, 80, false), HasSubstr("what a step does in the mean, ms"));
}

TEST(Text, TellsWhatTheChangedLinesGain) {
  Explanation e{.subjects = {torch_script({})}};
  EXPECT_EQ(applied_words(e), "");
  e.applied = Estimate{3, 2.5, 3.5};
  EXPECT_THAT(applied_words(e), HasSubstr("is 3.00 [2.50, 3.50] times as fast"));
  e.applied_failure = "it ended with ValueError: no workers (train.py:3)";
  EXPECT_THAT(applied_words(e), HasSubstr("does not run, so more has to change: it ended with ValueError"));
}

TEST(Text, NamesNothingWithoutAGap) {
  Explanation e{
      .subjects = {torch_script({}), torch_script({})}, .gap = Estimate{1.0, 0.99, 1.01}, .equal = true};
  const std::string text = to_text(e, 80, false);
  EXPECT_THAT(text, HasSubstr("There is no gap"));
  EXPECT_THAT(text, Not(HasSubstr("change:")));
}

}  // namespace
}  // namespace bakeoff::explain
