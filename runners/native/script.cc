#include "script.h"

#include <filesystem>

#include "base/sha256.h"

namespace bakeoff {
namespace {

// Programs report what is wrong with a file by any exception.
template <typename Act>
auto guarded(Act act) {
  try {
    return act();
  } catch (const AdapterError&) {
    throw;
  } catch (const std::exception& error) {
    throw AdapterError(error.what());
  }
}

// Of the program with the most: a worker of a race has one.
int64_t threads() {
  int64_t most = 1;
  for (const auto& [name, program] : programs()) most = std::max(most, program.threads());
  return most;
}

class NativeAdapter : public Adapter {
 public:
  Json import_framework(const ImportRequest& request) override {
    for (const auto& [option, value] : request.options)
      throw AdapterError("unknown option '" + option + "' of framework native");
    return {{"versions", {{"compiler", kCompiler}}},
            {"device", "cpu"},
            {"effective", {{"threads", threads()}, {"compiler", kCompiler}}}};
  }

  Json build(const BuildRequest& request) override {
    return guarded([&] {
      const std::string name = std::filesystem::path(request.script).stem().string();
      const auto found = programs().find(name);
      if (found == programs().end()) throw AdapterError("this worker was not compiled from '" + name + "'");
      if (request.data.empty() || request.weights.empty())
        throw AdapterError("native needs data and weights");
      if (!request.layout.empty()) throw AdapterError("native knows no layout file");
      std::unique_ptr<Program>& made = made_[name + (request.float64 ? " wide" : "")];
      if (!made) made = request.float64 ? found->second.wide() : found->second.single();
      program_ = made.get();
      program_->load(request.weights, request.data, request.dropout);
      return Json{{"batch", program_->batch()},
                  {"parameters", program_->parameters()},
                  {"dtype", request.float64 ? "float64" : "float32"}};
    });
  }

  std::vector<std::string> parity(const ParityRequest& request) override {
    return guarded([&] {
      if (request.first + request.count > program_->rows())
        throw AdapterError("the data has " + std::to_string(program_->rows()) + " rows, not " +
                           std::to_string(request.first + request.count));
      return program_->prove(request.first, request.count, request.grads_in, request.out);
    });
  }

  Losses losses(int64_t steps) override {
    program_->restore();
    program_->rewind();
    Losses found;
    const int64_t start = now_ns();
    for (int64_t n = 0; n < steps; ++n) {
      program_->next_batch();
      found.losses.push_back(program_->step());
      if (n == 0) found.first_ns = now_ns() - start;
    }
    found.ns = now_ns() - start;
    return found;
  }

  Burst run(int64_t steps, Ring& ring) override {
    Burst done;
    done.losses.reserve(static_cast<size_t>(steps));
    program_->forget();
    const int64_t start = now_ns();
    for (int64_t n = 0; n < steps; ++n) {
      program_->next_batch();
      done.losses.push_back(program_->step());
      ring.mark();
    }
    done.ns = now_ns() - start;
    done.loss = done.losses.back();
    if (!answers()) done.sums = program_->sums();
    return done;
  }

  void restore() override { program_->restore(); }
  void nudge(const std::string& changes) override {
    guarded([&] { program_->nudge(changes); });
  }

  std::vector<std::string> batch_hashes(int64_t count,
                                        const std::vector<std::vector<int64_t>>& row_shapes) override {
    program_->rewind();
    std::vector<std::string> hashes;
    for (int64_t n = 0; n < count; ++n) {
      program_->next_batch();
      std::vector<std::string> parts;
      for (const auto& [shape, bytes] : program_->inputs()) {
        if (std::ranges::find(row_shapes, std::vector<int64_t>(shape.begin() + 1, shape.end())) ==
            row_shapes.end())
          throw AdapterError("a batch has rows of a shape that the workload has not");
        parts.push_back(sha256(bytes));
      }
      std::ranges::sort(parts);
      std::string joined;
      for (const std::string& part : parts) joined += part;
      hashes.push_back(sha256(joined));
    }
    program_->rewind();
    return hashes;
  }

  std::vector<std::string> write_state(const std::string& out) override {
    return guarded([&] { return program_->save(out); });
  }
  std::vector<double> rates(const std::vector<int64_t>& steps) override { return program_->rates(steps); }

  bool answers() const override { return program_->predicts(); }
  std::vector<ToldOutput> outputs() override { return program_->told(); }
  void request() override {
    program_->forget();
    program_->next_batch();
    program_->step();
  }

 private:
  std::map<std::string, std::unique_ptr<Program>> made_;
  Program* program_ = nullptr;
};

}  // namespace

std::map<std::string, Pair>& programs() {
  static std::map<std::string, Pair> all;
  return all;
}

int serve_programs(int argc, char** argv) {
  NativeAdapter adapter;
  return serve(argc, argv, adapter);
}

}  // namespace bakeoff
