// Every contender must read the same bytes, so all sources end in one safetensors file of the same layout,
// and its hash is in the record. Making that file may take minutes, and several races may want it at once: it
// is named after all that it depends on (recipe_of), made under a lock, and looked for again once the lock is
// held. A file whose content is not that of its own hash is made anew.
//
// check_data() reads the whole file before anything is proven. A label outside of its range, or a NaN in a
// row of the last batch, would otherwise be found hours later, as a crash inside one framework or as a loss
// that differs in another.

#include "data/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "base/file_lock.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/sha256_file.h"
#include "base/texts.h"
#include "data/image_sets.h"
#include "data/own_data.h"
#include "data/text_data.h"
#include "ir/bounds.h"
#include "table/numbers.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::DType;
using tensor::SafetensorsFile;

constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

bool fits(DType stored, ir::DType wanted) {
  if (wanted == ir::DType::kF32)
    return stored == DType::kF32 || stored == DType::kF64 || stored == DType::kU8;
  return stored == DType::kI32 || stored == DType::kI64 || stored == DType::kU8;
}

const char* accepted(ir::DType wanted) {
  return wanted == ir::DType::kF32 ? "F32, F64 or U8" : "I32, I64 or U8";
}

// One tensor of the file under test.
struct Column {
  const fs::path& path;
  const SafetensorsFile& file;
  const SafetensorsFile::Entry& entry;
  const ir::Input& input;
  std::string title;  // "'FILE': tensor 'NAME'"

  Error error(const std::string& what, const std::string& remedy) const {
    return Error{.message = title + " " + what, .remedy = remedy};
  }
  int64_t rows() const { return entry.shape[0]; }
  int64_t row_elements() const { return std::max<int64_t>(1, tensor::elements(entry.shape) / rows()); }
  int64_t rows_at_once() const { return std::max<int64_t>(1, kElementsAtOnce / row_elements()); }
};

Status check_type(const Column& c) {
  const ir::Shape& wanted = c.input.type.shape;
  if (!fits(c.entry.dtype, c.input.type.dtype)) {
    return c.error(
        fmt::format("is {}, the workload's input is {}", name(c.entry.dtype), ir::to_text(c.input.type)),
        fmt::format("store it as {}", accepted(c.input.type.dtype)));
  }
  const bool same = c.entry.shape.size() == wanted.size() &&
                    std::equal(wanted.begin() + 1, wanted.end(), c.entry.shape.begin() + 1);
  if (!same) {
    return c.error(fmt::format("has shape {}, the workload's input is {}", tensor::to_text(c.entry.shape),
                               ir::to_text(c.input.type)),
                   "N is the number of rows; every other size must be equal");
  }
  if (c.rows() < 1) return c.error("has no rows", "data needs at least as many rows as a batch");
  return Done{};
}

// `frames`: of the ctc whose labels they are.
Status check_integers(const Column& c, const ir::RowBounds& bounds, std::optional<int64_t> frames) {
  if (std::ranges::none_of(bounds, [](const auto& bound) { return bound.has_value(); })) return Done{};
  for (int64_t first = 0; first < c.rows(); first += c.rows_at_once()) {
    const int64_t count = std::min(c.rows_at_once(), c.rows() - first);
    TRY(const auto values, c.file.read_int_rows(c.input.name, first, count));
    for (size_t i = 0; i < values.data.size(); ++i) {
      const int64_t value = values.data[i];
      const std::optional<ir::Bound>& bound = bounds[i % bounds.size()];
      if (!bound || bound->holds(value)) continue;
      return c.error(fmt::format("holds {} in row {}, outside {}", value,
                                 first + static_cast<int64_t>(i) / c.row_elements(), ir::to_text(*bound)),
                     ir::remedy(*bound));
    }
    for (size_t i = 0; frames && i < values.data.size(); i += bounds.size()) {
      const auto misfit = ir::ctc_misfit(std::span(values.data).subspan(i, bounds.size()), *frames);
      if (misfit.empty()) continue;
      return c.error(fmt::format("in row {}: {}", first + static_cast<int64_t>(i / bounds.size()), misfit),
                     "a row is its labels, then -1 to the end; leave rows out whose labels do not fit");
    }
  }
  return Done{};
}

