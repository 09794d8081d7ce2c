
struct Memory {
  // Parameters; a batch has shares, which threads work off.
  static constexpr int64_t kShares = 1;
  Real* const parameters = allocate<Real>(49);
  Real* const c_weight = parameters;  // [2,3,1,1]
  Real* const b_weight = parameters + 6;  // [2]
  Real* const b_bias = parameters + 8;  // [2]
  Real* const b_running_mean = parameters + 10;  // [2]
  Real* const b_running_var = parameters + 12;  // [2]
  Real* const e_weight = parameters + 14;  // [7,5]

  // Values of a whole batch, and of each share what becomes a sum. Two that are never needed at
  // once share their place.
  Real* const arena = allocate<Real>(42000);

  // Weights as kernels read them.
  Real* const c_weight_packed = allocate<Real>(native::conv2d_packed<Real, kConv>());

  // Makes them anew: of `parts` parts, which threads share, each has every `parts`-th.
  void pack(int64_t part, int64_t parts) {
    if (part == 0 % parts)
      native::conv2d_pack<Real, kConv>(c_weight, c_weight_packed);
  }
};

// The steps of the model for `rows` rows of the present batch, from row `first` on; one for each
// thread.
struct Rows : Memory {
  [[gnu::noinline]] explicit Rows(const Memory& memory) : Memory(memory) {}

  Real* const local = allocate<Real>(64000);
  Real* const h = local;
  Real* const d = local;
  Real* d_first = nullptr;
  Real* const b = local + 32000;
  Real* e = nullptr;
  const Real *x_data = nullptr, *x = nullptr;  // of the batch, of these rows
  const int32_t *k_2_data = nullptr, *k_2 = nullptr;  // of the batch, of these rows
  int64_t first = 0, rows = 0, batch_rows = 0;

  // Moves to `count` rows, which belong to a share of the batch.
  void place(int64_t, int64_t first_row, int64_t count) {
    first = first_row, rows = count;
    d_first = arena + first * 32;
    e = arena + 32000 + first * 10;
    x = x_data + first * 48;
    k_2 = k_2_data + first * 2;
  }

  // c: h = conv2d(x), [N,4,4,2].
  void h_forward() {
    conv2d<kConv, native::kPlain>(rows, x, c_weight_packed, {}, h);
  }

  // b: b = batch_norm(h), [N,4,4,2].
  void b_forward() {
    batch_norm_fixed<2>(rows * 16, 1e-05, h, b_weight, b_bias, b_running_mean, b_running_var, b);
  }

  // d = dropout(b), [N,4,4,2].
  void d_forward() {
    std::copy(b, b + rows * 32, d);
  }

  // e: e = embedding(k_2), [N,2,5].
  void e_forward() {
    embedding<5>(rows * 2, k_2, e_weight, e);
  }

  // d_first = turned(d), [N,2,4,4].
  void d_first_forward() {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        #pragma GCC ivdep
        for (int64_t k = 0; k < 16; ++k) {
          d_first[i * 32 + j * 16 + k] = d[i * 32 + j + k * 2];
        }
      }
    }
  }

  // For a share of the batch.
  [[gnu::noinline]] void phase_1() {
    h_forward();
    b_forward();
    d_forward();
    e_forward();
    d_first_forward();
  }

  // What is predicted of these rows, axes as the model has them.
  std::map<std::string, Tensor> outputs() const {
    return {{"d", tensor_at(d_first, {rows, 2, 4, 4})}, {"e", tensor_at(e, {rows, 2, 5})}};
  }

  // The inputs of these rows, axes as files have them.
  std::vector<Tensor> batch() const {
    return {tensor_of(turned(std::vector<Real>(x, x + rows * 48), {rows, 3, 4, 4}, {0, 2, 3, 1},
                             true), {rows, 3, 4, 4}),
            tensor_of(std::vector<int32_t>(k_2, k_2 + rows * 2), {rows, 2})};
  }
};

struct Network : Memory {
  // Parameters as files have them: name, shape, and as they are held: shape and order of axes,
  // place.
  static constexpr ParameterRow kTable[] = {
      {"c.weight", {2, 3, 1, 1}, {2, 3, 1, 1}, {2, 3, 1, 0}, 0, true},
      {"b.weight", {2}, {}, {}, 6, true},
      {"b.bias", {2}, {}, {}, 8, true},
      {"b.running_mean", {2}, {}, {}, 10, false},
      {"b.running_var", {2}, {}, {}, 12, false},
      {"e.weight", {7, 5}, {}, {}, 14, true},
  };
  const std::vector<Parameter> table = parameters_of(kTable);

