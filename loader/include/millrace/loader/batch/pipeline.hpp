// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/batch/batch_slot.hpp>
#include <millrace/loader/batch/host_fields.hpp>
#include <millrace/loader/batch/slot_layout.hpp>
#include <millrace/loader/batch/text_gather.hpp>
#include <millrace/loader/io/mmap_reader.hpp>
#include <millrace/loader/memory/named_thread.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/plan/look_ahead.hpp>
#include <millrace/loader/plan/micro_batch_sequence.hpp>
#include <millrace/loader/plan/sample_plan.hpp>
#include <millrace/loader/slot_ring.hpp>

namespace millrace::loader::detail {

/// The threads that fill the slots of a ring with the micro-batches of a run, one behind another.
///
/// A thread takes a slot and the next planned batch together, under one lock, so that tickets of
/// the ring and batches go in the same order however many threads there are; it then reads and
/// fills without any lock. Its destructor closes the ring and joins the threads.
class pipeline {
 public:
  using ring = slot_ring<batch_slot>;

  /// @param plan  must outlive this; its texts are asked for by nobody else once it is started
  /// @throws config_error  a batch does not fit a slot; or what the reader refuses
  pipeline(sample_plan& plan, const loader_options& options, const micro_batch_sequence& numbers);
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;
  ~pipeline() { ring_->close(); }

  /// Starts the threads. Once.
  /// @throws std::system_error  one cannot be started.
  void start();

  /// Batches keep it, so that they may outlive this.
  const std::shared_ptr<ring>& slots() const noexcept { return ring_; }

  /// Where the threads run, and why not where they were asked to.
  std::vector<grant> thread_grants() const {
    std::vector<grant> all;
    for (const named_thread& each : threads_) {
      all.insert(all.end(), each.grants().begin(), each.grants().end());
    }
    return all;
  }

  /// What each thread's reader was asked and does.
  std::vector<reader_report> reports() const {
    std::vector<reader_report> all;
    for (const auto& reader : readers_) all.push_back(reader->report());
    return all;
  }

 private:
  static std::int64_t batches_ahead(const loader_options& options) {
    if (options.prefetch_samples == 0) return 0;
    return std::max<std::int64_t>(
        2, (options.prefetch_samples + options.batch_size - 1) / options.batch_size);
  }
  static std::shared_ptr<ring> make_ring(const sample_plan& plan, const loader_options& options,
                                         std::int64_t batches);
  void fill_slots(range_reader& reader);

  loader_options options_;
  std::vector<data_file> files_;
  std::vector<formats::dtype> types_;
  std::mutex planning_;
  look_ahead look_ahead_;  // under planning_
  std::shared_ptr<ring> ring_;
  std::vector<std::unique_ptr<range_reader>> readers_;
  std::vector<named_thread>
      threads_;  // last, so that they are joined before anything they use goes
};

// ---------------------------------------------------------------------------------------------

inline pipeline::pipeline(sample_plan& plan, const loader_options& options,
                          const micro_batch_sequence& numbers)
    : options_(options),
      files_(plan.files()),
      types_(plan.types()),
      look_ahead_(plan, numbers, batches_ahead(options),
                  options.boundaries || options.fields.cu_seqlens),
      ring_(make_ring(plan, options, numbers.count())) {
  const std::int64_t count = std::min(options.threads, std::max<std::int64_t>(1, numbers.count()));
  for (std::int64_t i = 0; i < count; ++i) {
    readers_.push_back(options.reader ? options.reader(files_)
                                      : std::make_unique<mmap_reader>(files_));
  }
}

inline void pipeline::start() {
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    thread_setup setup{.name = "mr-fill-" + std::to_string(i)};
    if (!options_.cpus.empty()) setup.cpus = {options_.cpus[i % options_.cpus.size()]};
    threads_.emplace_back(std::move(setup), [this, i] { fill_slots(*readers_[i]); });
  }
}

// Beside those that are looked ahead, a slot for the caller and one for each thread to work on. No
// more than there are micro-batches, so that no option asks for more memory than the run takes.
inline std::shared_ptr<pipeline::ring> pipeline::make_ring(const sample_plan& plan,
                                                           const loader_options& options,
                                                           std::int64_t batches) {
  const std::int64_t slots = std::min(options.look_ahead + 1 + options.threads, batches);
  if (slots == 0) return std::make_shared<ring>(0, [](std::size_t) -> batch_slot { throw 0; });
  const slot_layout layout(options.batch_size, plan.seq_len(), plan.extra_token(),
                           width_of(plan.types()), plan.packed());
  const auto count = static_cast<std::size_t>(slots);
  const std::vector<memory_block> blocks = options.memory
                                               ? options.memory(count, layout.capacity_bytes())
                                               : plain_memory(count, layout.capacity_bytes());
  return std::make_shared<ring>(count, [&](std::size_t i) {
    batch_slot slot(layout, blocks.at(i));
    make_host_fields(options.fields, slot);
    return slot;
  });
}

inline void pipeline::fill_slots(range_reader& reader) {
  text_gather gather(files_, types_);
  planned_batch batch;
  std::vector<file_range> ahead;
  for (;;) {
    ring::claim claim;
    try {
      ahead.clear();
      {
        const std::scoped_lock lock(planning_);
        claim = ring_->acquire_free();
        if (claim.slot == nullptr) return;
        if (!look_ahead_.next(batch, ahead)) return ring_->finish(claim.ticket, nullptr);
      }
      if (options_.prefetch_samples > 0) reader.prefetch(ahead);
      if (batch.failure) std::rethrow_exception(batch.failure);
      batch_slot& slot = *claim.slot;
      slot.number = batch.number;
      slot.positions.assign(batch.positions.begin(), batch.positions.end());
      slot.sources.clear();
      for (const sample_text& row : batch.rows) slot.sources.push_back(row.source);
      gather.fill(batch.rows, reader, slot);
      fill_host_fields(options_.fields, options_.field_rules, slot);
    } catch (...) {
      return ring_->finish(claim.ticket, std::current_exception());
    }
    ring_->publish(claim);
  }
}

}  // namespace millrace::loader::detail
