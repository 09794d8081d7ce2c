#include "environments/environments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/testing.h"
#include "environments/runner_files.h"
#include "proc/run.h"

namespace bakeoff {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class EnvironmentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = {.home = folder_ / "home",
              .requirements = {{"torch", "torch==2.13.0\nnumpy==2.4.6\n"},
                               {"jax", "# JAX\njax==0.10.2\nnumpy==2.4.6\n"}}};
    const auto fake = read_file(fs::path(BAKEOFF_SOURCE_DIR) / "src/environments/testing/fake_python.sh");
    ASSERT_TRUE(fake) << fake.error().text();
    ASSERT_TRUE(write_file(python_, *fake));
    fs::permissions(python_, fs::perms::owner_all);
    ::setenv("BAKEOFF_PYTHON", python_.c_str(), 1);
    ::setenv("FAKE_LOG", (folder_ / "log").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name :
         {"BAKEOFF_PYTHON", "FAKE_LOG", "FAKE_PIP", "FAKE_VENV", "FAKE_VERSION", "FAKE_PACKAGES"}) {
      ::unsetenv(name);
    }
  }

  std::string create(const std::vector<std::string>& names = {}) {
    lines_.clear();
    const Status done =
        create_environments(store_, names, [this](const std::string& line) { lines_.push_back(line); });
    return done ? "" : done.error().text();
  }
  Environment torch() { return list_environments(store_).at(0); }
  // How many virtual environments were made.
  int made() {
    std::ifstream log(folder_ / "log");
    int count = 0;
    for (std::string line; std::getline(log, line);) ++count;
    return count;
  }
  fs::path site(const std::string& name) {
    return store_.home / "envs" / name / "lib/python3.11/site-packages";
  }

  const testing::TestFolder folder_;
  const fs::path python_ = folder_ / "python";
  EnvironmentStore store_;
  std::vector<std::string> lines_;
};

TEST_F(EnvironmentsTest, TheEmbeddedRunnerHoldsNoTestEquipment) {
  const auto runner = unpack_runner(folder_ / "home");
  ASSERT_TRUE(runner) << runner.error().text();
  int adapters = 0;
  for (const auto& entry : fs::recursive_directory_iterator(*runner)) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.find("fake"), std::string::npos) << entry.path();
    adapters += name.ends_with("_adapter.py") ? 1 : 0;
  }
  EXPECT_GE(adapters, 5);
}

TEST_F(EnvironmentsTest, CreatedOnceThenLeftAlone) {
  EXPECT_EQ(torch().state, EnvironmentState::kMissing);
  EXPECT_EQ(torch().why_not(), "missing: never created; run 'bakeoff env create torch'");
  ASSERT_EQ(create(), "");
  EXPECT_THAT(lines_, Contains("torch: torch 2.13.0 (1 of 2)"));
  EXPECT_THAT(lines_, Contains("jax: ready"));
  for (const Environment& e : list_environments(store_)) {
    EXPECT_TRUE(e.ok()) << e.why_not();
    EXPECT_EQ(e.versions.at("numpy"), "2.4.6");
    EXPECT_EQ(e.python, store_.home / "envs" / e.name / "bin/python");
  }
  EXPECT_EQ(made(), 2);
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_THAT(lines_, ::testing::ElementsAre("torch: ready"));
  EXPECT_EQ(made(), 2);
}

TEST_F(EnvironmentsTest, OneThatExtendsAnotherIsMadeByItsNameAlone) {
  store_.requirements.push_back({"torch_more", "# extends: torch\ntorch==2.13.0\nnumpy==2.4.6\n"});
  ASSERT_EQ(create(), "");
  EXPECT_EQ(list_environments(store_).back().state, EnvironmentState::kMissing);
  ASSERT_EQ(create({"torch_more"}), "");
  EXPECT_TRUE(list_environments(store_).back().ok());
  fs::remove(stamp_file(store_, "torch_more"));
  ASSERT_EQ(create(), "");  // what is there is kept up
  EXPECT_TRUE(list_environments(store_).back().ok());
}

TEST_F(EnvironmentsTest, ChangedRequirementsMakeItOutdatedAndThenAnew) {
  ASSERT_EQ(create({"torch"}), "");
  store_.requirements[0].text = "torch==2.14.0\nnumpy==2.4.6\n";
  EXPECT_EQ(torch().state, EnvironmentState::kOutdated);
  EXPECT_EQ(torch().why_not(), "outdated: torch is 2.13.0, not 2.14.0; run 'bakeoff env create torch'");
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_EQ(torch().versions.at("torch"), "2.14.0");
  EXPECT_TRUE(torch().ok());
  EXPECT_EQ(made(), 2);
}