Status check_finite(const Column& c) {
  if (c.entry.dtype == DType::kU8) return Done{};
  for (int64_t first = 0; first < c.rows(); first += c.rows_at_once()) {
    const int64_t count = std::min(c.rows_at_once(), c.rows() - first);
    TRY(const auto values, c.file.read_rows(c.input.name, first, count));
    for (size_t i = 0; i < values.data.size(); ++i) {
      const double value = values.data[i];
      if (std::isfinite(static_cast<float>(value))) continue;
      return c.error(fmt::format("holds {} in row {}, which is not a finite float32", value,
                                 first + static_cast<int64_t>(i) / c.row_elements()),
                     "clean or drop such rows");
    }
  }
  return Done{};
}

// The bounds of an input's row: one where all are equal, 0 for none.
std::string bounds_text(const ir::Workload& workload, ir::ValueId id) {
  ir::RowBounds bounds = ir::row_bounds(workload, id);
  if (std::ranges::adjacent_find(bounds, std::not_equal_to{}) == bounds.end())
    bounds.resize(std::min<size_t>(bounds.size(), 1));
  std::vector<std::string> texts;
  for (const auto& bound : bounds) {
    texts.push_back(std::to_string(bound ? bound->end : 0));
    if (bound && bound->ignored) texts.back() += fmt::format("|{}", *bound->ignored);
  }
  if (const auto frames = ir::ctc_frames(workload, id)) texts.push_back(fmt::format("{} frames", *frames));
  return texts.empty() ? "0" : join(texts, ",");
}

// ---- synthetic

constexpr double kIgnored = 0.125;  // of the labels, where a loss leaves one out

// All that the numbers depend on; also kept in the file, so that a stale one is recognised.
std::string recipe_of(const DataSpec& spec, const ir::Workload& workload) {
  std::string text = fmt::format("v1 samples={} seed={} split={}", spec.samples, spec.seed, spec.split);
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const ir::Input& input = workload.inputs[static_cast<size_t>(id)];
    text += fmt::format(" {}:{}<{}", input.name, ir::to_text(input.type), bounds_text(workload, id));
  }
  return text;
}

tensor::NamedTensors draw(const DataSpec& spec, const ir::Workload& workload) {
  tensor::NamedTensors tensors;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const ir::Input& input = workload.inputs[static_cast<size_t>(id)];
    tensor::Rng rng(spec.seed, spec.split + "/" + input.name);
    const tensor::Shape shape = ir::with_batch(input.type.shape, spec.samples);
    const auto count = static_cast<size_t>(tensor::elements(shape));
    if (input.type.dtype == ir::DType::kI32) {
      tensor::IntTensor ints{shape, std::vector<int64_t>(count)};
      const ir::RowBounds bounds = ir::row_bounds(workload, id);
      const auto frames = ir::ctc_frames(workload, id);
      for (size_t i = 0; i < count; ++i) {
        const ir::Bound bound = bounds[i % bounds.size()].value_or(1);
        const bool ignored = !frames && bound.ignored && rng.chance(kIgnored);
        ints.data[i] = ignored ? *bound.ignored : rng.integer(bound.begin, bound.end - 1);
      }
      for (size_t i = 0; frames && i < count; i += bounds.size())
        ir::end_labels(std::span(ints.data).subspan(i, bounds.size()),
                       rng.integer(1, static_cast<int64_t>(bounds.size())), *frames);
      tensors.emplace_back(input.name, tensor::encode(ints, DType::kI32).value());  // always fits
    } else {
      tensor::Tensor reals{shape, std::vector<double>(count)};
      for (double& value : reals.data) value = rng.normal();
      tensors.emplace_back(input.name, tensor::encode(reals, DType::kF32).value());
    }
  }
  return tensors;
}

