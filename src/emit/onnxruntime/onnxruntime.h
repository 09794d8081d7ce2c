#pragma once

// ONNX Runtime scripts: the graph written with onnx.helper, run by onnxruntime.InferenceSession. Only the
// scenarios "predict" and "generate" in the equalised track: ONNX Runtime has neither training nor initialisers.
//
// What a script offers by name, for the runner's adapter and for those who edit it:
//
//   load_data(path) -> arrays            numpy, in the order of predict_step's last arguments
//   batches(arrays) -> endless iterator  tuples of BATCH_SIZE rows; with io_binding of OrtValues
//   load_weights(path) -> arrays by canonical name
//   build_model(weights, real) -> onnx.ModelProto    real: numpy's type of all floating-point numbers
//   make_session(model, threads) -> InferenceSession
//   predict_step(session, *batch) -> output          an array; with io_binding an OrtValue
//   make_decoder(session) -> Decoder     of "generate": its step(words, first) gives logits, of which it keeps what was read
//   PROVIDER, "CPUExecutionProvider"
//
// The graph is canonical (N,C,H,W; linear weights O,I), its opset OPSET. Settings: optimization, io_binding,
// provider, cache. Caches are inputs and outputs of the graph, bound to the device; static ones as the same OrtValue, so
// that ScatterElements writes its few rows and copies nothing.

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& onnxruntime_framework();

}  // namespace bakeoff::emit
