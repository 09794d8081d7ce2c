// The functions of base/old_glibc.cc behave as glibc's own do. Linked as the release binary is, so that the program
// itself shows what symbols it needs (tag_test.py); no GoogleTest, which needs more of them.

#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept;

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

int thrown(int depth) {
  const std::string destroyed(100, 'x');
  if (depth == 0) throw std::runtime_error(destroyed);
  return thrown(depth - 1) + 1;
}

bool caught() {
  try {
    thrown(50);
  } catch (const std::runtime_error& error) {
    return std::string(error.what()).size() == 100;
  }
  return false;
}

void exceptions() {
  expect(caught(), "an exception is caught 50 frames above");
  std::vector<int> good(8);
  std::vector<std::thread> threads;
  for (int& one : good)
    threads.emplace_back([&one] {
      for (int i = 0; i < 200; ++i) one += caught() ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  for (const int one : good) expect(one == 200, "exceptions are caught in eight threads at once");
}

void objects() {
  dl_find_object found = {};
  expect(_dl_find_object(reinterpret_cast<void*>(&caught), &found) == 0, "this program is found");
  expect(found.dlfo_map_start <= reinterpret_cast<void*>(&caught), "it begins before its functions");
  expect(found.dlfo_map_end > reinterpret_cast<void*>(&caught), "it ends behind them");
  expect(_dl_find_object(reinterpret_cast<void*>(&std::fputs), &found) == 0, "glibc is found");
  expect(_dl_find_object(nullptr, &found) == -1, "nothing is at address 0");
}

void numbers() {
  std::set<unsigned> drawn;
  std::random_device device;
  for (int i = 0; i < 1000; ++i) drawn.insert(device());
  expect(drawn.size() > 990, "random numbers differ");
  const double infinite = std::numeric_limits<double>::infinity();
  volatile double three = 3, four = 4, huge = 1e300;
  expect(std::hypot(three, four) == 5, "hypot(3, 4) is 5");
  expect(std::hypot(huge, huge) < 1.5e300, "hypot does not overflow inside");
  expect(std::hypot(-infinite, std::nan("")) == infinite, "hypot of an infinity is infinite");
}

}  // namespace

int main() {
  exceptions();
  objects();
  numbers();
  return failures == 0 ? 0 : 1;
}
