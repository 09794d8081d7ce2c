
struct Memory {
  // Parameters, those that are trained first, and gradients of each share of a batch: when a step
  // has ended, the first share's are the sum of all.
  static constexpr int64_t kTrained = 14218, kShares = 2;
  Real* const gradients = allocate<Real>(kShares * kTrained);
  Real* const parameters = allocate<Real>(14218);
  Real* const fc1_weight = parameters;  // [128,100]
  Real* const fc1_bias = parameters + 12800;  // [128]
  Real* const fc2_weight = parameters + 12928;  // [10,128]
  Real* const fc2_bias = parameters + 14208;  // [10]

  // Values of a whole batch, and of each share what becomes a sum. Two that are never needed at
  // once share their place.
  Real* const arena = allocate<Real>(10016);
  static constexpr int64_t kSums = 16;
  Real* const sums = allocate<Real>(kShares * kSums);

  // Weights as kernels read them.
  Real* const fc1_weight_packed = allocate<Real>(native::packed_size<Real>(100, 128));
  Real* const fc2_weight_packed = allocate<Real>(native::packed_size<Real>(128, 10));
  Real* const fc2_weight_turned = allocate<Real>(native::packed_size<Real>(10, 128));

  // Makes them anew: of `parts` parts, which threads share, each has every `parts`-th.
  void pack(int64_t part, int64_t parts) {
    if (part == 0 % parts)
      native::linear_pack<Real>(100, 128, fc1_weight, fc1_weight_packed);
    if (part == 1 % parts)
      native::linear_pack<Real>(128, 10, fc2_weight, fc2_weight_packed);
    if (part == 2 % parts)
      native::linear_dx_pack<Real>(128, 10, fc2_weight, fc2_weight_turned);
  }
};

// The steps of the model for `rows` rows of the present batch, from row `first` on; one for each
// thread.
struct Rows : Memory {
  [[gnu::noinline]] explicit Rows(const Memory& memory) : Memory(memory) {}

  Real* const local = allocate<Real>(133008);
  Real* const h2 = local;
  Real* logits = nullptr;
  Real* loss = nullptr;
  Real* const d_loss = arena + 10000;
  Real* const d_h2 = local + 64000;
  Real* const d_logits = local + 128000;
  Real* d_fc1_weight = nullptr;
  Real* d_fc1_bias = nullptr;
  Real* d_fc2_weight = nullptr;
  Real* d_fc2_bias = nullptr;
  const Real *x_data = nullptr, *x = nullptr;  // of the batch, of these rows
  const int32_t *y_data = nullptr, *y = nullptr;  // of the batch, of these rows
  int64_t first = 0, rows = 0, batch_rows = 0;

  // Moves to `count` rows, which belong to a share of the batch.
  void place(int64_t share, int64_t first_row, int64_t count) {
    first = first_row, rows = count;
    logits = arena + first * 10;
    loss = sums + share * kSums;
    d_fc1_weight = gradients + share * kTrained;
    d_fc1_bias = gradients + share * kTrained + 12800;
    d_fc2_weight = gradients + share * kTrained + 12928;
    d_fc2_bias = gradients + share * kTrained + 14208;
    x = x_data + first * 100;
    y = y_data + first;
  }

  // fc1: h2 = relu(linear(x)), [N,128].
  void h1_forward() {
    linear(rows, 100, 128, x, fc1_weight_packed, {.bias = fc1_bias}, h2,
           native::kBias | native::kRelu);
  }

  // From d_h2: d_fc1_weight, d_fc1_bias.
  void h1_backward() {
    column_sums<128>(rows, d_h2, d_fc1_bias);
    linear_dw(rows, 100, 128, x, d_h2, d_fc1_weight);
  }

  // fc2: logits = linear(h2), [N,10].
  void logits_forward() {
    linear(rows, 128, 10, h2, fc2_weight_packed, {.bias = fc2_bias}, logits, native::kBias);
  }

  // From d_logits: d_h2, d_fc2_weight, d_fc2_bias.
  void logits_backward() {
    column_sums<10>(rows, d_logits, d_fc2_bias);
    linear_dw(rows, 128, 10, h2, d_logits, d_fc2_weight);
    linear(rows, 10, 128, d_logits, fc2_weight_turned, {.mask = h2}, d_h2, native::kMask);
  }

