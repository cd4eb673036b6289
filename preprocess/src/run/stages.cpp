// SPDX-License-Identifier: Apache-2.0
#include "run/stages.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "input/block_readers.hpp"
#include "process/stop_flag.hpp"
#include "record/giant_record.hpp"

namespace millrace::preprocess {
namespace {

/// An item of the pipeline: a block and the results of encoding it.
struct work_item {
  byte_block block;
  encoded_block encoded;
  std::exception_ptr failure;  // thrown by reading or encoding; the last stage rethrows it
};

/// The items of one run. Items are reused, so there are never more items than may be in flight.
/// Thread-safe.
class item_pool {
 public:
  explicit item_pool(std::size_t usual_bytes) : largest_bytes_(8 * usual_bytes) {}

  work_item* take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return all_.emplace_back(std::make_unique<work_item>()).get();
    work_item* item = free_.back();
    free_.pop_back();
    return item;
  }

  void give_back(work_item* item) {
    // Free a buffer that a giant line has enlarged. If several items kept such buffers, memory
    // could run out.
    if (item->block.buffer.capacity() > largest_bytes_) *item = work_item();
    const std::scoped_lock lock(mutex_);
    free_.push_back(item);
  }

 private:
  std::size_t largest_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<work_item>> all_;
  std::vector<work_item*> free_;
};

bool is_stopped(const run_options& options) {
  return options.stop != nullptr && options.stop->load() != 0;
}

/// Cancels the source when the run must stop or is complete. A separate thread checks for that,
/// because a reader cannot check while it waits for a pipe.
class stop_watch {
 public:
  stop_watch(const run_options& options, const std::atomic<bool>& full, block_source& source)
      : thread_([&options, &full, &source](const std::stop_token& ended) {
          while (!ended.stop_requested() && !is_stopped(options) && !full.load()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
          if (!ended.stop_requested()) source.cancel();
        }) {}

 private:
  std::jthread thread_;
};

template <class Options>
Options with_stop(Options options, const std::atomic<int>* stop) {
  options.stop = stop;
  return options;
}

/// The pipeline of one run. Its stages read, encode and commit the inputs.
class stages {
 public:
  stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
         const run_options& options, const read_range& range, committer& committer,
         stage_clock& clock, const std::function<void(const stage_report&)>& after_commit)
      : tokenizer_(tokenizer),
        encoding_(with_stop(encoding, options.stop)),
        options_(options),
        limits_(with_stop(options.limits, options.stop)),
        committer_(committer),
        clock_(clock),
        after_commit_(after_commit),
        source_(options.inputs, range, limits_),
        encoders_([this] { return block_encoder(tokenizer_, encoding_); }),
        pool_(options.limits.block_bytes) {
    if (options.stop != nullptr || options.most_tokens) watch_.emplace(options, full_, source_);
  }

  /// Runs the pipeline.
  ///
  /// @return true if the inputs ended
  bool run();

 private:
  using stage = stage_clock::stage;

  work_item* read(tbb::flow_control& flow);
  bool ends_run(const encoded_block& block) const;
  void encode(work_item& item);
  void commit(work_item* item);
  void commit_block(work_item& item);
  std::vector<std::string> commit_giant(const work_item& item);

  const tokenizer::tokenizer& tokenizer_;
  encoder_options encoding_;
  const run_options& options_;
  read_limits limits_;
  committer& committer_;
  stage_clock& clock_;
  const std::function<void(const stage_report&)>& after_commit_;

