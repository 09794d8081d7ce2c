
struct Memory {
  // Parameters, those that are trained first, and gradients of each share of a batch: when a step
  // has ended, the first share's are the sum of all.
  static constexpr int64_t kTrained = 563018, kShares = 2;
  Real* const gradients = allocate<Real>(kShares * kTrained);
  Real* const parameters = allocate<Real>(563018);
  Real* const conv1_weight = parameters;  // [32,1,3,3]
  Real* const conv1_bias = parameters + 288;  // [32]
  Real* const conv2_weight = parameters + 320;  // [32,32,3,3]
  Real* const conv2_bias = parameters + 9536;  // [32]
  Real* const conv3_weight = parameters + 9568;  // [32,32,3,3]
  Real* const conv3_bias = parameters + 18784;  // [32]
  Real* const conv4_weight = parameters + 18816;  // [64,32,3,3]
  Real* const conv4_bias = parameters + 37248;  // [64]
  Real* const fc1_weight = parameters + 37312;  // [128,4096]
  Real* const fc1_bias = parameters + 561600;  // [128]
  Real* const fc2_weight = parameters + 561728;  // [10,128]
  Real* const fc2_bias = parameters + 563008;  // [10]

  // Values of a whole batch, and of each share what becomes a sum. Two that are never needed at
  // once share their place.
  Real* const arena = allocate<Real>(15403536);
  static constexpr int64_t kSums = 16;
  Real* const sums = allocate<Real>(kShares * kSums);

  // Weights as kernels read them.
  Real* const conv1_weight_packed = allocate<Real>(native::conv2d_packed<Real, kConv>());
  Real* const conv2_weight_packed = allocate<Real>(native::conv2d_packed<Real, kConv_2>());
  Real* const conv2_weight_turned = allocate<Real>(native::conv2d_dx_packed<Real, kConv_2>());
  Real* const conv3_weight_packed = allocate<Real>(native::conv2d_packed<Real, kConv_3>());
  Real* const conv3_weight_turned = allocate<Real>(native::conv2d_dx_packed<Real, kConv_3>());
  Real* const conv4_weight_packed = allocate<Real>(native::conv2d_packed<Real, kConv_4>());
  Real* const conv4_weight_turned = allocate<Real>(native::conv2d_dx_packed<Real, kConv_4>());
  Real* const fc1_weight_packed = allocate<Real>(native::packed_size<Real>(4096, 128));
  Real* const fc1_weight_turned = allocate<Real>(native::packed_size<Real>(128, 4096));
  Real* const fc2_weight_packed = allocate<Real>(native::packed_size<Real>(128, 10));
  Real* const fc2_weight_turned = allocate<Real>(native::packed_size<Real>(10, 128));

  // Makes them anew: of `parts` parts, which threads share, each has every `parts`-th.
  void pack(int64_t part, int64_t parts) {
    if (part == 0 % parts)
      native::conv2d_pack<Real, kConv>(conv1_weight, conv1_weight_packed);
    if (part == 1 % parts)
      native::conv2d_pack<Real, kConv_2>(conv2_weight, conv2_weight_packed);
    if (part == 2 % parts)
      native::conv2d_dx_pack<Real, kConv_2>(conv2_weight, conv2_weight_turned);
    if (part == 3 % parts)
      native::conv2d_pack<Real, kConv_3>(conv3_weight, conv3_weight_packed);
    if (part == 4 % parts)
      native::conv2d_dx_pack<Real, kConv_3>(conv3_weight, conv3_weight_turned);
    if (part == 5 % parts)
      native::conv2d_pack<Real, kConv_4>(conv4_weight, conv4_weight_packed);
    if (part == 6 % parts)
      native::conv2d_dx_pack<Real, kConv_4>(conv4_weight, conv4_weight_turned);
    if (part == 7 % parts)
      native::linear_pack<Real>(4096, 128, fc1_weight, fc1_weight_packed);
    if (part == 8 % parts)
      native::linear_dx_pack<Real>(4096, 128, fc1_weight, fc1_weight_turned);
    if (part == 9 % parts)
      native::linear_pack<Real>(128, 10, fc2_weight, fc2_weight_packed);
    if (part == 10 % parts)
      native::linear_dx_pack<Real>(128, 10, fc2_weight, fc2_weight_turned);
  }
};

