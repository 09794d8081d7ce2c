#include "report/machine_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/layout.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string rate(double value, double scale) { return value > 0 ? significant(value / scale, 4) : kNone; }

double better(double a, double b) { return std::max(a, b); }

// A table of texts: the first column is on the left and wraps, the others on the right.
class Grid {
 public:
  explicit Grid(const std::vector<std::string>& titles) {
    for (const std::string& title : titles) {
      const bool first = columns_.empty();
      columns_.push_back({{.title = title, .left = first, .name = first}, {}});
    }
  }
  void row(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i].cells.push_back({cells[i]});
  }
  std::string text(int width) const {
    std::string out;
    for (const std::string& line : layout(columns_, width, false)) out += line + '\n';
    return out;
  }

 private:
  std::vector<FilledColumn> columns_;
};

std::string peaks(const roofline::Limits& limits, int width) {
  if (limits.peaks.empty()) return "";
  Grid grid({"arithmetic, Gop/s (2 each multiply-accumulate)", "one core", "all cores", "GHz",
             "units x lanes", "of width"});
  for (const roofline::Peak& p : limits.peaks) {
    const bool known = p.units > 0;
    grid.row(
        {p.dtype + ", " + p.isa, rate(p.ops.one, 1e9), rate(p.ops.all, 1e9), rate(p.clock_hz, 1e9),
         known ? fmt::format("{} x {}{}", p.units, p.lanes, p.units_from == "inferred" ? " (inferred)" : "")
               : kNone,
         known ? fmt::format("{:.1f}%", 100 * p.of_width()) : kNone});
  }
  for (const roofline::Gemm& g : limits.gemms) {
    grid.row({fmt::format("{} matrix product, {}, n = {}", g.dtype, one_line(g.library), g.size),
              rate(g.ops.one, 1e9), rate(g.ops.all, 1e9), kNone, kNone, kNone});
  }
  return grid.text(width) + '\n';
}

std::string levels(const roofline::Limits& limits, int width) {
  if (limits.levels.empty()) return "";
  Grid grid({"memory, GB/s", "size", "read", "write", "copy", "triad", "read, all", "write, all", "copy, all",
             "triad, all"});
  for (const roofline::Level& l : limits.levels) {
    grid.row({one_line(l.name), l.capacity > 0 ? bytes(static_cast<double>(l.capacity)) : kNone,
              rate(l.read.one, 1e9), rate(l.write.one, 1e9), rate(l.copy.one, 1e9),
              rate(better(l.triad.one, l.triad_nt.one), 1e9), rate(l.read.all, 1e9), rate(l.write.all, 1e9),
              rate(l.copy.all, 1e9), rate(better(l.triad.all, l.triad_nt.all), 1e9)});
  }
  std::string out = grid.text(width);
  const roofline::Level* memory = limits.level("DRAM");
  if (memory != nullptr && limits.plain_triad > 0) {
    out +=
        fmt::format("Triad of DRAM by a plain loop, one core: {} GB/s; ours with ordinary stores: {} GB/s.\n",
                    rate(limits.plain_triad, 1e9), rate(memory->triad.one, 1e9));
  }
  return out + '\n';
}

std::string gpus(const roofline::Limits& limits, int width) {
  std::string out;
  for (const roofline::Gpu& gpu : limits.gpus) {
    Grid grid({one_line(gpu.name), "measured"});
    for (const auto& tensor : gpu.gemm)
      grid.row({"matrix product, " + tensor.dtype, rate(tensor.ops, 1e12) + " TFLOP/s"});
    grid.row({"device memory", rate(gpu.memory, 1e9) + " GB/s"});
    grid.row({"host to device", rate(gpu.to_device, 1e9) + " GB/s"});
    grid.row({"device to host", rate(gpu.from_device, 1e9) + " GB/s"});
    out += grid.text(width) + '\n';
  }
  return out;
}

std::string costs(const roofline::Limits& limits) {
  std::string out;
  const auto add = [&](const char* what, double one, const std::string& text) {
    if (one > 0) out += fmt::format("{:<26}{}\n", what, text);
  };
  const auto clock = [](const roofline::Rate& hz) {
    return fmt::format("{} GHz on one core, {} on all", rate(hz.one, 1e9), rate(hz.all, 1e9));
  };
  add("clock, scalar load", limits.scalar_hz.one, clock(limits.scalar_hz));
  add("clock, vector load", limits.vector_hz.one, clock(limits.vector_hz));
  add("page fault", limits.page_fault_s, fmt::format("{:.0f} ns", limits.page_fault_s * 1e9));
  add("process start", limits.process_start_s, fmt::format("{:.2f} ms", limits.process_start_s * 1e3));
  add("link between processes", limits.link, rate(limits.link, 1e9) + " GB/s");
  return out.empty() ? out : out + '\n';
}

}  // namespace

std::string render_machine(const MachineReport& report, int width) {
  std::string out = fmt::format("{} · {} · {} CPUs · {}\nmeasured {} in {:.0f} s by Bakeoff {}\n\n",
                                one_line(report.host.name), one_line(report.host.cpu), report.host.cpus,
                                one_line(report.host.kernel), one_line(report.measured),
                                report.limits.seconds, one_line(report.bakeoff_version));
  if (!report.disturbed.empty()) {
    out += paragraph(fmt::format(
                         "Other work ran during the measurement, so the limits are too low and no contender "
                         "is compared with them: {}. `bakeoff machine --again` measures again.",
                         one_line(report.disturbed)),
                     width) +
           "\n\n";
  }
  out += peaks(report.limits, width) + levels(report.limits, width) + gpus(report.limits, width) +
         costs(report.limits);
  if (!report.limits.absent.empty()) out += "Not measured\n";
  for (const roofline::Absent& absent : report.limits.absent)
    out += paragraph(fmt::format("{}: {}", one_line(absent.what), one_line(absent.reason)), width, "  – ",
                     "    ") +
           '\n';
  if (!report.limits.absent.empty()) out += '\n';
  out += "What else shapes a number\n";
  for (const auto& [topic, value] : report.facts)
    out += paragraph(fmt::format("{}: {}", one_line(topic), one_line(value)), width, "  ", "      ") + '\n';
  return out;
}

std::string render_machine_diff(const std::vector<MachineChange>& changes, const std::string& before,
                                const std::string& after, int width) {
  if (changes.empty())
    return fmt::format("Nothing that is recorded differs between {} and {}.\n", before, after);
  std::string out = fmt::format("{} -> {}\n", before, after);
  const auto known = std::count_if(changes.begin(), changes.end(),
                                   [](const MachineChange& c) { return !c.matters.empty(); });
  const auto section = [&](bool matters, const char* title) {
    if ((matters ? known : static_cast<long>(changes.size()) - known) == 0) return;
    out += fmt::format("\n{}\n", title);
    for (const MachineChange& c : changes) {
      if (c.matters.empty() == matters) continue;
      const std::string why = c.matters.empty() ? "" : fmt::format(" ({})", c.matters);
      out += paragraph(
                 fmt::format("{}: {} -> {}{}", one_line(c.what), one_line(c.before), one_line(c.after), why),
                 width, "  ", "      ") +
             '\n';
    }
  };
  section(true, "Known to change step times");
  section(false, "Other changes");
  return out;
}

}  // namespace bakeoff::report