  block_source source_;
  tbb::enumerable_thread_specific<block_encoder> encoders_;
  tbb::enumerable_thread_specific<row_text> rows_;
  item_pool pool_;
  std::atomic<std::int64_t> in_flight_ = 0;
  // The committer is full, so nothing more need be read. Set by the committer's stage only.
  std::atomic<bool> full_ = false;
  // Used by the reader only.
  bool failed_ = false;
  bool stopped_ = false;
  // Used by the committer only. True if a line was abandoned. In that case, nothing after that line
  // may be committed.
  bool abandoned_ = false;
  std::optional<stop_watch> watch_;  // last, because it uses the members above
};

// Returns the next item, or null to end the pipeline. If reading fails, passes the exception on in
// an item, so that a bad record before it is reported first, as in a single thread.
work_item* stages::read(tbb::flow_control& flow) {
  work_item* item = failed_ || full_ || is_stopped(options_) ? nullptr : pool_.take();
  const auto timed = clock_.time(stage::read);
  try {
    const bool more = item != nullptr && source_.next(item->block);
    stopped_ = is_stopped(options_);
    if (more && !stopped_ && !full_) {
      ++in_flight_;
      return item;
    }
  } catch (...) {
    stopped_ = is_stopped(options_);
    if (!stopped_ && !full_) {
      item->failure = std::current_exception();
      failed_ = true;
      return item;
    }
  }
  flow.stop();
  return nullptr;
}

// Whether a bad record in the block ends the run, so nothing after it matters.
bool stages::ends_run(const encoded_block& block) const {
  return encoding_.on_bad_record == bad_record_policy::fail && !block.faults.empty();
}

void stages::encode(work_item& item) {
  if (item.failure) return;
  try {
    row_text& rows = rows_.local();
    {
      const auto timed = clock_.time(stage::read_spans);
      read_span(item.block, limits_, rows);
    }
    block_encoder& encoder = encoders_.local();
    {
      const auto timed = clock_.time(stage::encode);
      encoder.encode(item.block, item.encoded);
    }
    while (!ends_run(item.encoded)) {
      {
        const auto timed = clock_.time(stage::read_spans);
        if (!read_more_rows(item.block, limits_, rows)) break;
      }
      const auto timed = clock_.time(stage::encode);
      encoder.encode_more(item.block, item.encoded);
    }
  } catch (...) {
    item.failure = std::current_exception();
  }
}

void stages::commit(work_item* item) {
  if (abandoned_ || full_) return;
  try {
    commit_block(*item);
  } catch (const line_abandoned&) {
    abandoned_ = true;  // reading stopped in the middle of a line
    return;
  }
  pool_.give_back(item);
}

void stages::commit_block(work_item& item) {
  if (item.failure) std::rethrow_exception(item.failure);
  stage_report report;
  {
    const auto timed = clock_.time(stage::write);
    report.notes = committer_.commit(item.encoded);
  }
  report.giant = item.block.giant.has_value() && !committer_.is_full();
  if (report.giant) {
    try {
      for (auto& note : commit_giant(item)) report.notes.push_back(std::move(note));
    } catch (const line_abandoned&) {
      abandoned_ = true;  // do not return: notes about earlier lines must still be reported
    }
  }
  full_ = committer_.is_full();
  report.read_bytes = item.encoded.read_bytes;
  report.blocks_in_flight = --in_flight_;
  after_commit_(report);
}

std::vector<std::string> stages::commit_giant(const work_item& item) {
  const giant_line& line = *item.block.giant;
  if (encoding_.conversations) {
    return committer_.commit(item.block.input, line, [&](id_sink&, record_counts& counts) {
      ++counts.bad_records[static_cast<std::size_t>(fault_kind::not_encodable)];
      return too_large_conversation(line.end - line.begin, encoding_.giant_bytes);
    });
  }
  if (encoding_.fim) {
    return committer_.commit(item.block.input, line, [&](id_sink&, record_counts& counts) {
      ++counts.bad_records[static_cast<std::size_t>(fault_kind::not_encodable)];
      return too_large_for_fim(line.end - line.begin, encoding_.giant_bytes);
    });
  }
  const giant_options giant{.keys = encoding_.keys,
                            .append_eod = encoding_.append_eod,
                            .sentences = encoding_.sentences,
                            .digests = encoding_.digests,
                            .tokenizer_bytes = encoding_.tokenizer_bytes,
                            .workers = options_.threads(),
                            .clock = &clock_};
  return committer_.commit(item.block.input, line, [&](id_sink& ids, record_counts& counts) {
    return encode_giant_record(
        {*line.file, line.path, line.begin, line.end, options_.stop}, giant, tokenizer_,
        [this]() -> tokenizer::encoder& { return encoders_.local().encoder(); }, ids, counts);
  });
}

bool stages::run() {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(options_.threads()));
  const auto in_order = tbb::filter_mode::serial_in_order;
  const auto reader = tbb::make_filter<void, work_item*>(
      in_order, [this](tbb::flow_control& flow) { return read(flow); });
  const auto encoder =
      tbb::make_filter<work_item*, work_item*>(tbb::filter_mode::parallel, [this](work_item* item) {
        encode(*item);
        return item;
      });
  const auto writer =
      tbb::make_filter<work_item*, void>(in_order, [this](work_item* item) { commit(item); });
  tbb::task_arena(options_.threads()).execute([&] {
    tbb::parallel_pipeline(options_.most_blocks(), reader & encoder & writer);
  });
  return full_ || (!stopped_ && !abandoned_);
}

}  // namespace

bool run_stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                const run_options& options, const read_range& range, committer& committer,
                stage_clock& clock, const std::function<void(const stage_report&)>& after_commit) {
  return stages(tokenizer, encoding, options, range, committer, clock, after_commit).run();
}

}  // namespace millrace::preprocess
