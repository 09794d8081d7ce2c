#include "environments/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/testing.h"

namespace bakeoff {
namespace {

const std::vector<std::string> kNames = {"torch", "tensorflow", "jax"};

TEST(Config, NamesInterpreters) {
  const auto config =
      parse_config("[environment.torch]\npython = '/bin/sh'\n[environment.jax]\npython = 'sh'\n",
                   "/bin/config.toml", kNames);
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->interpreters.at("torch"), "/bin/sh");
  EXPECT_EQ(config->interpreters.at("jax"), "/bin/sh");
  EXPECT_EQ(config->interpreters.size(), 2u);
  EXPECT_TRUE(parse_config("", "c.toml", kNames)->interpreters.empty());
}

TEST(Config, ErrorsNameFileLineKeyAndRemedy) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"\n[enviroment.torch]", "c.toml:2: unknown section 'enviroment'\n  did you mean 'environment'?"},
      {"[environment.torhc]\npython='/bin/sh'",
       "c.toml:1: unknown environment 'torhc'\n  did you mean 'torch'?"},
      {"[environment.torch]\npyton='/bin/sh'", "c.toml:2: unknown key 'pyton'\n  did you mean 'python'?"},
      {"[environment.torch]\n\npython=3", "c.toml:3: 'environment.torch.python' must be text"},
      {"[environment.torch]", "c.toml:1: 'environment.torch' names no python"},
      {"environment = 3", "c.toml:1: 'environment' must be a section\n  [environment.torch]"},
      {"[environment]\ntorch = '/bin/sh'",
       "c.toml:2: 'environment.torch' must be a table\n  [environment.torch]\n  python = "
       "\"/usr/bin/python3\""},
      {"[environment.torch]\npython='/no/such/python'",
       "c.toml:2: 'environment.torch.python': there is no '/no/such/python'\n  name the interpreter itself, "
       "for "
       "example /usr/bin/python3"},
  };
  for (const auto& [text, error] : cases) {
    const auto config = parse_config(text, "c.toml", kNames);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().text(), error);
  }
  const auto malformed = parse_config("\n\nx = [", "c.toml", kNames);
  ASSERT_FALSE(malformed);
  EXPECT_EQ(malformed.error().where, "c.toml:3:6");
  std::string deep = "[a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_FALSE(parse_config(deep + "]", "c.toml", kNames)) << "and no end of the stack";
}

TEST(Config, OnlyTheDefaultFileMayBeAbsent) {
  const testing::TestFolder home;
  ::unsetenv("BAKEOFF_CONFIG");
  EXPECT_EQ(load_config({}, home, kNames).value(), Config{});
  EXPECT_FALSE(load_config(home / "mine.toml", home, kNames));
  ASSERT_TRUE(write_file(home / "config.toml", "[environment.torch]\npython = '/bin/sh'\n"));
  EXPECT_EQ(load_config({}, home, kNames)->interpreters.at("torch"), "/bin/sh");
  ASSERT_TRUE(write_file(home / "other.toml", ""));
  EXPECT_TRUE(load_config(home / "other.toml", home, kNames)->interpreters.empty());
  ::setenv("BAKEOFF_CONFIG", (home / "other.toml").c_str(), 1);
  EXPECT_TRUE(load_config({}, home, kNames)->interpreters.empty());
  ::setenv("BAKEOFF_CONFIG", (home / "absent.toml").c_str(), 1);
  EXPECT_FALSE(load_config({}, home, kNames));
  ::unsetenv("BAKEOFF_CONFIG");
}

}  // namespace
}  // namespace bakeoff
