#include "explain/subject.h"

namespace bakeoff::explain {
namespace {

using Json = nlohmann::json;

const Json kNothing = Json::object();

// Keras trains on another framework, whose own hooks see its import alone.
const char* const kFrameworks[] = {"keras", "tf_keras", "torch", "jax", "tensorflow"};

std::string trained_by(const Json& facts) {
  for (const char* name : kFrameworks)
    if (facts.is_object() && facts.contains(name) && facts[name].value("parameters", 0.0) > 0) return name;
  for (const char* name : kFrameworks)
    if (facts.is_object() && facts.contains(name)) return name;
  return "";
}

}  // namespace

const Json& facts_of(const Report& report) {
  const std::string name = trained_by(report.facts);
  return name.empty() ? kNothing : report.facts[name];
}

double samples_of(const Json& facts) {
  const auto of = [&](const char* name) {
    const auto found = facts.find(name);
    return found != facts.end() && found->is_number() && *found > 0 ? found->get<double>() : 1.0;
  };
  return of("batch") * of("steps_per_execution");
}

std::string Subject::framework() const { return trained_by(seen.facts); }
const Json& Subject::facts() const { return facts_of(seen); }
double Subject::samples() const { return samples_of(facts()); }

double Subject::number(const char* fact, double otherwise) const {
  const auto found = facts().find(fact);
  return found != facts().end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string Subject::text(const char* fact) const {
  const auto found = facts().find(fact);
  if (found == facts().end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

bool Subject::flag(const char* fact) const {
  const auto found = facts().find(fact);
  return found != facts().end() && found->is_boolean() && found->get<bool>();
}

}  // namespace bakeoff::explain
