// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/run/state_compare.hpp>
#include <millrace/loader/batch/pinned_memory.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/cuda/device_pipe.hpp>
#include <millrace/loader/cuda/pinned_hook.hpp>
#include <millrace/loader/memory/numa.hpp>
#include <millrace/loader/memory/pinned_pool.hpp>

namespace millrace::loader::cuda {

/// What is asked of a loader that serves a device, beside `loader_options`.
struct device_loader_options {
  int device = 0;               ///< of those that the process sees
  std::int64_t look_ahead = 2;  ///< batches on the device before they are asked for
  wanted_fields fields = {};
  bool positions_at_boundaries = false;  ///< position ids start anew at boundaries of the index
  /// Of the host's slots, where `loader_options::memory` is empty: slots, their size and CUDA's
  /// memory are filled in, and the device's NUMA node where none is named.
  pool_options pool = {};
};

/// Serves one rank its micro-batches on a device: a `batch_loader`, and a `device_pipe` that brings
/// its batches there, in the width of the dataset, before they are asked for.
///
///   millrace::dataset::indexed_dataset data("out/web_text_document");
///   device_loader loader(data, {.batch_size = 8, .seq_len = 4096});
///   for (auto& batch : loader.on(stream)) step(batch.tokens(), batch.labels());
///
/// Without CUDA, a driver or a device the same batches are made on the host; `report()` says why.
/// Use from one thread.
class device_loader {
 public:
  /// @param run      what a `batch_loader` takes
  /// @param options  its options; `fields` and `boundaries` are set by what `device` asks for
  /// @param api      of a test
  /// @throws as `batch_loader` and `device_pipe`
  template <class Run>
  explicit device_loader(Run&& run, const loader_options& options,
                         const device_loader_options& device = {},
                         const cuda_api* api = runtime_api())
      : api_(api),
        device_(device),
        pool_(std::make_shared<pool_report>()),
        options_(host_options(options)),
        host_(std::forward<Run>(run), options_),
        consumed_(host_.consumed_samples()) {
    start();
  }

  /// The next micro-batch, for a consumer that works on `on`; or nothing after the last one.
  /// @throws as `device_pipe::next`
  std::optional<device_batch> next(stream on) {
    auto batch = pipe_->next(on);
    if (batch) consumed_ = batch->consumed_after();
    return batch;
  }

  /// The batches that are left.
  batches_on<device_loader> on(stream on) { return {*this, on}; }

  /// As those of `batch_loader`, of what next() has given.
  std::int64_t consumed_samples() const noexcept { return consumed_; }
  dataset::run_state state() const { return host_.state_at(consumed_); }

  /// Goes on from a state, as `batch_loader::load_state`. Batches that are held stay valid.
  /// @throws as there; the loader goes on as before then.
  void load_state(std::string_view json, dataset::resume_terms terms = {}) {
    load_state(dataset::parse_state(json), std::move(terms));
  }
  void load_state(const dataset::run_state& saved, dataset::resume_terms terms = {});

  pipe_report report() const { return pipe_->report(); }
  /// What memory the host's slots got, where it was not the options' own.
  const pool_report& memory_report() const noexcept { return *pool_; }
  /// For its reports and its meter, whose consumer is the device pipe.
  const batch_loader& host() const noexcept { return host_; }

 private:
  loader_options host_options(loader_options options) const;
  int node_of_device() const;
  void start();
  std::optional<staged_batch> stage();

  const cuda_api* api_;
  device_loader_options device_;
  std::shared_ptr<pool_report> pool_;
  loader_options options_;
  batch_loader host_;
  std::int64_t consumed_;
  std::unique_ptr<device_pipe> pipe_;  // last: its thread uses the rest
};

// ---------------------------------------------------------------------------------------------

inline loader_options device_loader::host_options(loader_options options) const {
  options.fields = no_host_fields;
  options.boundaries = device_.fields.cu_seqlens || device_.positions_at_boundaries;
  if (options.memory) return options;
  pool_options pool = device_.pool;
  if (find_device(api_, device_.device).usable) {
    pool.cuda = pinned_hook(api_);
    if (pool.node < 0) pool.node = node_of_device();
  }
  options.memory = loader::pinned_memory(pool, pool_);
  return options;
}

inline int device_loader::node_of_device() const {
  std::array<char, 32> address{};
  const auto size = static_cast<int>(address.size());
  const int code = api_->pci_bus_id(address.data(), size, device_.device);
  if (code != 0) {
    (void)api_->last_error();  // a wish, as all of NUMA
    return -1;
  }
  return place_near_device(address.data(), device_.pool.files).node;
}

inline void device_loader::start() {
  device_options options{.device = device_.device, .look_ahead = device_.look_ahead};
  options.fields = device_.fields;
  options.rules = rules_of(options_.field_rules, device_.positions_at_boundaries);
  batch_source source{.next = [this] { return stage(); }};
  if (host_.micro_batches() != micro_batch_sequence::unbounded) {
    source.count = host_.micro_batches();
  }
  pipe_ = std::make_unique<device_pipe>(api_, host_.layout(), options, std::move(source));
}

// On the pipe's thread.
inline std::optional<staged_batch> device_loader::stage() {
  auto taken = host_.next();
  if (!taken) return std::nullopt;
  const auto batch = std::make_shared<const loader::batch>(std::move(*taken));
  staged_batch staged{.slot = batch->bytes().data(), .layout = batch->layout()};
  staged.boundaries = static_cast<std::int64_t>(batch->boundaries().size());
  staged.number.step = batch->step();
  staged.number.micro_batch = batch->micro_batch();
  staged.number.micro_batches = batch->micro_batches();
  staged.number.first_sample = batch->first_sample();
  staged.number.consumed = host_.consumed_samples();
  staged.positions = batch->positions();
  staged.sources = batch->sources();
  staged.hold = batch;
  return staged;
}

inline void device_loader::load_state(const dataset::run_state& saved,
                                      dataset::resume_terms terms) {
  const dataset::run_state before = state();
  pipe_.reset();  // its thread is in the host's loader, and ahead of us there
  try {
    host_.load_state(saved, std::move(terms));
  } catch (...) {
    host_.load_state(before);
    start();
    throw;
  }
  consumed_ = host_.consumed_samples();
  start();
}

}  // namespace millrace::loader::cuda
