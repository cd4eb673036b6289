// SPDX-License-Identifier: Apache-2.0
//
// The ceiling of preprocess_data: the same pipeline over the same files, with a tokenizer that
// gives no ids. Reading, splitting and parsing are all that is left.
//
//   bench_preprocess_ceiling WORKERS OUTPUT_PREFIX FILE ...
//
// Prints the summary of preprocess_data as JSON. The (empty) output files are overwritten.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>

#include "input_plan.hpp"
#include "pipeline.hpp"

namespace {

namespace preprocess = millrace::preprocess;
namespace tokenizer = millrace::tokenizer;

class no_ids_encoder final : public tokenizer::encoder {
 public:
  std::optional<tokenizer::encode_fault> encode(std::string_view, tokenizer::id_buffer&) override {
    return std::nullopt;
  }
};

class no_ids_tokenizer final : public tokenizer::tokenizer {
 public:
  std::unique_ptr<millrace::tokenizer::encoder> make_encoder() const override {
    return std::make_unique<no_ids_encoder>();
  }
  std::int64_t vocab_size() const noexcept override { return 512; }
  std::optional<std::int32_t> eod() const noexcept override { return std::nullopt; }
  std::string decode(std::span<const std::int64_t>) const override { return {}; }
  std::string fingerprint() const override { return {}; }
};

int measure(int argc, char** argv) {
  if (argc < 4) {
    throw millrace::command::usage_error("too few arguments");
  }
  preprocess::run_options options;
  options.workers = std::atoi(argv[1]);
  options.output_prefix = argv[2];
  options.overwrite = true;
  options.inputs = preprocess::plan_inputs(std::vector<std::string>(argv + 3, argv + argc));
  preprocess::progress silent(preprocess::progress::style::silent, 1, 0);
  const auto summary = preprocess::run(no_ids_tokenizer(), options, silent);
  millrace::command::answer(preprocess::to_json(summary));
  return millrace::command::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return millrace::command::run_command(
      "bench_preprocess_ceiling", "usage: bench_preprocess_ceiling WORKERS OUTPUT_PREFIX FILE ...",
      [&] { return measure(argc, argv); });
}
