#pragma once

// How the rows of the data file become batches: load_data(path) and the endless iterator batches(*tensors).
//
// | input          | a batch is                                                                    |
// |----------------|-------------------------------------------------------------------------------|
// | preloaded      | a slice of tensors on the device; shuffled: rows picked by a permutation there |
// | tensor_dataset | collated by a DataLoader from the samples of a TensorDataset                  |
// | dataset        | the same from a Dataset that makes inputs of raw samples one at a time        |
// | batched_index  | picked from a TensorDataset by a list of rows, which a BatchSampler draws     |
// | auto           | preloaded; in the as-is track tensor_dataset, as one would write it           |
//
// `workers` processes of a DataLoader get the batches ready; 0: the training process does it itself.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::torch {

enum class Input { kPreloaded, kTensorDataset, kDataset, kBatchedIndex };

Input input_of(const Request& request);
// Error: workers where there is no DataLoader.
Status check_input(const Request& request);
// The line that imports from torch.utils.data; empty if not needed.
std::string input_imports(const Request& request);
// WORKERS = n, where there are any.
void print_input_constants(CodeWriter& out, const Request& request);

// `loaded`: inputs of the workload that the script reads; `names`: Python names of all its inputs;
// `on_device`: "x.to(device)" for all of them.
void print_input(CodeWriter& out, const Request& request, const std::vector<ir::ValueId>& loaded,
                 const std::vector<std::string>& names, const std::vector<std::string>& on_device);

}  // namespace bakeoff::emit::torch
