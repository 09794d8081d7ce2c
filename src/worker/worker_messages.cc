#include "worker/worker_messages.h"

#include <fmt/format.h>

#include <filesystem>

namespace bakeoff {

std::string printable(const std::string& line) {
  std::string shown = line.substr(0, 60);
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

std::string last_lines(const std::string& text, size_t lines) {
  size_t begin = text.size();
  while (begin > 0 && (text[begin - 1] == '\n' || text[begin - 1] == '\r')) --begin;
  const size_t end = begin;
  for (size_t n = 0; n < lines && begin > 0; ++n) {
    const size_t newline = text.rfind('\n', begin - 1);
    begin = newline == std::string::npos ? 0 : newline;
  }
  if (begin < end && text[begin] == '\n') ++begin;
  std::string tail = text.substr(begin, end - begin);
  if (tail.size() > 4096) tail = "..." + tail.substr(tail.size() - 4093);
  return tail;
}

std::optional<Failure> wrong_device(const std::string& asked, const std::string& framework,
                                    const Texts& effective) {
  const auto at = effective.find("device");
  const std::string device = at == effective.end() ? "cpu" : at->second;
  if (asked == "auto" || (asked == "cpu") == device.starts_with("cpu")) return std::nullopt;
  std::string why;
  if (asked == "cuda") {
    std::error_code code;
    why = std::filesystem::exists("/proc/driver/nvidia/version", code)
              ? "; this build of it may lack CUDA, see its version"
              : "; no driver of NVIDIA is loaded here (there is no /proc/driver/nvidia/version)";
  }
  return Failure{Stage::kImport,
                 fmt::format("device = \"{}\", but {} computes on {} here{}", asked, framework, device, why),
                 {}};
}

}  // namespace bakeoff
