// Maps mutated ONNX files: whatever a file holds, the importer gives a message.
//
//   bakeoff_onnx_fuzz COUNT SEED FILE...
//
// Of the files in turn, some bytes are changed, removed, doubled or taken from another file. Run under sanitizers: the
// program ends with the first error that they find.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "onnx/mapper.h"
#include "onnx/onnx_model.h"
#include "tensor/rng.h"

namespace {

using bakeoff::tensor::Rng;

std::string mutated(std::string bytes, const std::string& other, Rng& rng) {
  const int64_t changes = rng.integer(1, 6);
  for (int64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const auto last = static_cast<int64_t>(bytes.size()) - 1;
    const auto at = static_cast<size_t>(rng.integer(0, last));
    const auto length =
        static_cast<size_t>(rng.integer(1, std::min<int64_t>(last + 1 - static_cast<int64_t>(at), 16)));
    switch (rng.integer(0, 5)) {
      case 0:
        bytes[at] = static_cast<char>(rng.integer(0, 255));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.integer(0, 7)));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes[at] = "\x00\x01\x7f\xff"[rng.integer(0, 3)];
        break;
      default:
        if (!other.empty()) {
          const auto from = static_cast<size_t>(rng.integer(0, static_cast<int64_t>(other.size()) - 1));
          bytes.replace(at, length, other.substr(from, length));
        }
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int64_t count = std::strtoll(argv[1], nullptr, 10);
  Rng rng(static_cast<uint64_t>(std::strtoull(argv[2], nullptr, 10)));
  std::vector<std::string> files;
  for (int i = 3; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    files.emplace_back((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("bakeoff_fuzz_{}.onnx", argv[2]);
  int64_t mapped = 0, refused = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto pick = [&]() -> const std::string& {
      return files[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(files.size()) - 1))];
    };
    const std::string bytes = mutated(pick(), pick(), rng);
    std::ofstream(path, std::ios::binary) << bytes;
    const auto file = bakeoff::onnx::ModelFile::open(path);
    bool good = false;
    if (file) {
      auto made = bakeoff::onnx::Mapper(*file, {.added_batch = rng.chance(0.5)}).run();
      good = made && bakeoff::onnx::workload_text(*made, "fuzz", "mse");
    }
    ++(good ? mapped : refused);
  }
  std::filesystem::remove(path);
  fmt::print("mapped {}, refused {}\n", mapped, refused);
  return 0;
}
