// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/cuda/detail/device_telemetry.hpp>
#include <millrace/loader/cuda/detail/pinned_hook.hpp>
#include <millrace/loader/detail/batch/next_result.hpp>
#include <millrace/loader/detail/batch/pinned_memory.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/memory/numa.hpp>
#include <millrace/loader/detail/memory/pinned_pool.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>

// Example:
//
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     millrace::loader::cuda::device_loader loader(data, {.batch_size = 8, .seq_len = 4096});
//     millrace::loader::cuda::stream stream = nullptr;  // the consumer's cudaStream_t
//     for (auto& batch : loader.on(stream)) {
//       const std::int64_t* tokens = batch.tokens();  // on the device, [8, 4096]
//     }
//
// Example:
//
// A CUDA graph reads the same addresses at every launch. Here, these are the addresses `tokens` and
// `labels`: each array is [8, 4096] int64, on the device. `launch` is your call of
// `cudaGraphLaunch`.

namespace millrace::loader::cuda {

/// Options of a loader that serves a device, in addition to `loader_options`.
struct device_loader_options {
  int device = 0;               ///< index among the devices that the process sees
  std::int64_t look_ahead = 2;  ///< batches prepared on the device in advance
  /// Number of batches that the caller may hold at once without reducing the look-ahead, as in
  /// `loader_options::held`. The device has look_ahead + held + 1 slots. If all fields are
  /// requested, a slot takes 32 bytes per token, e.g. 1 MiB for 8 x 4,096 tokens.
  std::int64_t held = 8;
  /// What to do if the process sees no device. A device that cannot be used, e.g. because the
  /// driver is too old, is always an error.
  no_device_rule no_device = no_device_rule::error;
  wanted_fields fields = {};
  bool positions_at_boundaries = false;  ///< restart position ids at document boundaries
  /// Options for the memory of the host's slots. Ignored if `loader_options::memory` is set. The
  /// loader sets the number and size of the slots and the CUDA memory hook. It also sets the NUMA
  /// node to that of the device, unless the options set one.
  pool_options pool = {};
  /// Mark the work on each batch in the timeline of Nsight Systems (NVTX), and name the pipe's
  /// streams in that timeline.
  bool profile = false;
};

/// Serves the micro-batches of one rank on a device. The loader consists of a `batch_loader` and a
/// `device_pipe`. The pipe copies the host's batches to the device in advance, in the dataset's
/// token width.
///
/// If there is no CUDA, no driver or no device, the loader makes the same batches on the host,
/// provided that the options allow it (`no_device_rule::host`). `report()` then says why. Use a
/// loader from one thread.
///
/// If `loader_options::cpus` is empty and the NUMA node of the device is known, all threads of the
/// loader run on the CPUs of that node (`report().threads`). The destructor waits at most
/// `loader_options::end_within` for reads, and at most as long again for the streams that use the
/// loader's batches.
class device_loader {
 public:
  /// @param run      as for `batch_loader`
  /// @param options  as for `batch_loader`, but the loader overwrites `fields`, `boundaries` and
  ///                 `mask_bits` to fit `device`. It also overwrites `held`, because the host's
  ///                 batches are held only until they are copied. It sets `near_cpus` and the
  ///                 threads of `io` if they are empty.
  /// @param api      for tests
  /// @throws as `batch_loader` and `device_pipe`
  template <class Run>
  explicit device_loader(Run&& run, const loader_options& options,
                         const device_loader_options& device = {},
                         const cuda_api* api = runtime_api())
      : api_(api),
        device_(device),
        pool_(std::make_shared<pool_report>()),
        place_(place_of_device()),
        options_(host_options(options)),
        host_(std::make_shared<batch_loader>(std::forward<Run>(run), options_)),
        consumed_(host_->consumed_samples()) {
    start();
  }

  /// Returns the next micro-batch, for a consumer that uses the stream `on`. Returns nothing after
  /// the last micro-batch.
  /// @throws as `device_pipe::next`
  /// @throws error  an earlier `load_state` could not resume
  std::optional<device_batch> next(stream on) {
    auto batch = pipe().next(on);
    if (batch) consumed_ = batch->consumed_after();
    return batch;
  }