// Of all data, in the order of the file.
std::string digest(const SafetensorsFile& file) {
  Sha256 sum;
  for (const auto& entry : file.entries()) {
    const auto bytes = file.bytes(entry.name);
    if (bytes) sum.add(*bytes);
  }
  return sum.hex();
}

// Made here and not changed since.
bool sound(const fs::path& path, const std::string& recipe) {
  const auto file = SafetensorsFile::open(path);
  if (!file) return false;
  const auto& metadata = file->metadata();
  const auto made_by = metadata.find("recipe");
  const auto sum = metadata.find(tensor::kDigest);
  return made_by != metadata.end() && made_by->second == recipe && sum != metadata.end() &&
         sum->second == digest(*file);
}

Status check_space(const fs::path& folder, const std::vector<tensor::TensorSource>& tensors) {
  double bytes = 0;
  for (const auto& each : tensors) {
    double size = static_cast<double>(tensor::size_of(each.dtype));
    for (const int64_t length : each.shape) size *= static_cast<double>(length);
    bytes += size;
  }
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (code || bytes <= static_cast<double>(space.available)) return Done{};
  return Error{.message = fmt::format("the data takes {}, '{}' has {} free", table::bytes(bytes),
                                      folder.string(), table::bytes(static_cast<double>(space.available))),
               .remedy = "free some space, or set BAKEOFF_HOME to a folder on another disk"};
}

struct Made {
  std::vector<tensor::TensorSource> tensors;
  tensor::Metadata metadata;
};

// The file of what `make` makes from `recipe`, which says all that it depends on; kept in `folder`.
Result<fs::path> make_once(const ir::Workload& workload, const fs::path& folder, const std::string& recipe,
                           const std::function<Result<Made>()>& make) {
  const fs::path path =
      folder / fmt::format("{}-{}.safetensors", workload.name, sha256(recipe).substr(0, 12));
  if (sound(path, recipe)) return path;
  TRY(const auto lock, FileLock::wait(folder / ".lock"));
  if (sound(path, recipe)) return path;
  TRY(Made made, make());
  CHECK_OK(check_space(folder, made.tensors));
  made.metadata["recipe"] = recipe;
  CHECK_OK(tensor::stream_safetensors(path, std::move(made.tensors), std::move(made.metadata)));
  return path;
}

// Of tensors in memory.
Made made_of(tensor::NamedTensors tensors) {
  Made made;
  for (auto& [name, raw] : tensors) {
    const auto kept = std::make_shared<const tensor::RawTensor>(std::move(raw));
    made.tensors.push_back(
        {.name = name, .dtype = kept->dtype, .shape = kept->shape, .write = [kept](const tensor::Sink& sink) {
           return sink(kept->bytes);
         }});
  }
  return made;
}

Result<fs::path> make_synthetic(const DataSpec& spec, const ir::Workload& workload, const fs::path& cache,
                                const Progress& progress) {
  if (spec.samples < 1) return Error{.message = "data of 0 samples", .remedy = "samples must be at least 1"};
  return make_once(workload, cache / "synthetic", recipe_of(spec, workload), [&]() -> Result<Made> {
    progress(fmt::format("drawing {} samples", grouped(spec.samples)));
    return made_of(draw(spec, workload));
  });
}

// ---- where the data comes from

struct Source {
  fs::path file;
  std::string what;  // the end of the description: "synthetic samples (seed 1)"
  std::map<std::string, std::string> sources = {};
  std::map<std::string, std::string> titles = {};  // for errors in what was made anew
};

Result<Source> find_images(const ImageSet& set, const DataSpec& spec, const fs::path& cache,
                           const Progress& progress) {
  std::vector<std::string> splits;
  for (const ImageSplit& split : set.splits) splits.push_back(split.name);
  if (std::ranges::find(splits, spec.split) == splits.end()) {
    return Error{.message = fmt::format("{} has no split '{}'", set.title, spec.split),
                 .remedy = join(splits, " or ")};
  }
  CHECK_OK(prepare_images(set, cache, progress));
  return Source{split_file(cache, set, spec.split), fmt::format("{} {} pictures", set.title, spec.split)};
}

