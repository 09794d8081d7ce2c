#include "exports/event_file.h"

#include <fmt/format.h>
#include <tensorboard/tensorboard_event.pb.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "table/text.h"

namespace bakeoff::exports {
namespace {

constexpr int kFloat = 1, kString = 7;  // DataType
constexpr int kSuccess = 1, kFailure = 2;

std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

std::string little_endian(uint64_t number, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((number >> (8 * i)) & 0xFF);
  return out;
}

void add_record(const wire::Event& event, std::string& out) {
  const std::string data = event.SerializeAsString();
  const std::string length = little_endian(data.size(), 8);
  out += length + little_endian(masked_crc32c(length), 4) + data + little_endian(masked_crc32c(data), 4);
}

wire::Summary::Value* value_of(wire::Event& event, const std::string& tag) {
  wire::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(table::clean(tag));
  return value;
}

void add_text(const std::string& tag, const std::string& text, double wall_s, std::string& out) {
  wire::Event event;
  event.set_wall_time(wall_s);
  wire::Summary::Value* value = value_of(event, tag);
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value->mutable_tensor()->set_dtype(kString);
  value->mutable_tensor()->mutable_shape()->add_dim()->set_size(1);
  value->mutable_tensor()->add_string_val(table::clean(text));
  add_record(event, out);
}

// The hyperparameters' view takes them from the metadata of two summaries without a value.
void add_session(const char* tag, const wire::HyperParameters& content, double wall_s, std::string& out) {
  wire::Event event;
  event.set_wall_time(wall_s);
  wire::Summary::Value* value = value_of(event, tag);
  value->mutable_tensor()->set_dtype(kFloat);
  value->mutable_tensor()->mutable_shape()->add_dim()->set_size(0);
  wire::PluginData* data = value->mutable_metadata()->mutable_plugin_data();
  data->set_plugin_name("hparams");
  data->set_content(content.SerializeAsString());
  add_record(event, out);
}

void add_start(const Tracked& one, const Experiment& experiment, std::string& out) {
  wire::HyperParameters content;
  wire::SessionStart* start = content.mutable_session_start_info();
  start->set_group_name(table::clean(one.contender));
  start->set_start_time_secs(experiment.started_s);
  for (const auto& [key, value] : one.settings) {
    wire::HyperParameter* parameter = start->add_hparams();
    parameter->set_key(table::clean(key));
    parameter->mutable_value()->set_text(table::clean(value));
  }
  add_session("_hparams_/session_start_info", content, experiment.started_s, out);
}

void add_end(const Tracked& one, double wall_s, std::string& out) {
  wire::HyperParameters content;
  content.mutable_session_end_info()->set_status(one.failed ? kFailure : kSuccess);
  content.mutable_session_end_info()->set_end_time_secs(wall_s);
  add_session("_hparams_/session_end_info", content, wall_s, out);
}

double add_scalars(const Series& series, std::string& out) {
  double last = 0;
  for (const Point& point : series.points) {
    wire::Event event;
    event.set_wall_time(point.wall_s);
    event.set_step(point.step);
    value_of(event, series.tag)->set_simple_value(static_cast<float>(point.value));
    add_record(event, out);
    last = std::max(last, point.wall_s);
  }
  return last;
}

std::string events_of(const Tracked& one, const Experiment& experiment) {
  std::string out;
  wire::Event version;
  version.set_wall_time(experiment.started_s);
  version.set_file_version("brain.Event:2");
  add_record(version, out);
  add_text("about/verdict", experiment.verdict, experiment.started_s, out);
  if (one.failed) add_text("about/not_ranked", one.reason, experiment.started_s, out);
  add_start(one, experiment, out);
  double end = experiment.started_s;
  for (const Series& series : one.series) end = std::max(end, add_scalars(series, out));
  for (const auto& [name, number] : one.numbers)
    end = std::max(end, add_scalars({.tag = "verdict/" + name, .points = {{0, end, number}}}, out));
  add_end(one, end, out);
  return out;
}

std::string folder_name(const std::string& text) {
  constexpr size_t kMost = 100;
  std::string name;
  for (const char c : text.substr(0, kMost)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("._=,-[]").find(c) != std::string_view::npos;
    name += plain ? c : '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

std::vector<std::string> folder_names(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& text : texts) {
    const std::string plain = folder_name(text);
    std::string name = plain;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}", plain, i);
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<EventFile> event_files(const Experiment& experiment) {
  std::vector<std::string> ids;
  for (const Tracked& one : experiment.contenders) ids.push_back(one.contender);
  const std::vector<std::string> folders = folder_names(ids);
  std::vector<EventFile> files;
  for (size_t i = 0; i < ids.size(); ++i) {
    files.push_back({.folder = folders[i],
                     .name = fmt::format("events.out.tfevents.{:.0f}.bakeoff", experiment.started_s),
                     .bytes = events_of(experiment.contenders[i], experiment)});
  }
  return files;
}

}  // namespace bakeoff::exports
