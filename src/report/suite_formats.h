#pragma once

// A suite's table for a terminal, as Markdown, as JSON and as CSV.
//
// JSON, "schema" 1: {"suite", "headline", "contenders": [...], "rows": [{"recipe", "run", "failure", "refusal",
// "decided", "best", "sure", "cells": {contender: {"state", "ratio", ...}}}], "geometric_mean": {"rows",
// "error_rate", "contenders": {...}}, "baseline"}. CSV: one line for each row and contender, and for each mean.

#include <string>

#include "report/terminal.h"
#include "suite/suite_table.h"

namespace bakeoff::report {

// No contender is left out: what a width has no room for stands in further tables below.
std::string render_terminal(const suite::Table& table, const TerminalOptions& options);
std::string render_markdown(const suite::Table& table);
std::string render_json(const suite::Table& table);
std::string render_csv(const suite::Table& table);

}  // namespace bakeoff::report
