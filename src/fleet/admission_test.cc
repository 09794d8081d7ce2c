#include "fleet/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Node node(const std::string& name, double clock = 3.0, double speed = 0.75, double noise = 0.01) {
  Node made{.name = name, .clock_ghz = clock, .speed = speed, .noise = noise};
  made.host.cpu = "EPYC";
  made.host.cpus = 64;
  return made;
}

TEST(Admission, EqualNodesCount) {
  const auto seen = admit({node("a"), node("b", 3.1, 0.8), node("a", 3.0, 0.7)}, 0.15);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen.at("a").blocks, 2);
  EXPECT_THAT(seen.at("a").apart, IsEmpty());
  EXPECT_THAT(seen.at("b").apart, IsEmpty());
  EXPECT_THAT(admit({}, 0.15), IsEmpty());
}

TEST(Admission, ASlowNodeIsNamedEvenAmongTwo) {
  const auto of_clock = admit({node("quick"), node("slow", 2.1)}, 0.15);
  EXPECT_THAT(of_clock.at("quick").apart, IsEmpty());
  EXPECT_EQ(of_clock.at("slow").apart, "clock 2.10 GHz, the fleet's 3.00 GHz: 30% less");
  // A neighbour that takes a third of the processor leaves the clock as it is.
  const auto of_speed = admit({node("slow", 3.0, 0.5), node("a"), node("b")}, 0.15);
  EXPECT_THAT(of_speed.at("slow").apart, HasSubstr("speed 0.50 iterations/ns, the fleet's 0.75"));
  EXPECT_THAT(admit({node("quick"), node("slow", 2.1)}, 0.4).at("slow").apart, IsEmpty());
}

TEST(Admission, ANoisyNodeIsNamed) {
  const auto seen = admit({node("a"), node("b"), node("c", 3.0, 0.75, 0.2)}, 0.15);
  EXPECT_EQ(seen.at("c").apart, "equal work in turns differs by 20.0% (sd), on the fleet's nodes by 1.0%");
  EXPECT_THAT(seen.at("a").apart, IsEmpty());
}

TEST(Admission, AnotherMachineIsAnotherRace) {
  Node other = node("new");
  other.host.cpu = "Xeon";
  Node smaller = node("small");
  smaller.host.cpus = 32;
  const auto seen = admit({other, node("a"), smaller, node("b")}, 0.15);
  EXPECT_EQ(seen.at("new").apart, "another machine: Xeon (64 CPUs), most blocks ran on EPYC (64 CPUs)");
  EXPECT_THAT(seen.at("small").apart, HasSubstr("EPYC (32 CPUs)"));
  EXPECT_THAT(seen.at("a").apart, IsEmpty());
}

TEST(Admission, WhatWasNotMeasuredIsNotHeldAgainstANode) {
  EXPECT_THAT(admit({node("a"), node("b", 0, 0, 0)}, 0.15).at("b").apart, IsEmpty());
}

TEST(AtFault, IsANodeOnWhichAloneAContenderDiffers) {
  const Check sound{"a", "torch", ""}, differs{"b", "torch", "logits differ"};
  EXPECT_THAT(at_fault({sound, {"b", "jax", ""}}), IsEmpty());
  EXPECT_EQ(at_fault({differs, sound, {"b", "torch", ""}}).at("b"),
            "torch computes something else there: logits differ");
  EXPECT_THAT(at_fault({differs}), IsEmpty()) << "on no other node was it seen";
  EXPECT_THAT(at_fault({differs, {"b", "torch", ""}}), IsEmpty());
  EXPECT_THAT(at_fault({sound, differs, {"c", "torch", "loss differs"}}), IsEmpty()) << "it is its own fault";
}

}  // namespace
}  // namespace bakeoff::fleet