Result<Source> find_text(const DataSpec& spec, const ir::Workload& workload, const fs::path& cache,
                         const Progress& progress) {
  TRY(const LanguageShape shape, language_shape(workload));
  const bool own = !spec.path.empty();
  const auto text = read_texts(own ? spec.path : fs::path(kDebianTexts));
  if (!text) {
    return Error{
        .message = text.error().message,
        .remedy = own ? "data.path must be a text, or a folder of texts"
                      : "these are the licences of Debian's package base-files; elsewhere name a text of "
                        "your own: data.path = \"book.txt\""};
  }
  const Tokens tokens = tokenise(*text, shape.vocabulary);
  const std::string recipe =
      fmt::format("v1 text={} length={} vocabulary={} split={} names={},{}", sha256(*text), shape.length,
                  shape.vocabulary, spec.split, shape.words, shape.next);
  TRY(auto file, make_once(workload, cache / "text", recipe, [&]() -> Result<Made> {
        progress(fmt::format("reading {} words", grouped(std::ssize(tokens.ids))));
        TRY(auto rows, language_rows(tokens, shape, spec.split));
        return made_of(std::move(rows));
      }));
  const double unknown = 100.0 * static_cast<double>(tokens.unknown) / static_cast<double>(tokens.ids.size());
  Source source{.file = file,
                .what = fmt::format("rows of {} words of {} ({}), {} known, {:.1f}% others", shape.length,
                                    own ? "'" + spec.path.filename().string() + "'" : "Debian's licences",
                                    spec.split, tokens.words.size() - 1, unknown)};
  TRY(source.sources, source_digests(spec));
  return source;
}

// What is kept depends on the files' content, on the part of it that is read, and on the inputs.
std::string recipe_of_own(const DataSpec& spec, const ir::Workload& workload,
                          const std::map<std::string, std::string>& sources) {
  std::string text =
      fmt::format("v1 kind={} delimiter={} resize={} categories={}", static_cast<int>(spec.kind),
                  spec.delimiter, spec.resize, join(spec.categories, ","));
  for (const auto& [path, sum] : sources) text += " " + sum;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const ir::Input& input = workload.inputs[static_cast<size_t>(id)];
    text += fmt::format(" {}:{}<{}", input.name, ir::to_text(input.type), bounds_text(workload, id));
    if (const auto named = spec.inputs.find(input.name); named != spec.inputs.end())
      text += fmt::format("={}", join(named->second, ","));
  }
  return text;
}

Result<Source> find_own(const DataSpec& spec, const ir::Workload& workload, const fs::path& cache,
                        const Progress& progress) {
  const std::string name =
      spec.path.empty() ? spec.inputs.empty() ? "" : spec.inputs.begin()->second[0] : spec.path.string();
  Source source{.file = {}, .what = fmt::format("rows of '{}'", fs::path(name).filename().string())};
  TRY(source.sources, source_digests(spec));
  TRY(source.file, make_once(workload, cache / "own", recipe_of_own(spec, workload, source.sources),
                             [&]() -> Result<Made> {
                               progress(fmt::format("converting '{}'", name));
                               TRY(OwnData own, open_own_data(spec, workload));
                               source.titles = std::move(own.titles);
                               return Made{std::move(own.tensors), std::move(own.metadata)};
                             }));
  return source;
}

