#pragma once

// Shape rules and multiply-accumulate counts of the op table; used by op_table.cc only.

#include "base/result.h"
#include "ir/node_view.h"

namespace bakeoff::ir::rules {

Result<Type> conv(const NodeView&);
Result<Type> conv_transpose(const NodeView&);
Result<Type> linear(const NodeView&);
Result<Type> batch_norm(const NodeView&);
Result<Type> layer_norm(const NodeView&);
Result<Type> embedding(const NodeView&);
Result<Type> same(const NodeView&);  // one float input; the output has its shape
Result<Type> dropout(const NodeView&);
Result<Type> softmax(const NodeView&);
Result<Type> pool(const NodeView&);
Result<Type> global_pool2d(const NodeView&);
Result<Type> resize(const NodeView&);
Result<Type> flatten(const NodeView&);
Result<Type> reshape(const NodeView&);
Result<Type> transpose(const NodeView&);
Result<Type> pad(const NodeView&);
Result<Type> concat(const NodeView&);
Result<Type> join_values(const NodeView&);
Result<Type> broadcast(const NodeView&);    // two float inputs
Result<Type> elementwise(const NodeView&);  // of the rows of ir/elementwise.h
Result<Type> where(const NodeView&);
Result<Type> reduction(const NodeView&);
Result<Type> argmax(const NodeView&);
Result<Type> slice(const NodeView&);
Result<Type> flip(const NodeView&);
Result<Type> expand(const NodeView&);
Result<Type> cast(const NodeView&);
Result<Type> take(const NodeView&);
Result<Type> gather(const NodeView&);
Result<Type> scatter_add(const NodeView&);
Result<Type> group_norm(const NodeView&);
Result<Type> matmul(const NodeView&);
Result<Type> constant(const NodeView&);
Result<Type> parameter(const NodeView&);
Result<Type> lrn(const NodeView&);
Result<Type> position_embedding(const NodeView&);
Result<Type> attention(const NodeView&);
Result<Type> lstm(const NodeView&);
Result<Type> gru(const NodeView&);
Result<Type> softmax_cross_entropy(const NodeView&);
Result<Type> ctc(const NodeView&);
Result<Type> mse(const NodeView&);

int64_t conv_macs(const NodeView&, const Type& output);
int64_t conv_transpose_macs(const NodeView&, const Type& output);
int64_t linear_macs(const NodeView&, const Type& output);
int64_t matmul_macs(const NodeView&, const Type& output);
int64_t attention_macs(const NodeView&, const Type& output);
int64_t recurrent_macs(const NodeView&, const Type& output);
int64_t embedding_rows(const NodeView&);
int64_t classes(const NodeView&);
int64_t gathered(const NodeView&);
int64_t scattered(const NodeView&);
int64_t attention_keys(const NodeView&);

}  // namespace bakeoff::ir::rules
