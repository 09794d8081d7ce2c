#pragma once

// TensorBoard's event files: https://github.com/tensorflow/tensorboard reads records of length, masked CRC-32C of the
// length, data, masked CRC-32C of the data (TFRecord), each one Event in protobuf.
//
// One folder for every contender, which TensorBoard calls a run: its series as scalars, its settings as
// hyperparameters, the verdict as a text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exports/series.h"

namespace bakeoff::exports {

struct EventFile {
  std::string folder = {};  // below the folder of the export: a plain name, unique
  std::string name = {};    // the same for the same run, so that a second export replaces the first
  std::string bytes = {};
};

std::vector<EventFile> event_files(const Experiment& experiment);

// CRC-32C (Castagnoli; RFC 3720, B.4), and as TFRecord masks it.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// A name of one folder for every text: letters, digits and "._=,-[]" stay, others become "_"; no dot in front, 100
// bytes at most, and a number behind what was taken before.
std::vector<std::string> folder_names(const std::vector<std::string>& texts);

}  // namespace bakeoff::exports
