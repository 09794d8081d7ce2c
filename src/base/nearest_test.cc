#include "base/nearest.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

TEST(Nearest, FindsTheCloseWordOnly) {
  const std::vector<std::string> words = {"optimizer", "workload", "batch"};
  EXPECT_EQ(nearest("optimiser", words), "optimizer");
  EXPECT_EQ(nearest("wrkload", words), "workload");
  EXPECT_EQ(nearest("precision", words), "");
  EXPECT_EQ(nearest("ru", {"run", "report"}), "run");
  EXPECT_EQ(nearest("rnu", {"run", "report"}), "run");
  EXPECT_EQ(nearest("repotr", {"run", "report"}), "report");
  EXPECT_EQ(suggest("bach", words), "did you mean 'batch'?");
  EXPECT_EQ(suggest("zzzzzz", words), "one of: optimizer, workload, batch");
}

}  // namespace
}  // namespace bakeoff
