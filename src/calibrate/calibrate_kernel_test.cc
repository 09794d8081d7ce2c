#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "calibrate/calibrate_work.h"
#include "proc/fd.h"

namespace bakeoff {
namespace {

using Json = nlohmann::json;

// Everything the kernel answers to `requests`.
std::vector<Json> answers(const std::string& requests) {
  auto in = proc::make_pipe().value(), out = proc::make_pipe().value();
  EXPECT_EQ(::write(in.write.get(), requests.data(), requests.size()), static_cast<ssize_t>(requests.size()));
  in.write.reset();
  EXPECT_EQ(serve_kernel(in.read.get(), out.write.get()), 0);
  out.write.reset();
  std::string text(1 << 16, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(out.read.get(), text.data(), text.size()))));
  std::vector<Json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line, nullptr, false));
  return all;
}

TEST(Kernel, SpeaksTheRunnerProtocol) {
  const auto all = answers(
      "{\"id\":1,\"op\":\"import\",\"options\":{},\"dtype\":\"float32\",\"threads\":2}\n"
      "{\"id\":2,\"op\":\"build\",\"script\":\"none\"}\n"
      "{\"id\":3,\"op\":\"run\",\"steps\":2}\n"
      "{\"id\":4,\"op\":\"close\"}\n"
      "{\"id\":5,\"op\":\"run\",\"steps\":2}\n");
  ASSERT_EQ(all.size(), 5u) << "nothing after close";
  EXPECT_EQ(all[0]["event"], "hello");
  EXPECT_EQ(all[0]["protocol"], 1);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["id"], i);
    EXPECT_EQ(all[i]["ok"], true);
  }
  EXPECT_EQ(all[1]["effective"]["threads"], 2);
  EXPECT_EQ(all[3]["steps"], 2);
  EXPECT_GT(all[3]["ns"].get<int64_t>(), 100'000) << "it works for its answer";
}

TEST(Kernel, RefusesWhatItDoesNotUnderstand) {
  const auto all = answers(
      "{\"id\":1,\"op\":\"parity\"}\n{\"id\":2,\"op\":\"run\",\"steps\":-1}\nnot "
      "JSON\n{\"id\":3,\"op\":7}\n");
  ASSERT_EQ(all.size(), 5u);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["ok"], false) << all[i].dump();
    EXPECT_EQ(all[i]["stage"], "protocol");
  }
}

}  // namespace
}  // namespace bakeoff