// The steps of the model for `rows` rows of the present batch, from row `first` on; one for each
// thread.
struct Rows : Memory {
  [[gnu::noinline]] explicit Rows(const Memory& memory) : Memory(memory) {}

  Real* const local = allocate<Real>(120192);
  Real* h2 = nullptr;
  Real* const d_h2 = local;
  Real* const h12 = local;
  Real* const d_h5 = local;
  Real* const d_h9 = local;
  Real* loss = nullptr;
  Real* const d_h7 = local + 13824;
  Real* const d_h12 = local + 16384;
  Real* const d_logits = local + 32768;
  Real* const d_h4 = local + 64896;
  Real* h4 = nullptr;
  Real* h5 = nullptr;
  Real* h9 = nullptr;
  Real* h10 = nullptr;
  Real* d_h10 = nullptr;
  Real* h7 = nullptr;
  Real* logits = nullptr;
  Real* const d_loss = arena + 15403520;
  Real* d_conv1_weight = nullptr;
  Real* d_conv1_bias = nullptr;
  Real* d_conv2_weight = nullptr;
  Real* d_conv2_bias = nullptr;
  Real* d_conv3_weight = nullptr;
  Real* d_conv3_bias = nullptr;
  Real* d_conv4_weight = nullptr;
  Real* d_conv4_bias = nullptr;
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
    h2 = arena + first * 21632;
    loss = sums + share * kSums;
    h4 = arena + 5537792 + first * 18432;
    h5 = arena + 10256384 + first * 4608;
    h9 = arena + 11436032 + first * 4096;
    h10 = arena + 12484608 + first * 4096;
    d_h10 = arena + 13533184 + first * 4096;
    h7 = arena + 14581760 + first * 3200;
    logits = arena + 15400960 + first * 10;
    d_conv1_weight = gradients + share * kTrained;
    d_conv1_bias = gradients + share * kTrained + 288;
    d_conv2_weight = gradients + share * kTrained + 320;
    d_conv2_bias = gradients + share * kTrained + 9536;
    d_conv3_weight = gradients + share * kTrained + 9568;
    d_conv3_bias = gradients + share * kTrained + 18784;
    d_conv4_weight = gradients + share * kTrained + 18816;
    d_conv4_bias = gradients + share * kTrained + 37248;
    d_fc1_weight = gradients + share * kTrained + 37312;
    d_fc1_bias = gradients + share * kTrained + 561600;
    d_fc2_weight = gradients + share * kTrained + 561728;
    d_fc2_bias = gradients + share * kTrained + 563008;
    x = x_data + first * 784;
    y = y_data + first;
  }

  // Loops that several steps have in common; `count`: of the outermost.
  [[gnu::noinline]] static void each_conv2d(int64_t count, Real* a, const Real* b) {
    #pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      a[i] = b[i] > 0 ? a[i] : Real{0};
    }
  }

  // conv1: h2 = relu(conv2d(x)), [N,26,26,32].
  void h1_forward() {
    conv2d<kConv, native::kBias | native::kRelu>(rows, x, conv1_weight_packed, {.bias = conv1_bias},
                                                 h2);
  }

  // From d_h2: d_conv1_weight, d_conv1_bias.
  void h1_backward() {
    column_sums<32>(rows * 676, d_h2, d_conv1_bias);
    conv2d_dw<kConv>(rows, x, d_h2, d_conv1_weight);
  }

  // conv2: h4 = relu(conv2d(h2)), [N,24,24,32].
  void h3_forward() {
    conv2d<kConv_2, native::kBias | native::kRelu>(rows, h2, conv2_weight_packed,
                                                   {.bias = conv2_bias}, h4);
  }

  // From d_h4: d_h2, d_conv2_weight, d_conv2_bias.
  void h3_backward() {
    each_conv2d(rows * 18432, d_h4, h4);
    column_sums<32>(rows * 576, d_h4, d_conv2_bias);
    conv2d_dw<kConv_2>(rows, h2, d_h4, d_conv2_weight);
    conv2d_dx<kConv_2, native::kMask>(rows, d_h4, conv2_weight_turned, {.mask = h2}, d_h2);
  }

  // h5 = max_pool2d(h4), [N,12,12,32].
  void h5_forward() {
    max_pool<kPool>(rows, h4, h5);
  }

  // From d_h5: d_h4.
  void h5_backward() {
    std::fill_n(d_h4, rows * 18432, Real{0});
    max_pool_dx<kPool>(rows, h4, h5, d_h5, d_h4);
  }

  // conv3: h7 = relu(conv2d(h5)), [N,10,10,32].
  void h6_forward() {
    conv2d<kConv_3, native::kBias | native::kRelu>(rows, h5, conv3_weight_packed,
                                                   {.bias = conv3_bias}, h7);
  }

  // From d_h7: d_h5, d_conv3_weight, d_conv3_bias.
  void h6_backward() {
    column_sums<32>(rows * 100, d_h7, d_conv3_bias);
    conv2d_dw<kConv_3>(rows, h5, d_h7, d_conv3_weight);
    conv2d_dx<kConv_3, native::kPlain>(rows, d_h7, conv3_weight_turned, {}, d_h5);
  }

  // conv4: h9 = relu(conv2d(h7)), [N,8,8,64].
  void h8_forward() {
    conv2d<kConv_4, native::kBias | native::kRelu>(rows, h7, conv4_weight_packed,
                                                   {.bias = conv4_bias}, h9);
  }

  // From d_h9: d_h7, d_conv4_weight, d_conv4_bias.
  void h8_backward() {
    each_conv2d(rows * 4096, d_h9, h9);
    column_sums<64>(rows * 64, d_h9, d_conv4_bias);
    conv2d_dw<kConv_4>(rows, h7, d_h9, d_conv4_weight);
    conv2d_dx<kConv_4, native::kMask>(rows, d_h9, conv4_weight_turned, {.mask = h7}, d_h7);
  }

  // h10 = flatten(h9), [N,4096].
  void h10_forward() {
    #pragma GCC ivdep
    for (int64_t i = 0; i < rows * 4096; ++i) {
      h10[i] = h9[i];
    }
  }

  // From d_h10: d_h9.
  void h10_backward() {
    std::fill_n(d_h9, rows * 4096, Real{0});
    #pragma GCC ivdep
    for (int64_t i = 0; i < rows * 4096; ++i) {
      d_h9[i] += d_h10[i];
    }
  }

  // fc1: h12 = relu(linear(h10)), [N,128].
  void h11_forward() {
    linear(rows, 4096, 128, h10, fc1_weight_packed, {.bias = fc1_bias}, h12,
           native::kBias | native::kRelu);
  }

  // From d_h12: d_h10, d_fc1_weight, d_fc1_bias.
  void h11_backward() {
    column_sums<128>(rows, d_h12, d_fc1_bias);
    linear_dw(rows, 4096, 128, h10, d_h12, d_fc1_weight);
    linear(rows, 128, 4096, d_h12, fc1_weight_turned, {}, d_h10, native::kPlain);
  }

  // fc2: logits = linear(h12), [N,10].
  void logits_forward() {
    linear(rows, 128, 10, h12, fc2_weight_packed, {.bias = fc2_bias}, logits, native::kBias);
  }

  // From d_logits: d_h12, d_fc2_weight, d_fc2_bias.
  void logits_backward() {
    column_sums<10>(rows, d_logits, d_fc2_bias);
    linear_dw(rows, 128, 10, h12, d_logits, d_fc2_weight);
    linear(rows, 10, 128, d_logits, fc2_weight_turned, {.mask = h12}, d_h12, native::kMask);
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

  // For a few rows at a time.
  [[gnu::noinline]] void phase_1() {
    h1_forward();
    h3_forward();
    h5_forward();
    h6_forward();
    h8_forward();
    h10_forward();
  }

  // For a share of the batch.
  [[gnu::noinline]] void phase_2() {
    h11_forward();
    logits_forward();
    loss_forward();
    loss_backward();
    logits_backward();
    h11_backward();
  }

  // For a few rows at a time.
  [[gnu::noinline]] void phase_3() {
    h10_backward();
    h8_backward();
    h6_backward();
    h5_backward();
    h3_backward();
    h1_backward();
  }

  // The prediction for these rows, axes as the model has them.
  Tensor output() const {
    return tensor_of(std::vector<Real>(logits, logits + rows * 10), {rows, 10});
  }

  // The inputs of these rows, axes as files have them.
  std::vector<Tensor> batch() const {
    return {tensor_of(turned(std::vector<Real>(x, x + rows * 784), {rows, 1, 28, 28}, {0, 2, 3, 1},
                             true), {rows, 1, 28, 28}),
            tensor_of(std::vector<int32_t>(y, y + rows), {rows})};
  }
};

