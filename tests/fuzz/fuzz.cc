// Reads mutated files by the readers of the program: whatever a file holds, there is a value or an Error.
//
//   bakeoff_fuzz KIND COUNT SEED FOLDER FILE...
//
// Each file is read as it is; then, of the files in turn, some bytes are changed, removed, doubled, taken from another file, or replaced by what is
// hard to read: huge numbers, deep nesting, control characters. A mutant lies in FOLDER while it is read. Where a
// reader throws, crashes, takes too long or too much memory, it stays there, and the program ends: with 1, or by a
// signal. KIND: run (FILE: files of one run directory, which FOLDER holds), or a row of kinds() below. Under
// sanitizers it ends with the first error that they find.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "data/own_data.h"
#include "history/series_file.h"
#include "ir/cost.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "onnx/mapper.h"
#include "onnx/onnx_model.h"
#include "recipe/published_study.h"
#include "recipe/recipe.h"
#include "recipe/suite_file.h"
#include "records/machine_report.h"
#include "report/html.h"
#include "report/terminal.h"
#include "store/read_run.h"
#include "suite/suite_record.h"
#include "summary/summarise.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;
using tensor::Rng;

constexpr unsigned kLongest = 120;           // seconds for one file; a tenth of a second is usual at most
constexpr rlim_t kMemory = rlim_t{3} << 30;  // bytes

std::string repeated(const char* piece, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += piece;
  return all;
}

std::string hard_to_read(Rng& rng) {
  static const std::vector<std::string> kPieces = {"1e-320",
                                                   "1e999",
                                                   "-1e999",
                                                   "NaN",
                                                   "null",
                                                   "9223372036854775808",
                                                   "-9223372036854775809",
                                                   "9007199254740993",
                                                   "0",
                                                   "-1",
                                                   "{}",
                                                   "[]",
                                                   "\"\"",
                                                   "true",
                                                   "\x1b]0;x\x07",
                                                   "\xe2\x80\xae",
                                                   std::string("\0", 1),
                                                   "\n",
                                                   "\r\n",
                                                   ",",
                                                   "\"",
                                                   "'",
                                                   "[",
                                                   "{",
                                                   "}",
                                                   "../../etc/passwd",
                                                   "=cmd|' /C calc'!A0",
                                                   "<script>",
                                                   "%s%n",
                                                   "\xff\xfe"};
  const auto which = static_cast<size_t>(rng.integer(0, static_cast<int64_t>(kPieces.size()) + 2));
  if (which < kPieces.size()) return kPieces[which];
  static const char* const kDeep[] = {"[", "a.", "{\"a\":"};
  return repeated(kDeep[which - kPieces.size()], rng.integer(1, 3000));
}

