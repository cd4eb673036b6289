// SPDX-License-Identifier: Apache-2.0
//
// Tests what only a device can show. Each test runs in a process of its own, with a time limit.
//
//   gpu_tests [NAME...]      runs these tests, or all of them; prints one line of JSON per test
//   gpu_tests --list         prints the names of the tests
//   gpu_tests --here NAME    runs one test in this process, for debuggers and compute-sanitizer
//
// Exit status: 0 if all tests passed or were skipped, 1 if a test failed, 77 if there is no GPU, 78
// if the driver is too old.

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/json_writer.hpp>

#include "bench/gpu/device_program.hpp"
#include "bench/gpu/run_program.hpp"
#include "gpu/harness.hpp"

namespace millrace::test {
namespace {

constexpr gpu_test all_tests[] = {
    {"makes_what_dataset_makes_on_the_host", makes_what_dataset_makes_on_the_host, 120},
    {"makes_packed_rows", makes_packed_rows},
    {"makes_the_parts_of_context_parallel_ranks", makes_the_parts_of_context_parallel_ranks, 120},
    {"writes_batches_into_static_arrays", writes_batches_into_static_arrays},
    {"a_graph_reads_static_arrays", a_graph_reads_static_arrays},
    {"a_loader_serves_its_dataset_from_page_locked_memory",
     a_loader_serves_its_dataset_from_page_locked_memory},
    {"a_consumer_may_use_the_default_stream", a_consumer_may_use_the_default_stream},
    {"a_slow_consumer_finds_every_batch", a_slow_consumer_finds_every_batch, 120},
    {"a_slow_consumer_finds_every_large_batch", a_slow_consumer_finds_every_large_batch},
    {"serves_while_another_thread_captures", serves_while_another_thread_captures},
    {"refuses_a_stream_that_is_being_captured", refuses_a_stream_that_is_being_captured},
    {"survives_a_batch_that_ends_in_a_capture", survives_a_batch_that_ends_in_a_capture},
    {"a_tensor_outlives_the_pipe", a_tensor_outlives_the_pipe},
    {"a_tensor_may_be_used_on_two_streams", a_tensor_may_be_used_on_two_streams},
    {"a_batch_may_be_used_on_another_stream", a_batch_may_be_used_on_another_stream},
    {"a_dlpack_consumer_may_bring_its_stream", a_dlpack_consumer_may_bring_its_stream},
    {"a_wait_for_a_batch_may_give_up", a_wait_for_a_batch_may_give_up},
    {"batches_may_be_destroyed_on_foreign_threads", batches_may_be_destroyed_on_foreign_threads},
    {"two_loaders_share_a_device", two_loaders_share_a_device},
    {"a_pipe_may_end_at_any_time", a_pipe_may_end_at_any_time},
    {"a_loader_leaves_other_devices_alone", a_loader_leaves_other_devices_alone},
};

const gpu_test* find_test(std::string_view name) {
  const auto* const found = std::ranges::find(all_tests, name, &gpu_test::name);
  return found == std::end(all_tests) ? nullptr : found;
}

int run_here(const gpu_test& test) {
  try {
    test.run();
    return bench::passed;
  } catch (const gpu_skip& why) {
    std::cout << "skipped: " << why.what() << '\n';
    return bench::no_device;
  } catch (const std::exception& e) {
    std::cout << e.what() << '\n';
    return bench::failed;
  }
}

bool run_apart(const gpu_test& test, const std::string& program) {
  const auto end = bench::run_program({program, "--here", test.name}, {}, test.limit_s);
  const bool skipped = end.status == bench::no_device;
  const bool passed = end.status == bench::passed;
  const char* verdict = passed ? "passed" : skipped ? "skipped" : end.cut_off ? "hung" : "failed";
  formats::json_writer json;
  json.open('{').key("test").value(test.name).key("verdict").value(verdict);
  json.key("seconds").value(end.seconds).key("said").value(end.output).close('}');
  std::cout << json.text() << std::endl;
  return passed || skipped;
}

int run_all(std::span<const gpu_test* const> tests) {
  const std::string program = bench::folder_of_program() + "/gpu_tests";
  int failures = 0;
  for (const gpu_test* test : tests) failures += run_apart(*test, program) ? 0 : 1;
  return failures == 0 ? bench::passed : bench::failed;
}

int run(std::span<char* const> arguments) {
  const std::vector<std::string_view> words(arguments.begin(), arguments.end());
  if (words.size() == 1 && words[0] == "--list") {
    for (const gpu_test& test : all_tests) std::cout << test.name << '\n';
    return bench::passed;
  }
  const bool here = !words.empty() && words[0] == "--here";
  std::vector<const gpu_test*> chosen;
  for (std::size_t i = here ? 1 : 0; i < words.size(); ++i) {
    chosen.push_back(find_test(words[i]));
    if (chosen.back() != nullptr) continue;
    std::cerr << "gpu_tests: there is no test '" << words[i] << "': --list prints their names\n";
    return bench::misused;
  }
  if (here && chosen.size() != 1) {
    std::cerr << "gpu_tests: --here takes the name of one test\n";
    return bench::misused;
  }
  if (words.empty()) {
    for (const gpu_test& test : all_tests) chosen.push_back(&test);
  }
  return bench::run_on_device("gpu_tests",
                              [&] { return here ? run_here(*chosen[0]) : run_all(chosen); });
}

}  // namespace
}  // namespace millrace::test

int main(int argc, char** argv) {
  return millrace::test::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