TEST_F(EnvironmentsTest, OneThatHoldsEveryPinIsAdopted) {
  ASSERT_EQ(create({"torch"}), "");
  fs::remove(stamp_file(store_, "torch"));
  EXPECT_THAT(torch().why_not(), HasSubstr("was not finished"));
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_TRUE(torch().ok());
  store_.requirements[0].text += "# another comment\n";
  EXPECT_THAT(torch().why_not(), HasSubstr("made from other requirements"));
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_TRUE(torch().ok());
  EXPECT_EQ(made(), 1);
}

TEST_F(EnvironmentsTest, AKilledCreationIsDoneAgain) {
  ASSERT_EQ(create({"torch"}), "");
  fs::remove(stamp_file(store_, "torch"));
  fs::remove(site("torch") / "numpy-2.4.6.dist-info" / "RECORD");  // killed within pip
  EXPECT_EQ(torch().why_not(), "outdated: numpy 2.4.6 is not installed; run 'bakeoff env create torch'");
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_TRUE(torch().ok());
  EXPECT_EQ(made(), 2);
}

TEST_F(EnvironmentsTest, AFailureKeepsTheOldOneAndSaysWhatPipSaid) {
  ASSERT_EQ(create({"torch"}), "");
  store_.requirements[0].text = "torch==9.9.9\nnumpy==2.4.6\n";
  ::setenv("FAKE_PIP", "fail", 1);
  const std::string error = create({"torch"});
  EXPECT_THAT(error, HasSubstr("environment 'torch'"));
  EXPECT_THAT(error, HasSubstr("ERROR: No matching distribution found for torch==9.9.9"));
  EXPECT_THAT(error, Not(HasSubstr("some noise")));
  EXPECT_THAT(error, HasSubstr("check the network"));
  EXPECT_EQ(torch().versions.at("torch"), "2.13.0");
  EXPECT_THAT(read_file(store_.home / "envs/torch.log").value(), HasSubstr("some noise"));
  store_.requirements[0].text = "torch==2.13.0\nnumpy==2.4.6\n";
  EXPECT_TRUE(torch().ok());
}

TEST_F(EnvironmentsTest, AllFailuresAreReportedAndNothingHalfIsLeft) {
  ::setenv("FAKE_PIP", "fail", 1);
  const std::string error = create();
  EXPECT_THAT(error, HasSubstr("environment 'torch'"));
  EXPECT_THAT(error, HasSubstr("environment 'jax'"));
  EXPECT_EQ(torch().state, EnvironmentState::kMissing);
}

TEST_F(EnvironmentsTest, PipIsNotTrusted) {
  ::setenv("FAKE_PIP", "lazy", 1);
  EXPECT_THAT(create({"torch"}), HasSubstr("pip succeeded, but numpy 2.4.6 is not installed"));
  EXPECT_FALSE(torch().ok());
}

TEST_F(EnvironmentsTest, TheOldOneComesBackAfterAKill) {
  ASSERT_EQ(create({"torch"}), "");
  const fs::path folder = environment_folder(store_, "torch");
  fs::rename(folder, store_.home / "envs" / ".torch.old");
  ASSERT_TRUE(make_folder(folder / "bin"));  // the new one had only begun
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_TRUE(torch().ok());
  EXPECT_EQ(made(), 1);
  EXPECT_FALSE(fs::exists(store_.home / "envs" / ".torch.old"));
}

TEST_F(EnvironmentsTest, UnknownNamesAndUnusablePythonsAreExplained) {
  EXPECT_EQ(create({"tocrh"}), "unknown environment 'tocrh'\n  did you mean 'torch'?");
  ::setenv("FAKE_VERSION", "3.9", 1);
  EXPECT_THAT(create({"torch"}), HasSubstr("is Python 3.9, at least 3.11 is needed"));
  ::setenv("FAKE_VERSION", "3.12", 1);
  ::setenv("FAKE_VENV", "1", 1);
  EXPECT_THAT(create({"torch"}), HasSubstr("has no venv\n  apt-get install python3 python3-venv"));
  ::setenv("BAKEOFF_PYTHON", "/no/such/python", 1);
  EXPECT_THAT(create({"torch"}), HasSubstr("/no/such/python"));
}

TEST_F(EnvironmentsTest, AVanishedInterpreterIsBroken) {
  ASSERT_EQ(create({"torch"}), "");
  fs::remove(torch().python);
  EXPECT_EQ(torch().state, EnvironmentState::kBroken);
  ASSERT_EQ(create({"torch"}), "");
  EXPECT_TRUE(torch().ok());
}