  /// Like next(), but waits no longer than `timeout`, so that a caller can check for signals.
  /// @throws as next
  next_result<device_batch> next_for(stream on, std::chrono::nanoseconds timeout) {
    auto next = pipe().next_for(on, timeout);
    if (next.batch) consumed_ = next.batch->consumed_after();
    return next;
  }

  /// Writes the next micro-batch into the caller's arrays, like `device_pipe::next_into`.
  /// @throws as `device_pipe::next_into`
  /// @throws error  an earlier `load_state` could not resume
  std::optional<static_batch> next_into(const static_arrays& to, stream on) {
    auto batch = pipe().next_into(to, on);
    if (batch) consumed_ = batch->number.consumed;
    return batch;
  }

  /// Returns the remaining batches, for a consumer whose stream is `on`.
  batches_on<device_loader> on(stream on) { return {*this, on}; }

  /// Like the functions of `batch_loader`, but count only batches that this loader has returned.
  std::int64_t consumed_samples() const noexcept { return consumed_; }
  dataset::run_state state() const { return host_->state_at(consumed_); }

  /// Resumes from a state, like `batch_loader::load_state`. Batches that the caller holds stay
  /// valid.
  /// @throws as `batch_loader::load_state`; the loader is then unchanged
  /// @throws cuda_error, std::system_error  the state is valid, but the device is out of memory or
  ///                                        a thread cannot be started; the caller may load the
  ///                                        state again
  void load_state(std::string_view json, dataset::resume_terms terms = {}) {
    load_state(dataset::parse_state(json), std::move(terms));
  }
  void load_state(const dataset::run_state& saved, dataset::resume_terms terms = {});

  /// @throws error  after a load_state() that could not resume
  pipe_report report() const;
  /// Reports the memory of the host's slots. Empty if `loader_options::memory` was set.
  const pool_report& memory_report() const noexcept { return *pool_; }
  /// Where the loader's time went since it started or resumed (`joined_report`). `text_of`,
  /// `json_of` and `prometheus_of` print it.
  /// @throws error  after a load_state() that could not resume
  telemetry_report time_report() const {
    return joined_report(host_->meter()->report(), pipe().meter()->report());
  }
  /// The last `loader_options::trace_events` events of the host, and as many events of the pipe,
  /// for `write_trace`.
  /// @throws error  after a load_state() that could not resume
  std::vector<trace_event> trace() const {
    return joined_trace(host_->meter()->trace(), pipe().meter()->trace(),
                        static_cast<std::size_t>(options_.threads));
  }
  /// The host loader, for its reports and its meter. The device pipe consumes its batches.
  const batch_loader& host() const noexcept { return *host_; }

 private:
  std::optional<numa_place> place_of_device() const;
  loader_options host_options(loader_options options) const;
  void start();
  device_pipe& pipe() const;
  static std::optional<staged_batch> stage(batch_loader& host);

