// SPDX-License-Identifier: Apache-2.0
//
// Measures an upper bound for the speed of preprocess_data: runs the same pipeline on the same
// file, but without tokenizing.
//
//   bench_preprocess_ceiling WORKERS OUTPUT_PREFIX FILE [DATASET_PREFIX]
//
// Without DATASET_PREFIX, the tokenizer returns no ids. The run then only reads, splits and parses,
// and writes no tokens. DATASET_PREFIX is the prefix of a dataset that was made from FILE. With it,
// the tokenizer looks up the ids of each text in that dataset, so the run writes the same dataset
// again. The printed seconds exclude these look-ups.
//
// Prints the summary of preprocess_data as JSON. Overwrites the output files.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>

#include "given_ids.hpp"
#include "input/input_plan.hpp"
#include "run/pipeline.hpp"

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
  std::unique_ptr<millrace::tokenizer::encoder> make_encoder(std::size_t) const override {
    return std::make_unique<no_ids_encoder>();
  }
  std::int64_t vocab_size() const noexcept override { return 512; }
  std::optional<std::int32_t> eod() const noexcept override { return std::nullopt; }
  std::string decode(std::span<const std::int64_t>) const override { return {}; }
  std::string fingerprint() const override { return {}; }
};

constexpr const char* usage =
    "usage: bench_preprocess_ceiling WORKERS OUTPUT_PREFIX FILE [DATASET_PREFIX]";

preprocess::run_summary run(const tokenizer::tokenizer& tokenizer,
                            const preprocess::run_options& options) {
  preprocess::progress silent(preprocess::progress::style::silent, 1, 0);
  return preprocess::run(tokenizer, options, silent);
}

preprocess::run_summary run_with_ids(const char* dataset_prefix, const char* input,
                                     const preprocess::run_options& options) {
  const millrace::bench::given_ids tokenizer(dataset_prefix, input);
  auto summary = run(tokenizer, options);
  if (summary.tokens() != tokenizer.token_count()) {
    throw millrace::error(fmt::format("{} tokens were written, but {} has {}", summary.tokens(),
                                      dataset_prefix, tokenizer.token_count()));
  }
  summary.seconds -= tokenizer.seconds() / options.workers;
  return summary;
}

int measure(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    throw millrace::command::usage_error("expected three or four arguments");
  }
  preprocess::run_options options;
  options.workers = std::atoi(argv[1]);
  options.output_prefix = argv[2];
  options.overwrite = true;
  options.inputs = preprocess::plan_inputs(std::vector<std::string>{argv[3]});
  const auto summary =
      argc == 5 ? run_with_ids(argv[4], argv[3], options) : run(no_ids_tokenizer(), options);
  millrace::command::answer(preprocess::to_json(summary));
  return millrace::command::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return millrace::command::run_command("bench_preprocess_ceiling", usage, argc, argv,
                                        [&] { return measure(argc, argv); });
}
