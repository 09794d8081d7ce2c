#include <fmt/format.h>

#include <fstream>

#include "base/files.h"
#include "base/json_text.h"
#include "regression/bisect.h"

namespace bakeoff::regression {
namespace {

using RecordJson = nlohmann::json;

constexpr const char* kFile = "bisect.jsonl";
constexpr const char* kFormat = "bakeoff bisect 1";

RecordJson probe_json(const ProbeRecord& probe) {
  RecordJson json = {{"position", probe.position}, {"version", probe.version}, {"heats", probe.heats}};
  if (probe.seen)
    json["seen"] = {{"mean", probe.seen->mean}, {"variance", probe.seen->variance}};
  else
    json["skipped"] = probe.reason;
  return json;
}

ProbeRecord probe_of(const RecordJson& json) {
  ProbeRecord probe{.position = json.at("position"),
                    .version = json.at("version"),
                    .heats = json.value("heats", size_t{0})};
  if (json.contains("seen"))
    probe.seen = stats::ProbeSeen{json.at("seen").at("mean"), json.at("seen").at("variance")};
  else
    probe.reason = json.at("skipped");
  return probe;
}

Error broken(const std::filesystem::path& file, size_t line, const std::string& why) {
  return Error{.message = fmt::format("this is no record of a search: {}", why),
               .where = fmt::format("{}:{}", file.string(), line),
               .remedy = "start the search anew in another folder (--out DIR)"};
}

}  // namespace

Status BisectFile::append(const RecordJson& line) const {
  std::ofstream out(file_, std::ios::app | std::ios::binary);
  out << dump(line) << "\n";
  out.flush();
  if (!out)
    return Error{.message = fmt::format("cannot write '{}'", file_.string()), .remedy = "is the disk full?"};
  return Done{};
}

Result<BisectFile> BisectFile::create(const std::filesystem::path& folder, const RecordJson& header) {
  BisectFile made;
  made.file_ = folder / kFile;
  made.header_ = header;
  made.header_["format"] = kFormat;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (std::filesystem::exists(made.file_, failed))
    return Error{.message = fmt::format("'{}' holds a search already", folder.string()),
                 .remedy = fmt::format("continue it: bakeoff bisect --resume {}", folder.string())};
  CHECK_OK(made.append(made.header_));
  return made;
}

Result<BisectFile> BisectFile::open(const std::filesystem::path& folder) {
  BisectFile opened;
  opened.file_ = folder / kFile;
  TRY(const std::string text, read_file(opened.file_));
  size_t number = 0, begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    ++number;
    // A process that was killed while it wrote leaves half a line, of a probe that is then made again.
    if (end == std::string::npos) break;
    const RecordJson json = parse_json<RecordJson>(text.substr(begin, end - begin));
    begin = end + 1;
    try {
      if (number == 1) {
        if (json.at("format") != kFormat) return broken(opened.file_, number, "it has another format");
        opened.header_ = json;
      } else if (json.contains("shift")) {
        opened.shift = json.at("shift").get<double>();
        opened.contender = json.at("contender");
        if (!(*opened.shift > 0)) return broken(opened.file_, number, "the shift is not above 0");
      } else {
        const ProbeRecord probe = probe_of(json);
        const size_t last = opened.header_.at("versions").size() - 1;
        if (probe.position == 0 || probe.position >= last || (probe.seen && !(probe.seen->variance > 0)))
          return broken(opened.file_, number, "a probe lies outside of the versions, or has no variance");
        opened.probes.push_back(probe);
      }
    } catch (const RecordJson::exception& error) {
      return broken(opened.file_, number, error.what());
    }
  }
  if (opened.header_.is_null()) return broken(opened.file_, 1, "it is empty");
  if (!text.ends_with("\n")) CHECK_OK(write_file(opened.file_, text.substr(0, text.rfind('\n') + 1)));
  return opened;
}

Status BisectFile::keep_shift(double value, const std::string& of) {
  shift = value;
  contender = of;
  return append({{"shift", value}, {"contender", of}});
}

Status BisectFile::keep(const ProbeRecord& probe) {
  probes.push_back(probe);
  return append(probe_json(probe));
}

}  // namespace bakeoff::regression
