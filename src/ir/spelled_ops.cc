// One row makes an op exist in six frameworks: what a call looks like, with {0} for an input, {name} for an
// attribute, {name?, text} for text that stands only where the attribute is on. Emitters, documentation and
// the test that runs every op read the same rows. An op whose call depends on more than its attributes (axes
// to move, kernels that are missing) has functions in the emitters instead.

#include "ir/spelled_ops.h"

#include <map>
#include <string>

#include "ir/elementwise.h"

namespace bakeoff::ir {
namespace {

std::map<Op, Spellings> rows() {
  return {
      {Op::kSum,
       {{"{0}.sum(dim={axes}{keepdims?, keepdim=True})"},
        {"jnp.sum({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"tf.reduce_sum({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"ops.sum({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"{0}.sum({axes}{keepdims?, /*keepdim=*/true})"},
        {"ReduceSum({0}, {axes}, keepdims={keepdims})"}}},
      {Op::kMean,
       {{"{0}.mean(dim={axes}{keepdims?, keepdim=True})"},
        {"jnp.mean({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"tf.reduce_mean({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"ops.mean({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"{0}.mean({axes}{keepdims?, /*keepdim=*/true})"},
        {"ReduceMean({0}, {axes}, keepdims={keepdims})"}}},
      {Op::kMax,
       {{"{0}.amax(dim={axes}{keepdims?, keepdim=True})"},
        {"jnp.max({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"tf.reduce_max({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"ops.max({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"{0}.amax({axes}{keepdims?, /*keepdim=*/true})"},
        {"ReduceMax({0}, {axes}, keepdims={keepdims})"}}},
      {Op::kMin,
       {{"{0}.amin(dim={axes}{keepdims?, keepdim=True})"},
        {"jnp.min({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"tf.reduce_min({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"ops.min({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"{0}.amin({axes}{keepdims?, /*keepdim=*/true})"},
        {"ReduceMin({0}, {axes}, keepdims={keepdims})"}}},
      {Op::kLogsumexp,
       {{"{0}.logsumexp(dim={axes}{keepdims?, keepdim=True})"},
        {"jax.nn.logsumexp({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"tf.reduce_logsumexp({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"ops.logsumexp({0}, axis={axes}{keepdims?, keepdims=True})"},
        {"{0}.logsumexp({axes}{keepdims?, /*keepdim=*/true})"},
        {"ReduceLogSumExp({0}, {axes}, keepdims={keepdims})"}}},
      {Op::kProd,
       {{"{0}.prod(dim={axis}{keepdims?, keepdim=True})"},
        {"jnp.prod({0}, axis={axis}{keepdims?, keepdims=True})"},
        {"tf.reduce_prod({0}, axis={axis}{keepdims?, keepdims=True})"},
        {"ops.prod({0}, axis={axis}{keepdims?, keepdims=True})"},
        {"{0}.prod({axis}{keepdims?, /*keepdim=*/true})"},
        {"ReduceProd({0}, [{axis}], keepdims={keepdims})"}}},
      {Op::kArgmax,
       {{"{0}.argmax(dim={axis})"},
        {"jnp.argmax({0}, axis={axis})"},
        {"tf.argmax({0}, axis={axis})"},
        {"ops.argmax({0}, axis={axis})"},
        {"{0}.argmax({axis})"},
        {"ArgMax({0}, axis={axis}, keepdims=0)"}}},
      {Op::kCumsum,
       {{"torch.cumsum({0}, dim={axis})"},
        {"jnp.cumsum({0}, axis={axis})"},
        {"tf.cumsum({0}, axis={axis})"},
        {"ops.cumsum({0}, axis={axis})"},
        {"torch::cumsum({0}, {axis})"},
        {"CumSum({0}, #{axis})"}}},
      {Op::kLogSoftmax,
       {{"F.log_softmax({0}, dim={axis})"},
        {"jax.nn.log_softmax({0}, axis={axis})"},
        {"tf.nn.log_softmax({0}, axis={axis})"},
        {"ops.log_softmax({0}, axis={axis})"},
        {"torch::log_softmax({0}, {axis})"},
        {"LogSoftmax({0}, axis={axis})"}}},
      {Op::kSlice,
       {{"{0}{index}"},
        {"{0}{index}"},
        {"{0}{index}"},
        {"{0}{index}"},
        {"{0}.slice({axis}, {begin}, {end}, {step})"},
        {"Slice({0}, [{begin}], [{end}], [{axis}], [{step}])"}}},
      {Op::kFlip,
       {{"torch.flip({0}, dims={axes})"},
        {"jnp.flip({0}, axis={axes})"},
        {"tf.reverse({0}, axis={axes})"},
        {"ops.flip({0}, axis={axes})"},
        {"torch::flip({0}, {axes})"},
        {"Slice({0}, {backwards})"}}},
      {Op::kExpand,
       {{"{0}.expand({1}.shape[0], {sizes})", "{1}.new_full(({1}.shape[0], {sizes}), {0})",
         "{1}.new_zeros({1}.shape[0], {sizes})"},
        {"jnp.broadcast_to({0}, ({1}.shape[0], {sizes}))",
         "jnp.full(({1}.shape[0], {sizes}), {0}, {1}.dtype)",
         "jnp.zeros(({1}.shape[0], {sizes}), {1}.dtype)"},
        {"tf.broadcast_to({0}, (tf.shape({1})[0], {sizes}))",
         "tf.fill((tf.shape({1})[0], {sizes}), tf.constant({0}, {1}.dtype))",
         "tf.zeros((tf.shape({1})[0], {sizes}), {1}.dtype)"},
        {"Expand([{sizes}])([{0}, {1}])", "Full([{sizes}], {0})({1})", "Full([{sizes}], {0})({1})"},
        {"{0}.expand({{1}.size(0), {sizes}})", "{1}.new_full({{1}.size(0), {sizes}}, {0})",
         "{1}.new_zeros({{1}.size(0), {sizes}})"},
        {"Expand({0}, Concat(Slice(Shape({1}), [0], [1]), [{sizes}], axis=0))"}}},
      {Op::kMatmul,
       {{"{0} @ {1}"},
        {"{0} @ {1}"},
        {"tf.matmul({0}, {1})"},
        {"ops.matmul({0}, {1})"},
        {"torch::matmul({0}, {1})"},
        {"MatMul({0}, {1})"}}},
      {Op::kCast,
       {{"{0}.long()"},
        {"{0}.astype(jnp.int32)"},
        {"tf.cast({0}, tf.int32)"},
        {"ops.cast({0}, \"int32\")"},
        {"{0}.to(torch::kInt64)"},
        {"Cast({0}, to=6)"}}},
      {Op::kTake,
       {{"torch.index_select({0}, {axis}, {1})"},
        {"jnp.take({0}, {1}, axis={axis})"},
        {"tf.gather({0}, {1}, axis={axis})"},
        {"ops.take({0}, {1}, axis={axis})"},
        {"torch::index_select({0}, {axis}, {1})"},
        {"Gather({0}, {1}, axis={axis})"}}},
      {Op::kGather,
       {{"torch.take_along_dim({0}, {1}{behind}, dim={axis})"},
        {"jnp.take_along_axis({0}, {1}{behind}, axis={axis})"},
        {"tf.gather({0}, {1}, axis={axis}, batch_dims={axis})"},
        {"ops.take_along_axis({0}, {1}{behind}, axis={axis})"},
        {"torch::take_along_dim({0}, {1}{behind}, {axis})"},
        {"GatherND({0}, Unsqueeze(Cast({1}, to=7), [-1]), batch_dims={axis})"}}},
      {Op::kScatterAdd,
       {{"scatter_add({0}, {1}{behind}, {axis}, {size})"},
        {"scatter_add({0}, {1}, {size})"},
        {"scatter_add({0}, {1}, {size})"},
        {"ScatterAdd({size})([{0}, {1}])"},
        {"scatter_add({0}, {1}{behind}, {axis}, {size})"},
        {"ScatterElements(Expand(0, Concat(Slice(Shape({0}), [0], [{axis}]), [{size}], Slice(Shape({0}), "
         "[{after}], [64]), axis=0)), Expand(Unsqueeze({1}, {behind}), Shape({0})), {0}, axis={axis}, "
         "reduction=\"add\")"}}},
      {Op::kStopGradient,
       {{"{0}.detach()"},
        {"jax.lax.stop_gradient({0})"},
        {"tf.stop_gradient({0})"},
        {"ops.stop_gradient({0})"},
        {"{0}.detach()"},
        {"Identity({0})"}}},
  };
}

}  // namespace

const LossSpelling& loss_spelling(Op op) {
  static const std::map<Op, LossSpelling> losses = {
      {Op::kSoftmaxCrossEntropy,
       {"F.cross_entropy", "cross_entropy", "CrossEntropyFuncOptions",
        "optax.softmax_cross_entropy_with_integer_labels({0}, {1})",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels={1}, logits={0})",
        "SparseCategoricalCrossentropy(from_logits=True)", ""}},
      {Op::kMse,
       {"F.mse_loss", "mse_loss", "MSELossFuncOptions", "optax.squared_error({0}, {1})",
        "tf.math.squared_difference({0}, {1})", "MeanSquaredError()", "ops.square(y_pred - y_true)"}},
      {Op::kL1,
       {"F.l1_loss", "l1_loss", "L1LossFuncOptions", "jnp.abs({0} - {1})", "tf.abs({0} - {1})",
        "MeanAbsoluteError()", "ops.abs(y_pred - y_true)"}},
      {Op::kBceWithLogits,
       {"F.binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits",
        "BinaryCrossEntropyWithLogitsFuncOptions", "optax.sigmoid_binary_cross_entropy({0}, {1})",
        "tf.nn.sigmoid_cross_entropy_with_logits(labels={1}, logits={0})",
        "BinaryCrossentropy(from_logits=True)", "ops.softplus(y_pred) - y_pred * y_true"}},
      // torch's own mean divides each row by its number of labels. Keras has padding with class 0.
      {Op::kCtc,
       {"F.ctc_loss", "ctc_loss", "CTCLossFuncOptions",
        "optax.ctc_loss({0}, jnp.zeros({0}.shape[:2]), {1}, {1} < 0)",
        "tf.nn.ctc_loss(labels=tf.maximum({1}, 0), logits={0}, label_length=tf.math.count_nonzero({1} >= 0, "
        "axis=1, dtype=tf.int32), logit_length=tf.fill(tf.shape({0})[:1], {0}.shape[1]), "
        "logits_time_major=False, blank_index=0)",
        "", ""}},
  };
  return losses.at(op);
}

double label_smoothing(const Node& loss) {
  return loss.has_attribute("label_smoothing") ? loss.real("label_smoothing") : 0;
}

const Spellings* spellings(Op op) {
  static const std::map<Op, Spellings> table = rows();
  if (const Elementwise* row = find_elementwise(op)) return &row->spellings;
  const auto found = table.find(op);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace bakeoff::ir
