#include "records/controls.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/texts.h"

namespace bakeoff {
namespace {

double number_or(const std::string& text, double otherwise) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? value : otherwise;
}

}  // namespace

Texts to_texts(const Controls& c) {
  return {{"allocator", c.allocator},
          {"threads", std::to_string(c.threads)},
          {"pin", c.pin},
          {"huge_pages", c.huge_pages},
          {"randomise_addresses", c.randomise_addresses ? "true" : "false"},
          {"cooldown_seconds", fmt::format("{:g}", c.cooldown_s)},
          {"device", c.device}};
}

Controls controls_from(const Texts& texts, const Controls& otherwise) {
  Controls c = otherwise;
  const auto text = [&](const char* key, const std::string& fallback) {
    const auto found = texts.find(key);
    return found == texts.end() ? fallback : found->second;
  };
  c.allocator = text("allocator", c.allocator);
  c.pin = text("pin", c.pin);
  c.huge_pages = text("huge_pages", c.huge_pages);
  c.device = text("device", c.device);
  c.threads = static_cast<int>(number_or(text("threads", ""), c.threads));
  c.randomise_addresses = text("randomise_addresses", c.randomise_addresses ? "true" : "false") == "true";
  c.cooldown_s = number_or(text("cooldown_seconds", ""), c.cooldown_s);
  return c;
}

std::string describe(const Controls& c) {
  std::vector<std::string> parts;
  if (c.allocator == "tuned")
    parts.emplace_back("glibc malloc keeps freed pages");
  else if (c.allocator != "default")
    parts.push_back(c.allocator);
  if (c.pin != "auto") parts.push_back(c.pin == "none" ? "not pinned" : "pinned to CPU " + c.pin);
  if (c.huge_pages == "off") parts.emplace_back("no transparent huge pages");
  if (c.huge_pages == "malloc") parts.emplace_back("malloc requests huge pages");
  if (!c.randomise_addresses) parts.emplace_back("no address randomisation");
  if (c.cooldown_s > 0) parts.push_back(fmt::format("{:g} s of cooldown before a burst", c.cooldown_s));
  if (c.device != "auto") parts.push_back("device " + c.device);
  return parts.empty() ? "none" : join(parts, ", ");
}

}  // namespace bakeoff
