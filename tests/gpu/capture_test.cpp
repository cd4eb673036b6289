// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "bench/gpu/spin.hpp"
#include "gpu/device_sums.hpp"
#include "gpu/harness.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::cuda::device_pipe;

struct end_graph {
  void operator()(cudaGraph_t graph) const noexcept { (void)cudaGraphDestroy(graph); }
};
using owned_graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, end_graph>;

void begin_capture(cudaStream_t on, cudaStreamCaptureMode mode) {
  must(cudaStreamBeginCapture(on, mode), "cudaStreamBeginCapture");
}

owned_graph end_capture(cudaStream_t on) {
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
  return owned_graph(graph);
}

std::size_t nodes_of(const owned_graph& graph) {
  std::size_t count = 0;
  must(cudaGraphGetNodes(graph.get(), nullptr, &count), "cudaGraphGetNodes");
  return count;
}

void launch_twice(const owned_graph& graph, cudaStream_t on) {
  cudaGraphExec_t made = nullptr;
  must(cudaGraphInstantiate(&made, graph.get(), 0), "cudaGraphInstantiate");
  const std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, cudaError_t (*)(cudaGraphExec_t)>
      executable(made, cudaGraphExecDestroy);
  for (int i = 0; i < 2; ++i) must(cudaGraphLaunch(made, on), "cudaGraphLaunch");
  must(cudaStreamSynchronize(on), "cudaStreamSynchronize");
}

// Captures a graph in the mode that is the default in CUDA and in `torch.cuda.graph`. The capture
// lasts until `served` is true.
void capture_meanwhile(std::atomic<bool>& capturing, const std::atomic<bool>& served) {
  const auto stream = gpu_stream();
  const cudaStream_t on = stream.get().value;
  must(bench::run_nothing(on), "kernel launch");  // CUDA loads a kernel at its first launch
  must(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  begin_capture(on, cudaStreamCaptureModeGlobal);
  must(bench::run_nothing(on), "kernel launch");
  capturing = true;
  while (!served) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  must(bench::run_nothing(on), "kernel launch");
  const owned_graph graph = end_capture(on);
  expect_equal(nodes_of(graph), 2U, "kernels in the captured graph");
  launch_twice(graph, on);
}

std::vector<random_batch> some_batches(std::size_t count) {
  std::mt19937_64 random(seed(11));
  return random_batches(random, count, {4, 700}, {.eod = 7});
}

}  // namespace

void serves_while_another_thread_captures() {
  constexpr std::size_t count = 60, before = 10;
  pinned_source source(&gpu_api(), some_batches(count));
  const std::vector<std::uint64_t> wanted = sums_of(source.batches());
  const auto stream = gpu_stream();
  device_sums sums(count);
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = {.eod = 7}}, source.source());
  const auto serve = [&](std::size_t batches) {
    for (std::size_t i = 0; i < batches; ++i) {
      const auto batch = pipe.next(stream.get().value);
      expect(batch.has_value(), "the pipe ended early");
      sums.add(*batch, 200'000, stream.get().value);
    }
  };
  serve(before);  // loads the kernels, because they cannot be loaded during the capture
  std::atomic<bool> capturing = false, served = false;
  auto capture = std::async(std::launch::async, [&] { capture_meanwhile(capturing, served); });
  while (!capturing &&
         capture.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  std::exception_ptr failure;
  try {
    serve(count - before);
  } catch (...) {
    failure = std::current_exception();
  }
  served = true;
  capture.get();
  if (failure != nullptr) std::rethrow_exception(failure);
  expect(!pipe.next(stream.get().value), "there are too many batches");
  sums.expect_sums(wanted, stream.get().value);
}

void refuses_a_stream_that_is_being_captured() {
  constexpr std::size_t count = 6;
  pinned_source source(&gpu_api(), some_batches(count));
  const auto stream = gpu_stream();
  const cudaStream_t on = stream.get().value;
  device_sums sums(count);
  const std::vector<std::uint64_t> wanted = sums_of(source.batches());
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = {.eod = 7}}, source.source());
  begin_capture(on, cudaStreamCaptureModeThreadLocal);
  expect_error<config_error>([&] { (void)pipe.next(on); }, "captured");
  expect_equal(nodes_of(end_capture(on)), 0U, "nodes in the captured graph");
  for (const auto& batch : pipe.on(on)) sums.add(batch, 0, on);
  sums.expect_sums(wanted, on);
}

void survives_a_batch_that_ends_in_a_capture() {
  constexpr std::size_t count = 20;
  pinned_source source(&gpu_api(), some_batches(count));
  std::vector<std::uint64_t> wanted = sums_of(source.batches());
  wanted.resize(2);
  const auto stream = gpu_stream();
  const cudaStream_t on = stream.get().value;
  device_sums sums(count);
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = {.eod = 7}}, source.source());
  auto batch = pipe.next(on);
  expect(batch.has_value(), "the pipe ended early");
  sums.add(*batch, 0, on);
  batch.reset();
  batch = pipe.next(on);
  expect(batch.has_value(), "the pipe ended early");
  begin_capture(on, cudaStreamCaptureModeGlobal);
  sums.add(*batch, 0, on);
  batch.reset();
  const owned_graph graph = end_capture(on);
  expect_equal(nodes_of(graph), 1U, "nodes in the captured graph");
  expect_equal(pipe.report().captured, 1, "batches destroyed in a capture, in the report");
  expect_error<error>(
      [&] {
        while (pipe.next(on)) {
        }
      },
      "captured");
  // The slot was not refilled, so the graph can still read the batch from it.
  cudaGraphExec_t made = nullptr;
  must(cudaGraphInstantiate(&made, graph.get(), 0), "cudaGraphInstantiate");
  must(cudaGraphLaunch(made, on), "cudaGraphLaunch");
  sums.expect_sums(wanted, on);
  must(cudaGraphExecDestroy(made), "cudaGraphExecDestroy");
}

}  // namespace millrace::test
