#include "parity/proof_store.h"

#include <gtest/gtest.h>

#include "base/embedded.h"
#include "base/files.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "zoo/zoo.h"

namespace bakeoff::embedded {
const std::vector<File>& gate_sources();
}

namespace bakeoff {
namespace {

class ProofsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.workload = *zoo::build("mlp_small");
    entry_.script = folder_.path() / "train.py";
    entry_.layout = folder_.path() / "train.layout.json";
    entry_.worker.runner = "/somewhere/abc";
    for (const auto& file : {entry_.script, entry_.layout}) ASSERT_TRUE(write_file(file, file.string()));
  }
  std::string key(const std::string& identity = "torch 2.13") {
    return *proof_key(job_key(job_, data_, weights_), entry_, identity);
  }

  ::bakeoff::testing::TestFolder folder_;
  GateJob job_;
  std::string data_ = "sha256 of the data", weights_ = "sha256 of the weights";
  ContenderStart entry_;
};

TEST_F(ProofsTest, AnyInputOfTheProofChangesTheKey) {
  const std::string before = key();
  EXPECT_EQ(key(), before);
  EXPECT_NE(key("torch 2.14"), before);
  job_.training.optimizer.eps = 1e-8;
  EXPECT_NE(key(), before);
  job_.training.optimizer.eps = ir::Optimizer{}.eps;
  EXPECT_EQ(key(), before);
  entry_.worker.options["compile"] = "default";
  EXPECT_NE(key(), before);
  entry_.worker.options.clear();
  for (const auto& file : {entry_.script, entry_.layout}) {
    ASSERT_TRUE(write_file(file, "changed"));
    EXPECT_NE(key(), before) << file;
    ASSERT_TRUE(write_file(file, file.string()));
  }
  data_ = "other rows";
  EXPECT_NE(key(), before);
  data_ = "sha256 of the data";
  EXPECT_EQ(key(), before);
  weights_ = "other weights";
  EXPECT_NE(key(), before);
  fs::remove(entry_.script);
  EXPECT_FALSE(proof_key("job", entry_, ""));
}

// A proof that another gate made does not count: the key follows the sources of the gate and of the referee.
TEST_F(ProofsTest, AnotherGateIsAnotherKey) {
  EXPECT_NE(job_key(job_, data_, weights_, "another gate"), job_key(job_, data_, weights_));
  EXPECT_EQ(gate_sources().size(), 64u);
  size_t found = 0;
  for (const embedded::File& file : embedded::gate_sources()) {
    const auto source = read_file(fs::path(BAKEOFF_SOURCE_DIR) / "src" / file.path);
    ASSERT_TRUE(source) << file.path;
    EXPECT_EQ(file.text, *source) << file.path;
    EXPECT_EQ(file.path.find("_test"), std::string_view::npos) << file.path;
    for (const char* needed :
         {"parity/proof.cc", "parity/proof.h", "parity/proof_dropout.cc", "reference/reference.cc",
          "causes/explain.cc", "referee/optimizer.cc", "ir/verify.cc"})
      found += file.path == needed;
  }
  EXPECT_EQ(found, 7u);
}

TEST_F(ProofsTest, OnlyPassedProofsAreKeptAndFoundAgain) {
  const ProofStore store(folder_.path() / "proofs");
  Parity passed{.contender = "torch", .first_step_cold_ns = 5, .proven = "2026-11-21T08:00:00Z"};
  passed.checks.push_back({"float64 loss", "loss", 1e-16, 1e-10, true});
  ASSERT_TRUE(store.keep("one", passed));
  const auto found = store.find("one");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->reused);
  EXPECT_EQ(found->proven, passed.proven);
  EXPECT_EQ(found->checks, passed.checks);
  EXPECT_EQ(found->first_step_cold_ns, 0) << "of another run's compilation cache";

  Parity failed = passed;
  failed.diverges_at = "loss";
  ASSERT_TRUE(store.keep("two", failed));
  EXPECT_FALSE(store.find("two"));
  ASSERT_TRUE(write_file(folder_.path() / "proofs/three.json", "{\"contender\": "));
  EXPECT_FALSE(store.find("three"));
  EXPECT_FALSE(ProofStore({}).find("one"));
}

}  // namespace
}  // namespace bakeoff
