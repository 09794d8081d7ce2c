// What a model computes only its framework knows, so the framework is asked, in a process that may hang or
// crash without harm to this one: it has a time limit, and the end of its output is kept for the message. It
// is told which ops the IR has, so that all that cannot be imported is in one refusal instead of one after
// the other. The same process then computes the original's float64 values for the proof.

#include "import/origin.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "proc/child.h"
#include "proc/line_channel.h"
#include "sample/machine_limits.h"

namespace bakeoff {
namespace {

using Json = nlohmann::json;

constexpr const char* kInputExample =
    "for example 'f32[8,3,32,32]', 'ids=i32[16,128]' or 'mask=bool[16,128]', the batch first";

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// All unsupported ops in one message, one line each.
Error refusal(const Json& refused) {
  std::vector<std::string> lines;
  for (const Json& one : refused) {
    const std::string where = text_of(one, "where"), remedy = text_of(one, "remedy");
    std::string line =
        fmt::format("{}{}: {}", where.empty() ? "" : where + ": ", text_of(one, "op"), text_of(one, "why"));
    if (!remedy.empty()) line += " (instead: " + remedy + ")";
    lines.push_back(std::move(line));
  }
  return {.message = fmt::format("{} op{} cannot be imported:\n  {}", lines.size(),
                                 lines.size() == 1 ? "" : "s", join(lines, "\n  ")),
          .remedy = "nothing was written"};
}

// Ops of the IR and their attributes, "pad" and "pad.value"; and whether values without N can be reshaped.
std::vector<std::string> known_ops() {
  std::vector<std::string> all;
  for (const ir::OpInfo& row : ir::op_table()) {
    all.push_back(row.name);
    for (const ir::AttrSpec& attribute : row.attributes) all.push_back(row.name + "." + attribute.name);
  }
  if (ir::parse("workload probe(x: f32[N,2], y: f32[N,2]) {\n  p = parameter(; weight=w[1,2,1])\n"
                "  v = reshape(p) shape=1,2\n  h = add(x, v)\n  loss = mse(h, y)\n}\n"))
    all.push_back("reshape without N");
  return all;
}

std::vector<std::string> texts_of(const Json& json, const char* key) {
  std::vector<std::string> all;
  if (const auto found = json.find(key); found != json.end() && found->is_array()) {
    for (const Json& one : *found) all.push_back(one.is_string() ? one.get<std::string>() : dump(one));
  }
  return all;
}

}  // namespace

Result<ImportInput> parse_import_input(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return Error{.message = fmt::format("--input '{}': {}", text, why), .remedy = kInputExample};
  };
  ImportInput input;
  std::string_view rest = text;
  if (const size_t at = rest.find('='); at != std::string_view::npos) {
    input.name = rest.substr(0, at);
    rest.remove_prefix(at + 1);
  }
  if (rest.starts_with("i32["))
    input.type.dtype = ir::DType::kI32;
  else if (rest.starts_with("bool[")) {
    input.type.dtype = ir::DType::kBool;
    rest.remove_prefix(1);
  } else if (!rest.starts_with("f32["))
    return wrong("the type must be f32, i32 or bool, with sizes in brackets");
  if (const size_t at = rest.find('<'); at != std::string_view::npos) {
    const std::string_view end = rest.substr(at + 1);
    const auto [last, code] = std::from_chars(end.data(), end.data() + end.size(), input.below);
    if (input.type.dtype != ir::DType::kI32 || code != std::errc() || last != end.data() + end.size() ||
        input.below < 2 || input.below > INT32_MAX)
      return wrong("behind '<' stands the number that all integers of an i32 are below, 2 or more");
    rest = rest.substr(0, at);
  }
  if (!rest.ends_with("]")) return wrong("the sizes must end in ']'");
  rest = rest.substr(4, rest.size() - 5);
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    int64_t size = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + comma, size);
    if (code != std::errc() || end != rest.data() + comma || size < 1 || size > (int64_t{1} << 31))
      return wrong(fmt::format("'{}' is no size", rest.substr(0, comma)));
    input.type.shape.push_back(size);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (rest.empty() && text.find(",]") != std::string::npos) return wrong("a size is missing");
  }
  if (input.type.shape.empty()) return wrong("the batch axis is missing");
  return input;
}

struct Origin::Impl {
  ImportRequest request;
  fs::path folder;
  std::optional<proc::Child> child = {};
  std::optional<proc::LineChannel> channel = {};
  int64_t id = 0;

