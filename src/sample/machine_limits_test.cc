#include "sample/machine_limits.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>

namespace bakeoff::sample {
namespace {

// A kernel of 5,000 CPUs: it refuses a smaller set.
TEST(AllowedCpus, AreFoundOnAMachineOfThousands) {
  const auto kernel = [](size_t size, cpu_set_t* set) {
    if (size * 8 < 5000) {
      errno = EINVAL;
      return -1;
    }
    for (const size_t cpu : {size_t{3}, size_t{1024}, size_t{4999}}) CPU_SET_S(cpu, size, set);
    return 0;
  };
  EXPECT_EQ(allowed_cpus(kernel), (std::vector<int>{3, 1024, 4999}));
}

TEST(AllowedCpus, AreNeverMadeUp) {
  const auto refusal = [](size_t, cpu_set_t*) {
    errno = EPERM;
    return -1;
  };
  EXPECT_THROW(allowed_cpus(refusal), std::system_error);
  const auto too_small = [](size_t, cpu_set_t*) {
    errno = EINVAL;
    return -1;
  };
  EXPECT_THROW(allowed_cpus(too_small), std::system_error);
  EXPECT_FALSE(allowed_cpus().empty());
}

}  // namespace
}  // namespace bakeoff::sample
