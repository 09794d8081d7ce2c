#include "base/json_text.h"
#include "records/machine_report.h"
#include "records/record_json.h"

namespace bakeoff::roofline {

BAKEOFF_RECORD(Rate, one, all)
BAKEOFF_RECORD(Peak, dtype, isa, ops, lanes, units, units_from, clock_hz)
BAKEOFF_RECORD(Level, name, capacity, caches, touched, read, write, copy, triad, triad_nt)
BAKEOFF_RECORD(Gemm, library, path, dtype, ops, size)
BAKEOFF_RECORD(Gpu::Tensor, dtype, ops)
BAKEOFF_RECORD(Gpu, name, gemm, memory, to_device, from_device)
BAKEOFF_RECORD(Absent, what, reason)
BAKEOFF_RECORD(Limits, cpus, peaks, levels, gemms, gpus, plain_triad, scalar_hz, vector_hz, page_fault_s,
               process_start_s, link, seconds, absent)

}  // namespace bakeoff::roofline

namespace bakeoff {

BAKEOFF_RECORD(MachineReport, version, bakeoff_version, measured, host, disturbed, facts, limits)

namespace {

// What no measurement gives: a damaged or doctored file would be a false bound for every result.
std::string nonsense(const roofline::Limits& limits) {
  const auto bad = [](double v) { return !(v >= 0 && v < kNotFinite); };
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

std::string to_json(const MachineReport& report) { return dump(RecordJson(report), 1) + "\n"; }

Result<MachineReport> machine_from_json(const std::string& text, const std::string& file) {
  const auto error = [&](const std::string& what) {
    return Error{
        .message = "not the record of a machine: " + what,
        .where = file,
        .remedy = "`bakeoff machine --again` writes a new one; `bakeoff machine --json > FILE` keeps a copy"};
  };
  const RecordJson json = parse_json<RecordJson>(text);
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
