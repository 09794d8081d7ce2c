// The layout that everybody uses: a folder for each class. Labels are the classes' places in the order of
// their names, byte by byte, so that the same folder gives the same labels in every locale. What lies in a
// class folder and is no picture is an error and not skipped: a file that is left out in silence changes what
// is trained on.

#include "data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "data/pictures.h"
#include "ir/bounds.h"

namespace bakeoff {
namespace {

bool hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool is_picture(const fs::path& path) {
  const std::string end = lowered(path.extension().string());
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

// A link is followed as long as it stays within `top`.
Status check_link(const fs::path& path, const fs::path& top) {
  std::error_code code;
  if (!fs::is_symlink(path, code)) return Done{};
  const fs::path target = fs::canonical(path, code);
  const std::string remedy = "put the file or folder itself in its place, or remove the link";
  if (code)
    return Error{.message = fmt::format("'{}' is a link that leads nowhere", path.string()),
                 .remedy = remedy};
  const auto [end, rest] = std::mismatch(top.begin(), top.end(), target.begin(), target.end());
  if (end == top.end()) return Done{};
  return Error{
      .message = fmt::format("'{}' is a link out of the folder, to '{}'", path.string(), target.string()),
      .remedy = remedy};
}

Result<std::vector<fs::path>> sorted_entries(const fs::path& folder, const fs::path& top) {
  std::error_code code;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (hidden(entry.path())) continue;
    CHECK_OK(check_link(entry.path(), top));
    entries.push_back(entry.path());
  }
  if (code) {
    return Error{.message = fmt::format("cannot read the folder '{}': {}", folder.string(), code.message()),
                 .remedy = "data.path must be a folder with one folder of pictures for each class"};
  }
  std::ranges::sort(entries, {}, [](const fs::path& path) { return path.filename().string(); });
  return entries;
}

Status add_class(const fs::path& folder, const fs::path& top, ImageFolder& found) {
  const auto label = static_cast<int32_t>(found.classes.size());
  const size_t before = found.files.size();
  TRY(const auto entries, sorted_entries(folder, top));
  for (const fs::path& path : entries) {
    if (!fs::is_regular_file(path) || !is_picture(path)) {
      return Error{.message = fmt::format("'{}' is no .png, .jpg or .jpeg file", path.string()),
                   .remedy = "remove it: the folder of a class holds its pictures and nothing else"};
    }
    found.files.push_back({path, label});
  }
  if (found.files.size() == before)
    return Error{.message = fmt::format("'{}' has no pictures", folder.string()),
                 .remedy = "remove the folder"};
  found.classes.push_back(folder.filename().string());
  return Done{};
}

// What the workload wants.
struct Wanted {
  const ir::Input* pictures = nullptr;  // f32[N,C,H,W]
  const ir::Input* labels = nullptr;    // i32[N]
  std::optional<int64_t> classes;
};

Result<Wanted> wanted_of(const ir::Workload& workload) {
  Wanted wanted;
  std::string has;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const ir::Input& input = workload.inputs[static_cast<size_t>(id)];
    has += fmt::format("{}{}: {}", has.empty() ? "" : ", ", input.name, ir::to_text(input.type));
    const ir::Shape& shape = input.type.shape;
    const bool channels = shape.size() == 4 && (shape[1] == 1 || shape[1] == 3);
    if (input.type.dtype == ir::DType::kF32 && channels) wanted.pictures = &input;
    if (input.type.dtype != ir::DType::kI32 || shape.size() != 1) continue;
    wanted.labels = &input;
    wanted.classes = ir::integer_bound(workload, id);
  }
  if (wanted.pictures != nullptr && wanted.labels != nullptr && workload.inputs.size() == 2) return wanted;
  return Error{
      .message = fmt::format("a folder of pictures is data for pictures f32[N,C,H,W] with C = 1 or 3 and "
                             "classes i32[N]; '{}' has {}",
                             workload.name, has),
      .remedy = "use such a workload, or bring arrays: data.kind = \"npz\""};
}

Result<std::string> pixels(const fs::path& path, const ir::Shape& shape, const std::string& resize) {
  TRY(const std::string bytes, read_file(path));
  TRY(const Picture picture, decode_picture(bytes, fmt::format("'{}'", path.string())));
  Planes planes = planes_of(picture, shape[1]);
  if (picture.height == shape[2] && picture.width == shape[3]) return std::move(planes.bytes);
  if (resize == "none") {
    return Error{.message = fmt::format("'{}' is {} pixels wide and {} high, the workload takes {} and {}",
                                        path.string(), picture.width, picture.height, shape[3], shape[2]),
                 .remedy = "set data.resize to \"stretch\" or \"crop\", or save all pictures in this size"};
  }
  return resized(planes, shape[2], shape[3], resize == "crop" ? Resize::kCrop : Resize::kStretch).bytes;
}

}  // namespace

Result<ImageFolder> list_images(const fs::path& folder) {
  ImageFolder found;
  std::error_code code;
  const fs::path top = fs::canonical(folder, code);
  if (code || !fs::is_directory(top, code)) {
    return Error{.message = fmt::format("there is no folder '{}'", folder.string()),
                 .remedy = "data.path must be a folder with one folder of pictures for each class"};
  }
  TRY(const auto entries, sorted_entries(top, top));
  for (const fs::path& path : entries) {
    if (fs::is_directory(path)) CHECK_OK(add_class(path, top, found));
  }
  if (!found.classes.empty()) return found;
  return Error{.message = fmt::format("'{}' has no folders of classes", folder.string()),
               .remedy = "put the pictures of each class into a folder with its name"};
}

Result<OwnData> open_image_folder(const DataSpec& spec, const ir::Workload& workload) {
  TRY(const Wanted wanted, wanted_of(workload));
  TRY(ImageFolder found, list_images(spec.path));
  const auto folder = std::make_shared<const ImageFolder>(std::move(found));
  const auto classes = static_cast<int64_t>(folder->classes.size());
  if (wanted.classes && classes > *wanted.classes) {
    return Error{.message = fmt::format("'{}' has {} classes, workload '{}' has {}", spec.path.string(),
                                        classes, workload.name, *wanted.classes),
                 .remedy = "remove folders, or use a workload with more classes"};
  }
  const auto rows = static_cast<int64_t>(folder->files.size());
  OwnData own;
  const tensor::Shape shape = ir::with_batch(wanted.pictures->type.shape, rows);
  own.tensors.push_back({.name = wanted.pictures->name,
                         .dtype = tensor::DType::kU8,
                         .shape = shape,
                         .write = [folder, shape, resize = spec.resize](const tensor::Sink& sink) -> Status {
                           for (const ImageFolder::File& file : folder->files) {
                             TRY(const std::string bytes, pixels(file.path, shape, resize));
                             CHECK_OK(sink(bytes));
                           }
                           return Done{};
                         }});
  tensor::IntTensor labels{{rows}, {}};
  for (const ImageFolder::File& file : folder->files) labels.data.push_back(file.label);
  TRY(auto encoded, tensor::encode(labels, tensor::DType::kI32));
  const auto raw = std::make_shared<const tensor::RawTensor>(std::move(encoded));
  own.tensors.push_back({.name = wanted.labels->name,
                         .dtype = raw->dtype,
                         .shape = raw->shape,
                         .write = [raw](const tensor::Sink& sink) { return sink(raw->bytes); }});
  for (const tensor::TensorSource& each : own.tensors)
    own.titles[each.name] = fmt::format("'{}'", spec.path.string());
  own.metadata["classes of " + wanted.labels->name] = dump(nlohmann::json(folder->classes));
  return own;
}

}  // namespace bakeoff