  const cuda_api* api_;
  device_loader_options device_;
  std::shared_ptr<pool_report> pool_;
  std::optional<numa_place> place_;  // empty on the host path
  loader_options options_;
  std::shared_ptr<batch_loader> host_;  // shared with the thread of the pipe
  std::int64_t consumed_;
  // The last member, because the pipe's thread uses the other members. Null after a `load_state`
  // that could not resume.
  std::unique_ptr<device_pipe> pipe_;
};

// ---------------------------------------------------------------------------------------------

inline std::optional<numa_place> device_loader::place_of_device() const {
  if (!find_device(api_, device_.device, device_.no_device).usable) return std::nullopt;
  std::array<char, 32> address{};
  const auto size = static_cast<int>(address.size());
  if (api_->pci_bus_id(address.data(), size, device_.device) != 0) {
    (void)api_->last_error();  // placement is best effort
    return numa_place{};
  }
  return place_near_device(address.data(), device_.pool.files);
}

inline loader_options device_loader::host_options(loader_options options) const {
  options.fields = no_host_fields;
  options.held = 2;  // two batches may be copied at the same time
  if (place_ && options.cpus.empty() && options.near_cpus.empty()) {
    options.near_cpus = place_->cpus;
  }
  if (!options.near_cpus.empty() && options.io.reader.threads == nullptr) {
    options.io.reader.threads =
        share_at_home<io_threads>(io_threads::usual, thread_setup{.cpus = options.near_cpus});
  }
  options.boundaries = device_.fields.cu_seqlens || device_.fields.cu_seqlens_padded ||
                       device_.fields.segment_ids || device_.positions_at_boundaries;
  options.mask_bits = device_.fields.loss_mask;
  options.positions_at_boundaries |= device_.positions_at_boundaries;
  // With context parallelism, position ids that restart at eods make the host read more of each
  // row. So `reset_position_ids` is cleared if position ids are not requested.
  options.field_rules.reset_position_ids &= device_.fields.position_ids;
  if (options.memory) return options;
  pool_options pool = device_.pool;
  if (place_) {
    pool.cuda = pinned_hook(api_, device_.device);
    if (pool.node < 0) pool.node = place_->node;
  }
  options.memory = loader::pinned_memory(pool, pool_);
  return options;
}

inline void device_loader::start() {
  device_options options{
      .device = device_.device, .look_ahead = device_.look_ahead, .held = device_.held};
  options.no_device = device_.no_device;
  options.fields = device_.fields;
  options.rules = rules_of(options_.field_rules, options_.positions_at_boundaries);
  options.rank = options_.rank;
  options.trace_events = options_.trace_events;
  options.cpus = options_.cpus.empty() ? options_.near_cpus : std::vector<int>();
  options.end_within = options_.end_within;
  options.profile = device_.profile;
  batch_source source{.next = [host = host_] { return stage(*host); },
                      .stop = [host = host_] { host->stop(); }};
  if (host_->micro_batches() != dataset::sampler::unbounded) {
    source.count = host_->micro_batches();
  }
  pipe_ = std::make_unique<device_pipe>(api_, host_->layout(), options, std::move(source));
}

inline pipe_report device_loader::report() const {
  pipe_report report = pipe().report();
  if (place_) {
    report.threads.insert(report.threads.begin(), place_->grants.begin(), place_->grants.end());
  }
  return report;
}

inline device_pipe& device_loader::pipe() const {
  if (pipe_ != nullptr) return *pipe_;
  throw error("device_loader: load_state accepted the state, but the device pipe on device " +
              std::to_string(device_.device) +
              " could not be started (load_state threw the reason), so there are no batches: call "
              "load_state again, or create a new loader");
}

// Called on the pipe's thread.
inline std::optional<staged_batch> device_loader::stage(batch_loader& host) {
  auto taken = host.next();
  if (!taken) return std::nullopt;
  const auto batch = std::make_shared<const loader::batch>(std::move(*taken));
  staged_batch staged{.slot = batch->bytes().data(), .layout = batch->layout()};
  staged.boundaries = static_cast<std::int64_t>(batch->boundaries().size());
  staged.slices = static_cast<std::int64_t>(batch->slices().size());
  staged.number.step = batch->step();
  staged.number.micro_batch = batch->micro_batch();
  staged.number.micro_batches = batch->micro_batches();
  staged.number.first_sample = batch->first_sample();
  staged.number.consumed = host.consumed_samples();
  staged.positions = batch->positions();
  staged.sources = batch->sources();
  staged.kept_by = host.last_stall();
  staged.hold = batch;
  return staged;
}

inline void device_loader::load_state(const dataset::run_state& saved,
                                      dataset::resume_terms terms) {
  // Validates the state before changing anything.
  const auto resumption = host_->resumption_from(saved, std::move(terms));
  // Destroy the old pipe before creating the new one, so the device never holds the slots of both.
  if (pipe_ != nullptr) pipe_->stop();  // its thread uses host_ and takes batches in advance
  pipe_.reset();
  consumed_ = saved.consumed_samples;
  host_->go_on(resumption);
  start();
}

}  // namespace millrace::loader::cuda
