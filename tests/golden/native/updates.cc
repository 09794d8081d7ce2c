
struct Network {
  // Parameters, those that are trained first, and their gradients.
  static constexpr int64_t kTrained = 14218;
  Real* const parameters = allocate<Real>(14218);
  Real* const gradients = allocate<Real>(kTrained);
  Real* const first = allocate<Real>(kTrained);
  Real* const averages = allocate<Real>(kTrained);
  int64_t updates = 0;
  Real* const fc1_weight = parameters + 0;  // [128,100]
  Real* const fc2_weight = parameters + 12800;  // [10,128]
  Real* const fc1_bias = parameters + 14080;  // [128]
  Real* const fc2_bias = parameters + 14208;  // [10]
  Real* const d_fc1_weight = gradients + 0;
  Real* const d_fc2_weight = gradients + 12800;
  Real* const d_fc1_bias = gradients + 14080;
  Real* const d_fc2_bias = gradients + 14208;

  // Values of a batch. Two that are never needed at once may share their place.
  Real* const arena = allocate<Real>(404016);
  Real* const h1 = arena + 0;
  Real* const d_h1 = arena + 128000;
  Real* const h2 = arena + 128000;
  Real* const d_h2 = arena + 256000;
  Real* const d_loss = arena + 256000;
  Real* const logits = arena + 384000;
  Real* const d_logits = arena + 394000;
  Real* const loss = arena + 404000;

  // The data, and the rows of the present batch.
  std::vector<Real> x_data;
  const Real* x = nullptr;
  std::vector<int32_t> y_data;
  const int32_t* y = nullptr;
  int64_t data_rows = 0, first_row = 0, rows = 0;

  // Parameters as files have them: name, shape, and the shape and order of axes in which they are held.
  const std::vector<Parameter> table = {
      {"fc1.weight", {128, 100}, {128, 100}, {1, 0}, 0, 12800, true},
      {"fc2.weight", {10, 128}, {10, 128}, {1, 0}, 12800, 1280, true},
      {"fc1.bias", {128}, {}, {}, 14080, 128, true},
      {"fc2.bias", {10}, {}, {}, 14208, 10, true},
  };

  void load_weights(const std::string& path) {
    load_parameters(path, table, parameters);
  }

  // The inputs as files have them: name, sizes of a row.
  const std::vector<Input> inputs = {
      {"x", {100}},
      {"y", {}, {{0, 10, 0}}},
  };

  void load_data(const std::string& path) {
    set_data(load_inputs(path, inputs), path);
    if (data_rows < kBatch)
      refuse("'" + path + "' has " + std::to_string(data_rows) + " rows, fewer than one batch",
             "give at least " + std::to_string(kBatch));
  }

  // `from`: where the tensors come from, for messages.
  void set_data(const std::map<std::string, Tensor>& tensors, const std::string& from) {
    check_inputs(from, tensors, inputs);
    data_rows = tensors.at(inputs[0].name).shape[0];
    first_row = 0;
    x_data = scaled(tensors, "x", 1.0);
    y_data = numbers<int32_t>(tensors, "y");
  }

  void set_batch(int64_t first, int64_t count) {
    rows = count;
    x = x_data.data() + first * 100;
    y = y_data.data() + first;
  }

  // In the order of the file; a partial last batch is left out.
  void next_batch() {
    if (first_row + kBatch > data_rows) first_row = 0;
    set_batch(first_row, std::min(kBatch, data_rows));
    first_row += kBatch;
  }

  // The inputs of the present batch, axes as files have them.
  std::vector<Tensor> batch() const {
    return {tensor_of(std::vector<Real>(x, x + rows * 100), {rows, 100}),
            tensor_of(std::vector<int32_t>(y, y + rows), {rows})};
  }

  // fc1: h1 = linear(x), [N,128].
  void h1_forward() {
    start_rows<128>(rows, fc1_bias, h1);
    linear<100, 128>(rows, x, fc1_weight, h1);
  }

  void h1_backward() {
    column_sums<128>(rows, d_h1, d_fc1_bias);
    linear_dw<100, 128>(rows, x, d_h1, d_fc1_weight);
  }

  // h2 = relu(h1), [N,128].
  void h2_forward() {
    #pragma GCC ivdep
    for (int64_t i = 0; i < rows * 128; ++i) {
      h2[i] = h1[i] <= 0 ? Real{0} : h1[i];
    }
  }