  // The data, and the rows of the present batch.
  Feed<Real> x_data;
  Feed<int32_t> k_2_data;
  int64_t data_rows = 0, first_row = 0, rows = 0;

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
      {"x", {3, 4, 4}},
      {"k", {2}, {{0, 7, 0}}},
  };

  void load_data(const std::string& path) {
    set_data(load_inputs(path, inputs), path);
  }

  // `from`: where the tensors come from, for messages.
  void set_data(std::map<std::string, Tensor> tensors, const std::string& from) {
    check_inputs(from, tensors, inputs);
    data_rows = tensors.at(inputs[0].name).shape[0];
    first_row = 0;
    x_data.take(std::move(tensors.at("x")), 255.0, {0, 2, 3, 1});
    k_2_data.take(std::move(tensors.at("k")));
  }

  void set_batch(int64_t first, int64_t count) {
    rows = count;
    for (Rows& lane : lanes) {
      lane.x_data = x_data.rows(first, count);
      lane.k_2_data = k_2_data.rows(first, count);
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
  std::map<std::string, Tensor> outputs() {
    lanes[0].place(0, 0, rows);
    return lanes[0].outputs();
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

  // The prediction for the present batch: what one thread does for it.
  void pass(int64_t thread) {
    each(thread, rows, &Rows::phase_1);
  }

  // The prediction for the present batch.
  void forward() {
    for (Rows& lane : lanes) lane.place(0, 0, rows);
    team.run([this](int64_t thread) { pass(thread); });
  }

  const std::vector<std::string> output_names = {"d", "e"};

  // Of all rows of the data, batch by batch.
  std::map<std::string, Tensor> predict() {
    std::map<std::string, Tensor> all;
    for (int64_t first = 0; first < data_rows; first += kBatch) {
      set_batch(first, std::min(kBatch, data_rows - first));
      forward();
      append_rows(all, outputs());
    }
    return all;
  }
};

#ifdef BAKEOFF_LIBRARY
// The same for programs that link this one, compiled with -DBAKEOFF_LIBRARY:
//
//   int bakeoff_load(const char* weights);  // a file or folder of weights, before anything else
//   int bakeoff_predict(int64_t rows, const float* x, const int32_t* k, float* d, float* e);
//   const char* bakeoff_error(void);        // what the last call that failed has to say
//
// Both give 0, or 1 where they cannot. Arrays are the caller's, row after row, axes in this order:
//
//   x: float [rows, 3, 4, 4], read, divided by 255 here
//   k: int32_t [rows, 2], read
//   d: float [rows, 2, 4, 4], written
//   e: float [rows, 2, 5], written
//
// Any number of rows from 1 on; they are worked off 1000 at a time. There is one network in a
// process: calls must not overlap.
struct Library {
  Network network;
  bool loaded = false;
  std::string error;
};

static Library& library() {
  static Library only;
  return only;
}

static int failed(const std::exception& error) {
  library().error = error.what();
  return 1;
}

extern "C" const char* bakeoff_error(void) {
  return library().error.c_str();
}

extern "C" int bakeoff_load(const char* weights) try {
  library().network.load_weights(weights);
  library().loaded = true;
  return 0;
} catch (const std::exception& error) {
  return failed(error);
}

extern "C" int bakeoff_predict(int64_t rows, const float* x, const int32_t* k, float* d,
                               float* e) try {
  if (!library().loaded) refuse("no weights are loaded", "call bakeoff_load first");
  if (rows < 1) refuse("there is no row", "give one or more");
  std::map<std::string, Tensor> data;
  data["x"] = tensor_at(x, {rows, 3, 4, 4});
  data["k"] = tensor_at(k, {rows, 2});
  library().network.set_data(std::move(data), "bakeoff_predict");
  const std::map<std::string, Tensor> all = library().network.predict();
  const auto d_values = numbers<float>(all, "d");
  std::copy(d_values.begin(), d_values.end(), d);
  const auto e_values = numbers<float>(all, "e");
  std::copy(e_values.begin(), e_values.end(), e);
  return 0;
} catch (const std::exception& error) {
  return failed(error);
}
#else
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
  if (!given.at("--out").empty()) {
    save_tensors(given.at("--out"), network.predict());
    return 0;
  }
  for (int64_t step = 0; step < steps; ++step) {
    network.next_batch();
    network.forward();
    const double mean = mean_of(network.outputs().at(network.output_names[0]));
    if (step % 10 == 0) std::printf("batch %d: mean d %.6f\n", static_cast<int>(step), mean);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
#endif