  // loss = softmax_cross_entropy(logits, y), [].
  void loss_forward() {
    loss[0] += softmax_cross_entropy<10>(rows, 0, -1, batch_rows, logits, y);
  }

  // From d_loss: d_logits.
  void loss_backward() {
    std::fill_n(d_logits, rows * 10, Real{0});
    softmax_cross_entropy_dx<10>(rows, 0, -1, batch_rows, logits, y, d_loss[0], d_logits);
  }

  // For a share of the batch.
  [[gnu::noinline]] void phase_1() {
    h1_forward();
    logits_forward();
    loss_forward();
    loss_backward();
    logits_backward();
    h1_backward();
  }

  // The prediction for these rows, axes as the model has them.
  Tensor output() const {
    return tensor_of(std::vector<Real>(logits, logits + rows * 10), {rows, 10});
  }

  // The inputs of these rows, axes as files have them.
  std::vector<Tensor> batch() const {
    return {tensor_of(std::vector<Real>(x, x + rows * 100), {rows, 100}),
            tensor_of(std::vector<int32_t>(y, y + rows), {rows})};
  }
};

struct Network : Memory {
  // Parameters as files have them: name, shape, and as they are held: shape and order of axes,
  // place.
  static constexpr ParameterRow kTable[] = {
      {"fc1.weight", {128, 100}, {128, 100}, {1, 0}, 0, true},
      {"fc1.bias", {128}, {}, {}, 12800, true},
      {"fc2.weight", {10, 128}, {10, 128}, {1, 0}, 12928, true},
      {"fc2.bias", {10}, {}, {}, 14208, true},
  };
  const std::vector<Parameter> table = parameters_of(kTable);

  // The data, and the rows of the present batch.
  Feed<Real> x_data;
  Feed<int32_t> y_data;
  int64_t data_rows = 0, first_row = 0, rows = 0;

  Real* const first = allocate<Real>(kTrained);
  Real* const second = allocate<Real>(kTrained);
  int64_t updates = 0;
  Real rate = 0, c1 = 1, c2 = 1;
  Team team;
  std::deque<Rows> lanes;  // by thread

  explicit Network(int64_t threads = default_threads()) : team(std::min(kShares, threads)) {
    for (int64_t i = 0; i < team.size(); ++i) lanes.emplace_back(*this);
  }