  // The answer's fields. Errors: what the model has, as the child says it; a child that fails, with the end
  // of its output.
  Result<Json> ask(const std::string& op, Json fields) {
    fields["id"] = ++id;
    fields["op"] = op;
    const int64_t deadline = monotonic_clock().now_ns() + static_cast<int64_t>(request.seconds * 1e9);
    auto answer = channel->exchange(dump(fields), deadline, op);
    if (!answer) return broken(answer.error());
    const Json json = parse_json<Json>(*answer);
    if (json.is_discarded() || !json.is_object())
      return Error{.message = "the importer's process gave no answer"};
    if (const auto refused = json.find("refused"); refused != json.end()) return refusal(*refused);
    if (json.contains("problem")) {
      return Error{.message = text_of(json, "problem"),
                   .where = text_of(json, "where"),
                   .remedy = text_of(json, "remedy")};
    }
    if (!json.value("ok", false)) {
      return Error{.message = fmt::format("the importer failed: {}\n{}", text_of(json, "error"),
                                          text_of(json, "traceback")),
                   .remedy = "this is a defect of bakeoff: please report it with the model"};
    }
    return json;
  }

  Error broken(const Error& error) const {
    const auto& failure = channel->failure();
    Error said = error;
    if (failure && failure->kind == proc::FailureKind::kTimeout) said.remedy = "--seconds raises the limit";
    if (failure && !failure->log_tail.empty() && failure->kind != proc::FailureKind::kInterrupted)
      said.message += "; its output ends in:\n" + failure->log_tail;
    return said;
  }
};

Origin::Origin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Origin::Origin(Origin&&) noexcept = default;
Origin::~Origin() = default;

Result<Origin> Origin::start(const ImportRequest& request, const fs::path& folder) {
  auto impl = std::make_unique<Impl>(Impl{.request = request, .folder = folder});
  proc::ChildOptions options;
  options.argv = {request.python.string(), "-m", "bakeoff_import"};
  if (!request.child.empty()) options.argv.push_back(request.child);
  if (!request.socket.empty()) options.argv.insert(options.argv.end(), {"--relay", request.socket.string()});
  options.env["PYTHONPATH"] = request.runner.string();
  options.env["PYTHONUNBUFFERED"] = "1";
  options.env["PYTHONSAFEPATH"] = "1";  // a copy.py in the user's folder is not the library's
  options.env["PYTHONHASHSEED"] = "0";
  options.env_remove = {"PYTHONHOME", "PYTHONSTARTUP"};
  options.own_temporary_folder = true;
  TRY(proc::Child child, proc::Child::start(options));
  impl->child.emplace(std::move(child));
  impl->channel.emplace(*impl->child);
  return Origin(std::move(impl));
}

Status Origin::request(const std::string& op, const std::map<std::string, std::string>& fields) {
  TRY(const Json ignored, impl_->ask(op, Json(fields)));
  return Done{};
}

fs::path Origin::weights() const { return impl_->folder / "origin_weights.safetensors"; }

Result<OriginModel> Origin::export_model() {
  const ImportRequest& r = impl_->request;
  Json inputs = Json::array();
  for (const ImportInput& input : r.inputs) {
    inputs.push_back({{"name", input.name},
                      {"dtype", ir::name(input.type.dtype)},
                      {"shape", input.type.shape},
                      {"below", input.below}});
  }
  TRY(const Json answer, impl_->ask("export", {{"file", fs::absolute(r.file).string()},
                                               {"function", r.function},
                                               {"inputs", inputs},
                                               {"loss", r.loss},
                                               {"output", r.output},
                                               {"ops", known_ops()},
                                               {"count", r.count},
                                               {"name", r.out.stem().string()},
                                               {"threads", sample::allowed_cpus().size()},
                                               {"weights", weights().string()}}));
  OriginModel model{.text = text_of(answer, "text"), .target = text_of(answer, "target")};
  for (const auto& [name, targets] : answer.at("names").items())
    model.targets[name] = targets.get<std::vector<std::string>>();
  model.notes = texts_of(answer, "notes");
  model.unused = texts_of(answer, "unused");
  if (const auto n = answer.find("numbers"); n != answer.end())
    model.numbers = {n->at("trained"), n->at("frozen"), n->at("left_out")};
  model.version = text_of(answer, "version");
  model.batch = answer.value("batch", int64_t{0});
  model.biased_variance = answer.value("biased", false);
  for (const Json& line : answer.at("lines")) {
    model.lines.push_back(
        {text_of(line, "value"), text_of(line, "op"), text_of(line, "where"), text_of(line, "source")});
  }
  return model;
}

Result<bool> Origin::compute(const fs::path& weights, const fs::path& inputs, bool train,
                             const fs::path& out) {
  TRY(const Json answer, impl_->ask("compute", {{"weights", weights.string()},
                                                {"inputs", inputs.string()},
                                                {"train", train},
                                                {"out", out.string()}}));
  return !answer.value("blind", false);
}

Status Origin::trace(const fs::path& inputs, const fs::path& out) {
  TRY(const Json ignored,
      impl_->ask("trace", {{"inputs", inputs.string()}, {"train", true}, {"out", out.string()}}));
  return Done{};
}

}  // namespace bakeoff