Result<Source> find_source(const DataSpec& spec, const ir::Workload& workload, const fs::path& cache,
                           const Progress& progress) {
  switch (spec.kind) {
    case DataKind::kMnist:
      return find_images(mnist(), spec, cache, progress);
    case DataKind::kDigits:
      return find_images(digits(), spec, cache, progress);
    case DataKind::kText:
      return find_text(spec, workload, cache, progress);
    case DataKind::kSynthetic: {
      TRY(auto path, make_synthetic(spec, workload, cache, progress));
      return Source{path, fmt::format("synthetic samples (seed {})", spec.seed)};
    }
    case DataKind::kNpz:
    case DataKind::kNpy:
    case DataKind::kIdx:
    case DataKind::kImageFolder:
    case DataKind::kCsv:
      return find_own(spec, workload, cache, progress);
    case DataKind::kFile:
      return Source{spec.path, "rows of '" + spec.path.filename().string() + "'"};
  }
  return Error{.message = "unknown kind of data"};
}

}  // namespace

Result<DataKind> data_kind(const std::string& word) {
  static const std::map<std::string, DataKind> kKinds = {{"mnist", DataKind::kMnist},
                                                         {"digits", DataKind::kDigits},
                                                         {"text", DataKind::kText},
                                                         {"file", DataKind::kFile},
                                                         {"npz", DataKind::kNpz},
                                                         {"npy", DataKind::kNpy},
                                                         {"idx", DataKind::kIdx},
                                                         {"csv", DataKind::kCsv},
                                                         {"image folder", DataKind::kImageFolder},
                                                         {"synthetic", DataKind::kSynthetic}};
  if (const auto found = kKinds.find(word); found != kKinds.end()) return found->second;
  std::vector<std::string> words;
  for (const auto& [each, kind] : kKinds) words.push_back(each);
  return Error{.message = "unknown kind of data '" + word + "'",
               .remedy = fmt::format("set data.kind to one of: {}", join(words, ", "))};
}

Result<int64_t> check_data(const fs::path& path, const ir::Workload& workload,
                           const std::map<std::string, std::string>& titles) {
  const std::string remedy = "the file must be safetensors with one tensor for every input of the workload";
  auto file = SafetensorsFile::open(path);
  if (!file) return Error{.message = file.error().message, .remedy = remedy};
  std::optional<int64_t> rows;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const ir::Input& input = workload.inputs[static_cast<size_t>(id)];
    const auto* entry = file->find(input.name);
    if (!entry) {
      std::vector<std::string> present;
      for (const auto& each : file->entries()) present.push_back(each.name);
      return Error{.message = fmt::format("'{}' has no tensor '{}' ({}); it has: {}", path.string(),
                                          input.name, ir::to_text(input.type), join(present, ", ")),
                   .remedy = remedy};
    }
    const auto title = titles.find(input.name);
    const Column column{
        path, *file, *entry, input,
        title != titles.end() ? title->second : fmt::format("'{}': tensor '{}'", path.string(), input.name)};
    CHECK_OK(check_type(column));
    if (rows && *rows != column.rows()) {
      return column.error(
          fmt::format("has {} rows, '{}' has {}", column.rows(), workload.inputs[0].name, *rows),
          "every input needs one row for each sample");
    }
    rows = column.rows();
    const bool integers = input.type.dtype == ir::DType::kI32;
    CHECK_OK(integers ? check_integers(column, ir::row_bounds(workload, id), ir::ctc_frames(workload, id))
                      : check_finite(column));
  }
  if (!rows) return Error{.message = "workload '" + workload.name + "' has no inputs"};
  return *rows;
}

Result<DataSet> prepare(const DataSpec& spec, const ir::Workload& workload, const fs::path& cache,
                        const Progress& progress) {
  TRY(auto source, find_source(spec, workload, cache, progress));
  const auto rows = check_data(source.file, workload, source.titles);
  if (!rows) {
    std::error_code ignored;
    if (is_own(spec.kind)) fs::remove(source.file, ignored);  // the converted copy
    return rows.error();
  }
  TRY(auto sum, sha256_file(source.file));
  return DataSet{source.file, *rows, grouped(*rows) + " " + source.what, std::move(sum),
                 std::move(source.sources)};
}

}  // namespace bakeoff