  void load_weights(const std::string& path) {
    load_parameters(path, table, parameters);
    pack(0, 1);
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
  void set_data(std::map<std::string, Tensor> tensors, const std::string& from) {
    check_inputs(from, tensors, inputs);
    data_rows = tensors.at(inputs[0].name).shape[0];
    first_row = 0;
    x_data.take(std::move(tensors.at("x")));
    y_data.take(std::move(tensors.at("y")));
  }

  void set_batch(int64_t first, int64_t count) {
    rows = count;
    for (Rows& lane : lanes) {
      lane.x_data = x_data.rows(first, count);
      lane.y_data = y_data.rows(first, count);
      lane.batch_rows = count;
    }
  }

  // In the order of the file; a partial last batch is left out.
  void next_batch() {
    if (first_row + kBatch > data_rows) first_row = 0;
    set_batch(first_row, std::min(kBatch, data_rows));
    first_row += kBatch;
  }

  // Inputs and prediction of the present batch, axes as files have them; a proof asks for them.
  std::vector<Tensor> batch() {
    lanes[0].place(0, 0, rows);
    return lanes[0].batch();
  }
  Tensor output() {
    lanes[0].place(0, 0, rows);
    return lanes[0].output();
  }

  // The optimizer as it was before the first update.
  void restart() {
    std::fill_n(first, kTrained, Real{0});
    std::fill_n(second, kTrained, Real{0});
    updates = 0;
  }

  // What an update needs to know beforehand.
  void begin_update() {
    rate = static_cast<Real>(kLearningRate);
    ++updates;
    c1 = static_cast<Real>(1 - std::pow(0.9, static_cast<double>(updates)));
    c2 = static_cast<Real>(1 - std::pow(0.999, static_cast<double>(updates)));
  }

  // One update of trained parameters `begin` to `end` from their gradients.
  void update(int64_t begin, int64_t end) {
    const Real rate = this->rate, c1 = this->c1, c2 = this->c2;
    for (int64_t i = begin; i < end; ++i) {
      const Real g = gradients[i];
      first[i] = Real{0.9} * first[i] + Real{1 - 0.9} * g;
      second[i] = Real{0.999} * second[i] + Real{1 - 0.999} * g * g;
      const Real move = first[i] / c1 / (std::sqrt(second[i] / c2) + Real{1e-07});
      parameters[i] -= rate * move;
    }
  }

  // One update of all of them.
  void update() {
    begin_update();
    update(0, kTrained);
    pack(0, 1);
  }

  // What is chosen: rows that work together, blocks and tiles of matrix products; --tuned prints
  // it. Nothing of it changes from run to run but the threads.
  void print_constants() const {
    std::printf("constexpr int64_t kBatch = %d;\n", static_cast<int>(kBatch));
    std::printf("constexpr int64_t kShares = %d;\n", static_cast<int>(kShares));
    std::printf("constexpr int64_t kThreads = %d;\n", static_cast<int>(team.size()));
    std::printf("constexpr int64_t kLanes = %d;\n", static_cast<int>(native::Lanes<Real>::kLanes));
    std::printf("constexpr int64_t kTileRowsOfOneVector = %d;\n",
                static_cast<int>(native::most_rows(1)));
    std::printf("constexpr int64_t kTileRowsOfTwoVectors = %d;\n",
                static_cast<int>(native::most_rows(2)));
    std::printf("constexpr int64_t kBlockRows = %d;\n",
                static_cast<int>(native::Blocks<Real>::kRows));
    std::printf("constexpr int64_t kBlockColumns = %d;\n",
                static_cast<int>(native::Blocks<Real>::kColumns));
    std::printf("constexpr int64_t kBlockDepth = %d;\n", static_cast<int>(native::kDepth<Real>));
  }

  // Runs a phase for every share of this thread, `most` rows at a time.
  void each(int64_t thread, int64_t most, void (Rows::*phase)()) {
    Rows& own = lanes[static_cast<size_t>(thread)];
    for (int64_t share = thread; share < kShares; share += team.size()) {
      const int64_t end = rows * (share + 1) / kShares;
      for (int64_t first = rows * share / kShares; first < end; first += most) {
        own.place(share, first, std::min(most, end - first));
        (own.*phase)();
      }
    }
  }

  // Loss and gradients of the present batch: what one thread does for them.
  void pass(int64_t thread) {
    for (int64_t share = thread; share < kShares; share += team.size()) {
      std::fill_n(gradients + share * kTrained, kTrained, Real{0});
      std::fill_n(sums + share * kSums, kSums, Real{0});
    }
    each(thread, rows, &Rows::phase_1);
  }

  // Adds up the gradients of all shares, from `begin` to `end`.
  void add_up(int64_t begin, int64_t end) {
    for (int64_t share = 1; share < kShares; ++share) {
      for (int64_t i = begin; i < end; ++i) gradients[i] += gradients[share * kTrained + i];
    }
  }

  // Before a pass, on one thread.
  void begin() {
    for (Rows& lane : lanes) lane.place(0, 0, rows);
    lanes[0].d_loss[0] = 1;
  }

  // After a pass: the loss of the present batch.
  Real loss() {
    Real all = 0;
    for (int64_t share = 0; share < kShares; ++share) {
      lanes[0].place(share, 0, rows);
      all += lanes[0].loss[0];
    }
    return all;
  }

  // Loss of the present batch, and gradients, without an update: what a proof asks for.
  Real loss_and_gradients() {
    begin();
    team.run([this](int64_t thread) { pass(thread); });
    add_up(0, kTrained);
    return loss();
  }

  // One step on the present batch: its loss, before the update.
  Real train_step() {
    begin();
    begin_update();
    team.run([this](int64_t thread) {
      pass(thread);
      team.wait();
      const int64_t begin = kTrained * thread / team.size();
      const int64_t end = kTrained * (thread + 1) / team.size();
      add_up(begin, end);
      update(begin, end);
      team.wait();
      pack(thread, team.size());
    });
    return loss();
  }
};

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto given = options(argc, argv,
                             {{"--data", "data.safetensors"},
                              {"--weights", "weights.safetensors"},
                              {"--steps", "100"},
                              {"--threads", "0"},
                              {"--tuned", ""},
                              {"--out", ""}});
  const int64_t steps = whole_number(given, "--steps"), threads = whole_number(given, "--threads");
  static Network network(threads > 0 ? threads : default_threads());
  if (!given.at("--tuned").empty()) return network.print_constants(), 0;
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
