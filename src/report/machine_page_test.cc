#include "report/machine_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/machine_report.h"
#include "report/charts.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/phrases.h"
#include "report/sample_summary_testing.h"
#include "report/terminal.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MachineReport report() {
  MachineReport m{.bakeoff_version = "0.1.0", .measured = "2026-11-21T12:00:00Z"};
  m.host = {"box", "Linux 6.1", "EPYC", "Debian", 2, 0, {}};
  m.facts = {{"microcode", "0x1"}, {"kernel command line", "\x1b[31mquiet"}};
  m.limits.peaks = {{.dtype = "f32",
                     .isa = "avx2",
                     .ops = {96e9, 190e9},
                     .lanes = 8,
                     .units = 2,
                     .units_from = "model",
                     .clock_hz = 3e9},
                    {.dtype = "f32", .isa = "scalar", .ops = {6e9, 12e9}, .lanes = 1, .clock_hz = 3e9}};
  m.limits.levels = {{.name = "DRAM", .read = {12e9, 20e9}, .triad = {9e9, 11e9}, .triad_nt = {10e9, 15e9}}};
  m.limits.plain_triad = 9.1e9;
  m.limits.gemms = {{.library = "OpenBLAS", .dtype = "f32", .ops = {90e9, 170e9}, .size = 2048}};
  m.limits.page_fault_s = 2.5e-7;
  m.limits.absent = {{"bf16 peak", "no AVX512_BF16"}};
  return m;
}

TEST(RenderMachine, ShowsEveryLimitAndWhatIsAbsent) {
  const std::string page = render_machine(report(), 140);
  for (const char* part : {"f32, avx2", "190", "2 x 8", "100.0%", "OpenBLAS", "n = 2048", "DRAM", "20", "9.1",
                           "250 ns", "bf16 peak: no AVX512_BF16", "microcode: 0x1"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("\x1b"))) << "nothing that moves a cursor";
  EXPECT_THAT(page, Not(HasSubstr("clock, scalar"))) << "it was not measured";
  for (const std::string& line : last_lines(page, 1000)) EXPECT_LE(display_width(line), 140) << line;
}

TEST(RenderMachine, SaysThatItWasDisturbed) {
  MachineReport m = report();
  EXPECT_THAT(render_machine(m, 80), Not(HasSubstr("ther work ran")));
  m.disturbed = "other processes used 22% of the processors' time";
  EXPECT_THAT(render_machine(m, 200),
              HasSubstr("the limits are too low and no contender is compared with them: other processes"));
  Summary s = sample_summary(5);
  s.roofline->disturbed = m.disturbed;
  EXPECT_THAT(roofline_statement(*s.roofline), HasSubstr("while other work ran, so they are too low: other"));
}

TEST(RenderMachineDiff, WhatMattersComesFirst) {
  const std::string text = render_machine_diff(
      {{"microcode", "1", "2", "mitigations come with it"}, {"swappiness", "60", "10", ""}}, "a.json",
      "b.json", 100);
  EXPECT_THAT(text, HasSubstr("microcode: 1 -> 2 (mitigations come with it)"));
  EXPECT_LT(text.find("Known to change"), text.find("Other changes"));
  EXPECT_LT(text.find("Other changes"), text.find("swappiness: 60 -> 10"));
  EXPECT_THAT(render_machine_diff({}, "a", "b", 80), HasSubstr("Nothing that is recorded differs"));
}

TEST(RooflineChart, HasRoofsContendersAndKindsOfLayers) {
  Summary s = sample_summary(5);
  for (const double width : {kWide, kNarrow}) {
    const std::string svg = roofline_chart(s, width);
    for (const char* part :
         {"DRAM: 31.5 GB/s", "230 GFLOP/s, f32, avx512", "conv2d: 5.5 FLOP per byte, 97%",
          "without products: 34% of the bytes", "of the peak", "OpenBLAS of &lt;numpy&gt;"})
      EXPECT_THAT(svg, HasSubstr(part)) << width;
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
  }
  EXPECT_THAT(roofline_chart(s, kWide), Not(HasSubstr("plain C++")));
  Summary held = s;
  held.ranked[0].contender.framework = "native";
  held.ranked[1].over_native = Estimate{2.1, 2, 2.2};
  EXPECT_THAT(roofline_chart(held, kWide), HasSubstr("limit of plain C++: "));
  EXPECT_THAT(roofline_chart(held, kWide), HasSubstr("plain C++ needs 0.48 times as long on this machine"));
  s.roofline->roofs = {{"DRAM", 0}};
  s.roofline->kinds.clear();
  EXPECT_THAT(roofline_chart(s, kWide), Not(HasSubstr("nan"))) << "memory that was not measured";
  s.roofline.reset();
  EXPECT_EQ(roofline_chart(s, kWide), "");
}

TEST(Roofline, SharesStandInTheWideTableTheJsonAndThePage) {
  const Summary s = sample_summary(5);
  const std::string wide = render_terminal(s, {.width = 230});
  EXPECT_THAT(wide, HasSubstr("of peak"));
  EXPECT_THAT(wide, HasSubstr("72%"));
  EXPECT_THAT(wide, HasSubstr("230 GFLOP/s that 2 threads reached here"));
  EXPECT_THAT(render_terminal(s, {.width = 100}), Not(HasSubstr("of peak")));
  EXPECT_THAT(render_json(s), HasSubstr("\"share_of_peak\""));
  EXPECT_THAT(render_html(s), HasSubstr("Distance from the machine"));
  Summary without = s;
  without.roofline.reset();
  for (Row& row : without.ranked) row.flop_use.reset(), row.byte_use.reset();
  EXPECT_THAT(render_terminal(without, {.width = 230}), Not(HasSubstr("of peak")));
  EXPECT_THAT(render_html(without), Not(HasSubstr(">of peak<")));
}

TEST(Usage, StandsInTheWideTableTheJsonTheCsvAndThePage) {
  Summary s = sample_summary(5);
  const std::string wide = render_terminal(s, {.width = 340});
  for (const char* part : {"CPUs busy", "1.94", "switches/step", "price/epoch", "USD"})
    EXPECT_THAT(wide, HasSubstr(part));
  EXPECT_THAT(wide, Not(HasSubstr("J/sample"))) << "nobody has it";
  EXPECT_THAT(render_json(s), HasSubstr("\"cores_busy\": 1.94"));
  EXPECT_THAT(render_csv(s), HasSubstr("joules_per_step"));
  const std::string page = render_html(s);
  EXPECT_THAT(page, HasSubstr("What a step used"));
  EXPECT_THAT(page, HasSubstr("Not to be had here: energy: there is no /sys/class/powercap."));
  EXPECT_THAT(page, Not(HasSubstr(">J/sample<")));
  for (Row& row : s.ranked) row.usage = {.joules = 512}, row.epoch = {};
  EXPECT_THAT(render_html(s), HasSubstr(">J/sample<"));
  EXPECT_THAT(render_terminal(s, {.width = 300}), HasSubstr("2 J")) << "512 J a step of 256 samples";
}

}  // namespace
}  // namespace bakeoff::report