std::string mutated(std::string bytes, const std::string& other, Rng& rng) {
  const int64_t changes = rng.integer(1, 6);
  for (int64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const auto last = static_cast<int64_t>(bytes.size()) - 1;
    const auto at = static_cast<size_t>(rng.integer(0, last));
    const auto length =
        static_cast<size_t>(rng.integer(1, std::min<int64_t>(last + 1 - static_cast<int64_t>(at), 16)));
    switch (rng.integer(0, 7)) {
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
      case 5:
        bytes.replace(at, rng.chance(0.5) ? length : 0, hard_to_read(rng));
        break;
      case 6:
        bytes.resize(at);
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

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

const ir::Workload& workload() {
  static const ir::Workload made = ir::parse(
                                       "workload w(x: f32[N,4], y: i32[N]) {\n"
                                       "  logits = linear(x; weight=fc.weight[3,4], bias=fc.bias[3])\n"
                                       "  loss = softmax_cross_entropy(logits, y) reduction=mean\n}\n")
                                       .value();
  return made;
}

bool reads_ir(const fs::path& file) {
  const auto parsed = ir::parse(text_of(file));
  return parsed && ir::infer(*parsed) && ir::cost_by_op(*parsed, 8);
}

bool reads_recipe(const fs::path& file) { return recipe::parse(text_of(file), file).has_value(); }
bool reads_study(const fs::path& file) { return recipe::parse_study(text_of(file), file).has_value(); }
bool reads_suite(const fs::path& file) { return recipe::parse_suite(text_of(file), file).has_value(); }

// `inputs`: of npy and IDX the files of x and y.
bool reads_data(const fs::path& file, DataKind kind, const std::vector<fs::path>& inputs = {}) {
  DataSpec spec{.kind = kind, .path = file};
  if (inputs.size() == 2) spec.inputs = {{"x", {inputs[0].string()}}, {"y", {inputs[1].string()}}};
  if (kind == DataKind::kCsv)
    spec.inputs = {{"x", {"a", "b", "c", "d"}}, {"y", {"y"}}}, spec.categories = {"y"};
  const auto own = open_own_data(spec, workload());
  if (!own) return false;
  const fs::path out = file.string() + ".out";
  const bool read = tensor::stream_safetensors(out, own->tensors, own->metadata).has_value();
  fs::remove(out);
  return read;
}

bool reads_tensors(const fs::path& file) {
  const auto opened = tensor::SafetensorsFile::open(file);
  if (!opened) return false;
  for (const auto& entry : opened->entries()) {
    if (!opened->read(entry.name)) return false;
  }
  return true;
}

bool reads_onnx(const fs::path& file) {
  const auto opened = onnx::ModelFile::open(file);
  if (!opened) return false;
  bool read = false;
  for (const bool added_batch : {false, true}) {
    auto made = onnx::Mapper(*opened, {.added_batch = added_batch}).run();
    read |= made && onnx::workload_text(*made, "fuzz", "mse");
  }
  return read;
}

// What `report`, `history` and a resumed run read; now and then all that a report shows of it.
bool reads_run(const fs::path& run, Rng& rng) {
  const auto indexed = store::read_run(run);
  const auto directory = RunDirectory::open(run);
  if (!directory || !directory->manifest() || !directory->read<Parity>() || !directory->read<Trial>())
    return false;
  if (!rng.chance(0.02)) return indexed.has_value();
  const auto summary = summarise(*directory);
  if (!summary) return false;
  return !report::render_terminal(*summary, {}).empty() && !report::render_html(*summary).empty();
}

using Reader = std::function<bool(const fs::path& file)>;

// `files`: what the mutants are made from; the mutant of one stands in its place.
std::map<std::string, Reader> kinds(Rng& rng, const std::vector<fs::path>& files) {
  const auto data = [](DataKind kind) {
    return [kind](const fs::path& file) { return reads_data(file, kind); };
  };
  const auto arrays = [&files](DataKind kind) {
    return [kind, &files](const fs::path& file) { return reads_data(file, kind, files); };
  };
  return {
      {"recipe", reads_recipe},
      {"study", reads_study},
      {"suite", reads_suite},
      {"ir", reads_ir},
      {"csv", data(DataKind::kCsv)},
      {"npy", arrays(DataKind::kNpy)},
      {"npz", data(DataKind::kNpz)},
      {"idx", arrays(DataKind::kIdx)},
      {"safetensors", reads_tensors},
      {"series", [](const fs::path& file) { return read_series(file).has_value(); }},
      {"machine", [](const fs::path& file) { return read_machine(file).has_value(); }},
      {"suite_record",
       [](const fs::path& file) {
         return suite::record_from_json(text_of(file), file.string()).has_value();
       }},
      {"onnx", reads_onnx},
      {"run", [&rng](const fs::path& file) { return reads_run(file.parent_path(), rng); }},
  };
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // sanitizers reserve terabytes of addresses
#else
constexpr bool kSanitized = false;
#endif

int fuzz(const std::string& kind, int64_t count, uint64_t seed, const fs::path& folder,
         const std::vector<fs::path>& files) {
  Rng rng(seed);
  std::vector<fs::path> now = files;
  const auto all = kinds(rng, now);
  const auto reader = all.find(kind);
  if (reader == all.end() || files.empty()) return 2;
  if (!kSanitized) {
    const rlimit memory = {kMemory, kMemory};
    ::setrlimit(RLIMIT_AS, &memory);
  }
  std::vector<std::string> texts;
  for (const fs::path& file : files) texts.push_back(text_of(file));
  int64_t read = 0, refused = 0;
  const auto draw = [&] {
    return static_cast<size_t>(rng.integer(0, static_cast<int64_t>(texts.size()) - 1));
  };
  const auto given = static_cast<int64_t>(files.size());
  for (int64_t i = -given; i < count; ++i) {  // first as they are: some are what once was not read well
    const size_t which = i < 0 ? static_cast<size_t>(-i - 1) : draw();
    const fs::path path = kind == "run" ? folder / files[which].filename() : folder / ("mutant." + kind);
    std::ofstream(path, std::ios::binary)
        << (i < 0 ? texts[which] : mutated(texts[which], texts[draw()], rng));
    now[which] = path;
    ::alarm(kLongest);
    try {
      ++(reader->second(path) ? read : refused);
    } catch (const fs::filesystem_error&) {
      ++refused;  // main() makes a message of it, for all places
    } catch (const std::exception& thrown) {
      fmt::print(stderr, "{} {} of seed {}: {} throws {}\n", kind, i, seed, path.string(), thrown.what());
      return 1;
    }
    ::alarm(0);
    now[which] = files[which];
    if (kind == "run") std::ofstream(path, std::ios::binary) << texts[which];
  }
  fmt::print("read {}, refused {}\n", read, refused);
  return 0;
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  return bakeoff::fuzz(argv[1], std::strtoll(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                       argv[4], {argv + 5, argv + argc});
}
