#include <cmath>
#include <nlohmann/json.hpp>

#include "records/machine_report.h"

namespace bakeoff::roofline {

using Json = nlohmann::ordered_json;

#define BAKEOFF_WRITE(field) j[#field] = v.field;
#define BAKEOFF_READ(field) \
  if (const auto it = j.find(#field); it != j.end()) it->get_to(v.field);
#define BAKEOFF_RECORD(Type, ...)                                                            \
  static void to_json(Json& j, const Type& v) {                                              \
    [[maybe_unused]] const auto& [__VA_ARGS__] = v; /* compiles where no field is missing */ \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_WRITE, __VA_ARGS__))                    \
  }                                                                                          \
  static void from_json(const Json& j, Type& v) {                                            \
    j.get_ref<const Json::object_t&>(); /* throws where it is no object */                   \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_READ, __VA_ARGS__))                     \
  }

BAKEOFF_RECORD(Rate, one, all)
BAKEOFF_RECORD(Peak, dtype, isa, ops, lanes, units, units_from, clock_hz)
BAKEOFF_RECORD(Level, name, capacity, caches, touched, read, write, copy, triad, triad_nt)
BAKEOFF_RECORD(Gemm, library, path, dtype, ops, size)
BAKEOFF_RECORD(Gpu::Tensor, dtype, ops)
BAKEOFF_RECORD(Gpu, name, gemm, memory, to_device, from_device)
BAKEOFF_RECORD(Absent, what, reason)
BAKEOFF_RECORD(Limits, cpus, peaks, levels, gemms, gpus, plain_triad, scalar_hz, vector_hz, page_fault_s,
               process_start_s, seconds, absent)

}  // namespace bakeoff::roofline

namespace bakeoff {

using Json = nlohmann::ordered_json;

BAKEOFF_RECORD(Host, name, kernel, cpu, os, cpus, memory_bytes, more)
BAKEOFF_RECORD(MachineReport, version, bakeoff_version, measured, host, disturbed, facts, limits)

namespace {

// What no measurement gives: a damaged or doctored file would be a false bound for every result.
std::string nonsense(const roofline::Limits& limits) {
  const auto bad = [](double v) { return !std::isfinite(v) || v < 0; };
  for (const roofline::Peak& p : limits.peaks) {
    if (bad(p.ops.one) || bad(p.ops.all) || p.dtype.empty()) return "a peak is not a positive number";
  }
  for (const roofline::Level& level : limits.levels) {
    for (const roofline::Rate& rate : {level.read, level.write, level.copy, level.triad, level.triad_nt}) {
      if (bad(rate.one) || bad(rate.all)) return "a bandwidth is not a positive number";
    }
    if (level.capacity < 0 || level.caches < 0 || level.caches > 1 << 20)
      return "a cache's size is not possible";
  }
  return "";
}

}  // namespace

std::string to_json(const MachineReport& report) {
  return Json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<MachineReport> machine_from_json(const std::string& text, const std::string& file) {
  const auto error = [&](const std::string& what) {
    return Error{
        .message = "not the record of a machine: " + what,
        .where = file,
        .remedy = "`bakeoff machine --again` writes a new one; `bakeoff machine --json > FILE` keeps a copy"};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return error("it is not JSON");
  if (!json.is_object() || !json.contains("measured") || !json.contains("limits"))
    return error("'measured' or 'limits' is missing");
  try {
    MachineReport report = json.get<MachineReport>();
    if (const std::string why = nonsense(report.limits); !why.empty()) return error(why);
    return report;
  } catch (const nlohmann::json::exception& e) {
    return error(e.what());
  }
}

}  // namespace bakeoff
