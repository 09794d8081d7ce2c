#include "worker/compiled_contender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.h"
#include "plan/plan_scripts.h"
#include "plan/testing.h"

namespace bakeoff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TestFolder;

constexpr const char* kProgram =
    "// A program.\n#include <torch/torch.h>\n#include <map>\nint main() { return 0; }\n";

// Tools that leave a note in $FOLDER/log and do as little as a build needs: the compiler tells its version,
// Python where torch is, CMake makes a worker; FAKE_CMAKE=refuse makes it fail as a compiler would.
class CompiledContender : public ::testing::Test {
 protected:
  void SetUp() override {
    tool("g++", "echo \"g++ (fake) ${FAKE_VERSION:-1.0}\"\n");
    tool("make", "exit 9\n");
    tool("python",
         "echo noise\necho bakeoff:" + (folder_ / "torch").string() + "\necho bakeoff:${FAKE_TORCH:-2.0}\n");
    tool("cmake", "echo \"$@\" >> " + (folder_ / "log").string() +
                      "\n"
                      "if [ \"$1\" != --build ]; then mkdir -p \"$6\"; exit 0; fi\n"
                      "if [ \"$FAKE_CMAKE\" = hang ]; then sleep 60; fi\n"
                      "if [ \"$FAKE_CMAKE\" = refuse ]; then\n"
                      "  i=0; while [ $i -lt 100 ]; do echo \"note $i\"; i=$((i + 1)); done\n"
                      "  echo \"train_a.cc:3:1: error: 'x' was not declared\"; echo ninja: stopped; exit 1\n"
                      "fi\n"
                      "echo \"$4\" > \"$2/worker\"\n");
    fs::create_directories(folder_ / "torch/share/cmake/Torch");
    ASSERT_TRUE(write_file(folder_ / "train_a.cc", kProgram));
    ::setenv("PATH", (folder_ / "bin").c_str(), 1);
    ::unsetenv("CXX");
    for (const char* name : {"FAKE_VERSION", "FAKE_TORCH", "FAKE_CMAKE"}) ::unsetenv(name);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  void tool(const std::string& name, const std::string& body) {
    const fs::path file = folder_ / ("bin/" + name);
    ASSERT_TRUE(write_file(file, "#!/bin/sh\nPATH=/usr/bin:/bin\n" + body));
    ::chmod(file.c_str(), 0755);
  }
  Compiled compile() {
    return compile_contender({.sources = {folder_ / "train_a.cc"},
                              .python = folder_ / "bin/python",
                              .home = folder_ / "home",
                              .seconds = seconds_},
                             [this](const std::string& line) { said_ += line + "\n"; });
  }
  // How often a worker was made; what all share does not count.
  int made() {
    int count = 0;
    const std::string log = read_file(folder_ / "log").value();
    for (size_t at = log.find("--target worker"); at != std::string::npos;
         at = log.find("--target worker", at + 1)) {
      ++count;
    }
    return count;
  }
  std::string refusal() {
    const Compiled compiled = compile();
    if (!compiled.failure) return "";
    EXPECT_EQ(compiled.failure->stage, Stage::kCompile);
    return compiled.failure->reason;
  }

  TestFolder folder_;
  std::string path_ = std::getenv("PATH");
  std::string said_;
  double seconds_ = 30;
};

TEST_F(CompiledContender, IsCompiledOnceForItsContent) {
  const Compiled first = compile();
  ASSERT_FALSE(first.failure) << first.failure->reason << first.failure->log_tail;
  EXPECT_EQ(first.compiler, "g++ (fake) 1.0");
  EXPECT_GT(first.ns, 0);
  EXPECT_FALSE(first.kept);
  EXPECT_TRUE(fs::exists(first.program));
  EXPECT_EQ(made(), 1);
  EXPECT_THAT(said_, HasSubstr("compiling train_a.cc"));
  EXPECT_THAT(read_file(folder_ / "log").value(),
              AllOf(HasSubstr("-DCMAKE_BUILD_TYPE=Release"),
                    HasSubstr("-DCMAKE_PREFIX_PATH=" + (folder_ / "torch/share/cmake").string())));

  const Compiled again = compile();
  ASSERT_FALSE(again.failure);
  EXPECT_TRUE(again.kept);
  EXPECT_EQ(again.program, first.program);
  EXPECT_EQ(again.ns, first.ns);
  EXPECT_EQ(made(), 1);
}

TEST_F(CompiledContender, IsCompiledAnewForAnotherSourceCompilerOrTorch) {
  const fs::path first = compile().program;
  ASSERT_TRUE(write_file(folder_ / "train_a.cc", std::string(kProgram) + "// changed\n"));
  const fs::path second = compile().program;
  EXPECT_NE(first, second);
  ::setenv("FAKE_VERSION", "2.0", 1);
  const fs::path third = compile().program;
  EXPECT_NE(second, third);
  ::setenv("FAKE_TORCH", "2.1", 1);
  EXPECT_NE(third, compile().program);
  EXPECT_EQ(made(), 4);
}

// What was being written when a build was killed is no worker.
TEST_F(CompiledContender, AnUnfinishedWorkerIsMadeAgain) {
  const Compiled first = compile();
  fs::remove(first.program.parent_path() / "ns");
  EXPECT_FALSE(compile().kept);
  fs::remove(first.program);
  EXPECT_FALSE(compile().kept);
  EXPECT_EQ(made(), 3);
}

TEST_F(CompiledContender, MissingToolsAreAReasonWithItsRemedy) {
  fs::rename(folder_ / "bin/g++", folder_ / "bin/no");
  EXPECT_EQ(
      refusal(),
      "there is no C++ compiler in PATH; install a C++ compiler and CMake: apt-get install g++ cmake make");
  fs::rename(folder_ / "bin/no", folder_ / "bin/g++");
  fs::rename(folder_ / "bin/make", folder_ / "bin/no");
  EXPECT_THAT(refusal(), HasSubstr("there is no make or ninja in PATH"));
  fs::rename(folder_ / "bin/no", folder_ / "bin/make");
  fs::rename(folder_ / "bin/cmake", folder_ / "bin/no");
  EXPECT_THAT(refusal(), HasSubstr("there is no CMake in PATH"));
}

TEST_F(CompiledContender, TorchWithoutLibtorchIsAReason) {
  fs::remove_all(folder_ / "torch/share");
  EXPECT_THAT(refusal(), HasSubstr("has no libtorch for CMake"));
  tool("python", "echo bakeoff:\necho bakeoff:\n");
  EXPECT_THAT(refusal(), HasSubstr("has no package torch"));
  tool("python", "echo 'ImportError: broken'\nexit 1\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("exit code 1"), HasSubstr("ImportError: broken")));
}

TEST_F(CompiledContender, TheCompilersErrorIsTheReasonAndItsTailIsShown) {
  ::setenv("FAKE_CMAKE", "refuse", 1);
  const Compiled compiled = compile();
  ASSERT_TRUE(compiled.failure);
  EXPECT_EQ(compiled.failure->reason,
            "the compiler refused the program: train_a.cc:3:1: error: 'x' was not declared");
  EXPECT_THAT(compiled.failure->log_tail, HasSubstr("ninja: stopped"));
  EXPECT_THAT(compiled.failure->log_tail, ::testing::Not(HasSubstr("note 1\n")));
  ::unsetenv("FAKE_CMAKE");
  EXPECT_FALSE(compile().failure) << "a failure is not kept";
}

TEST_F(CompiledContender, ACompilerThatHangsIsEnded) {
  ::setenv("FAKE_CMAKE", "hang", 1);
  seconds_ = 0.2;
  EXPECT_THAT(refusal(), HasSubstr("timed out"));
}

TEST(WorkerMain, IncludesEachProgramInItsOwnNamespaceAfterAllHeaders) {
  const TestFolder folder;
  ASSERT_TRUE(write_file(folder / "one.cc", kProgram));
  ASSERT_TRUE(write_file(folder / "two.cc", "#include <vector>\nint two;\n"));
  const auto text = worker_main({folder / "one.cc", folder / "two.cc"});
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(*text,
            "#include \"script.h\"\n\n#include <map>\n#include <torch/torch.h>\n#include <vector>\n\n"
            "namespace one {\n#line 1 \"one.cc\"\n" +
                std::string(kProgram) +
                "\n}  // namespace one\nBAKEOFF_SCRIPT(one)\n\n"
                "namespace two {\n#line 1 \"two.cc\"\n#include <vector>\nint two;\n\n"
                "}  // namespace two\nBAKEOFF_SCRIPT(two)\n\n"
                "int main(int argc, char** argv) { return bakeoff::serve_programs(argc, argv); }\n");
}

TEST(WorkerMain, TakesAVariantAndItsFloat32Twin) {
  const TestFolder folder;
  const fs::path script = folder / "train_half.cc";
  ASSERT_TRUE(write_file(script, "int x;\n"));
  EXPECT_EQ(with_twin(script), std::vector{script});
  ASSERT_TRUE(write_file(twin_of_script(script), "int x;\n"));
  const auto text = worker_main(with_twin(script));
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_THAT(
      *text, AllOf(HasSubstr("BAKEOFF_SCRIPT(train_half)"), HasSubstr("BAKEOFF_SCRIPT(train_half_float32)")));
}

TEST(WorkerMain, RefusesNamesThatNoNamespaceHas) {
  const TestFolder folder;
  ASSERT_TRUE(write_file(folder / "my-net.cc", "int x;\n"));
  const auto strange = worker_main({folder / "my-net.cc"});
  ASSERT_FALSE(strange);
  EXPECT_THAT(strange.error().text(), HasSubstr("'my-net' cannot be a namespace"));
  EXPECT_FALSE(worker_main({folder / "none.cc"}));
}

}  // namespace
}  // namespace bakeoff
