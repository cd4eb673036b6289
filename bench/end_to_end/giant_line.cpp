// SPDX-License-Identifier: Apache-2.0
//
// Encodes a file that consists of a single line of JSON, which may be larger than memory. Prints
// the results as one line of JSON.
//
//   bench_giant_line FILE KEY WORKERS <the tokenizer flags of preprocess_data>
//
// FILE must not end with a newline. In the results, "checksum" is the checksum of all ids in order,
// and "peak_mb" is the peak of resident memory (VmHWM).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <boost/program_options.hpp>

#include <millrace/command/run_command.hpp>
#include <millrace/tokenizer/tokenizer.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "record/giant_record.hpp"
#include "report/summary.hpp"

namespace {

namespace preprocess = millrace::preprocess;
namespace tokenizer = millrace::tokenizer;

class counting_sink final : public preprocess::id_sink {
 public:
  void append(std::size_t, std::span<const std::int32_t> ids) override {
    tokens += ids.size();
    for (const std::int32_t id : ids) checksum = checksum * 31 + static_cast<std::uint32_t>(id);
  }
  void end_sequence(std::size_t, std::int32_t) override { ++sequences; }

  std::size_t tokens = 0;
  std::size_t sequences = 0;
  std::uint64_t checksum = 0;
};

int measure(int argc, char** argv) {
  namespace po = boost::program_options;
  if (argc < 4) throw millrace::command::usage_error("too few arguments");
  po::variables_map given;
  po::store(po::parse_command_line(argc - 3, argv + 3, tokenizer::tokenizer_flags()), given);
  const auto made = tokenizer::make_tokenizer(tokenizer::tokenizer_options_of(given).value());
  const int workers = std::atoi(argv[3]);
  const auto fd = millrace::io::open_read_only(argv[1]);
  const preprocess::line_range line{fd, argv[1], 0, millrace::io::regular_file_size(fd, argv[1])};

  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(workers));
  tbb::enumerable_thread_specific<std::unique_ptr<tokenizer::encoder>> encoders(
      [&] { return made->make_encoder(); });
  counting_sink sink;
  preprocess::record_counts counts;
  std::optional<preprocess::record_fault> fault;
  const auto start = std::chrono::steady_clock::now();
  tbb::task_arena(workers).execute([&] {
    fault = preprocess::encode_giant_record(
        line, {.keys = preprocess::plain_keys({argv[2]}), .append_eod = {}, .workers = workers},
        *made, [&]() -> tokenizer::encoder& { return *encoders.local(); }, sink, counts);
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (fault) throw millrace::error(fault->what);
  preprocess::run_summary process;
  preprocess::measure_process(process);
  const double megabytes = static_cast<double>(line.size_bytes()) * 1e-6;
  millrace::command::answer(fmt::format(
      "{{\"mb\": {:.1f}, \"tokens\": {}, \"sequences\": {}, \"seconds\": {:.2f}, \"mb_per_s\": "
      "{:.1f}, \"cpu_seconds\": {:.2f}, \"peak_mb\": {:.0f}, \"checksum\": {}}}\n",
      megabytes, sink.tokens, sink.sequences, seconds, megabytes / seconds, process.cpu_seconds,
      static_cast<double>(process.peak_rss_bytes) * 1e-6, sink.checksum));
  return millrace::command::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return millrace::command::run_command(
      "bench_giant_line", "usage: bench_giant_line FILE KEY WORKERS TOKENIZER FLAGS ...", argc,
      argv, [&] { return measure(argc, argv); });
}