  void h2_backward() {
    std::fill(d_h1, d_h1 + rows * 128, Real{0});
    #pragma GCC ivdep
    for (int64_t i = 0; i < rows * 128; ++i) {
      d_h1[i] += d_h2[i] * (h1[i] <= 0 ? Real{0} : Real{1});
    }
  }

  // fc2: logits = linear(h2), [N,10].
  void logits_forward() {
    start_rows<10>(rows, fc2_bias, logits);
    linear<128, 10>(rows, h2, fc2_weight, logits);
  }

  void logits_backward() {
    std::fill(d_h2, d_h2 + rows * 128, Real{0});
    column_sums<10>(rows, d_logits, d_fc2_bias);
    linear_dw<128, 10>(rows, h2, d_logits, d_fc2_weight);
    linear_dx<128, 10>(rows, d_logits, fc2_weight, d_h2);
  }

  // loss = softmax_cross_entropy(logits, y), [].
  void loss_forward() {
    loss[0] = softmax_cross_entropy<10>(rows, 0, -1, true, logits, y);
  }

  void loss_backward() {
    std::fill(d_logits, d_logits + rows * 10, Real{0});
    softmax_cross_entropy_dx<10>(rows, 0, -1, true, logits, y, d_loss[0], d_logits);
  }

  // All steps in order; gives the loss.
  Real forward() {
    h1_forward();
    h2_forward();
    logits_forward();
    loss_forward();
    return loss[0];
  }

  void backward() {
    std::fill(gradients, gradients + kTrained, Real{0});
    d_loss[0] = 1;
    loss_backward();
    logits_backward();
    h2_backward();
    h1_backward();
  }

  // The prediction of the present batch, axes as the model has them.
  Tensor output() const {
    return tensor_of(std::vector<Real>(logits, logits + rows * 10), {rows, 10});
  }

  // The optimizer as it was before the first update.
  void restart() {
    std::fill(first, first + kTrained, Real{0});
    updates = 0;
  }

  // That of a step; steps are counted from 0.
  double learning_rate(int64_t step) {
    if (step < kWarmupSteps) {
      return kLearningRate * (kWarmupFrom + (1 - kWarmupFrom) * step / kWarmupSteps);
    }
    const double done = std::min((step - kWarmupSteps) / double(kDecaySteps), 1.0);
    const double cosine = (1 + std::cos(M_PI * done)) / 2;
    return kLearningRate * (kFinalShare + (1 - kFinalShare) * cosine);
  }

  // One update of all trained parameters from their gradients.
  void update() {
    const Real rate = static_cast<Real>(learning_rate(updates));
    ++updates;
    double square = 0;
    for (int64_t i = 0; i < kTrained; ++i) square += static_cast<double>(gradients[i]) * static_cast<double>(gradients[i]);
    const double norm = std::sqrt(square);
    const Real scale = norm > kClipNorm ? static_cast<Real>(kClipNorm / norm) : Real{1};
    for (int64_t i = 0; i < kTrained; ++i) gradients[i] *= scale;
    for (int64_t i = 0; i < kTrained; ++i) {
      const Real decay = i < 14080 ? Real{0.01} : Real{0};
      const Real g = gradients[i] + decay * parameters[i];
      first[i] = Real{0.9} * first[i] + g;
      const Real move = first[i];
      parameters[i] -= rate * move;
      averages[i] = updates == 1 ? parameters[i] : Real{0.99} * averages[i] + Real{0.010000000000000009} * parameters[i];
    }
  }

  // One step on the present batch: its loss, before the update.
  Real train_step() {
    const Real seen = forward();
    backward();
    update();
    return seen;
  }
};

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto given = options(argc, argv,
                             {{"--data", "data.safetensors"},
                              {"--weights", "weights.safetensors"},
                              {"--steps", "100"},
                              {"--out", ""}});
  const int64_t steps = whole_number(given, "--steps");
  static Network network;
  network.load_weights(given.at("--weights"));
  network.load_data(given.at("--data"));
  std::signal(SIGINT, interrupt);
  for (int64_t step = 0; step < steps && interrupted() == 0; ++step) {
    network.next_batch();
    const double loss = static_cast<double>(network.train_step());
    if (step % 10 == 0) std::printf("step %5d  loss %.6f\n", static_cast<int>(step), loss);
  }
  const std::string out = given.at("--out");
  if (!out.empty()) save_parameters(out, network.table, network.parameters);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