struct Network : Memory {
  // Parameters as files have them: name, shape, and as they are held: shape and order of axes,
  // place.
  static constexpr ParameterRow kTable[] = {
      {"conv1.weight", {32, 1, 3, 3}, {32, 1, 3, 3}, {2, 3, 1, 0}, 0, true},
      {"conv1.bias", {32}, {}, {}, 288, true},
      {"conv2.weight", {32, 32, 3, 3}, {32, 32, 3, 3}, {2, 3, 1, 0}, 320, true},
      {"conv2.bias", {32}, {}, {}, 9536, true},
      {"conv3.weight", {32, 32, 3, 3}, {32, 32, 3, 3}, {2, 3, 1, 0}, 9568, true},
      {"conv3.bias", {32}, {}, {}, 18784, true},
      {"conv4.weight", {64, 32, 3, 3}, {64, 32, 3, 3}, {2, 3, 1, 0}, 18816, true},
      {"conv4.bias", {64}, {}, {}, 37248, true},
      {"fc1.weight", {128, 4096}, {128, 64, 8, 8}, {2, 3, 1, 0}, 37312, true},
      {"fc1.bias", {128}, {}, {}, 561600, true},
      {"fc2.weight", {10, 128}, {10, 128}, {1, 0}, 561728, true},
      {"fc2.bias", {10}, {}, {}, 563008, true},
  };
  const std::vector<Parameter> table = parameters_of(kTable);

