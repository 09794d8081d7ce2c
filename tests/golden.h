#pragma once

// Generated text against the files in tests/golden. UPDATE_GOLDENS=1 rewrites them; the diff is reviewed.
//
//   expect_golden("torch/mnist_cnn.py", emitted.source);

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace bakeoff {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(BAKEOFF_SOURCE_DIR) / "tests/golden" / name;
  if (const char* update = std::getenv("UPDATE_GOLDENS"); update != nullptr && std::string(update) == "1") {
    const Status written = write_file(path, text);
    ASSERT_TRUE(written.has_value()) << written.error().text();
    return;
  }
  const Result<std::string> golden = read_file(path);
  ASSERT_TRUE(golden.has_value()) << golden.error().text() << "\nUPDATE_GOLDENS=1 writes it";
  EXPECT_EQ(*golden, text) << "differs from " << path << "; UPDATE_GOLDENS=1 rewrites it";
}

}  // namespace bakeoff
