#pragma once

// The proof of an import: the referee computes the IR, the origin computes the model, both in float64, from
// the same weights and inputs. Outputs in inference mode and in training mode (dropout off), running
// statistics, and the gradient of a random projection of the outputs with respect to every parameter.

#include <filesystem>

#include "base/progress.h"
#include "base/result.h"
#include "import/origin.h"
#include "ir/bounds.h"
#include "ir/workload.h"
#include "referee/evaluate.h"
#include "tensor/rng.h"

namespace bakeoff {

// Largest differences, relative to the largest magnitude. Of a tensor b: max |a - b| / max |b|. Of a
// gradient the scale is at least kGradientFloor of the largest gradient of all: where terms cancel exactly (a
// bias in front of a batch norm), rounding is all there is.
struct ImportProof {
  double outputs = 0;
  double float32 = 0;  // of an ONNX file: ONNX Runtime's outputs
  double running = 0;
  double gradients = 0;
  int64_t parameters = 0;  // whose gradients were compared
};
inline constexpr double kImportOutputs = 1e-10;
inline constexpr double kImportFloat32 = 1e-4;
inline constexpr double kImportSlope = 1e-4;  // of an ONNX file: by differences
inline constexpr double kImportGradients = 1e-8;
inline constexpr double kGradientFloor = 1e-3;
// Rows of the batches in training and in inference mode: two sizes, as a model may have one built in. Batch
// norm of few rows amplifies rounding, so it has twice as many; cheap models are trained with up to
// kMostProofRows, as far as a step takes at most kProofFlops.
inline constexpr int64_t kProofRowsTrain = 2, kProofRowsNormed = 4, kMostProofRows = 16;
inline constexpr int64_t kProofRowsPredict = 3;
inline constexpr uint64_t kProofSeed = 20;
inline constexpr int64_t kUnboundIntegers = 2;  // ints that no op bounds are drawn from 0 and 1
inline constexpr int64_t kProofFlops = 20'000'000'000;

// The distance that the bounds are about; infinity where shapes differ or a number is not finite.
double import_distance(const tensor::Tensor& a, const tensor::Tensor& b, double least_scale = 0);

// Integers within the bounds. Those that may be 0 and 1 alone are drawn as masks are: ones, at least one, and zeros
// behind them along the last axis, so that no row of an attention is left without a key. few_zeros: no two of
// them side by side, for attentions that see a window.
tensor::IntTensor drawn_integers(const ir::Shape& shape, const ir::RowBounds& bounds, tensor::Rng& rng,
                                 bool few_zeros = false);

// Puts sum((prediction - target)^2) in the place of the losses; the target's type is left to the caller.
void project(ir::Workload& workload);

// `weights`: the origin's, by ParamId. The error names the first value of the graph that differs, with the
// user's line.
Result<ImportProof> prove_import(Origin& origin, const OriginModel& model, const ir::Workload& workload,
                                 referee::Weights weights, const std::filesystem::path& folder,
                                 const Progress& progress);

}  // namespace bakeoff