  // The data, and the rows of the present batch.
  Feed<Real> x_data;
  Feed<int32_t> y_data;
  int64_t data_rows = 0, first_row = 0, rows = 0;

  Real* const second = allocate<Real>(kTrained);
  int64_t updates = 0;
  Real rate = 0;
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
      {"x", {1, 28, 28}},
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
    x_data.take(std::move(tensors.at("x")), 255.0, {0, 2, 3, 1});
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
    std::fill_n(second, kTrained, Real{0});
    updates = 0;
  }

  // What an update needs to know beforehand.
  void begin_update() {
    rate = static_cast<Real>(kLearningRate);
    ++updates;
  }

  // One update of trained parameters `begin` to `end` from their gradients.
  void update(int64_t begin, int64_t end) {
    const Real rate = this->rate;
    for (int64_t i = begin; i < end; ++i) {
      const Real g = gradients[i];
      second[i] = Real{0.9} * second[i] + Real{1 - 0.9} * g * g;
      const Real move = g / (std::sqrt(second[i]) + Real{1e-07});
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
    std::printf("constexpr int64_t kRowsAtATime = %d;\n", static_cast<int>(3));
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
    each(thread, 3, &Rows::phase_1);
    each(thread, rows, &Rows::phase_2);
    each(thread, 3, &Rows::phase_3);
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