TEST_F(EnvironmentsTest, InterpretersOfTheUserAreTakenAsTheyAre) {
  store_.config = {.file = "c.toml", .interpreters = {{"torch", python_}, {"jax", python_}}};
  auto all = list_environments(store_);
  EXPECT_TRUE(all[0].ok()) << all[0].why_not();
  EXPECT_TRUE(all[0].named_by_user);
  EXPECT_EQ(all[0].versions.at("torch"), "9.9");
  const auto jax = std::ranges::find(all, "jax", &Environment::name);
  EXPECT_THAT(jax->why_not(), HasSubstr("has no package jax; correct 'environment.jax.python'"));
  store_.config.interpreters["keras2"] = python_;
  EXPECT_THAT(inspect_environment(store_, {"keras2", ""}).why_not(), HasSubstr("has no package tf-keras;"));
  ::setenv("FAKE_PACKAGES", "few", 1);
  EXPECT_THAT(torch().why_not(), HasSubstr("lacks safetensors; " + python_.string() + " -m pip install"));
  EXPECT_THAT(create({"torch"}), HasSubstr("named in 'c.toml'"));
  EXPECT_EQ(create(), "");  // nothing of ours to create
  store_.config.interpreters["torch"] = "/bin/false";
  EXPECT_THAT(torch().why_not(), HasSubstr("'/bin/false' does not run: exit code 1"));
}

TEST(PipProgress, ShowsWhatMatters) {
  EXPECT_EQ(pip_progress("Collecting numpy==2.4.6 (from -r x (line 3))"), "numpy 2.4.6");
  EXPECT_EQ(pip_progress("  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (196.8 MB)"),
            "downloading torch-2.13.0 (196.8 MB)");
  EXPECT_EQ(pip_progress("  Downloading mdurl-0.1.2-py3-none-any.whl (10 kB)"), "");
  EXPECT_EQ(pip_progress("Installing collected packages: a, b, c"), "installing 3 packages");
  EXPECT_EQ(pip_progress("Collecting nvidia-cublas==13.1.1.3.* (from cuda-toolkit[cublas])"),
            "nvidia-cublas");
  EXPECT_EQ(pip_progress("Collecting wheel<1.0,>=0.23.0 (from astunparse==1.6.3)"), "wheel");
  EXPECT_EQ(pip_progress("Collecting ml_dtypes==0.6.0"), "ml-dtypes 0.6.0");
  EXPECT_EQ(pip_progress("Successfully installed a-1"), "");
  EXPECT_EQ(pip_progress(""), "");
}

// The real thing, offline: wheels made on the spot, installed by the real pip into real environments. One
// asks for a package that there is not.
TEST(EnvironmentsForReal, WheelsAreInstalled) {
  if (!testing::full_tier()) GTEST_SKIP() << "with BAKEOFF_FULL_TESTS=1; a fresh `make test` installs all";
  const testing::TestFolder folder;
  constexpr const char* kMakeWheel =
      "import sys, zipfile\n"
      "for name, more in (('tiny', ''), ('greedy', 'Requires-Dist: tensorflow-of-mars\\n')):\n"
      "  z = zipfile.ZipFile(f'{sys.argv[1]}/{name}_thing-1.5-py3-none-any.whl', 'w')\n"
      "  z.writestr(name + '_thing.py', 'x = 42\\n')\n"
      "  i = name + '_thing-1.5.dist-info/'\n"
      "  z.writestr(i + 'METADATA', f'Metadata-Version: 2.1\\nName: {name}-thing\\nVersion: 1.5\\n{more}')\n"
      "  z.writestr(i + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: "
      "py3-none-any\\n')\n"
      "  z.writestr(i + 'RECORD', '')\n"
      "  z.close()\n";
  const auto python = find_python();
  ASSERT_TRUE(python) << python.error().text();
  ASSERT_TRUE(
      proc::run_command({.child = {.argv = {python->string(), "-c", kMakeWheel, folder.path().string()}}})
          ->ok());
  ::setenv("PIP_NO_INDEX", "1", 1);
  ::setenv("PIP_FIND_LINKS", folder.path().c_str(), 1);
  const EnvironmentStore store{.home = folder / "home",
                               .requirements = {{"tiny", "tiny-thing==1.5\n"},
                                                {"greedy", "# pip: --no-deps\ngreedy-thing==1.5\n"},
                                                {"strict", "greedy-thing==1.5\n"}}};
  const Status made = create_environments(store, {"tiny", "greedy"}, [](const std::string&) {});
  const Status refused = create_environments(store, {"strict"}, [](const std::string&) {});
  ::unsetenv("PIP_NO_INDEX");
  ::unsetenv("PIP_FIND_LINKS");
  ASSERT_TRUE(made) << made.error().text();
  for (const char* name : {"tiny", "greedy"}) {
    const Environment e = list_environments(store).at(name == std::string("tiny") ? 0 : 1);
    EXPECT_TRUE(e.ok()) << e.why_not();
    const std::string import = fmt::format("import {}_thing", name);
    EXPECT_TRUE(proc::run_command({.child = {.argv = {e.python.string(), "-c", import}}})->ok());
  }
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("tensorflow-of-mars"));
}

}  // namespace
}  // namespace bakeoff
